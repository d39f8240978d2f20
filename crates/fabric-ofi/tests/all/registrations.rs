//! Memory is registered once as long as it is used. Parts of it share the registration, which ends with its last user.

use weft_bootstrap::threads;
use weft_fabric::{Fabric, RdmaDirection, RemoteAddr, RemoteRead, RemoteWrite, Sge};
use weft_fabric_ofi::{Ofi, OfiOptions};
use weft_fabric_testing::conformance::{ConformanceRank, Maker, run};
use weft_fabric_testing::libfabric;

const LEN: usize = 1 << 20;

fn with(provider: &'static str, check: impl Fn(&ConformanceRank<Ofi>) + Sync) {
    if libfabric::missing(Some(provider)) {
        return;
    }
    let make = |mut world: weft_bootstrap::ThreadBootstrap| {
        let options = OfiOptions { provider: Some(provider.to_owned()), ..OfiOptions::default() };
        Box::new(move || Ofi::connect(&mut world, options).unwrap_or_else(|e| panic!("{e}")))
            as Maker<Ofi>
    };
    run(threads(2).into_iter().map(make).collect(), check);
}

fn sge(bytes: &mut [u8]) -> Sge {
    // SAFETY: `Sge::new` needs memory that stays until the operation is complete. Each user below keeps its bytes until then.
    unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) }
}

/// Checks that a part shares the registration of the whole, and that the registration ends after both, in either order. Peers do
/// not reach the memory then.
fn shared(rank: &ConformanceRank<Ofi>) {
    let (fabric, peer) = (&rank.fabric, 1 - rank.rank());
    let numbers = || {
        let usage = fabric.usage();
        (usage.registrations, usage.registrations_made, usage.registrations_found)
    };
    let (entries, made, found) = numbers();
    let mut bytes: Vec<u8> = (0..LEN).map(|i| (i * 7 + rank.rank()) as u8).collect();
    let whole_memory = sge(&mut bytes);
    let whole = fabric.expose(whole_memory).unwrap();
    let part = fabric.expose(whole_memory.part(4096, 8192)).unwrap();
    assert_eq!(numbers(), (entries + 1, made + 1, found + 1));
    let at: Vec<RemoteAddr> = rank.gather_addresses(part.remote);
    // The peer reads by the part's name after the whole was withdrawn.
    fabric.withdraw(whole);
    rank.barrier();
    assert_eq!(numbers().0, entries + 1, "the part keeps it");
    let mut got = vec![0; 8192];
    rank.complete(|done| fabric.read(peer, &RemoteRead::new(sge(&mut got), at[peer], done)));
    let right = |(i, &b): (usize, &u8)| b == ((i + 4096) * 7 + peer) as u8;
    assert!(got.iter().enumerate().all(right));
    rank.barrier();
    fabric.withdraw(part);
    assert_eq!(numbers().0, entries, "nobody uses it any more");
    // New memory may lie at the same addresses by now, so it is registered anew.
    let again = fabric.expose(whole_memory).unwrap();
    assert_eq!(numbers().1, made + 2);
    fabric.withdraw(again);
    // Memory that extends beyond a registration does not share it.
    let part = fabric.expose(whole_memory.part(0, 4096)).unwrap();
    let more = fabric.expose(whole_memory.part(2048, 4096)).unwrap();
    assert_eq!(numbers().0, entries + 2);
    fabric.withdraw(part);
    fabric.withdraw(more);
    assert_eq!(numbers().0, entries);
    rank.barrier();
}

#[test]
fn parts_share_a_registration_over_tcp() {
    with("tcp", shared);
    with("weft-tcp", shared);
}

#[test]
fn verbs_parts_share_a_registration() {
    with("verbs;ofi_rxm", shared);
}

/// Checks that transfers from prepared memory use its registration, if transfers need registered memory.
#[test]
fn verbs_transfers_find_what_was_prepared() {
    with("verbs;ofi_rxm", |rank| {
        use weft_fabric::FabricExt;
        let peer = 1 - rank.rank();
        let region = rank.fabric.allocate(LEN).unwrap();
        let at = rank.gather_addresses(region.remote);
        let mut bytes = vec![rank.rank() as u8 + 1; LEN];
        let memory = sge(&mut bytes);
        let prepared =
            rank.fabric.prepare(memory, RdmaDirection::Write).unwrap().expect("it is needed");
        // The first write makes the connection. Until then the provider refuses transfers, and the fabric repeats them.
        let (done, value) = rank.completion();
        rank.fabric.write(peer, &RemoteWrite::new(memory.part(0, 1), at[peer], done)).unwrap();
        rank.finish(done, value + 1);
        let before = rank.fabric.usage();
        let (done, value) = rank.completion();
        for i in 0..4 {
            let (part, to) =
                (memory.part(i * LEN / 4, LEN / 4), at[peer].offset((i * LEN / 4) as u64));
            rank.fabric.write(peer, &RemoteWrite::new(part, to, done)).unwrap();
        }
        // The registration lasts as long as the writes.
        rank.fabric.withdraw(prepared);
        rank.finish(done, value + 4);
        let after = rank.fabric.usage();
        assert_eq!(after.registrations_found - before.registrations_found, 4);
        assert_eq!(after.registrations_made, before.registrations_made);
        assert_eq!(after.registrations, before.registrations - 1, "gone with the last write");
        rank.barrier();
        let mut got = vec![0; LEN];
        region.local.read(&mut got);
        assert!(got.iter().all(|&b| b == peer as u8 + 1));
        rank.barrier();
    });
}
