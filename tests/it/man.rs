//! The man pages are those of the command line as it is.

use std::collections::BTreeSet;
use std::path::Path;

use crate::support::golden::is_updating;

fn man_dir() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("man")
}

#[test]
fn every_page_is_fresh_and_none_is_left_over() {
    let pages = segtool::cli::man::pages().unwrap();
    let mut names: BTreeSet<String> = ["segtool-json.5".to_owned()].into();
    for (name, page) in pages {
        let path = man_dir().join(&name);
        if is_updating() {
            std::fs::write(&path, &page).unwrap();
        }
        let committed = std::fs::read(&path).unwrap_or_default();
        assert!(
            committed == page,
            "man/{} is not what the command line says; UPDATE_GOLDEN=1 cargo test --test it man writes it",
            name.display()
        );
        names.insert(name.to_str().unwrap().to_owned());
    }
    for entry in std::fs::read_dir(man_dir()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(names.contains(&name), "man/{name} belongs to nothing");
    }
}
