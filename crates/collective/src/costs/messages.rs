//! Costs of messages by their carrier: MPI's messages, streams, and RDMA writes into slots.
//!
//! ```text
//!              short                                    longer
//!   messages   a copy at either end, one after the      offered; the receiver reads the payload, so that several receivers copy at
//!              other                                    the same time; of several senders to one receiver, each writes its own
//!   streams    the same, without matching               the sender writes segments into places of the receiver, which copies them out
//!   writes     the sender writes data and a flag        (they are short)
//! ```

use super::{CallCosts, LinkWaits};
use crate::carrier::Carrier;
use weft_fabric::copies::LINE;
use weft_p2p::ProtocolLimits;
use weft_p2p::stream::StreamSizes;

/// Number of cache lines of a longer message in addition to its data: offer, acceptance, progress, end.
const HANDSHAKE: f64 = 4.0;

impl CallCosts<'_> {
    /// Returns the nanoseconds of a message; both ends work at the same time.
    pub fn message(&self, len: f64) -> f64 {
        if self.is_eager(len) {
            return self.line()
                + self.copy_in(len)
                + self.copy_out(len)
                + self.posting()
                + self.matching();
        }
        if self.carrier == Carrier::Streams {
            let (sender, receiver) = (self.stream_out(len), self.stream_in(len));
            let parts = (len / StreamSizes::default().segment as f64).ceil();
            let overlapped = sender.max(receiver) + sender.min(receiver) / parts;
            return HANDSHAKE * self.line() + overlapped + 2.0 * self.posting();
        }
        let copied = self.copy_in(len).max(self.copy_out(len)).min(self.read(len));
        HANDSHAKE * self.line() + copied + 4.0 * self.handling()
    }

    /// Returns true if a message of `len` bytes is eager, so that the sender does not wait.
    pub fn is_eager(&self, len: f64) -> bool {
        let most = match self.carrier {
            Carrier::Streams => StreamSizes::default().small,
            Carrier::Writes | Carrier::Immediates => usize::MAX,
            _ => ProtocolLimits::USUAL.eager,
        };
        len <= most as f64
    }

    /// Returns the nanoseconds of a processor for a message at either end, without its bytes. The time is zero unless the ranks are at
    /// known places in several caches: among other ranks, all messages have this cost in common.
    pub fn handling(&self) -> f64 {
        self.at_difference(1.0).map_or(0.0, |_| self.model.message)
    }

    /// Returns the nanoseconds of the sender's processor for a message, without its bytes. Streams and writes into slots only post.
    fn posting(&self) -> f64 {
        if self.is_matched() { self.handling() } else { self.handling() / 2.0 }
    }

    /// Returns the nanoseconds of the receiver's processor for a message, without its bytes. The receiver of streams and of writes into
    /// slots knows what comes.
    fn matching(&self) -> f64 {
        if self.is_matched() { self.handling() } else { 0.0 }
    }

    fn is_matched(&self) -> bool {
        !matches!(self.carrier, Carrier::Streams | Carrier::Writes)
    }

    /// Returns the nanoseconds of the sender's processor for `len` bytes of a stream.
    fn stream_out(&self, len: f64) -> f64 {
        self.copy_out(len) + if self.has_places(len) { self.copy(len) } else { 0.0 }
    }

    /// Returns the nanoseconds of the receiver's processor for `len` bytes of a stream.
    fn stream_in(&self, len: f64) -> f64 {
        if self.has_places(len) { self.copy(len) } else { 0.0 }
    }

    /// Returns true if a longer message of a stream goes through places of the receiver, and not straight to its buffer.
    fn has_places(&self, len: f64) -> bool {
        len <= StreamSizes::default().rendezvous as f64
    }

    /// Returns the nanoseconds for which a processor is busy with a message that it sends, before it sends the next one.
    pub fn send_busy(&self, len: f64) -> f64 {
        let line = self.flag();
        match self.carrier {
            _ if self.is_eager(len) => line + self.copy_in(len) + self.posting(),
            Carrier::Streams => line + self.stream_out(len) + self.posting(),
            // The offer, and the report of the end.
            _ => 2.0 * (line + self.handling()),
        }
    }

    /// Returns the nanoseconds of an empty message that announces `len` bytes, and of the read of these bytes from the sender's memory.
    pub fn announced(&self, len: f64) -> f64 {
        // Other reads in place are predicted by the distance of the ranks. Here the levels of the ranks give the rate of the copy.
        self.flag() + self.line() + self.handling() + self.model.cma_call + self.copy_out(len)
    }

    /// Returns the nanoseconds for which a processor is busy with an empty message that it sends.
    pub fn announcing(&self) -> f64 {
        self.flag() + self.handling()
    }

    /// Returns the nanoseconds for which a processor is busy with one of many messages that it receives. Senders of longer messages
    /// write into the receiver's memory.
    pub fn receive_busy(&self, len: f64) -> f64 {
        match self.carrier {
            _ if self.is_eager(len) => self.copy_out(len.max(LINE as f64)) + self.matching(),
            Carrier::Streams => self.stream_in(len) + self.matching(),
            // The offer, the acceptance and the end.
            _ => 3.0 * self.handling() + self.flag(),
        }
    }

    /// Returns the nanoseconds in which the other ranks transfer `len` bytes each to or from a rank, over the links of its cache and its
    /// socket.
    pub fn crossing(&self, len: f64) -> f64 {
        self.links(len, LinkWaits::OWN, |within| self.ranks - within)
    }

    /// Returns the nanoseconds of one of many messages that a rank sends or receives at once. `own` is this rank's part of the
    /// copies. The other ranks make the rest at the same time. If messages are long, the other ranks may make all copies, all at
    /// once.
    pub fn one_of_many(&self, len: f64, own: f64) -> f64 {
        if self.is_eager(len) {
            return self.line() + own;
        }
        let theirs = self.work(self.read(len)) / self.others();
        HANDSHAKE * self.line() + own.min(theirs)
    }

    /// Returns the nanoseconds of a message in a round. The line of the envelope, which the receiver has read, is written again and
    /// copied out.
    pub fn in_round(&self, len: f64) -> f64 {
        let envelope = self.flag() + self.copy_out(LINE as f64);
        envelope + self.message(len) + self.turns()
    }

    /// Returns the nanoseconds in which a rank sends a message to each other rank, at known places in several caches. Returns `None` for
    /// other ranks.
    pub fn one_to_many(&self, len: f64) -> Option<f64> {
        let far = self.at_difference(self.ranks)?;
        let sent = (self.others() - 1.0).max(0.0) * self.send_busy(len);
        let copied = if self.is_eager(len) { 0.0 } else { self.crossing(len) };
        Some((sent + far.message(len)).max(copied))
    }

    /// Returns the nanoseconds in which a rank receives a message from each other rank, at known places in several caches. Returns `None`
    /// for other ranks.
    pub fn many_to_one(&self, len: f64) -> Option<f64> {
        let far = self.at_difference(self.ranks)?;
        let received = (self.others() - 1.0).max(0.0) * self.receive_busy(len);
        let copied = if self.is_eager(len) { 0.0 } else { self.crossing(len) };
        Some((received + far.message(len)).max(copied))
    }
}
