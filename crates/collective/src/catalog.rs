//! What algorithms there are: their names, where they come from, what they need, what can be set.
//!
//! Selection is data: [`crate::Map`] says for every operation, number of processes and size which
//! algorithm is used, and this list says which names it may use and when they are not eligible.

mod method;
mod table;

use crate::costs::Time;
pub use method::Method;
use std::fmt;
pub use table::ALGORITHMS;
use weft_fabric::{CopyModel, Distance};

/// A collective operation as far as a choice is made for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Operation {
    /// MPI_Barrier (MPI 5.0, section 6.3).
    Barrier,
    /// MPI_Bcast (MPI 5.0, section 6.4).
    Bcast,
    /// MPI_Gather: blocks of one length, as all ranks know (MPI 5.0, section 6.5).
    Gather,
    /// MPI_Gatherv: blocks of lengths that the root alone knows (MPI 5.0, section 6.5).
    Gatherv,
    /// MPI_Scatter: blocks of one length, as all ranks know (MPI 5.0, section 6.6).
    Scatter,
    /// MPI_Scatterv: blocks of lengths that the root alone knows (MPI 5.0, section 6.6).
    Scatterv,
    /// MPI_Allgather and MPI_Allgatherv (MPI 5.0, section 6.7).
    Allgather,
    /// MPI_Alltoall: blocks of one length, as all ranks know (MPI 5.0, section 6.8).
    Alltoall,
    /// MPI_Alltoallv and MPI_Alltoallw: a rank knows the lengths of its own blocks (MPI 5.0,
    /// section 6.8).
    Alltoallv,
    /// MPI_Reduce (MPI 5.0, section 6.9.1).
    Reduce,
    /// MPI_Allreduce (MPI 5.0, section 6.9.6).
    Allreduce,
    /// MPI_Reduce_scatter and MPI_Reduce_scatter_block (MPI 5.0, section 6.10).
    ReduceScatter,
    /// MPI_Scan: operands of the ranks up to one's own count (MPI 5.0, section 6.11.1).
    Scan,
    /// MPI_Exscan: operands of the ranks below alone count (MPI 5.0, section 6.11.2).
    Exscan,
}

impl Operation {
    /// All of them; `operation as usize` is its place here.
    pub const ALL: [Operation; 14] = {
        use Operation::*;
        [
            Barrier,
            Bcast,
            Gather,
            Gatherv,
            Scatter,
            Scatterv,
            Allgather,
            Alltoall,
            Alltoallv,
            Reduce,
            Allreduce,
            ReduceScatter,
            Scan,
            Exscan,
        ]
    };

    /// As maps and settings write it.
    pub const fn name(self) -> &'static str {
        use Operation::*;
        match self {
            Barrier => "barrier",
            Bcast => "bcast",
            Gather => "gather",
            Gatherv => "gatherv",
            Scatter => "scatter",
            Scatterv => "scatterv",
            Allgather => "allgather",
            Alltoall => "alltoall",
            Alltoallv => "alltoallv",
            Reduce => "reduce",
            Allreduce => "allreduce",
            ReduceScatter => "reduce_scatter",
            Scan => "scan",
            Exscan => "exscan",
        }
    }

    /// The operation of this name. The error lists those there are.
    pub fn named(name: &str) -> Result<Operation, String> {
        let found = Operation::ALL.into_iter().find(|o| o.name().eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            let known: Vec<_> = Operation::ALL.iter().map(|o| o.name()).collect();
            format!("no collective operation {name:?}; known: {}", known.join(", "))
        })
    }

    /// What "bytes" means where an algorithm is chosen for it.
    pub fn measure(self) -> &'static str {
        use Operation::*;
        match self {
            Barrier => "nothing",
            Bcast | Reduce | Allreduce | Scan | Exscan => "the whole buffer",
            Gather | Scatter | Alltoall => "one rank's block",
            Allgather => "one rank's block, the mean where they differ",
            ReduceScatter => "the whole send buffer",
            Gatherv | Scatterv | Alltoallv => "nothing: no rank knows all lengths",
        }
    }

    /// The algorithms for it.
    pub fn algorithms(self) -> impl Iterator<Item = &'static Algorithm> {
        ALGORITHMS.iter().filter(move |a| a.operation == self)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What carries an algorithm's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Carrier {
    /// MPI point-to-point messages.
    Messages,
    /// The component's own streams of segments (CollGM).
    Streams,
    /// RDMA writes into slots, and multicast (Kini).
    Writes,
    /// The same, by RDMA writes with immediate.
    Immediates,
    /// Atomic operations of the adapters, and RDMA writes.
    Atomics,
    /// RDMA reads of memory that all show to each other.
    Reads,
    /// Memory that the ranks share.
    Memory,
    /// Whatever the levels of a composition choose.
    Hierarchy,
}

/// A number that may follow an algorithm's name: `RGM:7`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// What it is: `fan-in`, `radix`, `segment in bytes`.
    pub what: &'static str,
    /// What holds if the name comes without a number.
    pub default: usize,
    /// Smallest value that is allowed.
    pub least: usize,
    /// Largest value that is allowed.
    pub most: usize,
    /// Only these values, besides the range.
    pub only: Only,
}

/// Which values of a parameter there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Only {
    /// Every one of the range.
    All,
    /// 2^k - 1.
    OneLessThanPowers,
}

/// What must hold for an algorithm to be eligible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The operator commutes.
    Commutes,
    /// All ranks share memory, and are at most so many.
    Together(usize),
    /// Two ranks.
    Two,
    /// More than two ranks.
    Many,
    /// All ranks reach each other's own memory.
    Direct,
    /// At most so many bytes.
    AtMost(usize),
    /// All ranks' blocks together at most so many bytes.
    BlocksAtMost(usize),
    /// Elements of at most so many bytes.
    ElementAtMost(usize),
    /// At least as many elements as ranks.
    ElementEach,
    /// Blocks of one length.
    EqualBlocks,
    /// A number of ranks that is a power of two.
    PowerOfTwo,
    /// An even number of ranks.
    Even,
    /// The network has multicast.
    Multicast,
    /// All ranks compute with the same arithmetic.
    SameArithmetic,
    /// All ranks' adapters do atomic operations.
    Atomics,
    /// Several nodes, one of them with several ranks.
    Nodes,
}

/// One algorithm for one operation.
#[derive(Debug, Clone, Copy)]
pub struct Algorithm {
    /// What it serves; a name may mean another algorithm in another operation.
    pub operation: Operation,
    /// As its source calls it.
    pub name: &'static str,
    /// What its ranks do, whatever carries it.
    pub method: Method,
    /// How its data travel.
    pub carrier: Carrier,
    /// `None`: its name takes no number.
    pub parameter: Option<Parameter>,
    /// All must hold; the first that does not is what a user is told.
    pub needs: &'static [Need],
    /// Serves where no map says anything, if it is eligible: the first of those that are.
    pub usual: bool,
    /// One line, with the source.
    pub about: &'static str,
    /// Rounds, or messages.
    pub cost: &'static str,
    /// What it takes among ranks that share memory, by the model of copies: where no map says anything, the cheapest serves
    /// them.
    pub time: Option<Time>,
}

/// One call, as far as the choice depends on it. All ranks of a communicator see the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectionKey {
    /// Number of ranks, of the communicator or of a level of its hierarchy.
    pub ranks: usize,
    /// See [`Operation::measure`].
    pub bytes: usize,
    /// Bytes of one element of a reduction; 1 elsewhere.
    pub element: usize,
    /// Whether the operator of a reduction commutes; true elsewhere.
    pub commutes: bool,
    /// Whether all ranks' blocks have one length; true where there are no blocks.
    pub equal: bool,
    /// Where the ranks are.
    pub site: Topology,
}

/// Where a communicator's ranks are. All of them see the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Topology {
    /// They share memory.
    pub same_node: bool,
    /// Number of nodes.
    pub nodes: usize,
    /// The most ranks on one node.
    pub ranks_per_node: usize,
    /// Largest multicast datagram, in bytes; 0: none.
    pub multicast: usize,
    /// They compute with the same arithmetic.
    pub same_arithmetic: bool,
    /// Their adapters do atomic operations.
    pub atomics: bool,
    /// What they have found out together, if they share memory.
    pub near: Near,
}

/// What ranks that share memory have told each other, so that all of them choose alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Near {
    /// All reach each other's own memory; `None`: not said yet.
    pub direct: Option<bool>,
    /// How far from each other rank 0 has found them to be.
    pub distance: Distance,
    /// The most of them that take turns on one processor; 0: not said yet.
    pub each: u32,
}

impl Near {
    /// Nothing is said yet.
    pub const UNKNOWN: Near = Near { direct: None, distance: Distance::Shared, each: 0 };
}

impl Need {
    /// Whether it holds for `case`, or why not.
    pub fn check(self, case: &SelectionKey) -> Result<(), String> {
        let SelectionKey { ranks, bytes, element, site, .. } = *case;
        let hold = |holds: bool, why: &dyn Fn() -> String| if holds { Ok(()) } else { Err(why()) };
        let is = |holds: bool, why: &str| if holds { Ok(()) } else { Err(why.to_owned()) };
        match self {
            Need::Commutes => is(case.commutes, "the operator does not commute"),
            Need::Together(most) => {
                is(site.same_node, "the ranks do not share memory")?;
                hold(ranks <= most, &|| format!("{ranks} ranks: at most {most}"))
            }
            Need::Two => hold(ranks == 2, &|| format!("{ranks} ranks: it takes 2")),
            Need::Many => hold(ranks > 2, &|| format!("{ranks} ranks: it takes more than 2")),
            // Who has not heard asks, and does without if need be.
            Need::Direct => {
                is(site.near.direct != Some(false), "a rank may not read another's own memory")
            }
            Need::AtMost(most) => hold(bytes <= most, &|| format!("{bytes} bytes: at most {most}")),
            Need::BlocksAtMost(most) => hold(bytes.saturating_mul(ranks) <= most, &|| {
                format!("{ranks} blocks of {bytes} bytes: together at most {most}")
            }),
            Need::ElementAtMost(most) => {
                hold(element <= most, &|| format!("elements of {element} bytes: at most {most}"))
            }
            Need::ElementEach => hold(bytes >= ranks * element.max(1), &|| {
                format!(
                    "{bytes} bytes are fewer than one element of {element} for each of {ranks} ranks"
                )
            }),
            Need::EqualBlocks => is(case.equal, "the blocks differ in length"),
            Need::PowerOfTwo => {
                hold(ranks.is_power_of_two(), &|| format!("{ranks} ranks: no power of two"))
            }
            Need::Even => {
                hold(ranks.is_multiple_of(2), &|| format!("{ranks} ranks: an odd number"))
            }
            Need::Multicast => is(site.multicast > 0, "this network has no multicast"),
            Need::SameArithmetic => is(site.same_arithmetic, "the nodes differ in arithmetic"),
            Need::Atomics => is(site.atomics, "some rank's adapter does no atomic operations"),
            Need::Nodes => is(
                site.nodes > 1 && site.ranks_per_node > 1,
                "it takes several nodes, one of them with several ranks",
            ),
        }
    }
}

impl Algorithm {
    /// Whether it may serve `case`, or why not.
    pub fn eligible(&self, case: &SelectionKey) -> Result<(), String> {
        self.needs.iter().try_for_each(|need| need.check(case))
    }

    /// Whether ranks wait for each other in it, beside messages, so that one that computes holds the others up.
    pub fn meets(&self) -> bool {
        self.carrier == Carrier::Memory && self.method != Method::Central
    }

    /// Nanoseconds that it should take, where the model of copies knows: among ranks that share memory.
    pub fn predicted(&self, case: &SelectionKey, model: &CopyModel) -> Option<f64> {
        let time = self.time.filter(|_| case.site.same_node)?;
        Some(time(case, model)).filter(|time| time.is_finite())
    }

    /// With the parameter that it has if none is given.
    pub fn usual(&'static self) -> Choice {
        Choice { algorithm: self, parameter: self.parameter.map_or(0, |p| p.default) }
    }
}

/// An algorithm and its parameter (0 where it has none).
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    /// An entry of [`ALGORITHMS`].
    pub algorithm: &'static Algorithm,
    /// Within the algorithm's range, in the unit of [`Parameter::what`].
    pub parameter: usize,
}

impl PartialEq for Choice {
    fn eq(&self, other: &Choice) -> bool {
        std::ptr::eq(self.algorithm, other.algorithm) && self.parameter == other.parameter
    }
}

impl Eq for Choice {}

impl Choice {
    /// What `text` names: `RGM`, or `RGM:7`, in any case of letters. The error says what is known.
    pub fn parse(operation: Operation, text: &str) -> Result<Choice, String> {
        let (name, parameter) = match text.trim().split_once(':') {
            Some((name, number)) => (name.trim(), Some(number.trim())),
            None => (text.trim(), None),
        };
        let mut known = operation.algorithms();
        let algorithm = known.find(|a| a.name.eq_ignore_ascii_case(name)).ok_or_else(|| {
            let known: Vec<_> = operation.algorithms().map(|a| a.name).collect();
            format!("no algorithm {name:?} for {operation}; known: {}", known.join(", "))
        })?;
        let Some(number) = parameter else { return Ok(algorithm.usual()) };
        let Some(range) = algorithm.parameter else {
            return Err(format!("{text:?}: {} has no parameter", algorithm.name));
        };
        let Parameter { what, least, most, only, .. } = range;
        let fits = |&n: &usize| {
            (least..=most).contains(&n) && (only == Only::All || (n + 1).is_power_of_two())
        };
        let powers = if only == Only::All { "" } else { ", one less than a power of two" };
        let parameter = bytes(number).filter(fits).ok_or_else(|| {
            format!("{text:?}: the {what} of {} is {least} to {most}{powers}", algorithm.name)
        })?;
        Ok(Choice { algorithm, parameter })
    }
}

/// A number, with K or M for powers of 1024.
fn bytes(text: &str) -> Option<usize> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1 << 10),
        b'm' | b'M' => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    digits.parse::<usize>().ok()?.checked_mul(unit)
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.algorithm.name;
        match self.algorithm.parameter {
            Some(range) if range.default != self.parameter => {
                write!(f, "{name}:{}", self.parameter)
            }
            _ => f.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests;
