//! The helper thread of a rank, which corresponds to `weft_fabric::wait::HelperHandle` on real machines: it sleeps until a
//! solicited message raises an interrupt, and works only while the main thread computes.

use super::Thread;
use crate::sim::Sim;
use crate::threads::InterruptEvent;
use std::future::poll_fn;
use std::task::Poll;
use weft_fabric::Fabric;

impl Sim {
    /// Starts the helper of this rank, with this priority (see [`Sim::spawn`]). `work` makes progress where possible, and returns
    /// true if it has made progress. The helper costs the machine's interrupts and switches, and the posts and charges of `work`.
    ///
    /// A main thread that does not [compute](Sim::compute) is inside the library, and makes progress itself.
    pub fn help(&self, priority: i32, mut work: impl FnMut() -> bool + 'static) -> Thread {
        let sim = self.clone();
        self.spawn(priority, async move {
            loop {
                sim.arm(InterruptEvent::Helper).await;
                let computes = sim.state().host(sim.rank()).main_computes();
                if !computes {
                    sim.stand_back().await;
                    sim.sleep_armed().await;
                } else if !work() {
                    sim.sleep_armed().await;
                }
            }
        })
    }

    /// Sleeps without an armed event until the main thread computes again. The main thread then arms this thread. Until then, it
    /// handles arrivals itself.
    async fn stand_back(&self) {
        {
            let state = &mut *self.state();
            let host = state.host(self.rank());
            host.stands_back = Some(host.current);
            let me = host.me();
            (me.armed, me.fired) = (None, None);
        }
        poll_fn(|_| {
            let back = self.state().host(self.rank()).stands_back.is_some();
            if back { self.rest(None) } else { Poll::Ready(()) }
        })
        .await;
    }
}
