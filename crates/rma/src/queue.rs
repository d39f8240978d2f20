//! Operations that are queued until their epoch's synchronization issues them: all of them in an epoch of
//! Fence-2S; puts and gets on a network where a program asks for both directions of it at once.
//!
//! ```text
//!   as called      put put put put get get get get      puts fill one direction, then gets the other
//!   in turns       put get put get put get put get      both at once: the document's reordering
//! ```
//! Source: Vishnu et al. 2005, section 3.2 ("reordering" at the direct one-sided layer) and figures 16 to 19.
//! MPI orders nothing within an epoch, but accumulates, which are never reordered.

use crate::Window;
use crate::accumulate::Packed;
use crate::fence::Design;
use crate::place::{Reach, TargetAddress, TargetLocation};
use crate::target::Access;
use crate::transfer::Issued;
use weft_datatype::{Basic, Op, Type};
use weft_fabric::{Fabric, Sge};
use weft_process::{Buffer, Error, Piece};

/// When puts and gets are issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Order {
    /// As they are called.
    #[default]
    Called,
    /// Puts and gets in turns, when the epoch is synchronized.
    Turns,
}

impl std::str::FromStr for Order {
    type Err = ();

    fn from_str(name: &str) -> Result<Order, ()> {
        match name.to_ascii_lowercase().as_str() {
            "called" => Ok(Order::Called),
            "turns" => Ok(Order::Turns),
            _ => Err(()),
        }
    }
}

/// What a queued operation does.
#[derive(Clone)]
pub enum Wanted {
    Put(Buffer),
    Get(Buffer),
    Reduce { op: Op, basic: Basic, origin: Option<Buffer>, result: Option<Buffer> },
    Swap { basic: Basic, compare: Buffer, new: Buffer, result: Option<Buffer> },
}

/// An operation that waits to be issued.
pub struct Queued {
    pub place: TargetAddress,
    rank: usize,
    disp: i64,
    count: usize,
    ty: Type,
    pub wanted: Wanted,
}

impl Queued {
    pub fn location(&self) -> TargetLocation<'_> {
        TargetLocation { rank: self.rank, disp: self.disp, count: self.count, ty: &self.ty }
    }

    /// Where what it returns goes in the end.
    pub fn result(&self) -> Option<&Buffer> {
        match &self.wanted {
            Wanted::Put(_) => None,
            Wanted::Get(origin) => Some(origin),
            Wanted::Reduce { result, .. } | Wanted::Swap { result, .. } => result.as_ref(),
        }
    }

    /// The data that it brings, packed.
    pub fn pieces(&self, pool: &weft_fabric::StagingPool) -> [Option<Piece>; 2] {
        let piece = |buffer: &Buffer| Some(buffer.readable(pool));
        match &self.wanted {
            Wanted::Put(origin) => [piece(origin), None],
            Wanted::Get(_) => [None, None],
            Wanted::Reduce { origin, .. } => [origin.as_ref().and_then(piece), None],
            Wanted::Swap { compare, new, .. } => [piece(compare), piece(new)],
        }
    }

    pub fn wish(&self, pieces: &[Option<Piece>; 2]) -> crate::request::RmaRequest {
        use crate::request::RmaRequest;
        let [first, second] = [0, 1].map(|i| pieces[i].as_ref().map_or(Sge::EMPTY, |p| p.sge));
        match self.wanted {
            Wanted::Put(_) => RmaRequest::Put(first),
            Wanted::Get(_) => RmaRequest::Get,
            Wanted::Reduce { op, basic, .. } => {
                RmaRequest::Change(Packed::Reduce { op, origin: first }, basic)
            }
            Wanted::Swap { basic, .. } => {
                RmaRequest::Change(Packed::Swap { compare: first, new: second }, basic)
            }
        }
    }
}

impl<F: Fabric> Window<F> {
    /// Whether the epoch of an operation on a rank is a fence's.
    pub(crate) fn is_of_fence(&self, rank: usize) -> bool {
        self.targets[rank].access.get() == Access::None && self.epochs.all.get().is_none()
    }

    /// Whether a fence issues the operations on a rank that are called now.
    pub(crate) fn is_for_fence(&self, rank: usize) -> bool {
        self.options.fence == Design::TwoSided && self.is_of_fence(rank)
    }

    /// Whether a put or get waits for its synchronization.
    pub(crate) fn is_queued(&self, place: &TargetAddress, rank: usize) -> bool {
        let turns = self.options.order == Order::Turns;
        turns && matches!(place.reach, Reach::Direct { synchronous: false, .. })
            || self.is_for_fence(rank)
    }

    pub(crate) fn queue(
        &self,
        place: TargetAddress,
        location: &TargetLocation,
        wanted: Wanted,
    ) -> Issued {
        self.touch(location.rank);
        let TargetLocation { rank, disp, count, ty } = *location;
        let ty = ty.clone();
        let queued = Queued { place, rank, disp, count, ty, wanted };
        self.targets[rank].queue.borrow_mut().push(queued);
        match self.is_for_fence(rank) {
            true => Issued::OVER,
            false => Issued::with_all(rank),
        }
    }

    /// Issues the puts and gets that wait at a rank, in turns.
    pub(crate) fn issue_queued(&self, rank: usize) -> Result<(), Error> {
        let queue = std::mem::take(&mut *self.targets[rank].queue.borrow_mut());
        if queue.is_empty() {
            return Ok(());
        }
        let (puts, gets): (Vec<_>, Vec<_>) =
            queue.into_iter().partition(|queued| matches!(queued.wanted, Wanted::Put(_)));
        let (mut puts, mut gets) = (puts.into_iter(), gets.into_iter());
        loop {
            let (put, get) = (puts.next(), gets.next());
            if put.is_none() && get.is_none() {
                return Ok(());
            }
            for queued in put.iter().chain(&get) {
                match &queued.wanted {
                    Wanted::Put(origin) => {
                        self.post_put(&queued.place, &queued.location(), origin)?
                    }
                    Wanted::Get(origin) => {
                        self.post_get(&queued.place, &queued.location(), origin)?
                    }
                    _ => unreachable!("accumulates are queued for fences alone"),
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_have_names() {
        assert_eq!("turns".parse(), Ok(Order::Turns));
        assert_eq!("Called".parse(), Ok(Order::Called));
        assert!("never".parse::<Order>().is_err());
    }
}
