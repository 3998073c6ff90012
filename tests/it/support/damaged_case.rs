//! Cases of the family `damaged`, set up as they were for the real brokers.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use super::{Sandbox, files_below, packs, set_modified};

/// How the broker before stopped, seen from the one that starts now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// The directory as it is: with its clean-shutdown marker.
    Clean,
    /// Marker and recovery points are gone (recovery points stay where the case says so).
    Unclean,
    /// Only the marker is gone.
    UncleanWithRecoveryPoints,
}

impl Start {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Clean, Self::Unclean, Self::UncleanWithRecoveryPoints];

    /// As in the names of `truth/<version>-<variant>.json`.
    pub(crate) fn variant(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Unclean => "unclean",
            Self::UncleanWithRecoveryPoints => "unclean-rp",
        }
    }
}

/// A damaged log dir, ready for a broker's start.
#[derive(Debug)]
pub(crate) struct DamagedCase {
    /// Holds the log dir.
    pub(crate) sandbox: Sandbox,
    /// `case.properties`: topic settings, topic ids, the offsets of the pristine directory.
    pub(crate) properties: BTreeMap<String, String>,
    /// A properties file with the topic's settings, for `--config`.
    pub(crate) config: PathBuf,
    /// The clock of the start.
    pub(crate) now_ms: u64,
    /// The case itself: `CASE.md`, `truth/`.
    pub(crate) case: PathBuf,
}

impl DamagedCase {
    /// `--topic-id=<topic>=<id>` for every topic the cluster knows.
    pub(crate) fn topic_id_flags(&self) -> Vec<String> {
        let ids = self.properties.iter().filter_map(|(key, id)| Some((key.strip_prefix("topic.id.")?, id)));
        ids.map(|(topic, id)| format!("--topic-id={topic}={id}")).collect()
    }
}

/// A copy of the case's `dir/` with everything as it was before the recorded starts: the directories that archives lose,
/// all files a minute old or as old as the case says, marker and recovery points there or not.
pub(crate) fn damaged_case(name: &str, start: Start) -> DamagedCase {
    let case = packs::case("damaged", name);
    let properties = properties(&case.join("case.properties"));
    let sandbox = Sandbox::copy_of(&case.join("dir"));
    for directory in values_below(&properties, "mkdir.").keys() {
        fs::create_dir_all(sandbox.join(directory)).unwrap();
    }
    let now_ms: u64 = properties["now"].parse().unwrap();
    set_times(&sandbox, now_ms, &values_below(&properties, "mtime."));
    if start != Start::Clean {
        remove_if_there(&sandbox.join(".kafka_cleanshutdown"));
    }
    if start == Start::Unclean && !properties.contains_key("unclean.keeps.recovery.points") {
        remove_if_there(&sandbox.join("recovery-point-offset-checkpoint"));
    }
    let config = sandbox.beside("data.properties");
    let settings = values_below(&properties, "config.");
    fs::write(&config, settings.iter().map(|(key, value)| format!("{key}={value}\n")).collect::<String>()).unwrap();
    DamagedCase { sandbox, properties, config, now_ms, case }
}

/// Reads `key=value` lines; blank lines and comments are skipped.
pub(crate) fn properties(path: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once('=')).map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn values_below(properties: &BTreeMap<String, String>, prefix: &str) -> BTreeMap<String, String> {
    properties.iter().filter_map(|(key, value)| Some((key.strip_prefix(prefix)?.to_owned(), value.clone()))).collect()
}

fn set_times(sandbox: &Sandbox, now_ms: u64, exact_ms: &BTreeMap<String, String>) {
    let a_minute_ago = UNIX_EPOCH + Duration::from_millis(now_ms - 60_000);
    for file in files_below(sandbox.path()) {
        set_modified(&sandbox.join(file), a_minute_ago);
    }
    for (file, ms) in exact_ms {
        let path = sandbox.join(file);
        if path.exists() {
            set_modified(&path, UNIX_EPOCH + Duration::from_millis(ms.parse().unwrap()));
        }
    }
}

fn remove_if_there(path: &Path) {
    if path.exists() {
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn a_damaged_case_starts_as_its_variant_says() {
    let marker = ".kafka_cleanshutdown";
    let points = "recovery-point-offset-checkpoint";
    for (start, has_marker, has_points) in
        [(Start::Clean, true, true), (Start::Unclean, false, false), (Start::UncleanWithRecoveryPoints, false, true)]
    {
        let case = damaged_case("tail-1-stray-byte", start);
        let there = |name: &str| case.sandbox.join(name).exists();
        assert_eq!((there(marker), there(points)), (has_marker, has_points), "{start:?}");
        let log = fs::metadata(case.sandbox.join("plain-0/00000000000000000060.log")).unwrap();
        assert_eq!(log.modified().unwrap(), UNIX_EPOCH + Duration::from_millis(case.now_ms - 60_000));
        let config = fs::read_to_string(&case.config).unwrap();
        assert_eq!(config, "index.interval.bytes=400\nretention.ms=-1\nsegment.index.bytes=1024\n");
        assert_eq!(case.topic_id_flags(), ["--topic-id=plain=YTExNmM5ZWQ0NmQ2MjA3Nw"]);
    }
}
