//! Grants: memory for the next pieces of a message. Segments get places, and blocks get the program's memory.

use super::Mode;
use super::core::{StreamCore, piece, pieces};
use super::pool::{CHUNK, PlaceOwner};
use super::records::{Landing, StreamReceive};
use super::wire::{Note, PLACES, STANDING, StreamKind, StreamMessage, pack};
use crate::message::MessageOutcome;
use weft_fabric::{Fabric, FabricExt};

impl StreamCore {
    /// Requests the next memory of a receive, and counts the receive if the receive begins to wait.
    pub(super) fn want<F: Fabric>(&mut self, fabric: &F, index: u32) {
        let waits = self.want_again(fabric, index);
        self.counts.hungry += u64::from(waits);
    }

    /// Requests the next memory of a receive, places or blocks. Returns true if the receive joins the receives that wait.
    fn want_again<F: Fabric>(&mut self, fabric: &F, index: u32) -> bool {
        match self.receives[index].mode {
            Mode::Blocks => self.want_blocks(fabric, index),
            _ => self.want_segments(fabric, index),
        }
        let receive = &mut self.receives[index];
        let starves = receive.landings.is_empty() && receive.drained < receive.pieces;
        let joins = starves && !receive.hungry;
        if joins {
            receive.hungry = true;
            self.hungry.push_back(index);
        }
        joins
    }

    fn want_segments<F: Fabric>(&mut self, fabric: &F, index: u32) {
        let receive = &self.receives[index];
        let left = receive.pieces - receive.granted;
        let room = self.sizes.window.saturating_sub(receive.landings.len());
        let batch = PLACES.min(self.sizes.window.div_ceil(2));
        // Places are granted in batches, not with one head for each place.
        if left == 0 || room < batch.min(left) {
            return;
        }
        let (peer, remote) = (receive.peer as usize, receive.remote);
        let mut wanted = left.min(room);
        if receive.idle {
            wanted = wanted.min(self.places.spare(&self.sizes));
        }
        while wanted > 0 {
            let (numbers, count) =
                self.grant(fabric, peer, remote, wanted.min(PLACES), PlaceOwner::Landing);
            for &place in &numbers[..count] {
                self.receives[index]
                    .landings
                    .push_back(Landing::SegmentSlot { place, stood: false });
            }
            self.receives[index].granted += count;
            wanted -= count;
            if count == 0 {
                return;
            }
        }
    }

    /// Grants up to `most` places, as many as are available. Returns the numbers of the granted places, and their count.
    fn grant<F: Fabric>(
        &mut self,
        fabric: &F,
        peer: usize,
        request: u32,
        most: usize,
        state: PlaceOwner,
    ) -> ([u16; PLACES], usize) {
        let stamp = self.next_stamp();
        let mut numbers = [0; PLACES];
        let mut count = 0;
        while count < most {
            match self.places.take(fabric, &self.sizes) {
                Ok(Some(place)) => {
                    self.places.assign(place, state, stamp);
                    self.introduce(fabric, peer, usize::from(place) / CHUNK);
                    numbers[count] = place;
                    count += 1;
                }
                Ok(None) => break,
                Err(fault) => {
                    self.fail(fault);
                    break;
                }
            }
        }
        if count > 0 {
            let note = Note::new(StreamKind::Grant, request, pack(&numbers[..count]), stamp);
            Note { count: count as u8, ..note }.send(fabric, peer, &[]);
            self.counts.grants += 1;
        }
        (numbers, count)
    }

    /// Sends a peer the address of a chunk, once.
    fn introduce<F: Fabric>(&mut self, fabric: &F, peer: usize, chunk: usize) {
        let address = self.places.chunk(chunk);
        let segment = self.sizes.segment as u64;
        let entry = self.peer(fabric, peer);
        if entry.knows >> chunk & 1 == 0 {
            entry.knows |= 1 << chunk;
            Note::new(StreamKind::Chunk, 0, chunk as u64, segment).send(
                fabric,
                peer,
                &address.words(),
            );
        }
    }

    /// Grants places in advance for a peer's next message. Half of all places are reserved for posted receives whose senders have
    /// the payload, and are not granted here.
    pub(super) fn stand<F: Fabric>(&mut self, fabric: &F, peer: usize) {
        let most = self.sizes.allowance.min(PLACES);
        let given = self.peer(fabric, peer).given;
        let count = most.saturating_sub(given).min(self.places.spare(&self.sizes));
        // Places are granted in batches, not with one head for each place.
        if 2 * count >= most && count > 0 {
            let state = PlaceOwner::Standing(peer as u32);
            let (_, count) = self.grant(fabric, peer, STANDING, count, state);
            self.peer(fabric, peer).given += count;
        }
    }

    /// Handles the notice that a relaying sender now has its payload.
    pub fn on_ready<F: Fabric>(&mut self, fabric: &F, message: StreamMessage) -> MessageOutcome {
        let StreamMessage { peer, note, .. } = message;
        let named = |r: &StreamReceive| {
            r.live && r.mode != Mode::Small && (r.peer as usize, r.remote) == (peer, note.low)
        };
        // Segments may overtake this notice. If the receive is already complete, there is nothing to do.
        let Some(index) = self.receives.iter().position(named) else { return Ok(()) };
        let index = index as u32;
        self.receives[index].idle = false;
        if self.active.contains(&index) && !self.receives[index].hungry {
            self.want(fabric, index);
        }
        Ok(())
    }

    fn want_blocks<F: Fabric>(&mut self, fabric: &F, index: u32) {
        loop {
            let receive = &self.receives[index];
            if receive.converts {
                break;
            }
            if receive.landings.len() >= self.sizes.blocks || receive.granted == receive.pieces {
                return;
            }
            if receive.idle && self.flags.left(&self.sizes) <= self.sizes.flags / 2 {
                return;
            }
            let flag = match self.flags.take(fabric, &self.sizes) {
                Ok(Some(flag)) => flag,
                Ok(None) => return,
                Err(fault) => return self.fail(fault),
            };
            let stamp = self.next_stamp();
            let receive = &mut self.receives[index];
            let (offset, len) = piece(0, receive.unit, receive.granted, receive.len);
            let part = receive.buffer.part(offset, len);
            let Ok(region) = fabric.expose_to_writers(part) else {
                self.flags.give(flag);
                receive.converts = true;
                break;
            };
            let number = receive.granted as u64 | u64::from(index) << 32;
            receive.granted += 1;
            receive.landings.push_back(Landing::Block { flag, stamp, region });
            let mut words = [0; 8];
            words[..4].copy_from_slice(&region.remote.words());
            words[4..].copy_from_slice(&self.flags.remote(flag).words());
            let note = Note::new(StreamKind::Address, receive.remote, stamp, number);
            note.send(fabric, receive.peer as usize, &words);
        }
        self.convert(fabric, index);
    }

    /// Switches the rest of the message to segments, once no block is under way.
    fn convert<F: Fabric>(&mut self, fabric: &F, index: u32) {
        let receive = &mut self.receives[index];
        if !receive.landings.is_empty() {
            return;
        }
        receive.base = receive.drained * receive.unit;
        receive.mode = Mode::Segments;
        receive.unit = self.sizes.segment;
        receive.pieces = pieces(receive.len - receive.base, receive.unit);
        (receive.granted, receive.drained) = (0, 0);
        let note = Note::new(StreamKind::Convert, receive.remote, receive.base as u64, 0);
        note.send(fabric, receive.peer as usize, &[]);
        self.want_segments(fabric, index);
    }

    /// Handles the refusal of a block: the sender could not write it, and will not write the blocks after it.
    pub fn on_unable<F: Fabric>(&mut self, fabric: &F, message: StreamMessage) -> MessageOutcome {
        let StreamMessage { peer, note, .. } = message;
        const WHAT: &str = "refusal of a block";
        if self.receives.get(note.low).is_none() || !self.active.contains(&note.low) {
            return Err(WHAT);
        }
        let receive = &mut self.receives[note.low];
        let first = note.first as usize;
        if receive.peer != peer as u32
            || receive.mode != Mode::Blocks
            || !(receive.drained..receive.granted).contains(&first)
        {
            return Err(WHAT);
        }
        while receive.granted > first {
            receive.granted -= 1;
            if let Some(Landing::Block { flag, region, .. }) = receive.landings.pop_back() {
                fabric.withdraw(region);
                self.flags.give(flag);
            }
        }
        receive.converts = true;
        if !self.drain(fabric, note.low) {
            self.want(fabric, note.low);
        }
        Ok(())
    }

    /// Grants places to the receives that have none, in the order in which they began to wait. A receive that gets no place stays
    /// in line, but does not block the receives behind it.
    pub fn feed<F: Fabric>(&mut self, fabric: &F) {
        for _ in 0..self.hungry.len() {
            let Some(index) = self.hungry.pop_front() else { break };
            self.receives[index].hungry = false;
            self.want_again(fabric, index);
        }
    }
}
