//! Schedule exploration finds each kind of failure, reports the same each time, and replays it.

use std::future::poll_fn;
use std::process::Command;
use std::task::Poll;
use weft_fabric::{Fabric, FabricExt, Head, Sge, Work};
use weft_fabric_sim::explore::{Explored, WrongReason, WrongSeed};
use weft_fabric_sim::units::Time;
use weft_fabric_sim::{Death, Sim, SimOptions, Stopped, explore};
use weft_fabric_testing::machine::machine;

/// Returns the next message's sender.
async fn sender(sim: &Sim) -> usize {
    poll_fn(|_| match sim.receive(None) {
        Some(message) => {
            let peer = message.peer;
            sim.release(message);
            Poll::Ready(peer)
        }
        None => Poll::Pending,
    })
    .await
}

/// Sends from ranks 1 to 3 to rank 0: rank 1 first, the other two a little later. `late` gives the result of rank 0 if another
/// message overtakes that of rank 1.
async fn race(sim: Sim, late: fn() -> Result<u64, String>) -> Result<u64, String> {
    if sim.rank() == 0 {
        let first = sender(&sim).await;
        for _ in 0..2 {
            sender(&sim).await;
        }
        return if first == 1 { Ok(7) } else { late() };
    }
    sim.charge(Work::Compute(5_000_000 * (sim.rank() as u64 - 1)));
    sim.send(0, Head::default(), Sge::EMPTY, None);
    Ok(7)
}

fn find(late: fn() -> Result<u64, String>) -> WrongSeed {
    let found = explore(&machine(1), SimOptions::new(4), 0..1000, |sim| race(sim, late));
    found.expect_err("delays of up to 100 us against 5 us")
}

#[test]
fn an_error_is_found_and_said_the_same_way_each_time() {
    let error = || Err("rank 1 was not the first".to_owned());
    let found = find(error);
    assert_eq!(found, find(error));
    assert_eq!(found.failure.rank, 0);
    assert_eq!(found.failure.reason, WrongReason::Failed("rank 1 was not the first".to_owned()));
    let text = found.to_string();
    assert_eq!(text, find(error).to_string());
    let begin = format!("seed {}: rank 0: rank 1 was not the first, at ", found.seed);
    assert!(text.starts_with(&begin), "{text}");
    assert!(text.ends_with(&format!("; replay: WEFT_SIM_SEED={}", found.seed)), "{text}");
}

#[test]
fn the_smallest_delays_that_still_fail_are_reported() {
    let found = find(|| Err("late".to_owned()));
    let WrongSeed { most, least, .. } = found;
    assert_eq!(most, Time::from_us(100.0));
    // A message 5 us behind another cannot overtake it if no delay is longer.
    assert!(least >= Time::from_us(5.0) && least < most, "{least:?}");
    let least = least.us();
    let words = format!("(also with delays of at most {least} us instead of 100 us)");
    assert!(found.to_string().contains(&words), "{found}");
}

#[test]
fn panics_are_found() {
    let failure = find(|| panic!("not the {}", "first")).failure;
    assert_eq!(failure.reason, WrongReason::Panicked("not the first".to_owned()));
    assert_eq!(failure.rank, 0);
}

#[test]
fn ranks_that_disagree_are_found() {
    let found = find(|| Ok(8));
    let (value, other) = ("7".to_owned(), "8".to_owned());
    assert_eq!(found.failure.reason, WrongReason::Disagrees { value, first: 0, other });
    assert!(found.to_string().contains("rank 1: returned 7, while rank 0 returned 8"), "{found}");
}

#[test]
fn what_never_ends_is_found() {
    let waits = |sim: Sim| async move {
        if sim.rank() == 1 {
            sender(&sim).await;
        }
        Ok(())
    };
    let found = explore(&machine(1), SimOptions::new(3), 5..10, waits).unwrap_err();
    assert_eq!((found.seed, found.failure.rank), (5, 1));
    let WrongReason::Stopped(Stopped::Deadlock { waiting, .. }) = &found.failure.reason else {
        panic!("{found}")
    };
    assert_eq!(*waiting, [1]);
    let polls = |sim: Sim| async move {
        loop {
            sim.charge(Work::Compute(50_000));
            sim.catch_up().await;
            if sim.receive(None).is_some() {
                return Ok(());
            }
        }
    };
    let options = SimOptions { limit: 1_000_000_000, ..SimOptions::new(1) };
    let found = explore::<(), _>(&machine(1), options, 0..10, polls).unwrap_err();
    assert!(matches!(found.failure.reason, WrongReason::Stopped(Stopped::Limit { .. })), "{found}");
}

#[test]
fn the_dead_need_not_agree() {
    let late = |sim: Sim| async move {
        sim.charge(Work::Compute(2_000_000));
        sim.catch_up().await;
        Ok(sim.rank() == 2)
    };
    let mut options = SimOptions::new(3);
    let deaths = vec![(1_000_000, Death::Rank(2))];
    assert!(explore(&machine(1), options.clone(), 0..10, late).is_err());
    options.deaths = deaths;
    let Explored { seeds, events } = explore(&machine(1), options, 0..10, late).unwrap();
    assert_eq!(seeds, 10);
    assert!(events >= 10);
}

/// Prints the failure that is found, for the test below, which runs this one in a process whose environment names a seed.
#[test]
#[ignore = "part of another test"]
fn child() {
    println!("found: {}", find(|| Err("late".to_owned())));
}

fn run_child(seed: &str) -> String {
    let program = std::env::current_exe().expect("the test's own program");
    let output = Command::new(program)
        .args(["--ignored", "--exact", "explore::child", "--nocapture"])
        .env("WEFT_SIM_SEED", seed)
        .output()
        .expect("the child runs");
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn a_seed_of_the_environment_is_run_alone() {
    let found = find(|| Err("late".to_owned()));
    let output = run_child(&found.seed.to_string());
    assert!(output.contains(&format!("found: {found}\n")), "{output}");
    // A later seed that fails is found at once, although an earlier seed fails, too.
    let options = || SimOptions::new(4);
    let later = found.seed + 1..1000;
    let late = |sim| race(sim, || Err("late".to_owned()));
    let later = explore(&machine(1), options(), later, late).unwrap_err();
    let output = run_child(&later.seed.to_string());
    assert!(output.contains(&format!("found: {later}\n")), "{output}");
    let output = run_child("many");
    assert!(output.contains("WEFT_SIM_SEED is `many`: expected a whole number"), "{output}");
}
