//! Protocols of puts and gets: the targets for which each protocol is eligible, and its cost.
//!
//! ```text
//!   mapped     this process sees the memory            one copy, by this processor
//!   system     the system reads and writes it          the same, a system call, and a cost for each page
//!   adapter    the fabric does, over the network       over when the fabric reports its completion
//!   assisted   the target's process does               a request, an answer, two copies, and a wait for the target's process
//! ```
//! The choice is arithmetic, without state, clock or fabric. For any size, `mapped` makes the same copy as `system` without the
//! system call. `assisted` needs the target's process, which may not enter the library for a long time. So the first eligible
//! protocol is the best for all sizes, and a window chooses once per rank.

use weft_fabric::{CacheDistance, CopyModel};

/// Direction of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RmaDirection {
    /// From the origin to the target.
    Put,
    /// From the target to the origin.
    Get,
}

/// Properties of the path to a target's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TargetPath {
    /// True if this process sees the memory.
    pub mapped: bool,
    /// True if the target's fabric allocated the memory, so that other processes may reach it.
    pub within: bool,
    /// True if the fabric reaches all memory of the target.
    pub direct: bool,
    /// True if this processor carries out the fabric's operations, because the ranks share a node.
    pub synchronous: bool,
    /// Distance between the caches of the target's processor and of this processor.
    pub distance: CacheDistance,
    /// Number of ranks that take turns on a processor; 1 if each rank has its own processor.
    pub ranks_each: u32,
}

/// Properties of an operation on which its protocol depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessTransfer {
    /// Direction, which determines the memory that is read and the memory that is written.
    pub direction: RmaDirection,
    /// Length of the data.
    pub bytes: usize,
    /// The path to the target's memory.
    pub path: TargetPath,
}

/// Protocols of a put or a get, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessProtocol {
    /// This processor copies, because it sees the target's memory.
    Mapped,
    /// The operating system copies between the two processes' memory.
    System,
    /// A network adapter moves the data, without the target's process.
    Adapter,
    /// The origin sends a request to the target's process. The process answers when it enters the library, or its helper answers.
    TargetAssisted,
}

impl AccessProtocol {
    /// All protocols, the best first. The first eligible protocol is chosen.
    pub const ALL: [AccessProtocol; 4] = [
        AccessProtocol::Mapped,
        AccessProtocol::System,
        AccessProtocol::Adapter,
        AccessProtocol::TargetAssisted,
    ];

    /// Returns the name for reports, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            AccessProtocol::Mapped => "mapped",
            AccessProtocol::System => "system",
            AccessProtocol::Adapter => "adapter",
            AccessProtocol::TargetAssisted => "target-assisted",
        }
    }

    /// Returns a description in words.
    pub fn about(self) -> &'static str {
        match self {
            AccessProtocol::Mapped => "this processor copies, as it sees the memory",
            AccessProtocol::System => "the system copies to or from the other process's own memory",
            AccessProtocol::Adapter => "the fabric writes or reads it over the network",
            AccessProtocol::TargetAssisted => "the target's process does it when it is asked",
        }
    }

    /// Tests whether the protocol is eligible for `path`. If not, the error gives the reason in words.
    pub fn eligible(self, path: &TargetPath) -> Result<(), &'static str> {
        let reached = path.within || path.direct;
        match self {
            AccessProtocol::Mapped if !path.mapped => Err("this process does not see the memory"),
            AccessProtocol::System if !path.synchronous => Err("the ranks share no memory"),
            AccessProtocol::Adapter if path.synchronous => Err("no adapter is between them"),
            AccessProtocol::System | AccessProtocol::Adapter if !reached => {
                Err("the memory cannot be reached from outside")
            }
            _ => Ok(()),
        }
    }

    /// Returns the time in nanoseconds until the bytes have arrived. Returns `None` over a network, because the model covers only
    /// copies within a node.
    pub fn cost(self, model: &CopyModel, transfer: &AccessTransfer) -> Option<f64> {
        let AccessTransfer { direction, bytes, path } = *transfer;
        let TargetPath { distance, synchronous, ranks_each, .. } = path;
        // A put writes memory that its target has used. A get reads memory that its target has written.
        let copy = match direction {
            RmaDirection::Put => model.rewrite(bytes, distance).max(model.copy(bytes)),
            RmaDirection::Get => model.fetch(bytes, distance),
        };
        let call = model.cma(bytes, distance) - model.fetch(bytes, distance);
        let turns = if ranks_each > 1 { 2.0 * model.switch } else { 0.0 };
        match self {
            AccessProtocol::Mapped => Some(copy),
            AccessProtocol::System => Some(call + copy),
            AccessProtocol::TargetAssisted if synchronous => {
                let through = model.rewrite_for_one(bytes, distance) + model.fetch(bytes, distance);
                Some(2.0 * model.line.at(distance) + through + model.copy(bytes) + turns)
            }
            AccessProtocol::TargetAssisted | AccessProtocol::Adapter => None,
        }
    }
}

/// Returns the protocol for operations of any size on memory with this path.
pub fn choose(path: &TargetPath) -> AccessProtocol {
    let able = AccessProtocol::ALL.into_iter().find(|way| way.eligible(path).is_ok());
    able.expect("every process can serve its own memory")
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_fabric::ByDistance;

    const NODE: TargetPath = TargetPath {
        mapped: true,
        within: true,
        direct: true,
        synchronous: true,
        distance: CacheDistance::Shared,
        ranks_each: 1,
    };

    #[test]
    fn the_way_to_memory() {
        let foreign = TargetPath { mapped: false, within: false, ..NODE };
        let network = TargetPath { synchronous: false, ..foreign };
        let table = [
            (NODE, AccessProtocol::Mapped),
            (TargetPath { mapped: false, ..NODE }, AccessProtocol::System),
            (foreign, AccessProtocol::System),
            (TargetPath { direct: false, ..foreign }, AccessProtocol::TargetAssisted),
            (network, AccessProtocol::Adapter),
            (TargetPath { direct: false, within: true, ..network }, AccessProtocol::Adapter),
            (TargetPath { direct: false, ..network }, AccessProtocol::TargetAssisted),
        ];
        for (path, way) in table {
            assert_eq!(choose(&path), way, "{path:?}");
        }
    }

    /// Checks that mapped memory is the cheapest at every size, so that the choice need not depend on the size.
    #[test]
    fn what_is_mapped_is_the_cheapest() {
        let generic = CopyModel::GENERIC;
        let slow = CopyModel { memory: 2.0, past: 3.0, last: 1 << 16, ..generic };
        let far = CopyModel { rewrite: ByDistance { shared: 90.0, apart: 90.0 }, ..generic };
        for model in [generic, slow, far] {
            for bytes in (0..26).map(|power| 1 << power) {
                for (direction, distance) in [
                    (RmaDirection::Put, CacheDistance::Shared),
                    (RmaDirection::Get, CacheDistance::Apart),
                ] {
                    let path = TargetPath { distance, ..NODE };
                    let case = AccessTransfer { direction, bytes, path };
                    let [mapped, system] = [AccessProtocol::Mapped, AccessProtocol::System]
                        .map(|way| way.cost(&model, &case));
                    assert!(mapped < system, "{case:?}");
                }
            }
        }
    }
}
