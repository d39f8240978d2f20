//! The cost of a message, compared with the bare cost of moving cache lines between two processors.
//!
//! `cargo run --release -p weft-fabric-shm --example pingpong [processor processor]`

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use weft_bootstrap::threads;
use weft_fabric::{Counter, Fabric, Head, PostOutcome, Sge};
use weft_fabric_shm::Shm;

// Many short samples: on a busy machine most of them are not interrupted.
const ROUNDS: usize = 500;
const SAMPLES: usize = 401;

fn pin(processor: usize) {
    let mut mask = [0u64; 16];
    mask[processor / 64] = 1 << (processor % 64);
    // SAFETY: the call reads `size_of_val(&mask)` bytes of `mask`. Without permission the numbers are merely worse.
    unsafe { libc::sched_setaffinity(0, size_of_val(&mask), mask.as_ptr().cast()) };
}

/// Returns the median of the times of `SAMPLES` runs of `f`, in nanoseconds. (On a busy machine the lower decile says more;
/// `LOWER=1` in the environment.)
fn median(mut f: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..SAMPLES)
        .map(|_| {
            let start = Instant::now();
            f();
            start.elapsed().as_nanos() as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[if std::env::var_os("LOWER").is_some() { SAMPLES / 10 } else { SAMPLES / 2 }]
}

#[derive(Default)]
#[repr(align(128))]
struct Line(AtomicU64);

/// Returns the time of one way, in nanoseconds: each side writes its own line and waits for the line of the other side.
fn bare(processors: [usize; 2]) -> f64 {
    let lines: [Line; 2] = Default::default();
    let mut result = 0.0;
    std::thread::scope(|scope| {
        let lines = &lines;
        scope.spawn(move || {
            pin(processors[1]);
            for i in 1..=(ROUNDS * SAMPLES) as u64 {
                while lines[0].0.load(Ordering::Acquire) != i {
                    std::hint::spin_loop();
                }
                lines[1].0.store(i, Ordering::Release);
            }
        });
        let thread = scope.spawn(move || {
            pin(processors[0]);
            let mut i = 0;
            median(|| {
                for _ in 0..ROUNDS {
                    i += 1;
                    lines[0].0.store(i, Ordering::Release);
                    while lines[1].0.load(Ordering::Acquire) != i {
                        std::hint::spin_loop();
                    }
                }
            })
        });
        result = thread.join().unwrap() / ROUNDS as f64 / 2.0;
    });
    result
}

/// Spins, and yields now and then, so that a crowded machine makes progress.
fn turn(spins: &mut u32) {
    *spins += 1;
    if spins.is_multiple_of(10_000) {
        std::thread::yield_now();
    }
    std::hint::spin_loop();
}

fn take(shm: &Shm, into: Sge) {
    let mut spins = 0;
    loop {
        if let Some(message) = shm.receive(Some(1 - shm.rank())) {
            into.part(0, message.payload.len()).copy_from(message.payload);
            shm.release(message);
            return;
        }
        // A message that found no room is moved only by this.
        shm.progress();
        turn(&mut spins);
    }
}

fn give(shm: &Shm, counter: Counter, payload: Sge) {
    let before = shm.counters().value(counter);
    if shm.send(1 - shm.rank(), Head([1, 2, 3]), payload, Some(counter)) == PostOutcome::Later {
        let mut spins = 0;
        while shm.counters().value(counter) == before {
            shm.progress();
            turn(&mut spins);
        }
    }
}

fn ping(shm: &Shm, len: usize, barrier: &Barrier) -> f64 {
    let mut memory = vec![1u8; len.max(1)];
    // SAFETY: `memory` outlives all uses of the element below.
    let sge = unsafe { Sge::new(memory.as_mut_ptr(), len) };
    let counter = shm.counters().allocate();
    barrier.wait();
    if shm.rank() == 1 {
        for _ in 0..ROUNDS * SAMPLES {
            take(shm, sge);
            give(shm, counter, sge);
        }
        return 0.0;
    }
    let time = median(|| {
        for _ in 0..ROUNDS {
            give(shm, counter, sge);
            take(shm, sge);
        }
    });
    time / ROUNDS as f64 / 2.0
}

fn stream(shm: &Shm, len: usize, barrier: &Barrier) -> f64 {
    let mut memory = vec![1u8; len.max(1)];
    // SAFETY: `memory` outlives all uses of the element below.
    let sge = unsafe { Sge::new(memory.as_mut_ptr(), len) };
    let counter = shm.counters().allocate();
    barrier.wait();
    if shm.rank() == 1 {
        for _ in 0..SAMPLES {
            for _ in 0..ROUNDS {
                take(shm, sge);
            }
            give(shm, counter, Sge::EMPTY);
        }
        return 0.0;
    }
    let time = median(|| {
        for _ in 0..ROUNDS {
            give(shm, counter, sge);
        }
        take(shm, Sge::EMPTY);
    });
    time / ROUNDS as f64
}

fn main() {
    let mut args = std::env::args().skip(1).map(|a| a.parse().expect("a processor number"));
    let processors = [args.next().unwrap_or(0), args.next().unwrap_or(1)];
    let floor = bare(processors);
    println!("bare cache line, one way      {floor:8.1} ns");
    let barrier = Barrier::new(2);
    std::thread::scope(|scope| {
        for (rank, mut world) in threads(2).into_iter().enumerate() {
            let barrier = &barrier;
            scope.spawn(move || {
                pin(processors[rank]);
                let shm = Shm::connect(&mut world).expect("connected");
                let say = |text: String| {
                    if rank == 0 {
                        println!("{text}");
                    }
                };
                for len in [0, 8, 32, 64, 1024, 16384] {
                    let time = ping(&shm, len, barrier);
                    say(format!("{len:6} B, one way {time:18.1} ns   {:.2} of bare", time / floor));
                }
                for len in [8, 64, 1024, 16384] {
                    let time = stream(&shm, len, barrier);
                    let rate = len as f64 / time * 1e3;
                    say(format!("{len:6} B, streaming {time:16.1} ns/message {rate:8.0} MB/s"));
                }
            });
        }
    });
}
