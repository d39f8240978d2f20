//! The receiving side: takes pieces in order, relays them, and keeps early messages.

use super::Mode;
use super::core::{EndedOperation, StreamCore, clip, piece, pieces};
use super::flights::From;
use super::pool::PlaceOwner;
use super::records::{Landing, StreamReceive};
use super::wire::{Note, PLACES, RELAYED, StreamKind, StreamMessage, unpack, words};
use crate::envelope::{Envelope, MatchingContext, MessageKind, ReceiveSource, Tag};
use crate::matching::{EnvelopeArrival, EnvelopeBody};
use crate::message::{MessageOutcome, MessageTarget, Want};
use crate::request::ProcessRequests;
use weft_fabric::{Fabric, FabricExt, RemoteAddr, Sge, Work};

impl StreamCore {
    fn open_receive(&mut self, peer: u32) -> u32 {
        let index = self.receives.take();
        let old = &mut self.receives[index];
        let (mut landings, mut children) =
            (std::mem::take(&mut old.landings), std::mem::take(&mut old.children));
        landings.clear();
        children.clear();
        *old = StreamReceive { peer, landings, children, live: true, ..StreamReceive::default() };
        index
    }

    /// Returns the record of an arrived message, and true if its receive was already posted. The lookup uses the sender's rank in
    /// the fabric, since all receives here name their sender.
    fn meet_posted(&mut self, peer: usize, note: Note) -> (u32, bool) {
        self.counts.lookups += 1;
        let (context, rank, tag) = (MatchingContext(note.first), peer as u32, note.low as Tag);
        if let Some(posted) = self.matching.posted.take(context, rank, tag) {
            return (posted, true);
        }
        let request = self.open_receive(rank);
        let envelope =
            Envelope { kind: MessageKind::Rts, word: false, context, rank, tag, request };
        let body = EnvelopeBody::There(RemoteAddr::default());
        self.matching.arrived.keep(EnvelopeArrival { envelope, peer, len: 0, body });
        (request, false)
    }

    /// Returns the record of a receive, and true if its message had already arrived.
    fn meet_arrived(&mut self, from: MessageTarget) -> (u32, bool) {
        self.counts.lookups += 1;
        let MessageTarget { context, peer, tag, .. } = from;
        let rank = peer as u32;
        let source = ReceiveSource::Rank { rank, peer };
        if let Some(arrived) = self.matching.arrived.take(&Want { context, source, tag: Some(tag) })
        {
            return (arrived.request, true);
        }
        let index = self.open_receive(rank);
        self.matching.posted.post(context, Some(rank), Some(tag), index);
        (index, false)
    }

    /// Starts a receive into `buffer`. The sends `relay` forward the received payload. Returns the request of the receive.
    pub fn irecv<F: Fabric>(
        &mut self,
        fabric: &F,
        requests: &mut ProcessRequests,
        from: MessageTarget,
        buffer: Sge,
        relay: &[u32],
    ) -> u32 {
        let (request, slot) = requests.open(fabric.counters());
        slot.describe(from, buffer);
        slot.state.open_stream_receive();
        slot.rank = from.rank as i32;
        let (index, arrived) = self.meet_arrived(from);
        let receive = &mut self.receives[index];
        receive.request = request;
        receive.buffer = buffer;
        receive.children.extend_from_slice(relay);
        if !arrived {
            return request;
        }
        match receive.saved.take() {
            Some(saved) => self.deliver(fabric, index, saved.sge()),
            None if receive.mode == Mode::Small => self.deliver(fabric, index, Sge::EMPTY),
            None => self.begin(fabric, index),
        }
        request
    }

    // ---- small messages -----------------------------------------------------------------------

    pub fn on_small<F: Fabric>(&mut self, f: &F, message: StreamMessage) -> MessageOutcome {
        let StreamMessage { peer, note, payload: p } = message;
        if !p.is_empty() {
            let most = self.sizes.credit;
            let small = self.sizes.small;
            let entry = self.peer(f, peer);
            entry.came += 1;
            if entry.came - entry.credit.owed() > most || p.len() > small {
                return Err("small message beyond its credit");
            }
        }
        let (index, posted) = self.meet_posted(peer, note);
        let receive = &mut self.receives[index];
        receive.mode = Mode::Small;
        receive.len = p.len();
        if posted {
            self.deliver(f, index, p);
            return Ok(());
        }
        if !p.is_empty() {
            let copy = self.saved_pool.take_for(p);
            copy.sge().copy_from(p);
            f.charge(Work::Copy(p.len()));
            self.counts.saved += 1;
            self.counts.saved_bytes += p.len() as u64;
            self.receives[index].saved = Some(copy);
        }
        Ok(())
    }

    /// Delivers a small message to its receive. Sends the message to the children, and copies the payload into the buffer.
    fn deliver<F: Fabric>(&mut self, fabric: &F, index: u32, payload: Sge) {
        let children = std::mem::take(&mut self.receives[index].children);
        let buffer = self.receives[index].buffer;
        for &child in &children {
            let to = self.known(self.sends[child].to.peer);
            // `payload` is temporary. A message that the fabric might queue, or that needs a place, must be sent from the buffer.
            let (len, next) = (payload.len(), to.held.front() == Some(&child));
            let at_once = len <= to.inline && to.has_credit(self.sizes.credit, len);
            if next && at_once && len == buffer.len() {
                self.counts.forwarded += 1;
                self.sends[child].ready = buffer.len();
                self.send_held(fabric, child, payload);
            }
        }
        let fits = payload.len().min(buffer.len());
        if fits > 0 {
            buffer.part(0, fits).copy_from(payload.part(0, fits));
            fabric.charge(Work::Copy(fits));
            self.counts.copied_out += fits as u64;
        }
        let receive = &mut self.receives[index];
        receive.children = children;
        let peer = receive.peer as usize;
        if !payload.is_empty() {
            let quarter = (self.sizes.credit / 4).max(1);
            if let Some(owed) = self.peer(fabric, peer).credit.add_returned(1, quarter - 1) {
                Note::new(StreamKind::Credit, 0, owed, 0).send(fabric, peer, &[]);
            }
        }
        self.finish_receive(fabric, index);
    }

    /// Finishes a receive whose whole payload has arrived, and relays the rest of the payload.
    fn finish_receive<F: Fabric>(&mut self, fabric: &F, index: u32) {
        let children = std::mem::take(&mut self.receives[index].children);
        for &child in &children {
            self.relay_come(fabric, child);
        }
        let receive = &mut self.receives[index];
        receive.children = children;
        receive.children.clear();
        receive.live = false;
        self.counts.received += 1;
        let (request, lost) = (receive.request, receive.lost());
        let bytes = (receive.len as u64).saturating_sub(lost);
        self.ended.push(EndedOperation { request, bytes, lost });
        self.receives.give(index);
    }

    // ---- messages of pieces -------------------------------------------------------------------

    pub fn on_open<F: Fabric>(&mut self, f: &F, message: StreamMessage) -> MessageOutcome {
        let StreamMessage { peer, note, payload: p } = message;
        const WHAT: &str = "announcement of a message";
        let [len, numbers, unit] = words::<3>(p).ok_or(WHAT)?;
        let mode = Mode::of_code(note.mode & !RELAYED).ok_or(WHAT)?;
        let ours = if mode == Mode::Blocks { self.sizes.block } else { self.sizes.segment };
        let count = usize::from(note.count);
        if mode == Mode::Small || len == 0 || len >> 48 != 0 || unit != ours as u64 {
            return Err(WHAT);
        }
        let pieces = pieces(len as usize, ours);
        if count > PLACES.min(pieces) || (mode == Mode::Blocks && count > 0) {
            return Err(WHAT);
        }
        for i in 0..count {
            let place = unpack(numbers, i);
            if self.places.state(place) != Some(PlaceOwner::Standing(peer as u32)) {
                return Err("name of a place");
            }
            self.places.set_state(place, PlaceOwner::Landing);
        }
        let (index, posted) = self.meet_posted(peer, note);
        let receive = &mut self.receives[index];
        receive.len = len as usize;
        receive.remote = note.second as u32;
        (receive.mode, receive.unit, receive.pieces) = (mode, ours, pieces);
        receive.granted = count;
        receive.idle = note.mode & RELAYED != 0;
        let stood = |i| Landing::SegmentSlot { place: unpack(numbers, i), stood: true };
        receive.landings.extend((0..count).map(stood));
        if posted {
            self.begin(f, index);
        } else {
            self.counts.waited += 1;
        }
        self.stand(f, peer);
        Ok(())
    }

    /// Begins the transfer of a message of pieces that has been matched with its receive.
    fn begin<F: Fabric>(&mut self, fabric: &F, index: u32) {
        let receive = &self.receives[index];
        if receive.mode == Mode::Blocks && receive.lost() > 0 {
            let (peer, remote) = (receive.peer as usize, receive.remote);
            Note::new(StreamKind::Finish, remote, 0, 0).send(fabric, peer, &[]);
            self.finish_receive(fabric, index);
            return;
        }
        self.active.push(index);
        if !self.drain(fabric, index) {
            self.want(fabric, index);
        }
    }

    /// Takes the pieces that have arrived, in order. Returns true if any piece had arrived.
    pub fn drain<F: Fabric>(&mut self, fabric: &F, index: u32) -> bool {
        let mut any = false;
        while let Some(&landing) = self.receives[index].landings.front() {
            let arrived = match landing {
                Landing::SegmentSlot { place, .. } => self.places.arrived(fabric, place),
                Landing::Block { flag, stamp, .. } => self.flags.arrived(fabric, flag, stamp),
            };
            if !arrived {
                break;
            }
            any = true;
            let receive = &mut self.receives[index];
            receive.landings.pop_front();
            let (offset, len) = piece(receive.base, receive.unit, receive.drained, receive.len);
            receive.drained += 1;
            match landing {
                Landing::SegmentSlot { place, stood } => {
                    self.take_segment(fabric, index, place, offset, len);
                    if stood {
                        let peer = self.receives[index].peer as usize;
                        self.peer(fabric, peer).given -= 1;
                        self.stand(fabric, peer);
                    }
                }
                Landing::Block { flag, region, .. } => {
                    fabric.withdraw(region);
                    self.flags.give(flag);
                }
            }
            self.pass_on(fabric, index, offset + len);
        }
        let receive = &self.receives[index];
        if receive.drained == receive.pieces {
            self.active.retain(|&active| active != index);
            self.finish_receive(fabric, index);
        } else if any {
            self.want(fabric, index);
        }
        any
    }

    /// Takes an arrived segment: relays it straight from its place to the children that wait for it, and copies it into the
    /// program's memory.
    fn take_segment<F: Fabric>(
        &mut self,
        fabric: &F,
        index: u32,
        place: u16,
        offset: usize,
        len: usize,
    ) {
        let memory = self.places.memory(place).part(0, len);
        let children = std::mem::take(&mut self.receives[index].children);
        let whole = self.receives[index].buffer;
        for &child in &children {
            let send = &self.sends[child];
            let same = send.mode == Mode::Segments
                && send.base + send.next * send.unit == offset
                && (offset + len == whole.len() || len == send.unit);
            // A child that has no place now is served later from the program's memory. Other messages need this segment's place, so
            // the place must not be kept for a slow child.
            if same && send.next < send.pieces && !send.waits && !send.places.is_empty() {
                let source = if whole.is_phantom() { Sge::phantom(len) } else { memory };
                if self.write(fabric, child, source, From::SegmentSlot(place)) {
                    self.counts.forwarded += 1;
                }
            }
        }
        self.receives[index].children = children;
        let into = clip(whole, offset, len);
        into.copy_from(memory.part(0, into.len()));
        fabric.charge(Work::Copy(into.len()));
        self.counts.copied_out += into.len() as u64;
        self.places.give(place);
    }

    /// Relays the first `ready` bytes, which have arrived.
    fn pass_on<F: Fabric>(&mut self, fabric: &F, index: u32, ready: usize) {
        for i in 0..self.receives[index].children.len() {
            let child = self.receives[index].children[i];
            let send = &mut self.sends[child];
            if send.mode != Mode::Small {
                send.ready = ready.min(send.data.len());
                self.push(fabric, child);
                self.settle_send(child);
            }
        }
    }
}
