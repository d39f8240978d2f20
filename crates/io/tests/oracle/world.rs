//! Ranks that are threads, each with an engine over shared memory.

use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use weft_bootstrap::threads;
use weft_fabric::Fabric;
use weft_fabric::wait::WaitPolicy;
use weft_fabric_shm::Shm;
use weft_p2p::ProtocolLimits;
use weft_process::{Comm, Engine, Single};

const LIMITS: ProtocolLimits =
    ProtocolLimits { eager: 200, credit: 4 << 10, staging: 1 << 20, ..ProtocolLimits::USUAL };

/// Runs `program` on `ranks` ranks. `fits`: the ranks assume that each has a processor of its own.
pub fn run<P: Future<Output = ()>>(
    (ranks, fits): (usize, bool),
    program: impl Fn(Rc<Comm<Shm>>) -> P + Sync,
) {
    let through = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for mut bootstrap in threads(ranks) {
            let (through, program) = (&through, &program);
            scope.spawn(move || {
                let _alarm = Alarm;
                let shm = Shm::connect(&mut bootstrap).expect("connected");
                let mut policy = WaitPolicy::new(fits);
                policy.nap = Duration::from_millis(2);
                let engine = Engine::new(shm, policy, LIMITS);
                let comm = Comm::world(&engine);
                engine.block_on(&Single, program(comm));
                through.fetch_add(1, Ordering::SeqCst);
                while through.load(Ordering::SeqCst) < ranks || !engine.endpoint().fabric().idle() {
                    engine.progress();
                    std::thread::yield_now();
                }
            });
        }
    });
}

/// Ends the process when a rank fails, because the other ranks would wait for ever.
struct Alarm;

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}
