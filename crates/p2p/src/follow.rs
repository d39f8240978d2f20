//! Payloads on the sender's shelf, the receiver's part: copy what lies there while the sender puts down more.
//!
//! ```text
//!   Rts(place) ──> matched: follow ──> all there: Fin(how fast)
//!                     │ missed some for a while
//!                     └──> in the list, looked after by progress; the sender tells by Whole
//! ```

use crate::endpoint::{Endpoint, State};
use crate::envelope::{Envelope, Kind};
use crate::receive::Offer;
use crate::request::Stage;
use weft_fabric::flow::{Flow, Followed, HEAD};
use weft_fabric::{Fabric, Fault, RemoteAddr, Sge};

/// What Fin says of the copy of a payload from a shelf, for [`weft_fabric::pace::told`].
const UNMEASURED: u64 = 0;
pub(crate) const FAST: u64 = 1;
pub(crate) const SLOW: u64 = 2;

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
        let followed = match seen.as_ref().and_then(Flow::at) {
            Some(flow) => flow.follow(there, into),
            None => self.read_whole(peer, at, len, into),
        };
        let measured = match followed {
            Followed::Part(there) => {
                follower.there = there;
                return false;
            }
            Followed::Corrupt => {
                state.fault = Some(Fault::corrupt(peer, "payload on the shelf"));
                return true;
            }
            Followed::Whole(Some(slow)) => FAST + u64::from(slow),
            Followed::Whole(None) => UNMEASURED,
        };
        let slot = &mut state.requests[index];
        slot.stage = Stage::Complete;
        self.advance(slot);
        let head = Envelope::reply(Kind::Fin, slot.remote, measured);
        match self.limits.rouses_at_end {
            true => _ = self.fabric.send_solicited(peer, head, Sge::EMPTY, None),
            false => self.control(peer, head),
        }
        true
    }

    /// The same through a fabric that hides the memory: it asks, and reads once all is there.
    #[cold]
    fn read_whole(&self, peer: usize, at: RemoteAddr, len: usize, into: Sge) -> Followed {
        let mut poured = [0u8; 8];
        // SAFETY: near peers' operations are over when they are posted.
        let result = unsafe { Sge::new(poured.as_mut_ptr(), poured.len()) };
        let mut asked = [0u8; 8];
        // SAFETY: as above.
        let asks = unsafe { Sge::new(asked.as_mut_ptr(), asked.len()) };
        // Who finds too little has asked before, and is told.
        let looked = self
            .fabric
            .fetch_add(peer, at.offset(8), 1, asks, None)
            .and_then(|()| self.fabric.fetch_add(peer, at, 0, result, None));
        let seen = u64::from_ne_bytes(poured) as usize;
        match looked {
            Ok(()) if seen < len => Followed::Part(0),
            Ok(()) if seen == len => {
                let from = at.offset(HEAD as u64);
                match self.fabric.read(peer, into, from, None) {
                    Ok(()) => Followed::Whole(None),
                    Err(_) => Followed::Corrupt,
                }
            }
            _ => Followed::Corrupt,
        }
    }
}
