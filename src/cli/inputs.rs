//! The PATHs of a command line: what each is, and which of its partitions were asked for.

use std::path::PathBuf;

use clap::Args;

use super::error::CliError;
use crate::logdir::names::DirName;
use crate::logdir::{Input, LogDir, LogDirMember, PartitionDir, TopicPartition};

/// The paths of a command that reads data.
#[derive(Clone, Debug, Args)]
pub struct PathArgs {
    /// Log dirs, partition directories or files
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment here would become the help of the command")]
    pub selection: SelectionArgs,
}

/// Which partitions of a log dir are meant.
#[derive(Clone, Default, Debug, Args)]
pub struct SelectionArgs {
    /// Only partitions whose name matches, such as orders-*; repeatable
    #[arg(long = "topic-partition", value_name = "GLOB")]
    pub topic_partition: Vec<String>,
}

impl SelectionArgs {
    /// Whether a partition is meant.
    pub fn includes(&self, topic_partition: &TopicPartition) -> bool {
        let name = topic_partition.dir_name();
        let name = name.as_encoded_bytes();
        self.topic_partition.is_empty() || self.topic_partition.iter().any(|glob| matches_glob(glob.as_bytes(), name))
    }

    /// The directories of a log dir that hold a partition that is meant, whatever their state; the metadata log too.
    pub fn members<'d>(&'d self, log_dir: &'d LogDir) -> impl Iterator<Item = &'d LogDirMember> {
        log_dir.directories().iter().filter(|member| {
            member.name.topic_partition().is_some_and(|topic_partition| self.includes(topic_partition))
        })
    }
}

impl PathArgs {
    /// Looks at every path. Errors: one that is not there, or is neither directory nor regular file.
    pub fn open(&self) -> Result<Vec<Input>, CliError> {
        self.paths.iter().map(|path| Input::open(path).map_err(CliError::from)).collect()
    }

    /// The partition directories that are meant, in the order of the paths, topics and partitions, opened one at a time. Those
    /// being deleted, moved or stray are left out unless they were named themselves.
    pub fn live_partitions(&self, input: &Input) -> Result<Vec<PartitionDir>, CliError> {
        match input {
            Input::File(_) => Ok(Vec::new()),
            Input::Partition(partition) => Ok(vec![partition.clone()]),
            Input::LogDir(log_dir) => self
                .selection
                .members(log_dir)
                .filter(|member| matches!(member.name, DirName::Partition(_) | DirName::ClusterMetadata(_)))
                .map(|member| log_dir.open_partition(&member.entry.name).map_err(CliError::from))
                .collect(),
        }
    }
}

/// Whether `*` (any run of characters) and `?` (any one byte) of `glob` can be filled so that it reads as `name`.
fn matches_glob(glob: &[u8], name: &[u8]) -> bool {
    let (mut glob_at, mut name_at) = (0usize, 0usize);
    let mut star: Option<(usize, usize)> = None;
    while name_at < name.len() {
        match (glob.get(glob_at), name.get(name_at)) {
            (Some(b'*'), _) => {
                star = Some((glob_at, name_at));
                glob_at += 1;
            }
            (Some(b'?'), _) => (glob_at, name_at) = (glob_at + 1, name_at + 1),
            (Some(wanted), Some(byte)) if wanted == byte => (glob_at, name_at) = (glob_at + 1, name_at + 1),
            _ => {
                // The last star takes one byte more.
                let Some((star_at, taken)) = star else { return false };
                star = Some((star_at, taken + 1));
                (glob_at, name_at) = (star_at + 1, taken + 1);
            }
        }
    }
    glob.iter().skip(glob_at).all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::matches_glob;

    #[test]
    fn stars_and_question_marks_match_as_in_a_shell() {
        for (glob, name, expected) in [
            ("orders-*", "orders-0", true),
            ("orders-*", "orders", false),
            ("orders-*", "reorders-1", false),
            ("*-0", "a-b-0", true),
            ("*-?", "a-10", false),
            ("*a*b*c", "xxaxxbxxc", true),
            ("*a*b*c", "xxaxxcxxb", false),
            ("", "", true),
            ("*", "", true),
            ("a.b", "axb", false),
        ] {
            assert_eq!(matches_glob(glob.as_bytes(), name.as_bytes()), expected, "{glob} {name}");
        }
    }
}
