//! What a log dir says of a partition, and with it the checks that a result has to pass: verification and the next start.

use std::collections::BTreeMap;

use super::checkpoints::{LogBounds, fit};
use super::options::{RepairError, RepairOptions};
use super::report::StartAfter;
use crate::format::Offset;
use crate::logdir::LogDir;
use crate::logdir::names::{CheckpointKind, DirName};
use crate::ops::broker::Rules;
use crate::ops::broker::load::Shutdown;
use crate::ops::preflight::{self, Compaction, PartitionStart, predict_metadata_log, predict_partition};
use crate::ops::verify::{self, PartitionInput};
use crate::ops::{Finding, PartitionImage, Progress, Severity};

/// What the log dir says of a partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Surroundings {
    pub(super) name: DirName,
    pub(super) shutdown: Shutdown,
    pub(super) log_start: Option<Offset>,
    pub(super) recovery_point: Option<Offset>,
    pub(super) cleaned: Option<Offset>,
}

/// What the checks of a result need besides it.
pub(super) struct Checks<'a> {
    pub(super) options: &'a RepairOptions,
    pub(super) pool: &'a rayon::ThreadPool,
    pub(super) progress: &'a dyn Progress,
}

impl Surroundings {
    /// The same, as the checkpoints will say it of the repaired log.
    pub(super) fn fitted(&self, bounds: &LogBounds) -> Self {
        let fit_to = |kind, offset: Option<Offset>| offset.and_then(|offset| fit(kind, offset, bounds));
        Self {
            log_start: fit_to(CheckpointKind::LogStartOffset, self.log_start),
            recovery_point: fit_to(CheckpointKind::RecoveryPoint, self.recovery_point),
            cleaned: fit_to(CheckpointKind::CleanerOffset, self.cleaned),
            ..self.clone()
        }
    }
}

/// How the broker before stopped, as the one that starts believes.
pub(super) fn shutdown_of(log_dir: &LogDir, options: &RepairOptions) -> Shutdown {
    let of_marker = if log_dir.has_clean_marker() { Shutdown::Clean } else { Shutdown::Unclean };
    options.start.assume.unwrap_or(of_marker)
}

impl Checks<'_> {
    pub(super) fn verify_options(&self) -> verify::Options {
        verify::Options { io: self.options.start.io, now: Some(self.options.start.now), ..verify::Options::default() }
    }

    /// What is wrong with a partition as it would be.
    pub(super) fn verify(&self, image: &PartitionImage, around: &Surroundings) -> Result<Vec<Finding>, RepairError> {
        let input = PartitionInput {
            image: image.clone(),
            directory: PartitionInput::directory_of(image.dir_name()),
            shutdown: match around.shutdown {
                Shutdown::Clean => verify::Shutdown::Clean,
                Shutdown::Unclean => verify::Shutdown::Unclean,
            },
            is_cleaned: around.cleaned.is_some(),
            log_start_offset: around.log_start,
            known_end_offset: None,
        };
        Ok(verify::inspect_images(vec![input], &self.verify_options(), self.pool, self.progress)?.findings)
    }

    /// The same without what costs nothing.
    pub(super) fn unsound(&self, image: &PartitionImage, around: &Surroundings) -> Result<Vec<Finding>, RepairError> {
        let mut findings = self.verify(image, around)?;
        findings.retain(|finding| finding.severity >= Severity::Warning);
        Ok(findings)
    }

    /// The next start of a broker over a partition as it would be.
    pub(super) fn predict(&self, image: &PartitionImage, around: &Surroundings) -> Result<StartAfter, RepairError> {
        let start = PartitionStart {
            image: image.clone(),
            name: around.name.clone(),
            shutdown: around.shutdown,
            recovery_point: around.recovery_point.unwrap_or(Offset(0)),
            log_start: around.log_start.unwrap_or(Offset(0)),
            cleaned: match around.cleaned {
                Some(offset) if offset > Offset(0) => Compaction::On,
                _ => Compaction::Off,
            },
        };
        // Every topic whose id is known has it by now, and of the others the cluster may know as well.
        let settings = preflight::Options { topic_ids: BTreeMap::new(), ..self.options.start.clone() };
        let rules = Rules::of(settings.version);
        let (report, _) = match start.name {
            DirName::ClusterMetadata(_) => predict_metadata_log(&start, &settings, &rules, self.progress)?,
            _ => predict_partition(&start, &settings, &rules, self.progress)?,
        };
        Ok(StartAfter {
            outcome: report.outcome,
            truncated_bytes: report.truncated_bytes,
            deleted_segments: u64::try_from(report.deleted_segments.len()).unwrap_or(u64::MAX),
            records_lost: report.records_lost,
            reasons: report.reasons,
        })
    }
}
