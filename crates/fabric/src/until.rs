//! Waits for counters.

use crate::{Counter, Fabric, FabricExt, Fault};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

/// A wait for one counter. Cancel-safe: dropping the wait withdraws nothing.
pub struct Until<'f, F: Fabric + ?Sized> {
    fabric: &'f F,
    waits: [(Counter, u64); 1],
    deadline: Option<Instant>,
}

/// Waits until `counter >= value`.
pub fn until<F: Fabric + ?Sized>(fabric: &F, counter: Counter, value: u64) -> Until<'_, F> {
    Until { fabric, waits: [(counter, value)], deadline: None }
}

impl<F: Fabric + ?Sized> Until<'_, F> {
    /// Ends the wait with [`crate::FaultCause::TimedOut`] at `deadline`.
    pub fn before(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }
}

impl<F: Fabric + ?Sized> Future for Until<'_, F> {
    type Output = Result<(), Fault>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.fabric.poll_any(&self.waits, self.deadline, cx).map_ok(|_| ())
    }
}

/// Waits until a target of `waits` is reached, and returns the index of the first such wait.
pub async fn until_any<F: Fabric + ?Sized>(
    fabric: &F,
    waits: &[(Counter, u64)],
) -> Result<usize, Fault> {
    std::future::poll_fn(|cx| fabric.poll_any(waits, None, cx)).await
}
