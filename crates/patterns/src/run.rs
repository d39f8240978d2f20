//! Run of a rank's pattern: by a simulator, or on a real fabric.

use crate::error::PatternError;
use crate::laps::Laps;
use crate::rank::PatternRank;
use crate::registry::play;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use weft_fabric::Fabric;
use weft_fabric::wait::{WaitPolicy, WaitStep, Waiter};
use weft_process::Single;

/// Maximum sleep of a pattern on the bare fabric. The limit is needed because not every event for which it waits wakes it.
const NAP: Duration = Duration::from_millis(1);

impl<F: Fabric> PatternRank<F> {
    /// Returns the pattern as a program that a simulator polls.
    pub fn program(self) -> Pin<Box<dyn Future<Output = Result<Laps, PatternError>>>> {
        let engine = self.engine.clone();
        let bare = self.plan().about.bare;
        let program = async move {
            let laps = play(&self).await?;
            self.comm.close().await?;
            Ok(laps)
        };
        if bare { Box::pin(program) } else { Box::pin(engine.run(program)) }
    }

    /// Runs the pattern on a real fabric to its end, and waits until this process has nothing more to send. Ranks must not leave
    /// the fabric before all ranks have ended.
    pub fn block_on(&self) -> Result<Laps, PatternError> {
        let fabric = self.engine.endpoint().fabric();
        let laps = if self.plan().about.bare {
            drive(fabric, self.engine.policy(), play(self))
        } else {
            self.engine.block_on(&Single, async {
                let laps = play(self).await?;
                self.comm.close().await?;
                Ok(laps)
            })
        };
        while !fabric.idle() {
            fabric.progress();
        }
        laps
    }
}

/// Runs a future on the bare fabric, where only the future takes messages.
fn drive<F: Fabric, T>(fabric: &F, policy: &WaitPolicy, future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    let mut look = || {
        fabric.progress();
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    };
    let sleeper = fabric.sleeper();
    let mut waiter = Waiter::new(policy);
    loop {
        if let Some(value) = look() {
            return value;
        }
        if let WaitStep::Sleep(limit) = waiter.step() {
            let token = sleeper.arm();
            let over = look();
            if over.is_none() {
                sleeper.sleep(token, limit.min(NAP));
            }
            sleeper.disarm();
            if let Some(value) = over {
                return value;
            }
            waiter.progressed();
        }
    }
}
