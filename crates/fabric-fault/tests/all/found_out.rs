//! Tests that protocols that rely on more than the contract fail under faults.

use weft_bootstrap::threads;
use weft_fabric::{Fabric, FabricExt, GroupId, RemoteAddr, RemoteWrite, Sge};
use weft_fabric_fault::{FaultPlan, FaultyFabric};
use weft_fabric_shm::Shm;
use weft_fabric_testing::conformance::{ConformanceRank, Maker, run};

fn with(plan: &str, check: impl Fn(&ConformanceRank<FaultyFabric<Shm>>) + Sync) {
    let plan: FaultPlan = plan.parse().expect("a plan");
    let make = |mut world| {
        let plan = plan.clone();
        Box::new(move || FaultyFabric::new(Shm::connect(&mut world).expect("connected"), plan))
            as Maker<FaultyFabric<Shm>>
    };
    run(threads(2).into_iter().map(make).collect(), check);
}

fn sge(bytes: &mut [u8]) -> Sge {
    // SAFETY: the users below keep the bytes until the operation has completed.
    unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) }
}

/// Returns true if, in any of many writes, the last byte was visible before the other bytes. The number of writes in which this
/// can be seen depends on the timing of the two threads.
fn last_byte_before_the_others(plan: &str, writes: usize) -> bool {
    let early = std::sync::atomic::AtomicU64::new(0);
    with(plan, |rank| {
        for _ in 0..writes {
            let region = rank.fabric.allocate(256).unwrap();
            let at: Vec<RemoteAddr> = rank.gather_addresses(region.remote);
            if rank.rank() == 0 {
                let mut data = [1; 256];
                rank.complete(|done| {
                    rank.fabric.write(1, &RemoteWrite::new(sge(&mut data), at[1], done))
                });
            } else {
                // Looks first at the byte that such a protocol polls, then at the rest.
                let mut last = [0; 1];
                rank.until(|| {
                    region.local.part(255, 1).read(&mut last);
                    last == [1]
                });
                let mut seen = [0; 256];
                region.local.read(&mut seen);
                if seen.contains(&0) {
                    early.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                }
            }
            rank.barrier();
            rank.fabric.withdraw(region);
            // Neither rank adds before both have looked, because the next write needs a barrier.
            if early.load(std::sync::atomic::Ordering::Relaxed) > 0 {
                break;
            }
        }
    });
    early.into_inner() > 0
}

#[test]
fn polling_the_last_byte_is_found_out() {
    assert!(last_byte_before_the_others("seed=5,reorder=1", 5000));
}

#[test]
fn trusting_multicast_is_found_out() {
    let heard = std::sync::atomic::AtomicUsize::new(0);
    with("seed=2,multicast_loss=0.5", |rank| {
        rank.fabric.join(GroupId(1));
        for _ in 0..100 {
            rank.barrier();
            if rank.rank() == 0 {
                rank.fabric.multicast(GroupId(1), sge(&mut [1; 8])).unwrap();
            }
            rank.barrier();
            if rank.rank() == 1 && rank.fabric.receive_multicast(sge(&mut [0; 8])).is_some() {
                heard.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
        }
    });
    let heard = heard.into_inner();
    assert!((20..=80).contains(&heard), "{heard} of 100");
}

#[test]
fn reusing_a_source_before_completion_is_found_out() {
    let spoilt = std::sync::atomic::AtomicUsize::new(0);
    with("seed=4,reorder=1", |rank| {
        let region = rank.fabric.allocate(4096).unwrap();
        let at = rank.gather_addresses(region.remote);
        if rank.rank() == 0 {
            let mut data = vec![1; 4096];
            let source = sge(&mut data);
            let (done, before) = rank.completion();
            rank.fabric.write(1, &RemoteWrite::new(source, at[1], done)).unwrap();
            source.fill(&[2; 4096]);
            rank.finish(done, before + 1);
        }
        rank.barrier();
        if rank.rank() == 1 {
            let mut got = vec![0; 4096];
            region.local.read(&mut got);
            spoilt.store(
                got.iter().filter(|&&b| b == 2).count(),
                std::sync::atomic::Ordering::Relaxed,
            );
        }
    });
    assert!(spoilt.into_inner() > 0);
}
