//! Registrations: made, shared, kept, forgotten.

use std::ptr::null_mut;
use weft_bootstrap::threads;
use weft_fabric::{Fabric, RemoteAddr, Sge};
use weft_fabric_testing::adapters;
use weft_fabric_verbs::{Keep, RegistrationTotals, Verbs, VerbsOptions};

const LEN: usize = 64 << 10;

/// Connects a job of one process. Returns it with the totals of registrations at the start.
fn alone(change: impl FnOnce(&mut VerbsOptions)) -> Option<(Verbs, RegistrationTotals)> {
    let nodes = adapters::nodes()?;
    let mut options = adapters::options(&nodes, 0);
    change(&mut options);
    let mut world = threads(1).pop().unwrap();
    let verbs = Verbs::connect_with(&mut world, options).unwrap_or_else(|error| panic!("{error}"));
    let totals = verbs.registrations();
    Some((verbs, totals))
}

fn sge(bytes: &mut [u8]) -> Sge {
    // SAFETY: `Sge::new` needs memory that is valid while in use: every caller keeps the bytes until the fabric does not use
    // them.
    unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) }
}

fn read(verbs: &Verbs, from: RemoteAddr, len: usize) -> Vec<u8> {
    let mut into = vec![0; len];
    let done = verbs.counters().allocate();
    let before = verbs.counters().value(done);
    verbs.read(0, sge(&mut into), from, Some(done)).unwrap();
    while verbs.counters().value(done) == before {
        verbs.progress();
        assert_eq!(verbs.fault(), None, "{:?}", verbs.trouble());
    }
    into
}

#[test]
fn without_a_cache_registrations_end_with_their_use() {
    let Some((verbs, start)) = alone(|_| ()) else { return };
    let mut memory = vec![1; LEN];
    for round in 1..=3 {
        let whole = verbs.expose(sge(&mut memory)).unwrap();
        let part = verbs.expose(sge(&mut memory[100..200])).unwrap();
        let now = verbs.registrations();
        assert_eq!((now.made - start.made, now.entries - start.entries), (round, 1));
        verbs.withdraw(whole);
        assert_eq!(verbs.registrations().entries - start.entries, 1, "a part is still exposed");
        verbs.withdraw(part);
        assert_eq!(verbs.registrations().entries, start.entries);
    }
}

#[test]
fn operations_share_what_is_exposed_and_leave_nothing_behind() {
    let Some((verbs, _)) = alone(|_| ()) else { return };
    let region = verbs.allocate(LEN).unwrap();
    region.local.fill(&[7; LEN]);
    // The first operation makes the connection, with its buffers.
    read(&verbs, region.remote, 8);
    let start = verbs.registrations();
    assert_eq!(read(&verbs, region.remote, LEN), [7; LEN]);
    let now = verbs.registrations();
    assert_eq!((now.made, now.entries), (start.made + 1, start.entries), "{now:?}");
    let mut memory = vec![3; LEN];
    let exposed = verbs.expose(sge(&mut memory)).unwrap();
    let done = verbs.counters().allocate();
    let before = verbs.counters().value(done);
    verbs.write(0, exposed.local, region.remote, Some(done)).unwrap();
    assert_eq!(verbs.registrations().made, now.made + 1, "the write shares the region's");
    // The region is withdrawn while the adapter may still read it: the registration stays until the write is complete.
    verbs.withdraw(exposed);
    while verbs.counters().value(done) == before {
        verbs.progress();
    }
    assert_eq!(verbs.fault(), None);
    assert_eq!(verbs.registrations().entries, start.entries);
    assert_eq!(read(&verbs, region.remote, LEN), [3; LEN]);
}

#[test]
fn a_cache_is_bounded_and_used() {
    let keep = Some(Keep { bytes: 3 * LEN, entries: 2 });
    let Some((verbs, start)) = alone(|options| options.keep = keep) else { return };
    let mut memory: Vec<Vec<u8>> = vec![vec![1; LEN]; 4];
    let mut use_one = |i: usize| {
        let region = verbs.expose(sge(&mut memory[i])).unwrap();
        verbs.withdraw(region);
        let now = verbs.registrations();
        (now.made - start.made, now.entries - start.entries)
    };
    assert_eq!(use_one(0), (1, 1));
    assert_eq!(use_one(0), (1, 1), "found again");
    assert_eq!(use_one(1), (2, 2));
    assert_eq!(use_one(2), (3, 2), "two are kept");
    assert_eq!(use_one(1), (3, 2), "the longest unused went");
    assert_eq!(use_one(0), (4, 2));
    // Memory larger than the cache is not kept at all.
    let mut large = vec![1; 4 * LEN];
    let region = verbs.expose(sge(&mut large)).unwrap();
    verbs.withdraw(region);
    assert_eq!(verbs.registrations().entries - start.entries, 2);
}

#[test]
fn forgotten_memory_is_registered_anew() {
    let keep = Some(Keep { bytes: 10 * LEN, entries: 10 });
    let Some((verbs, start)) = alone(|options| options.keep = keep) else { return };
    let map = |at: *mut libc::c_void, flags: i32| {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags;
        // SAFETY: `mmap` with MAP_FIXED replaces memory that nothing else may use: only memory of this test is replaced.
        let at = unsafe { libc::mmap(at, LEN, protection, flags, -1, 0) };
        assert_ne!(at, libc::MAP_FAILED);
        // SAFETY: `Sge::new` needs `LEN` valid bytes: they are mapped, and unmapped only at the end of the test.
        unsafe { Sge::new(at.cast(), LEN) }
    };
    let memory = map(null_mut(), 0);
    for round in 1..=3u8 {
        memory.fill(&[round; LEN]);
        let region = verbs.expose(memory).unwrap();
        assert_eq!(read(&verbs, region.remote, LEN), [round; LEN], "round {round}");
        verbs.withdraw(region);
        verbs.forget(memory);
        // New pages at the same addresses.
        assert_eq!(map(memory.ptr().cast(), libc::MAP_FIXED), memory);
    }
    assert!(verbs.registrations().made - start.made >= 3);
    // SAFETY: `munmap` needs memory without users: it was mapped above, and the fabric has forgotten it.
    unsafe { libc::munmap(memory.ptr().cast(), LEN) };
}
