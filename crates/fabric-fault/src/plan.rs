//! The kinds of faults, with their probabilities.

use std::fmt;
use std::str::FromStr;

/// A plan of faults. Probabilities lie in `0.0..=1.0` and are drawn anew for each datagram, message or operation. A plan is
/// written as `seed=7,multicast_loss=0.3,reorder=1`. Names that are missing keep their default (nothing goes wrong).
#[derive(Debug, Clone, PartialEq)]
pub struct FaultPlan {
    /// The seed. Every rank draws from its own sequence, of this seed and its rank.
    pub seed: u64,
    /// Probability that a datagram is lost on its way to one receiver.
    pub multicast_loss: f64,
    /// Probability that a datagram comes twice.
    pub multicast_duplicate: f64,
    /// Probability that a datagram is overtaken by other datagrams.
    pub multicast_delay: f64,
    /// Probability that a message is held for some polls, and later messages of the same peer with it.
    pub message_delay: f64,
    /// Probability that a completion is held for some polls.
    pub completion_delay: f64,
    /// Probability that the program's memory cannot be registered (the limit on locked memory). Such memory cannot be exposed,
    /// and cannot be read into, unless it is so short that the data could go through a buffer.
    pub registration_failure: f64,
    /// Probability that the fabric has no memory for a region.
    pub memory_failure: f64,
    /// Number of bytes that are placed as one packet, if `reorder` is set. Zero: 4096.
    pub mtu: usize,
    /// True if writes are placed packet by packet in random order, and each packet in pieces in random order.
    pub reorder: bool,
    /// True if the wrapper passes on [`weft_fabric::Capabilities::in_order_placement`] of the wrapped fabric, although
    /// `reorder` makes it untrue. This shows what happens to code that relies on the order because a user forced it. If this is
    /// false, `reorder` clears the capability.
    pub claim_order: bool,
}

impl Default for FaultPlan {
    fn default() -> FaultPlan {
        FaultPlan {
            seed: 1,
            multicast_loss: 0.0,
            multicast_duplicate: 0.0,
            multicast_delay: 0.0,
            message_delay: 0.0,
            completion_delay: 0.0,
            registration_failure: 0.0,
            memory_failure: 0.0,
            mtu: 4096,
            reorder: false,
            claim_order: false,
        }
    }
}

/// An entry of a plan that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanError {
    /// The entry as it was written.
    pub entry: String,
    /// The permitted entries, in words.
    pub expected: &'static str,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` in a plan of faults: expected {}", self.entry, self.expected)
    }
}

impl std::error::Error for PlanError {}

const NAMES: &str = "seed, multicast_loss, multicast_duplicate, multicast_delay, message_delay, \
                     completion_delay, registration_failure, memory_failure, mtu, reorder or claim_order, as \
                     name=value";

impl FromStr for FaultPlan {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<FaultPlan, PlanError> {
        let mut plan = FaultPlan::default();
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let wrong = |expected| PlanError { entry: entry.to_owned(), expected };
            let (name, value) = entry.split_once('=').ok_or_else(|| wrong(NAMES))?;
            let whole = || value.parse::<u64>().map_err(|_| wrong("a whole number"));
            let chance = || match value.parse::<f64>() {
                Ok(p) if (0.0..=1.0).contains(&p) => Ok(p),
                _ => Err(wrong("a probability from 0 to 1")),
            };
            let switch = || match value {
                "0" | "false" => Ok(false),
                "1" | "true" => Ok(true),
                _ => Err(wrong("0 or 1")),
            };
            match name {
                "seed" => plan.seed = whole()?,
                "multicast_loss" => plan.multicast_loss = chance()?,
                "multicast_duplicate" => plan.multicast_duplicate = chance()?,
                "multicast_delay" => plan.multicast_delay = chance()?,
                "message_delay" => plan.message_delay = chance()?,
                "completion_delay" => plan.completion_delay = chance()?,
                "registration_failure" => plan.registration_failure = chance()?,
                "memory_failure" => plan.memory_failure = chance()?,
                "mtu" => plan.mtu = whole()? as usize,
                "reorder" => plan.reorder = switch()?,
                "claim_order" => plan.claim_order = switch()?,
                _ => return Err(wrong(NAMES)),
            }
        }
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_read_from_text() {
        let plan: FaultPlan = "seed=7, multicast_loss=0.3,reorder=1,mtu=256".parse().unwrap();
        let expected = FaultPlan {
            seed: 7,
            multicast_loss: 0.3,
            reorder: true,
            mtu: 256,
            ..FaultPlan::default()
        };
        assert_eq!(plan, expected);
        assert_eq!("".parse(), Ok(FaultPlan::default()));
    }

    #[test]
    fn what_cannot_be_is_named() {
        for bad in ["multicast_loss=1.5", "loss=1", "seed", "claim_order=maybe", "mtu=-1"] {
            let error = bad.parse::<FaultPlan>().unwrap_err();
            assert_eq!(error.entry, bad);
            assert!(error.to_string().contains(bad));
        }
    }
}
