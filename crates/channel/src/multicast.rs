//! Reliable multicast over the fabric's unreliable multicast (Kini, sections 3.3.4, 4.2.4, 4.2.5, 5.4.1).
//!
//! ```text
//!   root    ── datagram 7 ──> everybody        nothing lost: one datagram, no other message
//!   B       (time passes)
//!   B       ── Nak 7, solicited ──> root       the root may compute: its helper answers
//!   root    ── Repair 7 ──> B                  a reliable message with the datagram that was kept
//! ```
//!
//! # Contract
//!
//! **Numbers.** One sequence for all roots of a group. Every member calls [`MulticastMember::numbers`] once per operation, in the
//! same order, so all members give an operation the same numbers without a message. A member needs memory to distinguish new
//! datagrams from old datagrams. With one sequence, and not one per root, this memory does not grow with the number of roots. A
//! number is open (given out, not complete), to come, or complete. A datagram whose number is complete is dropped.
//!
//! **Access to memory.**
//! - The caller's memory: [`MulticastMember::send`] reads it until its future is complete, and has copied it by then.
//!   [`MulticastMember::receive`] writes into it from the call until the future ends or is dropped.
//! - The root's kept datagrams (as they were sent) are written only by `send`, before they leave. They never change while
//!   a member may ask for them or a repair is being sent out of them.
//! - Early datagrams, which no receive has asked for yet, are kept in a store with a bound for the process
//!   ([`MulticastLimits::store`]). Beyond the bound they are dropped, which counts as any other loss.
//!
//! **Time for which the root keeps a multicast, and the reason why nothing needed is overwritten.** The root keeps a multicast
//! until it knows that every member has received it. The root learns this in one of three ways:
//! - [`ReleaseMode::Heard`]: the caller says "every other member has begun operation k" ([`MulticastMember::heard`]). The caller
//!   knows this because it has heard from every member in operation k: by the gather of a barrier or an allreduce, or by the blocks
//!   of an allgather in which all members multicast. A member begins an operation only after its previous operation is complete, so
//!   all multicasts before k may be released. In an allgather, operation k is heard only after the root's own multicast has left,
//!   so the multicasts of k - 1 and of k are kept at once: two buffers, used in turn. With one buffer, k would overwrite the
//!   multicast of k - 1 that a slow member still lacks. Operations of such a group must not overlap. It is not enough that k is the
//!   *last* operation: after a broadcast, in which only the root sends, the root knows no more about the other members than before.
//! - [`ReleaseMode::Acknowledged`] (a broadcast): the root may be at most [`MulticastLimits::window`] multicasts, or
//!   [`MulticastLimits::kept`] bytes, ahead of the slowest member. Every half window it marks a datagram. When the marked multicast
//!   is complete at a member, the member acknowledges it by a small reliable message. There is no acknowledgement per operation,
//!   and the root waits for acknowledgements only when the window is full.
//! - [`ReleaseMode::EachAcknowledged`] (the thesis's first alternative in 3.3.4, which it calls expensive): every member
//!   acknowledges every multicast, and the root waits for all acknowledgements. Members do not ask. The root repeats a multicast
//!   that is not acknowledged in time. The root learns the time to wait in the same way as members do.
//!
//! **Repair** goes by a reliable message to the member that asked. The repair cannot be lost again, so each loss costs one question
//! and one answer at any rate of loss, and members that lost nothing receive nothing. Alternatively, the datagram is multicast once
//! more ([`Repair::Multicast`], the thesis's way): one answer serves all members that lack the datagram, the other members drop the
//! answer, and the answer may be lost again. If a question comes within half of [`MulticastLimits::least`] after such an answer,
//! this answer also serves the question. A payload that has been multicast again 16 times is repaired by messages.
//!
//! **Time.** An awaited receive asks when it has waited longer than four times the longest recent wait that ended without a
//! question, within bounds ([`MulticastLimits::least`], [`MulticastLimits::most`]). Each further question follows after twice the
//! time. A root that has not sent yet ignores the question. The layer that waits must make progress again at
//! [`Multicasts::deadline`]; in the simulator the deadline is announced to the fabric.
//!
//! **The end.** In [`MulticastMember::close`] every member declares by messages (dissemination, ceil(log2 n) rounds) that it lacks
//! nothing. It answers questions until all members have declared the same.
//!
//! **Trust.** A datagram counts only if job, group, context, root, source, number, segment and length
//! fit. Foreign, repeated and late datagrams are dropped and counted. An impossible message is a fault
//! of its sender.

mod bits;
mod datagram;
mod group;
mod member;
mod receives;
mod retransmit_buffer;
mod shared;
mod table;
mod waits;

pub use datagram::{HEADER, KINDS};
pub use member::{MulticastMember, MulticastReceive, ProgressHost, ReleaseMode};
pub use shared::{MulticastCounts, MulticastLimits, Repair};
pub use table::Multicasts;

#[cfg(test)]
mod tests;
