//! The cost of a round depends on the number of events, not on the number of outstanding tasks. The tests compare counts for
//! numbers of tasks that double.

use super::super::tests::engine;
use super::SOME;
use crate::{Engine, Error, Executor, NonblockingTask, Single, TaskCounts};
use std::cell::RefCell;
use std::rc::Rc;
use weft_fabric::{Counter, Fabric, FlagKind, RemoteFlag, RemoteWrite, Sge};
use weft_fabric_shm::Shm;

type World = Rc<Engine<Shm>>;

const NUMBERS: [usize; 3] = [1000, 2000, 4000];

/// Starts a task that is complete when `counter` has reached `target`, and then calls `end`.
fn waits(
    engine: &World,
    counter: Counter,
    target: u64,
    end: impl FnOnce(&World) + 'static,
) -> NonblockingTask {
    let own = engine.clone();
    engine.spawn_by(Executor::Anybody, async move {
        own.endpoint().until(counter, target).await?;
        end(&own);
        Ok::<(), Error>(())
    })
}

fn add(engine: &World, counter: Counter) {
    engine.endpoint().fabric().counters().add(counter, 1);
}

fn is_linear(what: &str, n: usize, before: TaskCounts, engine: &World) {
    let now = engine.task_counts();
    let (polls, looks) = (now.polled - before.polled, now.looked - before.looked);
    assert_eq!(engine.tasks(), 0, "{what}");
    assert!(polls <= 2 * n as u64, "{what}: {n} at once, {polls} polls");
    assert!(looks <= 40 * n as u64, "{what}: {n} at once, {looks} looks");
}

/// Returns numbers in scattered order, so that no order is favourable.
fn scattered(n: usize) -> impl Iterator<Item = usize> {
    (0..n).map(move |i| i * 7919 % n)
}

#[test]
fn each_with_a_counter_of_its_own() {
    for n in NUMBERS {
        let engine = engine();
        let before = engine.task_counts();
        let own: Vec<Counter> =
            (0..n).map(|_| engine.endpoint().fabric().counters().allocate()).collect();
        let tasks: Vec<NonblockingTask> =
            own.iter().map(|&c| waits(&engine, c, 1, |_| {})).collect();
        for i in scattered(n) {
            add(&engine, own[i]);
            assert!(engine.progress() && tasks[i].is_over());
        }
        is_linear("counters of their own", n, before, &engine);
    }
}

#[test]
fn all_in_a_queue_for_one_counter() {
    for n in NUMBERS {
        let engine = engine();
        let before = engine.task_counts();
        let gate = engine.endpoint().fabric().counters().allocate();
        let targets = scattered(n);
        let tasks: Vec<(usize, NonblockingTask)> =
            targets.map(|i| (i, waits(&engine, gate, i as u64 + 1, |_| {}))).collect();
        for turn in 0..n {
            add(&engine, gate);
            assert!(engine.progress());
            if turn % 97 == 0 {
                assert!(tasks.iter().all(|(i, task)| task.is_over() == (*i <= turn)));
            }
        }
        is_linear("one counter", n, before, &engine);
    }
}

#[test]
fn each_lets_the_next_one_go_on() {
    for n in NUMBERS {
        let engine = engine();
        let before = engine.task_counts();
        let gate = engine.endpoint().fabric().counters().allocate();
        for i in 0..n {
            waits(&engine, gate, i as u64 + 1, move |engine| add(engine, gate));
        }
        assert!(!engine.progress(), "nobody has begun");
        add(&engine, gate);
        assert!(engine.progress());
        is_linear("one after the other, in one round", n, before, &engine);
    }
}

#[test]
fn those_that_are_ready_together_go_on_in_their_order() {
    let engine = engine();
    let n = 500;
    let own: Vec<Counter> =
        (0..n).map(|_| engine.endpoint().fabric().counters().allocate()).collect();
    let seen = Rc::new(RefCell::new(Vec::new()));
    for (i, &counter) in own.iter().enumerate() {
        let seen = seen.clone();
        waits(&engine, counter, 1, move |_| seen.borrow_mut().push(i));
    }
    assert!(!engine.progress());
    scattered(n).filter(|i| i % 3 > 0).for_each(|i| add(&engine, own[i]));
    assert!(engine.progress());
    assert!(seen.borrow().iter().copied().eq((0..n).filter(|i| i % 3 > 0)));
    assert_eq!(engine.tasks(), n.div_ceil(3));
    // The helper also takes filed tasks.
    own.iter().for_each(|&counter| add(&engine, counter));
    assert!(engine.help());
    assert_eq!(engine.tasks(), 0);
}

/// Words that peers write can only be polled. A round polls a bounded number of words, or all words before a sleep.
#[test]
fn words_of_peers_are_looked_at_in_turn() {
    let n = 4 * SOME;
    let engine = engine();
    let fabric = engine.endpoint().fabric();
    let region = fabric.allocate(8 * n).unwrap();
    let flags: Vec<_> = (0..n).map(|i| fabric.flag(&region, 8 * i, FlagKind::Waking)).collect();
    let tasks: Vec<NonblockingTask> =
        flags.iter().map(|flag| waits(&engine, flag.local, 1, |_| {})).collect();
    let write = |i: usize| {
        let at = region.remote.offset(8 * i as u64);
        let flag = RemoteFlag { at, waking: true };
        fabric.write_flag(0, &RemoteWrite::new(Sge::EMPTY, at, None), &flag.with(1)).unwrap();
    };
    assert!(!engine.progress(), "all are filed");
    let before = engine.task_counts();
    for i in scattered(n).take(n / 2) {
        write(i);
        let rounds = (0..=n / SOME).take_while(|_| !tasks[i].is_over()).filter(|_| {
            engine.progress();
            true
        });
        assert!(rounds.count() <= n / SOME && tasks[i].is_over());
    }
    let (now, some) = (engine.task_counts(), (SOME + super::super::tasks::FEW) as u64);
    let rounds = n as u64 / 2 * (n / SOME) as u64;
    assert!(now.looked - before.looked <= rounds * some, "a round has a bound");
    assert_eq!(now.polled - before.polled, n as u64 / 2);
    // A thread that waits looks at all words.
    scattered(n).skip(n / 2).for_each(write);
    engine.drive(&Single, || tasks.iter().all(NonblockingTask::is_over).then_some(()));
    assert_eq!(engine.tasks(), 0);
}
