//! `segtool man` and `segtool completions`: both made from the same description of the command line as its help.

use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory};

use super::Cli;
use super::context::Context;
use super::error::CliError;
use super::exit::ExitStatus;
use crate::render::catalogue::findings_page;

/// Print a man page
#[derive(Clone, Debug, Args)]
pub struct ManArgs {
    /// The command whose page is printed; segtool's own without one
    #[arg(value_name = "COMMAND")]
    pub command: Option<String>,
}

/// Print a shell's completion script
#[derive(Clone, Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Prints one page.
pub fn run(args: &ManArgs, context: &mut Context<'_>) -> Result<ExitStatus, CliError> {
    let wanted =
        args.command.as_deref().map_or("segtool.1".into(), |command| PathBuf::from(format!("segtool-{command}.1")));
    // Pages that are no command's have other sections.
    let is_wanted = |name: &Path| name == wanted || name.file_stem() == wanted.file_stem();
    let Some((_, page)) = pages()?.into_iter().find(|(name, _)| is_wanted(name)) else {
        return Err(CliError::usage(format!("there is no command {}", args.command.as_deref().unwrap_or_default())));
    };
    context.write(&page)?;
    Ok(ExitStatus::Done)
}

/// Prints the completion script.
pub fn run_completions(args: &CompletionsArgs, context: &mut Context<'_>) -> Result<ExitStatus, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "segtool", &mut script);
    context.write(&script)?;
    Ok(ExitStatus::Done)
}

/// All pages that are made from the command line: file name and content.
pub fn pages() -> Result<Vec<(PathBuf, Vec<u8>)>, CliError> {
    let mut root = Cli::command();
    root.build();
    let mut pages = vec![(PathBuf::from("segtool.1"), page(&root)?)];
    for command in root.get_subcommands().filter(|command| command.get_name() != "help") {
        let name = format!("segtool-{}", command.get_name());
        let path = Path::new(&name).with_extension("1");
        pages.push((path, page(&command.clone().display_name(name))?));
    }
    pages.push((PathBuf::from("segtool-findings.7"), findings_page()));
    Ok(pages)
}

fn page(command: &clap::Command) -> Result<Vec<u8>, CliError> {
    let mut out = Vec::new();
    // Without a date the page is the same on every day.
    clap_mangen::Man::new(command.clone()).manual("segtool").render(&mut out)?;
    Ok(out)
}
