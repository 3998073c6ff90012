//! How long the program takes to say something: its version, and the first record of a log of 1 GiB. `cargo bench --bench start`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a bench may panic"
)]

mod measure;

use std::process::{Command, Stdio};

use segtool::format::compression::Codec;

use measure::records::write_log;

const ROUNDS: usize = 101;

fn main() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("00000000000000000000.log");
    write_log(&path, Codec::None, 1 << 30);
    for arguments in [vec!["--version"], vec!["dump", "--limit", "1", path.to_str().unwrap()]] {
        let run = || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_segtool"));
            let status = command.args(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
            assert!(status.success());
        };
        run();
        let mut times: Vec<f64> =
            (0..ROUNDS).map(|_| measure::time(measure::wall, &mut || run()).as_secs_f64() * 1e3).collect();
        times.sort_by(f64::total_cmp);
        println!(
            "segtool {}: {:.1} ms ({:.1} to {:.1})",
            arguments[..arguments.len().min(3)].join(" "),
            times[ROUNDS / 2],
            times[0],
            times[ROUNDS - 1]
        );
    }
}
