//! Reliable multicast over the fabric's unreliable one (Kini, sections 3.3.4, 4.2.4, 4.2.5, 5.4.1).
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
//! **Numbers.** One sequence for all roots of a group. Every member calls [`MulticastMember::numbers`] once
//! for each operation, in the same order, so all give an operation the same numbers without a message.
//! One sequence, and not one for each root, because then what a member must remember to tell a new
//! datagram from an old one does not grow with the number of roots: a number is open (given out, not
//! over), to come, or over; what is over and comes again is dropped.
//!
//! **Who touches what when.**
//! - The caller's memory: [`MulticastMember::send`] reads it until its future is over, and has copied it then. [`MulticastMember::receive`] writes into it from the call until the future ends or is dropped.
//! - What the root keeps (the datagrams as they were sent) is written by `send` alone, before they
//!   leave, and never again while anybody may ask for them or a repair is on its way out of it.
//! - Datagrams that nobody here has asked for yet are kept in a store with a bound for the process
//!   ([`MulticastLimits::store`]); beyond it they are dropped, which is a loss like any other.
//!
//! **What the root keeps, and why nothing needed is overwritten.** A multicast is kept until the root
//! knows that everybody has it, which it learns in one of three ways:
//! - [`ReleaseMode::Heard`]: the caller says "every other member has begun operation k" ([`MulticastMember::heard`]).
//!   It knows because it has heard from everybody in operation k: by the gather of a barrier or an
//!   allreduce, or by the blocks of an allgather in which all multicast. A member begins an operation
//!   when it is through with the one before; so all before k may go. In an allgather k is not heard
//!   before its own multicast has left, so that those of k - 1 and of k are kept at once: two buffers,
//!   used in turn. With one, k would overwrite what a slow member still lacks of k - 1. Operations of
//!   such a group must not overlap. And it is not the multicast of the *last* operation that counts:
//!   after a broadcast, in which nobody but the root says anything, nothing more is known than before.
//! - [`ReleaseMode::Acknowledged`] (a broadcast): the root may be at most [`MulticastLimits::window`] multicasts, or
//!   [`MulticastLimits::kept`] bytes, ahead of the slowest member. Half a window apart it marks a datagram, and
//!   who is through with that says so in a small reliable message: not for each operation, and
//!   nobody waits for it unless the window is full.
//! - [`ReleaseMode::EachAcknowledged`] (the thesis's first alternative in 3.3.4, which it calls expensive): every member says of every
//!   multicast that it has it, and the root waits for all of them. Members do not ask; the root repeats what is not acknowledged
//!   in time, after a wait that it learns as members do.
//!
//! **Repair** goes to the one that asked, by a reliable message: it cannot be lost again, so that each
//! loss costs one question and one answer at any rate of loss, and those who lost nothing hear nothing. Or the
//! datagram is multicast once more ([`Repair::Multicast`], the thesis's way): one answer serves all that lack it,
//! those who have it drop it, and it may be lost again. A question within half of [`MulticastLimits::least`] after such an
//! answer counts as answered by it; what has been multicast 16 times goes by messages.
//!
//! **Time.** A receive that is awaited asks when it has waited longer than four times the longest wait
//! of late that ended well, within bounds ([`MulticastLimits::least`], [`MulticastLimits::most`]), and then each time
//! after twice as long. A root that has not sent yet ignores it. The layer that waits must look again
//! at [`Multicasts::deadline`]; in the simulator that is announced to the fabric.
//!
//! **The end.** In [`MulticastMember::close`] every member says that it lacks nothing, by messages alone
//! (dissemination, ceil(log2 n) rounds), and answers questions until all have said so.
//!
//! **Trust.** A datagram counts only if job, group, context, root, source, number, segment and length
//! fit; foreign, repeated and late ones are dropped and counted. A message that cannot be is a fault
//! of its sender.

mod bits;
mod datagram;
mod group;
mod member;
mod receives;
mod retransmit_buffer;
mod table;
mod waits;

pub use datagram::{HEADER, KINDS};
pub use member::{MulticastMember, ProgressHost, Receiving, ReleaseMode};
pub use table::{MulticastCounts, MulticastLimits, Multicasts, Repair};

#[cfg(test)]
mod tests;
