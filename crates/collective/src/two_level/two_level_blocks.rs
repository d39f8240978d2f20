//! Operations on blocks: the blocks of all ranks of a group travel between groups as one message.

use crate::members::Layout;
use crate::{BlockList, CollectiveState, CommView, local_ops};
use weft_fabric::{Fabric, Fault, Sge, Staging};

/// A buffer with a block for each rank, group by group: the caller's blocks, if they lie in this order, or a temporary buffer.
struct ByGroup {
    whole: Sge,
    /// By group: the blocks of the group's ranks, contiguous.
    groups: Vec<Sge>,
    /// By rank: the block of the rank.
    ranks: Vec<Sge>,
    /// Memory of a temporary buffer.
    memory: Option<Staging>,
}

impl ByGroup {
    /// Finds or allocates the buffer for `blocks`, which are indexed by rank.
    fn new<F: Fabric>(link: &CommView<F>, layout: &Layout, blocks: &[Sge]) -> ByGroup {
        let in_order: Vec<Sge> = layout.order().map(|rank| blocks[rank]).collect();
        let in_place = Sge::join(&in_order);
        let apart = || {
            let len = blocks.iter().map(|block| block.len()).sum();
            local_ops::stage(link, blocks[link.rank], len)
        };
        let memory = if in_place.is_some() { None } else { Some(apart()) };
        let staged = memory.as_ref().map_or(Sge::EMPTY, |memory| memory.sge());
        let whole = in_place.unwrap_or(staged);
        let (mut at, mut groups, mut ranks) = (0, Vec::new(), vec![Sge::EMPTY; blocks.len()]);
        for group in &layout.groups {
            let start = at;
            for &rank in group {
                ranks[rank] = whole.part(at, blocks[rank].len());
                at += blocks[rank].len();
            }
            groups.push(whole.part(start, at - start));
        }
        ByGroup { whole, groups, ranks, memory }
    }

    /// Calls `copy` with each part of a temporary buffer and with its block.
    fn each_apart(&self, blocks: &[Sge], copy: impl Fn(Sge, Sge)) {
        if self.memory.is_some() {
            self.ranks.iter().zip(blocks).for_each(|(&part, &block)| copy(part, block));
        }
    }
}

/// The blocks of a group's ranks in one piece: where they are, if they lie next to each other, or in a temporary buffer.
enum GroupRoom {
    InPlace(Sge),
    Apart(Staging),
}

impl GroupRoom {
    /// Finds or allocates a piece for the blocks of `ranks`. `blocks` is indexed by rank.
    fn new<F: Fabric>(link: &CommView<F>, ranks: &[usize], blocks: &[Sge]) -> GroupRoom {
        let these: Vec<Sge> = ranks.iter().map(|&rank| blocks[rank]).collect();
        let apart = || {
            let len = these.iter().map(|block| block.len()).sum();
            GroupRoom::Apart(local_ops::stage(link, these[0], len))
        };
        Sge::join(&these).map_or_else(apart, GroupRoom::InPlace)
    }

    fn whole(&self) -> Sge {
        match self {
            GroupRoom::InPlace(whole) => *whole,
            GroupRoom::Apart(room) => room.sge(),
        }
    }

    /// Calls `copy` with each part of a temporary buffer and with its block.
    fn each_apart(&self, ranks: &[usize], blocks: &[Sge], mut copy: impl FnMut(Sge, Sge)) {
        let GroupRoom::Apart(room) = self else { return };
        let mut at = 0;
        for &rank in ranks {
            let block = blocks[rank];
            copy(room.sge().part(at, block.len()), block);
            at += block.len();
        }
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
        return link.send_as_each(root, room.sge()).await;
    }
    if link.rank != root {
        return link.send_as_each(root, mine).await;
    }
    let mut rooms = Vec::new();
    let mut receives = Vec::new();
    for (n, ranks) in layout.groups.iter().enumerate() {
        if n == home {
            let others = ranks.iter().filter(|&&rank| rank != root);
            receives.extend(others.map(|&rank| link.irecv(rank, blocks[rank])));
            continue;
        }
        let room = GroupRoom::new(link, ranks, blocks);
        receives.push(link.irecv(ranks[0], room.whole()));
        rooms.push((room, ranks));
    }
    local_ops::copy(link, mine, blocks[root]);
    link.wait_all(receives).await?;
    for (room, ranks) in &rooms {
        room.each_apart(ranks, blocks, |part, block| local_ops::copy(link, part, block));
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
        link.recv_as_each(root, room.sge()).await?;
        let parts: Vec<Sge> =
            (0..here).map(|i| room.sge().part(i * mine.len(), mine.len())).collect();
        return hierarchy.group.scatterv(link, &parts, mine).await;
    }
    if link.rank != root {
        return link.recv_as_each(root, mine).await;
    }
    let mut rooms = Vec::new();
    let mut sends = Vec::new();
    for (n, ranks) in layout.groups.iter().enumerate() {
        if n == home {
            let others = ranks.iter().filter(|&&rank| rank != root);
            sends.extend(others.filter_map(|&rank| link.isend_to_each(rank, blocks[rank])));
            continue;
        }
        let room = GroupRoom::new(link, ranks, blocks);
        room.each_apart(ranks, blocks, |part, block| local_ops::copy(link, block, part));
        sends.extend(link.isend_to_each(ranks[0], room.whole()));
        rooms.push(room);
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
    let mine = blocks[link.rank];
    let all = ByGroup::new(link, layout, blocks);
    let (group, place) = layout.places[link.rank];
    let here: Vec<Sge> = layout.groups[group].iter().map(|&rank| all.ranks[rank]).collect();
    hierarchy.group.gatherv(link, mine, if place == 0 { &here } else { &[] }).await?;
    if let Some(leaders) = &hierarchy.leaders {
        leaders.allgather(link, &all.groups).await?;
    }
    hierarchy.group.bcast(link, 0, all.whole).await?;
    all.each_apart(blocks, |part, block| local_ops::copy(link, part, block));
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
    // The blocks that this rank sends and receives, group by group.
    let sends = ByGroup::new(link, layout, out);
    sends.each_apart(out, |part, block| local_ops::copy(link, block, part));
    let comes = ByGroup::new(link, layout, into);
    let (group, place) = layout.places[link.rank];
    let (here, all) = (layout.groups[group].len(), link.size() * len);
    if let (Some(leaders), 0) = (&hierarchy.leaders, place) {
        let (gathered, scattered) = (
            local_ops::stage(link, out[0], here * all),
            local_ops::stage(link, out[0], here * all),
        );
        let rows = |room: &Staging| -> Vec<Sge> {
            (0..here).map(|i| room.sge().part(i * all, all)).collect()
        };
        let (out_rows, in_rows) = (rows(&gathered), rows(&scattered));
        hierarchy.group.gather(link, sends.whole, &out_rows).await?;
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
        hierarchy.group.scatterv(link, &in_rows, comes.whole).await?;
    } else {
        hierarchy.group.gather(link, sends.whole, &[]).await?;
        hierarchy.group.scatterv(link, &[], comes.whole).await?;
    }
    comes.each_apart(into, |part, block| local_ops::copy(link, part, block));
    Ok(())
}
