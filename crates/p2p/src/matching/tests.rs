mod words;

use super::*;
use crate::envelope::{MatchingContext, ReceiveSource};
use weft_fabric::Key;

fn seen(rank: u32, tag: Tag, len: u64) -> Option<ProbedMessage> {
    Some(ProbedMessage { rank, tag, len, word: None })
}

fn arrival(context: u64, rank: u32, tag: Tag, request: u32) -> EnvelopeArrival {
    EnvelopeArrival {
        envelope: Envelope {
            kind: MessageKind::Rts,
            word: false,
            context: MatchingContext(context),
            rank,
            tag,
            request,
        },
        peer: rank as usize,
        len: 10,
        body: EnvelopeBody::There(RemoteAddr::default()),
    }
}

fn want(context: MatchingContext, source: ReceiveSource, tag: Option<Tag>) -> Want {
    Want { context, source, tag }
}

fn one(rank: u32) -> ReceiveSource {
    ReceiveSource::Rank { rank, peer: rank as usize }
}

/// Returns the number of entries of both queues that were examined without a match.
fn passed(m: &MatchingQueues) -> u64 {
    m.posted.passed() + m.arrived.passed()
}

fn load_of(m: &MatchingQueues, ours: impl Fn(MatchingContext) -> bool) -> (usize, usize) {
    (m.posted.count(&ours), m.arrived.count(&ours))
}

#[test]
fn receives_match_in_the_order_of_posting() {
    let mut m = MatchingQueues::new();
    let c = MatchingContext(1);
    m.posted.post(c, Some(3), Some(5), 10);
    m.posted.post(c, None, Some(5), 11);
    m.posted.post(c, Some(3), None, 12);
    assert_eq!(m.posted.take(c, 3, 6), Some(12));
    assert_eq!(m.posted.take(c, 3, 5), Some(10));
    m.posted.post(c, Some(3), Some(5), 13);
    assert_eq!(m.posted.take(c, 3, 5), Some(11), "posted before 13");
    assert_eq!(m.posted.take(MatchingContext(2), 3, 5), None);
    assert_eq!(m.posted.take(c, 3, 5), Some(13));
    assert!(m.idle());
}

#[test]
fn messages_are_taken_in_the_order_of_arrival() {
    let mut m = MatchingQueues::new();
    m.arrived.keep(arrival(1, 4, 7, 0));
    m.arrived.keep(arrival(1, 5, 7, 1));
    m.arrived.keep(arrival(1, 4, 8, 2));
    m.arrived.keep(arrival(1, 4, 7, 3));
    let c = MatchingContext(1);
    assert_eq!(m.arrived.peek(&want(c, ReceiveSource::Any, None)), seen(4, 7, 10));
    assert_eq!(m.arrived.take(&want(c, one(4), Some(8))).unwrap().request, 2);
    assert_eq!(m.arrived.take(&want(c, one(4), Some(7))).unwrap().request, 0);
    assert_eq!(m.arrived.take(&want(c, ReceiveSource::Any, Some(7))).unwrap().request, 1);
    assert_eq!(m.arrived.take(&want(c, ReceiveSource::Any, None)).unwrap().request, 3);
    assert!(m.arrived.take(&want(c, ReceiveSource::Any, None)).is_none());
    assert!(m.idle());
}

#[test]
fn a_withdrawn_receive_matches_nothing() {
    let mut m = MatchingQueues::new();
    let c = MatchingContext(9);
    m.posted.post(c, Some(0), Some(1), 1);
    m.posted.post(c, Some(0), Some(1), 2);
    assert!(m.posted.withdraw(1));
    assert!(!m.posted.withdraw(1) && !m.posted.withdraw(1 << 30));
    assert_eq!(m.posted.take(c, 0, 1), Some(2));
    assert_eq!(m.posted.take(c, 0, 1), None);
}

#[test]
fn a_cancelled_message_is_taken_back_once() {
    let mut m = MatchingQueues::new();
    m.arrived.keep(arrival(1, 4, 7, 33));
    assert!(!m.arrived.take_back(5, 33));
    assert!(m.arrived.take_back(4, 33));
    assert!(!m.arrived.take_back(4, 33));
    assert!(m.idle());
}

/// Compares random operations with the simplest possible matching.
#[test]
fn agrees_with_a_plain_list() {
    let mut seed = 12345u64;
    let mut random = move |n: u64| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) % n
    };
    let mut m = MatchingQueues::new();
    let mut posted: Vec<(u64, Option<u32>, Option<Tag>, u32)> = Vec::new();
    let mut kept: Vec<(u64, u32, Tag, u32)> = Vec::new();
    for id in 0..20_000u32 {
        // The two queues grow in turns.
        let receives = if id / 500 % 2 == 0 { 1 } else { 2 };
        let (context, rank, tag) = (random(3), random(6) as u32, random(4) as Tag);
        if random(3) < receives {
            let wanted = |p: &(u64, Option<u32>, Option<Tag>, u32)| {
                p.0 == context && p.1.is_none_or(|r| r == rank) && p.2.is_none_or(|t| t == tag)
            };
            let expected = posted.iter().position(wanted).map(|i| posted.remove(i).3);
            let got = m.posted.take(MatchingContext(context), rank, tag);
            assert_eq!(got, expected);
            if got.is_none() {
                kept.push((context, rank, tag, id));
                m.arrived.keep(arrival(context, rank, tag, id));
            }
        } else {
            let source = (random(3) > 0).then_some(rank);
            let tag = (random(3) > 0).then_some(tag);
            let fits = |k: &(u64, u32, Tag, u32)| {
                k.0 == context && source.is_none_or(|r| r == k.1) && tag.is_none_or(|t| t == k.2)
            };
            let expected = kept.iter().position(fits).map(|i| kept.remove(i).3);
            let from = source.map_or(ReceiveSource::Any, one);
            let got = m.arrived.take(&want(MatchingContext(context), from, tag)).map(|m| m.request);
            assert_eq!(got, expected);
            if got.is_none() {
                posted.push((context, source, tag, id));
                m.posted.post(MatchingContext(context), source, tag, id);
            }
        }
    }
}

#[test]
fn names_of_memory_come_back_long_or_short() {
    let mut m = MatchingQueues::new();
    let keys = [Key([1, 0, 0]), Key([1, 2, 0]), Key::NONE, Key([u64::MAX, 3, 4])];
    let names = keys.map(|key| RemoteAddr { addr: 77, key });
    for (request, at) in (0..).zip(names) {
        m.arrived
            .keep(EnvelopeArrival { body: EnvelopeBody::There(at), ..arrival(1, 4, 7, request) });
    }
    assert!(
        m.arrived.take_back(4, 3) && !m.arrived.take_back(4, 3),
        "a long one is cancelled, too"
    );
    for at in &names[..3] {
        let taken = m.arrived.take(&want(MatchingContext(1), ReceiveSource::Any, None)).unwrap();
        let Some(EnvelopeBody::There(found)) = taken.body else { panic!("no name") };
        assert_eq!((found, taken.kind), (*at, MessageKind::Rts));
    }
    assert!(m.idle());
}

#[test]
fn the_load_of_a_context_is_counted_by_itself() {
    let mut m = MatchingQueues::new();
    let (ours, theirs) = (MatchingContext(1), MatchingContext(2));
    m.posted.post(ours, Some(3), Some(5), 1);
    m.posted.post(ours, None, Some(6), 2);
    m.posted.post(theirs, Some(3), Some(5), 3);
    m.arrived.keep(arrival(1, 4, 7, 0));
    m.arrived.keep(arrival(2, 4, 7, 1));
    m.arrived.keep(arrival(2, 5, 7, 2));
    assert_eq!(load_of(&m, |c| c == ours), (2, 1));
    assert_eq!(load_of(&m, |c| c == theirs), (1, 2));
    let posted = |m: &MatchingQueues| (m.posted.len(), m.posted.most());
    let arrived = |m: &MatchingQueues| (m.arrived.len(), m.arrived.most());
    assert_eq!(posted(&m), (3, 3));
    m.arrived.take(&want(theirs, ReceiveSource::Any, None)).unwrap();
    assert_eq!(m.posted.take(ours, 3, 6), Some(2));
    assert_eq!((load_of(&m, |c| c == ours), load_of(&m, |c| c == theirs)), ((1, 1), (1, 1)));
    assert_eq!((posted(&m), arrived(&m)), ((2, 3), (2, 3)));
    m.posted.restart_most();
    m.arrived.restart_most();
    assert_eq!((posted(&m), arrived(&m)), ((2, 2), (2, 2)));
}

/// Asserts that the cost per entry does not depend on the number of waiting entries. A few entries are examined in any case, and
/// some entries share a chain by chance.
fn is_linear(what: &str, cost: impl Fn(u32) -> u64) {
    for n in [2000, 4000, 8000] {
        let cost = cost(n);
        assert!(cost <= 32 * u64::from(n), "{what}: {n} at once, {cost} looked at in vain");
    }
}

/// Iterates over all numbers below `n` in a scattered order, so that no order is favoured.
fn scattered(n: u32) -> impl Iterator<Item = u32> {
    // 7919 is a prime that divides none of the numbers above.
    (0..n).map(move |i| (u64::from(i) * 7919 % u64::from(n)) as u32)
}

#[test]
fn posted_receives_are_found_in_any_order() {
    let post = |n: u32, wanted: &dyn Fn(u32) -> (Option<u32>, Option<Tag>)| {
        let mut m = MatchingQueues::new();
        (0..n).for_each(|i| {
            let (rank, tag) = wanted(i);
            m.posted.post(MatchingContext(1 + u64::from(i % 3)), rank, tag, i);
        });
        m
    };
    let meet = |mut m: MatchingQueues, messages: &mut dyn Iterator<Item = (u32, u32, Tag)>| {
        for (i, rank, tag) in messages {
            assert_eq!(m.posted.take(MatchingContext(1 + u64::from(i % 3)), rank, tag), Some(i));
        }
        assert!(m.idle());
        passed(&m)
    };
    let by_tag = |i: u32| (Some(2), Some(i as Tag));
    is_linear("tags, last first", |n| {
        meet(post(n, &by_tag), &mut (0..n).rev().map(|i| (i, 2, i as Tag)))
    });
    is_linear("tags, scattered", |n| {
        meet(post(n, &by_tag), &mut scattered(n).map(|i| (i, 2, i as Tag)))
    });
    is_linear("sources, last first", |n| {
        meet(post(n, &|i| (Some(i), Some(7))), &mut (0..n).rev().map(|i| (i, i, 7)))
    });
    is_linear("any source", |n| {
        meet(post(n, &|i| (None, Some(i as Tag))), &mut scattered(n).map(|i| (i, 5, i as Tag)))
    });
    is_linear("any tag", |n| {
        meet(post(n, &|i| (Some(i), None)), &mut scattered(n).map(|i| (i, i, 9)))
    });
    is_linear("each in another communicator", |n| {
        let mut m = MatchingQueues::new();
        (0..n).for_each(|i| m.posted.post(MatchingContext(u64::from(i)), None, None, i));
        for i in (0..n).rev() {
            assert_eq!(m.posted.take(MatchingContext(u64::from(i)), 1, 1), Some(i));
        }
        passed(&m)
    });
    is_linear("withdrawn, last first", |n| {
        let mut m = MatchingQueues::new();
        (0..n).for_each(|i| m.posted.post(MatchingContext(1), Some(2), Some(3), i));
        (0..n).rev().for_each(|i| assert!(m.posted.withdraw(i)));
        assert!(m.idle());
        passed(&m)
    });
}

#[test]
fn unexpected_messages_are_found_in_any_order() {
    let keep = |n: u32, what: &dyn Fn(u32) -> (u64, u32, Tag)| {
        let mut m = MatchingQueues::new();
        (0..n).for_each(|i| {
            let (context, rank, tag) = what(i);
            m.arrived.keep(arrival(context, rank, tag, i));
        });
        m
    };
    let by_tag = |i: u32| (1, 2, i as Tag);
    let c = MatchingContext(1);
    for (what, from) in [("a source", one(2)), ("any source", ReceiveSource::Any)] {
        is_linear(&format!("tags of {what}, last first"), |n| {
            let mut m = keep(n, &by_tag);
            for i in (0..n).rev() {
                assert_eq!(m.arrived.peek(&want(c, from, Some(i as Tag))), seen(2, i as Tag, 10));
                assert_eq!(m.arrived.take(&want(c, from, Some(i as Tag))).unwrap().request, i);
            }
            passed(&m) / 2
        });
    }
    is_linear("any tag of sources, scattered", |n| {
        let mut m = keep(n, &|i| (1, i, 4));
        scattered(n)
            .for_each(|i| assert_eq!(m.arrived.take(&want(c, one(i), None)).unwrap().request, i));
        passed(&m)
    });
    is_linear("anything of communicators, last first", |n| {
        let mut m = keep(n, &|i| (u64::from(i), 2, 4));
        for i in (0..n).rev() {
            assert_eq!(
                m.arrived
                    .take(&want(MatchingContext(i.into()), ReceiveSource::Any, None))
                    .unwrap()
                    .request,
                i
            );
        }
        passed(&m)
    });
    is_linear("probes for what has not come", |n| {
        let mut m = keep(n, &|i| (1, i % 3, 4));
        for i in 0..n {
            assert_eq!(m.arrived.peek(&want(c, one(i % 3), Some(5))), None);
            assert_eq!(m.arrived.peek(&want(c, ReceiveSource::Any, Some(5))), None);
            assert_eq!(m.arrived.peek(&want(c, one(3), None)), None);
            assert_eq!(m.arrived.peek(&want(MatchingContext(2), ReceiveSource::Any, None)), None);
        }
        passed(&m) / 4
    });
    is_linear("taken back, last first", |n| {
        let mut m = keep(n, &|i| (1, i % 5, 4));
        (0..n).rev().for_each(|i| assert!(m.arrived.take_back(i as usize % 5, i)));
        assert!(m.idle());
        passed(&m)
    });
    is_linear("around where chains begin", |n| {
        let mut m = keep(15, &by_tag);
        for i in 15..n {
            m.arrived.keep(arrival(1, 2, i as Tag, i));
            m.arrived.keep(arrival(1, 2, -5, n));
            assert_eq!(m.arrived.take(&want(c, one(2), Some(-5))).unwrap().request, n);
            assert_eq!(
                m.arrived.take(&want(c, one(2), Some((i - 15) as Tag))).unwrap().request,
                i - 15
            );
        }
        passed(&m) / 2
    });
}
