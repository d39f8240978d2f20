//! Barrier and broadcast in two levels.

use crate::{CollectiveState, CommView};
use weft_fabric::{Fabric, Fault, Sge};

/// Runs a barrier of each node, a barrier of the leaders, and again a barrier of each node.
pub async fn barrier<F: Fabric>(
    link: &CommView<F>,
    state: &CollectiveState<F>,
) -> Result<(), Fault> {
    let hierarchy = state.hierarchy(link);
    hierarchy.node.barrier(link).await?;
    if let Some(leaders) = &hierarchy.leaders {
        leaders.barrier(link).await?;
    }
    hierarchy.node.barrier(link).await
}

/// Broadcasts `data` of `root` to all ranks: on the root's node, between leaders, then on the other nodes.
pub async fn bcast<F: Fabric>(
    link: &CommView<F>,
    state: &CollectiveState<F>,
    root: usize,
    data: Sge,
) -> Result<(), Fault> {
    let hierarchy = state.hierarchy(link);
    let (origin, place) = hierarchy.layout.places[root];
    let (node, _) = hierarchy.layout.places[link.rank];
    if node == origin {
        hierarchy.node.bcast(link, place, data).await?;
    }
    if let Some(leaders) = &hierarchy.leaders {
        leaders.bcast(link, origin, data).await?;
    }
    if node != origin {
        hierarchy.node.bcast(link, 0, data).await?;
    }
    Ok(())
}
