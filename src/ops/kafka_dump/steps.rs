//! The offsets of a log that do not follow the one before, gathered run by run and put together in order.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::event::{MOST_STEPS, Report, of_path};
use crate::format::Offset;

/// Those of a run of batches.
#[derive(Debug, Default)]
pub(super) struct RunSteps {
    /// The first and the last offset, where there is one.
    ends: Option<(i64, i64)>,
    steps: Vec<(i64, i64)>,
    left_out: u64,
}

impl RunSteps {
    /// The offset of the next record.
    pub(super) fn see(&mut self, offset: Offset) {
        let offset = offset.0;
        let Some((_, last)) = &mut self.ends else {
            self.ends = Some((offset, offset));
            return;
        };
        if offset != last.wrapping_add(1) {
            if self.steps.len() < MOST_STEPS {
                self.steps.push((*last, offset));
            } else {
                self.left_out = self.left_out.saturating_add(1);
            }
        }
        *last = offset;
    }
}

/// Those of a file, in the report.
#[derive(Debug)]
pub(super) struct FileSteps<'r> {
    last_offset: i64,
    path: &'r Path,
    list: &'r mut Vec<(PathBuf, BTreeMap<i64, i64>)>,
    left_out: &'r mut u64,
}

impl<'r> FileSteps<'r> {
    /// None so far. The tool starts to count at -1.
    pub(super) fn new(path: &'r Path, report: &'r mut Report) -> Self {
        Self { last_offset: -1, path, list: &mut report.offset_steps, left_out: &mut report.steps_left_out }
    }

    /// Adds those of the next run.
    pub(super) fn follow(&mut self, run: &RunSteps) {
        let Some((first, last)) = run.ends else { return };
        if first != self.last_offset.wrapping_add(1) {
            self.add(self.last_offset, first);
        }
        for (from, to) in &run.steps {
            self.add(*from, *to);
        }
        *self.left_out = self.left_out.saturating_add(run.left_out);
        self.last_offset = last;
    }

    fn add(&mut self, from: i64, to: i64) {
        let Some(steps) = of_path(self.list, self.path) else { return };
        if steps.len() < MOST_STEPS {
            steps.insert(from, to);
        } else {
            *self.left_out = self.left_out.saturating_add(1);
        }
    }
}
