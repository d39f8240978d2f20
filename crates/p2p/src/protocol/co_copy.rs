//! Co-copy: both ends copy pieces of a payload. The receiver reads pieces. If the sender waits, it writes pieces at the same time.
//! So the memory bandwidths of both processors add up.
//!
//! ```text
//!   receiver ── CoCopyRequest(claims, buffer) ──> sender       both take the next piece by compare-and-swap
//!   reads pieces 0, 2, 3, ...                           on the claim word and copy it
//!            <── CoCopyReply(n) ──                           once no piece is left
//!   all pieces copied ── ATS ──>
//! ```
//! Claim word: number of the sharing (32) | next piece (32), in memory of the receiver. The number changes when the word is used
//! for the next sharing. So a sender that reads an invitation too late finds no piece to take. A sender that computes takes no
//! piece, and the receiver copies everything. A process waits for a process outside of the library only if that process has claimed
//! a piece.
//!
//! Cost: half of the pieces by each end, a system call and a cache line for each piece, and three messages. Chosen for long
//! payloads, if each of the two ranks has its own processor and serves no other rank.

use super::offers::OfferedReceive;
use super::operations::Operations;
use super::{Locality, MessageCase, MessageProtocol, ProtocolEntry, ProtocolWork, SendStart};
use crate::envelope::{Envelope, MatchingContext, MessageKind, PeerMessage, ShortWords};
use crate::message::MessageOutcome;
use crate::request::{CoCopiedPayload, ProcessRequests, RequestStage};
use crate::transport::Transport;
use weft_fabric::{
    CopyModel, Fabric, FabricExt, Fault, Region, RemoteAddr, RemoteRead, RemoteWrite, Sge,
};

/// Unit of the length of pieces, in bytes. A unit is a few pages, so that each system call moves more than one page.
const UNIT: usize = 16 << 10;
/// Maximum number of units in a piece.
const UNITS: usize = 64;
/// Usual number of pieces. A payload has more pieces if it is longer than this number of pieces of maximum length.
const PIECES: usize = 4;
/// Maximum number of concurrent sharings of one process.
const WORDS: usize = 64;
/// Distance between claim words, in bytes: one cache line each.
const STRIDE: usize = 64;

/// The claim words of a process.
struct Claims {
    region: Region,
    free: Vec<u32>,
    numbers: [u32; WORDS],
}

/// Layout of the tag of an invitation. The bits below this bit are the number of bytes in the last piece. The bits from this bit on
/// are the number of units in a piece.
const UNITS_SHIFT: u32 = 24;

/// Encodes the invitation's payload: the addresses of the claim word and of the buffer.
fn encode(claims: RemoteAddr, buffer: RemoteAddr) -> ShortWords {
    let (claims, buffer) = (claims.words(), buffer.words());
    // The words of the two addresses alternate. So words that are zero in both addresses come last, and are not sent.
    ShortWords::new(&std::array::from_fn::<_, 8, _>(|i| [claims, buffer][i % 2][i / 2]))
}

/// Decodes the addresses of the claim word and of the buffer from an invitation.
fn decode(payload: Sge) -> Option<(RemoteAddr, RemoteAddr)> {
    let words = ShortWords::read::<8>(payload)?;
    let at = |first| RemoteAddr::from_words(std::array::from_fn(|i| words[2 * i + first]));
    Some((at(0), at(1)))
}

/// Returns the number of units in a piece of a payload of `len` bytes. There are about [`PIECES`] pieces, so that the two ends
/// finish at about the same time. A piece is so large that starting a copy does not cost more than the copy.
fn units(len: usize) -> usize {
    len.div_ceil(PIECES).div_ceil(UNIT).clamp(1, UNITS)
}

/// Returns offset and length of piece `i` of a payload of `len` bytes.
fn piece(i: u32, len: usize, units: usize) -> (usize, usize) {
    let offset = i as usize * units * UNIT;
    (offset, (units * UNIT).min(len - offset))
}

/// Fraction of the last piece that one end still copies when the other end has nothing more to do.
const TAIL: f64 = 0.5;

/// The entry in the table of protocols.
pub(super) const ENTRY: ProtocolEntry = ProtocolEntry {
    protocol: MessageProtocol::CoCopy,
    name: "co-copy",
    about: "in pieces that both ends copy",
    eligible,
    work,
    start: SendStart::OfferMemory,
};

fn eligible(case: &MessageCase) -> Result<(), &'static str> {
    match case.path {
        path if path.place == Locality::Elsewhere => Err("the ranks share no memory"),
        path if path.place == Locality::Here => Err("there is one end"),
        path if !path.direct => Err("the sender's memory cannot be read"),
        path if !path.synchronous => Err("pieces cannot be claimed within a call"),
        path if path.writes => Err("its sender is told to write"),
        path if path.threads_each > 1 => Err("the two may have one processor"),
        _ if case.bytes <= UNIT => Err("it is one piece"),
        _ => case.is_offered(),
    }
}

fn work(model: &CopyModel, case: &MessageCase) -> ProtocolWork {
    let line = case.line(model);
    // The number of pieces is not rounded here, so that the time grows steadily with the size.
    let (least, most) =
        (case.bytes as f64 / (UNITS * UNIT) as f64, case.bytes as f64 / UNIT as f64);
    let pieces = most.clamp(2.0, PIECES as f64).max(least);
    // Claiming a piece takes a load and a compare-and-swap of a word that the other end has changed.
    let claim = 2.0 * line + model.cma_call * (1.0 - 1.0 / pieces);
    let each = case.direct(model, case.bytes) / pieces + claim;
    let half = pieces / 2.0;
    ProtocolWork {
        sender: half * each + 2.0 * line,
        receiver: (half + TAIL) * each + case.stolen(model) / 2.0 + 2.0 * line,
        // Two of the three lines carry messages: the receiver's invitation, and the sender's reply with the number of pieces that
        // the sender has copied.
        latency: 3.0 * line,
        parts: u32::MAX,
        turns: 3,
    }
}

/// Sharings (co-copied payloads) of which this process is the receiver.
///
/// Invariants: a claim word belongs to one sharing, from the invitation until the sharing ends, and shows the number of the
/// sharing. A request at [`RequestStage::Sharing`] has a claim word and an exposed buffer.
#[derive(Default)]
pub struct CoCopy {
    /// Claim words, made at first use.
    claims: Option<Claims>,
}

impl CoCopy {
    /// Copies an offered payload into `into` together with the sender. Returns false, and does nothing, if the maximum number of
    /// payloads is shared already.
    pub fn share<F: Fabric>(
        &mut self,
        transport: &Transport<F>,
        operations: &mut Operations,
        &OfferedReceive { index, into, ref offer }: &OfferedReceive,
    ) -> Result<bool, Fault> {
        let (fabric, peer) = (&transport.fabric, offer.peer);
        let Some((claims, word)) = self.open(transport)? else { return Ok(false) };
        let ClaimWord { at, number, .. } = claims;
        let buffer = fabric.expose_to_writers(into)?;
        let units = units(into.len());
        let pieces = into.len().div_ceil(units * UNIT) as u32;
        let last = into.len() - piece(pieces - 1, into.len(), units).0;
        let mut words = encode(at, buffer.remote);
        let invite = Envelope {
            kind: MessageKind::CoCopyRequest,
            word: false,
            tag: (last | units << UNITS_SHIFT) as i32,
            context: MatchingContext(u64::from(index) | u64::from(number) << 32),
            rank: pieces,
            request: offer.request,
        };
        fabric.send(peer, invite.encode(), words.payload(), None);
        operations.seldom.shared += 1;
        let mut own = 0;
        while let Some(i) = claim(transport, &claims, pieces)? {
            let (offset, len) = piece(i, into.len(), units);
            let from = offer.remote.offset(offset as u64);
            fabric.read(peer, &RemoteRead::new(into.part(offset, len), from, None))?;
            own += 1;
        }
        let slot = &mut operations.requests[index];
        slot.state.share_copy();
        slot.region = Some(buffer);
        slot.shared = Some(CoCopiedPayload { word, number, pieces, own });
        operations.requests.begin_acting(index);
        if own == pieces {
            self.end(transport, &mut operations.requests, index);
        }
        Ok(true)
    }

    /// Prepares a free claim word for a sharing: the word gets a new number, and no piece is taken. Returns the word and its index.
    fn open<F: Fabric>(
        &mut self,
        transport: &Transport<F>,
    ) -> Result<Option<(ClaimWord, u32)>, Fault> {
        let claims = match &mut self.claims {
            Some(claims) => claims,
            none => {
                let region = transport.fabric.allocate_on_node(WORDS * STRIDE)?;
                let free = (0..WORDS as u32).rev().collect();
                none.insert(Claims { region, free, numbers: [0; WORDS] })
            }
        };
        let Some(word) = claims.free.pop() else { return Ok(None) };
        let at = claims.region.at(word as usize * STRIDE);
        let old = claims.numbers[word as usize];
        let number = old.wrapping_add(1);
        claims.numbers[word as usize] = number;
        // The word still holds the old number and the index of some piece.
        let me = transport.fabric.rank();
        let mut now = transport.look(me, at)?;
        loop {
            let fresh = u64::from(number) << 32;
            let seen = transport.swap(me, at, now, fresh)?;
            if seen == now {
                return Ok(Some((ClaimWord { peer: me, at, number }, word)));
            }
            now = seen;
        }
    }

    /// Handles the sender's report of the pieces that it has copied.
    pub fn on_reply<F: Fabric>(
        &mut self,
        transport: &Transport<F>,
        requests: &mut ProcessRequests,
        &PeerMessage { peer, envelope: e, .. }: &PeerMessage,
    ) -> MessageOutcome {
        const WHAT: &str = "report of help";
        let slot = requests.waiting(peer, e.request, RequestStage::Sharing).ok_or(WHAT)?;
        let shared = slot.shared.ok_or(WHAT)?;
        let (done, number) = (e.context.0 as u32, (e.context.0 >> 32) as u32);
        if number != shared.number
            || u64::from(shared.own) + u64::from(done) != shared.pieces.into()
        {
            return Err(WHAT);
        }
        self.end(transport, requests, e.request);
        Ok(())
    }

    fn end<F: Fabric>(
        &mut self,
        transport: &Transport<F>,
        requests: &mut ProcessRequests,
        index: u32,
    ) {
        requests.end_acting(index);
        let slot = &mut requests[index];
        if let (Some(shared), Some(claims)) = (slot.shared.take(), &mut self.claims) {
            claims.free.push(shared.word);
        }
        slot.end_by_peer(&transport.fabric);
        let peer = slot.peer.expect("matched") as usize;
        transport.control(peer, Envelope::reply(MessageKind::Ats, slot.remote, 0));
    }
}

/// The claim word of a sharing: its place at the receiver `peer`, and the number of the sharing.
struct ClaimWord {
    peer: usize,
    at: RemoteAddr,
    number: u32,
}

/// Claims the next piece of a sharing that has `pieces` pieces. Returns `None` if no piece is left.
fn claim<F: Fabric>(
    transport: &Transport<F>,
    &ClaimWord { peer, at, number }: &ClaimWord,
    pieces: u32,
) -> Result<Option<u32>, Fault> {
    let mut now = transport.look(peer, at)?;
    loop {
        let next = now as u32;
        if (now >> 32) as u32 != number || next >= pieces {
            return Ok(None);
        }
        let seen = transport.swap(peer, at, now, now + 1)?;
        if seen == now {
            return Ok(Some(next));
        }
        now = seen;
    }
}

/// Handles the receiver's request for help.
pub fn on_request<F: Fabric>(
    transport: &Transport<F>,
    operations: &mut Operations,
    &PeerMessage { peer, envelope: e, payload }: &PeerMessage,
) -> MessageOutcome {
    const WHAT: &str = "invitation";
    if !operations.peers.of(transport, peer).shares {
        return Err(WHAT);
    }
    let slot = operations.requests.waiting(peer, e.request, RequestStage::Offered).ok_or(WHAT)?;
    let (at, buffer) = decode(payload).ok_or(WHAT)?;
    let (pieces, packed) = (e.rank, e.tag as u32 as usize);
    let (last, units) = (packed & ((1 << UNITS_SHIFT) - 1), packed >> UNITS_SHIFT);
    let (index, number) = (e.context.0 as u32, (e.context.0 >> 32) as u32);
    if pieces == 0 || !(1..=UNITS).contains(&units) || last > units * UNIT {
        return Err(WHAT);
    }
    let len = (pieces as usize - 1) * units * UNIT + last;
    let data = slot.buffer;
    if len > data.len() {
        return Err(WHAT);
    }
    let claims = ClaimWord { peer, at, number };
    let copy = |i: u32| {
        let (offset, len) = piece(i, len, units);
        let (from, to) = (data.part(offset, len), buffer.offset(offset as u64));
        transport.fabric.write(peer, &RemoteWrite::new(from, to, None))
    };
    let mut done = 0u32;
    loop {
        match claim(transport, &claims, pieces) {
            Ok(None) => break,
            Ok(Some(i)) => match copy(i) {
                Ok(()) => done += 1,
                // The claimed piece is missing, and no other process will copy it.
                Err(fault) => operations.fault = Some(fault),
            },
            Err(fault) => operations.fault = Some(fault),
        }
        if operations.fault.is_some() {
            return Ok(());
        }
    }
    if done > 0 {
        let number = u64::from(number) << 32 | u64::from(done);
        let head = Envelope::reply(MessageKind::CoCopyReply, index, number);
        transport.control_solicited(peer, head);
    }
    Ok(())
}
