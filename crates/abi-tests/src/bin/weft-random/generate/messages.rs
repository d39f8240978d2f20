//! Point-to-point messages of one communicator in one phase. The program alone decides which message each receive gets, perhaps
//! except for the order of sources.

use crate::basic::ElementType;
use crate::comm::{CommId, CommModel};
use crate::grow::{Use, piece, signature};
use crate::mpi::CountWidth;
use crate::program::{CallForm, Dress, Item, Message, MessageMode, ProbeForm, Shift, Taking};
use fastrand::Rng;

/// Matching of receives with messages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Matching {
    /// Every message has its own tag: receives may be posted in any order.
    Tags,
    /// All messages have one tag, and match in order.
    Order,
    /// Receives take any tag, and match in order.
    AnyTag,
    /// One receiver takes messages from any source, and learns the source from the status. All receives are posted early, or no
    /// send waits, so that no order of arrival can block.
    AnySource { early: bool, any_tag: bool },
}

fn bytes(unit: &[ElementType]) -> usize {
    unit.iter().map(|b| b.size()).sum()
}

/// Adds messages on a communicator. Returns true if some are received from any source.
pub fn plan(rng: &mut Rng, comm: CommId, who: &CommModel, items: &mut Vec<Item>) -> bool {
    let n = who.members.len();
    let matching = match rng.u32(..6) {
        0 | 1 => Matching::Tags,
        2 => Matching::Order,
        3 => Matching::AnyTag,
        _ => Matching::AnySource { early: rng.bool(), any_tag: rng.bool() },
    };
    let wild = matches!(matching, Matching::AnySource { .. });
    let base = rng.i64(0..1000);
    let shared = wild.then(|| {
        let unit = signature(rng);
        (unit, rng.usize(..n))
    });
    for i in 0..rng.usize(1..=2 * n + 2) {
        let receiver = shared.as_ref().map_or_else(|| rng.usize(..n), |(_, receiver)| *receiver);
        let (mut from, mut to) = (Some(rng.usize(who.others(receiver))), Some(receiver));
        match (&shared, rng.u32(..16)) {
            (Some(_), _) => {}
            (None, 0) => from = None,
            (None, 1) => to = None,
            _ => {}
        }
        let unit = match &shared {
            Some((unit, _)) => unit.clone(),
            None => signature(rng),
        };
        let mut times = super::times(rng, bytes(&unit));
        if wild {
            // All receives have room for each of the messages.
            times = times.min(MOST / bytes(&unit));
        }
        let tag = match matching {
            Matching::Order | Matching::AnySource { any_tag: false, .. } => base,
            _ => base + i as i64,
        };
        items.push(Item::Message(message(
            rng,
            comm,
            MessageRoute { from, to },
            tag,
            matching,
            &unit,
            times,
        )));
    }
    wild
}

/// Maximum number of bytes of a message that is received from any source.
const MOST: usize = 3000;

fn probe(rng: &mut Rng) -> ProbeForm {
    if rng.bool() { ProbeForm::Immediate } else { ProbeForm::Blocking }
}

fn form(rng: &mut Rng) -> CallForm {
    match rng.u32(..6) {
        0 => CallForm::Persistent,
        1 | 2 => CallForm::Blocking,
        _ => CallForm::Immediate,
    }
}

/// Sender and receiver of a message. `None` stands for MPI_PROC_NULL.
struct MessageRoute {
    from: Option<usize>,
    to: Option<usize>,
}

fn message(
    rng: &mut Rng,
    comm: CommId,
    route: MessageRoute,
    tag: i64,
    matching: Matching,
    unit: &[ElementType],
    times: usize,
) -> Message {
    let own = route.from == route.to;
    let mut taking = match rng.u32(..8) {
        0 => Taking::Probe { form: probe(rng) },
        1 => Taking::Matched { form: probe(rng), later: rng.bool() },
        _ => Taking::Receive(form(rng)),
    };
    // There are no probes for MPI_PROC_NULL and MPI_ANY_SOURCE: the standard defines the answer for a receive.
    let mut early = matching == Matching::Tags && rng.bool();
    if let Matching::AnySource { early: all, .. } = matching {
        early = all;
    }
    if early && !matches!(taking, Taking::Receive(CallForm::Immediate | CallForm::Persistent)) {
        taking =
            Taking::Receive(if rng.bool() { CallForm::Immediate } else { CallForm::Persistent });
    }
    let mut form = form(rng);
    let mut mode = match rng.u32(..6) {
        0 => MessageMode::Synchronous,
        1 => MessageMode::Buffered,
        2 if early || route.to.is_none() => MessageMode::Ready,
        _ => MessageMode::Standard,
    };
    // A message to the own rank, and a message that arrives in any order, may not be waited for before its receive is posted.
    let posted =
        early || matches!(taking, Taking::Receive(CallForm::Immediate | CallForm::Persistent));
    let wild = matches!(matching, Matching::AnySource { early: false, .. });
    if form == CallForm::Blocking && mode != MessageMode::Buffered && (wild || own && !posted) {
        if rng.bool() {
            form = CallForm::Immediate;
        } else {
            mode = MessageMode::Buffered;
        }
    }
    let any_source = matches!(matching, Matching::AnySource { .. });
    let any_tag = matches!(matching, Matching::AnyTag | Matching::AnySource { any_tag: true, .. });
    let dress = |rng: &mut Rng, packed: bool| match rng.u32(..8) {
        0 => Dress::Absolute,
        1 if packed => Dress::Packed,
        _ => Dress::Plain,
    };
    // A persistent request keeps the buffer of its first round, so a packed message is not persistent. The receiver must know the
    // length of a packed message.
    let send_dress = dress(rng, form != CallForm::Persistent && !any_source);
    let plain = matches!(taking, Taking::Receive(CallForm::Blocking | CallForm::Immediate));
    let recv_dress = dress(rng, plain && !any_source && route.from.is_some());
    let send = piece(rng, unit, times, Use::Send);
    let room = match () {
        () if any_source => MOST / bytes(unit),
        () if recv_dress == Dress::Packed || rng.bool() => times,
        () => times + rng.usize(0..5),
    };
    let recv = piece(rng, unit, room, Use::Receive);
    Message {
        comm,
        from: route.from,
        to: route.to,
        tag,
        send,
        mode,
        form,
        send_width: CountWidth::mostly_int(rng),
        send_dress,
        recv,
        taking,
        early,
        any_source,
        any_tag,
        recv_width: CountWidth::mostly_int(rng),
        recv_dress,
    }
}

/// Makes a call that sends and receives, on each rank.
pub fn shift(rng: &mut Rng, comm: CommId, n: usize) -> Shift {
    let unit = signature(rng);
    let replace = rng.bool();
    let times: Vec<usize> = (0..n).map(|_| super::times(rng, bytes(&unit))).collect();
    let by = rng.usize(..n);
    let around = rng.bool();
    // With one buffer for both directions, all lengths are equal.
    let length = |r: usize| if replace { times[0] } else { times[r] };
    let send: Vec<_> = (0..n)
        .map(|r| piece(rng, &unit, length(r), if replace { Use::Receive } else { Use::Send }))
        .collect();
    let recv = if replace {
        send.clone()
    } else {
        let from = |r: usize| (r + n - by) % n;
        (0..n)
            .map(|r| {
                let room = length(from(r)) + rng.usize(0..3);
                piece(rng, &unit, room, Use::Receive)
            })
            .collect()
    };
    Shift {
        comm,
        by,
        around,
        replace,
        immediate: rng.bool(),
        width: (0..n).map(|_| CountWidth::mostly_int(rng)).collect(),
        // Tags differ from those of messages, whose receives may be posted early.
        tag: rng.i64(5000..6000),
        send,
        recv,
    }
}
