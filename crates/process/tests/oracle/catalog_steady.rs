//! A start of a persistent operation allocates no memory of the fabric, by every algorithm. Algorithms by RDMA writes and CENTRAL
//! also expose no memory of the program, and allocate nothing. With `--nocapture` the test prints the allocations and exposures of
//! each start.

use crate::allocations::ALLOCATIONS;
use crate::counting::{ALLOCATED, Counting, EXPOSED};
use crate::simulated::call::Call;
use crate::simulated::calls::{self, Form};
use crate::simulated::memory::Layout::Dense;
use crate::simulated::ops::Op;
use crate::simulated::world::{Notes, Program, ask, name, share_on};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use weft_collective::CollectiveKind;
use weft_collective::algorithm::{Carrier, Method};
use weft_fabric::{Fabric, boxed};
use weft_process::{Active, Comm, Executor, PersistentTask};

const STARTS: usize = 20;

/// Maximum number of allocations, and of exposed regions of the program's memory, in one start over all ranks. By algorithm.
static MOST: Mutex<BTreeMap<String, [u64; 2]>> = Mutex::new(BTreeMap::new());

/// Returns this rank's counts: allocations, exposed regions, allocations of the fabric.
fn counts() -> [u64; 3] {
    [ALLOCATIONS.get(), EXPOSED.get(), ALLOCATED.get()]
}

#[derive(Clone, Copy)]
struct Again;

impl Program for Again {
    fn run<F: Fabric>(
        self,
        comm: Rc<Comm<F>>,
        calls: Arc<Vec<Call>>,
        notes: Arc<Notes>,
    ) -> impl Future<Output = ()> + 'static {
        again(comm, calls, notes)
    }
}

/// Returns the number of lists that the oracle makes of blocks that lie apart: its own copy of the list, and the lists made of this
/// copy. Blocks that lie in one piece of memory need no list.
fn lists(operation: CollectiveKind) -> u64 {
    match operation {
        CollectiveKind::Allgather => 3,
        CollectiveKind::Alltoall => 6,
        _ => 0,
    }
}

/// Runs every call as a persistent operation, which is started again and again.
async fn again<F: Fabric>(comm: Rc<Comm<F>>, calls: Arc<Vec<Call>>, notes: Arc<Notes>) {
    for (number, call) in calls.iter().enumerate() {
        let context = comm.persistent_context();
        let served = ask(&context, call, &notes);
        notes.doing(comm.rank(), format!("{call:?}"));
        let prepared = Rc::new(call.prepare(&context));
        let operation = {
            let (context, prepared) = (context.clone(), prepared.clone());
            PersistentTask::new(Executor::Program, move || (prepared.make)(&context))
        };
        let (mut most, mut grown, mut regions) = ([0; 2], 0, 0);
        for start in 0..STARTS {
            prepared.memories.iter().for_each(|memory| memory.reset());
            // All ranks begin together: messages that come early must be stored, which does not count for the algorithm.
            comm.barrier().await.expect("no error");
            notes.arrive(number);
            let before = counts();
            let task = context.engine().start(&operation);
            comm.finished(Active::Task(task)).await.expect("no error");
            let who = || format!("start {start}, served by {served}: {call:?}");
            let after = counts();
            notes
                .check(&prepared, call, (number, start + 1, comm.size()))
                .unwrap_or_else(|why| panic!("{why}: {}", who()));
            if start >= STARTS / 2 {
                let [made, exposed, allocated] = std::array::from_fn(|i| after[i] - before[i]);
                // The number of segments under way at the same time varies, so a pool may grow late.
                regions += u32::from(allocated > 0);
                assert!(regions <= 1, "{allocated} regions of the fabric, {}", who());
                // Algorithms of shared memory hand some lengths on to messages.
                let algorithm = served.algorithm;
                let writes = matches!(algorithm.carrier, Carrier::Writes | Carrier::Immediates);
                let own = writes || algorithm.method == Method::Central;
                assert!(!own || exposed == 0, "{exposed} regions exposed, {}", who());
                // One allocation is the box of the test. In some algorithms the last rank reduces: its temporary memory is
                // allocated when that happens first.
                grown += u32::from(own && made > 1 + lists(algorithm.operation));
                assert!(grown <= 1, "{made} allocations, {}", who());
                most = [most[0].max(made), most[1].max(exposed)];
            }
        }
        let mut all = MOST.lock().expect("no panic");
        let entry = all.entry(name(served)).or_default();
        *entry = [entry[0].max(most[0]), entry[1].max(most[1])];
    }
    comm.close().await.expect("an end");
}

#[test]
fn nothing_is_registered_again() {
    let form = |count| Form {
        count,
        op: Op::Sum,
        layouts: (Dense, Dense),
        in_place: false,
        varying: false,
    };
    let notes = Arc::new(Notes::default());
    for ranks in [2, 4] {
        let calls = calls::all(ranks, &[form(4), form(500), form(2000)]);
        share_on(ranks, |shm| boxed(Counting(shm)), Again, calls, &notes);
    }
    let most = MOST.lock().expect("no panic");
    for (name, [allocations, exposed]) in &*most {
        println!("{allocations:4} allocations, {exposed:2} regions exposed a start: {name}");
    }
    assert!(most.len() > 80, "{} algorithms", most.len());
}
