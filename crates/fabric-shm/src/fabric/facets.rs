//! The optional parts of the shared-memory fabric.

use super::*;

impl weft_fabric::MappedMemory for Shm {
    fn allocate_on_node(&self, len: usize) -> Result<Region, Fault> {
        self.allocate(len)
    }

    fn allocate_spare(&self, len: usize) -> Result<Region, Fault> {
        self.allocate_spare_region(len)
    }

    fn lies_within(&self, memory: Sge) -> bool {
        self.is_within(memory)
    }

    #[inline]
    fn mapped(&self, peer: usize, at: RemoteAddr, len: usize) -> Option<Sge> {
        self.view(peer, at, len)
    }

    fn shown(&self, peer: usize, at: RemoteAddr, len: usize) -> Option<Sge> {
        self.view(peer, at, len)
    }

    fn words(&self, peer: usize, at: RemoteAddr, count: usize) -> Option<PeerWords> {
        let first = NonNull::from(self.words_at(peer, at, count).ok()?).cast();
        // SAFETY: `words_at` checked that the words are aligned and lie in the mapping, which `home` keeps. Peers access them
        // only by atomics.
        Some(unsafe { PeerWords::new(first, count, self.peers[peer].home.clone()) })
    }
}

impl weft_fabric::Immediates for Shm {
    fn write_imm(
        &self,
        peer: usize,
        src: Sge,
        dst: RemoteAddr,
        immediate: u32,
        done: Completion,
    ) -> Result<(), Fault> {
        self.put(peer, src, dst)?;
        self.announce(peer, immediate);
        self.complete(done);
        Ok(())
    }

    fn immediate(&self, immediate: u32) -> Counter {
        self.counters.immediate(immediate)
    }
}

impl weft_fabric::SignalSafe for Shm {
    fn peek(&self, look: &mut dyn FnMut(&ArrivedMessage) -> Peek) -> bool {
        self.peek_at_messages(look)
    }

    fn try_read(&self, peer: usize, dst: Sge, src: RemoteAddr, done: Completion) -> bool {
        let read = self.is_open(peer, src, dst.len()) && self.get(peer, dst, src).is_ok();
        if read {
            self.complete(done);
        }
        read
    }

    fn try_write(&self, peer: usize, src: Sge, dst: RemoteAddr, done: Completion) -> bool {
        self.is_open(peer, dst, src.len()) && self.write(peer, src, dst, done).is_ok()
    }

    fn try_send(&self, peer: usize, head: Head) -> bool {
        self.try_push(peer, head)
    }
}

impl weft_fabric::Helper for Shm {
    fn send_solicited(
        &self,
        peer: usize,
        head: Head,
        payload: Sge,
        done: Completion,
    ) -> PostOutcome {
        self.send_solicited_message(peer, head, payload, done)
    }

    fn helper(&self) -> Arc<dyn Sleep> {
        Arc::new(RankBell { segment: self.segment.clone(), rank: self.rank, helper: true })
    }

    fn notify_helper_at_ends(&self, _notify: bool) {}

    fn moves_by_progress(&self) -> bool {
        false
    }
}

impl weft_fabric::Multicast for Shm {
    fn join(&self, group: GroupId) {
        self.datagrams.join(group);
    }

    fn leave(&self, group: GroupId) {
        self.datagrams.leave(group);
    }

    fn multicast(&self, group: GroupId, src: Sge) -> Result<(), Fault> {
        self.speak(group, src);
        Ok(())
    }

    fn receive_multicast(&self, into: Sge) -> Option<Datagram> {
        self.datagrams.listen(&self.segment, self.rank, self.peers.own(), into)
    }
}

impl weft_fabric::Nodes for Shm {
    fn node(&self, _peer: usize) -> usize {
        0
    }

    fn same_arithmetic(&self) -> bool {
        self.same_arithmetic
    }
}
