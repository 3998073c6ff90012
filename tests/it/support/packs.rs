//! `testdata/packs/<family>.tar.zst`, unpacked below the target directory.
//!
//! A pack is unpacked at most once for each content it ever had: the directory's name carries the pack's hash, and it
//! appears by one rename, so threads and processes that come at the same moment see it whole or not at all. The
//! unpacked files are shared by all tests, hence read-only by agreement: a test that changes something works on a
//! [`Sandbox`](super::Sandbox) copy. A directory that was changed all the same is noticed by its names, sizes and times
//! and unpacked again.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{files_below, set_modified, sha256_hex, testdata};

/// The window that `testdata/pack` compresses with.
const WINDOW_LOG_MAX: u32 = 27;
/// Written last; holds the fingerprint of everything beside it.
const COMPLETE: &str = "complete.sha256";

/// The directory into which a family's pack was unpacked: `<case>/...`, or `<kafka-version>/<case>/...` for the families
/// `eras`, `clients`, `modern-2.8.2`, `modern-3.9.1`, `modern-4.x` and `internal`.
pub(crate) fn unpacked(family: &str) -> PathBuf {
    static DONE: OnceLock<Mutex<BTreeMap<String, Arc<OnceLock<PathBuf>>>>> = OnceLock::new();
    let once = {
        let mut families = DONE.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        families.entry(family.to_owned()).or_default().clone()
    };
    once.get_or_init(|| unpack_once(family)).clone()
}

/// The case directories of a family in order of name: those that hold a `CASE.md`.
pub(crate) fn cases(family: &str) -> Vec<PathBuf> {
    let root = unpacked(family);
    let mut found: Vec<PathBuf> = directories(&root);
    if VERSIONED.contains(&family) {
        found = found.iter().flat_map(|version| directories(version)).collect();
    }
    found.retain(|path| path.join("CASE.md").is_file());
    found
}

/// One case of a family, such as `case("modern-4.x", "4.4.0/codecs")`.
pub(crate) fn case(family: &str, name: &str) -> PathBuf {
    let path = unpacked(family).join(name);
    assert!(path.is_dir(), "{family} has no case {name}");
    path
}

const VERSIONED: [&str; 6] = ["eras", "clients", "modern-2.8.2", "modern-3.9.1", "modern-4.x", "internal"];

fn directories(path: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

fn unpack_once(family: &str) -> PathBuf {
    let pack = testdata("packs").join(format!("{family}.tar.zst"));
    let packed = fs::read(&pack).unwrap_or_else(|error| panic!("no pack of the family {family}: {error}"));
    let hash = sha256_hex(&packed);
    let parent = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("packs").join(family);
    fs::create_dir_all(&parent).unwrap();
    let target = parent.join(&hash[..16]);
    let files = target.join("files");
    if target.is_dir() {
        if fs::read_to_string(target.join(COMPLETE)).is_ok_and(|fingerprint| fingerprint == fingerprint_of(&files)) {
            return files;
        }
        eprintln!("{} was changed after it had been unpacked; unpacking it again", target.display());
        let changed = tempfile::tempdir_in(&parent).unwrap();
        // Another process may have been faster.
        let _ = fs::rename(&target, changed.path().join("changed"));
    }
    let fresh = tempfile::tempdir_in(&parent).unwrap();
    let unpacked = fresh.path().join("pack");
    unpack(&packed, &unpacked.join("files"));
    fs::write(unpacked.join(COMPLETE), fingerprint_of(&unpacked.join("files"))).unwrap();
    match fs::rename(&unpacked, &target) {
        Ok(()) => {}
        Err(error) if matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists) => {}
        Err(error) => panic!("cannot move {} to {}: {error}", unpacked.display(), target.display()),
    }
    files
}

fn unpack(packed: &[u8], into: &Path) {
    fs::create_dir_all(into).unwrap();
    let mut decoder = zstd::Decoder::new(packed).unwrap();
    decoder.window_log_max(WINDOW_LOG_MAX).unwrap();
    let mut archive = tar::Archive::new(decoder);
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = into.join(entry.path().unwrap());
        if entry.header().entry_type().is_dir() {
            fs::create_dir_all(&path).unwrap();
            continue;
        }
        let modified = modified(&mut entry);
        let mode = entry.header().mode().unwrap();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        fs::write(&path, content).unwrap();
        set_modified(&path, modified);
        set_mode(&path, mode);
    }
}

/// The entry's time: the PAX header's where it has one, since only that has nanoseconds.
fn modified<R: Read>(entry: &mut tar::Entry<'_, R>) -> SystemTime {
    let seconds = entry.header().mtime().unwrap();
    let extensions = entry.pax_extensions().unwrap();
    let exact = extensions.into_iter().flatten().map(Result::unwrap).find(|extension| extension.key() == Ok("mtime"));
    let nanoseconds = exact.map_or(0, |extension| {
        let (_, fraction) = extension.value().unwrap().split_once('.').unwrap();
        fraction.parse().unwrap()
    });
    UNIX_EPOCH + Duration::new(seconds, nanoseconds)
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[cfg(not(unix))]
fn set_mode(_: &Path, _: u32) {}

/// A digest of every name, size and modification time.
fn fingerprint_of(root: &Path) -> String {
    let lines: String = files_below(root)
        .iter()
        .map(|path| {
            let facts = fs::metadata(root.join(path)).unwrap();
            let since = facts.modified().unwrap().duration_since(UNIX_EPOCH).unwrap();
            format!("{} {} {}\n", path.display(), facts.len(), since.as_nanos())
        })
        .collect();
    sha256_hex(lines.as_bytes())
}

#[test]
fn every_pack_unpacks_with_times_and_empty_directories() {
    let damaged = unpacked("damaged");
    assert!(damaged.join("stray-directory-no-dash/dir/backup").is_dir());
    assert!(damaged.join("log-file-is-a-directory/dir/plain-0/00000000000000000030.log").is_dir());

    let lock = case("modern-4.x", "4.4.0/stop-kill").join("dir/.lock");
    let since = fs::metadata(lock).unwrap().modified().unwrap().duration_since(UNIX_EPOCH).unwrap();
    assert_eq!(since, Duration::new(1_796_068_318, 445_190_825));

    let index = case("compaction", "latest-per-key").join("before/orders-0/00000000000000000000.index");
    let since = fs::metadata(index).unwrap().modified().unwrap().duration_since(UNIX_EPOCH).unwrap();
    assert_eq!(since, Duration::from_millis(1_700_000_001_050));
}

#[test]
fn cases_are_listed_at_the_depth_of_their_family() {
    assert_eq!(cases("damaged").len(), 223);
    assert_eq!(cases("eras").len(), 28);
    assert_eq!(unpacked("eras"), unpacked("eras"));
}
