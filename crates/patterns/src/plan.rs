//! One run of a pattern, with its parameters checked.

use crate::about::{PatternAlgorithm, PatternText};
use crate::error::PatternError;
use crate::laps::LapReduction;

/// Presence of payload bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadPresence {
    /// Payload is written before a repetition and compared after it, if this does not disturb the measurement.
    Real,
    /// Payload has only a size, for large studies in virtual time. Patterns on the bare fabric always have real payload, because
    /// their ranks read it.
    Phantom,
}

/// A pattern to run, with its parameters.
#[derive(Debug, Clone)]
pub struct PatternPlan {
    /// The pattern, from the registry.
    pub about: &'static PatternText,
    /// Number of ranks that take part, which is the number of ranks of the fabric.
    pub ranks: usize,
    /// Algorithm of the pattern.
    pub algorithm: PatternAlgorithm,
    /// Payload of one message, or of one rank's block, in bytes.
    pub bytes: usize,
    /// Number of ranks that send to one rank.
    pub fan_in: usize,
    /// Number of first repetitions, which are not measured.
    pub warm_up: usize,
    /// Number of measured repetitions: at least 1.
    pub repeat: usize,
    /// True if all ranks begin each repetition at the same instant; else repetitions follow one another.
    pub isolated: bool,
    /// Presence of payload bytes.
    pub payload: PayloadPresence,
}

impl PatternPlan {
    /// Chooses an algorithm by name. Errors: [`PatternError::Refused`] lists all algorithms.
    pub fn algorithm(mut self, name: &str) -> Result<PatternPlan, PatternError> {
        self.algorithm = self.about.algorithm(name).map_err(PatternError::Refused)?;
        Ok(self)
    }

    /// Checks that the parameters fit together. Errors: [`PatternError::Refused`].
    pub fn check(&self) -> Result<(), PatternError> {
        let name = self.about.name;
        let refuse = |why: String| Err(PatternError::Refused(why));
        if self.ranks < self.about.least_ranks.max(1) {
            let (ranks, least) = (self.ranks, self.about.least_ranks.max(1));
            let s = if ranks == 1 { "" } else { "s" };
            return refuse(format!("{ranks} rank{s}: {name} needs at least {least}"));
        }
        if self.repeat == 0 {
            return refuse("0 repetitions: at least 1 is measured".to_owned());
        }
        if let Some((least, unit)) = self.about.payload {
            let bytes = self.bytes;
            if bytes < least {
                return refuse(format!("{bytes} bytes: {name} carries at least {least}"));
            }
            if !bytes.is_multiple_of(unit) {
                return refuse(format!("{bytes} bytes: {name} needs a multiple of {unit}"));
            }
        }
        if self.about.fans_in && !(1..self.ranks).contains(&self.fan_in) {
            let (fan_in, ranks, most) = (self.fan_in, self.ranks, self.ranks - 1);
            return refuse(format!(
                "a fan-in of {fan_in}: with {ranks} ranks it is 1 to {most}, as one receives"
            ));
        }
        Ok(())
    }

    /// Returns true if all ranks begin each repetition at the same instant. This is always true for patterns that are measured from
    /// a common start, and never for patterns between two ranks.
    pub fn is_isolated(&self) -> bool {
        match self.about.measured {
            LapReduction::Mean => self.isolated,
            LapReduction::Span => true,
            LapReduction::Half | LapReduction::Rate { .. } => false,
        }
    }

    /// Returns the number of all repetitions. If repetitions follow one another, a further repetition follows the measured
    /// repetitions, so that the last measured repetition overlaps its successor as all others do.
    pub(crate) fn laps(&self) -> usize {
        self.warm_up + self.repeat + usize::from(!self.is_isolated())
    }

    /// Returns true if repetition `lap` is measured. Repetitions to warm up are counted, too.
    pub(crate) fn measures(&self, lap: usize) -> bool {
        (self.warm_up..self.warm_up + self.repeat).contains(&lap)
    }

    /// Returns true if data are written before repetition `lap` and compared after it. Between measured repetitions that follow one
    /// another this is not done, because it takes time.
    pub(crate) fn compares(&self, lap: usize) -> bool {
        self.is_isolated() || !self.measures(lap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(plan: Result<PatternPlan, PatternError>) -> String {
        match plan.and_then(|plan| plan.check()) {
            Err(PatternError::Refused(why)) => why,
            other => panic!("not refused: {other:?}"),
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_what_does() {
        let known = refusal(PatternPlan::new("barier", 2));
        assert!(known.contains("\"barier\"") && known.contains("barrier, allreduce"), "{known}");
        let barrier = || PatternPlan::new("barrier", 4);
        let known = refusal(barrier().and_then(|p| p.algorithm("MPI-XX")));
        assert!(known.starts_with("no algorithm \"MPI-XX\" for barrier; known: auto, "), "{known}");
        assert!(known.contains("MPI-PE, "), "{known}");
        assert!(barrier().and_then(|p| p.algorithm("mpi-ds")).is_ok());
        assert_eq!(refusal(PatternPlan::new("barrier", 0)), "0 ranks: barrier needs at least 1");
        assert_eq!(refusal(PatternPlan::new("ping-pong", 1)), "1 rank: ping-pong needs at least 2");
        let odd = PatternPlan::new("allreduce", 4).map(|p| PatternPlan { bytes: 7, ..p });
        assert_eq!(refusal(odd), "7 bytes: allreduce needs a multiple of 4");
        for fan_in in [0, 4] {
            let wide = PatternPlan::new("fan-in", 4).map(|p| PatternPlan { fan_in, ..p });
            let text = format!("a fan-in of {fan_in}: with 4 ranks it is 1 to 3, as one receives");
            assert_eq!(refusal(wide), text);
        }
        let none = barrier().map(|p| PatternPlan { repeat: 0, ..p });
        assert_eq!(refusal(none), "0 repetitions: at least 1 is measured");
    }
}
