//! Changes as the commands make them, each on a small log dir in memory.

use std::collections::BTreeMap;

use segtool::format::Position;
use segtool::store::{
    Access, Changes, Content, EntryName, Looks, Mtime, Part, Place, Recipe, RecipeSize, Step, Transaction,
};

use crate::support::fault_fs::{BROKER, FaultFs};
use crate::support::start_model::Segment;

pub(crate) const LOG_DIR: &str = "/kafka/data";
pub(crate) const FILE: Access = Access { uid: BROKER, gid: BROKER, mode: 0o640 };
const DIR: Access = Access { uid: BROKER, gid: BROKER, mode: 0o750 };

type Segments = BTreeMap<i64, Segment>;
/// Makes a state out of the old and the new one.
type Mix = fn(&Segments, &Segments) -> Segments;

/// A log dir and what is to change in it.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) disk: FaultFs,
    pub(crate) partitions: Vec<String>,
    pub(crate) changes: Changes,
    /// States between old and new that a broker may find in a partition whose groups change one after the other.
    pub(crate) between: Vec<(String, Mix)>,
    /// Each segment becomes new for itself.
    pub(crate) is_per_segment: bool,
    /// The journal is kept where only a file in the log dir tells.
    pub(crate) keeps_journal_elsewhere: bool,
    /// A broker may find an old segment without its index: leftovers of its own leave no other way.
    pub(crate) rebuilds_old: bool,
    /// Content that a checkpoint has only while the run is at work.
    pub(crate) checkpoint_between: Option<&'static str>,
}

pub(crate) fn name(text: &str) -> EntryName {
    EntryName::new(text).unwrap()
}

fn file(base: i64, kind: &str) -> EntryName {
    name(&format!("{base:020}.{kind}"))
}

fn create(name: EntryName, text: &str, like: EntryName) -> Step {
    let looks = Looks { like: Some(like.clone()), mtime: Mtime::Of(like) };
    Step::Create { name, content: Content::Bytes(text.into()), looks }
}

fn replace(name: EntryName, text: &str) -> Step {
    Step::Replace { name, content: Content::Bytes(text.into()), looks: Looks::default() }
}

fn remove(name: EntryName) -> Step {
    Step::Remove { name }
}

fn removed_segment(base: i64) -> Vec<Step> {
    ["log", "index", "timeindex"].map(|kind| remove(file(base, kind))).into()
}

/// A disk with a log dir, its checkpoints and one partition `orders-0` of these segments `(base, next)`.
fn disk(segments: &[(i64, i64)]) -> FaultFs {
    let disk = FaultFs::new();
    disk.add_dir(LOG_DIR, DIR);
    for text in ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "meta.properties"] {
        disk.add_file(&format!("{LOG_DIR}/{text}"), b"old", FILE);
    }
    add_partition(&disk, "orders-0", segments);
    disk
}

fn add_partition(disk: &FaultFs, partition: &str, segments: &[(i64, i64)]) {
    let dir = format!("{LOG_DIR}/{partition}");
    disk.add_dir(&dir, DIR);
    for (base, next) in segments {
        let add = |kind: &str, text: String| disk.add_file(&format!("{dir}/{base:020}.{kind}"), text.as_bytes(), FILE);
        add("log", format!("next={next} old {base}"));
        add("index", format!("index of old {base}"));
        add("timeindex", format!("time index of old {base}"));
    }
    let last = segments.last().unwrap().0;
    disk.add_file(&format!("{dir}/{last:020}.snapshot"), b"old snapshot", FILE);
    disk.add_file(&format!("{dir}/leader-epoch-checkpoint"), b"0\n1\n0 0\n", FILE);
    disk.add_file(&format!("{dir}/partition.metadata"), b"version: 0", FILE);
}

fn add(disk: &FaultFs, name: &str, text: &str) {
    disk.add_file(&format!("{LOG_DIR}/orders-0/{name}"), text.as_bytes(), FILE);
}

fn transaction(place: Option<&str>, steps: Vec<Step>) -> Transaction {
    Transaction { place: place.map_or(Place::LogDir, |text| Place::Partition(name(text))), steps }
}

fn scenario(name: &'static str, disk: FaultFs, transactions: Vec<Transaction>) -> Scenario {
    let changes = Changes { log_dir: LOG_DIR.into(), transactions };
    Scenario {
        name,
        disk,
        partitions: vec!["orders-0".into()],
        changes,
        between: vec![],
        is_per_segment: false,
        keeps_journal_elsewhere: false,
        rebuilds_old: false,
        checkpoint_between: None,
    }
}

/// Other bytes for a log and new indexes for it.
fn new_segment(base: i64, next: i64) -> Vec<Step> {
    vec![
        replace(file(base, "log"), &format!("next={next} new {base}")),
        replace(file(base, "index"), &format!("index of new {base}")),
        replace(file(base, "timeindex"), &format!("time index of new {base}")),
    ]
}

fn reindex() -> Scenario {
    let disk = disk(&[(0, 100), (100, 200), (200, 300)]);
    disk.move_file(&format!("{LOG_DIR}/orders-0"), &format!("{:020}.index", 100), None);
    disk.move_file(&format!("{LOG_DIR}/orders-0"), &format!("{:020}.timeindex", 100), None);
    add(&disk, "00000000000000000050.index", "without a log");
    let recipe = Recipe::new(RecipeSize::Exactly(13), |out| {
        out.write_all(b"index ")?;
        out.write_all(b"of 100!")
    });
    let (like, content) = (file(100, "log"), Content::Recipe(recipe));
    let steps = vec![
        replace(file(0, "index"), "right index of 0"),
        replace(file(200, "timeindex"), "right time index of 200"),
        Step::Create { name: file(100, "index"), content, looks: Looks::like(like.clone()) },
        create(file(100, "timeindex"), "time index of 100", like.clone()),
        create(file(100, "txnindex"), "transactions of 100", like),
        remove(file(50, "index")),
        replace(file(200, "snapshot"), "right snapshot"),
    ];
    let mut scenario = scenario("reindex", disk, vec![transaction(Some("orders-0"), steps)]);
    scenario.is_per_segment = true;
    scenario
}

fn salvage() -> Scenario {
    let disk = disk(&[(0, 100), (100, 200), (200, 300)]);
    let range =
        |start: u64, size_bytes: u64| Part::Range { name: file(100, "log"), start: Position(start), size_bytes };
    let content = Content::Parts(vec![range(0, 9), Part::Bytes(b"mended ".to_vec()), range(9, 3)]);
    let steps = vec![
        Step::Replace { name: file(100, "log"), content, looks: Looks::default() },
        replace(file(100, "index"), "index of mended"),
        replace(file(100, "timeindex"), "time index of mended"),
        Step::Quarantine { name: name("00000000000000000100.log.12-15"), content: Content::Parts(vec![range(12, 3)]) },
        Step::Truncate { name: file(200, "log"), size_bytes: 12 },
        replace(file(200, "index"), "index of shorter"),
        remove(file(200, "timeindex")),
        replace(name("leader-epoch-checkpoint"), "0\n1\n3 0\n"),
    ];
    let before = transaction(None, vec![replace(name("log-start-offset-checkpoint"), "lower")]);
    let after = transaction(None, vec![replace(name("recovery-point-offset-checkpoint"), "higher")]);
    scenario("salvage", disk, vec![before, transaction(Some("orders-0"), steps), after])
}

fn compact() -> Scenario {
    let disk = disk(&[(0, 100), (100, 200), (200, 300), (300, 400)]);
    add(&disk, "00000000000000000100.snapshot", "snapshot");
    add(&disk, "00000000000000000100.txnindex", "transactions");
    let mut steps = vec![
        Step::Replace {
            name: file(0, "log"),
            content: Content::Bytes(b"next=300 new 0".to_vec()),
            looks: Looks { like: None, mtime: Mtime::Of(file(200, "log")) },
        },
        replace(file(0, "index"), "index of new 0"),
        replace(file(0, "timeindex"), "time index of new 0"),
        create(file(0, "txnindex"), "transactions of new 0", file(0, "log")),
        remove(file(100, "txnindex")),
        remove(file(100, "snapshot")),
    ];
    steps.extend(removed_segment(100));
    steps.extend(removed_segment(200));
    let new = Step::Create {
        name: name("cleaner-offset-checkpoint"),
        content: Content::Bytes(b"300".to_vec()),
        looks: Looks { like: None, mtime: Mtime::At(1_800_000_000_000_000_000) },
    };
    let transactions = vec![transaction(Some("orders-0"), steps), transaction(None, vec![new])];
    scenario("compact", disk, transactions)
}

fn two_groups() -> Scenario {
    let disk = disk(&[(0, 100), (100, 200), (200, 300), (300, 400)]);
    let steps = [new_segment(0, 90), new_segment(200, 280)].concat();
    let mut scenario = scenario("two groups", disk, vec![transaction(Some("orders-0"), steps)]);
    scenario.is_per_segment = true;
    scenario
}

fn split() -> Scenario {
    let disk = disk(&[(0, 100), (100, 400), (400, 500)]);
    let mut steps = new_segment(100, 180);
    for (base, next) in [(200, 280), (300, 380)] {
        let like = file(100, "log");
        steps.push(create(file(base, "log"), &format!("next={next} new {base}"), like.clone()));
        steps.push(create(file(base, "index"), &format!("index of new {base}"), like.clone()));
        steps.push(create(file(base, "timeindex"), &format!("time index of new {base}"), like));
    }
    scenario("split", disk, vec![transaction(Some("orders-0"), steps)])
}

fn retain() -> Scenario {
    let disk = disk(&[(0, 100), (100, 200), (200, 300)]);
    let mut steps: Vec<Step> = [removed_segment(0), removed_segment(100)].concat();
    steps.push(replace(name("leader-epoch-checkpoint"), "0\n1\n0 200\n"));
    let after = transaction(None, vec![replace(name("log-start-offset-checkpoint"), "200")]);
    let mut scenario = scenario("retain", disk, vec![transaction(Some("orders-0"), steps), after]);
    scenario.is_per_segment = true;
    scenario
}

fn retain_all() -> Scenario {
    let disk = disk(&[(0, 100), (100, 200)]);
    let mut steps: Vec<Step> = [removed_segment(0), removed_segment(100)].concat();
    for (kind, text) in [("log", ""), ("index", ""), ("timeindex", ""), ("snapshot", "state")] {
        steps.push(create(file(200, kind), text, file(100, "log")));
    }
    let mut scenario = scenario("retain all", disk, vec![transaction(Some("orders-0"), steps)]);
    scenario.is_per_segment = true;
    scenario
}

/// A broker died while it swapped: the old segment 0 is marked deleted, 100 is not yet.
fn finish_swap() -> Scenario {
    let disk = disk(&[(0, 100), (100, 200), (200, 300)]);
    let dir = format!("{LOG_DIR}/orders-0");
    for kind in ["log", "index", "timeindex"] {
        let old = format!("{:020}.{kind}", 0);
        disk.move_file(&dir, &old, Some(&format!("{old}.deleted")));
    }
    add(&disk, "00000000000000000000.log.swap", "next=200 swapped 0");
    add(&disk, "00000000000000000000.index.swap", "index of swapped 0");
    add(&disk, "00000000000000000000.timeindex.swap", "time index of swapped 0");
    let mut steps = removed_segment(100);
    for kind in ["log", "index", "timeindex"] {
        steps.push(Step::Rename { from: file(0, &format!("{kind}.swap")), to: file(0, kind) });
        steps.push(remove(file(0, &format!("{kind}.deleted"))));
    }
    scenario("finish a swap", disk, vec![transaction(Some("orders-0"), steps)])
}

/// The same, but what the swap holds is mended while it is taken.
fn mend_swap() -> Scenario {
    let disk = finish_swap().disk;
    let swap = file(0, "log.swap");
    let size_bytes = "next=200 swapped 0".len() as u64;
    let range = Part::Range { name: swap.clone(), start: Position(0), size_bytes };
    let content = Content::Parts(vec![range, Part::Bytes(b" mended".to_vec())]);
    let mut steps = removed_segment(100);
    steps.push(Step::Create { name: file(0, "log"), content, looks: Looks::like(swap) });
    steps.push(create(file(0, "index"), "index of mended 0", file(0, "index.swap")));
    steps.push(create(file(0, "timeindex"), "time index of mended 0", file(0, "timeindex.swap")));
    for kind in ["log", "index", "timeindex"] {
        steps.push(remove(file(0, &format!("{kind}.swap"))));
        steps.push(remove(file(0, &format!("{kind}.deleted"))));
    }
    let scenario = scenario("mend a swap", disk, vec![transaction(Some("orders-0"), steps)]);
    Scenario { rebuilds_old: true, ..scenario }
}

/// A swap whose finishing would lose records is dropped, and another segment is changed at once.
fn drop_swap() -> Scenario {
    let disk = disk(&[(0, 100), (100, 200), (200, 300)]);
    add(&disk, "00000000000000000000.log.swap", "next=200 bad");
    add(&disk, "00000000000000000000.index.swap", "index of bad");
    add(&disk, "00000000000000000100.log.cleaned", "");
    let mut steps = new_segment(100, 150);
    steps.extend(["log.swap", "index.swap"].map(|kind| remove(file(0, kind))));
    steps.push(remove(file(100, "log.cleaned")));
    let mut scenario = scenario("drop a swap", disk, vec![transaction(Some("orders-0"), steps)]);
    scenario.rebuilds_old = true;
    // Without the swap, and segment 100 still old.
    scenario.between = vec![("orders-0".into(), |_, new| {
        let mut between = new.clone();
        let text = |text: &str| Some(text.to_owned());
        between.insert(
            100,
            Segment {
                log: "next=200 old 100".into(),
                index: "index of old 100".into(),
                time_index: text("time index of old 100"),
                txn_index: None,
            },
        );
        between
    })];
    scenario
}

fn give_names_back() -> Scenario {
    let disk = disk(&[(0, 100), (100, 200), (200, 300)]);
    let dir = format!("{LOG_DIR}/orders-0");
    disk.move_file(&dir, &format!("{:020}.log", 100), Some("100.log"));
    disk.move_file(&dir, &format!("{:020}.log", 0), Some(&format!("{:020}.log.deleted", 0)));
    disk.move_file(&dir, &format!("{:020}.index", 0), Some(&format!("{:020}.index.deleted", 0)));
    disk.move_file(&dir, &format!("{:020}.timeindex", 0), None);
    let steps = vec![
        Step::Rename { from: name("100.log"), to: file(100, "log") },
        Step::Rename { from: file(0, "log.deleted"), to: file(0, "log") },
        Step::Rename { from: file(0, "index.deleted"), to: file(0, "index") },
        create(file(0, "timeindex"), "time index of old 0", file(0, "log.deleted")),
    ];
    let scenario = scenario("give names back", disk, vec![transaction(Some("orders-0"), steps)]);
    Scenario { is_per_segment: true, ..scenario }
}

fn several_partitions() -> Scenario {
    let disk = disk(&[(0, 100), (100, 200)]);
    add_partition(&disk, "orders-1", &[(0, 50), (50, 70)]);
    let steps = |base: i64| [new_segment(base, base + 20), vec![remove(name("partition.metadata"))]].concat();
    let first = transaction(None, vec![replace(name("recovery-point-offset-checkpoint"), "first")]);
    let last = transaction(
        None,
        vec![replace(name("recovery-point-offset-checkpoint"), "last"), remove(name("log-start-offset-checkpoint"))],
    );
    let orders_0 = transaction(Some("orders-0"), steps(100));
    let orders_1 = transaction(Some("orders-1"), steps(0));
    let mut scenario = scenario("several partitions", disk, vec![first, orders_0, orders_1, last]);
    scenario.partitions.push("orders-1".into());
    scenario.checkpoint_between = Some("first");
    scenario
}

/// The journal lies where nobody looks for one by himself.
fn journal_elsewhere() -> Scenario {
    let scenario = two_groups();
    scenario.disk.add_dir("/undo", DIR);
    Scenario { name: "journal elsewhere", keeps_journal_elsewhere: true, ..scenario }
}

/// All of them.
pub(crate) fn all() -> Vec<Scenario> {
    vec![
        reindex(),
        salvage(),
        compact(),
        two_groups(),
        split(),
        retain(),
        retain_all(),
        finish_swap(),
        mend_swap(),
        drop_swap(),
        give_names_back(),
        several_partitions(),
        journal_elsewhere(),
    ]
}
