//! The optional parts of the fabric trait that [`Verbs`] implements.

use super::*;

impl weft_fabric::Registration for Verbs {
    fn prepare(&self, memory: Sge, way: RdmaDirection) -> Result<Option<Region>, Fault> {
        let uses = match way {
            RdmaDirection::Write => Uses::Reads,
            RdmaDirection::Read => Uses::Writes,
        };
        // SAFETY: `expose` needs memory that stays mapped: the maker of the `Sge` promised that the memory outlives the
        // operations, which are the last users.
        unsafe { self.state.borrow_mut().memories.expose(memory, uses) }.map(Some)
    }

    fn adopt(&self, memory: Sge) -> Result<Region, Fault> {
        // SAFETY: `expose` needs memory that stays mapped: the maker of the `Sge` promised that the memory lives until the region
        // is withdrawn.
        unsafe { self.state.borrow_mut().memories.expose(memory, Uses::Atomics) }
    }
}

impl weft_fabric::Rails for Verbs {
    fn write_over(&self, rail: usize, peer: usize, write: &RemoteWrite) -> Result<(), Fault> {
        self.posting_for(write.done, |state, core| state.write_over(core, rail, peer, write))
    }

    fn read_over(&self, rail: usize, peer: usize, read: &RemoteRead) -> Result<(), Fault> {
        self.posting_for(read.done, |state, core| state.read_over(core, rail, peer, read))
    }

    fn write_flag_after(&self, rail: usize, peer: usize, set: &FlagWrite) -> Result<bool, Fault> {
        let tail = onesided::flag(peer, set)?;
        self.posting_for(None, |state, core| state.flag_after(core, rail, peer, tail))
    }

    fn rail_works(&self, rail: usize, peer: usize) -> bool {
        let state = self.state.borrow();
        state.secondary.may_work(&self.core, &state.connections, rail, peer)
    }

    fn fragment_min(&self) -> Option<usize> {
        None
    }
}

impl weft_fabric::Immediates for Verbs {
    fn write_imm(&self, peer: usize, write: &RemoteWrite, immediate: u32) -> Result<(), Fault> {
        let tail = WriteTail::Immediate(immediate);
        self.posting_for(write.done, |state, core| state.write(core, peer, write, tail))
    }

    fn immediate(&self, immediate: u32) -> Counter {
        self.core.counters.immediate(immediate)
    }
}

impl weft_fabric::SignalSafe for Verbs {
    fn peek(&self, look: &mut dyn FnMut(&ArrivedMessage) -> Peek) -> bool {
        peek::peek(&self.state, &self.core, look)
    }

    fn try_read(&self, peer: usize, read: &RemoteRead) -> bool {
        self.state.borrow_mut().try_read(&self.core, peer, read)
    }

    fn try_write(&self, peer: usize, write: &RemoteWrite) -> bool {
        self.state.borrow_mut().try_write(&self.core, peer, write)
    }

    fn try_send(&self, peer: usize, head: Head) -> bool {
        self.state.borrow_mut().try_send(peer, head)
    }
}

impl weft_fabric::Helper for Verbs {
    fn send_solicited(
        &self,
        peer: usize,
        head: Head,
        payload: Sge,
        done: Completion,
    ) -> PostOutcome {
        let message = PostedMessage { head, attention: Attention::Helper, payload };
        self.posting(|state, core| state.send(core, peer, message, done))
    }

    fn helper(&self) -> Arc<dyn Sleep> {
        self.sleeper.helping.exist();
        Arc::new(SleepPlace(self.sleeper.clone()))
    }

    fn let_helper_sleep_at_ends(&self) {
        self.sleeper.helping.ignore_ends();
    }

    fn moves_by_progress(&self) -> bool {
        false
    }
}

impl weft_fabric::Multicast for Verbs {
    fn join(&self, group: GroupId) {
        self.posting(|state, core| {
            let VerbsState { multicast, rails, trouble, .. } = state;
            if let Some(multicast) = multicast {
                multicast.join(core, &rails[0], trouble, group);
            }
        });
    }

    fn leave(&self, group: GroupId) {
        let VerbsState { multicast, rails, .. } = &mut *self.state.borrow_mut();
        if let Some(multicast) = multicast {
            multicast.leave(&rails[0], group);
        }
    }

    fn multicast(&self, group: GroupId, src: Sge) -> Result<(), Fault> {
        self.posting(|state, core| state.multicast(core, group, src))
    }

    fn receive_multicast(&self, into: Sge) -> Option<Datagram> {
        self.posting(|state, core| state.multicast.as_mut()?.receive(core, &state.memories, into))
    }
}

impl weft_fabric::Nodes for Verbs {
    fn node(&self, peer: usize) -> usize {
        // A layer above knows the nodes of the job's own processes, and this fabric does not.
        self.core.roster.borrow().foreign(peer).map_or(0, |foreign| foreign.node)
    }

    // A layer above knows the processors of this node's processes.
    fn groups(&self, _peer: usize) -> Option<weft_fabric::copies::ProcessorGroups> {
        None
    }

    fn same_arithmetic(&self) -> bool {
        self.core.same_arithmetic
    }
}
