//! Number of writes or messages that a rank must expect in an epoch: the sum of the counts of all ranks. Cost: an allreduce of 4 n
//! bytes, or a reduce-scatter for more than 512 ranks.

use super::WindowFences;
use crate::core::exchange::named;
use std::rc::Rc;
use weft_datatype::{Basic, ElementSpacing, PredefinedOp};
use weft_fabric::{Fabric, Sge};
use weft_process::{Buffer, Error};

impl<F: Fabric> WindowFences<F> {
    /// Returns the sum of the counts of all ranks for this rank. `counts` is indexed by rank, or is empty.
    pub(super) async fn expected(&self, mut counts: Vec<u32>) -> Result<u32, Error> {
        let size = self.core.size();
        counts.resize(size, 0);
        let pool = self.core.endpoint().staging();
        let (all, one) = (pool.take(4 * size), pool.take(4));
        let bytes: Vec<u8> = counts.iter().flat_map(|count| count.to_ne_bytes()).collect();
        all.sge().fill(&bytes);
        let ints = |memory: Sge| Buffer::over(memory, named(Basic::INT));
        let total = Rc::new(Total);
        let mine = match size {
            0..=FEW => {
                self.core.comm().allreduce(None, ints(all.sge()), total).await?;
                all.sge().part(4 * self.core.rank(), 4)
            }
            _ => {
                let (from, to) = (ints(all.sge()), ints(one.sge()));
                self.core.comm().reduce_scatter(from, vec![1; size], to, total).await?;
                one.sge()
            }
        };
        let mut bytes = [0; 4];
        mine.read(&mut bytes);
        Ok(u32::from_ne_bytes(bytes))
    }
}

/// Maximum number of ranks for an allreduce of all counts. Up to this number, an allreduce is as fast as a reduce-scatter, because
/// it has half as many rounds and its messages are short.
const FEW: usize = 512;

/// Reduction that adds ints.
struct Total;

impl weft_collective::ElementReduction for Total {
    fn combine(&self, left: Sge, right: Sge) {
        let summed = PredefinedOp::Sum.apply(
            Basic::INT,
            ElementSpacing::Packed,
            right.len() / 4,
            left,
            right,
        );
        debug_assert!(summed.is_ok(), "a sum of ints");
    }

    fn commutes(&self) -> bool {
        true
    }
}
