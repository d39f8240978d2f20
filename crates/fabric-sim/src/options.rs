//! Options of one simulation: ranks, seed, disturbances.

use crate::units::{Chance, Picoseconds, Time};

/// Disturbances that may differ from seed to seed, within the contract of a fabric.
#[derive(Debug, Clone, Copy, Default)]
pub struct Chaos {
    /// Probability that an operation is delayed, by at most `most`.
    pub delay: Chance,
    /// Maximum delay of an operation. Delays are uniformly distributed from 0 to this maximum.
    pub most: Time,
    /// Probability that the fabric keeps a payload that is not inline for a while ([`weft_fabric::PostOutcome::Later`]).
    pub later: Chance,
    /// Probability that a receiver misses a datagram; `None` for the probability of the machine file.
    pub loss: Option<Chance>,
    /// Probability that a datagram comes twice.
    pub duplicate: Chance,
}

impl Chaos {
    /// Returns disturbances that are frequent enough to show an error in few runs.
    pub fn rough() -> Chaos {
        Chaos {
            delay: Chance(0.3),
            most: Time::from_us(100.0),
            later: Chance(0.3),
            loss: Some(Chance(0.2)),
            duplicate: Chance(0.1),
        }
    }
}

/// Death of a rank or of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Death {
    /// Death of this rank. The other ranks of its node continue. All other ranks learn of the death after
    /// [`SimOptions::detection`].
    Rank(usize),
    /// Death of a port of a node.
    Rail {
        /// Number of the node, from 0.
        node: usize,
        /// Number of the rail, from 0, in the order of the machine file.
        rail: usize,
    },
}

/// Options of one run.
#[derive(Debug, Clone)]
pub struct SimOptions {
    /// Number of ranks, from 1 to the maximum of the machine; nodes are filled in order.
    pub ranks: usize,
    /// Seed of all random choices. The same seed gives the same run, bit for bit.
    pub seed: u64,
    /// Maximum extra time of every operation, uniformly distributed.
    pub jitter: Time,
    /// Random disturbances; `None` for an undisturbed fabric.
    pub chaos: Option<Chaos>,
    /// Deaths, each with its time.
    pub deaths: Vec<(Picoseconds, Death)>,
    /// Time from a death until the other ranks know of it, and from the loss of an operation until it is sent again.
    pub detection: Time,
    /// True to record the activity of each rank.
    pub trace: bool,
    /// Maximum virtual time, at which the run ends with [`Stopped::Limit`](crate::Stopped::Limit).
    pub limit: Picoseconds,
}

impl SimOptions {
    /// Returns options of a run without disturbances: seed 1, and no jitter, chaos, deaths, trace or limit. If deaths are added,
    /// they are detected after 1 ms.
    pub fn new(ranks: usize) -> SimOptions {
        SimOptions {
            ranks,
            seed: 1,
            jitter: Time(0),
            chaos: None,
            deaths: Vec::new(),
            detection: Time::from_us(1000.0),
            trace: false,
            limit: Picoseconds::MAX,
        }
    }

    /// Sets the seed of all random choices. A run with equal options and an equal seed repeats exactly.
    pub fn seed(self, seed: u64) -> SimOptions {
        SimOptions { seed, ..self }
    }

    /// Adds random disturbances to the run, which depend on `seed`.
    pub fn chaos(self, chaos: Chaos) -> SimOptions {
        SimOptions { chaos: Some(chaos), ..self }
    }

    /// Asks for [`RunOutcome::trace`](crate::RunOutcome::trace), whose memory grows with the length of the run.
    pub fn trace(self) -> SimOptions {
        SimOptions { trace: true, ..self }
    }
}
