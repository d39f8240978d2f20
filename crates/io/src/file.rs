//! An open file (MPI 5.0, chapter 14): what it is, its views and pointers. `opening.rs` opens and closes it, `access.rs` reads and
//! writes, `whole.rs` has what all ranks do to all of it.

mod access;
mod opening;
mod whole;

pub use access::Place;
pub use opening::{Opener, delete, disk};

use crate::core::Core;
use crate::failure::{Act, Failure, class};
use crate::hints::Hints;
use crate::representation::{Convert, Sizes};
use crate::shared_pointer::SharedPointer;
use crate::view::View;
use std::cell::{Cell, Ref, RefCell};
use std::rc::Rc;
use weft_datatype::Type;
use weft_fabric::Fabric;
use weft_process::{Comm, Error, Info};

/// How data of a view are represented.
#[derive(Clone)]
pub struct Representation {
    /// The name by which it was asked for.
    pub name: String,
    /// What types are in the file; `None`: what they are here.
    pub sizes: Option<Rc<dyn Sizes>>,
    /// Between the two, if the program's datatypes are not needed for it.
    pub convert: Option<Rc<dyn Convert>>,
}

impl Representation {
    /// The machine's own.
    pub fn native(name: &str) -> Representation {
        Representation { name: name.to_owned(), sizes: None, convert: None }
    }
}

/// A view as the program gave it.
pub struct GivenView {
    /// Bytes of the file.
    pub displacement: u64,
    /// The elementary type.
    pub etype: Type,
    /// The file type.
    pub filetype: Type,
    /// How data are represented.
    pub representation: Representation,
    view: Rc<View>,
}

/// An open file.
pub struct File<F: Fabric> {
    core: Rc<Core<F>>,
    pointer: SharedPointer<F>,
    given: RefCell<GivenView>,
    /// The individual pointer, in elementary types.
    position: Cell<u64>,
}

/// From where a pointer is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whence {
    /// The view's beginning.
    Set,
    /// Where it is.
    Current,
    /// The file's end.
    End,
}

impl<F: Fabric> File<F> {
    /// The file's own communicator.
    pub fn comm(&self) -> &Rc<Comm<F>> {
        &self.core.comm
    }

    /// What errors call it.
    pub fn name(&self) -> String {
        self.core.name()
    }

    /// The ABI's bits.
    pub fn amode(&self) -> i32 {
        self.core.amode.bits()
    }

    /// The view.
    pub fn view(&self) -> Ref<'_, GivenView> {
        self.given.borrow()
    }

    /// How data are represented in the view.
    pub fn representation(&self) -> Representation {
        self.given.borrow().representation.clone()
    }

    /// Whether accesses of several ranks are whole.
    pub fn is_atomic(&self) -> bool {
        self.core.atomic.get()
    }

    /// The hints in force.
    pub fn hints(&self) -> Info {
        let (core, kept) = (&self.core, self.core.kept.borrow());
        core.hints.get().tell(core.aggregators().len(), core.alignment(), &kept)
    }

    /// Takes over hints; those that make no sense are ignored.
    pub fn set_hints(&self, info: &Info) {
        let mut hints: Hints = self.core.hints.get();
        hints.take(info, &mut self.core.kept.borrow_mut());
        self.core.hints.set(hints);
    }

    /// Length in bytes.
    pub fn length(&self) -> Result<u64, Error> {
        self.core.kind().look_anew(&*self.core.storage);
        let length = self.core.storage.length();
        length.map_err(|error| self.core.error(&Failure::new(Act::Resize, &error, 0, 0)))
    }

    /// Bytes that an element of `ty` takes in the file, with what lies between elements.
    pub fn extent_in_file(&self, ty: &Type) -> Result<i64, Error> {
        match &self.given.borrow().representation.sizes {
            None => Ok(ty.extent()),
            Some(sizes) => {
                Ok(crate::representation::in_file(ty, &**sizes, &self.core.byte)?.extent())
            }
        }
    }

    fn stream(&self) -> Rc<View> {
        self.given.borrow().view.clone()
    }

    /// The byte of the file at an offset of the view. Errors: ARG of a negative one.
    pub fn byte_of(&self, offset: i64) -> Result<u64, Error> {
        let view = self.stream();
        let at = self.stream_offset(offset)?;
        if view.is_empty() {
            return Ok(view.displacement());
        }
        view.check_range(at, 1)?;
        Ok(view.place(at))
    }

    /// An offset of the program, in bytes of the stream.
    fn stream_offset(&self, offset: i64) -> Result<u64, Error> {
        let at = u64::try_from(offset).ok().and_then(|at| at.checked_mul(self.stream().unit()));
        at.ok_or_else(|| {
            let text =
                format!("argument offset = {offset}: it must not be negative, nor beyond any file");
            Error::new(weft_process::class::ARG, text)
        })
    }

    /// Elementary types of the view before the end of the file; one of which only a part is there counts.
    fn end_of_view(&self) -> Result<i64, Error> {
        let view = self.stream();
        Ok(view.before(self.length()?).div_ceil(view.unit()) as i64)
    }

    /// The individual pointer, in elementary types.
    pub fn position(&self) -> i64 {
        self.position.get() as i64
    }

    /// Where a pointer is moved to. Errors: ARG before the view's beginning.
    fn target(&self, offset: i64, whence: Whence, current: i64) -> Result<i64, Error> {
        let from = match whence {
            Whence::Set => 0,
            Whence::Current => current,
            Whence::End => self.end_of_view()?,
        };
        let to = from.checked_add(offset).filter(|&to| to >= 0);
        to.ok_or_else(|| {
            let text = format!(
                "argument offset = {offset}: from {from} it leads before the view's beginning"
            );
            Error::new(weft_process::class::ARG, text)
        })
    }

    /// Moves the individual pointer.
    pub fn seek(&self, offset: i64, whence: Whence) -> Result<(), Error> {
        self.not_sequential()?;
        let to = self.target(offset, whence, self.position())?;
        self.position.set(to as u64);
        Ok(())
    }

    /// Moves the shared pointer. All ranks call it with the same arguments. Errors: NOT_SAME.
    pub async fn seek_shared(&self, offset: i64, whence: Whence) -> Result<(), Error> {
        self.not_sequential()?;
        let said = [offset as u64, whence as u64];
        let all = weft_rma::gather(self.comm(), said).await?;
        if all.iter().any(|other| *other != said) {
            let text = "ranks gave different offsets or different whence";
            return Err(Error::new(class::NOT_SAME, text));
        }
        let result = match self.comm().rank() {
            0 => self.move_shared(offset, whence).await,
            _ => Ok(()),
        };
        // Nobody uses it before it is there; and if it failed, all learn of it.
        let failed = weft_rma::gather(self.comm(), [u64::from(result.is_err())]).await?;
        result?;
        match failed[0] {
            [0] => Ok(()),
            _ => Err(Error::new(
                weft_process::class::ARG,
                "rank 0 could not move the shared pointer",
            )),
        }
    }

    async fn move_shared(&self, offset: i64, whence: Whence) -> Result<(), Error> {
        let current = self.pointer.get().await?;
        let to = self.target(offset, whence, current)?;
        self.pointer.swap(to).await.map(|_| ())
    }

    /// The shared pointer, in elementary types.
    pub async fn position_shared(&self) -> Result<i64, Error> {
        self.pointer.get().await
    }

    /// Errors: UNSUPPORTED_OPERATION of a file of which only the shared pointer may be used.
    fn not_sequential(&self) -> Result<(), Error> {
        if !self.core.amode.is_sequential() {
            return Ok(());
        }
        let text = format!(
            "{:?} was opened with MPI_MODE_SEQUENTIAL: only the shared pointer may be used, and not moved",
            self.name()
        );
        Err(Error::new(weft_process::class::UNSUPPORTED_OPERATION, text))
    }
}
