//! Damage at random, to files of any kind.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use proptest::sample::Index;

/// One way to spoil a file.
#[derive(Debug, Clone)]
pub(crate) enum Damage {
    Flip(Index, u8),
    Cut(Index),
    Append(Vec<u8>),
    Zero(Index, usize),
    Remove,
    Double,
    Rename(&'static str),
}

/// Any of them.
pub(crate) fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        4 => (any::<Index>(), any::<u8>()).prop_map(|(at, mask)| Damage::Flip(at, mask | 1)),
        2 => any::<Index>().prop_map(Damage::Cut),
        1 => proptest::collection::vec(any::<u8>(), 1..100).prop_map(Damage::Append),
        1 => (1usize..200).prop_map(|len| Damage::Append(vec![0; len])),
        2 => (any::<Index>(), 1usize..400).prop_map(|(at, len)| Damage::Zero(at, len)),
        1 => Just(Damage::Remove),
        1 => Just(Damage::Double),
        1 => prop::sample::select(vec![".swap", ".cleaned", ".deleted", ".bak"]).prop_map(Damage::Rename),
    ]
}

/// Does it; a file that is not there stays away.
pub(crate) fn spoil(path: &Path, damage: &Damage) {
    let Ok(mut bytes) = fs::read(path) else { return };
    match damage {
        Damage::Flip(at, mask) if !bytes.is_empty() => {
            let at = at.index(bytes.len());
            bytes[at] ^= mask;
        }
        Damage::Cut(at) => bytes.truncate(at.index(bytes.len() + 1)),
        Damage::Append(more) => bytes.extend(more),
        Damage::Zero(at, len) if !bytes.is_empty() => {
            let at = at.index(bytes.len());
            let end = (at + len).min(bytes.len());
            bytes[at..end].fill(0);
        }
        Damage::Double => bytes.extend(bytes.clone()),
        Damage::Remove => return fs::remove_file(path).unwrap(),
        Damage::Rename(suffix) => {
            let mut name = path.file_name().unwrap().to_os_string();
            name.push(suffix);
            return fs::rename(path, path.with_file_name(name)).unwrap();
        }
        Damage::Flip(..) | Damage::Zero(..) => {}
    }
    fs::write(path, bytes).unwrap();
}
