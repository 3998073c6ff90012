//! What somebody may have planted in a directory that another user can write to: a clear refusal, nothing touched, and least of all
//! what a link leads to.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::changing::{ALL, Changing, NOW_MS, facts};
use crate::support::run_at;

/// Files outside, of which none may change: what links lead to.
struct Outside(tempfile::TempDir);

impl Outside {
    fn new() -> Self {
        // Short: a socket's path has at most 107 bytes.
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("precious.log"), b"precious").unwrap();
        fs::create_dir(dir.path().join("precious-0")).unwrap();
        fs::write(dir.path().join("precious-0/00000000000000000000.log"), b"precious").unwrap();
        Self(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// Something to plant at a path, and what the refusal calls it. An error: it cannot be made here.
struct Plant {
    what: &'static str,
    make: fn(&Path, &Outside) -> io::Result<()>,
    called: &'static str,
}

/// In the place of a file, which is there before.
const FILES: [Plant; 9] = [
    Plant {
        what: "a link to the same file elsewhere",
        make: |path, outside| {
            fs::copy(path, outside.path("twin"))?;
            cleared(path).and_then(|()| symlink(outside.path("twin"), path))
        },
        called: "found a symbolic link",
    },
    Plant {
        what: "a link that leads nowhere",
        make: |path, outside| cleared(path).and_then(|()| symlink(outside.path("nothing"), path)),
        called: "found a symbolic link",
    },
    Plant {
        what: "a named pipe",
        make: |path, _| cleared(path).and_then(|()| run("mkfifo", &[path.as_os_str()])),
        called: "found a named pipe",
    },
    Plant {
        what: "a socket",
        make: |path, outside| {
            drop(UnixListener::bind(outside.path("socket"))?);
            cleared(path).and_then(|()| run("mv", &[outside.path("socket").as_os_str(), path.as_os_str()]))
        },
        called: "found a socket",
    },
    Plant {
        what: "a device",
        make: |path, _| {
            cleared(path)?;
            run("mknod", &[path.as_os_str(), "c".as_ref(), "1".as_ref(), "3".as_ref()])
        },
        called: "found a device",
    },
    Plant {
        what: "a directory",
        make: |path, _| cleared(path).and_then(|()| fs::create_dir(path)),
        called: "found a directory",
    },
    Plant {
        what: "a file with a second name outside",
        // Beside the log dir: of the same file system.
        make: |path, _| fs::hard_link(path, path.ancestors().nth(3).unwrap().join("twin")),
        called: "the file has 2 names (hard links)",
    },
    Plant {
        what: "a read-only file",
        make: |path, _| fs::set_permissions(path, fs::Permissions::from_mode(0o444)),
        called: "is read-only (mode 0444)",
    },
    Plant {
        what: "a file of somebody else",
        make: |path, _| chown(path, Some(4711), Some(4711)),
        called: "owned by user 4711",
    },
];

/// In other places, named from the log dir.
const PLACES: [(&str, Plant); 5] = [
    (
        "orders-0",
        Plant {
            what: "a link to a directory",
            make: |path, outside| {
                run("mv", &[path.as_os_str(), outside.path("orders-0").as_os_str()])?;
                symlink(outside.path("orders-0"), path)
            },
            called: "found a symbolic link",
        },
    ),
    (
        ".lock",
        Plant {
            what: "a link to a file",
            make: |path, outside| symlink(outside.path("precious.log"), path),
            called: "found a symbolic link",
        },
    ),
    (
        ".lock",
        Plant {
            what: "a named pipe",
            make: |path, _| run("mkfifo", &[path.as_os_str()]),
            called: "found a named pipe",
        },
    ),
    (
        "../data.segtool-undo",
        Plant {
            what: "a link to a directory",
            make: |path, outside| symlink(outside.path("precious-0"), path),
            called: "it is a symbolic link",
        },
    ),
    (
        "../data.segtool-undo",
        Plant {
            what: "a directory of somebody else",
            make: |path, _| fs::create_dir(path).and_then(|()| chown(path, Some(4711), Some(4711))),
            called: "it belongs to user 4711",
        },
    ),
];

fn cleared(path: &Path) -> io::Result<()> {
    fs::remove_file(path)
}

fn run(command: &str, arguments: &[&std::ffi::OsStr]) -> io::Result<()> {
    let status = Command::new(command).args(arguments).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("{command}: {status}"))) }
}

/// Plants something and lets the command run: refused by name, nothing touched. `false` where it could not be planted.
fn is_refused(changing: &Changing, relative: &str, plant: &Plant) -> bool {
    let (sandbox, outside) = (changing.sandbox(), Outside::new());
    let path = sandbox.path().join(relative);
    if let Err(error) = (plant.make)(&path, &outside) {
        eprintln!("skipped: {} cannot be made here: {error}", plant.what);
        return false;
    }
    let around = sandbox.path().parent().unwrap();
    let before = [facts(around), facts(outside.0.path())];
    let output = changing.run(sandbox.path(), &["--apply", "--topic-partition", "orders-0"]);
    let context = format!("{} with {} as {relative}: {output}", changing.name, plant.what);
    let after = [facts(around), facts(outside.0.path())];
    let changes: Vec<_> = after.iter().flatten().filter(|line| !before.iter().flatten().any(|b| b == *line)).collect();
    assert!(after == before, "{context}\nchanged: {changes:#?}");
    assert!(output.status == 3, "{context}");
    let name = path.file_name().unwrap().to_str().unwrap();
    let line = output.stderr.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
    assert!(line.contains(name) && line.contains(plant.called), "{context}");
    assert!(output.stderr.contains("hint: "), "{context}");
    true
}

/// Files of `orders-0` that the command replaces or removes.
fn victims(changing: &Changing) -> BTreeSet<String> {
    let plan = changing.run(changing.sandbox().path(), &["--format", "json", "--topic-partition", "orders-0"]).json();
    let steps = plan["partitions"][0]["steps"].as_array().unwrap();
    let changed =
        |step: &&serde_json::Value| ["replace", "remove", "truncate"].contains(&step["action"].as_str().unwrap());
    steps.iter().filter(changed).map(|step| step["path"].as_str().unwrap().to_owned()).collect()
}

/// What does not stand under its name any more, as `undo` knows it.
const OTHER_FILES: std::ops::Range<usize> = 0..6;

#[test]
fn undo_puts_nothing_in_the_place_of_what_was_planted_after_the_run() {
    for changing in &ALL {
        for plant in &FILES[OTHER_FILES] {
            let (sandbox, outside) = (changing.sandbox(), Outside::new());
            let log_dir = sandbox.path().to_str().unwrap();
            let applied = changing.run(sandbox.path(), &["--apply", "--format", "json"]).json();
            let partitions = applied["partitions"].as_array().unwrap().iter();
            let mut steps = partitions.flat_map(|partition| partition["steps"].as_array().unwrap());
            let stands = |step: &&serde_json::Value| ["replace", "create"].contains(&step["action"].as_str().unwrap());
            let path = steps.find(stands).unwrap()["path"].as_str().unwrap();
            if (plant.make)(&sandbox.join(path), &outside).is_err() {
                continue;
            }
            let before = facts(sandbox.path().parent().unwrap());
            let output = run_at(NOW_MS, ["undo", applied["undo_id"].as_str().unwrap(), log_dir]).expect_status(3);
            assert!(output.stderr.contains(path) && output.stderr.contains("has changed since"), "{output}");
            assert_eq!(facts(sandbox.path().parent().unwrap()), before, "{} as {path}: {output}", plant.what);
        }
    }
}

/// Every plant, in the place of so many of the files that each command changes. How many were refused.
fn refused(most_victims: usize) -> usize {
    let mut refused = 0;
    for changing in &ALL {
        let victims = victims(changing);
        assert!(!victims.is_empty(), "{} changes no file", changing.name);
        for victim in victims.iter().take(most_victims) {
            refused += FILES.iter().filter(|plant| is_refused(changing, victim, plant)).count();
        }
        refused += PLACES.iter().filter(|(place, plant)| is_refused(changing, place, plant)).count();
    }
    eprintln!("{refused} refusals");
    refused
}

#[test]
fn whatever_is_planted_is_refused_by_name_and_nothing_is_touched() {
    assert!(refused(1) >= 40);
}

#[test]
#[ignore = "a campaign"]
fn whatever_is_planted_in_the_place_of_any_file_is_refused() {
    assert!(refused(usize::MAX) >= 150);
}
