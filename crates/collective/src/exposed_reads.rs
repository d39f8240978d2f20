//! Memory that all ranks expose to each other for one operation, and read from.
//!
//! ```text
//!   1  register, and send the address to all ranks (32 bytes a rank, doubling)    if some rank could not, no rank reads
//!   2  read, a maximum number of reads at once, over all rails
//!   3  barrier: no rank reads any more
//! ```
//! A rendezvous sends an address and a completion for each message. Here all ranks exchange both once for all blocks.

use crate::allgather::allgather_bruck::bruck;
use crate::barrier::dissemination::dissemination;
use crate::members::all_reach_memory;
use crate::{BlockList, CommView, words};
use std::collections::VecDeque;
use weft_channel::rails::{FragmentEnds, StripedOperation};
use weft_fabric::{
    CounterTarget, Fabric, FabricExt, Fault, RdmaDirection, Region, RemoteAddr, RemoteRead, Sge,
};

/// The exposed memory of all ranks.
pub(crate) struct Reads<'l, F: Fabric> {
    link: &'l CommView<F>,
    /// Registrations of this rank: the memory that other ranks read, and the memory into which this rank reads.
    regions: Vec<Region>,
    /// Addresses, by rank.
    at: Vec<RemoteAddr>,
    most: usize,
    under_way: VecDeque<FragmentEnds>,
}

impl<F: Fabric> Drop for Reads<'_, F> {
    fn drop(&mut self) {
        let fabric = self.link.endpoint.fabric();
        self.regions.drain(..).for_each(|region| fabric.withdraw(region));
    }
}

/// Number of words of a rank's record: the address, and a word that is 1 if the rank could expose its memory and reaches all ranks.
const WORDS: usize = RemoteAddr::WORDS + 1;
const RECORD: usize = 8 * WORDS;

impl<'l, F: Fabric> Reads<'l, F> {
    /// Exposes `memory` to all ranks, and prepares to read parts into `into` with up to `most` reads under way. If some rank could
    /// not expose its memory, returns `None`, and no rank reads. All ranks must call this function.
    pub async fn begin(
        link: &'l CommView<F>,
        memory: Sge,
        into: Sge,
        most: usize,
    ) -> Result<Option<Reads<'l, F>>, Fault> {
        let fabric = link.endpoint.fabric();
        let reaches = all_reach_memory(fabric, &link.members);
        // If memory cannot be registered now, this rank reports the failure to the other ranks, and no error is returned.
        let region = if reaches { fabric.expose(memory).ok() } else { None };
        let at = region.as_ref().map_or(RemoteAddr::default(), |region| region.remote);
        let room = link.stage(RECORD * link.size());
        let records = BlockList::of(room.sge(), (0..link.size()).map(|_| RECORD));
        let words = at.words().into_iter().chain([u64::from(region.is_some())]);
        words::write(words, records.block(link.rank));
        let (at, under_way) = (Vec::with_capacity(link.size()), VecDeque::new());
        let regions = region.into_iter().collect();
        let mut reads = Reads { link, regions, at, most: most.max(1), under_way };
        bruck(link, &records).await?;
        if !records.iter().all(|record| words::read(record, WORDS - 1) == 1) {
            return Ok(None);
        }
        reads.at.extend(records.iter().map(words::read_addr));
        // One registration serves all reads. Otherwise each read would need a separate registration.
        reads.regions.extend(fabric.prepare(into, RdmaDirection::Read).unwrap_or_default());
        Ok(Some(reads))
    }

    /// Reads `into.len()` bytes from byte `offset` of the memory of `rank`. Waits while the maximum number of reads is under way.
    pub async fn read(&mut self, rank: usize, offset: usize, into: Sge) -> Result<(), Fault> {
        while self.under_way.len() >= self.most {
            self.first_over().await?;
        }
        let endpoint = &self.link.endpoint;
        let (fabric, rails) = (endpoint.fabric(), endpoint.rails());
        let peer = self.link.members[rank] as usize;
        let from = self.at[rank].offset(offset as u64);
        let count = fabric.capabilities(peer).rails;
        let mut ends = FragmentEnds::new();
        let posted = if count > 1 && rails.fragments(RdmaDirection::Read, into.len()) {
            let way = RdmaDirection::Read;
            let read = StripedOperation { way, peer, rails: count, here: into, there: from };
            rails.stripe(fabric, &read, &mut ends)
        } else {
            let counters = fabric.counters();
            let mut end = CounterTarget::new(counters, counters.allocate());
            let done = end.one_more();
            ends.push(end);
            let rail = rails.next(RdmaDirection::Read, count, |rail| fabric.rail_works(rail, peer));
            fabric.read_over(rail, peer, &RemoteRead::new(into, from, done))
        };
        self.under_way.push_back(ends);
        posted
    }

    async fn first_over(&mut self) -> Result<(), Fault> {
        let Some(ends) = self.under_way.pop_front() else { return Ok(()) };
        let endpoint = &self.link.endpoint;
        for &CounterTarget { counter, value } in &ends {
            endpoint.until(counter, value).await?;
        }
        let fabric = endpoint.fabric();
        endpoint.rails().observe(fabric.counters(), fabric.now());
        ends.into_iter().for_each(|end| fabric.counters().free(end.counter));
        Ok(())
    }

    /// Waits for all own reads, and until no rank reads this rank's memory any more.
    pub async fn end(mut self) -> Result<(), Fault> {
        while !self.under_way.is_empty() {
            self.first_over().await?;
        }
        dissemination(self.link).await
    }
}
