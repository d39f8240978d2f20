//! Payloads on the sender's shelf, the receiver's part: copy what lies there while the sender puts down more.
//!
//! ```text
//!   Rts(place) ──> matched: follow ──> all there: Fin
//!                     │ missed some for a while
//!                     └──> in the list, looked after by progress; the sender tells by Whole
//! ```

use crate::endpoint::Endpoint;
use crate::envelope::{Envelope, Kind};
use crate::receive::Offer;
use crate::request::Stage;
use crate::state::State;
use weft_fabric::{Fabric, Fault, RemoteAddr, Sge};
use weft_intranode::pipelined::{Consumed, HEAD, Pipelined};

/// A receive whose payload is still being poured.
pub struct Follower {
    index: u32,
    peer: usize,
    at: RemoteAddr,
    /// The payload's length at the sender, in bytes.
    len: usize,
    into: Sge,
    /// Bytes that are here.
    there: usize,
}

impl<F: Fabric> Endpoint<F> {
    /// Copies an offered payload from its sender's shelf into `into`, which belongs to the receive `index`.
    pub(crate) fn follow(
        &self,
        state: &mut State,
        index: u32,
        peer: usize,
        into: Sge,
        offer: &Offer,
    ) {
        state.seldom.read += 1;
        state.requests[index].stage = Stage::Reading;
        let (at, len) = (offer.remote, offer.len as usize);
        let mut follower = Follower { index, peer, at, len, into, there: 0 };
        if !self.goes_on(state, &mut follower) {
            state.followed.push(follower);
        }
    }

    /// Looks after all that were left. True if one of them is over.
    #[cold]
    pub(crate) fn follow_all(&self, state: &mut State) -> bool {
        let mut left = std::mem::take(&mut state.followed);
        let before = left.len();
        left.retain_mut(|follower| !self.goes_on(state, follower));
        let over = left.len() < before;
        state.followed = left;
        over
    }

    /// True: the receive is over, or there is a fault.
    fn goes_on(&self, state: &mut State, follower: &mut Follower) -> bool {
        let &mut Follower { index, peer, at, len, into, there } = follower;
        let seen = self.fabric.mapped(peer, at, HEAD + len);
        let followed = match seen.as_ref().and_then(Pipelined::at) {
            Some(pipelined) => pipelined.consume(there, into, self.fabric.copies()),
            // Near peers see each other's memory: no such place.
            None => Consumed::Corrupt,
        };
        match followed {
            Consumed::Whole => {}
            Consumed::Part(there) => {
                follower.there = there;
                return false;
            }
            Consumed::Corrupt => {
                state.fault = Some(Fault::corrupt(peer, "payload on the shelf"));
                return true;
            }
        }
        let slot = &mut state.requests[index];
        slot.stage = Stage::Complete;
        self.advance(slot);
        let head = Envelope::reply(Kind::Fin, slot.remote, 0);
        match self.limits.get().rouses_at_end {
            true => _ = self.fabric.send_solicited(peer, head, Sge::EMPTY, None),
            false => self.control(peer, head),
        }
        true
    }
}
