//! Making communicators, and asking the library whether they are as they should be.

use super::{Outcome, Session};
use crate::mpi;
use crate::program::{How, Make, Program};

impl Session<'_> {
    pub(super) fn make(
        &mut self,
        program: &Program,
        make: &Make,
        handles: &mut [usize],
    ) -> Outcome {
        let parent = &program.comms[make.parent];
        let Some(rank) = parent.rank(self.me) else { return Ok(()) };
        let from = handles[make.parent];
        let lib = self.mpi;
        let handle = match &make.how {
            How::Dup => lib.make("MPI_Comm_dup", false, &[from])?,
            How::DupWithInfo => {
                lib.make("MPI_Comm_dup_with_info", false, &[from, mpi::INFO_NULL])?
            }
            How::Idup => {
                let (mut made, mut request) = (0usize, mpi::REQUEST_NULL);
                let made_at = std::ptr::from_mut(&mut made) as usize;
                let request_at = std::ptr::from_mut(&mut request) as usize;
                lib.call("MPI_Comm_idup", &[from, made_at, request_at])?;
                lib.call("MPI_Wait", &[request_at, 0])?;
                std::hint::black_box(made)
            }
            How::Split(all) => {
                let (color, key) = all[rank];
                let color = color.unwrap_or(mpi::UNDEFINED);
                lib.make("MPI_Comm_split", false, &[from, color as usize, key as usize])?
            }
            How::Create(ranks) | How::CreateGroup(ranks, _) => {
                let tag = match make.how {
                    How::CreateGroup(_, tag) if ranks.contains(&rank) => Some(tag),
                    How::CreateGroup(..) => return Ok(()),
                    _ => None,
                };
                let whole = lib.make("MPI_Comm_group", false, &[from])?;
                let list = mpi::Array::new(false, ranks.iter().map(|r| *r as i64));
                let group = [whole, ranks.len(), list.address()];
                let group = lib.make("MPI_Group_incl", false, &group)?;
                let made = match tag {
                    Some(tag) => {
                        lib.make("MPI_Comm_create_group", false, &[from, group, tag as usize])?
                    }
                    None => lib.make("MPI_Comm_create", false, &[from, group])?,
                };
                lib.free("MPI_Group_free", group)?;
                lib.free("MPI_Group_free", whole)?;
                made
            }
        };
        let mine = make.made.iter().find(|id| program.comms[**id].rank(self.me).is_some());
        match mine {
            Some(id) => {
                handles[*id] = handle;
                self.agree(program, *id, handle)
            }
            None if handle == mpi::COMM_NULL => Ok(()),
            None => Err(format!("a communicator, not MPI_COMM_NULL, from {:?}", make.how)),
        }
    }

    /// Compares rank, size and members with ours.
    fn agree(&self, program: &Program, id: usize, handle: usize) -> Outcome {
        let lib = self.mpi;
        if handle == mpi::COMM_NULL {
            return Err(format!("MPI_COMM_NULL for comm {id}, of which this rank is a member"));
        }
        let members = &program.comms[id].members;
        let rank = lib.int("MPI_Comm_rank", &[handle])?;
        let size = lib.int("MPI_Comm_size", &[handle])?;
        let world = lib.make("MPI_Comm_group", false, &[mpi::COMM_WORLD])?;
        let group = lib.make("MPI_Comm_group", false, &[handle])?;
        let ranks: Vec<i32> = (0..members.len() as i32).collect();
        let mut found = vec![-1i32; members.len()];
        let (list, out) = (ranks.as_ptr() as usize, found.as_mut_ptr() as usize);
        lib.call("MPI_Group_translate_ranks", &[group, ranks.len(), list, world, out])?;
        lib.free("MPI_Group_free", world)?;
        lib.free("MPI_Group_free", group)?;
        let same = found.iter().map(|r| *r as usize).eq(members.iter().copied());
        let mine = program.comms[id].rank(self.me);
        if same && mine == Some(rank as usize) && size as usize == members.len() {
            return Ok(());
        }
        Err(format!(
            "comm {id}: the library says rank {rank} of {size}, world ranks {found:?}; expected \
             rank {mine:?} of world ranks {members:?}"
        ))
    }
}
