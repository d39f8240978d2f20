//! Data access (MPI 5.0, section 14.4): positioning, synchronism and coordination.

use super::File;
use crate::access_direction::AccessDirection;
use crate::access_policy::Synchronism;
use crate::failure::class;
use crate::file_access::{AccessData, FileAccess, check_direction};
use crate::storage::move_piece;
use crate::thread_pool::RunOn;
use crate::two_phase::{self, CollectiveAccess};
use std::rc::Rc;
use weft_fabric::{Fabric, Sge};
use weft_process::{Comm, Error, WaitHooks};

/// Start of an access, in elementary types of the view (MPI 5.0, section 14.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Positioning {
    /// At an explicit offset.
    Explicit(i64),
    /// At the individual pointer, which is moved past the data.
    Individual,
    /// At the shared pointer, in the order in which ranks arrive. In a collective access, in the order of ranks.
    Shared,
}

/// Direction and start of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessSpec {
    /// Direction of the data.
    pub direction: AccessDirection,
    /// Start of the access.
    pub positioning: Positioning,
}

impl AccessSpec {
    /// Describes a read.
    #[inline]
    pub fn read(positioning: Positioning) -> AccessSpec {
        AccessSpec { direction: AccessDirection::Read, positioning }
    }

    /// Describes a write.
    #[inline]
    pub fn write(positioning: Positioning) -> AccessSpec {
        AccessSpec { direction: AccessDirection::Write, positioning }
    }
}

impl<F: Fabric> File<F> {
    /// Checks an access before its start is known. Errors: ACCESS, READ_ONLY; IO if the data are not a whole number of elementary
    /// types.
    fn check_access(
        &self,
        direction: AccessDirection,
        data: AccessData,
    ) -> Result<FileAccess, Error> {
        check_direction(&self.open, direction)?;
        let view = self.stream();
        let len = match &data.convert {
            None => data.buffer.len() as u64,
            Some(convert) => convert.len(&data.buffer)?,
        };
        let etype_size = view.etype_size();
        if !len.is_multiple_of(etype_size) {
            let text = format!(
                "the data have {len} bytes in the file, which is not a multiple of the etype's {etype_size} bytes"
            );
            return Err(Error::new(class::IO, text));
        }
        Ok(FileAccess { direction, data, view, from: 0, len })
    }

    /// Places an access at an offset in elementary types.
    fn place_at(&self, mut access: FileAccess, offset: i64) -> Result<FileAccess, Error> {
        access.from = self.stream_offset(offset)?;
        access.view.check_range(access.from, access.len)?;
        Ok(access)
    }

    /// Moves the individual pointer by `length`. Returns its former value.
    fn advance_individual(&self, length: i64) -> i64 {
        let at = self.position.get();
        self.position.set(at + length as u64);
        at as i64
    }

    /// Places an independent access at the shared pointer, which has moved when this function returns.
    pub async fn independent_shared(
        &self,
        direction: AccessDirection,
        data: AccessData,
    ) -> Result<FileAccess, Error> {
        let access = self.check_access(direction, data)?;
        let offset = self.pointer.add(access.elements()).await?;
        self.place_at(access, offset)
    }

    /// Places an independent access at an offset or at the individual pointer, which has moved when this function returns. Returns
    /// `None` for the shared pointer: see [`File::independent_shared`].
    pub fn independent(
        &self,
        spec: AccessSpec,
        data: &AccessData,
    ) -> Option<Result<FileAccess, Error>> {
        if spec.positioning == Positioning::Shared {
            return None;
        }
        let placed = || {
            self.not_sequential()?;
            let access = self.check_access(spec.direction, data.clone())?;
            let offset = match spec.positioning {
                Positioning::Explicit(offset) => offset,
                _ => self.advance_individual(access.elements()),
            };
            self.place_at(access, offset)
        };
        Some(placed())
    }

    /// Carries out the most common independent access by one system call: bytes without conversion, between contiguous memory
    /// and a contiguous part of the file. Returns `None` and does nothing for any other access, and for wrong arguments, which
    /// [`File::independent`] reports.
    #[inline]
    pub fn fast_path(
        &self,
        spec: AccessSpec,
        data: Sge,
        hooks: &dyn WaitHooks,
    ) -> Option<Result<u64, Error>> {
        let open = &*self.open;
        let contiguous =
            open.contiguous_views.get() && !open.atomic.is_enabled() && !open.amode.is_sequential();
        if !open.amode.allows(spec.direction) || !contiguous || data.is_empty() {
            return None;
        }
        let individual = self.position.get();
        let (at, elements) = {
            let arguments = self.view.borrow();
            let offset = match spec.positioning {
                Positioning::Explicit(offset) => u64::try_from(offset).ok()?,
                Positioning::Individual => individual,
                Positioning::Shared => return None,
            };
            if arguments.representation.sizes.is_some() {
                return None;
            }
            arguments.stream.contiguous_range(offset, data.len() as u64)?
        };
        if spec.positioning == Positioning::Individual {
            self.position.set(individual + elements);
        }
        let mut outcome = Ok(0);
        hooks.unlocked(&mut || {
            outcome = move_piece(&*open.storage, spec.direction, at, data.into());
        });
        open.let_time_pass();
        Some(outcome.map_err(|failure| open.error(&failure)))
    }

    /// Reports whether a contiguous access of `bytes` takes less time than a handover to another thread.
    #[inline]
    pub fn is_short(&self, direction: AccessDirection, bytes: u64) -> bool {
        let cost = self.open.costs.separate_cost(direction, 1, bytes);
        self.open.run_on(cost, Synchronism::Nonblocking) == RunOn::Caller
    }

    /// Reports whether each rank carries out a collective access of this direction and positioning independently.
    pub fn is_collective_independent(&self, spec: AccessSpec) -> bool {
        spec.positioning != Positioning::Shared
            && self.open.is_collective_independent(spec.direction)
    }

    /// Reports whether accesses take the lock of atomic mode in memory. Then [`File::run_with_atomic_lock`] is called instead of
    /// [`File::run_blocking`].
    pub fn uses_atomic_lock(&self) -> bool {
        self.open.atomic.lock().is_some()
    }

    /// Carries out an independent access once the access has the lock of atomic mode.
    pub async fn run_with_atomic_lock(&self, access: &FileAccess) -> Result<u64, Error> {
        access.run(&self.open, Synchronism::Blocking).await
    }

    /// Carries out an independent access on the caller's thread. Returns the number of bytes of the program's data.
    pub fn run_blocking(&self, access: &FileAccess, hooks: &dyn WaitHooks) -> Result<u64, Error> {
        let outcome = access.run_blocking(&self.open, hooks);
        self.open.let_time_pass();
        outcome
    }

    /// Carries out an independent access in the background. Returns the number of bytes of the program's data.
    pub async fn run_background(&self, access: FileAccess) -> Result<u64, Error> {
        access.run(&self.open, Synchronism::Nonblocking).await
    }

    /// Begins a collective access, whose data are moved by the returned future. The individual pointer has moved when this function
    /// returns. All ranks must call this function in the same order.
    pub fn collective(
        self: &Rc<Self>,
        spec: AccessSpec,
        synchronism: Synchronism,
        data: AccessData,
    ) -> Result<impl Future<Output = Result<u64, Error>> + 'static, Error> {
        if spec.positioning != Positioning::Shared {
            self.not_sequential()?;
        }
        let access = self.check_access(spec.direction, data)?;
        let length = access.elements();
        let mut access = match spec.positioning {
            Positioning::Explicit(offset) => self.place_at(access, offset)?,
            Positioning::Individual => self.place_at(access, self.advance_individual(length))?,
            Positioning::Shared => access,
        };
        let number = self.open.collective.next_number();
        let comm = match synchronism {
            Synchronism::Nonblocking => self.open.comm.nonblocking_context().clone(),
            Synchronism::Blocking => self.open.comm.clone(),
        };
        let file = self.clone();
        Ok(async move {
            let open = &*file.open;
            if spec.positioning == Positioning::Shared {
                let offset = file.ordered_offset(&comm, length).await?;
                access = file.place_at(access, offset)?;
            }
            if comm.size() == 1 {
                return access.run(open, synchronism).await;
            }
            let collective = CollectiveAccess { comm: &comm, number, synchronism };
            let data = match access.contiguous_data(open.staging()) {
                Ok(data) => data,
                Err(error) => {
                    // This rank moves no data, but takes part, because the other ranks wait for its part.
                    access.len = 0;
                    let _ = two_phase::run(open, &collective, &access, Sge::EMPTY).await?;
                    return Err(error);
                }
            };
            let moved = two_phase::run(open, &collective, &access, data.sge).await?;
            access.finish(&data, moved.map_err(|failure| open.error(&failure))?)
        })
    }

    /// Returns this rank's offset in a collective access at the shared pointer, and moves the pointer by all ranks' lengths.
    async fn ordered_offset(&self, comm: &Comm<F>, length: i64) -> Result<i64, Error> {
        let lengths = weft_rma::gather(comm, [length as u64]).await?;
        let before: u64 = lengths[..comm.rank()].iter().map(|&[length]| length).sum();
        let all: u64 = lengths.iter().map(|&[length]| length).sum();
        let first = match comm.rank() {
            0 => self.pointer.add(all as i64).await?,
            _ => 0,
        };
        let firsts = weft_rma::gather(comm, [first as u64]).await?;
        Ok((firsts[0][0] + before) as i64)
    }
}
