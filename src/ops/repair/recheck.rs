//! The result read once more, as it was written: it must have the bytes, the records and the soundness that the plan has told of.

use super::options::{RepairError, RepairOptions};
use super::report::{PartitionRepair, RepairPlan};
use super::source::{LogCounts, count_records};
use super::start::Checks;
use crate::logdir::{IoMode, ReadError, SegmentFile};
use crate::ops::plan::PartitionPlan;
use crate::ops::preflight::Outcome;
use crate::ops::written::{WrittenError, check_bytes, image_of, is_about};
use crate::ops::{Finding, Progress, Severity};
use crate::store::Prepared;

/// What is wrong with a result.
#[derive(Debug, thiserror::Error)]
pub enum RecheckError {
    /// It has not the bytes that were planned.
    #[error(transparent)]
    Written(#[from] WrittenError),
    /// Bytes are missing, or too many.
    #[error("{found} bytes of log files were kept and put aside where {expected} were read")]
    Bytes {
        /// Before.
        expected: u64,
        /// Afterwards.
        found: u64,
    },
    /// Records are missing, or too many.
    #[error("the result has {found} records where {expected} were to be kept")]
    Records {
        /// By the plan.
        expected: u64,
        /// What is there.
        found: u64,
    },
    /// Something is wrong with it that the plan does not know of.
    #[error("{} in the result: {}", .0.location.path.display(), .0.id.meaning())]
    Finding(Box<Finding>),
    /// The next start would treat it in another way than was predicted.
    #[error("the next start of a broker does not do what was predicted: {}", .0.name())]
    Start(Outcome),
    /// The user asked to stop.
    #[error("interrupted")]
    Cancelled,
}

impl From<RepairError> for RecheckError {
    fn from(error: RepairError) -> Self {
        match error {
            RepairError::Read(error) => error.into(),
            RepairError::StartFails { path, .. } => WrittenError::Missing { path }.into(),
            RepairError::Cancelled => Self::Cancelled,
        }
    }
}

impl From<ReadError> for RecheckError {
    fn from(error: ReadError) -> Self {
        Self::Written(error.into())
    }
}

/// Reads what was written for one directory, before anything takes its place.
pub fn recheck(
    planned: &RepairPlan,
    prepared: &Prepared,
    options: &RepairOptions,
    pool: &rayon::ThreadPool,
    progress: &dyn Progress,
) -> Result<(), RecheckError> {
    check_bytes(&planned.plan, prepared)?;
    let mut of_directory = planned.plan.partitions.iter().zip(&planned.repairs);
    let Some((plan, repair)) = of_directory.find(|(plan, _)| is_about(prepared, plan)) else { return Ok(()) };
    let Some(around) = &repair.around else { return Ok(()) };
    let image = image_of(plan, prepared)?;
    check_accounting(plan, repair, prepared, count_records(&image, options.start.io, progress)?)?;
    let checks = Checks { options, pool, progress };
    let is_known = |finding: &Finding| {
        let place = |finding: &Finding| (finding.id, finding.location.path.clone(), finding.location.position);
        planned.remaining.iter().any(|known| place(known) == place(finding))
    };
    let mut found = checks.verify(&image, around)?.into_iter();
    if let Some(finding) = found.find(|finding| finding.severity >= Severity::Error && !is_known(finding)) {
        return Err(RecheckError::Finding(Box::new(finding)));
    }
    let start = checks.predict(&image, around)?;
    // What is no file is in the plan and not in an output, and a broker may stumble over it.
    if start == repair.start || start.is_good() { Ok(()) } else { Err(RecheckError::Start(start.outcome)) }
}

/// Bytes and records that go in come out, or were put aside.
fn check_accounting(
    plan: &PartitionPlan,
    repair: &PartitionRepair,
    prepared: &Prepared,
    kept: LogCounts,
) -> Result<(), RecheckError> {
    let mut aside = 0u64;
    for (_, path) in &prepared.aside {
        aside = aside.saturating_add(SegmentFile::open(path, IoMode::Pread)?.size());
    }
    let accounting = &plan.accounting;
    let out = repair.set_aside.iter().map(|range| range.size_bytes).fold(kept.bytes, u64::saturating_add);
    let bytes =
        [(accounting.bytes_kept, kept.bytes), (accounting.bytes_quarantined, aside), (accounting.bytes_in, out)];
    if let Some((expected, found)) = bytes.into_iter().find(|(expected, found)| expected != found) {
        return Err(RecheckError::Bytes { expected, found });
    }
    if kept.records != accounting.records_kept {
        return Err(RecheckError::Records { expected: accounting.records_kept, found: kept.records });
    }
    Ok(())
}
