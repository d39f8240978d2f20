//! How a put or a get reaches its target's memory: for which targets each way is eligible, and what it costs.
//!
//! ```text
//!   mapped     this process sees the memory            one copy, by this processor
//!   system     the system reads and writes it          the same, a call, and something for each page
//!   adapter    the fabric does, over the network       over when its completion is
//!   assisted   its own process does                    a request, an answer, two copies, and the other must come to it
//! ```
//! Choosing is arithmetic: no state, no clock, no fabric. Whatever the size, mapped is the copy of system without its call, and
//! target-assisted needs the target's process, which may not come for long; so the first that is eligible is the best, and a window
//! asks once for each rank.

use weft_fabric::{CopyModel, Distance};

/// What is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the origin to the target.
    Put,
    /// From the target to the origin.
    Get,
}

/// What is known of the way to a target's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// This process sees it.
    pub mapped: bool,
    /// The target's fabric allocated it, so that others may reach it.
    pub within: bool,
    /// The fabric reaches all memory of the target.
    pub direct: bool,
    /// This processor carries out what the fabric does: the ranks share a node.
    pub synchronous: bool,
    /// How far the caches of the target's processor are from this one's.
    pub distance: Distance,
    /// Ranks that take turns on a processor; 1: each has its own.
    pub ranks_each: u32,
}

/// An operation, as far as its way depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// Which end's memory is read and which is written.
    pub direction: Direction,
    /// Length of the data.
    pub bytes: usize,
    /// How the target's memory can be reached from here.
    pub path: Path,
}

/// The ways of a put or a get, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// This processor copies, for it sees the target's memory.
    Mapped,
    /// The operating system copies between the two processes' memory.
    System,
    /// A network adapter moves the data, without the target's process.
    Adapter,
    /// The target's process is sent a request; takes as long as it stays out of the library.
    TargetAssisted,
}

impl Protocol {
    /// Each once, the best first: the first that is eligible is taken.
    pub const ALL: [Protocol; 4] =
        [Protocol::Mapped, Protocol::System, Protocol::Adapter, Protocol::TargetAssisted];

    /// For reports, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Mapped => "mapped",
            Protocol::System => "system",
            Protocol::Adapter => "adapter",
            Protocol::TargetAssisted => "target-assisted",
        }
    }

    /// In words.
    pub fn about(self) -> &'static str {
        match self {
            Protocol::Mapped => "this processor copies, as it sees the memory",
            Protocol::System => "the system copies to or from the other process's own memory",
            Protocol::Adapter => "the fabric writes or reads it over the network",
            Protocol::TargetAssisted => "the target's process does it when it is asked",
        }
    }

    /// Why not, in words.
    pub fn eligible(self, path: &Path) -> Result<(), &'static str> {
        let reached = path.within || path.direct;
        match self {
            Protocol::Mapped if !path.mapped => Err("this process does not see the memory"),
            Protocol::System if !path.synchronous => Err("the ranks share no memory"),
            Protocol::Adapter if path.synchronous => Err("no adapter is between them"),
            Protocol::System | Protocol::Adapter if !reached => {
                Err("the memory cannot be reached from outside")
            }
            _ => Ok(()),
        }
    }

    /// Nanoseconds until the bytes are there; `None`: over a network, of which the model of copies knows nothing.
    pub fn cost(self, model: &CopyModel, transfer: &Transfer) -> Option<f64> {
        let Transfer { direction, bytes, path } = *transfer;
        let Path { distance, synchronous, ranks_each, .. } = path;
        // A put writes what its target has used; a get reads what it has written.
        let copy = match direction {
            Direction::Put => model.rewrite(bytes, distance).max(model.copy(bytes)),
            Direction::Get => model.fetch(bytes, distance),
        };
        let call = model.cma(bytes, distance) - model.fetch(bytes, distance);
        let turns = if ranks_each > 1 { 2.0 * model.switch } else { 0.0 };
        match self {
            Protocol::Mapped => Some(copy),
            Protocol::System => Some(call + copy),
            Protocol::TargetAssisted if synchronous => {
                let through = model.rewrite_for_one(bytes, distance) + model.fetch(bytes, distance);
                Some(2.0 * model.line.at(distance) + through + model.copy(bytes) + turns)
            }
            Protocol::TargetAssisted | Protocol::Adapter => None,
        }
    }
}

/// The way to memory, for operations of any size.
pub fn choose(path: &Path) -> Protocol {
    let able = Protocol::ALL.into_iter().find(|way| way.eligible(path).is_ok());
    able.expect("every process can serve its own memory")
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_fabric::ByDistance;

    const NODE: Path = Path {
        mapped: true,
        within: true,
        direct: true,
        synchronous: true,
        distance: Distance::Shared,
        ranks_each: 1,
    };

    #[test]
    fn the_way_to_memory() {
        let foreign = Path { mapped: false, within: false, ..NODE };
        let network = Path { synchronous: false, ..foreign };
        let table = [
            (NODE, Protocol::Mapped),
            (Path { mapped: false, ..NODE }, Protocol::System),
            (foreign, Protocol::System),
            (Path { direct: false, ..foreign }, Protocol::TargetAssisted),
            (network, Protocol::Adapter),
            (Path { direct: false, within: true, ..network }, Protocol::Adapter),
            (Path { direct: false, ..network }, Protocol::TargetAssisted),
        ];
        for (path, way) in table {
            assert_eq!(choose(&path), way, "{path:?}");
        }
    }

    /// What makes it right to choose without the size.
    #[test]
    fn what_is_mapped_is_the_cheapest() {
        let generic = CopyModel::GENERIC;
        let slow = CopyModel { memory: 2.0, past: 3.0, last: 1 << 16, ..generic };
        let far = CopyModel { rewrite: ByDistance { shared: 90.0, apart: 90.0 }, ..generic };
        for model in [generic, slow, far] {
            for bytes in (0..26).map(|power| 1 << power) {
                for (direction, distance) in
                    [(Direction::Put, Distance::Shared), (Direction::Get, Distance::Apart)]
                {
                    let path = Path { distance, ..NODE };
                    let case = Transfer { direction, bytes, path };
                    let [mapped, system] =
                        [Protocol::Mapped, Protocol::System].map(|way| way.cost(&model, &case));
                    assert!(mapped < system, "{case:?}");
                }
            }
        }
    }
}
