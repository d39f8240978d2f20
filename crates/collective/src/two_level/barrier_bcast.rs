//! Barrier and broadcast in two levels.

use crate::{CollectiveKind, CollectiveState, CommView, Largest, ReductionBuffers};
use weft_fabric::{Fabric, Fault, Sge};

/// Gathers each group at its leader, runs a barrier of the leaders, and releases the groups.
pub async fn barrier<F: Fabric>(
    link: &CommView<F>,
    state: &CollectiveState<F>,
) -> Result<(), Fault> {
    let hierarchy = state.hierarchy(link).await?;
    let leaders = async |_| match &hierarchy.leaders {
        Some(leaders) => leaders.barrier(link).await,
        None => Ok(()),
    };
    let nothing = ReductionBuffers { data: Sge::EMPTY, result: Sge::EMPTY, element: 1 };
    if hierarchy.group.around(link, CollectiveKind::Barrier, nothing, &Largest, leaders).await? {
        return Ok(());
    }
    hierarchy.group.barrier(link).await?;
    leaders(Sge::EMPTY).await?;
    hierarchy.group.barrier(link).await
}

/// Broadcasts `data` of `root` to all ranks: to the leader of the root's group, between leaders, then within groups. If the root is
/// no leader, its whole group gets the data first.
pub async fn bcast<F: Fabric>(
    link: &CommView<F>,
    state: &CollectiveState<F>,
    root: usize,
    data: Sge,
) -> Result<(), Fault> {
    let hierarchy = state.hierarchy(link).await?;
    let (origin, place) = hierarchy.layout.places[root];
    let (group, _) = hierarchy.layout.places[link.rank];
    let is_first = group == origin && place > 0;
    if is_first {
        hierarchy.group.bcast(link, place, data).await?;
    }
    if let Some(leaders) = &hierarchy.leaders {
        leaders.bcast(link, origin, data).await?;
    }
    if !is_first {
        hierarchy.group.bcast(link, 0, data).await?;
    }
    Ok(())
}
