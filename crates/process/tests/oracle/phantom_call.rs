//! Collective calls whose payload has a length but no bytes.

use std::rc::Rc;
use weft_collective::{CollectiveKind, ElementReduction, Prefix};
use weft_datatype::{Basic, Predefined};
use weft_fabric::{Fabric, Sge};
use weft_process::{Buffer, Comm, Error, Lengths, Root};

/// A commutative operator that computes nothing.
struct Nothing;

impl ElementReduction for Nothing {
    fn combine(&self, _left: Sge, _right: Sge) {}

    fn commutes(&self) -> bool {
        true
    }
}

/// Size of an element in bytes.
pub const ELEMENT: usize = 8;

/// A call of an operation with `bytes` bytes, in the measure of the operation.
#[derive(Debug, Clone, Copy)]
pub struct PhantomCall {
    pub operation: CollectiveKind,
    pub bytes: usize,
    pub root: usize,
}

impl PhantomCall {
    /// Makes the call on this rank.
    pub async fn run(self, comm: &Rc<Comm<Box<dyn Fabric>>>) -> Result<(), Error> {
        use CollectiveKind::*;
        let PhantomCall { operation, bytes, root } = self;
        let (ranks, is_root) = (comm.size(), comm.rank() == root);
        let double = Predefined::new().of(Basic::DOUBLE).clone();
        let buffer = |bytes: usize| Buffer::phantom(bytes / ELEMENT, double.clone());
        let one = || buffer(bytes);
        let all = || (0..ranks).map(|_| one()).collect::<Vec<_>>();
        let at_root = || if is_root { all() } else { Vec::new() };
        let root = Root::Rank(root);
        let op = || Rc::new(Nothing);
        let lengths = match operation {
            Gatherv | Scatterv | Alltoallv => Lengths::Varying,
            _ => Lengths::Equal,
        };
        match operation {
            Barrier => comm.barrier().await,
            Bcast => comm.bcast(one(), root).await,
            Reduce => comm.reduce(Some(one()), is_root.then(one), root, op()).await,
            Allreduce => comm.allreduce(Some(one()), one(), op()).await,
            Scan => comm.scan(Some(one()), one(), op(), Prefix::Inclusive).await,
            Exscan => comm.scan(Some(one()), one(), op(), Prefix::Exclusive).await,
            Gather | Gatherv => comm.gather(Some(one()), at_root().into(), root, lengths).await,
            Scatter | Scatterv => comm.scatter(at_root().into(), Some(one()), root, lengths).await,
            Allgather => comm.allgather(Some(one()), all().into()).await,
            Alltoall | Alltoallv => comm.alltoall(Some(all().into()), all().into(), lengths).await,
            ReduceScatter => {
                let counts = vec![bytes / ELEMENT / ranks; ranks];
                comm.reduce_scatter(one(), counts, buffer(bytes / ranks), op()).await
            }
        }
    }
}
