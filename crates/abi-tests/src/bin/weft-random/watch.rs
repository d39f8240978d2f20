//! Ends a program that does not end by itself, and reports where this rank is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

#[derive(Clone, Default)]
pub struct Watch(Arc<[AtomicU64; 4]>);

impl Watch {
    /// Ends the process when nothing has changed for `limit`. `tell` makes the line to print.
    pub fn start(
        limit: Duration,
        tell: impl Fn(u64, u64, u64) -> String + Send + 'static,
    ) -> Watch {
        let watch = Watch::default();
        let seen = watch.clone();
        std::thread::spawn(move || {
            let mut last = (0, Instant::now());
            loop {
                std::thread::sleep(limit / 20);
                let now = seen.0[3].load(Relaxed);
                if now != last.0 {
                    last = (now, Instant::now());
                } else if last.1.elapsed() > limit {
                    let [program, step, item] = [0, 1, 2].map(|i| seen.0[i].load(Relaxed));
                    eprintln!("{}", tell(program, step, item));
                    std::process::exit(3);
                }
            }
        });
        watch
    }

    pub fn at(&self, program: u64, step: usize, item: usize) {
        self.0[0].store(program, Relaxed);
        self.0[1].store(step as u64, Relaxed);
        self.item(item);
    }

    pub fn item(&self, item: usize) {
        self.0[2].store(item as u64, Relaxed);
        self.0[3].fetch_add(1, Relaxed);
    }
}
