//! Order of writes over one path: a flag waits at its target until all writes that were posted before it are complete.

use crate::in_flight::{AfterWrite, FlightAction};
use crate::units::Picoseconds;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Sender, target and requested rail.
pub(crate) type FlagPath = (u32, u32, u8);

#[derive(Default)]
struct Lane {
    posted: u64,
    /// Time at which the last of the posted writes reaches its node.
    latest: Picoseconds,
    under_way: BTreeSet<u64>,
    /// Flights of flags that have arrived before their turn, by number.
    early: BTreeMap<u64, u32>,
}

/// Writes over paths, by number.
#[derive(Default)]
pub(crate) struct OrderedFlags {
    lanes: HashMap<FlagPath, Lane>,
    /// Writes under way, by flight.
    numbers: HashMap<u32, (FlagPath, u64)>,
}

impl OrderedFlags {
    /// Records that a write over `path` has been posted as `flight`.
    pub fn posted(&mut self, path: FlagPath, flight: u32) {
        let lane = self.lanes.entry(path).or_default();
        lane.under_way.insert(lane.posted);
        self.numbers.insert(flight, (path, lane.posted));
        lane.posted += 1;
    }

    /// Returns the time at which a write over `path` reaches its node. `tail` is its time without other writes. A flag comes after
    /// all earlier writes.
    pub fn tail(
        &mut self,
        path: FlagPath,
        action: &FlightAction,
        tail: Picoseconds,
    ) -> Picoseconds {
        let FlightAction::Write { then, .. } = action else { return tail };
        let lane = self.lanes.entry(path).or_default();
        let tail = match then {
            AfterWrite::Flag(..) => tail.max(lane.latest + 1),
            _ => tail,
        };
        lane.latest = lane.latest.max(tail);
        tail
    }

    /// Returns the path of `flight`, if the flight is a write over a path.
    pub fn path(&self, flight: u32) -> Option<FlagPath> {
        self.numbers.get(&flight).map(|&(path, _)| path)
    }

    /// Replaces the flight number `flight` by `again`, because the flight is sent again.
    pub fn renamed(&mut self, flight: u32, again: Option<u32>) {
        if let (Some(entry), Some(again)) = (self.numbers.remove(&flight), again) {
            self.numbers.insert(again, entry);
        }
    }

    /// Returns true if the flag `flight`, which has arrived, must wait. The flag is then applied when its turn has come.
    #[inline]
    pub fn keeps(&mut self, flight: u32) -> bool {
        if self.numbers.is_empty() {
            return false;
        }
        let Some(&(path, number)) = self.numbers.get(&flight) else { return false };
        let lane = self.lanes.entry(path).or_default();
        let early = lane.under_way.first().is_some_and(|&first| first < number);
        if early {
            lane.early.insert(number, flight);
        }
        early
    }

    /// Ends `flight`. Returns the flag whose turn has come by this end, if any.
    #[inline]
    pub fn over(&mut self, flight: u32) -> Option<u32> {
        if self.numbers.is_empty() {
            return None;
        }
        let (path, number) = self.numbers.remove(&flight)?;
        let lane = self.lanes.get_mut(&path)?;
        lane.under_way.remove(&number);
        let first = *lane.under_way.first()?;
        lane.early.remove(&first)
    }
}
