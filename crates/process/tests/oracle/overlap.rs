//! Calls of all algorithms in random order: blocking, nonblocking and persistent, several under way at the same time, on two
//! communicators. Each result equals the oracle's.

use crate::simulated::call::{Call, Prepared};
use crate::simulated::calls::{self, SMALL};
use crate::simulated::world::{Notes, Program, ask, name, share, simulate};
use fastrand::Rng;
use std::rc::Rc;
use std::sync::Arc;
use weft_fabric::Fabric;
use weft_fabric_sim::{Chaos, SimOptions};
use weft_fabric_testing::machine::machine;
use weft_process::{Active, Comm, NonblockingTask};

/// Maximum number of operations under way on one rank.
const AT_ONCE: usize = 6;
/// Number of starts of a persistent operation.
const STARTS: usize = 3;

/// An operation under way.
struct Under<F: Fabric> {
    number: usize,
    round: usize,
    prepared: Prepared<F>,
    task: NonblockingTask,
    /// The context of a persistent operation.
    context: Option<Rc<Comm<F>>>,
}

struct Rank<F: Fabric> {
    comm: Rc<Comm<F>>,
    calls: Arc<Vec<Call>>,
    notes: Arc<Notes>,
    under: Vec<Under<F>>,
}

impl<F: Fabric> Rank<F> {
    fn check(&self, prepared: &Prepared<F>, number: usize, round: usize) {
        let (me, ranks, call) = (self.comm.rank(), self.comm.size(), &self.calls[number]);
        if let Err(why) = self.notes.check(prepared, call, (number, round, ranks)) {
            panic!("rank {me} of {ranks}, call {number}, start {round}: {why}\n{call:?}");
        }
    }

    fn start(&mut self, number: usize, view: &Rc<Comm<F>>, context: bool) {
        let choice = ask(view, &self.calls[number], &self.notes);
        if context {
            self.notes.served_again.lock().expect("no panic").insert(name(choice));
        }
        let prepared = self.calls[number].prepare(view);
        self.notes.arrive(number);
        let task = view.engine().spawn((prepared.make)(view));
        let context = context.then(|| view.clone());
        self.under.push(Under { number, round: 1, prepared, task, context });
    }

    /// Ends the `i`-th operation under way, and starts it again if it is persistent and has starts left. All ranks must take
    /// persistent operations in one order.
    async fn finish(&mut self, i: usize) {
        let mut one = self.under.swap_remove(i);
        self.notes.doing(self.comm.rank(), format!("waits for {:?}", self.calls[one.number]));
        self.comm.finished(Active::Task(one.task.clone())).await.expect("no error");
        self.check(&one.prepared, one.number, one.round);
        let Some(context) = one.context.clone().filter(|_| one.round < STARTS) else { return };
        one.prepared.memories.iter().for_each(|memory| memory.reset());
        one.round += 1;
        self.notes.arrive(one.number);
        one.task = context.engine().spawn((one.prepared.make)(&context));
        self.under.push(one);
    }

    async fn run(mut self, seed: u64) {
        let other = self.comm.dup().await.expect("a communicator");
        let comms = [self.comm.clone(), other];
        // Random numbers that are the same on all ranks, and random numbers of this rank.
        let (mut alike, mut own) = (Rng::with_seed(seed), Rng::with_seed(seed));
        (0..self.comm.rank()).for_each(|_| own = own.fork());
        let mut order: Vec<usize> = (0..self.calls.len()).collect();
        alike.shuffle(&mut order);
        for number in order {
            let comm = comms[alike.usize(..2)].clone();
            match alike.usize(..3) {
                0 => {
                    let call = self.calls[number];
                    ask(&comm, &call, &self.notes);
                    let prepared = call.prepare(&comm);
                    self.notes.doing(comm.rank(), format!("{call:?}"));
                    self.notes.arrive(number);
                    (prepared.make)(&comm).await.expect("no error");
                    self.check(&prepared, number, 1);
                }
                1 => self.start(number, &comm.nonblocking_context().clone(), false),
                _ => self.start(number, &comm.persistent_context(), true),
            }
            // All ranks continue the same persistent operation. Among the other operations, each rank takes any.
            if alike.bool() {
                let mut contexts: Vec<_> =
                    self.under.iter().filter(|u| u.context.is_some()).collect();
                contexts.sort_by_key(|u| u.number);
                if !contexts.is_empty() {
                    let number = contexts[alike.usize(..contexts.len())].number;
                    let i = self.under.iter().position(|u| u.number == number);
                    self.finish(i.expect("it is under way")).await;
                }
            }
            while self.under.len() > AT_ONCE {
                let others: Vec<_> =
                    (0..self.under.len()).filter(|&i| self.under[i].context.is_none()).collect();
                let i = match own.choice(others) {
                    Some(i) => i,
                    // All ranks get here together: only persistent operations are under way on this rank, and so on the others.
                    None => self.oldest(),
                };
                self.finish(i).await;
            }
        }
        while let Some(i) = (0..self.under.len()).find(|&i| self.under[i].context.is_none()) {
            self.finish(i).await;
        }
        while !self.under.is_empty() {
            let i = self.oldest();
            self.finish(i).await;
        }
        for comm in comms {
            comm.close().await.expect("an end");
        }
    }

    fn oldest(&self) -> usize {
        let all = 0..self.under.len();
        all.min_by_key(|&i| (self.under[i].round, self.under[i].number)).expect("one under way")
    }
}

#[derive(Clone, Copy)]
struct Overlap(u64);

impl Program for Overlap {
    fn run<F: Fabric>(
        self,
        comm: Rc<Comm<F>>,
        calls: Arc<Vec<Call>>,
        notes: Arc<Notes>,
    ) -> impl Future<Output = ()> + 'static {
        Rank { comm, calls, notes, under: Vec::new() }.run(self.0)
    }
}

/// Checks that persistent operations have used multicast of each kind. The calls are drawn at random, and calls of one kind are
/// served alike.
fn multicast_again(notes: &Notes) {
    let served = notes.served_again.lock().expect("no panic");
    let kinds: [&[&str]; 4] = [
        &["barrier RGM", "barrier RGM-ACK"],
        &["allreduce RGM", "allreduce RGM-ACK"],
        &["bcast MULTICAST"],
        &["allgather MULTICAST"],
    ];
    for names in kinds {
        assert!(names.iter().any(|&name| served.contains(name)), "none of {names:?} in {served:?}");
    }
}

#[test]
fn in_virtual_time() {
    let notes = Arc::new(Notes::default());
    for n in [2, 3, 8, 13] {
        simulate(&machine(1), SimOptions::new(n), Overlap(n as u64), calls::all(n, &SMALL), &notes);
    }
}

#[test]
fn in_virtual_time_in_trouble() {
    let notes = Arc::new(Notes::default());
    let chaos = Chaos { loss: Some(weft_fabric_sim::units::Chance(0.3)), ..Chaos::rough() };
    for n in [2, 5, 8] {
        let options = SimOptions::new(n).seed(n as u64).chaos(chaos);
        simulate(&machine(2), options, Overlap(n as u64), calls::all(n, &SMALL), &notes);
    }
    multicast_again(&notes);
}

#[test]
fn on_shared_memory() {
    let notes = Arc::new(Notes::default());
    for n in [2, 5] {
        share(n, "", Overlap(n as u64), calls::all(n, &SMALL), &notes);
    }
    let faults = "seed=3,multicast_loss=0.3,message_delay=0.1,reorder=1,completion_delay=0.3";
    share(3, faults, Overlap(3), calls::all(3, &SMALL), &notes);
    multicast_again(&notes);
}

/// A program that initializes more persistent operations than may use multicast.
#[derive(Clone, Copy)]
struct Many;

impl Program for Many {
    async fn run<F: Fabric>(self, comm: Rc<Comm<F>>, _: Arc<Vec<Call>>, _: Arc<Notes>) {
        let casts: Vec<bool> =
            (0..70).map(|_| comm.persistent_context().site().multicast > 0).collect();
        assert_eq!(casts.iter().position(|&casts| !casts), Some(64), "counted alike on all ranks");
        assert!(!casts[64..].contains(&true));
        assert!(!comm.must_close(), "nothing was multicast");
        comm.close().await.expect("an end");
    }
}

#[test]
fn so_many_persistent_operations_may_multicast() {
    let notes = Arc::new(Notes::default());
    simulate(&machine(1), SimOptions::new(3), Many, Vec::new(), &notes);
}
