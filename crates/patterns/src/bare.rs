//! Helpers of patterns on the bare fabric: heads from a given peer, completions, addresses.

use crate::error::PatternError;
use std::cell::Cell;
use std::task::Poll;
use std::time::Instant;
use weft_fabric::{
    ArrivedMessage, Completion, Counter, Fabric, FabricExt, Fault, FaultCause, Head, RemoteAddr,
    Sge, until,
};

/// Waits until `look` returns a value, or the deadline passes (`None`).
pub async fn until_seen<F: Fabric, T>(
    fabric: &F,
    deadline: Option<Instant>,
    mut look: impl FnMut() -> Option<T>,
) -> Result<Option<T>, Fault> {
    std::future::poll_fn(|cx| {
        if let Some(seen) = look() {
            return Poll::Ready(Ok(Some(seen)));
        }
        match fabric.poll_any(&[], deadline, cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(fault)) if fault.is(FaultCause::TimedOut) => Poll::Ready(Ok(None)),
            Poll::Ready(Err(fault)) => Poll::Ready(Err(fault)),
            Poll::Ready(Ok(_)) => unreachable!("no counter is waited for"),
        }
    })
    .await
}

/// Waits for the next message from `from`.
pub async fn message<F: Fabric>(fabric: &F, from: usize) -> Result<ArrivedMessage, Fault> {
    let message = until_seen(fabric, None, || fabric.receive(Some(from))).await?;
    Ok(message.expect("there is no deadline"))
}

/// Sends only a head.
pub fn send_head<F: Fabric>(fabric: &F, to: usize, words: [u64; 3]) {
    fabric.send(to, Head(words), Sge::EMPTY, None);
}

/// Waits for the next message from `from`, and returns its head.
pub async fn head<F: Fabric>(fabric: &F, from: usize) -> Result<[u64; 3], Fault> {
    let message = message(fabric, from).await?;
    let Head(words) = message.head;
    fabric.release(message);
    Ok(words)
}

/// Operations under way, whose memory must stay valid until the operations are complete.
pub struct OperationsUnderWay<'f, F: Fabric> {
    fabric: &'f F,
    over: Counter,
    target: Cell<u64>,
}

impl<'f, F: Fabric> OperationsUnderWay<'f, F> {
    pub fn new(fabric: &'f F) -> OperationsUnderWay<'f, F> {
        let over = fabric.counters().allocate();
        OperationsUnderWay { fabric, over, target: Cell::new(fabric.counters().value(over)) }
    }

    /// Returns the completion for a further operation.
    pub fn one(&self) -> Completion {
        self.target.set(self.target.get() + 1);
        Some(self.over)
    }

    /// Sends a payload and waits until its memory may be used again.
    pub async fn send(&self, to: usize, payload: Sge) -> Result<(), Fault> {
        match self.fabric.send(to, Head::default(), payload, Some(self.over)) {
            weft_fabric::PostOutcome::Done => Ok(()),
            weft_fabric::PostOutcome::Later => {
                self.one();
                self.wait().await
            }
        }
    }

    /// Waits until all operations are complete.
    pub async fn wait(&self) -> Result<(), Fault> {
        until(self.fabric, self.over, self.target.get()).await
    }
}

impl<F: Fabric> Drop for OperationsUnderWay<'_, F> {
    fn drop(&mut self) {
        self.fabric.counters().free(self.over);
    }
}

pub fn send_address<F: Fabric>(fabric: &F, to: usize, at: RemoteAddr) {
    let [first, second, third, last] = at.words();
    let mut bytes = last.to_ne_bytes();
    let len = if last == 0 { 0 } else { bytes.len() };
    // SAFETY: `bytes` is valid for `len` bytes until `send` returns, and an inline payload is copied before that.
    let payload = unsafe { Sge::new(bytes.as_mut_ptr(), len) };
    fabric.send(to, Head([first, second, third]), payload, None);
}

pub async fn address<F: Fabric>(fabric: &F, from: usize) -> Result<RemoteAddr, Fault> {
    let message = message(fabric, from).await?;
    let Head([first, second, third]) = message.head;
    let mut last = [0; 8];
    if message.payload.len() == last.len() {
        message.payload.read(&mut last);
    }
    fabric.release(message);
    Ok(RemoteAddr::from_words([first, second, third, u64::from_ne_bytes(last)]))
}

/// Returns [`PatternError::Refused`] if the fabric lacks an ability.
pub fn require(possible: bool, why: impl FnOnce() -> String) -> Result<(), PatternError> {
    if possible { Ok(()) } else { Err(PatternError::Refused(why())) }
}
