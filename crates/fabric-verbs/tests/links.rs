//! Processes of two jobs that connect later are ordinary peers until they part. Then no queue pair is left. A process that ends
//! without a disconnect is reported as lost. Needs an adapter; soft-RoCE suffices.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};
use weft_bootstrap::{Bootstrap, ThreadBootstrap};
use weft_fabric_testing::links::{SIZES, end_without_a_word, meet_and_part};
use weft_fabric_testing::{adapters, not_run};
use weft_fabric_verbs::{RegistrationTotals, Verbs, VerbsOptions};
use weft_job_connections::Connectable;

/// Number of meetings of the same processes. soft-RoCE takes half a second per meeting. `WEFT_TEST_ROUNDS` overrides it.
const ROUNDS: usize = 8;

/// Lock that serialises the tests, since they count the queue pairs of the machine.
static ALONE: Mutex<()> = Mutex::new(());

/// Makes a process of either job with the minimum of credits, so that a lost credit is noticed.
fn maker(nodes: &[Vec<String>]) -> impl Fn(usize, &mut ThreadBootstrap) -> Verbs + Sync {
    |job, world| {
        let mut options = adapters::options(nodes, job + world.rank());
        (options.credits, options.linked) = (4, 2);
        Verbs::connect_with(world, options).unwrap_or_else(|error| panic!("{error}"))
    }
}

/// Returns the number of queue pairs of all adapters.
fn queue_pairs() -> Option<u64> {
    let output = Command::new("rdma").args(["resource", "show"]).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let words: Vec<&str> = text.split_whitespace().collect();
    let counts = words.windows(2).filter(|pair| pair[0] == "qp");
    let counts: Vec<u64> = counts.map(|pair| pair[1].parse()).collect::<Result<_, _>>().ok()?;
    (!counts.is_empty()).then(|| counts.iter().sum())
}

#[test]
fn jobs_meet_and_part_again_and_again_and_nothing_is_left() {
    let Some(nodes) = adapters::nodes() else { return };
    let _alone = ALONE.lock().unwrap();
    let rounds = std::env::var("WEFT_TEST_ROUNDS").map_or(ROUNDS, |text| text.parse().unwrap());
    let counted = queue_pairs().is_some();
    if !counted {
        not_run("the count of queue pairs", "`rdma resource show` says none", adapters::VERBS);
    }
    let (before, after) = (Mutex::new(BTreeMap::new()), Mutex::new(BTreeMap::new()));
    let first = OnceLock::new();
    meet_and_part(&maker(&nodes), rounds, |verbs, place, round| {
        assert!(verbs.connections() < SIZES[1], "{} connections", verbs.connections());
        let RegistrationTotals { registered, entries, .. } = verbs.registrations();
        let all = if round == 0 { &before } else { &after };
        all.lock().unwrap().insert(place, (registered, entries, verbs.secondary_connections()));
        // The other processes may not have forgotten their peers yet. They connect again only together with this process.
        if place == 0 && counted {
            let least = *first.get_or_init(|| {
                thread::sleep(Duration::from_secs(1));
                queue_pairs().unwrap()
            });
            let end = Instant::now() + Duration::from_secs(10);
            while let Some(more @ 1..) = queue_pairs().unwrap().checked_sub(least) {
                assert!(Instant::now() < end, "{more} queue pairs more than after the first one");
                thread::sleep(Duration::from_millis(10));
            }
        }
    });
    assert_eq!(before.lock().unwrap().len(), SIZES.iter().sum::<usize>());
    assert_eq!(*before.lock().unwrap(), *after.lock().unwrap(), "after 1, and after {rounds}");
}

#[test]
fn whoever_ends_without_a_word_is_missed() {
    let Some(nodes) = adapters::nodes() else { return };
    let _alone = ALONE.lock().unwrap();
    let said = end_without_a_word(&maker(&nodes), false);
    assert!(said.contains("of another job, and has ended without a word"), "{said}");
    end_without_a_word(&maker(&nodes), true);
}

#[test]
fn jobs_on_other_networks_are_told_apart() {
    let Some(nodes) = adapters::nodes() else { return };
    let _alone = ALONE.lock().unwrap();
    let make = |rail: Option<usize>| {
        let mut world = weft_bootstrap::threads(1).remove(0);
        let options = VerbsOptions { rail, ..adapters::options(&nodes, 0) };
        Verbs::connect_with(&mut world, options).unwrap_or_else(|error| panic!("{error}"))
    };
    let (all, first) = (make(None), make(Some(0)));
    assert!(all.dialect().starts_with("verbs over RoCE "), "{}", all.dialect());
    assert_ne!(all.dialect(), first.dialect());
    assert_eq!(all.networks(), first.networks());
    let ip = all.ip().expect("the interfaces of the machine have addresses");
    assert!(!ip.is_loopback() && Connectable::ip(&first) == Some(ip));
}
