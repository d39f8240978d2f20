//! Buffers for messages: send buffers, receive buffers that the provider fills, and buffers for whole long messages.
//!
//! A message that is too long for one message of the provider arrives in parts, which are copied to a buffer for the whole
//! message ([`Assembly`]).

use crate::buffers::MessageBuffers;
use crate::ffi::FI_EAGAIN;
use crate::job::OfiCore;
use crate::object::Objects;
use crate::requests::{OfiRequest, RequestTable};
use crate::wire::HEADER;
use weft_fabric::{Fault, Sge};

/// Number of receive buffers that are posted, for all peers together.
const POSTED: usize = 64;

/// Bit in the number of a buffer for a whole message. Numbers of receive buffers do not have this bit.
const WHOLE: u32 = 1 << 31;

/// An arrived message: its buffer, and the length of its payload in bytes.
#[derive(Debug, Clone, Copy)]
pub struct PooledMessage {
    pub buffer: u32,
    pub len: usize,
}

/// A long message of which some parts have arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assembly {
    buffer: u32,
    filled: usize,
    total: usize,
}

/// Position of a part in a long message, as the part's header gives it.
#[derive(Debug, Clone, Copy)]
pub struct PartPlace {
    /// Length of the message, in bytes.
    pub total: u64,
    /// Offset of the part, in bytes.
    pub at: u64,
}

/// The pools of buffers for messages.
pub struct MessagePools {
    pub sending: MessageBuffers,
    receiving: MessageBuffers,
    /// Buffers for messages that come in parts.
    whole: MessageBuffers,
    /// Number of receive buffers that the provider has.
    posted: usize,
}

impl MessagePools {
    pub fn new(objects: &Objects) -> MessagePools {
        let facts = &objects.facts;
        MessagePools {
            sending: MessageBuffers::new(facts.buffer),
            receiving: MessageBuffers::new(facts.buffer),
            whole: MessageBuffers::new(HEADER + facts.send_max()),
            posted: 0,
        }
    }

    /// Returns the total size of all buffers, in bytes.
    pub fn bytes(&self) -> usize {
        self.sending.bytes() + self.receiving.bytes() + self.whole.bytes()
    }

    /// Gives the provider buffers for future messages.
    pub fn repost(&mut self, core: &OfiCore, requests: &mut RequestTable) -> Result<(), Fault> {
        while self.posted < POSTED {
            let buffer = self.receiving.take(&core.objects)?;
            let number = requests.add(core.rank, OfiRequest::Receive(buffer));
            let memory = self.receiving.memory(buffer);
            let context = requests.context(number);
            let descriptor = self.receiving.descriptor(buffer);
            // SAFETY: `Objects::post` needs a buffer that is not touched until the operation is complete: it goes back to the pool
            // only then. The descriptor is that of the buffer.
            let posted = unsafe { core.objects.post(memory, descriptor, context) };
            if posted != 0 {
                requests.take(number);
                self.receiving.give_back(buffer);
                // The provider has no room now. The buffers that are already posted are enough to go on.
                return if posted == -FI_EAGAIN && self.posted > 0 {
                    Ok(())
                } else {
                    Err(Fault::system("posting a receive buffer", -posted as i32))
                };
            }
            self.posted += 1;
        }
        Ok(())
    }

    /// Counts a receive buffer that the provider returned with a message.
    #[inline]
    pub fn arrived(&mut self) {
        self.posted -= 1;
    }

    /// Takes back a receive buffer that the provider returned without a message.
    pub fn cancelled(&mut self, buffer: u32) {
        self.posted -= 1;
        self.receiving.give_back(buffer);
    }

    /// Returns the memory of a receive buffer.
    #[inline]
    pub fn received(&self, buffer: u32) -> Sge {
        self.receiving.memory(buffer)
    }

    /// Gives back a receive buffer whose message was dropped or handled.
    #[inline]
    pub fn drop_received(&mut self, buffer: u32) {
        self.receiving.give_back(buffer);
    }

    /// Returns the memory of a message's buffer, which may be a receive buffer or a buffer for a whole message.
    #[inline]
    pub fn memory(&self, buffer: u32) -> Sge {
        match buffer & WHOLE {
            0 => self.receiving.memory(buffer),
            _ => self.whole.memory(buffer & !WHOLE),
        }
    }

    /// Returns the payload of a message.
    #[inline]
    pub fn payload(&self, message: PooledMessage) -> Sge {
        self.memory(message.buffer).part(HEADER, message.len)
    }

    /// Takes a buffer for a message that this process sends to itself.
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

    /// Copies a part of a long message of process `rank` to the message's buffer. `before` contains the parts that have arrived so
    /// far.
    pub fn keep_part(
        &mut self,
        core: &OfiCore,
        rank: usize,
        before: Option<Assembly>,
        place: PartPlace,
        body: Sge,
    ) -> Result<Assembly, Fault> {
        let PartPlace { total, at } = place;
        let most = core.objects.facts.send_max() as u64;
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
        Ok(Assembly { filled: it.filled + body.len(), ..it })
    }

    /// Adds the last part of a long message of process `rank`. Returns the whole message.
    pub fn finish(
        &mut self,
        rank: usize,
        it: Assembly,
        last: PooledMessage,
    ) -> Result<PooledMessage, Fault> {
        let PooledMessage { buffer, len } = last;
        let (from, to) = (self.receiving.memory(buffer), self.whole.memory(it.buffer));
        if it.filled + len != it.total {
            self.whole.give_back(it.buffer);
            return Err(Fault::corrupt(rank, "length of a message"));
        }
        to.part(0, HEADER).copy_from(from.part(0, HEADER));
        to.part(HEADER + it.filled, len).copy_from(from.part(HEADER, len));
        self.receiving.give_back(buffer);
        // The credit of the last part goes back when the message is released.
        Ok(PooledMessage { buffer: it.buffer | WHOLE, len: it.total })
    }
}
