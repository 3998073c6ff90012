//! Layer 2: the only module that may create, write, rename, sync or remove. Knows no more of Kafka than the names of files.
//!
//! A run changes one log dir, whose lock it holds as a JVM would ([`BrokerLock`]), directory by directory ([`Transaction`]). What
//! is on the disk when the machine stops, and what follows from it:
//!
//! | when | in the directory | a broker that starts now | `undo --unfinished` |
//! | --- | --- | --- | --- |
//! | before the journal's first line | as it was | finds the old state | removes the journal |
//! | new files are made, originals kept | besides, `segtool-<id>-<n>`, each with owner and mode of a broker's file | passes over them: old state | removes them: old state |
//! | the journal says `prepared` | the same | the same | the same |
//! | names change | see `swap.rs`: every line of its table is old or new to a broker | finds the old or the new state of each group of segments, never an index of another log | carries the transaction on, then puts the run back: old state |
//! | the journal says `done` | new | finds the new state | puts the run back if other transactions are missing |
//! | all are done, `COMPLETE` is not there | new | finds the new state | writes `COMPLETE`: new state |
//! | `COMPLETE` | new | finds the new state | nothing to do; `undo ID` puts the run back the same way |
//!
//! While a run is not done, `segtool-<id>-unfinished` in the log dir names its journal, and no other run begins. Nothing is
//! written to an existing file of a broker, ever: files are replaced by renaming, originals are kept in the journal first
//! (shared blocks, a second name, or a copy), no directory is made below a log dir. A file is synced before it gets its name, a
//! directory between any two steps whose order matters. A sync that fails ends the run; everything is put back.

mod apply;
mod atomic;
mod digest;
mod error;
mod export;
mod fs;
mod journal;
mod lock;
mod output;
mod place;
mod real_fs;
mod record;
mod step;
mod survey;
mod swap;
mod undo;
mod worker;

pub use apply::{Applied, Prepared, RunOptions, apply};
pub use atomic::Watch;
pub use digest::PlanDigest;
pub use error::{StoreError, StoreErrorKind};
pub use export::write_new_file;
pub use fs::{Access, EntryName, FileStat, Fs, FsKind, Holder, LockAnswer, NodeKind, Xattrs};
pub use lock::{BrokerLock, LockTrust, with_lock};
pub use output::{OutputOptions, Written, write_output};
pub use place::{FoundRun, RunId, RunState, default_undo_dir, list_runs, refuse_unfinished, unfinished_runs};
pub use real_fs::{RealDir, RealFs};
pub use step::{Changes, Content, Looks, Mtime, Part, Place, Recipe, RecipeSize, Step, Transaction};
pub use undo::{Disturbance, Ending, end_all_unfinished, remove_journal, undo};
