//! Reads and writes: where they begin, who takes part, and which pointer they move (MPI 5.0, section 14.4).

use super::File;
use crate::core::Direction;
use crate::failure::class;
use crate::operation::{Operation, may};
use crate::representation::Convert;
use crate::two_phase::{self, Way};
use std::rc::Rc;
use weft_fabric::{Fabric, Sge};
use weft_process::{Buffer, Error, WaitHooks};

/// Where an access begins, in elementary types of the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Where the program says.
    At(i64),
    /// At the individual pointer, which is moved behind the data.
    Own,
    /// At the shared pointer, in the order in which ranks come; in a collective access, in the order of ranks.
    Shared,
}

/// Elementary types that an access has.
type Length = i64;

impl<F: Fabric> File<F> {
    /// An access of which the place is not known yet, and its length in elementary types. Errors: ACCESS, READ_ONLY, IO if the
    /// data are no whole elementary types.
    fn prepare(
        &self,
        direction: Direction,
        buffer: Buffer,
        convert: Option<Rc<dyn Convert>>,
    ) -> Result<(Operation, Length), Error> {
        may(&self.core, direction)?;
        let view = self.stream();
        let len = match &convert {
            None => buffer.len() as u64,
            Some(convert) => convert.len(&buffer)?,
        };
        let unit = view.unit();
        if !len.is_multiple_of(unit) {
            let text = format!(
                "the data have {len} bytes in the file, which are no whole elementary types of {unit} bytes"
            );
            return Err(Error::new(class::IO, text));
        }
        let operation = Operation { direction, buffer, convert, view, from: 0, len };
        Ok((operation, (len / unit) as i64))
    }

    /// Gives an access its place.
    fn put_at(&self, mut operation: Operation, offset: i64) -> Result<Operation, Error> {
        operation.from = self.stream_offset(offset)?;
        operation.view.check_range(operation.from, operation.len)?;
        Ok(operation)
    }

    fn own_place(&self, length: Length) -> i64 {
        let at = self.position.get();
        self.position.set(at + length as u64);
        at as i64
    }

    /// An access of this rank alone, at the shared pointer, which has moved when this returns.
    pub async fn alone_shared(
        &self,
        direction: Direction,
        buffer: Buffer,
        convert: Option<Rc<dyn Convert>>,
    ) -> Result<Operation, Error> {
        let (operation, length) = self.prepare(direction, buffer, convert)?;
        let offset = self.pointer.add(length).await?;
        self.put_at(operation, offset)
    }

    /// An access of this rank alone, at an offset or at the individual pointer, which has moved when this returns; `None` at the
    /// shared one.
    pub fn alone(
        &self,
        (direction, place): (Direction, Place),
        buffer: &Buffer,
        convert: &Option<Rc<dyn Convert>>,
    ) -> Option<Result<Operation, Error>> {
        if place == Place::Shared {
            return None;
        }
        let operation = || {
            self.not_sequential()?;
            let (operation, length) = self.prepare(direction, buffer.clone(), convert.clone())?;
            let offset = match place {
                Place::At(offset) => offset,
                _ => self.own_place(length),
            };
            self.put_at(operation, offset)
        };
        Some(operation())
    }

    /// The usual access of this rank alone: bytes as they are, between one piece of memory and one piece of the file, by one system
    /// call. `None`, and nothing is done, if it is any other: [`File::alone`] has all that there are, and says what is wrong.
    #[inline]
    pub fn at_once(
        &self,
        (direction, place): (Direction, Place),
        data: Sge,
        outside: &dyn WaitHooks,
    ) -> Option<Result<u64, Error>> {
        let core = &*self.core;
        let may = match direction {
            Direction::Read => core.amode.reads(),
            Direction::Write => core.amode.writes(),
        };
        let as_they_are = core.gapless.get() && !core.atomic.get() && !core.amode.is_sequential();
        if !may || !as_they_are || data.is_empty() {
            return None;
        }
        let own = self.position.get();
        let (at, moved) = {
            let given = self.given.borrow();
            let offset = match place {
                Place::At(offset) => u64::try_from(offset).ok()?,
                Place::Own => own,
                Place::Shared => return None,
            };
            if given.representation.sizes.is_some() {
                return None;
            }
            given.view.one_piece(offset, data.len() as u64)?
        };
        if place == Place::Own {
            self.position.set(own + moved);
        }
        let mut outcome = Ok(0);
        outside.unlocked(&mut || outcome = core.piece(direction, at, data.into()));
        Some(outcome.map_err(|failure| core.error(&failure)))
    }

    /// Whether so many bytes in one piece are moved sooner than another thread would have begun.
    #[inline]
    pub fn is_short(&self, direction: Direction, bytes: u64) -> bool {
        let cost = match direction {
            Direction::Read => self.core.costs.reads(1, bytes),
            Direction::Write => self.core.costs.writes(1, bytes),
        };
        self.core.is_quick(cost, true)
    }

    /// Whether an access of all ranks at this place is one of each rank alone.
    pub fn is_each_its_own(&self, (direction, place): (Direction, Place)) -> bool {
        place != Place::Shared && self.core.is_each_its_own(direction)
    }

    /// Whether an access waits for other ranks, without the program's thread: [`File::run_waiting`] is called then.
    pub fn waits(&self) -> bool {
        self.core.exclusion().is_some()
    }

    /// Carries out an access of this rank alone, once no other is in its way.
    pub async fn run_waiting(&self, operation: &Operation) -> Result<u64, Error> {
        operation.run(&self.core, false).await
    }

    /// Carries out an access of this rank alone on the caller's thread; bytes of the program's data that were moved.
    pub fn run_here(&self, operation: &Operation, outside: &dyn WaitHooks) -> Result<u64, Error> {
        operation.run_here(&self.core, outside)
    }

    /// The same by another thread.
    pub async fn run_beside(&self, operation: Operation) -> Result<u64, Error> {
        operation.run(&self.core, true).await
    }

    /// Begins an access that all ranks take part in: what is returned moves the data. The individual pointer has moved when this
    /// returns, and all ranks call it in one order. `beside`: the operation may run while others do.
    pub fn together(
        self: &Rc<Self>,
        (direction, place, beside): (Direction, Place, bool),
        buffer: Buffer,
        convert: Option<Rc<dyn Convert>>,
    ) -> Result<impl Future<Output = Result<u64, Error>> + 'static, Error> {
        if place != Place::Shared {
            self.not_sequential()?;
        }
        let (operation, length) = self.prepare(direction, buffer, convert)?;
        let operation = match place {
            Place::At(offset) => self.put_at(operation, offset)?,
            Place::Own => {
                let at = self.own_place(length);
                self.put_at(operation, at)?
            }
            Place::Shared => operation,
        };
        let core = &self.core;
        let number = core.begun.replace(core.begun.get().wrapping_add(1));
        let comm = if beside { core.comm.nonblocking_context() } else { &core.comm }.clone();
        let file = self.clone();
        Ok(async move {
            let core = &file.core;
            let mut operation = operation;
            if place == Place::Shared {
                let lengths = weft_rma::gather(&comm, [length as u64]).await?;
                let before: u64 = lengths[..comm.rank()].iter().map(|&[length]| length).sum();
                let all: u64 = lengths.iter().map(|&[length]| length).sum();
                let first = match comm.rank() {
                    0 => file.pointer.add(all as i64).await?,
                    _ => 0,
                };
                let told = weft_rma::gather(&comm, [first as u64]).await?;
                operation = file.put_at(operation, (told[0][0] + before) as i64)?;
            }
            let way = Way { comm: &comm, number, beside };
            let staging = core.comm.engine().endpoint().staging();
            let data = match operation.data(staging) {
                Ok(data) => data,
                Err(error) => {
                    // The others wait for this rank's part: it has none.
                    operation.len = 0;
                    if comm.size() > 1 {
                        let _ = two_phase::run(core, &way, &operation, Sge::EMPTY).await?;
                    }
                    return Err(error);
                }
            };
            let moved = match comm.size() {
                1 => operation.moved(core, data.sge, beside).await?,
                _ => two_phase::run(core, &way, &operation, data.sge).await?,
            };
            let come = moved.map_err(|failure| core.error(&failure))?;
            operation.finish(&data, come)
        })
    }
}
