//! One operation on a file: the program's buffer on one side, bytes of the view on the other.

use crate::bytes::Memory;
use crate::core::{Core, Direction};
use crate::failure::{Failure, class};
use crate::representation::Convert;
use crate::view::View;
use std::rc::Rc;
use weft_fabric::{Fabric, Sge, Staging, StagingPool};
use weft_process::{Buffer, Error, Piece, WaitHooks};

/// What is to be moved.
#[derive(Clone)]
pub struct Operation {
    /// Which way.
    pub direction: Direction,
    /// The program's memory.
    pub buffer: Buffer,
    /// `None`: the file has the same bytes.
    pub convert: Option<Rc<dyn Convert>>,
    /// Through which it is seen.
    pub view: Rc<View>,
    /// First byte of the view's stream.
    pub from: u64,
    /// Bytes in the file.
    pub len: u64,
}

/// An operation's data in one piece, as the file has them.
pub struct Data {
    /// The bytes.
    pub sge: Sge,
    piece: Option<Piece>,
    _staging: Option<Staging>,
}

impl Operation {
    /// The data to write, or the place of those to read.
    pub fn data(&self, pool: &StagingPool) -> Result<Data, Error> {
        if let Some(convert) = &self.convert {
            let staging = pool.take(self.len as usize);
            if self.direction == Direction::Write {
                convert.export(&self.buffer, staging.sge())?;
            }
            return Ok(Data { sge: staging.sge(), piece: None, _staging: Some(staging) });
        }
        let piece = match self.direction {
            Direction::Write => self.buffer.readable(pool),
            Direction::Read => self.buffer.writable(pool),
        };
        Ok(Data { sge: piece.sge, piece: Some(piece), _staging: None })
    }

    /// Brings what was read to its place, `come` bytes of the file; how many bytes of the program's data were moved.
    pub fn finish(&self, data: &Data, come: u64) -> Result<u64, Error> {
        match (&self.convert, self.direction) {
            (None, Direction::Write) => Ok(come),
            (None, Direction::Read) => {
                if let Some(piece) = &data.piece {
                    piece.unpack(&self.buffer, come as usize);
                }
                Ok(come)
            }
            (Some(_), Direction::Write) => Ok(self.buffer.len() as u64),
            (Some(convert), Direction::Read) => {
                convert.import(data.sge.part(0, come as usize), &self.buffer)
            }
        }
    }

    /// Moves the data on the caller's thread, which lets others in meanwhile; how many bytes of the program's were moved.
    pub fn run_here<F: Fabric>(
        &self,
        core: &Core<F>,
        outside: &dyn WaitHooks,
    ) -> Result<u64, Error> {
        let data = self.data(core.comm.engine().endpoint().staging())?;
        let memory = Memory::from(data.sge);
        let mut outcome = Ok(0);
        if self.view.is_plain() && core.gapless.get() && !core.atomic.get() {
            let at = self.view.place(self.from);
            outside.unlocked(&mut || outcome = core.piece(self.direction, at, memory));
        } else {
            let runs = self.view.runs(self.from, self.len);
            let mut transfer = Some(core.transfer(self.direction, runs, memory));
            outside.unlocked(&mut || {
                if let Some(transfer) = transfer.take() {
                    outcome = transfer.run();
                }
            });
        }
        self.finish(&data, outcome.map_err(|failure| core.error(&failure))?)
    }

    /// The same, if `beside` by a thread of the pool, while the program computes; else the program waits for it.
    pub async fn run<F: Fabric>(&self, core: &Core<F>, beside: bool) -> Result<u64, Error> {
        let data = self.data(core.comm.engine().endpoint().staging())?;
        let come = self.moved(core, data.sge, beside).await?;
        let come = come.map_err(|failure| core.error(&failure))?;
        self.finish(&data, come)
    }

    /// Moves `data` alone: no other rank has a part in it. `beside`: the program goes on meanwhile.
    pub async fn moved<F: Fabric>(
        &self,
        core: &Core<F>,
        data: Sge,
        beside: bool,
    ) -> Result<Result<u64, Failure>, Error> {
        if self.len == 0 {
            return Ok(Ok(0));
        }
        let runs = self.view.runs(self.from, self.len);
        let transfer = core.transfer(self.direction, runs, Memory::from(data));
        // A write beside gaps may wait for who writes there: not on a thread that the program needs.
        let waits = beside && self.direction == Direction::Write && !core.gapless.get();
        let quick = !waits && core.is_quick(transfer.cost(), beside);
        let moved = core.pool.run_transfer(quick, transfer);
        match core.exclusion() {
            Some(exclusion) => {
                // The lock must not be kept until the program calls MPI again.
                if beside {
                    core.comm.engine().want_helper();
                }
                exclusion.during(self.direction, moved).await
            }
            None => moved.await,
        }
    }
}

/// Errors: READ_ONLY, ACCESS of a file that was not opened for it.
pub fn may<F: Fabric>(core: &Core<F>, direction: Direction) -> Result<(), Error> {
    let (may, class, word, need) = match direction {
        Direction::Read => (core.amode.reads(), class::ACCESS, "write", "MPI_MODE_RDWR"),
        Direction::Write => (core.amode.writes(), class::READ_ONLY, "read", "MPI_MODE_RDWR"),
    };
    if may {
        return Ok(());
    }
    let text = format!("{:?} was opened to {word} only: open it with {need}", core.name());
    Err(Error::new(class, text))
}
