//! Everything that still verifies, wherever it lies.
//!
//! The result is made, verified, and what verification still refuses is taken out or made anew, until nothing is refused; then a
//! broker's start over it is predicted.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::accounting::{account, note_reasons, records_lost};
use super::arrange::{Segment, arrange, build, log_end};
use super::checkpoints::{LogBounds, Stored, fitted, key_of};
use super::companions::Companions;
use super::like_broker::first_base;
use super::options::{Mode, RepairError, RepairOptions};
use super::report::{PartitionRepair, RepairPlan};
use super::select::{Selection, select};
use super::source::{Contents, Excluded, Source, SourceReader, list};
use super::start::{Checks, Surroundings, shutdown_of};
use super::topic_id::{heal, known_ids};
use crate::format::{Offset, Position, Uuid};
use crate::logdir::names::{CheckpointKind, DirName, FileKind, FileName, FileSuffix};
use crate::logdir::{Input, LogDir};
use crate::ops::broker::Rules;
use crate::ops::plan::{PartitionPlan, Plan, PlanInput};
use crate::ops::verify;
use crate::ops::{Finding, FindingId, PartitionImage, Progress, RecordReader, Severity};

/// How often a result is made anew, before what is still refused is told instead.
const MOST_ROUNDS: usize = 16;

/// Plans a salvage.
pub(super) fn plan_salvage(
    inputs: &[PlanInput],
    options: &RepairOptions,
    pool: &rayon::ThreadPool,
    progress: &dyn Progress,
) -> Result<RepairPlan, RepairError> {
    let rules = Rules::of(options.start.version);
    let mut planned = RepairPlan {
        mode: Mode::Salvage,
        plan: Plan {
            version: options.start.version,
            is_recorded: rules.is_recorded,
            partitions: Vec::new(),
            checkpoints: Vec::new(),
            findings: Vec::new(),
            is_complete: true,
        },
        repairs: Vec::new(),
        remaining: Vec::new(),
    };
    for input in inputs {
        let topic_ids = known_ids(&input.log_dir, &options.start.topic_ids)?;
        let salvage = Salvage { log_dir: &input.log_dir, options, rules: &rules, pool, progress, topic_ids };
        salvage.run(&input.partitions, &mut planned)?;
    }
    Ok(planned)
}

struct Salvage<'a> {
    log_dir: &'a LogDir,
    options: &'a RepairOptions,
    rules: &'a Rules,
    pool: &'a rayon::ThreadPool,
    progress: &'a dyn Progress,
    topic_ids: BTreeMap<String, Uuid>,
}

/// A partition's result.
struct Salvaged {
    plan: PartitionPlan,
    repair: PartitionRepair,
    bounds: LogBounds,
    remaining: Vec<Finding>,
}

impl Salvage<'_> {
    fn run(&self, partitions: &[OsString], planned: &mut RepairPlan) -> Result<(), RepairError> {
        let found = self.verify()?;
        let stored = |kind| Stored::read(self.log_dir, kind);
        let (log_starts, recovery_points, cleaned) = (
            stored(CheckpointKind::LogStartOffset)?,
            stored(CheckpointKind::RecoveryPoint)?,
            stored(CheckpointKind::CleanerOffset)?,
        );
        let mut logs = BTreeMap::new();
        for dir_name in partitions {
            let partition = self.log_dir.open_partition(dir_name)?;
            let image = PartitionImage::of(&partition);
            let key = key_of(image.topic_partition());
            let around = Surroundings {
                name: partition.kind().clone(),
                shutdown: shutdown_of(self.log_dir, self.options),
                log_start: log_starts.entries.get(&key).copied(),
                recovery_point: recovery_points.entries.get(&key).copied(),
                cleaned: cleaned.entries.get(&key).copied(),
            };
            let of_partition: Vec<&Finding> =
                found.iter().filter(|finding| finding.location.path.starts_with(Path::new(dir_name))).collect();
            let salvaged = self.salvage(image, &around)?;
            logs.insert(key, salvaged.bounds);
            planned.plan.findings.extend(of_partition.into_iter().cloned());
            planned.plan.partitions.push(salvaged.plan);
            planned.repairs.push(salvaged.repair);
            planned.remaining.extend(salvaged.remaining);
        }
        let of_root: Vec<&Finding> =
            found.iter().filter(|finding| finding.location.topic_partition.is_none()).collect();
        planned.remaining.extend(of_root.iter().filter(|finding| stays(finding.id)).map(|finding| (*finding).clone()));
        planned.plan.findings.extend(of_root.into_iter().cloned());
        planned.plan.checkpoints.extend(fitted(self.log_dir, &logs)?);
        Ok(())
    }

    fn checks(&self) -> Checks<'_> {
        Checks { options: self.options, pool: self.pool, progress: self.progress }
    }

    /// What is wrong with the log dir as it is.
    fn verify(&self) -> Result<Vec<Finding>, RepairError> {
        let inputs = [Input::LogDir(self.log_dir.clone())];
        let report = verify::inspect(&inputs, &|_| true, &self.checks().verify_options(), self.pool, self.progress)?;
        Ok(report.findings)
    }

    fn salvage(&self, before: PartitionImage, around: &Surroundings) -> Result<Salvaged, RepairError> {
        let sources = list(&before);
        let mut reader = SourceReader {
            image: &before,
            sources: &sources,
            io: self.options.start.io,
            progress: self.progress,
            records: RecordReader::default(),
        };
        let mut excluded = Excluded::new();
        let mut contents =
            (0..sources.len()).map(|index| reader.read(index, &excluded)).collect::<Result<Vec<Contents>, _>>()?;
        let mut rounds = 0;
        loop {
            if self.progress.is_cancelled() {
                return Err(RepairError::Cancelled);
            }
            let log_start = around.log_start.unwrap_or(Offset(0));
            let selection = select(&contents, &mut reader, self.options.deleted, log_start)?;
            let result = self.make(&before, &sources, selection, around)?;
            rounds += 1;
            let refused: Vec<(usize, Position, FindingId)> =
                result.remaining.iter().filter_map(|finding| refused_batch(finding, &result.segments)).collect();
            let mut touched = BTreeSet::new();
            for (source, position, reason) in refused {
                if excluded.insert((source, position), reason).is_none() {
                    touched.insert(source);
                }
            }
            if touched.is_empty() || rounds >= MOST_ROUNDS {
                return self.finish(before, &sources, &contents, result);
            }
            for source in touched {
                if let Some(place) = contents.get_mut(source) {
                    *place = reader.read(source, &excluded)?;
                }
            }
        }
    }

    /// The directory that a selection makes, with its companions in order as far as they can be.
    fn make(
        &self,
        before: &PartitionImage,
        sources: &[Source],
        selection: Selection,
        around: &Surroundings,
    ) -> Result<Made, RepairError> {
        let segments = arrange(&selection.kept, sources);
        let (mut image, fresh) = build(before, sources, &segments);
        let end = log_end(&segments);
        let first = first_base(&image).unwrap_or(Offset(0));
        let bounds = LogBounds {
            first_base: first,
            log_start: around.log_start.filter(|start| *start <= end).unwrap_or(first).max(first),
            log_end: end,
        };
        remove_snapshots_beyond(&mut image, end);
        if !matches!(around.name, DirName::ClusterMetadata(_)) {
            heal(&mut image, &self.topic_ids, self.options.start.now)?;
        }
        let mut companions: Option<Companions> = None;
        let make_companions = |image: &PartitionImage| {
            let start = around.log_start.filter(|start| *start <= end).unwrap_or(Offset(0));
            Companions::of(image, &selection.kept, start, self.options, self.rules, self.progress)
        };
        if !fresh.is_empty() {
            let made = make_companions(&image)?;
            made.index(&mut image, &segments, &fresh);
            companions = Some(made);
        }
        let around = around.fitted(&bounds);
        let mut remaining = self.checks().verify(&image, &around)?;
        for _ in 0..3 {
            let wrong: BTreeSet<OsString> = remaining
                .iter()
                .filter(|finding| finding.severity >= Severity::Warning)
                .filter_map(|finding| finding.location.path.file_name())
                .filter(|name| is_companion(name))
                .map(OsStr::to_os_string)
                .collect();
            if wrong.is_empty() {
                break;
            }
            let made = match companions.take() {
                Some(made) => made,
                None => make_companions(&image)?,
            };
            let mut changed = false;
            for name in &wrong {
                changed |= made.replace(&mut image, name);
            }
            companions = Some(made);
            if !changed {
                break;
            }
            remaining = self.checks().verify(&image, &around)?;
        }
        Ok(Made { selection, segments, image, bounds, around, remaining })
    }

    fn finish(
        &self,
        before: PartitionImage,
        sources: &[Source],
        contents: &[Contents],
        made: Made,
    ) -> Result<Salvaged, RepairError> {
        let start = self.checks().predict(&made.image, &made.around)?;
        let mut plan = PartitionPlan { after: made.image, ..PartitionPlan::unchanged(before) };
        let set_aside = account(&mut plan, sources, contents, &made.selection, &made.segments);
        note_reasons(&mut plan, &set_aside);
        let repair = PartitionRepair {
            log_start: made.bounds.log_start,
            log_end: made.bounds.log_end,
            records_lost: records_lost(&set_aside),
            set_aside,
            start,
            around: Some(made.around),
        };
        let remaining = made.remaining.into_iter().filter(|finding| finding.severity >= Severity::Warning).collect();
        Ok(Salvaged { plan, repair, bounds: made.bounds, remaining })
    }
}

/// A result, and what is wrong with it.
struct Made {
    selection: Selection,
    segments: Vec<Segment>,
    image: PartitionImage,
    bounds: LogBounds,
    around: Surroundings,
    remaining: Vec<Finding>,
}

/// Whether a finding about a log dir itself is still true afterwards.
fn stays(id: FindingId) -> bool {
    !matches!(
        id,
        FindingId::CheckpointMalformed
            | FindingId::CheckpointBeyondLogEnd
            | FindingId::LogStartBeyondLogEnd
            | FindingId::CleanMarkerContradicted
    )
}

fn is_companion(name: &OsStr) -> bool {
    match FileName::parse(name) {
        FileName::Segment { kind, suffix: FileSuffix::None, .. } => kind.is_index(),
        FileName::Snapshot { suffix: FileSuffix::None, .. } | FileName::LeaderEpochCheckpoint => true,
        _ => false,
    }
}

/// A batch of the result that verification refuses, by its place in its source.
fn refused_batch(finding: &Finding, segments: &[Segment]) -> Option<(usize, Position, FindingId)> {
    if finding.severity < Severity::Error {
        return None;
    }
    let name = finding.location.path.file_name()?;
    let segment = segments.iter().find(|segment| segment.name(FileKind::Log) == name)?;
    let position = segment.origin_of(finding.location.position?)?;
    Some((segment.source, position, finding.id))
}

fn remove_snapshots_beyond(image: &mut PartitionImage, log_end: Offset) {
    for name in image.names() {
        if let FileName::Snapshot { offset, suffix: FileSuffix::None } = FileName::parse(&name)
            && offset > log_end
        {
            image.remove(&name);
        }
    }
}
