//! The commands that change a log dir, each with one to work on.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::{CommandOutput, Sandbox, damage, run, run_at, testdata};

/// The time of every run, so that plans are the same.
pub(crate) const NOW_MS: i64 = 1_800_000_000_000;

/// A command that has something to change, and what to change.
#[derive(Clone, Copy)]
pub(crate) struct Changing {
    pub(crate) name: &'static str,
    source: &'static str,
    spoil: fn(&Sandbox),
    options: &'static [&'static str],
}

fn without_an_index(sandbox: &Sandbox) {
    fs::remove_file(sandbox.join("orders-0/00000000000000000043.index")).unwrap();
    damage::append(&sandbox.join("orders-0/00000000000000000000.timeindex"), b"xx");
    damage::append_zeros(&sandbox.join("customers-0/00000000000000000040.timeindex"), 24);
    fs::write(sandbox.join("customers-0/00000000000000000012.index"), b"00000000").unwrap();
}

fn as_it_is(_: &Sandbox) {}

/// One of each kind.
pub(crate) const ALL: [Changing; 4] = [
    Changing { name: "reindex", source: "real/4.4.0/shop", spoil: without_an_index, options: &[] },
    Changing { name: "repair", source: "real/4.4.0/shop-damaged", spoil: as_it_is, options: &["--accept-loss"] },
    Changing { name: "retain", source: "real/4.4.0/shop", spoil: as_it_is, options: &["--retention-bytes", "100"] },
    Changing {
        name: "compact",
        source: "real/4.4.0/shop",
        spoil: as_it_is,
        options: &["--min-cleanable-dirty-ratio", "0"],
    },
];

impl Changing {
    /// A log dir that the command has something to do with.
    pub(crate) fn sandbox(&self) -> Sandbox {
        let sandbox = Sandbox::copy_of(&testdata(self.source));
        (self.spoil)(&sandbox);
        sandbox
    }

    /// The command line, with more options.
    pub(crate) fn args(&self, log_dir: &Path, more: &[&str]) -> Vec<String> {
        let mut args = vec![self.name.to_owned(), log_dir.to_str().unwrap().to_owned()];
        let now = NOW_MS.to_string();
        let common = ["--threads", "1", "--now", &now];
        args.extend(self.options.iter().chain(&common).chain(more).map(|word| (*word).to_owned()));
        args
    }

    /// Runs it inside this process.
    pub(crate) fn run(&self, log_dir: &Path, more: &[&str]) -> CommandOutput {
        run_at(NOW_MS, self.args(log_dir, more))
    }

    /// Runs it in a process of its own.
    pub(crate) fn spawn(&self, log_dir: &Path, more: &[&str]) -> CommandOutput {
        run(self.args(log_dir, more))
    }
}

/// Everything below a directory that must come back, a line a file: owner, mode, time to the nanosecond, names, content.
pub(crate) fn facts(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(below) = open.pop() {
        let path = root.join(&below);
        let stat = fs::symlink_metadata(&path).unwrap();
        let (owner, mode, links) = ((stat.uid(), stat.gid()), stat.mode(), stat.nlink());
        if stat.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| below.join(entry.unwrap().file_name())));
            found.push(format!("{} {owner:?} {mode:o} -", below.display()));
        } else {
            let time = format!("{}.{:09}", stat.mtime(), stat.mtime_nsec());
            let content = if stat.is_file() { super::sha256_hex(&fs::read(&path).unwrap()) } else { "special".into() };
            found.push(format!("{} {owner:?} {mode:o} {links} {content} {time}", below.display()));
        }
    }
    found.sort();
    found
}

/// The same without times, which differ between two runs that make new files.
pub(crate) fn facts_without_times(root: &Path) -> Vec<String> {
    facts(root).iter().map(|line| line.rsplit_once(' ').map_or(line.as_str(), |(rest, _)| rest).to_owned()).collect()
}
