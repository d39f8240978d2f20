//! State for the order of messages of each pair of ranks.

use crate::options::{Death, SimOptions};
use crate::units::Picoseconds;
use std::collections::{BTreeMap, HashMap};

/// Order of messages, of which some may have to be sent again.
#[derive(Default)]
pub(crate) struct MessageOrder {
    pub pairs: HashMap<(u32, u32), RankPair>,
    /// Numbers of messages under way, by flight.
    pub numbers: HashMap<u32, u64>,
}

/// State of messages from a rank to another rank.
#[derive(Default)]
pub(crate) struct RankPair {
    pub sent: u64,
    pub taken: u64,
    /// Flights that arrived before their turn, by number.
    pub early: BTreeMap<u64, u32>,
}

impl MessageOrder {
    /// Returns the state, which is needed only if a rail may die.
    pub fn of(options: &SimOptions) -> Option<Box<MessageOrder>> {
        let rail = |death: &(Picoseconds, Death)| matches!(death.1, Death::Rail { .. });
        options.deaths.iter().any(rail).then(Box::default)
    }
}
