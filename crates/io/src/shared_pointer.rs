//! The shared pointer (MPI 5.0, section 14.4.4): one word of the first rank's memory, which the others change by themselves, by
//! the processor within a node and by one-sided operations between nodes. The first rank's program need not do anything.

use std::cell::Cell;
use std::rc::Rc;
use weft_datatype::{Basic, Op, Type};
use weft_fabric::{Fabric, Staging};
use weft_process::{Buffer, Comm, Error};
use weft_rma::{Change, Memory, Options, TargetLocation, Window};

/// The pointer, in elementary types of the view.
pub enum SharedPointer<F: Fabric> {
    /// Of a file that one rank opened.
    Own(Cell<i64>),
    /// Of several ranks: a window of one word.
    Word {
        /// Its communicator is the file's.
        window: Rc<Window<F>>,
        /// MPI_AINT.
        word: Type,
    },
}

/// MPI_AINT: 8 bytes.
const AINT: Basic = match Basic::of_handle(0x201) {
    Some(basic) => basic,
    None => unreachable!(),
};

impl<F: Fabric> SharedPointer<F> {
    /// A pointer of the ranks of `comm`, which all call it; it is 0. The communicator is a new one.
    pub async fn new(comm: &Comm<F>) -> Result<(SharedPointer<F>, Rc<Comm<F>>), Error> {
        if comm.size() == 1 {
            return Ok((SharedPointer::Own(Cell::new(0)), comm.dup().await?));
        }
        let len = if comm.rank() == 0 { 8 } else { 0 };
        let brings = Memory::Allocate { len, align: 8 };
        let window = Window::create(comm, brings, 1, Options::default()).await?;
        window.lock_all(0).await?;
        let own = window.comm().clone();
        let pointer = SharedPointer::Word { window, word: weft_rma::named(AINT) };
        // The fabric's memory is zero when it is new: so nobody waits for the first rank.
        Ok((pointer, own))
    }

    /// Adds `by`; what it was before.
    pub async fn add(&self, by: i64) -> Result<i64, Error> {
        match self {
            SharedPointer::Own(value) => Ok(value.replace(value.get().wrapping_add(by))),
            SharedPointer::Word { .. } => self.change(Op::Sum, by).await,
        }
    }

    /// Sets it; what it was before.
    pub async fn swap(&self, to: i64) -> Result<i64, Error> {
        match self {
            SharedPointer::Own(value) => Ok(value.replace(to)),
            SharedPointer::Word { .. } => self.change(Op::Replace, to).await,
        }
    }

    /// What it is.
    pub async fn get(&self) -> Result<i64, Error> {
        self.add(0).await
    }

    async fn change(&self, op: Op, operand: i64) -> Result<i64, Error> {
        let SharedPointer::Word { window, word } = self else { return Ok(0) };
        let pool = window.comm().engine().endpoint().staging();
        let [operand, former] = [pool.take(8), pool.take(8)].map(|staging| {
            staging.sge().fill(&operand.to_ne_bytes());
            staging
        });
        let as_buffer = |staging: &Staging| Buffer::over(staging.sge(), word.clone());
        let (from, into) = (as_buffer(&operand), as_buffer(&former));
        let location = TargetLocation { rank: 0, disp: 0, count: 1, ty: word };
        let change = Change::Reduce { op, origin: Some(&from) };
        let issued = window.accumulate(change, Some(&into), &location).await?;
        window.until_over(issued).await?;
        let mut bytes = [0; 8];
        former.sge().read(&mut bytes);
        Ok(i64::from_ne_bytes(bytes))
    }

    /// Ends it and its communicator, once all ranks do.
    pub async fn free(&self, comm: &Comm<F>) -> Result<(), Error> {
        match self {
            SharedPointer::Own(_) => comm.close().await,
            SharedPointer::Word { window, .. } => {
                window.unlock_all().await?;
                window.free().await
            }
        }
    }
}
