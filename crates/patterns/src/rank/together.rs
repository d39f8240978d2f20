//! A common start of all ranks at one instant, by one clock.
//!
//! ```text
//!   now ──> maximum over all ranks ──> + twice the maximum time to learn it ──> wait until then
//! ```
//! A barrier is not enough, because ranks that come at different times also leave at different times. The time to learn the maximum
//! is known from the previous meeting, so a rank holds its first meeting twice. If the clocks of the ranks differ, the instants
//! have no meaning: see [`crate::LapReduction::Span`].

use super::PatternRank;
use crate::bare;
use crate::error::PatternError;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::LazyLock;
use std::task::Poll;
use std::time::{Duration, Instant};
use weft_collective::ElementReduction;
use weft_datatype::{Basic, Predefined};
use weft_fabric::{Fabric, FabricExt, Fault, FaultCause, Sge};
use weft_process::Buffer;

/// Origin of instants in messages between the ranks of this process.
static BASE: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Knowledge of one rank from earlier meetings.
#[derive(Default)]
pub struct PatternMeeting {
    /// Maximum time in nanoseconds from the last rank's arrival until a rank knew of it; `None` before the first meeting.
    way: Cell<Option<i64>>,
}

/// Numbers in nanoseconds whose maxima a meeting finds: the time of arrival, and the time to learn of the last arrival.
type Pair = [i64; 2];

fn since_base(at: Instant) -> i64 {
    let after = at.saturating_duration_since(*BASE).as_nanos() as i64;
    after - BASE.saturating_duration_since(at).as_nanos() as i64
}

fn instant(nanoseconds: i64) -> Instant {
    let span = Duration::from_nanos(nanoseconds.unsigned_abs());
    if nanoseconds < 0 { *BASE - span } else { *BASE + span }
}

fn larger(a: Pair, b: Pair) -> Pair {
    [a[0].max(b[0]), a[1].max(b[1])]
}

impl PatternMeeting {
    /// Waits until all ranks have come, and then until an instant that is the same for all ranks. `largest` finds maxima over all
    /// ranks.
    async fn hold<F: Fabric>(
        &self,
        fabric: &F,
        largest: impl AsyncFn(Pair) -> Result<Pair, PatternError>,
    ) -> Result<(), PatternError> {
        let rounds = if self.way.get().is_none() { 2 } else { 1 };
        for _ in 0..rounds {
            let known = self.way.get().unwrap_or(0);
            let [last, way] = largest([since_base(fabric.now()), known]).await?;
            let mine = since_base(fabric.now()) - last;
            self.way.set(Some(way.max(mine)));
            until(fabric, instant(last + 2 * way)).await?;
        }
        Ok(())
    }
}

/// Waits until an instant, and never sleeps past the instant.
async fn until<F: Fabric>(fabric: &F, at: Instant) -> Result<(), Fault> {
    std::future::poll_fn(|cx| match fabric.poll_any(&[], Some(at), cx) {
        Poll::Ready(Err(fault)) if !fault.is(FaultCause::TimedOut) => Poll::Ready(Err(fault)),
        Poll::Ready(_) => Poll::Ready(Ok(())),
        Poll::Pending => {
            // The ring prevents the caller, which polls this future, from a sleep that could be longer.
            fabric.sleeper().ring();
            Poll::Pending
        }
    })
    .await
}

impl<F: Fabric> PatternRank<F> {
    /// Lets all ranks of the communicator begin at the same instant.
    pub(crate) async fn together(&self) -> Result<(), PatternError> {
        self.meeting.hold(self.fabric(), async |mine| self.largest(mine).await).await
    }

    /// Lets all ranks begin at the same instant, if the plan requires it.
    pub(crate) async fn together_if_isolated(&self) -> Result<(), PatternError> {
        if self.plan().is_isolated() { self.together().await } else { Ok(()) }
    }

    /// Lets the ranks below `size` begin at the same instant, on the bare fabric.
    pub(crate) async fn together_bare(&self, size: usize) -> Result<(), PatternError> {
        let largest = async |mine| Ok(bare_largest(self.fabric(), size, mine).await?);
        self.meeting.hold(self.fabric(), largest).await
    }

    async fn largest(&self, mine: Pair) -> Result<Pair, PatternError> {
        let memory = self.real(16);
        write_pair(memory.all(), mine);
        // The elements are numbers, not bytes, because algorithms may divide the data between elements.
        let number = Predefined::new().of(INT64).clone();
        let buffer = Buffer::over(memory.all(), number);
        self.aside.allreduce(None, buffer, Rc::new(Larger)).await?;
        Ok(read_pair(memory.all()))
    }
}

/// MPI_INT64_T.
const INT64: Basic = match Basic::of_handle(0x258) {
    Some(basic) => basic,
    None => panic!("a predefined type"),
};

/// Finds the maxima by dissemination: in each round, a rank sends the maxima that it knows over twice the distance of the previous
/// round. Rounds have different peers, so that a message of a rank's next meeting is not taken for a message of this meeting.
async fn bare_largest<F: Fabric>(fabric: &F, size: usize, mine: Pair) -> Result<Pair, Fault> {
    let me = fabric.rank();
    let mut known = mine;
    for round in 0..crate::about::rounds(size) {
        let distance = 1 << round;
        let [time, way] = known.map(|n| n as u64);
        bare::send_head(fabric, (me + distance) % size, [time, way, 0]);
        let [time, way, _] = bare::head(fabric, (me + size - distance) % size).await?;
        known = larger(known, [time as i64, way as i64]);
    }
    Ok(known)
}

fn write_pair(to: Sge, pair: Pair) {
    to.part(0, 8).fill(&pair[0].to_ne_bytes());
    to.part(8, 8).fill(&pair[1].to_ne_bytes());
}

fn read_pair(from: Sge) -> Pair {
    [0, 8].map(|at| read(from, at))
}

fn read(from: Sge, at: usize) -> i64 {
    let mut bytes = [0; 8];
    from.part(at, 8).read(&mut bytes);
    i64::from_ne_bytes(bytes)
}

/// Elementwise maximum of two lists.
struct Larger;

impl ElementReduction for Larger {
    fn combine(&self, left: Sge, right: Sge) {
        for at in (0..right.len()).step_by(8) {
            let number = read(left, at).max(read(right, at));
            right.part(at, 8).fill(&number.to_ne_bytes());
        }
    }

    fn commutes(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_survive_a_message() {
        for offset in [-5_000_000, -1, 0, 1, 3_000_000_000] {
            assert_eq!(since_base(instant(offset)), offset);
        }
    }
}
