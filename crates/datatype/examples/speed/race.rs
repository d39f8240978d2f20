//! Interleaved timing of two functions, in processor time of this thread, so that other work on the machine disturbs only the
//! caches.

use nix::time::{ClockId, clock_gettime};

fn now() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("Linux has this clock");
    time.tv_sec() as f64 * 1e9 + time.tv_nsec() as f64
}

/// Nanoseconds per call: the minimum and the median over batches.
#[derive(Clone, Copy)]
pub struct Times {
    pub least: f64,
    pub median: f64,
}

/// Times `ours` and `hand` in batches of at least `BATCH` ns, in turn, for about `seconds`.
pub fn race(seconds: f64, mut ours: impl FnMut(), mut hand: impl FnMut()) -> (Times, Times) {
    const BATCH: f64 = 50_000.0;
    const FEWEST: usize = 5;
    let time = |f: &mut dyn FnMut(), calls: usize| {
        let start = now();
        (0..calls).for_each(|_| f());
        (now() - start) / calls as f64
    };
    let (mut a, mut b) = (Vec::new(), Vec::new());
    let enough = |f: &mut dyn FnMut()| {
        time(f, 1);
        let once = time(f, 3).max(1.0);
        (BATCH / once).ceil() as usize
    };
    let calls = (enough(&mut ours), enough(&mut hand));
    let mut spent = 0.0;
    while spent < seconds * 1e9 || a.len() < FEWEST {
        a.push(time(&mut ours, calls.0));
        b.push(time(&mut hand, calls.1));
        spent += a[a.len() - 1] * calls.0 as f64 + b[b.len() - 1] * calls.1 as f64;
    }
    (summary(a), summary(b))
}

fn summary(mut times: Vec<f64>) -> Times {
    times.sort_by(f64::total_cmp);
    Times { least: times[0], median: times[times.len() / 2] }
}
