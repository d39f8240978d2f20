//! Calls of collectives by this rank.

use super::messages::capital;
use super::{Outcome, PendingRequest, PhaseRun};
use crate::buffer::Piece;
use crate::mpi::{self, Array, CountWidth};
use crate::program::{CallForm, CollectiveFunction, CollectiveItem};
use crate::reduce::Operator;
use crate::user_ops;

impl PhaseRun<'_, '_> {
    pub(super) fn collective(&mut self, item: usize, c: &CollectiveItem, rank: usize) -> Outcome {
        if let Some(request) = self.live[item].persistent[0] {
            return self.start_sometime(item, request);
        }
        let width = c.width[rank];
        let mut args = self.arguments(item, c, rank)?;
        args.push(self.comms[c.comm]);
        let name = c.kind.name();
        match c.form {
            CallForm::Blocking => self.mpi().call_c(&capital(name), width, &args),
            CallForm::Immediate => {
                let request = self.mpi().make_c(&capital(&format!("i{name}")), width, &args)?;
                self.pending.push(PendingRequest { request, item, receives: false });
                Ok(())
            }
            CallForm::Persistent => {
                args.push(mpi::INFO_NULL);
                let name = capital(&format!("{name}_init"));
                let request = self.mpi().make_c(&name, width, &args)?;
                self.live[item].persistent[0] = Some(request);
                self.start_sometime(item, request)
            }
        }
    }

    /// Starts a persistent collective now or after all items: each rank may have its own order.
    fn start_sometime(&mut self, item: usize, request: usize) -> Outcome {
        if self.rng.bool() {
            return self.start(PendingRequest { request, item, receives: false });
        }
        self.deferred.push((item, request));
        Ok(())
    }

    /// Returns all arguments before the communicator.
    fn arguments(&mut self, item: usize, c: &CollectiveItem, rank: usize) -> Outcome<Vec<usize>> {
        use CollectiveFunction::*;
        let (send, recv) = (&c.send[rank], &c.recv[rank]);
        let in_place = c.in_place_at(rank);
        let live = &mut self.live[item];
        let address = |buffer: &mut Option<crate::buffer::GuardedBuffer>| {
            buffer.as_mut().map_or(0, |b| b.address())
        };
        let (mut from, mut to) = (address(&mut live.send), address(&mut live.recv));
        if in_place {
            let scatters = matches!(c.kind, Scatter | Scatterv);
            *if scatters { &mut to } else { &mut from } = mpi::IN_PLACE;
        }
        let width = c.width[rank];
        let root = self.root(c, rank);
        Ok(match c.kind {
            Barrier => Vec::new(),
            Bcast => {
                let [count, ty] = self.single(recv)?;
                vec![to, count, ty, root]
            }
            Gather | Scatter | Allgather | Alltoall | NeighborAllgather | NeighborAlltoall => {
                let (send, recv) = (self.single(send)?, self.single(recv)?);
                let mut args = vec![from, send[0], send[1], to, recv[0], recv[1]];
                if c.kind.rooted() {
                    args.push(root);
                }
                args
            }
            Gatherv | Allgatherv | NeighborAllgatherv => {
                let [count, ty] = self.single(send)?;
                let mut args = vec![from, count, ty, to];
                args.extend(self.several(item, recv, width)?);
                if c.kind.rooted() {
                    args.push(root);
                }
                args
            }
            Scatterv => {
                let mut args = vec![from];
                args.extend(self.several(item, send, width)?);
                let [count, ty] = self.single(recv)?;
                args.extend([to, count, ty, root]);
                args
            }
            Alltoallv | NeighborAlltoallv => {
                let mut args = vec![from];
                args.extend(self.several(item, send, width)?);
                args.push(to);
                args.extend(self.several(item, recv, width)?);
                args
            }
            Alltoallw | NeighborAlltoallw => {
                let mut args = vec![from];
                args.extend(self.typed(item, c.kind, send, width)?);
                args.push(to);
                args.extend(self.typed(item, c.kind, recv, width)?);
                args
            }
            Reduce | Allreduce | Scan | Exscan | ReduceScatterBlock | ReduceScatter => {
                let [count, ty, op] = self.reduction(item, c, rank)?;
                let mut args = vec![from, to, count, ty, op];
                if c.kind.rooted() {
                    args.push(root);
                }
                args
            }
        })
    }

    /// Returns the argument `root`, which is MPI_ROOT or MPI_PROC_NULL in the root's group of an intercommunicator.
    fn root(&self, c: &CollectiveItem, rank: usize) -> usize {
        let comm = &self.program.comms[c.comm];
        match comm.first {
            Some(_) if rank == c.root => mpi::ROOT as usize,
            Some(_) if comm.group(rank) == comm.group(c.root) => mpi::PROC_NULL as usize,
            _ => comm.rank_of(c.root),
        }
    }

    /// Returns the count, or the list of counts, and the datatype and operator of a reduction.
    fn reduction(&mut self, item: usize, c: &CollectiveItem, rank: usize) -> Outcome<[usize; 3]> {
        let (send, recv) = (&c.send[rank], &c.recv[rank]);
        let received = send.is_empty() || c.kind == CollectiveFunction::ReduceScatterBlock;
        let [count, ty] = self.single(if received { recv } else { send })?;
        let op = self.operator(c)?;
        if c.kind != CollectiveFunction::ReduceScatter {
            return Ok([count, ty, op]);
        }
        let group = self.program.comms[c.comm].group(rank);
        let shares: Vec<i64> = match send.is_empty() {
            true => recv.iter().map(|p| p.count).collect(),
            false => group.map(|s| c.recv[s][0].count).collect(),
        };
        let counts = Array::new(c.width[rank], shares);
        let list = counts.address();
        self.live[item].arrays.push(counts);
        Ok([list, ty, op])
    }

    /// Returns count and datatype of the first piece. If they are not significant, they are zero and some datatype.
    fn single(&mut self, pieces: &[Piece]) -> Outcome<[usize; 2]> {
        match pieces.first() {
            Some(piece) => Ok([piece.count as usize, self.datatype(&piece.ty)?]),
            None => Ok([0, mpi::PACKED]),
        }
    }

    /// Returns counts, displacements in extents, and their common datatype.
    fn several(&mut self, item: usize, pieces: &[Piece], width: CountWidth) -> Outcome<[usize; 3]> {
        let [_, ty] = self.single(pieces)?;
        let counts = Array::new(width, pieces.iter().map(|p| p.count));
        let places = Array::new(width, pieces.iter().map(|p| p.at / p.ty.extent()));
        let list = [counts.address(), places.address(), ty];
        self.live[item].arrays.extend([counts, places]);
        Ok(list)
    }

    /// Returns counts, displacements in bytes, and a datatype for each piece.
    fn typed(
        &mut self,
        item: usize,
        kind: CollectiveFunction,
        pieces: &[Piece],
        width: CountWidth,
    ) -> Outcome<[usize; 3]> {
        let counts = Array::new(width, pieces.iter().map(|p| p.count));
        // Displacements of neighborhood collectives are MPI_Aint in both forms.
        let places = Array::new(
            if kind.neighbors() { CountWidth::Large } else { width },
            pieces.iter().map(|p| p.at),
        );
        let types: Box<[usize]> =
            pieces.iter().map(|p| self.datatype(&p.ty)).collect::<Result<_, _>>()?;
        let list = [counts.address(), places.address(), types.as_ptr() as usize];
        self.live[item].arrays.extend([counts, places]);
        self.live[item].handles.push(types);
        Ok(list)
    }

    fn operator(&mut self, c: &CollectiveItem) -> Outcome<usize> {
        let Some((op, _)) = c.op else { return Err("no operator".to_owned()) };
        match op {
            Operator::Predefined(op) => Ok(op.handle()),
            Operator::User(user, spacing) => {
                let width = CountWidth::any(&mut self.rng);
                if let Some(handle) = self.session.operators.get(&(user, spacing, width)) {
                    return Ok(*handle);
                }
                let handle = user_ops::create(self.session.mpi, user, spacing, width)?;
                self.session.operators.insert((user, spacing, width), handle);
                Ok(handle)
            }
        }
    }
}
