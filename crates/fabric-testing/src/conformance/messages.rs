//! Two-sided messages.

use super::rank::{ConformanceRank, pattern, sge};
use weft_fabric::{Fabric, Head, PostOutcome, Sge};

/// Checks that ranks are numbered from 0, and that the limits that a fabric reports for a peer are consistent and never change.
pub fn ranks_know_who_they_are(rank: &ConformanceRank) {
    let fabric = &rank.fabric;
    assert_eq!(fabric.size(), rank.size());
    let all = rank.gather([fabric.rank() as u64, 0]);
    assert!(all.iter().enumerate().all(|(i, &[r, _])| r == i as u64), "ranks are 0..size");
    for peer in 0..rank.size() {
        let c = fabric.capabilities(peer);
        assert!(c.inline_max <= c.send_max, "{c:?}");
        assert!(c.send_max >= 64, "{c:?}");
        assert!(c.rails >= 1, "{c:?}");
        assert_eq!(c, fabric.capabilities(peer), "facts do not change");
    }
}

/// Sends messages of all lengths up to 300 bytes, then of some up to the maximum, to all ranks including the sender.
pub fn every_length_arrives(rank: &ConformanceRank) {
    let max = (0..rank.size()).map(|p| rank.fabric.capabilities(p).send_max).min().unwrap();
    let lengths = (0..=max.min(300)).chain((1..40).map(|i| max * i / 40)).chain([max - 1, max]);
    for (i, len) in lengths.enumerate() {
        for peer in 0..rank.size() {
            let mut payload = pattern((rank.rank() * 1000 + i) as u64, len);
            rank.give(peer, Head([i as u64, u64::MAX, len as u64]), &mut payload);
        }
        for peer in 0..rank.size() {
            let (from, head, bytes) = rank.take_bytes(Some(peer));
            assert_eq!((from, head), (peer, Head([i as u64, u64::MAX, len as u64])));
            assert!(bytes == pattern((peer * 1000 + i) as u64, len), "{len} bytes of {peer}");
        }
    }
}

/// Lets all ranks send to all ranks without waiting. Checks that the messages of each sender are in order, whatever their lengths
/// and the order in which senders are served.
pub fn messages_of_a_peer_keep_their_order(rank: &ConformanceRank) {
    const MESSAGES: usize = 2000;
    let size = rank.size();
    let max = (0..size).map(|peer| rank.fabric.capabilities(peer).send_max).min().unwrap();
    let length = |from: usize, i: usize| match i {
        // A fabric that moves the longest messages differently may let shorter messages overtake them.
        _ if i % 100 == 50 => max - from,
        _ if i % 7 == 3 => (i * 131 + from) % max.min(3000),
        _ => i % 33,
    };
    let mut payloads: Vec<Vec<u8>> = Vec::new();
    let mut later = 0;
    let (done, before) = rank.completion();
    for i in 0..MESSAGES {
        for peer in 0..size {
            let mut payload = pattern(i as u64, length(rank.rank(), i));
            let head = Head([i as u64, rank.rank() as u64, 0]);
            if rank.fabric.send(peer, head, sge(&mut payload), done) == PostOutcome::Later {
                later += 1;
                payloads.push(payload);
            }
        }
    }
    let mut next = vec![0; size];
    for _ in 0..MESSAGES * size {
        let (peer, head, bytes) = rank.take_bytes(None);
        let i = next[peer];
        assert_eq!(head, Head([i as u64, peer as u64, 0]), "message of {peer}");
        assert!(bytes == pattern(i as u64, length(peer, i)), "message {i} of {peer}");
        next[peer] += 1;
    }
    rank.finish(done, before + later);
    rank.barrier();
    assert!(rank.fabric.receive(None).is_none(), "a message that nobody sent");
    assert_eq!(rank.fabric.counters().value(done.unwrap()), before + later, "completed too often");
}

/// Checks that a flood of one sender does not keep the messages of other senders from being received, if those have left.
pub fn nobody_is_starved(rank: &ConformanceRank) {
    const FLOOD: u64 = 50_000;
    const SWEEP: u64 = 64;
    // Number of messages within the minimum of credits of any fabric, so that they leave before anything is received.
    const FEW: u64 = 2;
    let size = rank.size();
    if rank.rank() != 0 {
        let n = if rank.rank() == 1 { FLOOD } else { FEW };
        for i in 0..n {
            assert_eq!(rank.fabric.send(0, Head([i, 0, 0]), Sge::EMPTY, None), PostOutcome::Done);
        }
        // The first message to a peer may need a connection, which both sides have to make.
        if rank.rank() > 1 {
            rank.until(|| rank.fabric.idle());
        }
    }
    rank.barrier();
    if rank.rank() == 0 && size > 1 {
        let mut got = vec![0; size];
        let total = FLOOD + FEW * (size as u64 - 2);
        for n in 1..=total {
            got[rank.take_bytes(None).0] += 1;
            // The layer above calls `progress`, too. Without it nothing moves.
            if n % SWEEP == 0 {
                rank.fabric.progress();
            }
            if n == FLOOD / 2 {
                assert!(got[2..].iter().all(|&g| g == FEW), "starved: {got:?}");
            }
        }
        assert_eq!(got[1], FLOOD);
    }
}

/// Checks that a payload up to `inline_max` may be overwritten after the call, whether there is room or not.
pub fn short_payloads_are_taken_at_once(rank: &ConformanceRank) {
    const MESSAGES: u64 = 5000;
    let peer = (rank.rank() + 1) % rank.size();
    let len = rank.fabric.capabilities(peer).inline_max;
    let mut payload = vec![0; len];
    for i in 0..MESSAGES {
        payload.fill(i as u8);
        let posted = rank.fabric.send(peer, Head([i, 0, 0]), sge(&mut payload), None);
        assert_eq!(posted, PostOutcome::Done, "message {i}");
    }
    payload.fill(255);
    let from = (rank.rank() + rank.size() - 1) % rank.size();
    let len = rank.fabric.capabilities(from).inline_max;
    for i in 0..MESSAGES {
        let (_, head, bytes) = rank.take_bytes(Some(from));
        assert_eq!(head.0[0], i);
        assert!(bytes.iter().all(|&b| b == i as u8) && bytes.len() == len, "message {i}");
    }
}

/// Sends 20 000 messages, some of them long, to a rank that does not poll. Checks that all arrive later.
pub fn what_has_no_room_is_kept_and_delivered(rank: &ConformanceRank) {
    const MESSAGES: u64 = 20_000;
    let last = rank.size() - 1;
    let is_long = |i: u64| i % 100 == 50;
    let (done, before) = rank.completion();
    let mut later = 0;
    let long = rank.fabric.capabilities(last).send_max.min(1000);
    let mut payload = pattern(1, long);
    if rank.rank() == 0 {
        for i in 0..MESSAGES {
            let part = sge(&mut payload).part(0, if is_long(i) { long } else { 8.min(long) });
            if rank.fabric.send(last, Head([i, 0, 0]), part, done) == PostOutcome::Later {
                later += 1;
            }
        }
        assert!(rank.fabric.counters().value(done.unwrap()) <= before + later);
    }
    rank.barrier();
    if rank.rank() == last {
        for i in 0..MESSAGES {
            let (peer, head, bytes) = rank.take_bytes(Some(0));
            assert_eq!((peer, head.0[0]), (0, i));
            assert!(bytes == payload[..if is_long(i) { long } else { 8.min(long) }]);
        }
    }
    rank.finish(done, before + later);
    rank.until(|| rank.fabric.idle());
}
