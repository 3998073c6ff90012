//! The undo journal: a directory outside the log dir that holds the originals and says how to put them back.
//!
//! ```text
//! <log dir>.segtool-undo/<id>/journal.jsonl     what was done, a line for the beginning and the end of each step
//!                             files/<topic>-<partition>/..   the originals; those of the log dir itself right in files/
//!                             quarantine/<topic>-<partition>/..   bytes that no file kept
//!                             COMPLETE          the run is done
//!                             UNDONE            everything was put back; what is left here may go
//! ```
//!
//! The lines of a transaction are written and synced before the first name changes, and closed when all have.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::{At, StoreError, StoreErrorKind};
use super::fs::{Access, EntryName, Fs, Xattrs};
use super::record::{Action, Before, Entry, Identity, Order, Record};
use super::step::Place;

/// The form of the journal that this version writes and reads.
const FORMAT: u32 = 1;
/// More than any journal has: a line is some hundred bytes, and a run of a million files has four million lines.
const MOST_BYTES: u64 = 4 << 30;

/// A name in JSON: text, or hexadecimal digits of bytes that are none.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Text {
    Utf8(String),
    Hex { hex: String },
}

impl Text {
    fn new(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Utf8(text.to_owned()),
            Err(_) => Self::Hex { hex: to_hex(bytes) },
        }
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Self::Utf8(text) => Some(text.as_bytes().to_vec()),
            Self::Hex { hex } => from_hex(hex),
        }
    }
}

fn to_hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|nibble| char::from_digit(nibble.into(), 16))
        .collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|d| u8::try_from(d).ok());
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| if let [high, low] = pair { Some(digit(*high)? << 4 | digit(*low)?) } else { None }).collect()
}

/// A line of `journal.jsonl`.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
struct Line {
    seq: u64,
    op: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    saved_as: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none", with = "nanoseconds")]
    mtime_ns: Option<i128>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    xattrs: Vec<(Text, Text)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inode: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size_after: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", with = "nanoseconds")]
    mtime_ns_after: Option<i128>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inode_after: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    made_lock: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<Run>,
    state: String,
}

/// Nanoseconds as a decimal string where they pass 64 bits, as times after 2262 do.
mod nanoseconds {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Form {
        Number(i64),
        Text(String),
    }

    #[expect(clippy::ref_option, reason = "the signature that serde asks for")]
    pub(super) fn serialize<S: Serializer>(value: &Option<i128>, serializer: S) -> Result<S::Ok, S::Error> {
        let form = |value: i128| i64::try_from(value).map_or_else(|_| Form::Text(value.to_string()), Form::Number);
        value.map(form).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i128>, D::Error> {
        match Option::<Form>::deserialize(deserializer)? {
            None => Ok(None),
            Some(Form::Number(value)) => Ok(Some(value.into())),
            Some(Form::Text(text)) => text.parse().map(Some).map_err(serde::de::Error::custom),
        }
    }
}

/// What the first line says of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    /// The form of the journal.
    format: u32,
    /// The run's id.
    pub(crate) id: String,
    /// The command that wrote it.
    pub(crate) command: String,
    /// The digest of its plan.
    pub(crate) digest: String,
    log_dir: Text,
    /// The directories that the run changes, in order.
    places: Vec<RunPlace>,
    /// The log dir's time of last change before the run.
    #[serde(with = "nanoseconds")]
    pub(crate) dir_mtime_ns: Option<i128>,
    /// Whether the run has made `.lock`.
    pub(crate) made_lock: bool,
}

/// A directory that a run changes; an empty path stands for the log dir itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct RunPlace {
    path: Text,
    /// Its time of last change before the run.
    #[serde(with = "nanoseconds")]
    mtime_ns: Option<i128>,
}

impl Run {
    pub(crate) fn new(id: &str, command: &str, digest: &str, log_dir: &Path) -> Self {
        Self {
            format: FORMAT,
            id: id.to_owned(),
            command: command.to_owned(),
            digest: digest.to_owned(),
            log_dir: Text::new(log_dir.as_os_str().as_bytes()),
            places: Vec::new(),
            dir_mtime_ns: None,
            made_lock: false,
        }
    }

    /// Adds a transaction's directory.
    pub(crate) fn add_place(&mut self, place: &Place, mtime_ns: i128) {
        self.places.push(RunPlace { path: place_text(place), mtime_ns: Some(mtime_ns) });
    }

    /// The log dir as it was called when the run was made.
    pub(crate) fn log_dir(&self) -> PathBuf {
        PathBuf::from(OsString::from_vec(self.log_dir.bytes().unwrap_or_default()))
    }

    /// How many transactions the run has.
    pub(crate) fn transaction_count(&self) -> usize {
        self.places.len()
    }

    /// The directories that the run changes, each once, with their times of last change before it.
    pub(crate) fn places(&self) -> BTreeMap<Place, Option<i128>> {
        let place = |place: &RunPlace| Some((parse_place(&place.path.bytes()?)?, place.mtime_ns));
        self.places.iter().filter_map(place).collect()
    }
}

fn parse_place(bytes: &[u8]) -> Option<Place> {
    if bytes.is_empty() { Some(Place::LogDir) } else { parse_name(bytes).map(Place::Partition) }
}

fn parse_name(bytes: &[u8]) -> Option<EntryName> {
    EntryName::new(OsString::from_vec(bytes.to_vec()))
}

/// Whether a transaction makes the new state or puts the old one back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Forward,
    Back,
}

/// How a transaction ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// Nothing says so.
    Open,
    /// All its names are new.
    Done,
    /// All its names are old.
    GivenUp,
}

/// A transaction of a journal. One without a record had not begun.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Logged {
    pub(crate) direction: Direction,
    pub(crate) record: Record,
    pub(crate) outcome: Outcome,
}

/// What a journal says, up to the last line that is whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct History {
    pub(crate) run: Run,
    pub(crate) transactions: Vec<Logged>,
    /// Somebody has asked to put everything back.
    pub(crate) is_being_undone: bool,
    /// Whoever worked on it last has made `.lock`.
    pub(crate) made_lock: bool,
    next_seq: u64,
    whole_bytes: u64,
}

/// A journal that can be written to.
pub(crate) struct Journal<F: Fs> {
    pub(crate) dir: F::Dir,
    pub(crate) path: PathBuf,
    /// Owner and mode of its files.
    pub(crate) access: Access,
    file: F::File,
    next_seq: u64,
}

pub(crate) const JOURNAL: &str = "journal.jsonl";

/// A name that this program chose and that is plain.
pub(crate) fn plain(name: &str) -> Result<EntryName, StoreError> {
    EntryName::new(name)
        .ok_or_else(|| StoreError::new(name, StoreErrorKind::Contradiction { because: "a name is no plain file name" }))
}

impl<F: Fs> Journal<F> {
    /// Begins a journal in an empty directory with its first line.
    pub(crate) fn begin(fs: &F, dir: F::Dir, path: &Path, run: Run) -> Result<Self, StoreError> {
        let access = access_of(fs, &dir, path)?;
        let file = fs.create(&dir, &plain(JOURNAL)?, access).at(path, "making the undo journal")?;
        let mut journal = Self { dir, path: path.to_path_buf(), access, file, next_seq: 0 };
        let line = Line { op: "run".into(), run: Some(run), state: "begin".into(), ..Line::default() };
        journal.append(fs, vec![line])?;
        // Its name becomes durable with that of `files`, before anything changes.
        Ok(journal)
    }

    /// Opens a journal to go on with it, and forgets a last line that is not whole.
    pub(crate) fn resume(fs: &F, dir: F::Dir, path: &Path, history: &History) -> Result<Self, StoreError> {
        let file = fs.open_append(&dir, &plain(JOURNAL)?).at(path, "opening the undo journal")?;
        let size = fs.stat_file(&file).at(path, "looking at the undo journal")?.size_bytes;
        if size > history.whole_bytes {
            fs.cut(&file, history.whole_bytes).at(path, "cutting the undo journal")?;
        }
        // What was read may not be on the disk yet, and what is done now rests on it.
        fs.sync_file(&file).at(path, "syncing the undo journal")?;
        let access = access_of(fs, &dir, path)?;
        Ok(Self { dir, path: path.to_path_buf(), access, file, next_seq: history.next_seq })
    }

    fn append(&mut self, fs: &F, lines: Vec<Line>) -> Result<(), StoreError> {
        let mut text = Vec::new();
        for mut line in lines {
            line.seq = self.next_seq;
            self.next_seq = self.next_seq.saturating_add(1);
            let written = serde_json::to_writer(&mut text, &line);
            written.map_err(std::io::Error::from).at(&self.path, "writing the undo journal")?;
            text.push(b'\n');
        }
        let mut rest = text.as_slice();
        while !rest.is_empty() {
            let written = fs.write(&self.file, rest).at(&self.path, "writing the undo journal")?;
            if written == 0 {
                return Err(StoreError::io(
                    &self.path,
                    "writing the undo journal",
                    std::io::ErrorKind::WriteZero.into(),
                ));
            }
            rest = rest.get(written..).unwrap_or_default();
        }
        fs.sync_file(&self.file).at(&self.path, "syncing the undo journal")
    }

    /// Says what a transaction is about to do. When this returns, it may be done.
    pub(crate) fn prepared(&mut self, fs: &F, direction: Direction, record: &Record) -> Result<(), StoreError> {
        let mut lines = vec![Line {
            op: "directory".into(),
            path: Some(place_text(&record.place)),
            state: if direction == Direction::Back { "begin-back".into() } else { "begin".into() },
            ..Line::default()
        }];
        lines.extend(record.entries.iter().map(|entry| entry_line(&record.place, entry)));
        lines.push(Line { op: "directory".into(), state: "prepared".into(), ..Line::default() });
        self.append(fs, lines)
    }

    /// Says that a transaction is done, or given up.
    pub(crate) fn close(&mut self, fs: &F, record: &Record, outcome: Outcome) -> Result<(), StoreError> {
        let state = if outcome == Outcome::Done { "done" } else { "given-up" };
        let of_entry = |entry: &Entry| Line {
            op: entry.action.word().into(),
            path: Some(path_text(&record.place, &entry.name)),
            state: state.into(),
            ..Line::default()
        };
        let mut lines: Vec<Line> = record.entries.iter().map(of_entry).collect();
        lines.push(Line { op: "directory".into(), state: state.into(), ..Line::default() });
        self.append(fs, lines)
    }

    /// Says that from here on everything is put back.
    pub(crate) fn undo(&mut self, fs: &F, made_lock: bool) -> Result<(), StoreError> {
        let made_lock = Some(made_lock);
        self.append(fs, vec![Line { op: "undo".into(), made_lock, state: "begin".into(), ..Line::default() }])
    }

    /// Takes that back: what is new stays new.
    pub(crate) fn keep(&mut self, fs: &F) -> Result<(), StoreError> {
        self.append(fs, vec![Line { op: "undo".into(), state: "given-up".into(), ..Line::default() }])
    }

    /// Makes an empty file that is a statement about the whole journal.
    pub(crate) fn mark(&self, fs: &F, name: &str) -> Result<(), StoreError> {
        let name = plain(name)?;
        if fs.stat(&self.dir, &name).at(&self.path, "looking at the undo journal")?.is_none() {
            fs.create(&self.dir, &name, self.access).at(&self.path, "closing the undo journal")?;
        }
        fs.sync_dir(&self.dir).at(&self.path, "syncing the undo journal")
    }
}

/// A journal's files belong to whom its directory belongs, and nobody else reads them.
fn access_of<F: Fs>(fs: &F, dir: &F::Dir, path: &Path) -> Result<Access, StoreError> {
    let stat = fs.stat_dir(dir).at(path, "looking at the undo journal")?;
    Ok(Access { uid: stat.uid, gid: stat.gid, mode: 0o600 })
}

fn place_text(place: &Place) -> Text {
    match place {
        Place::LogDir => Text::new(b""),
        Place::Partition(name) => Text::new(name.as_bytes()),
    }
}

/// The path of a file below the log dir.
fn path_text(place: &Place, name: &EntryName) -> Text {
    match place {
        Place::LogDir => Text::new(name.as_bytes()),
        Place::Partition(dir) => Text::new(&[dir.as_bytes(), b"/", name.as_bytes()].concat()),
    }
}

fn saved_text(place: &Place, name: &EntryName) -> Text {
    let path = path_text(place, name).bytes().unwrap_or_default();
    Text::new(&[b"files/".as_slice(), &path].concat())
}

fn entry_line(place: &Place, entry: &Entry) -> Line {
    let before = entry.before.as_ref();
    let xattrs = before.iter().flat_map(|before| &before.xattrs);
    Line {
        op: entry.action.word().into(),
        path: Some(path_text(place, &entry.name)),
        saved_as: before.and_then(|before| before.saved.as_ref()).map(|name| saved_text(place, name)),
        size: before.map(|before| before.identity.size_bytes),
        mode: before.map(|before| before.mode),
        uid: before.map(|before| before.uid),
        gid: before.map(|before| before.gid),
        mtime_ns: before.map(|before| before.identity.mtime_ns),
        xattrs: xattrs.map(|(name, value)| (Text::new(name.as_bytes()), Text::Hex { hex: to_hex(value) })).collect(),
        inode: before.map(|before| before.identity.inode),
        waiting: entry.waiting.as_ref().map(|name| Text::new(name.as_bytes())),
        order: Some(match entry.order {
            Order::Early => -2,
            Order::Plain => -1,
            Order::Group(group) => group.into(),
        }),
        size_after: entry.after.map(|after| after.size_bytes),
        mtime_ns_after: entry.after.map(|after| after.mtime_ns),
        inode_after: entry.after.map(|after| after.inode),
        state: "begin".into(),
        ..Line::default()
    }
}

fn parse_entry(line: &Line) -> Option<Entry> {
    let last_part = |text: &Text| parse_name(text.bytes()?.rsplit(|byte| *byte == b'/').next()?);
    let name = last_part(line.path.as_ref()?)?;
    let saved = match &line.saved_as {
        None => None,
        Some(text) => Some(last_part(text)?),
    };
    let before = match line.inode {
        None => None,
        Some(inode) => {
            let pair = |(name, value): &(Text, Text)| Some((OsString::from_vec(name.bytes()?), value.bytes()?));
            Some(Before {
                identity: Identity { inode, size_bytes: line.size?, mtime_ns: line.mtime_ns? },
                mode: line.mode?,
                uid: line.uid?,
                gid: line.gid?,
                xattrs: line.xattrs.iter().map(pair).collect::<Option<Xattrs>>()?,
                saved,
            })
        }
    };
    let after = match line.inode_after {
        None => None,
        Some(inode) => Some(Identity { inode, size_bytes: line.size_after?, mtime_ns: line.mtime_ns_after? }),
    };
    let waiting = match &line.waiting {
        None => None,
        Some(text) => Some(parse_name(&text.bytes()?)?),
    };
    let order = match line.order? {
        -2 => Order::Early,
        -1 => Order::Plain,
        group => Order::Group(u32::try_from(group).ok()?),
    };
    Some(Entry { action: Action::from_word(&line.op)?, name, order, before, waiting, after })
}

/// Reads a journal. A last line that is not whole is what a crash leaves and is passed over.
pub(crate) fn read<F: Fs>(fs: &F, dir: &F::Dir, path: &Path) -> Result<History, StoreError> {
    let file = fs.open_file(dir, &plain(JOURNAL)?).at(path, "opening the undo journal")?;
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let read = fs.read_at(&file, bytes.len() as u64, &mut buffer).at(path, "reading the undo journal")?;
        bytes.extend_from_slice(buffer.get(..read).unwrap_or_default());
        if read == 0 {
            break;
        }
        if bytes.len() as u64 > MOST_BYTES {
            return Err(StoreError::new(path, StoreErrorKind::Journal { line: 0 }));
        }
    }
    parse(&bytes).map_err(|line| StoreError::new(path.join(JOURNAL), StoreErrorKind::Journal { line }))
}

fn parse(bytes: &[u8]) -> Result<History, usize> {
    let mut history: Option<History> = None;
    let mut open: Option<(Direction, Record)> = None;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let lines = bytes.get(..whole).unwrap_or_default().split_inclusive(|byte| *byte == b'\n');
    for (number, text) in lines.enumerate().map(|(index, text)| (index + 1, text)) {
        let line: Line = serde_json::from_slice(text).map_err(|_| number)?;
        let Some(history) = history.as_mut() else {
            let run = line.run.filter(|run| run.format == FORMAT).ok_or(number)?;
            let next_seq = line.seq.saturating_add(1);
            let (made_lock, transactions) = (run.made_lock, Vec::new());
            history = Some(History { run, transactions, is_being_undone: false, made_lock, next_seq, whole_bytes: 0 });
            continue;
        };
        history.next_seq = line.seq.saturating_add(1);
        match (line.op.as_str(), line.state.as_str()) {
            ("undo", state) => {
                history.is_being_undone = state == "begin";
                history.made_lock = line.made_lock.unwrap_or(history.made_lock);
            }
            ("directory", "begin" | "begin-back") => {
                let place =
                    line.path.as_ref().and_then(Text::bytes).and_then(|bytes| parse_place(&bytes)).ok_or(number)?;
                let direction = if line.state == "begin" { Direction::Forward } else { Direction::Back };
                open = Some((direction, Record { place, entries: Vec::new() }));
            }
            ("directory", "prepared") => {
                let (direction, record) = open.take().ok_or(number)?;
                history.transactions.push(Logged { direction, record, outcome: Outcome::Open });
            }
            ("directory", state) => {
                let last = history.transactions.last_mut().ok_or(number)?;
                last.outcome = if state == "done" { Outcome::Done } else { Outcome::GivenUp };
            }
            (_, "begin") => {
                let (_, record) = open.as_mut().ok_or(number)?;
                record.entries.push(parse_entry(&line).ok_or(number)?);
            }
            _ => {}
        }
    }
    let mut history = history.ok_or(1_usize)?;
    // What a transaction said before it was prepared does not count; nothing had changed.
    history.whole_bytes = whole as u64;
    Ok(history)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Line {
        let name = |text: &str| EntryName::new(text).unwrap();
        let entry = Entry {
            action: Action::Replace,
            name: EntryName::new(OsString::from_vec(b"odd\xff".to_vec())).unwrap(),
            order: Order::Group(3),
            before: Some(Before {
                identity: Identity { inode: 7, size_bytes: 8, mtime_ns: i128::from(i64::MAX) + 5 },
                mode: 0o640,
                uid: 1,
                gid: 2,
                xattrs: Xattrs::from([("user.a".into(), vec![0, 255])]),
                saved: Some(name("odd.2")),
            }),
            waiting: Some(name("segtool-x-1")),
            after: Some(Identity { inode: 9, size_bytes: 1, mtime_ns: -5 }),
        };
        entry_line(&Place::Partition(name("t-0")), &entry)
    }

    #[test]
    fn a_step_reads_back_as_it_was_written_also_with_a_name_that_is_no_text_and_a_time_after_2262() {
        let line = sample();
        let text = serde_json::to_string(&line).unwrap();
        let read: Line = serde_json::from_str(&text).unwrap();
        assert_eq!(read, line);
        let entry = parse_entry(&read).unwrap();
        assert_eq!(entry_line(&Place::Partition(EntryName::new("t-0").unwrap()), &entry), line);
        assert!(text.contains(r#""mtime_ns":"9223372036854775812""#), "{text}");
    }

    #[test]
    fn a_last_line_that_is_cut_is_passed_over_and_any_other_is_named() {
        let run = Run::new("id", "reindex", "00", Path::new("/l"));
        let header = Line { op: "run".into(), run: Some(run), state: "begin".into(), ..Line::default() };
        let mut bytes = serde_json::to_vec(&header).unwrap();
        bytes.push(b'\n');
        let whole = bytes.len();
        bytes.extend_from_slice(b"{\"seq\":1,\"op\":\"dir");
        let history = parse(&bytes).unwrap();
        assert_eq!(history.whole_bytes, whole as u64);
        assert_eq!(history.next_seq, 1);
        bytes.push(b'\n');
        assert_eq!(parse(&bytes), Err(2));
        assert_eq!(parse(b""), Err(1));
    }

    #[test]
    fn hexadecimal_digits_read_back() {
        assert_eq!(from_hex(&to_hex(&[0, 1, 0xab, 255])).unwrap(), [0, 1, 0xab, 255]);
        assert_eq!(from_hex("abc"), None);
        assert_eq!(from_hex("zz"), None);
    }
}
