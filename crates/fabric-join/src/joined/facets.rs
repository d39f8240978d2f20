//! The optional parts of two joined fabrics.

use super::*;

impl<N: Fabric, R: Fabric> weft_fabric::MappedMemory for Joined<N, R> {
    fn allocate_on_node(&self, len: usize) -> Result<Region, Fault> {
        let near = self.near.allocate(len)?;
        Ok(Region { remote: address::near_only(near.remote), ..near })
    }

    fn allocate_spare(&self, len: usize) -> Result<Region, Fault> {
        let near = self.near.allocate_spare(len)?;
        Ok(Region { remote: address::near_only(near.remote), ..near })
    }

    fn lies_within(&self, memory: Sge) -> bool {
        self.near.lies_within(memory)
    }

    fn mapped(&self, peer: usize, at: RemoteAddr, len: usize) -> Option<Sge> {
        ask!(self, peer, near(n, p) n.mapped(p, address::near(at), len), far(f) f.mapped(peer, address::far(at), len))
    }

    fn shown(&self, peer: usize, at: RemoteAddr, len: usize) -> Option<Sge> {
        ask!(self, peer, near(n, p) n.shown(p, address::near(at), len), far(f) f.shown(peer, address::far(at), len))
    }

    fn populate(&self, memory: Sge) {
        self.near.populate(memory);
    }

    fn words(&self, peer: usize, at: RemoteAddr, count: usize) -> Option<PeerWords> {
        match self.route(peer) {
            Route::Near(rank) if self.by_processors(at) => {
                self.near.words(rank as usize, address::near(at), count)
            }
            _ => None,
        }
    }
}

impl<N: Fabric, R: Fabric> weft_fabric::Registration for Joined<N, R> {
    fn prepare(&self, memory: Sge, way: RdmaDirection) -> Result<Option<Region>, Fault> {
        match self.far.prepare(memory, way)? {
            Some(far) => self.extend(self.near.expose(memory)?, Ok(far)).map(Some),
            None => Ok(None),
        }
    }

    fn adopt(&self, _memory: Sge) -> Result<Region, Fault> {
        Err(Fault::unsupported(self.rank(), "adopt another fabric's memory"))
    }
}

impl<N: Fabric, R: Fabric> weft_fabric::Rails for Joined<N, R> {
    fn write_over(&self, rail: usize, peer: usize, write: &RemoteWrite) -> Result<(), Fault> {
        ask!(self, peer,
            near(n, p) n.write(p, &address::near_write(write)).map_err(|e| self.named(e)),
            far(f) f.write_over(rail, peer, &address::far_write(write)))
    }

    fn read_over(&self, rail: usize, peer: usize, read: &RemoteRead) -> Result<(), Fault> {
        ask!(self, peer,
            near(n, p) n.read(p, &address::near_read(read)).map_err(|e| self.named(e)),
            far(f) f.read_over(rail, peer, &address::far_read(read)))
    }

    fn write_flag_after(&self, rail: usize, peer: usize, set: &FlagWrite) -> Result<bool, Fault> {
        ask!(self, peer,
            near(n, p) n
                .write_flag_after(rail, p, &address::near_flag(set))
                .map_err(|e| self.named(e)),
            far(f) f.write_flag_after(rail, peer, &address::far_flag(set)))
    }

    fn rail_works(&self, rail: usize, peer: usize) -> bool {
        ask!(self, peer, near(_n, _p) true, far(f) f.rail_works(rail, peer))
    }

    fn fragment_min(&self) -> Option<usize> {
        self.far.fragment_min()
    }
}

impl<N: Fabric, R: Fabric> weft_fabric::Immediates for Joined<N, R> {
    fn write_imm(&self, peer: usize, write: &RemoteWrite, immediate: u32) -> Result<(), Fault> {
        ask!(self, peer,
            near(n, p) n
                .write_imm(p, &address::near_write(write), immediate)
                .map_err(|e| self.named(e)),
            far(f) f.write_imm(peer, &address::far_write(write), immediate))
    }

    fn immediate(&self, immediate: u32) -> Counter {
        self.counters.immediate(immediate)
    }
}

impl<N: Fabric, R: Fabric> weft_fabric::SignalSafe for Joined<N, R> {
    fn peek(&self, look: &mut dyn FnMut(&ArrivedMessage) -> Peek) -> bool {
        let hidden = self.near.peek(&mut |message| {
            let ArrivedMessage { head, payload, token, .. } = *message;
            look(&self.renumbered(ArrivedMessage { peer: message.peer, head, payload, token }))
        });
        self.far.peek(look) | hidden
    }

    fn try_read(&self, peer: usize, read: &RemoteRead) -> bool {
        ask!(self, peer,
            near(n, p) n.try_read(p, &address::near_read(read)),
            far(f) f.try_read(peer, &address::far_read(read)))
    }

    fn try_write(&self, peer: usize, write: &RemoteWrite) -> bool {
        ask!(self, peer,
            near(n, p) n.try_write(p, &address::near_write(write)),
            far(f) f.try_write(peer, &address::far_write(write)))
    }

    fn try_send(&self, peer: usize, head: Head) -> bool {
        ask!(self, peer, near(n, p) n.try_send(p, head), far(f) f.try_send(peer, head))
    }
}

impl<N: Fabric, R: Fabric> weft_fabric::Helper for Joined<N, R> {
    fn send_solicited(
        &self,
        peer: usize,
        head: Head,
        payload: Sge,
        done: Completion,
    ) -> PostOutcome {
        ask!(self, peer,
            near(n, p) n.send_solicited(p, head, payload, done),
            far(f) f.send_solicited(peer, head, payload, done))
    }

    fn helper(&self) -> Arc<dyn Sleep> {
        Arc::new(JoinedSleep::new(self.near.helper(), self.far.helper()))
    }

    fn let_helper_sleep_at_ends(&self) {
        self.near.let_helper_sleep_at_ends();
        self.far.let_helper_sleep_at_ends();
    }

    fn moves_by_progress(&self) -> bool {
        self.near.moves_by_progress() || self.far.moves_by_progress()
    }
}

/// Multicast by the far fabric only. Its datagrams reach the other ranks of this node, too.
impl<N: Fabric, R: Fabric> weft_fabric::Multicast for Joined<N, R> {
    fn join(&self, group: GroupId) {
        self.far.join(group);
    }

    fn leave(&self, group: GroupId) {
        self.far.leave(group);
    }

    fn multicast(&self, group: GroupId, src: Sge) -> Result<(), Fault> {
        self.far.multicast(group, src)
    }

    fn receive_multicast(&self, into: Sge) -> Option<Datagram> {
        self.far.receive_multicast(into)
    }
}

impl<N: Fabric, R: Fabric> weft_fabric::Nodes for Joined<N, R> {
    fn node(&self, peer: usize) -> usize {
        self.nodes.get(peer).map_or_else(|| self.far.node(peer), |&node| node as usize)
    }

    fn groups(&self, peer: usize) -> Option<weft_fabric::copies::ProcessorGroups> {
        match self.route(peer) {
            Route::Near(rank) => self.near.groups(rank as usize),
            _ => None,
        }
    }

    fn same_arithmetic(&self) -> bool {
        self.far.same_arithmetic()
    }
}
