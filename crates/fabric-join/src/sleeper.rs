//! Sleeping on two fabrics at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use weft_fabric::wait::{Sleep, Token};

/// The sleep of a joined fabric: on the near fabric's doorbell, which a thread rings that sleeps on
/// the far one.
///
/// The thread is in the kernel unless the far fabric wakes it, and that happens only while somebody
/// is armed: a process that polls causes no events.
pub struct Both {
    near: Arc<dyn Sleep>,
    far: Arc<dyn Sleep>,
    over: Arc<AtomicBool>,
    watch: Option<JoinHandle<()>>,
}

/// Longest sleep of the watching thread: a bound on what a lost event could cost.
const ROUND: Duration = Duration::from_secs(1);

impl Both {
    pub fn new(near: Arc<dyn Sleep>, far: Arc<dyn Sleep>) -> Both {
        let over = Arc::new(AtomicBool::new(false));
        let watch = {
            let (near, far, over) = (near.clone(), far.clone(), over.clone());
            let watch = move || {
                // Only the end rings the far bell, so one token serves all sleeps; arming is the
                // business of the sleeper below.
                let token = far.arm();
                far.disarm();
                while !over.load(Ordering::Acquire) {
                    far.sleep(token, ROUND);
                    near.ring();
                }
            };
            std::thread::Builder::new().name("weft-watch".to_owned()).spawn(watch).ok()
        };
        Both { near, far, over, watch }
    }
}

impl Sleep for Both {
    fn arm(&self) -> Token {
        let token = self.near.arm();
        self.far.arm();
        token
    }

    fn sleep(&self, token: Token, limit: Duration) {
        // Without the thread, nobody rings for the far fabric.
        let limit = if self.watch.is_some() { limit } else { limit.min(Duration::from_millis(1)) };
        self.near.sleep(token, limit);
    }

    fn disarm(&self) {
        self.far.disarm();
        self.near.disarm();
    }

    fn ring(&self) {
        self.near.ring();
    }
}

impl Drop for Both {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        self.far.ring();
        if let Some(watch) = self.watch.take() {
            // A panic there has been reported by the thread itself.
            let _ = watch.join();
        }
    }
}
