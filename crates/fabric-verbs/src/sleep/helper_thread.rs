//! The sleep of the helper thread: its own `poll` over the completion channels.
//!
//! Contract. The helper and the sleepers of the program share the completion queues and their channels. After an arming, an adapter
//! raises only one event, even if both sides have armed. If one side takes the event, the other side does not see it.
//!
//! - The program's threads arm for any completion. The helper arms for solicited arrivals and connect requests. If the completion
//!   of an operation is awaited, the helper also arms for that completion. While work is kept or a connection is being made, the
//!   helper arms for everything (credits, room in the window).
//! - An arming for everything remains in effect until its event, even if the other side arms for less in the meantime.
//! - A side that takes an event rings the other side, if the other side has armed. The other side then arms again and polls. So
//!   no arming is lost without a ring.
//! - So if the network ends a sleep of the program's threads, the helper may wake once for nothing. It then finds the threads
//!   inside the library, and waits until they leave.
//! - The set of events for the helper depends on later actions of the main thread. An operation with a completion arms for that
//!   completion before it is posted ([`HelperShare::expect`]). The first kept work, or the first connect request, rings
//!   ([`HelperShare::set_busy`]). Both need to act only while the helper has armed. A helper that arms later sees the flags, which
//!   are already set.
//!
//! [`HelperShare::expect`]: crate::sleep::helper_share::HelperShare::expect
//! [`HelperShare::set_busy`]: crate::sleep::helper_share::HelperShare::set_busy

use crate::adapter::object::ArmFor;
use crate::sleep::{PollScope, VerbsSleeper};
use std::sync::Arc;
use std::time::Duration;
use weft_fabric::wait::{Sleep, Token};

/// Maximum duration of a sleep while work is kept, or while a connect request awaits its answer.
const WHILE_BUSY: Duration = Duration::from_millis(10);

/// The place where the helper sleeps. Only one thread sleeps there at a time. Any thread may arm for this thread and ring it.
pub struct SleepPlace(pub Arc<VerbsSleeper>);

impl Sleep for SleepPlace {
    fn arm(&self) -> Token {
        let helping = &self.0.helping;
        let token = helping.announce();
        let busy = helping.is_busy();
        let awaited = helping.awaits();
        let arrivals = if busy { ArmFor::Any } else { ArmFor::Solicited };
        for base in &self.0.bases {
            base.arrivals.arm(arrivals);
            base.datagrams.arm(ArmFor::Solicited);
            if busy || awaited {
                base.departures.arm(ArmFor::Any);
            }
        }
        token
    }

    fn sleep(&self, token: Token, limit: Duration) {
        let (sleeper, helping) = (&*self.0, &self.0.helping);
        sleeper.note_slept();
        let limit = if helping.is_busy() { limit.min(WHILE_BUSY) } else { limit };
        if self.may_have_rung(token) {
            return;
        }
        let polled = sleeper.poll(helping.descriptors(), PollScope::Completions, limit);
        if polled.event {
            sleeper.event_taken();
        }
    }

    fn disarm(&self) {
        self.0.helping.disarm();
    }

    fn ring(&self) {
        self.0.helping.ring();
    }

    fn may_have_rung(&self, token: Token) -> bool {
        self.0.helping.token() != token
    }
}
