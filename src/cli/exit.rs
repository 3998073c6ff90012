//! The documented exit statuses, and what holds where several are true at once.

use std::process::ExitCode;

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ExitStatus {
    /// 0: the work was done and nothing at or above `--fail-on` remains.
    Done,
    /// 1: done, but findings remain, nothing was found, or there is work that was not asked for.
    Findings,
    /// 2: it could not be done, or not completely.
    Incomplete,
    /// 3: refused, nothing touched.
    Refused,
    /// 130: interrupted; files are in the old or the new state.
    Interrupted,
}

impl ExitStatus {
    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Findings => 1,
            Self::Incomplete => 2,
            Self::Refused => 3,
            Self::Interrupted => 130,
        }
    }

    fn rank(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Findings => 1,
            Self::Refused => 2,
            Self::Incomplete => 3,
            Self::Interrupted => 4,
        }
    }

    /// The status of two truths at once: an interruption wins, then 2 over 3 over 1.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        if other.rank() > self.rank() { other } else { self }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status.code())
    }
}

#[cfg(test)]
mod tests {
    use super::ExitStatus::{Done, Findings, Incomplete, Interrupted, Refused};

    #[test]
    fn incomplete_wins_over_refused_over_findings_over_done_in_either_order() {
        let ranked = [Done, Findings, Refused, Incomplete, Interrupted];
        for (i, &milder) in ranked.iter().enumerate() {
            for &worse in &ranked[i..] {
                assert_eq!((milder.merge(worse), worse.merge(milder)), (worse, worse));
            }
        }
    }
}
