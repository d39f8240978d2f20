//! Data access in all its forms (MPI 5.0, section 14.4).

use super::{file, file_for_collective, run};
use crate::arguments::{BUF, room_for_request, store_status};
use crate::chapters::files::representations;
use crate::constants::*;
use crate::elements::Elements;
use crate::error::Error;
use crate::objects::{Belongs, FileObject, RequestOrigin};
use crate::requests::start_for;
use crate::status::MpiStatus;
use crate::types::{Datatype, File, Request};
use crate::waiting::WaitingCall;
use std::cell::Cell;
use std::ffi::c_void;
use std::rc::Rc;
use weft_io::{AccessData, AccessSpec, FileAccess, Positioning, Synchronism};
use weft_process::{Active, Executor, External, NonblockingTask, OperationOutcome};

/// State of an access for its request.
enum AccessRequest {
    /// The access continues in the background.
    Active {
        task: NonblockingTask,
        /// Number of bytes moved, once the task is complete.
        moved: Rc<Cell<u64>>,
    },
    /// The access was complete before the program got its request.
    Complete { moved: u64, error: Cell<Option<weft_process::Error>> },
}

fn moved_bytes(bytes: u64) -> weft_process::Status {
    weft_process::Status { bytes: bytes as usize as _, ..Default::default() }
}

impl External for AccessRequest {
    fn poll(&self) -> Option<OperationOutcome> {
        let outcome = self.peek()?;
        let error = match self {
            AccessRequest::Active { task, .. } => task.result().and_then(Result::err),
            AccessRequest::Complete { error, .. } => error.take(),
        };
        Some(OperationOutcome { error, ..outcome })
    }

    fn is_over(&self) -> bool {
        match self {
            AccessRequest::Active { task, .. } => task.is_over(),
            AccessRequest::Complete { .. } => true,
        }
    }

    fn peek(&self) -> Option<OperationOutcome> {
        let moved = match self {
            AccessRequest::Active { moved, .. } => moved.get(),
            AccessRequest::Complete { moved, .. } => *moved,
        };
        self.is_over().then(|| OperationOutcome::of(moved_bytes(moved)))
    }

    fn cancel(&self) -> Result<(), weft_process::Error> {
        let text = "an operation on a file cannot be cancelled (MPI 5.0, section 14.6.5)";
        Err(weft_process::Error::new(MPI_ERR_REQUEST, text))
    }

    fn release(&self) -> Result<(), weft_process::Error> {
        Ok(())
    }
}

/// A call of a data access function.
#[derive(Clone, Copy)]
struct Access {
    /// Name of the function.
    call: &'static str,
    handle: File,
    spec: AccessSpec,
    elements: Elements,
}

impl Access {
    /// # Safety
    /// The program promises the memory until the operation is complete.
    #[inline(always)]
    unsafe fn new(
        call: &'static str,
        handle: File,
        spec: AccessSpec,
        buf: *const c_void,
        count: i64,
        datatype: Datatype,
    ) -> Access {
        // SAFETY: `Elements::new` needs elements that the program keeps until the operation is complete; the contract of this
        // function says so.
        let elements = unsafe { Elements::new(buf, count, datatype, BUF) };
        Access { call, handle, spec, elements }
    }

    /// Checks the buffer, and looks up the conversion of the file's representation.
    fn data(&self, object: &FileObject) -> Result<AccessData, Error> {
        let buffer = self.elements.buffer()?;
        let convert = representations::conversion(&object.file, self.elements.address);
        Ok(AccessData { buffer, convert })
    }

    /// Carries out an access of contiguous bytes by one system call. Returns `None` and does nothing for any other access.
    fn fast_path(&self, object: &FileObject) -> Option<Result<u64, weft_process::Error>> {
        object.file.fast_path(self.spec, self.elements.plain()?, &WaitingCall::new(self.call))
    }

    /// Checks any independent access and moves the file pointer.
    fn slow_path(&self, object: &FileObject) -> Result<FileAccess, Error> {
        let data = self.data(object)?;
        match object.file.independent(self.spec, &data) {
            Some(access) => Ok(access?),
            None => {
                let access = object.file.independent_shared(self.spec.direction, data);
                run(object, self.call, access)
            }
        }
    }

    /// Carries out an independent access.
    ///
    /// # Safety
    /// `status` is MPI_STATUS_IGNORE or may be written.
    unsafe fn independent(self, status: *mut MpiStatus) -> Result<(), Error> {
        let object = file(self.handle)?;
        // SAFETY: `status` is MPI_STATUS_IGNORE or may be written; the contract of this function says so.
        unsafe { self.independent_on(&object, status) }
    }

    /// # Safety
    /// `status` is MPI_STATUS_IGNORE or may be written.
    unsafe fn independent_on(
        self,
        object: &FileObject,
        status: *mut MpiStatus,
    ) -> Result<(), Error> {
        let moved = match self.fast_path(object) {
            Some(moved) => moved?,
            None => {
                let access = self.slow_path(object)?;
                match object.file.uses_atomic_lock() {
                    true => run(object, self.call, object.file.run_with_atomic_lock(&access))?,
                    false => object.file.run_blocking(&access, &WaitingCall::new(self.call))?,
                }
            }
        };
        // SAFETY: `status` is MPI_STATUS_IGNORE or may be written; the contract of this function says so.
        unsafe { store_status(status, &moved_bytes(moved)) };
        Ok(())
    }

    /// Carries out an independent access in the background. A short access is carried out at once, because a handover to another
    /// thread takes longer.
    ///
    /// # Safety
    /// `request` is NULL or may be written.
    unsafe fn independent_nonblocking(self, request: *mut Request) -> Result<(), Error> {
        room_for_request(request)?;
        let object = file(self.handle)?;
        let bytes = self.elements.plain().map(|data| data.len() as u64);
        let short = bytes.is_some_and(|bytes| object.file.is_short(self.spec.direction, bytes));
        let done = if short { self.fast_path(&object) } else { None };
        let active = match done {
            Some(done) => {
                let moved = *done.as_ref().unwrap_or(&0);
                let error = Cell::new(done.err());
                Active::External(Rc::new(AccessRequest::Complete { moved, error }))
            }
            None => {
                let access = self.slow_path(&object)?;
                let file = object.file.clone();
                start(&object, async move { file.run_background(access).await })
            }
        };
        // SAFETY: `request` is NULL or may be written; the contract of this function says so.
        unsafe { self.store_request(&object, active, request) }
    }

    /// Carries out a collective access.
    ///
    /// # Safety
    /// `status` is MPI_STATUS_IGNORE or may be written.
    unsafe fn collective(self, status: *mut MpiStatus) -> Result<(), Error> {
        let object = file_for_collective(self.handle)?;
        if object.file.is_collective_independent(self.spec) {
            // SAFETY: `status` is MPI_STATUS_IGNORE or may be written; the contract of this function says so.
            return unsafe { self.independent_on(&object, status) };
        }
        let data = self.data(&object)?;
        let access = object.file.collective(self.spec, Synchronism::Blocking, data)?;
        let moved = run(&object, self.call, access)?;
        // SAFETY: `status` is MPI_STATUS_IGNORE or may be written; the contract of this function says so.
        unsafe { store_status(status, &moved_bytes(moved)) };
        Ok(())
    }

    /// Starts a collective access in the background.
    fn start_collective(&self, object: &FileObject) -> Result<Active, Error> {
        let data = self.data(object)?;
        Ok(start(object, object.file.collective(self.spec, Synchronism::Nonblocking, data)?))
    }

    /// Carries out a collective access in the background.
    ///
    /// # Safety
    /// `request` is NULL or may be written.
    unsafe fn collective_nonblocking(self, request: *mut Request) -> Result<(), Error> {
        let object = file_for_collective(self.handle)?;
        room_for_request(request)?;
        let active = self.start_collective(&object)?;
        // SAFETY: `request` is NULL or may be written; the contract of this function says so.
        unsafe { self.store_request(&object, active, request) }
    }

    /// Begins a split collective access.
    fn begin(self) -> Result<(), Error> {
        let object = file_for_collective(self.handle)?;
        let active = self.start_collective(&object)?;
        *object.split.borrow_mut() = Some((self.call, active));
        Ok(())
    }

    /// # Safety
    /// `request` is NULL or may be written.
    unsafe fn store_request(
        &self,
        object: &FileObject,
        active: Active,
        request: *mut Request,
    ) -> Result<(), Error> {
        let (comm, belongs) = (object.file.comm(), Belongs::File(self.handle));
        // SAFETY: `request` is NULL or may be written; the contract of this function says so.
        unsafe { start_for(request, comm, belongs, active, RequestOrigin::File) }
    }
}

/// Starts a task for an access. If the file's representation calls functions of the program, only the program's own threads run the
/// task.
fn start(
    object: &FileObject,
    access: impl Future<Output = Result<u64, weft_process::Error>> + 'static,
) -> Active {
    let engine = object.file.comm().engine();
    let executor = match object.file.representation() {
        ours if ours.sizes.is_none() || ours.convert.is_some() => Executor::Anybody,
        _ => Executor::Program,
    };
    let moved = Rc::new(Cell::new(0));
    let result = moved.clone();
    let task = engine.spawn_by(executor, async move {
        result.set(access.await?);
        Ok(())
    });
    engine.note_nonblocking(&Active::Task(task.clone()));
    Active::External(Rc::new(AccessRequest::Active { task, moved }))
}

/// Ends a split collective access, which the function named `begin` has begun.
///
/// # Safety
/// `status` is MPI_STATUS_IGNORE or may be written.
unsafe fn end(
    fh: File,
    call: &'static str,
    begin: &'static str,
    status: *mut MpiStatus,
) -> Result<(), Error> {
    let object = file(fh)?;
    let begun = object.split.borrow().as_ref().map(|(begun, _)| *begun);
    if begun != Some(begin) {
        let text = match begun {
            None => format!("no split collective access was begun: call {begin} before {call}"),
            Some(begun) => {
                format!("{begun} has begun a split collective access, which {call} does not end")
            }
        };
        return Err(Error::new(MPI_ERR_OTHER, text));
    }
    let Some((_, mut active)) = object.split.borrow_mut().take() else { return Ok(()) };
    let engine = object.file.comm().engine();
    let outcome = engine.drive(&WaitingCall::new(call), || active.poll(engine.endpoint()));
    // SAFETY: `status` is MPI_STATUS_IGNORE or may be written; the contract of this function says so.
    unsafe { store_status(status, &outcome.status) };
    outcome.error.map_or(Ok(()), |error| Err(error.into()))
}

/// Defines the five forms of an access: independent, independent nonblocking, collective, and the two halves of a split collective
/// access. Parameters are the names of the forms, the direction, the C type of the buffer, the parameter for an offset, and the
/// positioning.
macro_rules! forms {
    ($(#[$names:meta])*
    $independent:ident $nonblocking:ident $collective:ident $begin:ident $end:ident
        ($independent_name:literal $nonblocking_name:literal $collective_name:literal $begin_name:literal
        $end_name:literal: $direction:ident, $pointer:ty, ($($offset:ident: $ty:ty)?), $positioning:expr)) => {
        $(#[$names])*
        pub(crate) unsafe fn $independent(
            fh: File, $($offset: $ty,)? buf: $pointer, count: i64, datatype: Datatype, status: *mut MpiStatus,
        ) -> Result<(), Error> {
            let spec = AccessSpec::$direction($positioning);
            // SAFETY: the program passes `count` elements, and a status or MPI_STATUS_IGNORE.
            unsafe { Access::new($independent_name, fh, spec, buf, count, datatype).independent(status) }
        }

        pub(crate) unsafe fn $nonblocking(
            fh: File, $($offset: $ty,)? buf: $pointer, count: i64, datatype: Datatype, request: *mut Request,
        ) -> Result<(), Error> {
            let spec = AccessSpec::$direction($positioning);
            // SAFETY: the program keeps the `count` elements until the operation is complete, and `request` is NULL or may be
            // written.
            unsafe {
                let access = Access::new($nonblocking_name, fh, spec, buf, count, datatype);
                access.independent_nonblocking(request)
            }
        }

        pub(crate) unsafe fn $collective(
            fh: File, $($offset: $ty,)? buf: $pointer, count: i64, datatype: Datatype, status: *mut MpiStatus,
        ) -> Result<(), Error> {
            let spec = AccessSpec::$direction($positioning);
            // SAFETY: the program passes `count` elements, and a status or MPI_STATUS_IGNORE.
            unsafe { Access::new($collective_name, fh, spec, buf, count, datatype).collective(status) }
        }

        pub(crate) unsafe fn $begin(
            fh: File, $($offset: $ty,)? buf: $pointer, count: i64, datatype: Datatype,
        ) -> Result<(), Error> {
            let spec = AccessSpec::$direction($positioning);
            // SAFETY: the program keeps the `count` elements until the operation is complete.
            unsafe { Access::new($begin_name, fh, spec, buf, count, datatype).begin() }
        }

        pub(crate) unsafe fn $end(fh: File, _: $pointer, status: *mut MpiStatus) -> Result<(), Error> {
            // SAFETY: the program passes a status or MPI_STATUS_IGNORE.
            unsafe { end(fh, $end_name, $begin_name, status) }
        }
    };
}

/// Defines the nonblocking collective form, which accesses at the shared pointer do not have.
macro_rules! collective_nonblocking {
    ($(#[$names:meta])* $name:ident ($call:literal: $direction:ident, $pointer:ty, ($($offset:ident: $ty:ty)?), $positioning:expr)) => {
        $(#[$names])*
        pub(crate) unsafe fn $name(
            fh: File, $($offset: $ty,)? buf: $pointer, count: i64, datatype: Datatype, request: *mut Request,
        ) -> Result<(), Error> {
            let spec = AccessSpec::$direction($positioning);
            // SAFETY: the program keeps the `count` elements until the operation is complete, and `request` is NULL or may be
            // written.
            unsafe { Access::new($call, fh, spec, buf, count, datatype).collective_nonblocking(request) }
        }
    };
}

forms! {
    /// MPI_File_iread_at, MPI_File_iread_at_c, MPI_File_read_at, MPI_File_read_at_all,
    /// MPI_File_read_at_all_begin, MPI_File_read_at_all_begin_c, MPI_File_read_at_all_c,
    /// MPI_File_read_at_all_end, MPI_File_read_at_c.
    file_read_at file_iread_at file_read_at_all file_read_at_all_begin file_read_at_all_end (
    "MPI_File_read_at" "MPI_File_iread_at" "MPI_File_read_at_all" "MPI_File_read_at_all_begin"
    "MPI_File_read_at_all_end": read, *mut c_void, (offset: i64), Positioning::Explicit(offset))
}
forms! {
    /// MPI_File_iwrite_at, MPI_File_iwrite_at_c, MPI_File_write_at, MPI_File_write_at_all,
    /// MPI_File_write_at_all_begin, MPI_File_write_at_all_begin_c, MPI_File_write_at_all_c,
    /// MPI_File_write_at_all_end, MPI_File_write_at_c.
    file_write_at file_iwrite_at file_write_at_all file_write_at_all_begin file_write_at_all_end (
    "MPI_File_write_at" "MPI_File_iwrite_at" "MPI_File_write_at_all" "MPI_File_write_at_all_begin"
    "MPI_File_write_at_all_end": write, *const c_void, (offset: i64), Positioning::Explicit(offset))
}
forms! {
    /// MPI_File_iread, MPI_File_iread_c, MPI_File_read, MPI_File_read_all, MPI_File_read_all_begin,
    /// MPI_File_read_all_begin_c, MPI_File_read_all_c, MPI_File_read_all_end, MPI_File_read_c.
    file_read file_iread file_read_all file_read_all_begin file_read_all_end (
    "MPI_File_read" "MPI_File_iread" "MPI_File_read_all" "MPI_File_read_all_begin"
    "MPI_File_read_all_end": read, *mut c_void, (), Positioning::Individual)
}
forms! {
    /// MPI_File_iwrite, MPI_File_iwrite_c, MPI_File_write, MPI_File_write_all,
    /// MPI_File_write_all_begin, MPI_File_write_all_begin_c, MPI_File_write_all_c,
    /// MPI_File_write_all_end, MPI_File_write_c.
    file_write file_iwrite file_write_all file_write_all_begin file_write_all_end (
    "MPI_File_write" "MPI_File_iwrite" "MPI_File_write_all" "MPI_File_write_all_begin"
    "MPI_File_write_all_end": write, *const c_void, (), Positioning::Individual)
}
forms! {
    /// MPI_File_iread_shared, MPI_File_iread_shared_c, MPI_File_read_ordered,
    /// MPI_File_read_ordered_begin, MPI_File_read_ordered_begin_c, MPI_File_read_ordered_c,
    /// MPI_File_read_ordered_end, MPI_File_read_shared, MPI_File_read_shared_c.
    file_read_shared file_iread_shared file_read_ordered file_read_ordered_begin file_read_ordered_end (
    "MPI_File_read_shared" "MPI_File_iread_shared" "MPI_File_read_ordered" "MPI_File_read_ordered_begin"
    "MPI_File_read_ordered_end": read, *mut c_void, (), Positioning::Shared)
}
forms! {
    /// MPI_File_iwrite_shared, MPI_File_iwrite_shared_c, MPI_File_write_ordered,
    /// MPI_File_write_ordered_begin, MPI_File_write_ordered_begin_c, MPI_File_write_ordered_c,
    /// MPI_File_write_ordered_end, MPI_File_write_shared, MPI_File_write_shared_c.
    file_write_shared file_iwrite_shared file_write_ordered file_write_ordered_begin file_write_ordered_end (
    "MPI_File_write_shared" "MPI_File_iwrite_shared" "MPI_File_write_ordered" "MPI_File_write_ordered_begin"
    "MPI_File_write_ordered_end": write, *const c_void, (), Positioning::Shared)
}
collective_nonblocking! {
    /// MPI_File_iread_at_all, MPI_File_iread_at_all_c.
    file_iread_at_all ("MPI_File_iread_at_all":
    read, *mut c_void, (offset: i64), Positioning::Explicit(offset))
}
collective_nonblocking! {
    /// MPI_File_iwrite_at_all, MPI_File_iwrite_at_all_c.
    file_iwrite_at_all ("MPI_File_iwrite_at_all":
    write, *const c_void, (offset: i64), Positioning::Explicit(offset))
}
collective_nonblocking! {
    /// MPI_File_iread_all, MPI_File_iread_all_c.
    file_iread_all ("MPI_File_iread_all": read, *mut c_void, (), Positioning::Individual)
}
collective_nonblocking! {
    /// MPI_File_iwrite_all, MPI_File_iwrite_all_c.
    file_iwrite_all ("MPI_File_iwrite_all": write, *const c_void, (), Positioning::Individual)
}
