//! `segtool dump --format kafka` against what Kafka 4.4.0's dump tool printed for the same files with the same flags.

use std::fs;
use std::path::Path;

use crate::support::packs::{case, cases};
use crate::support::{CommandOutput, files_below, run_at};

/// Runs over one file of a directory; the directory's path is taken out of both streams, as it was from the recorded ones.
fn dump(directory: &Path, options: &[&str], file: &str) -> CommandOutput {
    let path = directory.join(file);
    let fixed = ["dump", "--format", "kafka"].map(std::ffi::OsString::from);
    let options = options.iter().map(std::ffi::OsString::from);
    let mut output = run_at(0, fixed.into_iter().chain(options).chain(["--files".into(), path.into_os_string()]));
    let prefix = format!("{}/", directory.display());
    output.stdout = without(&output.stdout, prefix.as_bytes());
    output.stderr = output.stderr.replace(&prefix, "");
    output
}

fn without(text: &[u8], prefix: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        if let Some(behind) = rest.strip_prefix(prefix) {
            rest = behind;
        } else {
            kept.push(*first);
            rest = after;
        }
    }
    kept
}

/// Compared texts, and what differs.
#[derive(Default)]
struct Comparison {
    count: usize,
    differences: Vec<String>,
}

impl Comparison {
    fn see(&mut self, name: &str, options: &[&str], expected: &[u8], found: &[u8]) {
        self.count += 1;
        if expected == found {
            return;
        }
        let lines = |text: &[u8]| String::from_utf8_lossy(text).lines().map(str::to_owned).collect::<Vec<_>>();
        let (expected, found) = (lines(expected), lines(found));
        let place = expected.iter().zip(&found).take_while(|(expected, found)| expected == found).count();
        self.differences.push(format!(
            "{name} {options:?} line {}\n  Kafka:   {:?}\n  segtool: {:?}",
            place + 1,
            expected.get(place),
            found.get(place)
        ));
    }

    #[track_caller]
    fn finish(self, least: usize) {
        let shown = self.differences.iter().take(10).cloned().collect::<Vec<_>>().join("\n");
        assert!(self.differences.is_empty(), "{} of {}:\n{shown}", self.differences.len(), self.count);
        assert!(self.count >= least, "only {} compared", self.count);
    }
}

#[test]
fn internal_topics_are_printed_as_by_kafkas_tool_with_each_of_its_decoders() {
    let mut comparison = Comparison::default();
    for case in cases("internal") {
        let is_current = case.parent().unwrap().ends_with("4.4.0");
        let truth = case.join("truth").join(if is_current { "dump" } else { "dump-by-4.4.0" });
        let Ok(index) = fs::read_to_string(truth.join("index.tsv")) else { continue };
        for row in index.lines().skip(1) {
            let columns: Vec<&str> = row.split('\t').collect();
            let [file, mode, options, exit] = columns[..] else { panic!("{row}") };
            if !case.join("dir").join(file).exists() {
                continue;
            }
            let options: Vec<&str> = options.split_whitespace().collect();
            let recorded = |stream: &str| fs::read(truth.join(format!("{file}.{mode}.{stream}"))).unwrap_or_default();
            let output = dump(&case, &options, &format!("dir/{file}"));
            let stdout = without(&recorded("out"), b"/case/");
            if exit == "0" {
                comparison.see(file, &options, &stdout, &output.stdout);
                comparison.see(file, &options, &without(&recorded("err"), b"/case/"), output.stderr.as_bytes());
            } else {
                // Where Kafka's tool ended with an exception segtool goes on.
                let begun = output.stdout.get(..stdout.len()).unwrap_or(&output.stdout);
                comparison.see(file, &options, &stdout, begun);
            }
        }
    }
    comparison.finish(2500);
}

#[test]
fn logs_of_all_kinds_of_brokers_and_clients_are_printed_as_by_kafkas_tool() {
    let mut comparison = Comparison::default();
    for family in ["modern-2.8.2", "modern-3.9.1", "modern-4.x", "odd"] {
        for case in cases(family) {
            let (data, truth) = (case.join("dir"), case.join("truth"));
            for path in files_below(&truth) {
                let Some(text) = path.to_str().filter(|path| !path.starts_with("after-recovery/")) else { continue };
                let Some(file) = text.strip_suffix(".dump.txt") else { continue };
                let options: &[&str] = match file.rsplit('.').next() {
                    Some("log") => &["--deep-iteration", "--print-data-log"],
                    Some("checkpoint") => &["--cluster-metadata-decoder", "--deep-iteration"],
                    _ => &[],
                };
                let stderr = truth.join(format!("{file}.dump.stderr.txt"));
                let crashed = fs::read_to_string(stderr).is_ok_and(|text| text.contains("Exception"));
                if data.join(file).exists() && !crashed {
                    let expected = fs::read(truth.join(&path)).unwrap();
                    comparison.see(file, options, &expected, &dump(&data, options, file).stdout);
                }
            }
            compare_index_checks(&data, &truth, &mut comparison);
            compare_recorded_sessions(&data, &truth, &mut comparison);
        }
    }
    comparison.finish(1500);
}

/// `index-checks.txt`: `### <option> <exit> <file>`, standard output, `# stderr`, standard error.
fn compare_index_checks(data: &Path, truth: &Path, comparison: &mut Comparison) {
    let Ok(text) = fs::read_to_string(truth.join("index-checks.txt")) else { return };
    for part in text.split("### ").skip(1) {
        let (head, body) = part.split_once('\n').unwrap();
        let words: Vec<&str> = head.splitn(3, ' ').collect();
        let [option, _, file] = words[..] else { panic!("{head}") };
        let (expected, stderr) = body.split_once("# stderr\n").unwrap_or((body, ""));
        if !stderr.contains("Exception") && data.join(file).exists() {
            comparison.see(file, &[option], expected.as_bytes(), &dump(data, &[option], file).stdout);
        }
    }
}

/// `dump-4.4.0.txt`: the command, standard output, lines of standard error, the exit status.
fn compare_recorded_sessions(data: &Path, truth: &Path, comparison: &mut Comparison) {
    let Ok(text) = fs::read(truth.join("dump-4.4.0.txt")) else { return };
    let text = String::from_utf8_lossy(&text).into_owned();
    let (command, rest) = text.split_once('\n').unwrap();
    let (options, file) = command.split_once(" --files ").unwrap();
    let options: Vec<&str> = options.split_whitespace().skip(2).collect();
    let end = rest.find("stderr: ").unwrap_or_else(|| rest.rfind("exit ").unwrap());
    let expected = &rest[..end];
    let found = String::from_utf8_lossy(&dump(data, &options, file).stdout).into_owned();
    if rest.ends_with("exit 0\n") {
        comparison.see(file, &options, expected.as_bytes(), found.as_bytes());
    } else {
        let begun = found.get(..expected.trim_end().len()).unwrap_or(&found);
        comparison.see(file, &options, expected.trim_end().as_bytes(), begun.as_bytes());
    }
}

#[test]
fn flags_are_taken_with_one_dash_and_the_exit_status_is_segtools() {
    let case = case("modern-4.x", "4.4.0/codecs");
    let log = files_below(&case.join("dir")).into_iter().find(|path| path.extension() == Some("log".as_ref())).unwrap();
    let log = case.join("dir").join(log);
    let log = log.to_str().unwrap();
    let with = |flags: &[&str]| run_at(0, [&["dump", "--format=kafka"], flags].concat());
    let usual = with(&["--deep-iteration", "--print-data-log", "--files", log]).expect_status(0);
    assert_eq!(with(&["-print-data-log=true", "-files", log]).expect_status(0).stdout, usual.stdout);
    assert_eq!(with(&["--print-data-log", log]).expect_status(0).stdout, usual.stdout);
    assert_eq!(with(&["--value-decoder-class", "--files", log]).expect_status(0).stdout, usual.stdout);

    let missing = with(&["--files", "no-such-dir/00000000000000000000.log,README"]).expect_status(2);
    assert_eq!(
        missing.text(),
        "Dumping no-such-dir/00000000000000000000.log\nLog starting offset: 0\nDumping README\n"
    );
    assert!(missing.stderr.contains("Ignoring unknown file README\n"), "{missing}");
    run_at(0, ["dump", "--print-data-log", log]).expect_status(2);
}
