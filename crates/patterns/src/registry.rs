//! All patterns by name.

use crate::about::PatternText;
use crate::error::PatternError;
use crate::laps::Laps;
use crate::plan::{PatternPlan, PayloadPresence};
use crate::rank::PatternRank;
use crate::*;
use weft_fabric::Fabric;

macro_rules! registry {
    ($($module:ident),* $(,)?) => {
        /// All patterns: first patterns on messages, then patterns on the bare fabric.
        pub const ALL: &[&PatternText] = &[$(&$module::ABOUT),*];

        /// Runs the pattern of the rank's plan.
        pub(crate) async fn play<F: Fabric>(rank: &PatternRank<F>) -> Result<Laps, PatternError> {
            let name = rank.plan().about.name;
            // The future is boxed, because otherwise every rank would have room for the largest future.
            $(if name == $module::ABOUT.name {
                return Box::pin($module::play(rank)).await;
            })*
            Err(unknown(name))
        }
    };
}

registry!(
    ping_pong,
    bandwidth,
    barrier,
    allreduce,
    bcast,
    reduce,
    gather,
    scatter,
    allgather,
    alltoall,
    halo,
    ring_shift,
    fan_in,
    fabric_send,
    fabric_write,
    fabric_fan_in,
    fabric_multicast,
);

fn unknown(name: &str) -> PatternError {
    let known: Vec<_> = ALL.iter().map(|about| about.name).collect();
    PatternError::Refused(format!("no pattern {name:?}; known: {}", known.join(", ")))
}

/// Returns the pattern of this name. Errors: [`PatternError::Refused`] lists all patterns.
pub fn find(name: &str) -> Result<&'static PatternText, PatternError> {
    ALL.iter().copied().find(|about| about.name == name).ok_or_else(|| unknown(name))
}

impl PatternPlan {
    /// Returns a plan with the pattern's first algorithm, its minimum payload, the maximum fan-in, real payload, two repetitions to
    /// warm up and ten measured repetitions. Errors: [`PatternError::Refused`] for an unknown name.
    pub fn new(pattern: &str, ranks: usize) -> Result<PatternPlan, PatternError> {
        let about = find(pattern)?;
        Ok(PatternPlan {
            about,
            ranks,
            algorithm: about.algorithms()[0],
            bytes: about.payload.map_or(0, |(least, _)| least),
            fan_in: ranks.saturating_sub(1),
            warm_up: 2,
            repeat: 10,
            isolated: false,
            payload: PayloadPresence::Real,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_complete() {
        for (i, about) in ALL.iter().enumerate() {
            let name = about.name;
            assert!(ALL[..i].iter().all(|other| other.name != name), "{name} twice");
            assert!(!about.algorithms().is_empty(), "{name}");
            assert!(about.operation.is_none() || about.own.is_empty(), "{name}");
            assert!(!about.what.is_empty() && !about.what.ends_with('.'), "{name}");
            assert!((about.messages)(1024) > 0, "{name}");
            assert!(!about.fans_in || about.least_ranks >= 2, "{name}");
        }
    }
}
