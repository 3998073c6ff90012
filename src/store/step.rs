//! What is to change, as data: steps of one directory, transactions of one log dir.

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use super::fs::EntryName;
use crate::format::Position;

/// The changes of one run to one log dir, in the order in which they are to become true.
///
/// Each transaction becomes true as a whole, whenever the machine stops; between two of them a broker may start. So a
/// checkpoint that must never claim too much goes before the partitions when it is lowered and behind them when it is raised.
#[derive(Clone, Debug)]
pub struct Changes {
    /// The log dir.
    pub log_dir: PathBuf,
    /// What changes, directory by directory.
    pub transactions: Vec<Transaction>,
}

/// Changes of one directory that become true together.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// Whose files.
    pub place: Place,
    /// The changes. Contents are produced in this order, one after the other.
    pub steps: Vec<Step>,
}

/// A directory whose files may change.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Place {
    /// The log dir itself: checkpoints.
    LogDir,
    /// A partition directory in it.
    Partition(EntryName),
}

/// One change of one file. No name may occur in two steps of a transaction, but as what a content is copied from.
#[derive(Clone, Debug)]
pub enum Step {
    /// A file that does not exist yet.
    Create {
        /// Its name.
        name: EntryName,
        /// Its bytes.
        content: Content,
        /// Owner, mode, attributes and time.
        looks: Looks,
    },
    /// Other bytes for a file that exists.
    Replace {
        /// Its name.
        name: EntryName,
        /// Its bytes.
        content: Content,
        /// Owner, mode, attributes and time; by default those it has.
        looks: Looks,
    },
    /// A file goes.
    Remove {
        /// Its name.
        name: EntryName,
    },
    /// The end of a file goes. The file is replaced by its beginning, never cut in place.
    Truncate {
        /// Its name.
        name: EntryName,
        /// Bytes that stay.
        size_bytes: u64,
    },
    /// A file gets another name, replacing what stands under it.
    Rename {
        /// Its name.
        from: EntryName,
        /// Its new name.
        to: EntryName,
    },
    /// Bytes that no file keeps are written aside, into the journal of the run, before anything changes.
    Quarantine {
        /// Their name in the journal.
        name: EntryName,
        /// The bytes.
        content: Content,
    },
}

/// The bytes of a new file.
#[derive(Clone, Debug)]
pub enum Content {
    /// These.
    Bytes(Vec<u8>),
    /// Pieces one after the other.
    Parts(Vec<Part>),
    /// What a function writes.
    Recipe(Recipe),
}

/// A piece of a new file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// A range of a file that is in the same directory before the transaction.
    Range {
        /// The file.
        name: EntryName,
        /// Where the range begins.
        start: Position,
        /// How long it is.
        size_bytes: u64,
    },
    /// These bytes.
    Bytes(Vec<u8>),
    /// That many zeros.
    Zeros(u64),
}

type Writer = dyn Fn(&mut dyn Write) -> io::Result<()> + Send + Sync;

/// Content that is made while it is written, so that it need not be held.
#[derive(Clone)]
pub struct Recipe {
    size: RecipeSize,
    write: Arc<Writer>,
}

/// What is known of the length of a recipe's content beforehand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecipeSize {
    /// It will be this; anything else is an error.
    Exactly(u64),
    /// It will not be more; more is an error.
    AtMost(u64),
}

impl Recipe {
    /// Content that `write` makes, always the same whenever it is called.
    pub fn new(size: RecipeSize, write: impl Fn(&mut dyn Write) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self { size, write: Arc::new(write) }
    }

    /// What is known of the length.
    pub fn size(&self) -> RecipeSize {
        self.size
    }

    /// Writes the content.
    pub fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        (self.write)(out)
    }
}

impl fmt::Debug for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recipe").field("size", &self.size).finish_non_exhaustive()
    }
}

/// What a new file looks like from outside.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Looks {
    /// The file, in the same directory before the transaction, whose owner, mode and extended attributes it gets. `None`: those
    /// of the file it replaces; else the owner of the directory and its mode without execution.
    pub like: Option<EntryName>,
    /// Its time of last change.
    pub mtime: Mtime,
}

impl Looks {
    /// The looks of another file, its time of last change included.
    pub fn like(name: EntryName) -> Self {
        Self { like: Some(name), mtime: Mtime::Kept }
    }
}

/// A new file's time of last change.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum Mtime {
    /// That of the file whose looks it gets; of a file like no other, the moment it is written.
    #[default]
    Kept,
    /// That of this file.
    Of(EntryName),
    /// This, in nanoseconds since 1970.
    At(i128),
}

impl Content {
    /// The whole of a file.
    pub fn whole(name: EntryName, size_bytes: u64) -> Self {
        Self::Parts(vec![Part::Range { name, start: Position(0), size_bytes }])
    }

    /// The length, or the most it can be.
    pub fn most_bytes(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Parts(parts) => parts.iter().map(Part::size_bytes).fold(0, u64::saturating_add),
            Self::Recipe(recipe) => match recipe.size() {
                RecipeSize::Exactly(size) | RecipeSize::AtMost(size) => size,
            },
        }
    }
}

impl Part {
    /// How long it is.
    pub fn size_bytes(&self) -> u64 {
        match self {
            Self::Range { size_bytes, .. } | Self::Zeros(size_bytes) => *size_bytes,
            Self::Bytes(bytes) => bytes.len() as u64,
        }
    }
}

impl Place {
    /// The directory's path.
    pub fn path_in(&self, log_dir: &std::path::Path) -> PathBuf {
        match self {
            Self::LogDir => log_dir.to_path_buf(),
            Self::Partition(name) => log_dir.join(name),
        }
    }
}
