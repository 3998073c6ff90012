//! A segment of a partition whose log is looked at by several workers at once ([`super::stretch`]).

use super::context::{Place, SegmentContext};
use super::input::SegmentInput;
use super::options::Options;
use super::scan::{Companions, SegmentDone, fold_of, open_log, unopened};
use super::segment::ProducerBatch;
use super::stretch::{Stretch, StretchedLog};
use crate::logdir::{ReadError, SegmentFile};

/// A large segment that is being put together.
#[derive(Debug)]
pub(super) struct LargeSegment {
    segment: SegmentInput,
    companions: Companions,
    file: Result<SegmentFile, ReadError>,
    log: StretchedLog,
}

impl LargeSegment {
    pub(super) fn new(segment: SegmentInput, mut companions: Companions, options: &Options) -> Self {
        let file = open_log(&segment, options);
        let size_bytes = file.as_ref().map_or(0, SegmentFile::size);
        let fold = fold_of(&segment, &mut companions, size_bytes);
        let log = StretchedLog::new(fold, segment.partition.numbering());
        Self { segment, companions, file, log }
    }

    pub(super) fn place(&self) -> &Place {
        self.log.fold.place()
    }

    pub(super) fn context(&self) -> &SegmentContext {
        self.log.fold.context()
    }

    /// Takes a stretch in, or drops it where it does not follow on.
    pub(super) fn stretch(&mut self, stretch: Stretch, options: &Options) -> Vec<ProducerBatch> {
        match &self.file {
            Ok(file) => self.log.take(file, stretch, options),
            Err(_) => Vec::new(),
        }
    }

    /// Walks what is left.
    pub(super) fn finish(self, options: &Options) -> (Vec<ProducerBatch>, SegmentDone) {
        let Self { segment, companions, file, mut log } = self;
        let (producers, summary) = match &file {
            Ok(file) => (log.walk_to(file, file.end(), options), log.fold.finish(file)),
            Err(error) => (Vec::new(), unopened(&segment, segment.partition.image.size_of(&segment.name), error)),
        };
        (producers, SegmentDone { segment, summary, companions })
    }
}
