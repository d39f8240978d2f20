//! Unreliable multicast: datagrams may be lost, repeated and reordered, but are whole.

use super::rank::{ConformanceRank, pattern, sge};
use weft_fabric::{Datagram, Fabric, FabricExt, GroupId, Head};

const GROUP: GroupId = GroupId(7);
const OTHER: GroupId = GroupId(8);
/// Number of datagrams that a member wants to see.
const WANTED: usize = 20;

fn listen(rank: &ConformanceRank) -> Option<(Datagram, Vec<u8>)> {
    let mut into = vec![0; rank.fabric.capabilities(0).multicast_max];
    let datagram = rank.fabric.receive_multicast(sge(&mut into))?;
    into.truncate(datagram.len);
    Some((datagram, into))
}

/// Returns datagram `number`: the number, then a pattern of a length that depends on it.
fn datagram(number: u64, max: usize) -> Vec<u8> {
    let mut bytes = number.to_ne_bytes().to_vec();
    bytes.extend(pattern(number, number as usize * 97 % (max - 7)));
    bytes
}

fn number_of(bytes: &[u8], max: usize) -> u64 {
    let number = u64::from_ne_bytes(bytes[..8].try_into().unwrap());
    assert!(bytes == datagram(number, max), "datagram {number} is damaged");
    number
}

/// Lets rank 0 send until every member has reported that it has seen enough. Some ranks are not members.
pub fn datagrams_reach_members_only(rank: &ConformanceRank) {
    let max = rank.fabric.capabilities(0).multicast_max;
    if max == 0 {
        eprintln!("SKIPPED: the fabric has no multicast");
        return;
    }
    let last = rank.size() - 1;
    let is_member = |r: usize| r != 0 && (r != last || rank.size() == 2);
    if is_member(rank.rank()) {
        rank.fabric.join(GROUP);
    }
    // Rank 0 is a member, but receives only datagrams of other ranks.
    if rank.rank() == 0 {
        rank.fabric.join(GROUP);
    }
    rank.barrier();
    let members = (0..rank.size()).filter(|&r| is_member(r)).count();
    if rank.rank() == 0 {
        let (mut content, mut number) = (0, 0);
        rank.until(|| {
            for (group, sent) in [(OTHER, vec![0xee; 8]), (GROUP, datagram(number, max))] {
                rank.fabric.multicast(group, sge(&mut sent.clone())).unwrap();
            }
            number += 1;
            if let Some(message) = rank.fabric.receive(None) {
                rank.fabric.release(message);
                content += 1;
            }
            assert!(listen(rank).is_none(), "heard oneself");
            content == members
        });
    } else if is_member(rank.rank()) {
        let mut seen = std::collections::HashSet::new();
        rank.until(|| {
            while let Some((from, bytes)) = listen(rank) {
                assert_eq!((from.source, from.group), (0, GROUP));
                seen.insert(number_of(&bytes, max));
            }
            seen.len() >= WANTED
        });
        rank.give(0, Head::default(), &mut []);
    }
    rank.barrier();
    if !is_member(rank.rank()) {
        assert!(listen(rank).is_none(), "heard a group that was not joined");
    }
    rank.barrier();
    // After `leave` nothing is received, except datagrams that came before.
    rank.fabric.leave(GROUP);
    rank.until(|| listen(rank).is_none());
    rank.barrier();
    rank.fabric.multicast(GROUP, sge(&mut datagram(1, max))).unwrap();
    rank.barrier();
    assert!(listen(rank).is_none(), "heard a group that was left");
}

/// Lets all ranks send at once, faster than they read. Checks that no datagram arrives in part, and that after the flood a datagram
/// that is repeated often enough arrives.
pub fn datagrams_survive_a_flood_whole(rank: &ConformanceRank) {
    let max = rank.fabric.capabilities(0).multicast_max;
    if max == 0 {
        eprintln!("SKIPPED: the fabric has no multicast");
        return;
    }
    rank.fabric.join(GROUP);
    rank.barrier();
    for i in 0..3000 {
        rank.fabric.multicast(GROUP, sge(&mut datagram(i, max))).unwrap();
        if i % 3 == 0
            && let Some((from, bytes)) = listen(rank)
        {
            assert!(number_of(&bytes, max) < 3000 && from.source != rank.rank());
        }
    }
    rank.barrier();
    let mut heard = vec![false; rank.size()];
    heard[rank.rank()] = true;
    let mut satisfied = 0;
    let mut said = false;
    let mut turns = 0u32;
    rank.until(|| {
        // This must not become a second flood: the messages that report that all were heard must get through, too.
        if turns.is_multiple_of(256) {
            rank.fabric.multicast(GROUP, sge(&mut datagram(5000, max))).unwrap();
        }
        turns += 1;
        while let Some((from, bytes)) = listen(rank) {
            if number_of(&bytes, max) == 5000 {
                heard[from.source] = true;
            }
        }
        if !said && heard.iter().all(|&h| h) {
            said = true;
            for peer in 0..rank.size() {
                rank.fabric.send(peer, Head::default(), weft_fabric::Sge::EMPTY, None);
            }
        }
        while let Some(message) = rank.fabric.receive(None) {
            rank.fabric.release(message);
            satisfied += 1;
        }
        satisfied == rank.size()
    });
}
