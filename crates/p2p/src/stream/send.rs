//! The sending side: small messages at once, segments into places, blocks into the receiver's memory.

use super::Mode;
use super::core::{EndedOperation, StreamCore, piece, pieces};
use super::flights::{From, StreamFlight};
use super::pool::{SegmentSlot, place_at};
use super::records::Send;
use super::wire::{
    Note, PLACES, RELAYED, STANDING, StreamKind, StreamMessage, pack, unpack, words,
};
use crate::message::{MessageOutcome, MessageTarget};
use crate::request::ProcessRequests;
use weft_fabric::{
    CounterTarget, Fabric, FabricExt, FaultCause, PostOutcome, RemoteAddr, RemoteFlag, RemoteWrite,
    Sge, Work,
};

impl StreamCore {
    /// Opens a record and a request for a send of `data`, of which the first `ready` bytes have arrived.
    fn open_send<F: Fabric>(
        &mut self,
        fabric: &F,
        requests: &mut ProcessRequests,
        to: MessageTarget,
        data: Sge,
        ready: usize,
    ) -> u32 {
        let (request, slot) = requests.open(fabric.counters());
        slot.describe(to, data);
        slot.state.open_stream_send();
        let index = self.sends.take();
        let send = &mut self.sends[index];
        let places = std::mem::take(&mut send.places);
        *send = Send { request, to, data, ready, places, live: true, ..Send::default() };
        index
    }

    /// Starts a send. Returns the request of the send, or `None` if the send is already complete.
    pub fn isend<F: Fabric>(
        &mut self,
        fabric: &F,
        requests: &mut ProcessRequests,
        to: MessageTarget,
        data: Sge,
    ) -> Option<u32> {
        if !self.takes_credit(fabric, to.peer, data.len()) {
            let index = self.open_send(fabric, requests, to, data, data.len());
            let request = self.sends[index].request;
            self.announce(fabric, index);
            return Some(request);
        }
        let end = self.send_small(fabric, to, data)?;
        let send = self.open_send(fabric, requests, to, data, data.len());
        let request = self.sends[send].request;
        self.depart(fabric, StreamFlight { end, from: From::Program, send });
        Some(request)
    }

    /// Sends a small message. If the fabric has queued the payload, returns the counter value at which the payload has left.
    fn send_small<F: Fabric>(
        &mut self,
        fabric: &F,
        to: MessageTarget,
        payload: Sge,
    ) -> Option<CounterTarget> {
        self.counts.small += 1;
        let mut end = self.flights.prepare(fabric.counters());
        let head = Note::to(StreamKind::Small, to, 0).encode();
        match fabric.send(to.peer, head, payload, end.one_more()) {
            PostOutcome::Later => Some(end),
            PostOutcome::Done => {
                self.flights.give_back(end.counter);
                None
            }
        }
    }

    /// Charges the credit if `len` bytes may go as one small message. Returns true if the credit was charged.
    fn takes_credit<F: Fabric>(&mut self, fabric: &F, peer: usize, len: usize) -> bool {
        let most = self.sizes.credit;
        self.peer(fabric, peer).takes_credit(most, len)
    }

    /// Starts to relay the payload that a receive takes into `data`. A short message is sent once it has arrived, and is charged
    /// only then. Messages behind a short message are also held back, so that no message overtakes another message.
    pub fn announce_relay<F: Fabric>(
        &mut self,
        fabric: &F,
        requests: &mut ProcessRequests,
        to: MessageTarget,
        data: Sge,
    ) -> u32 {
        let index = self.open_send(fabric, requests, to, data, 0);
        self.sends[index].fed = true;
        let entry = self.peer(fabric, to.peer);
        if data.len() > entry.small && entry.held.is_empty() {
            self.announce(fabric, index);
        } else {
            entry.held.push_back(index);
            self.sends[index].held = true;
        }
        index
    }

    /// Notes that all of a relayed message is in its buffer.
    pub fn relay_come<F: Fabric>(&mut self, fabric: &F, index: u32) {
        let send = &mut self.sends[index];
        let peer = send.to.peer;
        (send.ready, send.come) = (send.data.len(), true);
        // Other messages may have been held back behind this message.
        while let Some(&first) = self.peer(fabric, peer).held.front()
            && self.sends[first].come
        {
            self.send_held(fabric, first, self.sends[first].data);
        }
        self.push(fabric, index);
        self.settle_send(index);
        let send = &mut self.sends[index];
        send.fed = false;
        if !send.live {
            self.sends.give(index);
        }
    }

    /// Sends the first message that was held back for a peer. Sends the bytes `from` if the message is small and has credit.
    /// Otherwise announces the message, which is later sent from the program's buffer.
    pub fn send_held<F: Fabric>(&mut self, fabric: &F, index: u32, from: Sge) {
        let to = self.sends[index].to;
        let first = self.peer(fabric, to.peer).held.pop_front();
        debug_assert_eq!(first, Some(index), "in their order");
        self.sends[index].held = false;
        if !self.takes_credit(fabric, to.peer, from.len()) {
            return self.announce(fabric, index);
        }
        let send = &mut self.sends[index];
        (send.next, send.pieces) = (1, 1);
        match self.send_small(fabric, to, from) {
            Some(end) => {
                self.depart(fabric, StreamFlight { end, from: From::Program, send: index })
            }
            None => self.settle_send(index),
        }
    }

    /// Sends the early request: announces a message of several pieces, and requests the places that it needs.
    fn announce<F: Fabric>(&mut self, fabric: &F, index: u32) {
        let Send { to, ready, .. } = self.sends[index];
        let data = self.sends[index].data;
        let (segment, block, least) = (self.sizes.segment, self.sizes.block, self.sizes.rendezvous);
        let entry = self.peers.get_mut(to.peer).expect("looked up for its credit");
        let blocks = data.len() > least && entry.direct;
        let send = &mut self.sends[index];
        send.mode = if blocks { Mode::Blocks } else { Mode::Segments };
        send.unit = if blocks { block } else { segment };
        send.pieces = pieces(data.len(), send.unit);
        send.relayed = ready < data.len();
        let relayed = if send.relayed { RELAYED } else { 0 };
        let mut numbers = [0; PLACES];
        let mut count = 0;
        if blocks {
            self.counts.blocks += 1;
        } else {
            self.counts.segmented += 1;
            while count < send.pieces.min(PLACES)
                && let Some(place) = entry.standing.pop_front()
            {
                send.places.push_back(place);
                numbers[count] = entry.standing_numbers.pop_front().expect("one for each");
                count += 1;
            }
            self.counts.early += u64::from(send.pieces > count);
        }
        let note = Note {
            count: count as u8,
            mode: send.mode as u8 | relayed,
            ..Note::to(StreamKind::Open, to, index.into())
        };
        let payload = [data.len() as u64, pack(&numbers), send.unit as u64];
        note.send(fabric, to.peer, &payload);
        if blocks && !entry.synchronous {
            // The registration overlaps with the announcement.
            self.expose_ahead(fabric, index);
        }
        self.push(fabric, index);
    }

    /// Registers the next block, if its payload is here.
    fn expose_ahead<F: Fabric>(&mut self, fabric: &F, index: u32) {
        let send = &mut self.sends[index];
        if send.next >= send.pieces || send.exposed.is_some() {
            return;
        }
        let (offset, len) = piece(send.base, send.unit, send.next, send.data.len());
        if offset + len <= send.ready
            && let Ok(region) = fabric.expose(send.data.part(offset, len))
        {
            send.exposed = Some((send.next, region));
        }
    }

    /// Writes as many pieces as payload, places and tokens allow.
    pub fn push<F: Fabric>(&mut self, fabric: &F, index: u32) {
        loop {
            let send = &mut self.sends[index];
            if !send.live || send.mode == Mode::Small || send.next == send.pieces || send.waits {
                return;
            }
            let (offset, len) = piece(send.base, send.unit, send.next, send.data.len());
            if offset + len > send.ready {
                return;
            }
            if send.places.is_empty() {
                if send.relayed {
                    send.relayed = false;
                    let note = Note::new(StreamKind::Ready, index, 0, 0);
                    note.send(fabric, send.to.peer, &[]);
                }
                return;
            }
            let part = send.data.part(offset, len);
            let peer = send.to.peer;
            let from = if self.peers.get(peer).is_some_and(|known| known.synchronous) {
                From::Program
            } else if send.mode == Mode::Blocks {
                match send.exposed.take() {
                    Some((_, region)) => From::Block(region),
                    // If the memory cannot be exposed, the fabric writes from it by its own means.
                    None => fabric.expose(part).map_or(From::Program, From::Block),
                }
            } else {
                match self.tokens.take(fabric, &self.sizes) {
                    Ok(Some(token)) => From::Token(token),
                    Ok(None) => {
                        self.counts.no_token += 1;
                        self.sends[index].waits = true;
                        self.backlog.push_back(index);
                        return;
                    }
                    Err(fault) => return self.fail(fault),
                }
            };
            let source = match from {
                From::Token(token) => {
                    let segment = self.tokens.memory(token).part(0, len);
                    segment.copy_from(part);
                    fabric.charge(Work::Copy(len));
                    self.counts.copied_in += len as u64;
                    if part.is_phantom() { part } else { segment }
                }
                _ => part,
            };
            if !self.write(fabric, index, source, from) {
                return;
            }
        }
    }

    /// Writes the next piece of a send, which lies in `source`, into its next place. Returns true if the write was posted.
    pub fn write<F: Fabric>(&mut self, fabric: &F, index: u32, source: Sge, from: From) -> bool {
        let mut end = self.flights.prepare(fabric.counters());
        let send = &mut self.sends[index];
        let SegmentSlot { at, stamp } = send.places.pop_front().expect("looked for");
        let peer = send.to.peer;
        match fabric.write_flag(peer, &RemoteWrite::new(source, at, end.one_more()), &stamp) {
            Ok(()) => {
                send.next += 1;
                let blocks = send.mode == Mode::Blocks;
                self.counts.pieces += 1;
                self.depart(fabric, StreamFlight { end, from, send: index });
                if blocks && !self.known(peer).synchronous {
                    self.expose_ahead(fabric, index);
                }
                true
            }
            Err(fault)
                if matches!(
                    fault.cause(),
                    FaultCause::Unsupported { .. }
                        | FaultCause::System { .. }
                        | FaultCause::NoRoom { .. }
                ) && send.mode == Mode::Blocks =>
            {
                // If the program's memory cannot be reached after all, the message goes on in segments.
                send.places.clear();
                send.unable = true;
                let note = Note::new(StreamKind::Unable, send.remote, send.next as u64, 0);
                if let From::Block(region) = from {
                    fabric.withdraw(region);
                }
                self.flights.give_back(end.counter);
                if let Some(entry) = self.peers.get_mut(peer) {
                    entry.direct = false;
                }
                note.send(fabric, peer, &[]);
                false
            }
            Err(fault) => {
                self.fail(fault);
                false
            }
        }
    }

    /// Ends a send if nothing is left to do for it.
    pub fn settle_send(&mut self, index: u32) {
        let send = &mut self.sends[index];
        if send.live
            && !send.held
            && send.flying == 0
            && send.next == send.pieces
            && send.ready == send.data.len()
        {
            send.live = false;
            self.ended.push(EndedOperation { request: send.request, bytes: 0, lost: 0 });
            if !send.fed {
                self.sends.give(index);
            }
        }
    }

    // ---- messages of receivers ----------------------------------------------------------------

    /// Returns the send that `peer` names, if it is under way to `peer`.
    fn named(&mut self, peer: usize, index: u32) -> Option<&mut Send> {
        let known = self.sends.get(index).is_some();
        let send = known.then(|| &mut self.sends[index])?;
        (send.live && send.to.peer == peer && send.mode != Mode::Small).then_some(send)
    }

    pub fn on_chunk<F: Fabric>(&mut self, f: &F, message: StreamMessage) -> MessageOutcome {
        let StreamMessage { peer, note, payload: p } = message;
        const WHAT: &str = "address of segments";
        let address = RemoteAddr::from_words(words(p).ok_or(WHAT)?);
        if note.first >= 64 || note.second != self.sizes.segment as u64 {
            return Err(WHAT);
        }
        let chunks = &mut self.peer(f, peer).chunks;
        let chunk = note.first as usize;
        if chunks.len() <= chunk {
            chunks.resize(chunk + 1, None);
        }
        chunks[chunk] = Some(address);
        Ok(())
    }

    pub fn on_grant<F: Fabric>(&mut self, fabric: &F, message: StreamMessage) -> MessageOutcome {
        let StreamMessage { peer, note, .. } = message;
        const WHAT: &str = "grant of places";
        let segment = self.sizes.segment;
        let count = usize::from(note.count);
        if count > PLACES {
            return Err(WHAT);
        }
        let standing = note.low == STANDING;
        if !standing {
            let send = self.named(peer, note.low).ok_or(WHAT)?;
            if send.mode != Mode::Segments || send.next + send.places.len() + count > send.pieces {
                return Err(WHAT);
            }
            // The send has stalled if all written pieces are complete and there is no place for the next piece.
            let stalled = send.places.is_empty() && send.flying == 0 && send.next > 0;
            self.counts.stalls += u64::from(stalled);
        }
        for i in 0..count {
            let number = unpack(note.first, i);
            let entry = self.peer(fabric, peer);
            let chunk = usize::from(number) / super::pool::CHUNK;
            let chunk = entry.chunks.get(chunk).copied().flatten().ok_or(WHAT)?;
            let place = place_at(chunk, number, note.second, segment);
            if standing {
                entry.standing.push_back(place);
                entry.standing_numbers.push_back(number);
            } else {
                self.sends[note.low].places.push_back(place);
            }
        }
        if !standing {
            self.push(fabric, note.low);
        }
        Ok(())
    }

    pub fn on_address<F: Fabric>(&mut self, f: &F, message: StreamMessage) -> MessageOutcome {
        let StreamMessage { peer, note, payload: p } = message;
        const WHAT: &str = "address of a block";
        let [a, b, c, d, flag @ ..] = words::<8>(p).ok_or(WHAT)?;
        let send = self.named(peer, note.low).ok_or(WHAT)?;
        let (number, remote) = (note.second as u32 as usize, (note.second >> 32) as u32);
        if send.mode != Mode::Blocks {
            return Err(WHAT);
        }
        if send.unable {
            return Ok(());
        }
        if number != send.next + send.places.len() || number >= send.pieces {
            return Err(WHAT);
        }
        let at = RemoteAddr::from_words([a, b, c, d]);
        let flag = RemoteFlag { at: RemoteAddr::from_words(flag), waking: true };
        send.remote = remote;
        send.places.push_back(SegmentSlot { at, stamp: flag.with(note.first) });
        self.push(f, note.low);
        Ok(())
    }

    pub fn on_convert<F: Fabric>(&mut self, fabric: &F, message: StreamMessage) -> MessageOutcome {
        let StreamMessage { peer, note, .. } = message;
        const WHAT: &str = "request for segments";
        let segment = self.sizes.segment;
        let send = self.named(peer, note.low).ok_or(WHAT)?;
        let base = note.first as usize;
        if send.mode != Mode::Blocks || base != send.next * send.unit || !send.places.is_empty() {
            return Err(WHAT);
        }
        if let Some((_, region)) = send.exposed.take() {
            fabric.withdraw(region);
        }
        (send.mode, send.base, send.unit, send.next) = (Mode::Segments, base, segment, 0);
        send.pieces = pieces(send.data.len() - base, segment);
        self.counts.converted += 1;
        Ok(())
    }

    /// Handles the refusal of a message that is longer than the receive.
    pub fn on_finish<F: Fabric>(&mut self, fabric: &F, message: StreamMessage) -> MessageOutcome {
        let StreamMessage { peer, note, .. } = message;
        let send = self.named(peer, note.low).ok_or("end of a message")?;
        if let Some((_, region)) = send.exposed.take() {
            fabric.withdraw(region);
        }
        (send.next, send.ready) = (send.pieces, send.data.len());
        send.places.clear();
        self.settle_send(note.low);
        Ok(())
    }
}
