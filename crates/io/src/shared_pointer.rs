//! The shared pointer (MPI 5.0, section 14.4.4): a word of the first rank's memory, which other ranks change by atomic instructions
//! within a node and by one-sided operations between nodes. The first rank's program is not involved.

use std::cell::Cell;
use std::rc::Rc;
use weft_datatype::{Basic, PredefinedOp, Type};
use weft_fabric::{Fabric, Staging};
use weft_process::{Buffer, Comm, Error};
use weft_rma::{TargetChange, TargetLocation, Window, WindowOffer, WindowOptions};

/// A shared pointer, in elementary types of the view.
pub enum SharedPointer<F: Fabric> {
    /// Pointer of a file that one rank opened.
    Local(Cell<i64>),
    /// Pointer of several ranks: a window of one word.
    Window {
        /// The window. Its communicator is also the file's communicator.
        window: Rc<Window<F>>,
        /// MPI_AINT.
        word: Type,
    },
}

/// The type MPI_AINT of 8 bytes.
const AINT: Basic = match Basic::of_handle(0x201) {
    Some(basic) => basic,
    None => unreachable!(),
};

impl<F: Fabric> SharedPointer<F> {
    /// Creates a pointer of value 0 on all ranks of `comm`. Returns the pointer, and a new communicator for the file.
    pub async fn new(comm: &Comm<F>) -> Result<(SharedPointer<F>, Rc<Comm<F>>), Error> {
        if comm.size() == 1 {
            return Ok((SharedPointer::Local(Cell::new(0)), comm.dup().await?));
        }
        let len = if comm.rank() == 0 { 8 } else { 0 };
        let memory = WindowOffer::Allocate { len, align: 8 };
        let window = Window::create(comm, memory, 1, WindowOptions::default()).await?;
        window.lock_all(0).await?;
        let own = window.comm().clone();
        let pointer = SharedPointer::Window { window, word: weft_rma::named(AINT) };
        // New memory of the fabric is zero, so no rank has to wait until the first rank has set the pointer.
        Ok((pointer, own))
    }

    /// Adds `by` to the pointer. Returns the former value.
    pub async fn add(&self, by: i64) -> Result<i64, Error> {
        match self {
            SharedPointer::Local(value) => Ok(value.replace(value.get().wrapping_add(by))),
            SharedPointer::Window { .. } => self.fetch_and_op(PredefinedOp::Sum, by).await,
        }
    }

    /// Sets the pointer. Returns the former value.
    pub async fn swap(&self, to: i64) -> Result<i64, Error> {
        match self {
            SharedPointer::Local(value) => Ok(value.replace(to)),
            SharedPointer::Window { .. } => self.fetch_and_op(PredefinedOp::Replace, to).await,
        }
    }

    /// Returns the value of the pointer.
    pub async fn get(&self) -> Result<i64, Error> {
        self.add(0).await
    }

    async fn fetch_and_op(&self, op: PredefinedOp, operand: i64) -> Result<i64, Error> {
        let SharedPointer::Window { window, word } = self else { return Ok(0) };
        let pool = window.comm().engine().endpoint().staging();
        let [operand, former] = [pool.take(8), pool.take(8)].map(|staging| {
            staging.sge().fill(&operand.to_ne_bytes());
            staging
        });
        let as_buffer = |staging: &Staging| Buffer::over(staging.sge(), word.clone());
        let (from, into) = (as_buffer(&operand), as_buffer(&former));
        let location = TargetLocation { rank: 0, disp: 0, count: 1, ty: word };
        let change = TargetChange::Reduce { op, origin: Some(&from) };
        let issued = window.accumulate(change, Some(&into), &location).await?;
        window.until_over(issued).await?;
        let mut bytes = [0; 8];
        former.sge().read(&mut bytes);
        Ok(i64::from_ne_bytes(bytes))
    }

    /// Frees the pointer and its communicator, once all ranks have called this function.
    pub async fn free(&self, comm: &Comm<F>) -> Result<(), Error> {
        match self {
            SharedPointer::Local(_) => comm.close().await,
            SharedPointer::Window { window, .. } => {
                window.unlock_all().await?;
                window.free().await
            }
        }
    }
}
