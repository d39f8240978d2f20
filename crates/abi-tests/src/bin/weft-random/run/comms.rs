//! Construction of communicators, and checks that the library describes them as expected.

use super::{Outcome, RankSession};
use crate::comm::CommId;
use crate::mpi::{self, Array, Mpi};
use crate::program::{CommCreation, How, RandomProgram};

impl RankSession<'_> {
    pub(super) fn make(
        &mut self,
        program: &RandomProgram,
        make: &CommCreation,
        handles: &mut [usize],
    ) -> Outcome {
        let Some(seat) = program.comms[make.parent].seat(self.me) else { return Ok(()) };
        let result = self.made(program, make, seat, handles);
        let mine = make.made.iter().find(|id| program.comms[**id].seat(self.me).is_some());
        match (result.map_err(|e| format!("{e}\n  {:?}", make.how))?, mine) {
            (Some(handle), Some(id)) => {
                handles[*id] = handle;
                self.agree(program, *id, handle)
            }
            (None | Some(mpi::COMM_NULL), None) => Ok(()),
            _ => Err(format!("a communicator, not MPI_COMM_NULL, from {:?}", make.how)),
        }
    }

    /// Makes the new communicator. Returns `None` if this rank has no part in the call.
    fn made(
        &self,
        program: &RandomProgram,
        make: &CommCreation,
        seat: usize,
        handles: &[usize],
    ) -> Outcome<Option<usize>> {
        let lib = self.mpi;
        let parent = &program.comms[make.parent];
        let from = handles[make.parent];
        let made = match &make.how {
            How::Dup => lib.make("MPI_Comm_dup", &[from])?,
            How::DupWithInfo => lib.make("MPI_Comm_dup_with_info", &[from, mpi::INFO_NULL])?,
            How::Idup => idup(lib, from)?,
            How::Split(all) => {
                let (color, key) = all[seat];
                let color = color.unwrap_or(mpi::UNDEFINED);
                lib.make("MPI_Comm_split", &[from, color as usize, key as usize])?
            }
            How::Create(groups) => {
                let mine = groups.iter().find(|g| g.contains(&seat));
                with_group(lib, from, mine, |group| lib.make("MPI_Comm_create", &[from, group]))?
            }
            How::CreateGroup(groups, tag) => {
                let mine = groups.iter().find(|g| g.contains(&seat));
                if mine.is_none() {
                    return Ok(None);
                }
                with_group(lib, from, mine, |group| {
                    lib.make("MPI_Comm_create_group", &[from, group, *tag as usize])
                })?
            }
            How::FromGroup(ranks, name) => {
                if !ranks.contains(&seat) {
                    return Ok(None);
                }
                with_group(lib, from, Some(ranks), |group| {
                    let name = text(name);
                    let args = [group, name.as_ptr() as usize, mpi::INFO_NULL, mpi::ERRORS_RETURN];
                    lib.make("MPI_Comm_create_from_group", &args)
                })?
            }
            How::FromGroups { sides, leaders, name } => {
                let mine = sides.iter().position(|side| side.contains(&seat));
                let Some(mine) = mine else { return Ok(None) };
                // Only a leader must know the other group.
                let leads = sides[mine][leaders[mine]] == seat;
                let groups = [Some(&sides[mine]), leads.then_some(&sides[1 - mine])];
                let leaders = [leaders[mine], leaders[1 - mine]];
                from_groups(lib, from, groups, leaders, name)?
            }
            How::Cart { dims, periodic } => {
                let sizes = Array::ints(dims.iter().map(|d| *d as i64));
                let around = Array::ints(periodic.iter().map(|p| i64::from(*p)));
                let args = [from, dims.len(), sizes.address(), around.address(), 0];
                lib.make("MPI_Cart_create", &args)?
            }
            How::Graph | How::DistGraph => self.graph(program, make, seat, from)?,
            How::Intercomm { sides, leaders, tag } => {
                let side = |id: &CommId| program.comms[*id].seat(self.me).is_some();
                let Some(mine) = sides.iter().position(side) else { return Ok(None) };
                let other = &program.comms[sides[1 - mine]];
                let leader = other.members[leaders[1 - mine]];
                let local = handles[sides[mine]];
                let args = [local, leaders[mine], from, leader, *tag as usize];
                lib.make("MPI_Intercomm_create", &args)?
            }
            How::Merge { swapped } => {
                let second = parent.group(seat).start > 0;
                let high = usize::from(second != *swapped);
                lib.make("MPI_Intercomm_merge", &[from, high])?
            }
        };
        Ok(Some(made))
    }

    fn graph(
        &self,
        program: &RandomProgram,
        make: &CommCreation,
        seat: usize,
        from: usize,
    ) -> Outcome<usize> {
        let topology = program.comms[make.made[0]].topology.as_ref();
        let topology = topology.ok_or("a graph without a topology")?;
        let list = |seats: &[Option<usize>]| Array::ints(seats.iter().flatten().map(|s| *s as i64));
        if matches!(make.how, How::DistGraph) {
            let (sources, destinations) = (&topology.sources[seat], &topology.destinations[seat]);
            let (from_list, to_list) = (list(sources), list(destinations));
            let (a, b) = (from_list.address(), to_list.address());
            let args = [
                from,
                sources.len(),
                a,
                mpi::UNWEIGHTED,
                destinations.len(),
                b,
                mpi::UNWEIGHTED,
                mpi::INFO_NULL,
                0,
            ];
            return self.mpi.make("MPI_Dist_graph_create_adjacent", &args);
        }
        let ends = topology.sources.iter().scan(0, |end, edges| {
            *end += edges.len() as i64;
            Some(*end)
        });
        let ends = Array::ints(ends);
        let edges = list(&topology.sources.concat());
        let nodes = topology.sources.len();
        self.mpi.make("MPI_Graph_create", &[from, nodes, ends.address(), edges.address(), 0])
    }

    /// Compares rank, size and members with the expected values.
    fn agree(&self, program: &RandomProgram, id: CommId, handle: usize) -> Outcome {
        let lib = self.mpi;
        if handle == mpi::COMM_NULL {
            return Err(format!("MPI_COMM_NULL for comm {id}, of which this rank is a member"));
        }
        let comm = &program.comms[id];
        let seat = comm.seat(self.me).ok_or("agree() is for members")?;
        let rank = lib.int("MPI_Comm_rank", &[handle])?;
        let group = self.members("MPI_Comm_group", "MPI_Comm_size", handle)?;
        let expected = |seats: std::ops::Range<usize>| comm.members[seats].to_vec();
        let mut found = vec![(group, expected(comm.group(seat)))];
        if comm.first.is_some() {
            let remote = self.members("MPI_Comm_remote_group", "MPI_Comm_remote_size", handle)?;
            found.push((remote, expected(comm.others(seat))));
        }
        if rank as usize == comm.rank_of(seat) && found.iter().all(|(a, b)| a == b) {
            return Ok(());
        }
        Err(format!(
            "comm {id}: the library says rank {rank}, expected {}; world ranks (found, expected): \
             {found:?}",
            comm.rank_of(seat)
        ))
    }

    /// Returns the world ranks of a communicator's group.
    fn members(&self, group: &str, size: &str, handle: usize) -> Outcome<Vec<usize>> {
        let lib = self.mpi;
        let n = lib.int(size, &[handle])? as usize;
        let world = lib.make("MPI_Comm_group", &[mpi::COMM_WORLD])?;
        let group = lib.make(group, &[handle])?;
        let held = lib.int("MPI_Group_size", &[group])?;
        if held as usize != n {
            return Err(format!("{size} gives {n}, but the group has {held} members"));
        }
        let ranks: Vec<i32> = (0..n as i32).collect();
        let mut found = vec![-1i32; n];
        let (list, out) = (ranks.as_ptr() as usize, found.as_mut_ptr() as usize);
        lib.call("MPI_Group_translate_ranks", &[group, n, list, world, out])?;
        lib.free("MPI_Group_free", world)?;
        lib.free("MPI_Group_free", group)?;
        Ok(found.into_iter().map(|r| r as usize).collect())
    }
}

/// Makes a C string.
fn text(name: &str) -> Vec<u8> {
    [name.as_bytes(), &[0]].concat()
}

fn idup(lib: &Mpi, from: usize) -> Outcome<usize> {
    let (mut made, mut request) = (0usize, mpi::REQUEST_NULL);
    let made_at = std::ptr::from_mut(&mut made) as usize;
    let request_at = std::ptr::from_mut(&mut request) as usize;
    lib.call("MPI_Comm_idup", &[from, made_at, request_at])?;
    lib.call("MPI_Wait", &[request_at, 0])?;
    Ok(std::hint::black_box(made))
}

/// Makes an intercommunicator from the local group and the remote group, with their leaders.
fn from_groups(
    lib: &Mpi,
    from: usize,
    groups: [Option<&Vec<usize>>; 2],
    [a, b]: [usize; 2],
    name: &str,
) -> Outcome<usize> {
    with_group(lib, from, groups[0], |local| {
        with_group(lib, from, groups[1], |remote| {
            let name = text(name);
            let name = name.as_ptr() as usize;
            let args = [local, a, remote, b, name, mpi::INFO_NULL, mpi::ERRORS_RETURN];
            lib.make("MPI_Intercomm_create_from_groups", &args)
        })
    })
}

/// Calls `call` with a group of these ranks of a communicator, or with the empty group.
fn with_group(
    lib: &Mpi,
    comm: usize,
    ranks: Option<&Vec<usize>>,
    call: impl Fn(usize) -> Outcome<usize>,
) -> Outcome<usize> {
    let Some(ranks) = ranks else { return call(mpi::GROUP_EMPTY) };
    let whole = lib.make("MPI_Comm_group", &[comm])?;
    let list = Array::ints(ranks.iter().map(|r| *r as i64));
    let group = lib.make("MPI_Group_incl", &[whole, ranks.len(), list.address()])?;
    let made = call(group)?;
    lib.free("MPI_Group_free", group)?;
    lib.free("MPI_Group_free", whole)?;
    Ok(made)
}
