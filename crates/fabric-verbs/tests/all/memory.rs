//! Registrations: made, shared, ended.

use weft_bootstrap::threads;
use weft_fabric::{Fabric, RemoteAddr, RemoteRead, RemoteWrite, Sge};
use weft_fabric_testing::adapters;
use weft_fabric_verbs::{RegistrationTotals, Verbs};

const LEN: usize = 64 << 10;

/// Connects a job of one process. Returns it with the totals of registrations at the start.
fn alone() -> Option<(Verbs, RegistrationTotals)> {
    let nodes = adapters::nodes()?;
    let options = adapters::options(&nodes, 0);
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
    verbs.read(0, &RemoteRead::new(sge(&mut into), from, Some(done))).unwrap();
    while verbs.counters().value(done) == before {
        verbs.progress();
        assert_eq!(verbs.fault(), None, "{:?}", verbs.trouble());
    }
    into
}

#[test]
fn registrations_end_with_their_use() {
    let Some((verbs, start)) = alone() else { return };
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
    let Some((verbs, _)) = alone() else { return };
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
    verbs.write(0, &RemoteWrite::new(exposed.local, region.remote, Some(done))).unwrap();
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
