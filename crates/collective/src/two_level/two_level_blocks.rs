//! Operations on blocks: the blocks of all ranks of a group travel between groups as one message.

use crate::members::Layout;
use crate::{BlockList, CollectiveState, CommView, local_ops};
use weft_fabric::{Fabric, Fault, Sge, Staging};

/// A buffer with a block for each rank, group by group.
struct ByGroup {
    memory: Staging,
    /// By group: the blocks of the group's ranks, contiguous.
    groups: Vec<Sge>,
    /// By rank: the block of the rank.
    ranks: Vec<Sge>,
}

impl ByGroup {
    fn new<F: Fabric>(link: &CommView<F>, layout: &Layout, like: Sge, lens: &[usize]) -> ByGroup {
        let memory = local_ops::stage(link, like, lens.iter().sum());
        let (mut at, mut groups, mut ranks) = (0, Vec::new(), vec![Sge::EMPTY; lens.len()]);
        for group in &layout.groups {
            let start = at;
            for &rank in group {
                ranks[rank] = memory.sge().part(at, lens[rank]);
                at += lens[rank];
            }
            groups.push(memory.sge().part(start, at - start));
        }
        ByGroup { memory, groups, ranks }
    }
}

/// Gathers `mine` of each rank in `blocks[rank]` of the root. All blocks have the same length. Leaders of other groups gather the
/// blocks of their groups and send them to the root. Ranks of the root's group send to the root directly.
pub async fn gather<F: Fabric>(
    link: &CommView<F>,
    state: &CollectiveState<F>,
    root: usize,
    mine: Sge,
    blocks: &[Sge],
) -> Result<(), Fault> {
    let hierarchy = state.hierarchy(link).await?;
    let layout = &hierarchy.layout;
    let (home, _) = layout.places[root];
    let (group, place) = layout.places[link.rank];
    if group != home {
        let here = layout.groups[group].len();
        if place != 0 {
            return hierarchy.group.gather(link, mine, &[]).await;
        }
        let room = local_ops::stage(link, mine, here * mine.len());
        let parts: Vec<Sge> =
            (0..here).map(|i| room.sge().part(i * mine.len(), mine.len())).collect();
        hierarchy.group.gather(link, mine, &parts).await?;
        return link.send(root, room.sge()).await;
    }
    if link.rank != root {
        return link.send(root, mine).await;
    }
    let lens = vec![mine.len(); link.size()];
    let room = ByGroup::new(link, layout, mine, &lens);
    let mut receives = Vec::new();
    for (n, ranks) in layout.groups.iter().enumerate() {
        match n == home {
            false => receives.push(link.irecv(ranks[0], room.groups[n])),
            true => {
                let others = ranks.iter().filter(|&&rank| rank != root);
                receives.extend(others.map(|&rank| link.irecv(rank, blocks[rank])));
            }
        }
    }
    local_ops::copy(link, mine, blocks[root]);
    link.wait_all(receives).await?;
    for (rank, &(n, _)) in layout.places.iter().enumerate() {
        if n != home {
            local_ops::copy(link, room.ranks[rank], blocks[rank]);
        }
    }
    Ok(())
}

/// Scatters `blocks[rank]` of the root to `mine` of each rank. All blocks have the same length. The root sends to the leaders of
/// other groups, which then scatter, and directly to the ranks of its own group.
pub async fn scatter<F: Fabric>(
    link: &CommView<F>,
    state: &CollectiveState<F>,
    root: usize,
    blocks: &[Sge],
    mine: Sge,
) -> Result<(), Fault> {
    let hierarchy = state.hierarchy(link).await?;
    let layout = &hierarchy.layout;
    let (home, _) = layout.places[root];
    let (group, place) = layout.places[link.rank];
    if group != home {
        let here = layout.groups[group].len();
        if place != 0 {
            return hierarchy.group.scatterv(link, &[], mine).await;
        }
        let room = local_ops::stage(link, mine, here * mine.len());
        link.recv(root, room.sge()).await?;
        let parts: Vec<Sge> =
            (0..here).map(|i| room.sge().part(i * mine.len(), mine.len())).collect();
        return hierarchy.group.scatterv(link, &parts, mine).await;
    }
    if link.rank != root {
        return link.recv(root, mine).await;
    }
    let lens = vec![mine.len(); link.size()];
    let room = ByGroup::new(link, layout, mine, &lens);
    let mut sends = Vec::new();
    for (n, ranks) in layout.groups.iter().enumerate() {
        if n == home {
            let others = ranks.iter().filter(|&&rank| rank != root);
            sends.extend(others.filter_map(|&rank| link.isend(rank, blocks[rank])));
        } else {
            ranks.iter().for_each(|&rank| local_ops::copy(link, blocks[rank], room.ranks[rank]));
            sends.extend(link.isend(ranks[0], room.groups[n]));
        }
    }
    local_ops::copy(link, blocks[root], mine);
    link.wait_all(sends).await
}

/// Gathers `blocks[rank]` of each rank at all ranks: a gather to leaders, an allgather of leaders, and a broadcast.
pub async fn allgather<F: Fabric>(
    link: &CommView<F>,
    state: &CollectiveState<F>,
    blocks: &[Sge],
) -> Result<(), Fault> {
    let hierarchy = state.hierarchy(link).await?;
    let layout = &hierarchy.layout;
    let lens: Vec<usize> = blocks.iter().map(|block| block.len()).collect();
    let mine = blocks[link.rank];
    let all = ByGroup::new(link, layout, mine, &lens);
    let (group, place) = layout.places[link.rank];
    let here: Vec<Sge> = layout.groups[group].iter().map(|&rank| all.ranks[rank]).collect();
    hierarchy.group.gatherv(link, mine, if place == 0 { &here } else { &[] }).await?;
    if let Some(leaders) = &hierarchy.leaders {
        leaders.allgather(link, &all.groups).await?;
    }
    hierarchy.group.bcast(link, 0, all.memory.sge()).await?;
    for (rank, &block) in blocks.iter().enumerate() {
        if rank != link.rank {
            local_ops::copy(link, all.ranks[rank], block);
        }
    }
    Ok(())
}

/// Sends `out[r]` to rank r and receives `into[r]` from rank r; all blocks have the same length. Leaders gather the blocks of their
/// ranks, exchange them, and scatter the blocks that they receive.
pub async fn alltoall<F: Fabric>(
    link: &CommView<F>,
    state: &CollectiveState<F>,
    out: &[Sge],
    into: &[Sge],
) -> Result<(), Fault> {
    let hierarchy = state.hierarchy(link).await?;
    let (layout, len) = (&hierarchy.layout, out[0].len());
    let lens = vec![len; link.size()];
    // The blocks that this rank sends and receives, group by group.
    let sends = ByGroup::new(link, layout, out[0], &lens);
    for (&from, &to) in out.iter().zip(&sends.ranks) {
        local_ops::copy(link, from, to);
    }
    let comes = ByGroup::new(link, layout, out[0], &lens);
    let (group, place) = layout.places[link.rank];
    let (here, all) = (layout.groups[group].len(), lens.len() * len);
    if let (Some(leaders), 0) = (&hierarchy.leaders, place) {
        let (gathered, scattered) = (
            local_ops::stage(link, out[0], here * all),
            local_ops::stage(link, out[0], here * all),
        );
        let rows = |room: &Staging| -> Vec<Sge> {
            (0..here).map(|i| room.sge().part(i * all, all)).collect()
        };
        let (out_rows, in_rows) = (rows(&gathered), rows(&scattered));
        hierarchy.group.gather(link, sends.memory.sge(), &out_rows).await?;
        // Between groups: the blocks from the ranks of this group to the ranks of each other group, and in the other direction.
        let (leaving, coming) = (
            local_ops::stage(link, out[0], here * all),
            local_ops::stage(link, out[0], here * all),
        );
        let shares = |room: &Staging| {
            let counts = layout.groups.iter().map(|ranks| here * ranks.len() * len);
            let cut = BlockList::of(room.sge(), counts);
            cut.iter().collect::<Vec<Sge>>()
        };
        let (leaves, enters) = (shares(&leaving), shares(&coming));
        let mut start = 0;
        for (n, ranks) in layout.groups.iter().enumerate() {
            let width = ranks.len() * len;
            for (i, row) in out_rows.iter().enumerate() {
                local_ops::copy(link, row.part(start, width), leaves[n].part(i * width, width));
            }
            start += width;
        }
        leaders.alltoallv(link, &leaves, &enters).await?;
        let mut start = 0;
        for (n, ranks) in layout.groups.iter().enumerate() {
            // Each rank of that group sent a block for each rank of this group.
            for source in 0..ranks.len() {
                for (i, row) in in_rows.iter().enumerate() {
                    let block = enters[n].part((source * here + i) * len, len);
                    local_ops::copy(link, block, row.part(start + source * len, len));
                }
            }
            start += ranks.len() * len;
        }
        hierarchy.group.scatterv(link, &in_rows, comes.memory.sge()).await?;
    } else {
        hierarchy.group.gather(link, sends.memory.sge(), &[]).await?;
        hierarchy.group.scatterv(link, &[], comes.memory.sge()).await?;
    }
    for (&from, &to) in comes.ranks.iter().zip(into) {
        local_ops::copy(link, from, to);
    }
    Ok(())
}
