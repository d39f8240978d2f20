//! Exploration under many schedules, with a fifth of the datagrams lost and some repeated.

use super::Planted;
use super::host::{LIMITS, Member};
use crate::multicast::{MulticastLimits, Repair};
use std::rc::Rc;
use weft_fabric_sim::explore::WrongSeed;
use weft_fabric_sim::{Machine, Sim, SimOptions, explore};
use weft_fabric_testing::machine;

const SEEDS: u64 = 300;

fn run<P: Future<Output = Result<u64, String>> + 'static>(
    machine: &Rc<Machine>,
    program: impl Fn(Sim) -> P,
) -> Result<u64, WrongSeed> {
    explore(machine, SimOptions::new(4), 0..SEEDS, program).map(|explored| explored.seeds)
}

/// Checks that the correct code passes under all schedules, and that the planted error is found.
fn check<P: Future<Output = Result<u64, String>> + 'static>(
    planted: Planted,
    program: impl Fn(Sim, Planted) -> P,
) {
    let machine = machine::machine(1);
    match run(&machine, |sim| program(sim, Planted::Nothing)) {
        Ok(seeds) => assert_eq!(seeds, SEEDS),
        Err(found) => panic!("the right form: {found}"),
    }
    let found = run(&machine, |sim| program(sim, planted)).expect_err("an error is planted");
    println!("{planted:?}: {found}");
}

async fn mixed(sim: Sim, planted: Planted) -> Result<u64, String> {
    let member = Member::new(sim, LIMITS, planted);
    member.mixed(12).await?;
    member.close().await?;
    Ok(12)
}

async fn everyone(sim: Sim, planted: Planted) -> Result<u64, String> {
    let member = Member::new(sim, LIMITS, planted);
    for round in 0..6 {
        member.everyone(round, 16, 0).await?;
        if member.multicast.kept() > 2 {
            return Err(format!("{} multicasts are kept", member.multicast.kept()));
        }
    }
    member.close().await?;
    Ok(6)
}

async fn gathers(sim: Sim, planted: Planted) -> Result<u64, String> {
    let member = Member::new(sim, LIMITS, planted);
    for round in 0..6 {
        member.gather_multicast(round, 0, 16).await?;
    }
    member.close().await?;
    Ok(6)
}

async fn broadcasts(sim: Sim, planted: Planted) -> Result<u64, String> {
    let member = Member::new(sim, LIMITS, planted);
    for round in 0..20 {
        member.broadcast(round, 1, 16).await?;
        if member.multicast.kept() > LIMITS.window {
            return Err(format!("{} multicasts are kept", member.multicast.kept()));
        }
    }
    member.close().await?;
    Ok(20)
}

#[test]
fn one_buffer_instead_of_two() {
    check(Planted::OneBuffer, everyone);
}

#[test]
fn a_question_answered_from_the_wrong_buffer() {
    check(Planted::WrongBuffer, gathers);
}

#[test]
fn a_root_that_leaves_before_all_have_its_last_multicast() {
    check(Planted::NoEnd, broadcasts);
}

#[test]
fn a_broadcast_after_which_the_root_forgets() {
    check(Planted::DeafRoot, mixed);
}

/// The same errors, with repair by multicast, which may be lost again.
#[test]
fn repairs_by_multicast() {
    const AGAIN: MulticastLimits = MulticastLimits { repair: Repair::Multicast, ..LIMITS };
    let program = |planted| {
        move |sim| async move {
            let member = Member::new(sim, AGAIN, planted);
            for round in 0..6 {
                member.gather_multicast(round, 0, 16).await?;
            }
            member.mixed(12).await?;
            member.close().await?;
            Ok(18)
        }
    };
    let machine = machine::machine(1);
    match run(&machine, program(Planted::Nothing)) {
        Ok(seeds) => assert_eq!(seeds, SEEDS),
        Err(found) => panic!("the right form: {found}"),
    }
    run(&machine, program(Planted::WrongBuffer)).expect_err("an error is planted");
}

async fn acknowledged(sim: Sim, planted: Planted) -> Result<u64, String> {
    let member = Member::new(sim, LIMITS, planted);
    for round in 0..12 {
        member
            .acknowledged(round, round as usize / 3 % 4, [0, 16, 3000][round as usize % 3])
            .await?;
    }
    member.close().await?;
    Ok(12)
}

#[test]
fn a_root_that_does_not_repeat_what_is_not_acknowledged() {
    check(Planted::NoRepeat, acknowledged);
}

#[test]
fn all_operations_by_turns() {
    check(Planted::NoEnd, mixed);
}
