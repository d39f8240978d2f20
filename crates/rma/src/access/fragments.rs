//! Posts of one operation: whole or in fragments, over one rail or several ([`weft_channel::rails`]), and
//! their completion.

use super::in_flight::{Issued, IssuedOperation, WindowFlights};
use crate::control::layout::RAILS;
use crate::memory::target_address::{TargetAddress, TargetReach};
use weft_channel::rails::{FragmentEnds, StripedOperation};
use weft_fabric::{
    Completion, CounterTarget, Fabric, FabricExt, Fault, RdmaDirection, RemoteAddr, RemoteRead,
    RemoteWrite, Sge,
};
use weft_process::{Buffer, BufferPiece, Error};

/// Counter of an operation that may end after its call has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationCounter {
    /// A separate counter, because the library must act at the end of the operation.
    Own,
    /// The common counter of all operations on the rank.
    OfRank,
}

impl OperationCounter {
    /// Returns the counter for an operation that uses `piece`. An operation with staging memory has a separate counter, because
    /// this memory is given back or unpacked at the end of the operation.
    pub fn of(piece: &BufferPiece) -> OperationCounter {
        match piece.staging {
            Some(_) => OperationCounter::Own,
            None => OperationCounter::OfRank,
        }
    }
}

/// The posts of one operation.
pub struct PostedFragments<'w, F: Fabric> {
    in_flight: &'w WindowFlights<F>,
    rank: usize,
    peer: usize,
    /// True if operations are complete when they are posted.
    pub over: bool,
    rails: usize,
    /// Separate counters of the operation. If there are none, the operation uses the counter of the rank.
    ends: FragmentEnds,
}

impl<'w, F: Fabric> PostedFragments<'w, F> {
    /// Starts the posts of an operation. Operations that may use several rails always have separate counters.
    pub fn new(
        in_flight: &'w WindowFlights<F>,
        place: &TargetAddress,
        rank: usize,
        counter: OperationCounter,
    ) -> PostedFragments<'w, F> {
        let (over, rails) = match place.reach {
            TargetReach::Direct { synchronous, rails } => (synchronous, rails),
            _ => (true, 1),
        };
        let mut posts = PostedFragments {
            in_flight,
            rank,
            peer: place.peer,
            over,
            rails,
            ends: FragmentEnds::new(),
        };
        if (counter == OperationCounter::Own || rails > 1) && !over {
            posts.add_counter();
        }
        posts
    }

    fn fabric(&self) -> &'w F {
        self.in_flight.core().fabric()
    }

    /// Adds a counter for the posts of the operation.
    fn add_counter(&mut self) {
        let counters = self.fabric().counters();
        self.ends.push(CounterTarget::new(counters, counters.allocate()));
    }

    /// Posts one part, which advances the operation's counter by one.
    pub fn post(&mut self, f: impl FnOnce(Completion) -> Result<(), Fault>) -> Result<(), Fault> {
        if self.over {
            return f(None);
        }
        if let Some(end) = self.ends.last_mut() {
            return f(end.one_more());
        }
        f(Some(self.in_flight.one_more(self.rank)))
    }

    pub fn write(&mut self, from: Sge, to: RemoteAddr) -> Result<(), Fault> {
        let (fabric, peer) = (self.fabric(), self.peer);
        self.spread(RdmaDirection::Write, from, to, |rail, from, to, done| {
            fabric.write_over(rail, peer, &RemoteWrite::new(from, to, done))
        })
    }

    pub fn read(&mut self, into: Sge, from: RemoteAddr) -> Result<(), Fault> {
        let (fabric, peer) = (self.fabric(), self.peer);
        if !self.over {
            self.in_flight.note_read(self.rank);
        }
        self.spread(RdmaDirection::Read, into, from, |rail, into, from, done| {
            fabric.read_over(rail, peer, &RemoteRead::new(into, from, done))
        })
    }

    pub fn transfer(
        &mut self,
        way: RdmaDirection,
        here: Sge,
        there: RemoteAddr,
    ) -> Result<(), Fault> {
        match way {
            RdmaDirection::Write => self.write(here, there),
            RdmaDirection::Read => self.read(here, there),
        }
    }

    /// Posts a piece on one rail, or its fragments on several rails.
    fn spread(
        &mut self,
        way: RdmaDirection,
        here: Sge,
        there: RemoteAddr,
        post: impl Fn(usize, Sge, RemoteAddr, Completion) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        if self.rails < 2 {
            self.used(way, 0);
            return self.post(|done| post(0, here, there, done));
        }
        let (fabric, rails) = (self.fabric(), self.in_flight.core().endpoint().rails());
        let peer = self.peer;
        let works = |rail: usize| fabric.rail_works(rail, peer);
        if !rails.fragments(way, here.len()) {
            let rail = rails.next(way, self.rails, works);
            self.used(way, rail);
            return self.post(|done| post(rail, here, there, done));
        }
        (0..self.rails).for_each(|rail| self.used(way, rail));
        let operation = StripedOperation { way, peer, rails: self.rails, here, there };
        rails.stripe(fabric, &operation, &mut self.ends)
    }

    #[inline]
    fn used(&self, way: RdmaDirection, rail: usize) {
        if way == RdmaDirection::Write && !self.over {
            self.in_flight.uses_rail(self.rank, rail, RAILS);
        }
    }

    /// Keeps the posted operation until it is complete. Then unpacks the data of `piece` into `unpack`.
    pub fn keep(self, piece: Option<BufferPiece>, unpack: Option<Buffer>) -> Issued {
        if self.over {
            return Issued::OVER;
        }
        let piece = piece.filter(|piece| piece.staging.is_some());
        let unpack = unpack.filter(|_| piece.is_some());
        self.in_flight.keep(self.rank, IssuedOperation { ends: self.ends, piece, unpack })
    }

    /// Waits until the posted operation is complete. The operation must have separate counters.
    pub async fn wait(self) -> Result<(), Error> {
        let counters = self.fabric().counters();
        for end in &self.ends {
            while !end.has_come(counters) {
                self.in_flight.until(end.counter, end.value).await?;
            }
        }
        self.ends.iter().for_each(|end| counters.free(end.counter));
        Ok(())
    }
}
