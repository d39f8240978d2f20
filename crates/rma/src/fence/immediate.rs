//! Fence-RI: puts are RDMA writes with immediate, so the target's adapter counts what has arrived; at the
//! fence all add up how many each is to expect.
//!
//! ```text
//!   put: write with the immediate of the target's window and the epoch's parity ── an arrival at the target
//!   fence: writes to each rank ── added up ── until so many have arrived ── barrier
//! ```
//! Two immediates by parity: a rank that is one epoch ahead counts apart. The fabric keeps writes back for
//! which the target has no receive posted (credits). Gets are over when their data are here. Cost: an
//! allreduce of 4 n bytes (beyond 512 ranks a reduce-scatter), a barrier; no flags, and no waiting for acknowledgements. Source: Santhanaraman et al. 2009,
//! "Novel Fence-RI Design". Chosen by name only.

use crate::Window;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use weft_datatype::{Basic, Form, Op};
use weft_fabric::{Fabric, FabricExt, Sge};
use weft_process::{Buffer, Error};

/// Arrivals of writes with immediate.
pub struct Arrivals {
    /// The first of this rank's two immediates.
    pub first: u32,
    /// 0 or 1: the immediate of this epoch.
    pub parity: Cell<u32>,
    /// Writes to each rank in this epoch.
    pub sent: RefCell<Vec<u32>>,
    /// By parity: all that have ever arrived, once an epoch is over.
    expected: [Cell<u64>; 2],
}

impl Arrivals {
    pub fn new(first: u32) -> Arrivals {
        let (parity, sent, expected) = Default::default();
        Arrivals { first, parity, sent, expected }
    }
}

impl<F: Fabric> Window<F> {
    pub(super) async fn fence_immediate(&self, opens: bool) -> Result<(), Error> {
        if !opens {
            let arrivals = &self.arrivals;
            let sent = std::mem::take(&mut *arrivals.sent.borrow_mut());
            let mine = self.summed_up(sent).await?;
            let parity = arrivals.parity.replace(1 - arrivals.parity.get());
            let expected = &arrivals.expected[parity as usize];
            expected.set(expected.get() + u64::from(mine));
            let counter = self.endpoint().fabric().immediate(arrivals.first + parity);
            self.endpoint().until(counter, expected.get()).await?;
            self.drain_all().await?;
        }
        self.comm().barrier().await
    }

    /// One more write with immediate to a rank; which immediate it carries.
    pub(crate) fn count_sent(&self, rank: usize) -> u32 {
        let mut sent = self.arrivals.sent.borrow_mut();
        sent.resize(self.size(), 0);
        sent[rank] += 1;
        self.shown[rank].immediate + self.arrivals.parity.get()
    }

    /// The sum of what all ranks have for this one: `counts` by rank, or none at all.
    pub(super) async fn summed_up(&self, mut counts: Vec<u32>) -> Result<u32, Error> {
        let size = self.size();
        counts.resize(size, 0);
        let pool = self.endpoint().staging();
        let (all, one) = (pool.take(4 * size), pool.take(4));
        let bytes: Vec<u8> = counts.iter().flat_map(|count| count.to_ne_bytes()).collect();
        all.sge().fill(&bytes);
        let ints = |memory: Sge| Buffer::over(memory, crate::window::named(Basic::INT));
        let total = Rc::new(Total);
        let mine = match size {
            0..=FEW => {
                self.comm().allreduce(None, ints(all.sge()), total).await?;
                all.sge().part(4 * self.rank(), 4)
            }
            _ => {
                let (from, to) = (ints(all.sge()), ints(one.sge()));
                self.comm().reduce_scatter(from, vec![1; size], to, total).await?;
                one.sge()
            }
        };
        let mut bytes = [0; 4];
        mine.read(&mut bytes);
        Ok(u32::from_ne_bytes(bytes))
    }
}

/// For so many ranks all counts on every rank are as quick as each rank's own: half the rounds, short messages.
const FEW: usize = 512;

/// The sum of ints.
struct Total;

impl weft_collective::Reduce for Total {
    fn combine(&self, left: Sge, right: Sge) {
        let summed = Op::Sum.apply(Basic::INT, Form::Packed, right.len() / 4, left, right);
        debug_assert!(summed.is_ok(), "a sum of ints");
    }

    fn commutes(&self) -> bool {
        true
    }
}
