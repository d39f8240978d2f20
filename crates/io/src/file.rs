//! An open file (MPI 5.0, chapter 14): its views and pointers. `open_close.rs` has opening and closing, `data_access.rs` has reads
//! and writes, and `collective_calls.rs` has the collective calls that change the whole file.

mod collective_calls;
mod data_access;
mod open_close;

pub use data_access::{AccessSpec, Positioning};
pub use open_close::{OpenArguments, Opener, delete, disk};

use crate::failure::{FileAction, FileFailure, class};
use crate::hints::Hints;
use crate::open_file::OpenFile;
use crate::representation::{Convert, RepresentationSizes, in_file};
use crate::shared_pointer::SharedPointer;
use crate::view::FileView;
use std::cell::{Cell, Ref, RefCell};
use std::rc::Rc;
use weft_datatype::Type;
use weft_fabric::Fabric;
use weft_process::{Comm, Error, Info};

/// Representation of a view's data (MPI 5.0, section 14.5).
#[derive(Clone)]
pub struct Representation {
    /// Name that the program gave.
    pub name: String,
    /// Sizes of types in the file. `None`: the same as in memory.
    pub sizes: Option<Rc<dyn RepresentationSizes>>,
    /// Conversion between memory and file. `None` if the conversion depends on the datatypes of each access.
    pub convert: Option<Rc<dyn Convert>>,
}

impl Representation {
    /// Returns a representation that has the machine's own bytes.
    pub fn native(name: &str) -> Representation {
        Representation { name: name.to_owned(), sizes: None, convert: None }
    }
}

/// The arguments with which the program has set a view.
pub struct ViewArguments {
    /// Start of the view in bytes of the file.
    pub displacement: u64,
    /// Elementary type.
    pub etype: Type,
    /// File type.
    pub filetype: Type,
    /// Representation of the data.
    pub representation: Representation,
    stream: Rc<FileView>,
}

/// An open file.
pub struct File<F: Fabric> {
    open: Rc<OpenFile<F>>,
    pointer: SharedPointer<F>,
    view: RefCell<ViewArguments>,
    /// Individual pointer in elementary types.
    position: Cell<u64>,
}

/// Position from which the offset of a seek counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whence {
    /// The view's beginning.
    Set,
    /// The present position.
    Current,
    /// The file's end.
    End,
}

impl<F: Fabric> File<F> {
    /// Returns the file's own communicator.
    pub fn comm(&self) -> &Rc<Comm<F>> {
        &self.open.comm
    }

    /// Returns the name of the file for errors.
    pub fn name(&self) -> String {
        self.open.name()
    }

    /// Returns the access mode as bits of the ABI.
    pub fn amode(&self) -> i32 {
        self.open.amode.bits()
    }

    /// Returns the view.
    pub fn view(&self) -> Ref<'_, ViewArguments> {
        self.view.borrow()
    }

    /// Returns the representation of data in the view.
    pub fn representation(&self) -> Representation {
        self.view.borrow().representation.clone()
    }

    /// Reports whether the file is in atomic mode.
    pub fn is_atomic(&self) -> bool {
        self.open.atomic.is_enabled()
    }

    /// Returns the hints in force.
    pub fn hints(&self) -> Info {
        let (open, unused) = (&self.open, self.open.unused_hints.borrow());
        open.hints.get().to_info(open.aggregators().len(), open.alignment(), &unused)
    }

    /// Applies hints. Hints with invalid values are ignored.
    pub fn set_hints(&self, info: &Info) {
        let mut hints: Hints = self.open.hints.get();
        hints.apply(info, &mut self.open.unused_hints.borrow_mut());
        self.open.hints.set(hints);
    }

    /// Returns the length in bytes.
    pub fn length(&self) -> Result<u64, Error> {
        self.open.kind().revalidate(&*self.open.storage);
        let length = self.open.storage.length();
        length.map_err(|error| self.open.error(&FileFailure::new(FileAction::Resize, &error, 0, 0)))
    }

    /// Returns the extent of `ty` in the file, in bytes.
    pub fn extent_in_file(&self, ty: &Type) -> Result<i64, Error> {
        match &self.view.borrow().representation.sizes {
            None => Ok(ty.extent()),
            Some(sizes) => Ok(in_file(ty, &**sizes, &self.open.byte)?.extent()),
        }
    }

    fn stream(&self) -> Rc<FileView> {
        self.view.borrow().stream.clone()
    }

    /// Returns the byte of the file at an offset of the view. Errors: ARG for a negative offset.
    pub fn byte_of(&self, offset: i64) -> Result<u64, Error> {
        let view = self.stream();
        let at = self.stream_offset(offset)?;
        if view.is_empty() {
            return Ok(view.displacement());
        }
        view.check_range(at, 1)?;
        Ok(view.file_offset(at))
    }

    /// Converts the program's offset in elementary types to a byte offset in the view's stream.
    fn stream_offset(&self, offset: i64) -> Result<u64, Error> {
        let etype_size = self.stream().etype_size();
        let at = u64::try_from(offset).ok().and_then(|at| at.checked_mul(etype_size));
        at.ok_or_else(|| {
            let text =
                format!("argument offset = {offset}: it must not be negative, nor beyond any file");
            Error::new(weft_process::class::ARG, text)
        })
    }

    /// Counts the elementary types of the view before the end of the file, including an incomplete last element.
    fn end_of_view(&self) -> Result<i64, Error> {
        let view = self.stream();
        Ok(view.stream_offset(self.length()?).div_ceil(view.etype_size()) as i64)
    }

    /// Returns the individual pointer in elementary types.
    pub fn position(&self) -> i64 {
        self.position.get() as i64
    }

    /// Computes a pointer's new position. Errors: ARG before the view's beginning.
    fn seek_target(&self, offset: i64, whence: Whence, current: i64) -> Result<i64, Error> {
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
        let to = self.seek_target(offset, whence, self.position())?;
        self.position.set(to as u64);
        Ok(())
    }

    /// Moves the shared pointer. All ranks call this with the same arguments. Errors: NOT_SAME.
    pub async fn seek_shared(&self, offset: i64, whence: Whence) -> Result<(), Error> {
        self.not_sequential()?;
        let own = [offset as u64, whence as u64];
        let all = self.open.gather(own).await?;
        if all.iter().any(|other| *other != own) {
            let text = "ranks gave different offsets or different whence";
            return Err(Error::new(class::NOT_SAME, text));
        }
        let result = match self.comm().rank() {
            0 => self.move_shared(offset, whence).await,
            _ => Ok(()),
        };
        // This exchange makes every rank wait until the pointer has moved, and reports the first rank's failure.
        let failed = self.open.gather([u64::from(result.is_err())]).await?;
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
        let to = self.seek_target(offset, whence, current)?;
        self.pointer.swap(to).await.map(|_| ())
    }

    /// Returns the shared pointer in elementary types.
    pub async fn position_shared(&self) -> Result<i64, Error> {
        self.pointer.get().await
    }

    /// Checks that offsets and individual pointers may be used. Errors: UNSUPPORTED_OPERATION.
    fn not_sequential(&self) -> Result<(), Error> {
        if !self.open.amode.is_sequential() {
            return Ok(());
        }
        let text = format!(
            "{:?} was opened with MPI_MODE_SEQUENTIAL: only the shared pointer may be used, and not moved",
            self.name()
        );
        Err(Error::new(weft_process::class::UNSUPPORTED_OPERATION, text))
    }
}
