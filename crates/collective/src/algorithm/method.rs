//! Methods of algorithms. [`crate::run`] runs an algorithm by its method and carrier.

/// Method of an algorithm. Several carriers may carry the same method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// An allgather whose result only the root keeps. The map selects the algorithm of the allgather.
    Allgather,
    /// Segments that go down a complete binary tree.
    Binary,
    /// A binomial tree in which whole payloads go up or down.
    Binomial,
    /// Runs of blocks that double in each round, or blocks that travel one digit of their distance in each round.
    Bruck,
    /// A counter at rank 0. The last rank to arrive does the work of the operation and releases the others.
    Central,
    /// A chain from rank to rank, in segments if there is a parameter for them.
    Chain,
    /// The edges of a circulant graph ([`crate::circulant`]), with the fewest rounds.
    Circulant,
    /// Messages from all ranks to ranks at growing distances, in ceil(log N) rounds for any N.
    Dissemination,
    /// Fetch-and-adds of the adapters up a tree, and writes of the ranks down the tree.
    FetchAdd,
    /// Direct transfers between the root and each other rank, all at once.
    Flat,
    /// Blocks or operands that go to rank 0, and a result that goes from there to all ranks.
    GatherBroadcast,
    /// A gather up a tree, then a multicast by one rank or by every rank.
    GatherMulticast,
    /// A gather and a multicast. Each rank acknowledges the multicast to the root, which waits for all acknowledgements.
    GatherMulticastAcknowledged,
    /// Exchanges in which partners halve the data that they still have.
    Halving,
    /// A binomial tree or exchange, widened to k - 1 messages in each round.
    KNomial,
    /// Copies into buffers by all ranks. The last rank to arrive combines the buffers.
    Last,
    /// Segments along the tree of caches, NUMA domains and sockets.
    LevelPipeline,
    /// Slices that the ranks of a cache, NUMA domain or socket combine, then the ranks with the same slice, each step with its own
    /// algorithm.
    LevelSlices,
    /// Steps within caches, NUMA domains and sockets and between their leaders, each with its own algorithm.
    Levels,
    /// Lines of one rank, in which all ranks put data down, and a line of each rank for the result.
    Lines,
    /// A message to each other rank, with a maximum number of messages under way at once.
    Linear,
    /// A dissemination to k - 1 ranks in each round.
    NWay,
    /// Exchanges of two blocks per round, with the lower and the higher neighbour alternately.
    Neighbors,
    /// Two ranks that copy data in and combine them part by part.
    Pair,
    /// One partner in each of N - 1 rounds.
    Pairwise,
    /// Exchanges of all data between partners at distances of powers of two. Ranks beyond a power of two are folded first.
    PairwiseExchange,
    /// A reduction by halving, then a gather by doubling: about twice the payload through every port.
    Rabenseifner,
    /// Reads by each rank of the data that it needs from the other ranks' memory.
    Read,
    /// Reads by each rank of one slice from the other ranks' memory. The rank combines the slice, and copies the sum into a buffer
    /// for all ranks.
    ReadStaged,
    /// Reads of all other ranks' memory by each rank that wants the result. Each such rank combines all data by itself.
    ReadWhole,
    /// Exchanges of all data that the partners have, at distances that double.
    RecursiveDoubling,
    /// A reduction and a broadcast, each selected by the map.
    ReduceBroadcast,
    /// A reduction of the whole data to rank 0, which then sends each rank its block.
    ReduceScatterv,
    /// Blocks or sums that travel from neighbour to neighbour, in N - 1 rounds per turn.
    Ring,
    /// A scatter of the root's payload in blocks, and an allgather round a ring.
    ScatterAllgather,
    /// A scatter of the root's payload in blocks, and an allgather in runs that double.
    ScatterDoubling,
    /// Copies into buffers by all ranks. Then each rank works on one slice of all data.
    Slices,
    /// Half of the payload down each side of a binary tree, then exchanges of the halves in pairs.
    SplitBinary,
    /// Copies into buffers part by part; each rank reads the data that it needs from the buffers.
    Staged,
    /// Parts that go through a ring of buffers in shared memory, which is filled while it is read.
    StagingRing,
    /// Writes of two ranks into each other's slots, with payload and notification in the same write.
    Swap,
    /// Halving and doubling, with partners that are near each other on a ring.
    Swing,
    /// Steps within nodes and between their leaders, each with its own algorithm.
    TwoLevel,
}

impl Method {
    /// Returns true if the steps of the algorithm are operations within the caches, NUMA domains and sockets of a node, and between
    /// ranks of all of them.
    pub fn is_composition_of_node(self) -> bool {
        matches!(self, Method::Levels | Method::LevelSlices)
    }
}
