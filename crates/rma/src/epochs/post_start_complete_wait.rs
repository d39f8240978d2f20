//! Generalized active target: post, start, complete, wait (MPI 5.0, section 12.5.2).
//!
//! ```text
//!   target:  post ── flag posted[target] at each origin       wait ── until completed[origin] of each
//!   origin:  start ── until posted[target] of each  ... operations ...  complete ── flag completed[origin] behind them
//! ```
//! Cost: one flag in each direction per pair ([`super::flags`]); if several rails were used, one flag on each of these rails
//! ([`super::ordered_flag`]).

use super::Epochs;
use crate::core::assert;
use smallvec::SmallVec;
use std::rc::Rc;
use weft_fabric::Fabric;
use weft_process::Error;

impl<F: Fabric> Epochs<F> {
    /// Opens an exposure epoch for `origins`.
    pub fn post(&self, origins: Rc<[usize]>, asserted: i32) -> Result<(), Error> {
        self.core.allow(self.core.epochs.post())?;
        for &origin in &*origins {
            // With MPI_MODE_NOCHECK, both sides guarantee that the origin calls start later. The origin's start then does not wait
            // for a flag.
            match asserted & assert::NOCHECK {
                0 => self.flags.tell_posted(origin)?,
                _ => self.flags.count_posted(origin),
            }
        }
        self.core.epochs.posted(origins);
        Ok(())
    }

    /// Opens an access epoch to `targets`, once they have posted their exposure epochs.
    pub async fn start(&self, targets: Rc<[usize]>, asserted: i32) -> Result<(), Error> {
        self.core.allow(self.core.epochs.start())?;
        for &rank in &*targets {
            match asserted & assert::NOCHECK {
                0 => self.flags.hear_posted(rank).await?,
                _ => self.flags.count_started(rank),
            }
        }
        self.core.epochs.started(targets);
        Ok(())
    }

    /// Ends the access epoch. On return, the issued operations are complete at the targets.
    pub async fn complete(&self) -> Result<(), Error> {
        let targets = self.core.allow(self.core.epochs.complete())?;
        // Targets that got no flag behind the data get the flag once the data are acknowledged.
        let behind = |&rank: &usize| self.flags.tell_behind(&self.memory, &self.access, rank);
        let told: SmallVec<[bool; 8]> = targets.iter().map(behind).collect::<Result<_, _>>()?;
        for (&rank, told) in targets.iter().zip(told) {
            self.access.drain(rank).await?;
            self.core.epochs.completed(rank);
            if !told {
                self.flags.tell_completed(rank)?;
            }
        }
        Ok(())
    }

    /// Ends the exposure epoch, once all its origins have completed their access epochs.
    pub async fn wait(&self) -> Result<(), Error> {
        let origins = self.core.allow(self.core.epochs.wait())?;
        for &origin in &*origins {
            self.flags.hear_completed(origin).await?;
        }
        Ok(())
    }

    /// Tests whether all origins have completed. If so, ends the exposure epoch.
    pub fn test(&self) -> Result<bool, Error> {
        let test = self.core.epochs.test(|origins| self.flags.are_completed(origins));
        self.core.allow(test)
    }
}
