//! The partitions that a command may change.

use std::ffi::OsString;

use super::error::CliError;
use super::inputs::PathArgs;
use crate::logdir::names::DirName;
use crate::logdir::{Input, LogDir};
use crate::ops::plan::PlanInput;

/// Whether the metadata log of a `KRaft` node counts as a partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MetadataLog {
    /// It does.
    Included,
    /// It does not.
    LeftOut,
}

impl MetadataLog {
    fn includes(self, name: &DirName) -> bool {
        match name {
            DirName::Partition(_) => true,
            DirName::ClusterMetadata(_) => self == Self::Included,
            _ => false,
        }
    }
}

/// The live partitions that are meant, log dir by log dir. Those being deleted, moved or stray are never touched.
pub(super) fn plan_inputs(paths: &PathArgs, metadata_log: MetadataLog) -> Result<Vec<PlanInput>, CliError> {
    let mut inputs: Vec<PlanInput> = Vec::new();
    for input in paths.open()? {
        match input {
            Input::LogDir(log_dir) => {
                let members = paths.selection.members(&log_dir);
                let live = members.filter(|member| metadata_log.includes(&member.name));
                let partitions: Vec<OsString> = live.map(|member| member.entry.name.clone()).collect();
                add(&mut inputs, log_dir, partitions);
            }
            Input::Partition(partition) => {
                let name = partition.dir_name().to_os_string();
                if !metadata_log.includes(&DirName::parse(&name)) {
                    let text = format!("{}: not a partition that this command may change", partition.path().display());
                    return Err(CliError::usage(text));
                }
                add(&mut inputs, LogDir::open(partition.log_dir())?, vec![name]);
            }
            Input::File(file) => {
                let text = format!("{}: a file by itself; name its log dir or partition", file.path.display());
                return Err(CliError::usage(text));
            }
        }
    }
    Ok(inputs)
}

fn add(inputs: &mut Vec<PlanInput>, log_dir: LogDir, partitions: Vec<OsString>) {
    match inputs.iter_mut().find(|input| input.log_dir.path() == log_dir.path()) {
        Some(known) => {
            let new: Vec<_> = partitions.into_iter().filter(|name| !known.partitions.contains(name)).collect();
            known.partitions.extend(new);
        }
        None => inputs.push(PlanInput { log_dir, partitions }),
    }
}
