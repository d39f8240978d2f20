//! What it costs to move bytes between ranks of one machine: a model of the machine, and what a rank has seen since.
//!
//! ```text
//!   CopyModel   measured once a host, or given by a file or a machine file; the same for all ranks of a node
//!   Copies      a rank's: the model, and how far from the others it has found itself to be lately
//! ```
//! Whoever chooses a protocol or an algorithm among ranks that share memory does it by these numbers, so that the choice can
//! be printed, and made for a machine that is not there. A fabric owns them ([`crate::Fabric::copies`]).

mod model;

pub use model::{By, CopyModel, Distance};
use std::cell::Cell;
use std::sync::Arc;

/// A rank's copy costs.
#[derive(Debug)]
pub struct Copies {
    model: Arc<CopyModel>,
    distance: Cell<Distance>,
}

impl Copies {
    pub fn new(model: Arc<CopyModel>) -> Copies {
        Copies { model, distance: Cell::new(Distance::Shared) }
    }

    pub fn model(&self) -> &CopyModel {
        &self.model
    }

    /// How far the caches of other ranks are, as far as is known.
    pub fn distance(&self) -> Distance {
        self.distance.get()
    }
}
