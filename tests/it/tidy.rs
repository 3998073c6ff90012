//! The rules of the house that no compiler checks.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{files_below, golden, sha256_hex, testdata};

/// From left to right; a layer may use itself and what is left of it.
const LAYERS: [&str; 6] = ["format", "logdir", "store", "ops", "render", "cli"];
const MAX_LINES: usize = 600;

/// A source file without its comments and its unit tests.
struct Source {
    path: PathBuf,
    /// Number and text of each line.
    code: Vec<(usize, String)>,
}

impl Source {
    /// The first directory below `src/`, or nothing for `lib.rs` and `main.rs`.
    fn layer(&self) -> Option<&str> {
        let mut parts = self.path.components().map(|part| part.as_os_str().to_str().unwrap());
        parts.next().filter(|part| LAYERS.contains(part))
    }

    /// `src/<path>:<line>: <text>` of each line that has one of these words.
    fn lines_with(&self, words: &[&str]) -> Vec<String> {
        let found = self.code.iter().filter(|(_, text)| words.iter().any(|word| has_word(text, word)));
        found.map(|(number, text)| format!("src/{}:{number}: {}", self.path.display(), text.trim())).collect()
    }
}

/// `word` in `text`, not as a part of a longer name.
fn has_word(text: &str, word: &str) -> bool {
    let in_name = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    text.match_indices(word).any(|(at, _)| {
        let before = at.checked_sub(1).map(|at| text.as_bytes()[at]);
        let after = text.as_bytes().get(at + word.len()).copied();
        let (starts, ends) = (word.as_bytes().first().copied(), word.as_bytes().last().copied());
        let goes_on = (in_name(before) && in_name(starts)) || (in_name(ends) && in_name(after));
        !goes_on
    })
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(below: &str) -> Vec<PathBuf> {
    if !root().join(below).exists() {
        return Vec::new();
    }
    let mut files = files_below(&root().join(below));
    files.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    files
}

fn sources() -> Vec<Source> {
    let read = |path: PathBuf| {
        let text = fs::read_to_string(root().join("src").join(&path)).unwrap();
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap().lines().zip(1..);
        let code = code.filter(|(line, _)| !line.trim_start().starts_with("//"));
        Source { path, code: code.map(|(line, number)| (number, line.to_owned())).collect() }
    };
    rust_files("src").into_iter().map(read).collect()
}

/// Fails with every offending line at once.
#[track_caller]
fn assert_none(rule: &str, offences: &[String]) {
    assert!(offences.is_empty(), "{rule}:\n{}", offences.join("\n"));
}

#[test]
fn layers_use_only_what_is_left_of_them() {
    let mut offences = Vec::new();
    for source in sources() {
        let rank = source.layer().map_or(LAYERS.len(), |layer| LAYERS.iter().position(|name| *name == layer).unwrap());
        let right: Vec<String> = LAYERS.iter().skip(rank + 1).map(|layer| format!("crate::{layer}")).collect();
        offences.extend(source.lines_with(&right.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    assert_none("format -> logdir -> store -> ops -> render -> cli, never back", &offences);
}

#[test]
fn each_layer_keeps_out_of_what_is_not_its_business() {
    let everywhere: &[&str] = &["println!", "eprintln!", "print!", "eprint!", "dbg!", "todo!", "unimplemented!"];
    let below_cli: &[&str] =
        &["std::env", "env::var", "env::args", "SystemTime::now", "Instant::now", "clap", "stdout()"];
    let format: &[&str] = &["std::fs", "std::path", "std::net", "std::thread", "rayon", "serde"];
    let mut offences = Vec::new();
    for source in sources() {
        offences.extend(source.lines_with(everywhere));
        match source.layer() {
            Some("format") => offences.extend(source.lines_with(&[below_cli, format].concat())),
            Some("cli") | None => {}
            Some(_) => offences.extend(source.lines_with(below_cli)),
        }
    }
    assert_none("printing, clock, environment, arguments and files have their layers", &offences);
}

#[test]
fn only_store_writes() {
    let writing = [
        "File::create",
        "File::create_new",
        "File::options",
        ".write(true)",
        ".append(true)",
        ".create(true)",
        ".create_new(true)",
        ".truncate(true)",
        "fs::write",
        "fs::rename",
        "fs::copy",
        "fs::hard_link",
        "fs::remove_file",
        "fs::remove_dir",
        "fs::remove_dir_all",
        "fs::create_dir",
        "fs::create_dir_all",
        "fs::set_permissions",
        "os::unix::fs::symlink",
        ".set_len(",
        ".set_modified(",
        ".set_times(",
        "DirBuilder",
        "renameat",
        "unlinkat",
        "ftruncate",
        "fallocate",
        "copy_file_range",
        "map_mut",
        "make_mut",
        "map_raw",
    ];
    let others = sources().into_iter().filter(|source| source.layer() != Some("store"));
    let offences: Vec<String> = others.flat_map(|source| source.lines_with(&writing)).collect();
    assert_none("only src/store may create, write, rename, fsync or remove", &offences);
}

#[test]
fn unsafe_code_has_one_place() {
    let others = sources().into_iter().filter(|source| source.path != Path::new("logdir/mapped.rs"));
    let offences: Vec<String> = others.flat_map(|source| source.lines_with(&["unsafe"])).collect();
    assert_none("unsafe only in src/logdir/mapped.rs", &offences);
}

#[test]
fn files_stay_short() {
    let mut offences = Vec::new();
    for below in ["src", "tests", "benches"] {
        for path in rust_files(below) {
            let lines = fs::read_to_string(root().join(below).join(&path)).unwrap().lines().count();
            if lines > MAX_LINES {
                offences.push(format!("{below}/{}: {lines} lines", path.display()));
            }
        }
    }
    assert_none(&format!("at most {MAX_LINES} lines a file"), &offences);
}

#[test]
fn every_source_file_is_declared() {
    let mut offences = Vec::new();
    for (below, crate_roots) in [("src", &["lib.rs", "main.rs"][..]), ("tests/it", &["main.rs"][..])] {
        let files = rust_files(below);
        let text = |path: &Path| fs::read_to_string(root().join(below).join(path)).unwrap_or_default();
        for path in files.iter().filter(|path| !crate_roots.iter().any(|name| path == &Path::new(name))) {
            let is_mod = path.file_name().unwrap() == "mod.rs";
            let module = if is_mod { path.parent().unwrap() } else { path };
            let name = module.file_stem().unwrap().to_str().unwrap();
            let parent = module.parent().unwrap();
            let parents = if parent == Path::new("") {
                crate_roots.iter().map(PathBuf::from).collect()
            } else {
                vec![parent.join("mod.rs"), parent.with_extension("rs")]
            };
            if !parents.iter().any(|parent| has_word(&text(parent), &format!("mod {name};"))) {
                offences.push(format!("{below}/{}", path.display()));
            }
        }
    }
    assert_none("every file is a module of its parent", &offences);
}

#[test]
fn mod_files_hold_no_code() {
    // The command line's own module holds its top level: see the design of `cli`.
    let is_bare = |path: &Path| path.ends_with("mod.rs") && !path.starts_with("cli");
    let mut offences = Vec::new();
    for source in sources().iter().filter(|source| is_bare(&source.path)) {
        offences.extend(source.lines_with(&["fn", "struct", "enum", "impl", "trait", "static"]));
    }
    assert_none("mod.rs holds docs, `mod` and `pub use`", &offences);
}

/// One row of a table in `testdata/README.md`: the path in back quotes first, then words, last the facts: number of
/// files (of a directory only), bytes, SHA-256.
struct Row {
    line: usize,
    cells: Vec<String>,
}

impl Row {
    fn facts(&self, count: usize) -> &[String] {
        &self.cells[self.cells.len().saturating_sub(count)..]
    }

    /// The line with other facts.
    fn with(&self, facts: &[String]) -> String {
        let words = &self.cells[..self.cells.len().saturating_sub(facts.len())];
        format!("| {} |", [words, facts].concat().join(" | "))
    }
}

/// Rows by their path, such as `real/4.4.0/shop/`.
fn provenance() -> BTreeMap<String, Row> {
    let text = fs::read_to_string(testdata("README.md")).unwrap();
    let mut rows = BTreeMap::new();
    for (at, line) in text.lines().enumerate() {
        let Some(inside) = line.strip_prefix('|').and_then(|line| line.strip_suffix('|')) else { continue };
        let cells: Vec<String> = inside.split('|').map(|cell| cell.trim().to_owned()).collect();
        if let Some(path) = cells[0].strip_prefix('`').and_then(|cell| cell.strip_suffix('`')) {
            rows.insert(path.to_owned(), Row { line: at, cells });
        }
    }
    rows
}

/// What the README must say of a path: of a directory, the digest is that of `sha256sum`'s lines over all its files in
/// order of name.
fn facts_of(path: &str) -> Vec<String> {
    let full = testdata(path);
    if full.is_file() {
        let bytes = fs::read(full).unwrap();
        return vec![bytes.len().to_string(), sha256_hex(&bytes)];
    }
    let mut files = files_below(&full);
    // By bytes, not by directory.
    files.sort_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
    let (mut lines, mut size) = (Vec::new(), 0);
    for file in &files {
        let bytes = fs::read(full.join(file)).unwrap();
        size += bytes.len();
        lines.push(format!("{}  {}\n", sha256_hex(&bytes), file.display()));
    }
    vec![files.len().to_string(), size.to_string(), sha256_hex(lines.concat().as_bytes())]
}

/// The paths that need a row: each pack, `real/<version>/<case>/`, `damaged/<finding id>/`.
fn fixtures() -> BTreeSet<String> {
    let mut needed = BTreeSet::new();
    for path in files_below(&testdata("")) {
        let parts: Vec<&str> = path.iter().map(|part| part.to_str().unwrap()).collect();
        match parts.as_slice() {
            ["README.md" | "pack"] => {}
            ["real", version, case, ..] => drop(needed.insert(format!("real/{version}/{case}/"))),
            ["damaged", id, _, ..] => drop(needed.insert(format!("damaged/{id}/"))),
            _ => drop(needed.insert(parts.join("/"))),
        }
    }
    needed
}

/// With `UPDATE_GOLDEN` set, the numbers of existing rows are written anew; words have to be added by hand.
#[test]
fn every_fixture_has_its_line_of_provenance() {
    let updates = golden::is_updating();
    let rows = provenance();
    let mut readme: Vec<String> =
        fs::read_to_string(testdata("README.md")).unwrap().lines().map(str::to_owned).collect();
    let mut offences = Vec::new();
    for path in &fixtures() {
        let actual = facts_of(path);
        let Some(row) = rows.get(path) else {
            offences.push(format!("| `{path}` | <where it comes from> | {} |", actual.join(" | ")));
            continue;
        };
        if row.facts(actual.len()) != actual {
            readme[row.line] = row.with(&actual);
            if !updates {
                offences.push(format!("`{path}` is now {}", actual.join(" | ")));
            }
        }
    }
    let missing = rows.keys().filter(|path| !testdata(path).exists());
    offences.extend(missing.map(|path| format!("`{path}` does not exist")));
    if updates {
        fs::write(testdata("README.md"), readme.join("\n") + "\n").unwrap();
    }
    assert_none("rows of testdata/README.md", &offences);
}

#[test]
fn shipped_data_stays_small() {
    let size_of = |below: &str| -> u64 {
        let files = files_below(&testdata(below)).into_iter();
        files.map(|file| fs::metadata(testdata(below).join(file)).unwrap().len()).sum()
    };
    assert!(size_of("packs") <= 7_000_000, "packs: {}", size_of("packs"));
    assert!(size_of("real") <= 2 << 20, "real: {}", size_of("real"));
    assert!(files_below(&testdata("real")).len() <= 200);
}

#[test]
fn words_are_found_as_words() {
    assert!(has_word("let x = unsafe { y };", "unsafe"));
    assert!(!has_word("deny(unsafe_code)", "unsafe"));
    assert!(has_word("fs::remove_dir_all(path)", "fs::remove_dir_all"));
    assert!(!has_word("fs::remove_dir_all(path)", "fs::remove_dir"));
    assert!(has_word("options.write(true)", ".write(true)"));
}
