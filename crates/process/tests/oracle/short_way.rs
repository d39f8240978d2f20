//! A receive that waits for a network progresses the network, since polls without progress bring nothing.

use std::cell::Cell;
use std::rc::Rc;
use weft_bootstrap::SingleProcess;
use weft_fabric::wait::WaitPolicy;
use weft_fabric::{ArrivedMessage, Capabilities, Fabric, Facets, Sge, boxed};
use weft_fabric_shm::Shm;
use weft_p2p::{ProtocolLimits, SendMode};
use weft_process::{Comm, Destination, Engine, Origin, Single};

/// Number of progress calls until a message is there.
const FAR: u32 = 40;

/// Shared memory that behaves as a network: a message is seen only after a number of progress calls. The type counts the failed
/// polls in a row without a progress call.
struct Network {
    inner: Shm,
    /// True if the memory behaves as a network.
    far: bool,
    away: Cell<u32>,
    vain: Cell<u32>,
    most: Rc<Cell<u32>>,
}

macro_rules! pass_on {
    ($(fn $name:ident(&self $(, $arg:ident: $type:ty)*) $(-> $out:ty)?;)*) => {
        $(fn $name(&self $(, $arg: $type)*) $(-> $out)? { self.inner.$name($($arg),*) })*
    };
}

impl Fabric for Network {
    weft_fabric::methods!(Memory, pass_on);
    weft_fabric::methods!(OneSided, pass_on);

    fn facets(&self) -> Facets<'_> {
        self.inner.facets()
    }

    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn capabilities(&self, peer: usize) -> Capabilities {
        let shares_memory = !self.far;
        Capabilities { shares_memory, ..self.inner.capabilities(peer) }
    }

    fn copies(&self) -> &weft_fabric::Copies {
        self.inner.copies()
    }

    fn counters(&self) -> &weft_fabric::Counters {
        self.inner.counters()
    }

    fn fault(&self) -> Option<weft_fabric::Fault> {
        self.inner.fault()
    }

    fn progress(&self) -> bool {
        self.away.set(self.away.get().saturating_sub(1));
        self.vain.set(0);
        self.inner.progress()
    }

    fn keeps_back(&self) -> bool {
        self.inner.keeps_back()
    }

    fn idle(&self) -> bool {
        self.inner.idle()
    }

    fn sleeper(&self) -> std::sync::Arc<dyn weft_fabric::wait::Sleep> {
        self.inner.sleeper()
    }

    fn send(
        &self,
        peer: usize,
        head: weft_fabric::Head,
        payload: Sge,
        done: weft_fabric::Completion,
    ) -> weft_fabric::PostOutcome {
        self.away.set(FAR);
        self.inner.send(peer, head, payload, done)
    }

    fn receive(&self, from: Option<usize>) -> Option<ArrivedMessage> {
        if self.away.get() == 0 {
            return self.inner.receive(from);
        }
        self.vain.set(self.vain.get() + 1);
        self.most.set(self.most.get().max(self.vain.get()));
        None
    }

    fn release(&self, message: ArrivedMessage) {
        self.inner.release(message);
    }
}

/// Returns the maximum number of failed polls in a row of a receive whose message is on its way.
fn looks_in_vain(far: bool) -> u32 {
    let inner = Shm::connect(&mut SingleProcess::new()).unwrap();
    let most = Rc::new(Cell::new(0));
    let (away, vain) = Default::default();
    let network = Network { inner, far, away, vain, most: most.clone() };
    let engine = Engine::new(boxed(network), WaitPolicy::new(true), ProtocolLimits::default());
    let comm = Comm::world(&engine);
    comm.send_run(&Single, Sge::EMPTY, Destination::Rank(0), 1, SendMode::Standard).unwrap();
    let status = comm.recv_run(&Single, Sge::EMPTY, Origin::Rank(0), Some(1)).unwrap();
    assert_eq!(status.tag, 1);
    most.get()
}

#[test]
fn who_waits_for_a_network_moves_it_on_between_two_looks() {
    assert_eq!(looks_in_vain(true), 1);
    // In shared memory, polls are enough, and the first polls are quicker without progress.
    assert!(looks_in_vain(false) > 1);
}
