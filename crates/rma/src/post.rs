//! Generalized active target: post, start, complete, wait (MPI 5.0, section 12.5.2).
//!
//! ```text
//!   target:  post ── flag posted[target] at each origin       wait ── until completed[origin] of each
//!   origin:  start ── until posted[target] of each  ... operations ...  complete ── flag completed[origin] behind them
//! ```
//! Flags count epochs, by parity in one of two words for each pair of ranks and direction. Cost: one flag
//! each way for a pair; where several rails were used, one on each of them ([`crate::behind`]).
//!
//! Why two words suffice although a flag may be overtaken by the next: whoever tells count k + 1 knows that
//! the other has heard k - 1. A rank posts again once it has waited for the epoch before, whose origin had
//! heard of it; it completes again once the target, which had waited for the epoch before, posted again; and
//! of two fences in a row ([`crate::fence`]), the first is over for a rank that has come to the second.

use crate::Window;
use crate::assert;
use crate::control::Table;
use crate::epoch::Fenced;
use crate::ordered_flag::encode;
use crate::target::Access;
use std::cell::Cell;
use std::rc::Rc;
use weft_fabric::{Fabric, Sge};
use weft_process::Error;

/// One more; the new value.
fn advance(count: &Cell<u64>) -> u64 {
    count.set(count.get() + 1);
    count.get()
}

impl<F: Fabric> Window<F> {
    /// Opens an exposure epoch for `origins`.
    pub fn post(&self, origins: Rc<[usize]>, asserted: i32) -> Result<(), Error> {
        if self.epochs.posted.borrow().is_some() {
            return Err(self.sync("MPI_Win_post: an exposure epoch is open: MPI_Win_wait ends it"));
        }
        if self.epochs.fence.get() == Fenced::Used {
            let text = "MPI_Win_post while operations are under way that MPI_Win_fence must end";
            return Err(self.sync(text));
        }
        for &origin in &*origins {
            // Both sides promise that the origin's start comes after it, and does not wait.
            match asserted & assert::NOCHECK {
                0 => self.tell_posted(origin)?,
                _ => _ = advance(&self.targets[origin].posted),
            }
        }
        *self.epochs.posted.borrow_mut() = Some(origins);
        Ok(())
    }

    /// Opens an access epoch to `targets`, once they have posted theirs.
    pub async fn start(&self, targets: Rc<[usize]>, asserted: i32) -> Result<(), Error> {
        self.may_open("MPI_Win_start")?;
        if self.epochs.started.borrow().is_some() || self.epochs.locks.get() > 0 {
            let why = self.open_epochs().unwrap_or_default();
            return Err(self.sync(format_args!("MPI_Win_start: {why}")));
        }
        for &rank in &*targets {
            match asserted & assert::NOCHECK {
                0 => self.hear_posted(rank).await?,
                _ => _ = advance(&self.targets[rank].started),
            }
            self.targets[rank].access.set(Access::Started);
        }
        *self.epochs.started.borrow_mut() = Some(targets);
        Ok(())
    }

    /// Ends the access epoch: what was issued is over at the targets.
    pub async fn complete(&self) -> Result<(), Error> {
        let Some(targets) = self.epochs.started.take() else {
            return Err(self.sync("MPI_Win_complete without MPI_Win_start"));
        };
        for &rank in &*targets {
            let told = self.tell_behind(rank)?;
            self.targets[rank].told.set(told);
        }
        for &rank in &*targets {
            self.drain(rank).await?;
            self.targets[rank].access.set(Access::None);
            if !self.targets[rank].told.get() {
                self.tell_completed(rank)?;
            }
        }
        Ok(())
    }

    /// Ends the exposure epoch, once all its origins have completed theirs.
    pub async fn wait(&self) -> Result<(), Error> {
        let Some(origins) = self.epochs.posted.take() else {
            return Err(self.sync("MPI_Win_wait without MPI_Win_post"));
        };
        for &origin in &*origins {
            self.hear_completed(origin).await?;
        }
        Ok(())
    }

    /// Whether that is so by now; then the exposure epoch is over.
    pub fn test(&self) -> Result<bool, Error> {
        let mut posted = self.epochs.posted.borrow_mut();
        let Some(origins) = &*posted else {
            return Err(self.sync("MPI_Win_test without MPI_Win_post"));
        };
        let over = origins
            .iter()
            .all(|&origin| self.is_heard(origin, self.targets[origin].awaited.get() + 1));
        if over {
            origins.iter().for_each(|&origin| _ = advance(&self.targets[origin].awaited));
            *posted = None;
        }
        Ok(over)
    }

    /// Tells a rank that this one has posted to it once more.
    pub(crate) fn tell_posted(&self, rank: usize) -> Result<(), Error> {
        let count = advance(&self.targets[rank].posted);
        self.tell(Table::Posted(count), rank, count)
    }

    /// Tells a rank that this one has completed once more.
    pub(crate) fn tell_completed(&self, rank: usize) -> Result<(), Error> {
        let count = advance(&self.targets[rank].completed);
        self.tell(Table::Completed(count), rank, encode(count, 0))
    }

    fn tell(&self, table: Table, rank: usize, value: u64) -> Result<(), Error> {
        let flag = self.control.remote(self.shown[rank].control, table, self.rank());
        let fabric = self.endpoint().fabric();
        Ok(fabric.write_flag(self.peer(rank), Sge::EMPTY, flag.at, flag, value, None)?)
    }

    /// Waits until a rank has posted to this one once more.
    pub(crate) async fn hear_posted(&self, rank: usize) -> Result<(), Error> {
        let count = advance(&self.targets[rank].started);
        let flag = self.control.flag(Table::Posted(count), rank);
        Ok(self.endpoint().until(flag, count).await?)
    }

    /// Waits until a rank has completed once more.
    pub(crate) async fn hear_completed(&self, rank: usize) -> Result<(), Error> {
        let count = advance(&self.targets[rank].awaited);
        self.hear_epoch(rank, count).await
    }
}
