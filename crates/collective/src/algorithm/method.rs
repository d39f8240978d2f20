//! The methods of algorithms, by which they are run.

/// What an algorithm does; the same method may be carried in several ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// An allgather as the map chooses, of which only the root keeps the result.
    Allgather,
    /// Segments go down a complete binary tree.
    Binary,
    /// A binomial tree, in which whole payloads go up or down.
    Binomial,
    /// Runs of blocks that double in each round, or blocks that travel by the digits of their way.
    Bruck,
    /// A counter at rank 0, where the last rank to come does what is to be done and lets the others
    /// go.
    Central,
    /// From rank to rank, in segments where there is a parameter for them.
    Chain,
    /// Along the edges of a circulant graph ([`crate::circulant`]), in the fewest rounds.
    Circulant,
    /// Everybody sends to ranks at growing distances, in ceil(log N) rounds for any N.
    Dissemination,
    /// Adapters add to counters up a tree, and ranks write down it.
    FetchAdd,
    /// The root with each other rank, all at once and without ranks between.
    Flat,
    /// Blocks or operands to rank 0, then the result from there to all.
    GatherBroadcast,
    /// What there is to gather goes up a tree; then one rank, or each, multicasts.
    GatherMulticast,
    /// The same, and each rank acknowledges the multicast to its root, which waits for all.
    GatherMulticastAcknowledged,
    /// Partners exchange halves of what they still have.
    Halving,
    /// A binomial tree or exchange that is widened: k - 1 messages in each round.
    KNomial,
    /// All copy in, and the last rank to come combines everything.
    Last,
    /// A message to each other rank, up to so many under way at once.
    Linear,
    /// Dissemination to k - 1 ranks in each round.
    NWay,
    /// Two blocks a round, with the lower and the higher neighbour in turn.
    Neighbors,
    /// Two ranks: data are copied in and combined part by part.
    Pair,
    /// One partner in each round, N - 1 rounds.
    Pairwise,
    /// Partners at distances of powers of two exchange all; ranks beyond a power of two are folded
    /// first.
    PairwiseExchange,
    /// Reduced by halves, then gathered by doubling: about twice the payload through every port.
    Rabenseifner,
    /// Each rank reads what it needs from the others' own memory.
    Read,
    /// Each rank combines a slice of the others' own memory, and copies the sum in for all to read.
    ReadStaged,
    /// Who wants the result reads all of the others' own memory, and combines it alone.
    ReadWhole,
    /// Partners exchange all they have, at distances that double.
    RecursiveDoubling,
    /// A reduction and a broadcast, each as the map chooses.
    ReduceBroadcast,
    /// Reduced whole to rank 0, which then hands each rank its block.
    ReduceScatterv,
    /// Blocks or sums travel from neighbour to neighbour, N - 1 rounds for a turn.
    Ring,
    /// The root scatters its payload in blocks, and all gather them round a ring.
    ScatterAllgather,
    /// The root scatters its payload in blocks, and all gather them in runs that double.
    ScatterDoubling,
    /// All copy in, and each rank works on one slice of everybody's data.
    Slices,
    /// One half of the payload down each side of a binary tree; then pairs exchange halves.
    SplitBinary,
    /// All copy in part by part, and each rank reads what it needs from the buffers.
    Staged,
    /// Parts go through a ring of buffers in shared memory, which is filled while it is read.
    StagingRing,
    /// Each of two ranks writes into the other's slot, payload and news of it at once.
    Swap,
    /// Reduced by halves and gathered by doubling, at distances that keep to a ring's short ways.
    Swing,
    /// Steps within nodes and between their leaders, each by an algorithm of its own.
    TwoLevel,
}
