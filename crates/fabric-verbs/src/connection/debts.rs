//! Credits that are owed to peers for buffers which were posted again. Messages carry credits back. A peer to which many credits
//! are owed gets a message that carries only credits.

use crate::connection::connections::Connections;
use crate::connection::posting::Posting;
use crate::connection::{ConnectionPhase, VerbsConnection};
use crate::job::VerbsCore;
use crate::memory::receive_pool::BufferUse;
use weft_fabric::FabricTrouble;

/// Connections on which a message that carries only credits must be sent.
pub struct Debts {
    connections: Vec<u32>,
}

impl Debts {
    /// Makes an empty list with room for `connections` connections.
    pub fn new(connections: usize) -> Debts {
        Debts { connections: Vec::with_capacity(connections) }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// Returns true if `more` connections can be added without allocating memory.
    pub fn has_room(&self, more: usize) -> bool {
        self.connections.len() + more <= self.connections.capacity()
    }

    /// Counts the credit for a buffer that is owed to the peer of `link`.
    #[inline]
    pub fn owe(&mut self, core: &VerbsCore, link: &mut VerbsConnection, of: BufferUse) {
        let events = core.events_by(link.number as usize);
        let (owed, given) = match of {
            BufferUse::Message => (&mut link.owed_messages, core.bounds.messages),
            BufferUse::Event => (&mut link.owed_events, events),
            BufferUse::Control => return,
        };
        *owed += 1;
        if *owed as usize == given.div_ceil(2) {
            self.connections.push(link.number);
        }
    }

    /// Sends credits to peers to which many credits are owed, unless another message has already carried these credits. Returns
    /// true if any credits were sent.
    pub fn pay(
        &mut self,
        core: &VerbsCore,
        connections: &mut Connections,
        posting: &mut Posting,
        trouble: &mut FabricTrouble,
    ) -> bool {
        let mut paid = false;
        for i in (0..self.connections.len()).rev() {
            let number = self.connections[i] as usize;
            let link = connections.of(number);
            let due = link.owed_messages as usize >= core.bounds.messages.div_ceil(2)
                || link.owed_events as usize >= core.events_by(number).div_ceil(2);
            if due && link.phase == ConnectionPhase::Open {
                if !posting.add_credits(link) {
                    continue;
                }
                posting.ring(link, trouble);
                paid = true;
            }
            self.connections.swap_remove(i);
        }
        paid
    }

    /// Forgets the connection `number`, because it is closed.
    pub fn forget(&mut self, number: u32) {
        self.connections.retain(|&other| other != number);
    }
}
