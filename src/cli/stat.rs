//! `segtool stat`.

use std::path::{Path, PathBuf};

use clap::Args;

use super::context::{Context, OutputFormat};
use super::error::CliError;
use super::exit::ExitStatus;
use super::inputs::PathArgs;
use crate::logdir::names::{FileKind, FileName};
use crate::logdir::{Input, SingleFile};
use crate::ops::stat::{Depth, StatOptions, StatTarget, inspect};
use crate::render::stat::{render_human, render_json, render_prometheus};

/// Show the numbers people monitor, per topic and partition, from the files alone
///
/// Sizes, segments, records, batches, codecs and their ratio, keys, cleaner lag, open transactions, growth, and the file system
/// underneath. What a disk cannot tell is said to be unknown.
#[derive(Clone, Debug, Args)]
pub struct StatArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment here would become the help of the command")]
    pub paths: PathArgs,
    /// Read batch headers only: no checksums, no keys, no decompressed sizes
    #[arg(long)]
    pub quick: bool,
}

/// Measures and prints.
pub fn run(args: &StatArgs, context: &mut Context<'_>) -> Result<ExitStatus, CliError> {
    let format = context.expect_format(&[OutputFormat::Prometheus])?;
    let inputs = args.paths.open()?;
    let (targets, log_dirs) = targets(&args.paths, &inputs)?;
    let depth = if args.quick { Depth::Headers } else { Depth::Records };
    let options = StatOptions { depth, io: context.io_mode() };
    let pool = context.thread_pool()?;
    let progress = context.progress("measuring");
    let report = pool.install(|| inspect(&targets, &log_dirs, options, &*progress));
    drop(progress);
    let output = match format {
        OutputFormat::Json => {
            render_json(&report).map_err(|error| CliError::failed(format!("failed to write JSON: {error}")))?
        }
        OutputFormat::Prometheus => render_prometheus(&report).into_bytes(),
        _ => render_human(&report).into_bytes(),
    };
    context.write(&output)?;
    let status = if report.is_complete { ExitStatus::Done } else { ExitStatus::Incomplete };
    Ok(status.merge(context.status_of(&report.findings)))
}

/// What is measured, and the log dirs that it lies in.
pub(super) fn targets(paths: &PathArgs, inputs: &[Input]) -> Result<(Vec<StatTarget>, Vec<PathBuf>), CliError> {
    let mut targets = Vec::new();
    let mut log_dirs: Vec<PathBuf> = Vec::new();
    for input in inputs {
        let log_dir = match input {
            Input::File(file) => {
                targets.push(file_target(file)?);
                file.path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."))
            }
            Input::Partition(_) | Input::LogDir(_) => {
                targets.extend(paths.live_partitions(input)?.into_iter().map(StatTarget::Partition));
                input.log_dir_path()
            }
        };
        if !log_dirs.iter().any(|known| known == log_dir) {
            log_dirs.push(log_dir.to_path_buf());
        }
    }
    Ok((targets, log_dirs))
}

fn file_target(file: &SingleFile) -> Result<StatTarget, CliError> {
    let FileName::Segment { base: base_offset, kind: FileKind::Log, .. } = file.name else {
        return Err(CliError::usage(format!("{}: only log files can be measured", file.path.display())));
    };
    Ok(StatTarget::LogFile { path: file.path.clone(), topic_partition: file.topic_partition.clone(), base_offset })
}
