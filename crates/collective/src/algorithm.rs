//! Description of an algorithm: its name, origin, requirements and parameter. The catalogue lists the algorithms.

mod method;

pub use crate::carrier::Carrier;
use crate::costs::{CallCosts, CostFunction};
use crate::operation::CollectiveKind;
use crate::selection_key::SelectionKey;
pub use method::Method;
use std::fmt;
use weft_fabric::CopyModel;
use weft_fabric::arithmetic::in_usual_arithmetic;

/// A number that may follow an algorithm's name: `RGM:7`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlgorithmParameter {
    /// Meaning of the number: `fan-in`, `radix`, `segment in bytes`.
    pub what: &'static str,
    /// Value if the name comes without a number.
    pub default: usize,
    /// Minimum value.
    pub least: usize,
    /// Maximum value.
    pub most: usize,
    /// Restriction of the values within the range.
    pub only: Only,
}

/// Restriction of a parameter's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Only {
    /// All values of the range.
    All,
    /// 2^k - 1.
    OneLessThanPowers,
}

/// Condition under which an algorithm is eligible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requirement {
    /// The operator commutes.
    Commutes,
    /// All ranks share memory, and there are at most this many ranks.
    Together(usize),
    /// Two ranks.
    Two,
    /// More than two ranks.
    Many,
    /// All ranks can access each other's private memory.
    Direct,
    /// Maximum number of bytes.
    AtMost(usize),
    /// Maximum number of bytes of all ranks' blocks together.
    BlocksAtMost(usize),
    /// Maximum size of an element, in bytes.
    ElementAtMost(usize),
    /// At least as many elements as ranks.
    ElementEach,
    /// Blocks of the same length.
    EqualBlocks,
    /// The number of ranks is a power of two.
    PowerOfTwo,
    /// The number of ranks is even.
    Even,
    /// The network has multicast.
    Multicast,
    /// All ranks compute with the same arithmetic.
    SameArithmetic,
    /// More than two ranks, or two ranks with the same arithmetic. If there are two ranks, each rank computes the result itself.
    SameArithmeticOfTwo,
    /// All ranks' adapters support atomic operations.
    Atomics,
    /// Several nodes, at least one of which has several ranks.
    Nodes,
    /// All ranks share memory and stay on known processors in several caches, NUMA domains or sockets, at least one of which has
    /// several ranks.
    Levels,
    /// The caches, NUMA domains or sockets of [`Requirement::Levels`] have the same number of ranks.
    EvenLevels,
}

/// Default radix of algorithms that have a radix.
pub const DEFAULT_RADIX: usize = 4;

/// Default number of messages or reads that are under way at once.
pub const DEFAULT_AT_ONCE: usize = 16;

/// Algorithm for one operation.
#[derive(Debug, Clone, Copy)]
pub struct Algorithm {
    /// Operation that the algorithm serves. The same name may mean a different algorithm in a different operation.
    pub operation: CollectiveKind,
    /// Name of the algorithm in its source.
    pub name: &'static str,
    /// Method, independent of the carrier.
    pub method: Method,
    /// Carrier of the data.
    pub carrier: Carrier,
    /// Parameter that may follow the name; `None` if the name takes no number.
    pub parameter: Option<AlgorithmParameter>,
    /// Requirements, all of which must hold. The first requirement that does not hold is reported to the user.
    pub needs: &'static [Requirement],
    /// True if the algorithm may serve calls for which no map has a line. The first such algorithm that is eligible serves these
    /// calls.
    pub usual: bool,
    /// Description in one line, with the source.
    pub about: &'static str,
    /// Number of rounds, or of messages.
    pub cost: &'static str,
    /// Predicted time among ranks that share memory, by the model of copies. If no map has an entry for a call among such ranks,
    /// the algorithm with the lowest predicted time serves the call.
    pub time: Option<CostFunction>,
}

impl Requirement {
    /// Checks that the requirement holds for `case`. If not, the error gives the reason.
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
            // If it is not known yet whether ranks can access each other's memory, the algorithm itself asks the ranks, and falls
            // back if necessary.
            Requirement::Direct => {
                is(site.direct() != Some(false), "a rank may not read another's own memory")
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
            Requirement::EvenLevels => is(
                site.levels.first().is_some_and(|step| step.even),
                "the numbers of ranks in the caches, NUMA domains or sockets differ",
            ),
            Requirement::Levels => is(
                site.same_node && site.levels.first().is_some(),
                "it takes ranks bound to several caches, NUMA domains or sockets, one of them with several ranks",
            ),
        }
    }
}

impl Algorithm {
    /// Checks that the algorithm may serve `case`. If not, the error gives the reason.
    pub fn eligible(&self, case: &SelectionKey) -> Result<(), String> {
        self.needs.iter().try_for_each(|need| need.check(case))
    }

    /// Returns true if the ranks wait for each other in shared memory, without messages. A rank that computes then delays the other
    /// ranks.
    pub fn meets(&self) -> bool {
        self.carrier == Carrier::Memory && self.method != Method::Central
            || self.method.is_composition_of_node()
    }

    /// Returns the reason if a choice by predicted times leaves the algorithm out. Such a time is for comparisons only,
    /// because the carrier has never been measured among ranks that share memory.
    pub fn left_out(&self) -> Option<&'static str> {
        match self.carrier {
            Carrier::Memory | Carrier::Messages | Carrier::Hierarchy => None,
            Carrier::Streams => Some("streams are not measured on this node"),
            Carrier::Writes | Carrier::Immediates => Some("writes are not measured on this node"),
            Carrier::Atomics => Some("atomic operations are not measured on this node"),
            Carrier::Reads => Some("reads of exposed memory are not measured on this node"),
        }
    }

    /// Returns true if a choice by predicted times may take the algorithm.
    pub(crate) fn competes(&self) -> bool {
        self.left_out().is_none()
    }

    /// Returns the predicted time in nanoseconds, if the model of copies predicts a time. The model only covers ranks that share
    /// memory.
    pub fn predicted(&self, case: &SelectionKey, model: &CopyModel) -> Option<f64> {
        // Only ranks at known places in several caches have times of streams, and of operations of adapters.
        let is_known = || self.competes() || case.site.levels.at_difference(1.0).is_some();
        let time = self.time.filter(|_| case.site.same_node && is_known())?;
        // The arithmetic gives the same time on all ranks, so that all ranks choose the same algorithm.
        let predicted = || time(&CallCosts::of(case, model).over(self.carrier), case.bytes as f64);
        Some(in_usual_arithmetic(predicted)).filter(|time| time.is_finite())
    }

    /// Returns the algorithm with the default value of its parameter.
    pub fn usual(&'static self) -> AlgorithmChoice {
        AlgorithmChoice { algorithm: self, parameter: self.parameter.map_or(0, |p| p.default) }
    }
}

/// An algorithm and its parameter (0 if it has none).
#[derive(Debug, Clone, Copy)]
pub struct AlgorithmChoice {
    /// An entry of the catalogue.
    pub algorithm: &'static Algorithm,
    /// Value within the algorithm's range, in the unit of [`AlgorithmParameter::what`].
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
