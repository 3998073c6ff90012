//! The progress bar: bytes, rate and time left, on standard error. Work counts into atomics; a thread draws ten times a second.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::ops::Progress;

const DRAW_INTERVAL: Duration = Duration::from_millis(100);
const TEMPLATE: &str = "{msg} {bar:32} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left";

#[derive(Debug, Default)]
struct Counts {
    expected: AtomicU64,
    done: AtomicU64,
    finished: AtomicBool,
}

/// A bar that is drawn while this value lives.
#[derive(Debug)]
pub(super) struct Bar {
    counts: Arc<Counts>,
    drawer: Option<JoinHandle<()>>,
}

impl Bar {
    /// A bar on standard error, headed by a word for the work. `None` where no thread can be had: work goes on without.
    pub(super) fn start(heading: &'static str) -> Option<Self> {
        let counts = Arc::new(Counts::default());
        let shared = Arc::clone(&counts);
        let drawer = std::thread::Builder::new().name("progress".into()).spawn(move || draw(&shared, heading)).ok()?;
        Some(Self { counts, drawer: Some(drawer) })
    }
}

fn draw(counts: &Counts, heading: &'static str) {
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
        bar.set_style(style);
    }
    bar.set_message(heading);
    while !counts.finished.load(Ordering::Acquire) {
        bar.set_length(counts.expected.load(Ordering::Relaxed));
        bar.set_position(counts.done.load(Ordering::Relaxed));
        std::thread::park_timeout(DRAW_INTERVAL);
    }
    bar.finish_and_clear();
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.counts.finished.store(true, Ordering::Release);
        if let Some(drawer) = self.drawer.take() {
            drawer.thread().unpark();
            // A drawer that panicked has nothing left to say.
            let _ = drawer.join();
        }
    }
}

impl Progress for Bar {
    fn expect(&self, bytes: u64) {
        self.counts.expected.fetch_add(bytes, Ordering::Relaxed);
    }

    fn advance(&self, bytes: u64) {
        self.counts.done.fetch_add(bytes, Ordering::Relaxed);
    }
}
