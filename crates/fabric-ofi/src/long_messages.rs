//! Messages longer than the provider takes as one piece: they travel as parts in order, and the last part is the message itself.
//!
//! ```text
//!   part (length, 0)       ──▶ copied to a place of the whole length, and its credit goes back
//!   part (length, 16 KiB)  ──▶ behind it
//!   message (head)         ──▶ behind them: it has arrived
//! ```
//! This costs the receiver one more copy but saves a rendezvous. It is used where a rendezvous takes longer than the copies.

use crate::provider_facts::ProviderFacts;
use crate::state::{OfiCore, OfiState};
use crate::wire::{HEADER, OfiHeader, OfiMessageKind};
use weft_fabric::{Fault, Head, Sge};

/// Bit in the number of a buffer for a whole message, which sets such numbers apart from those of receive buffers.
const WHOLE: u32 = 1 << 31;

/// The part of a message that has arrived so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assembly {
    buffer: u32,
    filled: usize,
    total: usize,
}

impl OfiState {
    /// Posts a message within the peer's credits, or as many parts of it as there is room for. Returns false if the caller must
    /// post the same message again before any other.
    #[inline]
    pub fn post_message(&mut self, core: &OfiCore, peer: usize, head: Head, payload: Sge) -> bool {
        if payload.len() > core.objects.facts.part_max() && !self.post_parts(core, peer, payload) {
            return false;
        }
        let at = self.peer(core, peer).posted;
        let rest = payload.part(at, payload.len() - at);
        let cost = ProviderFacts::credits(rest.len(), core.credits);
        if self.peer(core, peer).credits < cost {
            return false;
        }
        let posted = self.post(core, peer, OfiMessageKind::Message, head.0, &[rest]);
        let it = self.peer(core, peer);
        if posted {
            it.credits -= cost;
            it.posted = 0;
        }
        posted
    }

    /// Posts all parts of a long message except the last. Returns false if there is no room for all of them.
    fn post_parts(&mut self, core: &OfiCore, peer: usize, payload: Sge) -> bool {
        let most = core.objects.facts.part_max();
        loop {
            let it = self.peer(core, peer);
            let (at, credits) = (it.posted, it.credits);
            if payload.len() - at <= most {
                return true;
            }
            let words = [payload.len() as u64, at as u64, 0];
            if credits == 0
                || !self.post(core, peer, OfiMessageKind::Part, words, &[payload.part(at, most)])
            {
                return false;
            }
            let it = self.peer(core, peer);
            it.credits -= 1;
            it.posted += most;
        }
    }

    /// Keeps a part of a message until the rest comes.
    pub fn keep_part(
        &mut self,
        core: &OfiCore,
        rank: usize,
        header: &OfiHeader,
        body: Sge,
    ) -> Result<(), Fault> {
        let [total, at, _] = header.words;
        let most = core.objects.facts.send_max() as u64;
        let before = self.peer(core, rank).assembly;
        let fits = at == before.map_or(0, |it| it.filled as u64)
            && before.is_none_or(|it| it.total as u64 == total)
            && total <= most
            && at + (body.len() as u64) < total;
        if !fits {
            return Err(Fault::corrupt(rank, "part of a message"));
        }
        let it = match before {
            Some(it) => it,
            None => {
                let buffer = self.whole.take(&core.objects)?;
                Assembly { buffer, filled: 0, total: total as usize }
            }
        };
        self.whole.memory(it.buffer).part(HEADER + it.filled, body.len()).copy_from(body);
        let peer = self.peer(core, rank);
        peer.assembly = Some(Assembly { filled: it.filled + body.len(), ..it });
        peer.owed += 1;
        self.settle(core, rank);
        Ok(())
    }

    /// Returns the buffer and the length of a message. `buffer` holds its last part, or all of it.
    pub fn whole_message(
        &mut self,
        core: &OfiCore,
        rank: usize,
        (buffer, len): (u32, usize),
    ) -> Result<(u32, usize), Fault> {
        let Some(it) = self.peer(core, rank).assembly.take() else { return Ok((buffer, len)) };
        let (from, to) = (self.receiving.memory(buffer), self.whole.memory(it.buffer));
        if it.filled + len != it.total {
            self.whole.give_back(it.buffer);
            return Err(Fault::corrupt(rank, "length of a message"));
        }
        to.part(0, HEADER).copy_from(from.part(0, HEADER));
        to.part(HEADER + it.filled, len).copy_from(from.part(HEADER, len));
        self.receiving.give_back(buffer);
        // The credit of the last part goes back when the message is released.
        Ok((it.buffer | WHOLE, it.total))
    }

    /// Returns the memory of a message's buffer, which may be a receive buffer or a buffer for a whole message.
    #[inline]
    pub fn arrived_in(&self, buffer: u32) -> Sge {
        match buffer & WHOLE {
            0 => self.receiving.memory(buffer),
            _ => self.whole.memory(buffer & !WHOLE),
        }
    }

    /// Takes a buffer for a message of this process to itself.
    pub fn take_for(&mut self, core: &OfiCore, len: usize) -> Result<u32, Fault> {
        match len > core.objects.facts.part_max() {
            true => Ok(self.whole.take(&core.objects)? | WHOLE),
            false => self.receiving.take(&core.objects),
        }
    }

    /// Gives a message's buffer back.
    #[inline]
    pub fn give_back(&mut self, buffer: u32) {
        match buffer & WHOLE {
            0 => self.receiving.give_back(buffer),
            _ => self.whole.give_back(buffer & !WHOLE),
        }
    }
}
