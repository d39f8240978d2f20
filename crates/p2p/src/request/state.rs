//! State machine of an operation: the stages of a request, and the transitions between them.
//!
//! ```text
//!   send
//!     Free ── queue ──────> Queued ─────────────────────────────────────────────────────┐
//!          ── send_sync ──> Unacknowledged ── recv_ack ──> Queued ──────────────────────┤
//!          ── send_rts ───> Offered ── recv_cts ──> Pushing ────────────────────────────┤
//!                                   ── recv_rtr ──> Writing ── end_rdma ──> Complete ───┤
//!          ── open_stream_send ──> StreamOut ── end_stream ──> Complete ────────────────┤
//!   receive                                                                             ├── free ──> Free
//!     Free ── post ──> Posted                                                           │
//!     Free (message is here already), Posted                                            │
//!          ── deliver ──────> Complete ─────────────────────────────────────────────────┤
//!          ── start_read ───> Reading ── end_rdma ──────> Complete ─────────────────────┤
//!          ── send_cts ─────> Filling ── end_pieces ────> Complete ─────────────────────┤
//!          ── send_rtr ─────> Landing ── end_pieces, end_by_peer ──> Complete ──────────┤
//!          ── share_copy ───> Sharing ── end_by_peer ───> Complete ─────────────────────┤
//!     Posted ── withdraw ──────> Complete (cancelled) ──────────────────────────────────┤
//!     Free ── open_stream_receive ──> StreamIn ── end_stream ──> Complete ──────────────┘
//!
//!   Unacknowledged, Offered ── end_by_peer (also a cancellation) ──> Complete
//! ```
//! No transition completes a send that is `Queued` or `Pushing`. Such a send is complete when the fabric has advanced the request's
//! counter to the target. In debug builds, every transition asserts that it comes from an allowed stage.

use RequestStage::*;

/// Stage of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RequestStage {
    /// No operation: the slot is free, or its receive has neither been posted nor matched yet.
    #[default]
    Free,
    /// Send: the fabric still needs the payload.
    Queued,
    /// Send: an `EagerSync` that is not yet acknowledged.
    Unacknowledged,
    /// Send: an `Rts` that is not yet answered.
    Offered,
    /// Send: the fabric still has to send pieces.
    Pushing,
    /// Send: RDMA writes of the payload are under way.
    Writing,
    /// Receive: in the list of posted receives.
    Posted,
    /// Receive: an RDMA read is under way, or a staged payload is being copied out.
    Reading,
    /// Receive: waits for pieces.
    Filling,
    /// Receive: the sender writes the payload.
    Landing,
    /// Receive: the sender was also asked to copy pieces.
    Sharing,
    /// Send: a stream carries the message.
    StreamOut,
    /// Receive: a stream carries the message.
    StreamIn,
    /// The operation is complete, but its status has not been taken yet.
    Complete,
}

/// State of an operation. Only the transitions here change the stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestState {
    stage: RequestStage,
}

/// Defines a transition: its name, the stages that it may come from, and the stage that it leads to.
macro_rules! transitions {
    ($($(#[$doc:meta])* $name:ident: $($from:ident)|+ => $to:ident;)*) => {
        impl RequestState {
            $(
                $(#[$doc])*
                #[inline(always)]
                pub fn $name(&mut self) {
                    debug_assert!(
                        matches!(self.stage, $($from)|+),
                        concat!(stringify!($name), " at {:?}"),
                        self.stage
                    );
                    self.stage = $to;
                }
            )*
        }
    };
}

transitions! {
    // ---- send ----
    /// Notes that the fabric has queued an eager payload.
    queue: Free => Queued;
    /// Notes that a synchronous eager message is sent.
    send_sync: Free => Unacknowledged;
    /// Handles the acknowledgement of a synchronous message: only the fabric may still need the payload.
    recv_ack: Unacknowledged => Queued;
    /// Notes that the payload is offered.
    send_rts: Free => Offered;
    /// Handles the request for pieces of an offered payload, or goes on in pieces if the payload cannot be written.
    recv_cts: Offered => Pushing;
    /// Handles the address for an offered payload: writes have begun.
    recv_rtr: Offered => Writing;

    // ---- receive ----
    /// Notes that a receive waits for its message.
    post: Free => Posted;
    /// Ends a receive whose whole message is here at the match.
    deliver: Free | Posted => Complete;
    /// Notes that the payload of a matched offer is being read.
    start_read: Free | Posted => Reading;
    /// Notes that the sender of a matched offer is asked for pieces.
    send_cts: Free | Posted => Filling;
    /// Notes that the sender of a matched offer is asked to write.
    send_rtr: Free | Posted => Landing;
    /// Notes that the sender of a matched offer is also asked to copy pieces.
    share_copy: Free | Posted => Sharing;
    /// Ends a receive that has all pieces. A sender that was asked to write may send pieces instead.
    end_pieces: Filling | Landing => Complete;
    /// Ends a posted receive that is cancelled.
    withdraw: Posted => Complete;

    // ---- both ----
    /// Ends an operation whose reads or writes are complete.
    end_rdma: Reading | Writing => Complete;
    /// Ends an operation by a message of its peer (Ats, Atp, CoCopyReply, Cancelled), or a send that is cancelled here.
    end_by_peer: Unacknowledged | Offered | Landing | Sharing => Complete;
    /// Notes that a stream carries a send.
    open_stream_send: Free => StreamOut;
    /// Notes that a stream carries a receive.
    open_stream_receive: Free => StreamIn;
    /// Ends an operation that a stream has carried.
    end_stream: StreamOut | StreamIn => Complete;
    /// Frees the state of an operation that is complete.
    free: Queued | Pushing | Complete => Free;
}

impl RequestState {
    /// Returns the stage.
    #[inline(always)]
    pub fn stage(self) -> RequestStage {
        self.stage
    }

    /// Returns true if the operation is at `stage`.
    #[inline(always)]
    pub fn is(self, stage: RequestStage) -> bool {
        self.stage == stage
    }

    /// Returns true if this process reads or writes a payload, and must report the end to its peer.
    #[inline(always)]
    pub fn is_rdma(self) -> bool {
        matches!(self.stage, Reading | Writing)
    }

    /// Returns true if pieces of the payload may arrive.
    #[inline(always)]
    pub fn takes_pieces(self) -> bool {
        matches!(self.stage, Filling | Landing)
    }

    /// Returns true if the operation is a receive under way.
    pub fn receives(self) -> bool {
        matches!(self.stage, Posted | Reading | Filling | Landing | Sharing | StreamIn)
    }

    /// Returns true if the operation is neither free nor complete.
    pub fn is_under_way(self) -> bool {
        !matches!(self.stage, Free | Complete)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Carries out the transitions one after the other. Returns the stage after each transition.
    fn stages(transitions: &[fn(&mut RequestState)]) -> Vec<RequestStage> {
        let mut state = RequestState::default();
        let step = |transition: &fn(&mut RequestState)| {
            transition(&mut state);
            state.stage()
        };
        transitions.iter().map(step).collect()
    }

    #[test]
    fn a_send_goes_from_its_offer_to_its_end() {
        type S = RequestState;
        assert_eq!(stages(&[S::queue, S::free]), [Queued, Free]);
        assert_eq!(stages(&[S::send_sync, S::recv_ack]), [Unacknowledged, Queued]);
        assert_eq!(stages(&[S::send_rts, S::recv_cts, S::free]), [Offered, Pushing, Free]);
        assert_eq!(stages(&[S::send_rts, S::recv_rtr, S::end_rdma]), [Offered, Writing, Complete]);
        assert_eq!(stages(&[S::send_rts, S::end_by_peer, S::free]), [Offered, Complete, Free]);
    }

    #[test]
    fn a_receive_goes_from_its_match_to_its_end() {
        type S = RequestState;
        assert_eq!(stages(&[S::post, S::deliver, S::free]), [Posted, Complete, Free]);
        assert_eq!(stages(&[S::start_read, S::end_rdma]), [Reading, Complete], "without a post");
        assert_eq!(stages(&[S::post, S::send_rtr, S::end_pieces]), [Posted, Landing, Complete]);
        assert_eq!(stages(&[S::post, S::share_copy, S::end_by_peer]), [Posted, Sharing, Complete]);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "recv_rtr at Pushing")]
    fn a_payload_is_not_both_written_and_sent_in_pieces() {
        stages(&[RequestState::send_rts, RequestState::recv_cts, RequestState::recv_rtr]);
    }
}
