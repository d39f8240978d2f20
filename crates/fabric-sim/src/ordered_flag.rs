//! The order of what is written over one path: a flag that is to come after it waits at its target until it has.

use crate::in_flight::{FlightAction, Then};
use crate::units::Picoseconds;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// From whom, to whom, over which rail it was asked for.
pub(crate) type Path = (u32, u32, u8);

#[derive(Default)]
struct Lane {
    posted: u64,
    /// When the last of them reaches its node.
    latest: Picoseconds,
    under_way: BTreeSet<u64>,
    /// Flags that have come before their turn: their flights.
    early: BTreeMap<u64, u32>,
}

/// Writes over paths, by number.
#[derive(Default)]
pub(crate) struct OrderedFlags {
    lanes: HashMap<Path, Lane>,
    /// Those under way, by flight.
    numbers: HashMap<u32, (Path, u64)>,
}

impl OrderedFlags {
    /// A write over `path` has been posted as `flight`.
    pub fn posted(&mut self, path: Path, flight: u32) {
        let lane = self.lanes.entry(path).or_default();
        lane.under_way.insert(lane.posted);
        self.numbers.insert(flight, (path, lane.posted));
        lane.posted += 1;
    }

    /// When what is written over `path` reaches its node, if it would by itself at `tail`: a flag after what was
    /// written before.
    pub fn tail(&mut self, path: Path, action: &FlightAction, tail: Picoseconds) -> Picoseconds {
        let FlightAction::Write { then, .. } = action else { return tail };
        let lane = self.lanes.entry(path).or_default();
        let tail = match then {
            Then::Flag(..) => tail.max(lane.latest + 1),
            _ => tail,
        };
        lane.latest = lane.latest.max(tail);
        tail
    }

    /// The path of `flight`, if it was written over one.
    pub fn path(&self, flight: u32) -> Option<Path> {
        self.numbers.get(&flight).map(|&(path, _)| path)
    }

    /// `flight` goes on as `again`.
    pub fn renamed(&mut self, flight: u32, again: Option<u32>) {
        if let (Some(entry), Some(again)) = (self.numbers.remove(&flight), again) {
            self.numbers.insert(again, entry);
        }
    }

    /// Whether `flight`, a flag that has come, must wait; it is applied again when its turn has come.
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

    /// `flight` is over; the flag whose turn has come by that.
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
