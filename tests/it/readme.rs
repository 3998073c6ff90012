//! What the README shows is what segtool prints.

use std::path::Path;

use crate::support::run_in;

/// A command of a `console` block, the exit status it is said to have, and the lines it is said to print.
struct Shown {
    arguments: Vec<String>,
    status: i32,
    lines: Vec<String>,
}

fn split(command: &str) -> Vec<String> {
    command.split_whitespace().map(|word| word.trim_matches('\'').to_owned()).collect()
}

fn shown(readme: &str) -> Vec<Shown> {
    let mut commands: Vec<Shown> = Vec::new();
    let mut is_console = false;
    for line in readme.lines() {
        match line {
            "```console" => is_console = true,
            "```" => is_console = false,
            _ if !is_console => {}
            _ => match line.strip_prefix("$ segtool ") {
                Some(command) => {
                    let (command, status) =
                        command.split_once(" # exit ").map_or((command, 0), |(c, s)| (c, s.parse().unwrap()));
                    commands.push(Shown { arguments: split(command), status, lines: Vec::new() });
                }
                None => commands.last_mut().unwrap().lines.push(line.to_owned()),
            },
        }
    }
    commands
}

/// Whether a printed line is as shown; `...` at its end stands for any rest.
fn is_as_shown(printed: &str, shown: &str) -> bool {
    shown.strip_suffix("...").map_or(printed == shown, |start| printed.starts_with(start))
}

#[test]
fn the_tour_is_true() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let commands = shown(&std::fs::read_to_string(root.join("README.md")).unwrap());
    assert!(commands.len() >= 11, "only {} commands", commands.len());
    for command in commands {
        let output = run_in(root, &command.arguments).expect_status(command.status);
        let printed: Vec<&str> = output.text().lines().collect();
        assert!(!printed.is_empty(), "{:?} prints nothing", command.arguments);
        for (index, shown) in command.lines.iter().enumerate() {
            // A line of dots alone stands for all the rest.
            if shown == "..." {
                break;
            }
            let line = printed.get(index).copied().unwrap_or_default();
            assert!(is_as_shown(line, shown), "{:?}\n  shown: {shown}\nprinted: {line}", command.arguments);
        }
        if command.lines.last().is_none_or(|line| line != "...") {
            assert_eq!(printed.len(), command.lines.len(), "{:?}", command.arguments);
        }
    }
}

#[test]
fn the_two_commands_are_there_and_lead_to_the_shipped_data() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let first = "cargo run --release -- dump testdata/real/4.4.0/shop --topic-partition 'orders-0' --limit 10";
    assert!(readme.contains(first) && readme.contains("\ncargo test\n"));
    let arguments = split(first.split_once(" -- ").unwrap().1);
    let output = run_in(root, &arguments).expect_status(0);
    assert_eq!(output.text().lines().count(), 10);
}
