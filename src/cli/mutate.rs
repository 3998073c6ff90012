//! What every command that changes something shares: `--output`, `--apply`, `--expect`, the lock, the journal, the refusals.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;

use super::context::Context;
use super::error::{CliError, Message};
use super::interrupt::interruption;
use crate::logdir::names::CheckpointKind;
use crate::logdir::{LockHolder, probe_lock};
use crate::ops::apply::{changes_of, log_dirs_of};
use crate::ops::plan::Plan;
use crate::ops::written::check_bytes;
use crate::render::plan::PlanHead;
use crate::store::{
    BrokerLock, EntryName, LockTrust, OutputOptions, Place, PlanDigest, Prepared, RealFs, RunOptions, StoreError,
    StoreErrorKind, Watch, apply, refuse_unfinished, write_output,
};

/// How a plan is carried out; without --output and --apply it is only printed.
#[derive(Clone, Default, Debug, Args)]
#[command(next_help_heading = "Writing")]
pub struct MutateArgs {
    /// Write the result as a log dir and leave the source alone; DIR must be empty or not exist
    #[arg(long, value_name = "DIR", conflicts_with = "apply")]
    pub output: Option<PathBuf>,
    /// Change the source in place, under the broker's lock; `segtool undo` takes it back
    #[arg(long)]
    pub apply: bool,
    /// Apply only the plan with this digest
    #[arg(long, value_name = "DIGEST", requires = "apply")]
    pub expect: Option<String>,
    /// Keep the originals here [default: LOGDIR.segtool-undo]
    #[arg(long, value_name = "DIR", requires = "apply")]
    pub undo_dir: Option<PathBuf>,
    /// Go on where a file system's locks cannot be trusted
    #[arg(long = "i-have-stopped-the-broker")]
    pub broker_is_stopped: bool,
}

/// What a plan is made for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The command.
    pub command: &'static str,
    /// Its options in a fixed form, for the digest.
    pub options: String,
    /// The instant the plan is made for.
    pub now_ms: i64,
    /// The log dirs, and in each the partition directories that are meant.
    pub log_dirs: Vec<(PathBuf, Vec<OsString>)>,
}

/// How a plan was carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Carried {
    /// `plan`, `output` or `apply`.
    pub mode: &'static str,
    /// The plan's digest.
    pub digest: String,
    /// What to give `segtool undo`.
    pub undo_id: Option<String>,
}

impl Carried {
    /// What a document says about the run.
    pub fn head(&self, command: &'static str) -> PlanHead<'_> {
        PlanHead { command, mode: self.mode, digest: Some(&self.digest), undo_id: self.undo_id.as_deref() }
    }

    /// What was done with the plan, as the last line for people.
    pub fn sentence(&self) -> String {
        match (self.mode, &self.undo_id) {
            ("output", _) => format!("Plan {}: the result was written; the source is as it was.\n", self.digest),
            ("apply", Some(id)) => {
                format!("Plan {}: applied. `segtool undo {id} LOGDIR` takes it back.\n", self.digest)
            }
            ("apply", None) => format!("Plan {}: there was nothing to change.\n", self.digest),
            _ => format!(
                "Plan {}: nothing was changed. --apply changes it in place, --output DIR writes the result beside.\n",
                self.digest
            ),
        }
    }
}

impl MutateArgs {
    /// Whether something will be written.
    pub fn writes(&self) -> bool {
        self.apply || self.output.is_some()
    }

    /// Makes a plan and carries it out as asked. With `--apply` the plan is made under the lock, so that it is still true when it is
    /// carried out. `consent` may say something of a plan, or refuse it, before anything is touched; `check` looks at the new files of each directory as they
    /// are on the disk, before they get their places, and its objection leaves everything as it was.
    pub fn run<P>(
        &self,
        request: &Request,
        context: &mut Context<'_>,
        plan: impl FnOnce(&mut Context<'_>) -> Result<P, CliError>,
        as_plan: impl Fn(&P) -> &Plan,
        consent: impl FnOnce(&P, &mut Context<'_>) -> Result<(), CliError>,
        check: impl Fn(&P, &Prepared) -> Result<(), String>,
    ) -> Result<(P, Carried), CliError> {
        let fs = RealFs;
        if !self.apply {
            if self.output.is_some() {
                Self::refuse_live(request)?;
            }
            let digest = digest(&fs, request)?;
            let planned = plan(context)?;
            let mode = match &self.output {
                Some(target) => {
                    write_beside(&fs, target, request, as_plan(&planned), &|prepared| check(&planned, prepared))?;
                    "output"
                }
                None => "plan",
            };
            return Ok((planned, Carried { mode, digest, undo_id: None }));
        }
        let locks = take_locks(&fs, self, request)?;
        let result = self.apply_locked(&fs, &locks, request, context, plan, as_plan, consent, check);
        for lock in locks {
            lock.release(&fs)?;
        }
        result
    }

    /// A result that is copied while a broker writes would be torn.
    fn refuse_live(request: &Request) -> Result<(), CliError> {
        let held = |log_dir: &PathBuf| match probe_lock(log_dir) {
            LockHolder::Nobody => None,
            LockHolder::Process(pid) => Some(StoreErrorKind::InUse { pid: (pid > 0).then_some(pid) }),
        };
        let found = request.log_dirs.iter().find_map(|(log_dir, _)| Some((log_dir, held(log_dir)?)));
        found.map_or(Ok(()), |(log_dir, kind)| Err(StoreError::new(log_dir, kind).into()))
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "each is one of the things that a run needs, and none belongs to another"
    )]
    fn apply_locked<P>(
        &self,
        fs: &RealFs,
        locks: &[BrokerLock<RealFs>],
        request: &Request,
        context: &mut Context<'_>,
        plan: impl FnOnce(&mut Context<'_>) -> Result<P, CliError>,
        as_plan: impl Fn(&P) -> &Plan,
        consent: impl FnOnce(&P, &mut Context<'_>) -> Result<(), CliError>,
        check: impl Fn(&P, &Prepared) -> Result<(), String>,
    ) -> Result<(P, Carried), CliError> {
        for lock in locks {
            refuse_unfinished(fs, lock, self.undo_dir.as_deref())?;
        }
        let digest = digest(fs, request)?;
        if let Some(expected) = self.expect.as_ref().filter(|expected| **expected != digest) {
            let text = format!("the plan is not the one expected: its digest is {digest}, not {expected}");
            return Err(CliError::refused(text, "look at the plan again; the files or the options have changed"));
        }
        let planned = plan(context)?;
        consent(&planned, context)?;
        if self::digest(fs, request)? != digest {
            return Err(CliError::refused("files have changed while the plan was made", "plan again"));
        }
        let mut undo_id = None;
        for changes in changes_of(as_plan(&planned)) {
            if changes.transactions.is_empty() {
                continue;
            }
            let Some(lock) = locks.iter().find(|lock| lock.log_dir() == changes.log_dir) else { continue };
            let interrupted = interruption();
            let started_s = context.now().0.div_euclid(1000);
            let context = std::cell::RefCell::new(&mut *context);
            let options = RunOptions {
                command: request.command,
                digest: &digest,
                started_s,
                undo_dir: self.undo_dir.as_deref(),
                watch: Watch { interrupted, progress: &|_| {} },
                announce: &|id, journal| {
                    let text = format!("undo id {} (originals in {})", id.as_str(), journal.display());
                    context.borrow_mut().note(&text);
                },
                check: &|prepared| check(&planned, prepared),
            };
            undo_id = Some(apply(fs, lock, &changes, &options)?.id.as_str().to_owned());
        }
        Ok((planned, Carried { mode: "apply", digest, undo_id }))
    }
}

/// New files must have the very bytes that were planned.
pub fn check_written(plan: &Plan, prepared: &Prepared) -> Result<(), String> {
    check_bytes(plan, prepared).map_err(|error| error.to_string())
}

fn take_locks(fs: &RealFs, args: &MutateArgs, request: &Request) -> Result<Vec<BrokerLock<RealFs>>, CliError> {
    let trust = if args.broker_is_stopped { LockTrust::BrokerIsStopped } else { LockTrust::Required };
    let mut locks: Vec<BrokerLock<RealFs>> = Vec::new();
    for (log_dir, _) in &request.log_dirs {
        match BrokerLock::take(fs, log_dir, trust) {
            Ok(lock) => locks.push(lock),
            Err(error) => {
                for lock in locks {
                    // The first error is the one to tell.
                    let _ = lock.release(fs);
                }
                return Err(error.into());
            }
        }
    }
    Ok(locks)
}

fn digest(fs: &RealFs, request: &Request) -> Result<String, StoreError> {
    let mut digest = PlanDigest::new(request.command, &request.options, request.now_ms);
    for (log_dir, partitions) in &request.log_dirs {
        digest.add_place(fs, log_dir, &Place::LogDir)?;
        for partition in partitions.iter().filter_map(|name| EntryName::new(name.as_os_str())) {
            digest.add_place(fs, log_dir, &Place::Partition(partition))?;
        }
    }
    Ok(digest.finish())
}

/// Files of a log dir that an output holds besides its partitions.
fn log_dir_files() -> Vec<EntryName> {
    let checkpoints = CheckpointKind::ALL.into_iter().map(CheckpointKind::file_name);
    checkpoints.chain([".kafka_cleanshutdown", "meta.properties"]).filter_map(EntryName::new).collect()
}

fn write_beside(
    fs: &RealFs,
    target: &Path,
    request: &Request,
    plan: &Plan,
    check: &dyn Fn(&Prepared) -> Result<(), String>,
) -> Result<(), CliError> {
    let changes = changes_of(plan);
    let log_dirs = log_dirs_of(plan);
    let target = std::path::absolute(target)?;
    for (log_dir, partitions) in &request.log_dirs {
        let in_plan = changes.iter().find(|changes| changes.log_dir == *log_dir);
        let none = crate::store::Changes { log_dir: log_dir.clone(), transactions: Vec::new() };
        // Several log dirs become several directories, each named as its source.
        let own_target = match log_dir.file_name() {
            Some(name) if request.log_dirs.len() > 1 => target.join(name),
            _ => target.clone(),
        };
        if request.log_dirs.len() > 1 && log_dirs.len() > 1 && !target.exists() {
            return Err(CliError::usage("the output of several log dirs needs a directory that exists"));
        }
        let partitions: Vec<EntryName> =
            partitions.iter().filter_map(|name| EntryName::new(name.as_os_str())).collect();
        let options = OutputOptions {
            target: &own_target,
            partitions: &partitions,
            log_dir_files: &log_dir_files(),
            watch: Watch { interrupted: interruption(), progress: &|_| {} },
            check,
        };
        write_output(fs, in_plan.unwrap_or(&none), &options)?;
    }
    Ok(())
}

/// A sentence for what `store` says, and the status: what it found before touching anything is a refusal, the rest a failure.
impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        if error.is_interruption() {
            return Self::Interrupted;
        }
        let message = Message { text: error.to_string(), hint: hint_of(&error).map(str::to_owned) };
        if error.is_refusal() { Self::Refused(message) } else { Self::Failed(message) }
    }
}

fn hint_of(error: &StoreError) -> Option<&'static str> {
    if matches!(error.kind, StoreErrorKind::LeftUnfinished { .. }) {
        return Some("`segtool undo --unfinished LOGDIR` ends the run");
    }
    Some(match &error.cause().kind {
        StoreErrorKind::InUse { .. } | StoreErrorKind::OpenForWriting { .. } => "stop the broker first",
        StoreErrorKind::UntrustedLock { .. } => "if no broker runs, say so with --i-have-stopped-the-broker",
        StoreErrorKind::Unfinished { .. } => "`segtool undo --unfinished LOGDIR` ends it",
        StoreErrorKind::UndoDirectory { .. } => "give another directory with --undo-dir",
        StoreErrorKind::Leftover => "`segtool repair` resolves what is left of an interrupted swap or cleaning",
        StoreErrorKind::OutputNotEmpty => "give a directory that is empty or does not exist",
        StoreErrorKind::InsideLogDir { .. } => {
            "a broker fails to start over a directory in a log dir; name one elsewhere"
        }
        StoreErrorKind::NoSpace { .. } => "make room, or use --output on another file system",
        StoreErrorKind::Changed => {
            "plan again; for a run that stopped, `segtool undo --unfinished --keep-changed` ends it as it is"
        }
        StoreErrorKind::HardLinked { .. } => "give the file an inode of its own: copy it and rename the copy over it",
        StoreErrorKind::ForeignOwner { .. } => "chown the file, if it belongs there",
        StoreErrorKind::ReadOnly { .. } => "chmod u+w the file, if it may be changed",
        StoreErrorKind::Frozen => "chattr -ia the file, if it may be changed",
        StoreErrorKind::WrongKind { expected: "a directory", found: "a symbolic link" } => {
            "name the real directory; segtool writes through no link"
        }
        StoreErrorKind::WrongKind { .. } => "move it out of the log dir, or put a file in its place",
        StoreErrorKind::NoSuchRun { .. } => "`segtool undo LOGDIR` lists the runs",
        _ => return None,
    })
}
