//! The user's wish to stop, for commands that write: the current file is finished or put back, then the run ends.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Set by SIGINT, SIGTERM and SIGHUP from the first call on. Until then they end the process at once, which is right for whatever
/// only reads.
pub(super) fn interruption() -> &'static AtomicBool {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    FLAG.get_or_init(|| {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // Where a signal cannot be caught the journal is left for `undo --unfinished`.
            let _ = signal_hook::flag::register(signal, Arc::clone(&flag));
        }
        flag
    })
}
