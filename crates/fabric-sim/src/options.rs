//! How one simulation is run: ranks, seed, trouble.

use crate::units::{Chance, Picoseconds, Time};

/// What may go differently from seed to seed, within the contract of a fabric.
#[derive(Debug, Clone, Copy, Default)]
pub struct Chaos {
    /// An operation is held up on its way, by up to `most`.
    pub delay: Chance,
    /// Longest delay of one operation; delays are spread evenly up to it.
    pub most: Time,
    /// The fabric keeps a payload that is not inline for a while ([`weft_fabric::PostOutcome::Later`]).
    pub later: Chance,
    /// A receiver misses a datagram, instead of the machine's own rate.
    pub loss: Option<Chance>,
    /// A datagram comes twice.
    pub duplicate: Chance,
}

impl Chaos {
    /// Enough of everything to show an error in few runs.
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

/// Something that dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Death {
    /// This rank; the others of its node live on, and all learn of it after [`SimOptions::detection`].
    Rank(usize),
    /// One port of one node.
    Rail {
        /// Number of the node, from 0.
        node: usize,
        /// Number of the rail, from 0, in the order of the machine file.
        rail: usize,
    },
}

/// One run.
#[derive(Debug, Clone)]
pub struct SimOptions {
    /// How many, from 1 to what the machine has room for; nodes are filled in order.
    pub ranks: usize,
    /// The same seed gives the same run, bit for bit.
    pub seed: u64,
    /// Every operation takes up to so much longer, evenly spread.
    pub jitter: Time,
    /// What goes differently by chance; nothing: an undisturbed fabric.
    pub chaos: Option<Chaos>,
    /// What dies, and when.
    pub deaths: Vec<(Picoseconds, Death)>,
    /// From a death to when the others know of it, and from the loss of a packet to its repetition.
    pub detection: Time,
    /// Record what each rank does.
    pub trace: bool,
    /// Give up at this virtual time.
    pub limit: Picoseconds,
}

impl SimOptions {
    /// A run without trouble: seed 1, no jitter, chaos, deaths, trace or limit; deaths that are
    /// added are known after 1 ms.
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

    /// Chooses the numbers by which chance decides; with equal options an equal seed repeats a run.
    pub fn seed(self, seed: u64) -> SimOptions {
        SimOptions { seed, ..self }
    }

    /// Lets chance disturb the run, by `seed`.
    pub fn chaos(self, chaos: Chaos) -> SimOptions {
        SimOptions { chaos: Some(chaos), ..self }
    }

    /// Asks for [`RunOutcome::trace`](crate::RunOutcome::trace), which grows with the run.
    pub fn trace(self) -> SimOptions {
        SimOptions { trace: true, ..self }
    }
}
