//! Accumulates (MPI 5.0, section 12.3.4): each element is updated atomically.
//!
//! ```text
//!   single     one word: the processor updates it atomically                  (one node, memory of the fabric)
//!   whole      several words: one exclusion, and a vectorised reduction       (one node, memory of the fabric)
//!   adapters   adapters update integers of 8 bytes: [`super::adapter_atomics`] (between nodes, memory of the fabric)
//!   alone      reduced without exclusion                                      (the lock is held exclusively)
//!   guarded    the rank's guard is taken, the data read, reduced, written back, the guard given back
//!   target-assisted  as whole or guarded, by the rank's own process
//! ```
//! Between nodes the guard costs six round trips per operation, for any number of elements. The protocol is chosen by
//! [`super::accumulate_protocol`]. The protocols that different origins use for the same element exclude each other, because all
//! origins find the same domain ([`TargetAddress::domain`], the element's type and place). An accumulate is complete when the call
//! returns. So accumulates of one origin are ordered, as MPI requires unless a program waives this order. For the costs of the
//! protocols see [`AccumulateProtocol::cost`] and `weft explain accumulate`.

use super::accumulate_protocol::{self, AccumulateKey, AccumulateProtocol, Sight, is_solid};
use super::deferred::DeferredKind;
use super::in_flight::Issued;
use super::{WindowAccess, adapter_atomics};
use crate::control::packed_change::{ElementChange, PackedChange};
use crate::control::request::RmaRequest;
use crate::core::target_location::TargetLocation;
use crate::memory::target_address::{AtomicityDomain, TargetAddress, TargetReach};
use weft_datatype::{Basic, PredefinedOp};
use weft_fabric::{Fabric, FabricExt, RdmaDirection, Sge, Work};
use weft_process::{Buffer, Error, class};

/// Change of the target's elements.
#[derive(Clone)]
pub enum TargetChange<'a> {
    /// `target = origin op target`. [`PredefinedOp::NoOp`] has no origin.
    Reduce {
        /// The operator. It must be defined for the type of the target's elements.
        op: PredefinedOp,
        /// The left operands, which are only read. There are as many operands as elements at the target.
        origin: Option<&'a Buffer>,
    },
    /// The single element is replaced by `new` if it equals `compare`.
    Swap {
        /// Value that the element must have for the swap to happen.
        compare: &'a Buffer,
        /// New value of the element.
        new: &'a Buffer,
    },
}

impl<F: Fabric> WindowAccess<F> {
    /// Changes the target's elements. Their former values go to `result`, if there is one. Errors: TYPE if the target's data are
    /// not all of one predefined type, OP if the operator is not defined for the type.
    pub async fn accumulate(
        &self,
        change: TargetChange<'_>,
        result: Option<&Buffer>,
        location: &TargetLocation<'_>,
    ) -> Result<Issued, Error> {
        let pool = self.core.endpoint().staging();
        let pieces = match &change {
            TargetChange::Reduce { origin, .. } => {
                if let Some(origin) = origin {
                    self.core.same_length(origin.len(), location, "origin")?;
                }
                [origin.map(|origin| origin.readable(pool)), None]
            }
            TargetChange::Swap { compare, new } => [*compare, *new].map(|b| Some(b.readable(pool))),
        };
        if let Some(result) = result {
            self.core.same_length(result.len(), location, "result")?;
        }
        self.locks.enter(location.rank).await?;
        let place = self.memory.locate(location).await?;
        if location.is_empty() {
            return Ok(Issued::OVER);
        }
        let [first, second] =
            [&pieces[0], &pieces[1]].map(|p| p.as_ref().map_or(Sge::EMPTY, |p| p.sge));
        let packed = match &change {
            TargetChange::Reduce { op, .. } => PackedChange::Reduce { op: *op, origin: first },
            TargetChange::Swap { .. } => PackedChange::Swap { compare: first, new: second },
        };
        let basic = element(packed, location)?;
        if self.core.is_for_fence(location.rank) {
            let result = result.cloned();
            let kind = match change {
                TargetChange::Reduce { op, origin } => {
                    DeferredKind::Reduce { op, basic, origin: origin.cloned(), result }
                }
                TargetChange::Swap { compare, new } => {
                    let (compare, new) = (compare.clone(), new.clone());
                    DeferredKind::Swap { basic, compare, new, result }
                }
            };
            return Ok(self.defer(place, location, kind));
        }
        let into = result.map(|result| (result.writable(pool), result));
        let former = into.as_ref().map(|(piece, _)| piece.sge);
        match place.reach {
            _ if self.is_assisted(&place) => {
                let request = RmaRequest::Change(packed, basic);
                self.control.ask_for(place.own, location, request, former).await?;
            }
            TargetReach::Scattered => {
                self.change_scattered(location, ElementChange { basic, packed, former }).await?
            }
            _ => self.change(&place, location, ElementChange { basic, packed, former }).await?,
        }
        if let Some((piece, result)) = into {
            piece.unpack(result, location.len());
        }
        Ok(Issued::OVER)
    }

    /// Changes contiguous elements in mapped memory, in an open epoch, as a fast path. The former values go to `former`. Returns
    /// false, and does nothing, if the case needs [`WindowAccess::accumulate`].
    #[inline(always)]
    pub fn try_change(
        &self,
        packed: PackedChange,
        basic: Basic,
        former: Option<Sge>,
        rank: usize,
        memory: Sge,
    ) -> bool {
        if self.memory.domain(rank) != AtomicityDomain::Processors {
            return false;
        }
        let case = AccumulateKey {
            elements: memory.len() / basic.size(),
            solid: true,
            word: basic.is_word_at(memory.ptr()),
            adapter: false,
            sight: Sight::Mapped,
            domain: AtomicityDomain::Processors,
            alone: self.core.epochs.is_alone(rank),
        };
        let mut done = Ok(());
        let ran = match accumulate_protocol::choose(&case) {
            AccumulateProtocol::Single => {
                let Some(announced) = self.locks.announce(rank) else { return false };
                if announced.free {
                    packed.try_apply(basic, 0, memory, former);
                }
                return self.locks.recall(announced);
            }
            AccumulateProtocol::Whole => {
                self.locks.try_whole(rank, || done = packed.apply(basic, memory, former))
            }
            _ => {
                done = packed.apply(basic, memory, former);
                true
            }
        };
        ran && done.is_ok()
    }

    /// Changes elements of a target without the help of the target's process.
    pub(super) async fn change(
        &self,
        place: &TargetAddress,
        location: &TargetLocation<'_>,
        change: ElementChange,
    ) -> Result<(), Error> {
        let ElementChange { basic, packed, former } = change;
        let memory = match place.reach {
            TargetReach::Mapped(memory) => Some(memory),
            _ => None,
        };
        let rank = location.rank;
        let way = accumulate_protocol::choose(&self.case(place, location, basic, memory));
        match (way, memory) {
            (AccumulateProtocol::Adapters, _) => {
                self.change_by_adapters(place, location, change).await
            }
            (AccumulateProtocol::Single | AccumulateProtocol::Whole, Some(memory)) => {
                let single = way == AccumulateProtocol::Single;
                let announced = single.then(|| self.locks.announce(rank)).flatten();
                let done = announced.is_some_and(|announced| {
                    if announced.free {
                        each_run(place, location, memory, |skip, run| {
                            packed.try_apply(basic, skip, run, former);
                        });
                    }
                    self.locks.recall(announced)
                });
                if done {
                    return Ok(());
                }
                self.locks.whole(rank, || change_runs(place, location, memory, change)).await?
            }
            (AccumulateProtocol::Alone, Some(memory)) if is_solid(basic) => {
                change_runs(place, location, memory, change)
            }
            // Other threads of this process may be in the same epoch, so their operations take turns.
            (AccumulateProtocol::Alone, _) => {
                self.locks.one_by_one(self.change_guarded(place, location, change)).await
            }
            _ => self.locks.guarded(rank, self.change_guarded(place, location, change)).await,
        }
    }

    /// Returns true if the target's process performs the operation: either no other process can perform it, or the target's process
    /// would have to perform each step anyway.
    fn is_assisted(&self, place: &TargetAddress) -> bool {
        match place.reach {
            TargetReach::TargetAssisted => true,
            TargetReach::Direct { .. } if self.core.by_progress => {
                let guarded = place.domain == AtomicityDomain::Guarded;
                guarded && self.core.fabric().capabilities(place.peer).by_progress
            }
            _ => false,
        }
    }

    fn case(
        &self,
        place: &TargetAddress,
        location: &TargetLocation,
        basic: Basic,
        memory: Option<Sge>,
    ) -> AccumulateKey {
        let mut word = true;
        if let Some(memory) = memory {
            each_run(place, location, memory, |_, run| word &= basic.is_word_at(run.ptr()));
        }
        let sight = match place.reach {
            TargetReach::Mapped(_) => Sight::Mapped,
            TargetReach::Direct { .. } => Sight::Direct,
            TargetReach::TargetAssisted | TargetReach::Scattered => Sight::TargetAssisted,
        };
        AccumulateKey {
            elements: location.len() / basic.size(),
            solid: is_solid(basic),
            word,
            adapter: adapter_atomics::is_for(basic),
            sight,
            domain: place.domain,
            alone: self.core.epochs.is_alone(location.rank),
        }
    }

    /// Changes elements while the guard is held.
    pub(super) async fn change_guarded(
        &self,
        place: &TargetAddress,
        location: &TargetLocation<'_>,
        change: ElementChange,
    ) -> Result<(), Error> {
        let bytes = location.len();
        let elements = self.core.endpoint().staging().take(bytes);
        let elements = elements.sge();
        self.core.fabric().charge(Work::Reduce(bytes));
        if let Some(view) = place.view(location) {
            view.pack_to(elements);
            change.apply(elements)?;
            if change.packed.changes() {
                view.unpack_from(elements);
            }
            return Ok(());
        }
        self.move_all(RdmaDirection::Read, place, location, elements).await?;
        change.apply(elements)?;
        if change.packed.changes() {
            self.move_all(RdmaDirection::Write, place, location, elements).await?;
        }
        Ok(())
    }
}

/// Returns the predefined type of all elements.
fn element(change: PackedChange, location: &TargetLocation) -> Result<Basic, Error> {
    let Some(basic) = location.ty.uniform() else {
        let text = "the target datatype of an accumulate has elements of several predefined types";
        return Err(Error::new(class::TYPE, text));
    };
    if let PackedChange::Reduce { op, .. } = change {
        op.check(basic)?;
    }
    Ok(basic)
}

/// Changes contiguous elements in place.
fn change_runs(
    place: &TargetAddress,
    location: &TargetLocation,
    memory: Sge,
    change: ElementChange,
) -> Result<(), Error> {
    let mut result = Ok(());
    each_run(place, location, memory, |skip, run| {
        if result.is_ok() {
            result = change.part(skip, run.len()).apply(run);
        }
    });
    result
}

/// Calls `f` for each run of a location's data in mapped memory. `f` gets the offset of the run among the packed bytes, and the
/// run.
fn each_run(
    place: &TargetAddress,
    location: &TargetLocation,
    memory: Sge,
    mut f: impl FnMut(usize, Sge),
) {
    let mut skip = 0;
    location.ty.runs(location.count, 0, location.len(), |offset, len| {
        f(skip, memory.part((place.offset + offset) as usize, len));
        skip += len;
    });
}
