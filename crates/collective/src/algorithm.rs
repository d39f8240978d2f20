//! What an algorithm says of itself: its name, where it comes from, what it needs, what can be set. The catalogue lists them.

mod method;

use crate::costs::CostFunction;
use crate::operation::CollectiveKind;
use crate::selection_key::SelectionKey;
pub use method::Method;
use std::fmt;
use weft_fabric::CopyModel;
use weft_fabric::arithmetic::in_usual_arithmetic;

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
pub struct AlgorithmParameter {
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
pub enum Requirement {
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
    /// More than two ranks, or two ranks with the same arithmetic: with two ranks, each computes the result by itself.
    SameArithmeticOfTwo,
    /// All ranks' adapters do atomic operations.
    Atomics,
    /// Several nodes, one of them with several ranks.
    Nodes,
}

/// One algorithm for one operation.
#[derive(Debug, Clone, Copy)]
pub struct Algorithm {
    /// What it serves; a name may mean another algorithm in another operation.
    pub operation: CollectiveKind,
    /// As its source calls it.
    pub name: &'static str,
    /// What its ranks do, whatever carries it.
    pub method: Method,
    /// How its data travel.
    pub carrier: Carrier,
    /// `None`: its name takes no number.
    pub parameter: Option<AlgorithmParameter>,
    /// All must hold; the first that does not is what a user is told.
    pub needs: &'static [Requirement],
    /// Serves where no map says anything, if it is eligible: the first of those that are.
    pub usual: bool,
    /// One line, with the source.
    pub about: &'static str,
    /// Rounds, or messages.
    pub cost: &'static str,
    /// What it takes among ranks that share memory, by the model of copies: where no map says anything, the cheapest serves
    /// them.
    pub time: Option<CostFunction>,
}

impl Requirement {
    /// Whether it holds for `case`, or why not.
    pub fn check(self, case: &SelectionKey) -> Result<(), String> {
        let SelectionKey { ranks, bytes, element, site, .. } = *case;
        let hold = |holds: bool, why: &dyn Fn() -> String| if holds { Ok(()) } else { Err(why()) };
        let is = |holds: bool, why: &str| if holds { Ok(()) } else { Err(why.to_owned()) };
        match self {
            Requirement::Commutes => is(case.commutes, "the operator does not commute"),
            Requirement::Together(most) => {
                is(site.same_node, "the ranks do not share memory")?;
                hold(ranks <= most, &|| format!("{ranks} ranks: at most {most}"))
            }
            Requirement::Two => hold(ranks == 2, &|| format!("{ranks} ranks: it takes 2")),
            Requirement::Many => {
                hold(ranks > 2, &|| format!("{ranks} ranks: it takes more than 2"))
            }
            // Who has not heard asks, and does without if need be.
            Requirement::Direct => {
                is(site.near.direct != Some(false), "a rank may not read another's own memory")
            }
            Requirement::AtMost(most) => {
                hold(bytes <= most, &|| format!("{bytes} bytes: at most {most}"))
            }
            Requirement::BlocksAtMost(most) => hold(bytes.saturating_mul(ranks) <= most, &|| {
                format!("{ranks} blocks of {bytes} bytes: together at most {most}")
            }),
            Requirement::ElementAtMost(most) => {
                hold(element <= most, &|| format!("elements of {element} bytes: at most {most}"))
            }
            Requirement::ElementEach => hold(bytes >= ranks * element.max(1), &|| {
                format!(
                    "{bytes} bytes are fewer than one element of {element} for each of {ranks} ranks"
                )
            }),
            Requirement::EqualBlocks => is(case.equal, "the blocks differ in length"),
            Requirement::PowerOfTwo => {
                hold(ranks.is_power_of_two(), &|| format!("{ranks} ranks: no power of two"))
            }
            Requirement::Even => {
                hold(ranks.is_multiple_of(2), &|| format!("{ranks} ranks: an odd number"))
            }
            Requirement::Multicast => is(site.multicast > 0, "this network has no multicast"),
            Requirement::SameArithmeticOfTwo if ranks > 2 => Ok(()),
            Requirement::SameArithmetic | Requirement::SameArithmeticOfTwo => {
                is(site.same_arithmetic, "the ranks differ in arithmetic")
            }
            Requirement::Atomics => {
                is(site.atomics, "some rank's adapter does no atomic operations")
            }
            Requirement::Nodes => is(
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
        // Computed so that all ranks get the same time, and choose the same algorithm.
        Some(in_usual_arithmetic(|| time(case, model))).filter(|time| time.is_finite())
    }

    /// With the parameter that it has if none is given.
    pub fn usual(&'static self) -> AlgorithmChoice {
        AlgorithmChoice { algorithm: self, parameter: self.parameter.map_or(0, |p| p.default) }
    }
}

/// An algorithm and its parameter (0 where it has none).
#[derive(Debug, Clone, Copy)]
pub struct AlgorithmChoice {
    /// An entry of the catalogue.
    pub algorithm: &'static Algorithm,
    /// Within the algorithm's range, in the unit of [`AlgorithmParameter::what`].
    pub parameter: usize,
}

impl PartialEq for AlgorithmChoice {
    fn eq(&self, other: &AlgorithmChoice) -> bool {
        std::ptr::eq(self.algorithm, other.algorithm) && self.parameter == other.parameter
    }
}

impl Eq for AlgorithmChoice {}

impl fmt::Display for AlgorithmChoice {
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
