//! REDUCE-BCAST: a reduction to rank 0 and a broadcast from it, each by the algorithm that the map selects.
//!
//! ```text
//!   0 <- 1, 2, 3 ...     as MPI_Reduce would         0 -> 1, 2, 3 ...     as MPI_Bcast would
//! ```
//! Cost: the reduction and the broadcast. So no map makes an allreduce slower than a reduction and a broadcast (Traeff, Gropp and
//! Thakur 2010). Chosen for long payloads if the network has multicast and the number of ranks is not a power of two. Other
//! algorithms then fold ranks or go round a ring, whereas the broadcast is nearly free.

use crate::{CollectiveState, CommView, ElementReduction, ReductionBuffers};
use weft_fabric::{Fabric, Fault};

/// Combines `data` of all ranks into `result` of all ranks.
pub async fn reduce_broadcast<F: Fabric>(
    link: &CommView<F>,
    state: &CollectiveState<F>,
    buffers: ReductionBuffers,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    let hierarchy = state.hierarchy(link).await?;
    hierarchy.whole.reduce(link, 0, buffers, op).await?;
    hierarchy.whole.bcast(link, 0, buffers.result).await
}
