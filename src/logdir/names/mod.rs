//! Names of directories and files, to types and back. Names only: nothing here looks at a disk.
//!
//! Kafka's brokers decide by name what a file is, before they open it; [`LoaderView`] says what they make of one, [`FileName`]
//! what a reader of a directory wants to know. The two differ: a broker takes `45.log` for the segment 45 and then opens another
//! file, and refuses to start over `foo.log`.
//!
//! A name that is not UTF-8 names nothing: a JVM cannot even open such a file, and skips it.

mod dir_name;
mod file_name;
mod loader_view;
mod remote_cache_name;
mod root_name;

pub use dir_name::{DirName, doomed_dir_name, stray_dir_name};
pub use file_name::{CheckpointState, FileKind, FileName, FileSuffix, Misnaming, leading_offset, offset_prefix};
pub use loader_view::{LoaderView, SwapKind};
pub use remote_cache_name::{RemoteCacheName, RemoteCacheState};
pub use root_name::{CheckpointKind, RootName};
