//! Handling of arrived messages: messages for the layer above wait in queues, and all other messages are handled at once.

use super::OfiState;
use crate::job::OfiCore;
use crate::message_pools::{PartPlace, PooledMessage};
use crate::provider_facts::ProviderFacts;
use crate::requests::OfiRequest;
use crate::wire::{ADDRESS, HEADER, OfiHeader, OfiMessageKind, decode_address};
use std::sync::atomic::{AtomicU64, Ordering};
use weft_bootstrap::is_same_secret;
use weft_fabric::{ArrivedMessage, Fault, Head, Sge, word_at};

impl OfiState {
    /// Handles an arrived buffer. A message without the proof that it belongs to this job is dropped.
    pub fn arrival(&mut self, core: &OfiCore, buffer: u32, len: usize) {
        let memory = self.pools.received(buffer);
        let mut bytes = [0; HEADER];
        let whole = (HEADER..=memory.len()).contains(&len);
        if whole {
            memory.read(&mut bytes);
        }
        let own = |header: &OfiHeader| {
            let rank = header.rank as usize;
            let known = self.peers.find(rank);
            let expected = known.map_or_else(|| core.proof_of(rank), |peer| peer.expects);
            let said = header.proof.to_le_bytes();
            expected.is_some_and(|proof| is_same_secret(&proof.to_le_bytes(), &said))
        };
        let Some(header) = OfiHeader::decode(&bytes).filter(|header| whole && own(header)) else {
            self.counts.strangers += 1;
            self.pools.drop_received(buffer);
            return;
        };
        let rank = header.rank as usize;
        let room = core.credits;
        let peer = self.peer(core, rank);
        peer.signs.heard = true;
        // Credits are limited to their total number, so that a wrong number of returned credits does no harm.
        peer.credits = (peer.credits + usize::from(header.credits)).min(room);
        if header.kind == OfiMessageKind::Message {
            let last = PooledMessage { buffer, len: len - HEADER };
            let whole = match peer.assembly.take() {
                Some(parts) => self.pools.finish(rank, parts, last),
                None => Ok(last),
            };
            match whole {
                Ok(message) => self.peers.enlist(core, rank, message),
                Err(fault) => {
                    self.pools.drop_received(buffer);
                    self.fail_for(core, rank, fault);
                }
            }
            return;
        }
        let body = memory.part(HEADER, len - HEADER);
        if let Err(fault) = self.act(core, rank, &header, body) {
            self.fail_for(core, rank, fault);
        }
        self.pools.drop_received(buffer);
    }

    /// Records the fault of a peer that has sent malformed data.
    #[cold]
    fn fail_for(&mut self, core: &OfiCore, rank: usize, fault: Fault) {
        let why = format!("it is on {}", core.place(rank).host);
        self.trouble.fail(fault, why);
    }

    /// Performs the operation that a peer requests.
    fn act(
        &mut self,
        core: &OfiCore,
        rank: usize,
        header: &OfiHeader,
        body: Sge,
    ) -> Result<(), Fault> {
        let short = || Fault::corrupt(rank, "message");
        let [first, second, third] = header.words;
        match header.kind {
            OfiMessageKind::Message | OfiMessageKind::Credits => {}
            OfiMessageKind::Part => {
                let before = self.peer(core, rank).assembly;
                let place = PartPlace { total: first, at: second };
                let parts = self.pools.keep_part(core, rank, before, place, body)?;
                let peer = self.peer(core, rank);
                peer.assembly = Some(parts);
                peer.owed += 1;
                self.settle(core, rank);
            }
            OfiMessageKind::Place => {
                if body.len() < 2 * ADDRESS {
                    return Err(short());
                }
                let data = body.part(2 * ADDRESS, body.len() - 2 * ADDRESS);
                if !data.is_empty() {
                    let at = decode_address(body).ok_or_else(short)?;
                    self.memory.find(rank, at, data.len())?.copy_from(data);
                }
                if second == 0 {
                    let at = decode_address(body.part(ADDRESS, ADDRESS)).ok_or_else(short)?;
                    word(self.memory.find_word(rank, at)?).store(third, Ordering::Release);
                } else {
                    let counter = core.counters.immediate(third as u32);
                    core.counters.add(counter, 1);
                }
                self.answer(core, rank, first, 0);
            }
            OfiMessageKind::FetchAdd | OfiMessageKind::CompareSwap => {
                let at = decode_address(body).ok_or_else(short)?;
                let word = word(self.memory.find_word(rank, at)?);
                let before = atomically(word, header.kind, [second, third]);
                self.answer(core, rank, first, before);
            }
            OfiMessageKind::Reply => match self.requests.answered(rank, first) {
                Some(OfiRequest::Reply(result, done)) => {
                    if let Some(result) = result {
                        result.fill(&second.to_ne_bytes());
                    }
                    core.complete(done);
                }
                _ => return Err(Fault::corrupt(rank, "reply")),
            },
            OfiMessageKind::Ask => self.tell(core, rank, OfiMessageKind::Credits, [0; 3]),
            OfiMessageKind::Leave => self.peer(core, rank).left = true,
            OfiMessageKind::Shut => self.hear_shut(core, rank, header.words)?,
        }
        Ok(())
    }

    /// Answers a request of a peer, if the peer waits for an answer (`ticket` is not 0).
    fn answer(&mut self, core: &OfiCore, rank: usize, ticket: u64, value: u64) {
        if ticket != 0 {
            self.tell(core, rank, OfiMessageKind::Reply, [ticket, value, 0]);
        }
    }

    pub fn receive(&mut self, core: &OfiCore, from: Option<usize>) -> Option<ArrivedMessage> {
        match from {
            Some(peer) if peer == core.rank => self.receive_own(core),
            Some(peer) => {
                let message = self.peers.get_mut(peer)?.inbox.pop_front()?;
                Some(self.show(peer, message))
            }
            None => {
                if let Some(message) = self.receive_own(core) {
                    return Some(message);
                }
                let (peer, message) = self.peers.take_next()?;
                Some(self.show(peer, message))
            }
        }
    }

    fn show(&self, rank: usize, message: PooledMessage) -> ArrivedMessage {
        let mut bytes = [0; HEADER];
        self.pools.memory(message.buffer).read(&mut bytes);
        let head = Head(std::array::from_fn(|i| word_at(&bytes, 16 + 8 * i)));
        let (payload, token) = (self.pools.payload(message), message.buffer.into());
        ArrivedMessage { peer: rank, head, payload, token }
    }

    /// Takes a message of this process to itself. The message is copied to a buffer like all other messages.
    fn receive_own(&mut self, core: &OfiCore) -> Option<ArrivedMessage> {
        let (_, copy) = self.loopback.front()?;
        let len = copy.len();
        let buffer = self.pools.take_for(core, len).ok()?;
        let (head, copy) = self.loopback.pop_front()?;
        let payload = self.pools.payload(PooledMessage { buffer, len });
        payload.fill(&copy);
        Some(ArrivedMessage { peer: core.rank, head, payload, token: buffer.into() })
    }

    pub fn release(&mut self, core: &OfiCore, message: &ArrivedMessage) {
        self.pools.give_back(message.token as u32);
        if message.peer != core.rank {
            let credits = ProviderFacts::credits(message.payload.len(), core.credits);
            self.peer(core, message.peer).owed += credits as u16;
            self.settle(core, message.peer);
        }
    }
}

/// Returns an aligned word in memory that peers reach.
pub fn word<'m>(memory: Sge) -> &'m AtomicU64 {
    // SAFETY: the word was found in allocated memory (`find_word`), which is aligned and stays mapped as long as the fabric. All
    // processes and threads access it by atomics only.
    unsafe { &*memory.ptr().cast::<AtomicU64>() }
}

/// Does a fetch-and-add of `first`, or a compare-and-swap from `first` to `second`. Returns the old value.
pub fn atomically(word: &AtomicU64, kind: OfiMessageKind, [first, second]: [u64; 2]) -> u64 {
    if kind == OfiMessageKind::FetchAdd {
        return word.fetch_add(first, Ordering::AcqRel);
    }
    let swapped = word.compare_exchange(first, second, Ordering::AcqRel, Ordering::Acquire);
    swapped.unwrap_or_else(|found| found)
}
