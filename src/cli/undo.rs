//! `segtool undo`.

use std::path::{Path, PathBuf};

use clap::Args;

use super::context::{Context, OutputFormat};
use super::error::CliError;
use super::exit::ExitStatus;
use super::interrupt::interruption;
use crate::logdir::Input;
use crate::render::undo as render;
use crate::store::{
    BrokerLock, Disturbance, LockTrust, RealFs, RunId, StoreError, StoreErrorKind, Watch, default_undo_dir,
    end_all_unfinished, list_runs, refuse_unfinished, undo, with_lock,
};

/// List applied runs, and take them back
///
/// Without an id the runs of a log dir are listed. With one its originals are put back, byte and metadata identical; that is
/// refused where a file it would replace has changed since.
#[derive(Clone, Debug, Args)]
pub struct UndoArgs {
    /// The log dirs, and the id of the run to take back
    #[arg(required = true, value_name = "LOGDIR | ID")]
    pub words: Vec<PathBuf>,
    /// End a run that was killed: finish it, or put everything back
    #[arg(long)]
    pub unfinished: bool,
    /// With --unfinished: keep files that were changed since as they are
    #[arg(long, requires = "unfinished")]
    pub keep_changed: bool,
    /// Where the journals are [default: LOGDIR.segtool-undo]
    #[arg(long, value_name = "DIR")]
    pub undo_dir: Option<PathBuf>,
    /// Go on where a file system's locks cannot be trusted
    #[arg(long = "i-have-stopped-the-broker")]
    pub broker_is_stopped: bool,
}

impl UndoArgs {
    fn trust(&self) -> LockTrust {
        if self.broker_is_stopped { LockTrust::BrokerIsStopped } else { LockTrust::Required }
    }

    fn id_and_log_dirs(&self) -> (Option<RunId>, Vec<PathBuf>) {
        let id = self.words.iter().find_map(|word| RunId::parse(word.to_str()?));
        let is_id = |word: &&PathBuf| word.to_str().is_some_and(|word| RunId::parse(word).is_some());
        (id, self.words.iter().filter(|word| !is_id(word)).cloned().collect())
    }
}

/// Lists or takes back.
pub fn run(args: &UndoArgs, context: &mut Context<'_>) -> Result<ExitStatus, CliError> {
    let format = context.expect_format(&[])?;
    let (id, paths) = args.id_and_log_dirs();
    if paths.is_empty() {
        return Err(CliError::usage("name the log dir whose runs are meant"));
    }
    let log_dirs = paths.iter().map(|path| log_dir_of(path)).collect::<Result<Vec<_>, _>>()?;
    let fs = RealFs;
    let mut document = render::Document::default();
    for log_dir in &log_dirs {
        if args.unfinished {
            end(args, &fs, log_dir, &mut document)?;
        } else if let Some(id) = &id {
            take_back(args, &fs, log_dir, id, &mut document)?;
        } else {
            let undo_dir = args.undo_dir.clone().or_else(|| default_undo_dir(log_dir)).unwrap_or_default();
            let runs = list_runs(&fs, &undo_dir)?;
            document.list(log_dir, &runs);
        }
    }
    let text = match format {
        OutputFormat::Json => document.json().map_err(std::io::Error::from)?,
        _ => document.human(),
    };
    context.write(text.as_bytes())?;
    Ok(ExitStatus::Done)
}

/// A partition or a file stands for the log dir around it, as it does for the command that is undone.
fn log_dir_of(path: &Path) -> Result<PathBuf, CliError> {
    Ok(match Input::open(path)? {
        Input::LogDir(log_dir) => log_dir.path().to_path_buf(),
        Input::Partition(partition) => partition.log_dir().to_path_buf(),
        Input::File(_) => return Err(CliError::usage(format!("{}: name the log dir", path.display()))),
    })
}

fn watch() -> Watch<'static> {
    Watch { interrupted: interruption(), progress: &|_| {} }
}

fn end(args: &UndoArgs, fs: &RealFs, log_dir: &Path, document: &mut render::Document) -> Result<(), CliError> {
    let disturbance = if args.keep_changed { Disturbance::Keep } else { Disturbance::Refuse };
    let endings = with_lock(fs, log_dir, args.trust(), |lock| {
        end_all_unfinished(fs, lock, args.undo_dir.as_deref(), disturbance, watch())
    });
    for (id, ending) in endings? {
        document.ended(log_dir, &id, ending);
    }
    Ok(())
}

fn take_back(
    args: &UndoArgs,
    fs: &RealFs,
    log_dir: &Path,
    id: &RunId,
    document: &mut render::Document,
) -> Result<(), CliError> {
    let undo_dir = args.undo_dir.clone().or_else(|| default_undo_dir(log_dir)).unwrap_or_default();
    let body = |lock: &BrokerLock<RealFs>| {
        refuse_unfinished(fs, lock, args.undo_dir.as_deref())?;
        let runs = list_runs(fs, &undo_dir)?;
        let Some(run) = runs.iter().find(|run| run.id == *id) else {
            return Err(StoreError::new(&*undo_dir, StoreErrorKind::NoSuchRun { id: id.as_str().to_owned() }));
        };
        undo(fs, lock, run, watch())
    };
    let ending = with_lock(fs, log_dir, args.trust(), body)?;
    document.ended(log_dir, id, ending);
    Ok(())
}
