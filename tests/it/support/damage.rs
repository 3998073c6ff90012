//! Ways to spoil a file. Each says what it does; positions are bytes from the start.

use std::fs::{self, OpenOptions};
use std::path::Path;

/// Inverts one bit; bit 0 is the lowest of its byte.
#[track_caller]
pub(crate) fn flip_bit(path: &Path, position: usize, bit: u32) {
    edit(path, |bytes| bytes[position] ^= 1 << bit);
}

/// Replaces bytes in place.
#[track_caller]
pub(crate) fn overwrite(path: &Path, position: usize, with: &[u8]) {
    edit(path, |bytes| bytes[position..position + with.len()].copy_from_slice(with));
}

/// Fills a range with zeros in place.
#[track_caller]
pub(crate) fn zero_range(path: &Path, position: usize, count: usize) {
    edit(path, |bytes| bytes[position..position + count].fill(0));
}

/// Drops everything from a position on.
#[track_caller]
pub(crate) fn cut_at(path: &Path, position: u64) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    assert!(position <= file.metadata().unwrap().len(), "{} ends before {position}", path.display());
    file.set_len(position).unwrap();
}

/// Drops the last bytes.
#[track_caller]
pub(crate) fn cut_tail(path: &Path, count: u64) {
    let size = fs::metadata(path).unwrap().len();
    cut_at(path, size.checked_sub(count).unwrap());
}

/// Adds bytes at the end.
#[track_caller]
pub(crate) fn append(path: &Path, more: &[u8]) {
    edit(path, |bytes| bytes.extend_from_slice(more));
}

/// Adds zeros at the end, as preallocation and a crash do.
#[track_caller]
pub(crate) fn append_zeros(path: &Path, count: usize) {
    append(path, &vec![0; count]);
}

/// Removes a range; what follows moves up.
#[track_caller]
pub(crate) fn remove_range(path: &Path, position: usize, count: usize) {
    edit(path, |bytes| drop(bytes.drain(position..position + count)));
}

/// Inserts bytes; what follows moves down.
#[track_caller]
pub(crate) fn insert(path: &Path, position: usize, more: &[u8]) {
    edit(path, |bytes| drop(bytes.splice(position..position, more.iter().copied())));
}

/// Lets a function change the whole content.
#[track_caller]
pub(crate) fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

#[test]
fn damage_does_what_its_name_says() {
    let sandbox = super::Sandbox::empty();
    let path = sandbox.write("file", &[1, 2, 3, 4]);
    let after = |damage: &dyn Fn(&Path)| {
        damage(&path);
        fs::read(&path).unwrap()
    };
    assert_eq!(after(&|path| flip_bit(path, 1, 7)), [1, 0x82, 3, 4]);
    assert_eq!(after(&|path| zero_range(path, 1, 2)), [1, 0, 0, 4]);
    assert_eq!(after(&|path| append_zeros(path, 1)), [1, 0, 0, 4, 0]);
    assert_eq!(after(&|path| cut_tail(path, 1)), [1, 0, 0, 4]);
    assert_eq!(after(&|path| cut_at(path, 2)), [1, 0]);
    assert_eq!(after(&|path| insert(path, 1, &[9, 8])), [1, 9, 8, 0]);
    assert_eq!(after(&|path| remove_range(path, 0, 2)), [8, 0]);
    assert_eq!(after(&|path| overwrite(path, 1, &[7])), [8, 7]);
}
