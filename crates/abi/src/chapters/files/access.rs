//! Reads and writes, in all their forms (MPI 5.0, section 14.4).

use super::{file, no_split, run};
use crate::arguments::{BUF, room_for_request, store_status};
use crate::chapters::files::representations;
use crate::constants::*;
use crate::elements::Elements;
use crate::error::Error;
use crate::objects::{Belongs, FileObject, RequestKind};
use crate::requests::start_for;
use crate::status::Status;
use crate::types::{Datatype, File, Request};
use crate::waiting::Call;
use std::cell::Cell;
use std::ffi::c_void;
use std::rc::Rc;
use weft_io::{Convert, Direction, Operation, Place};
use weft_process::{Active, Buffer, Executor, External, Outcome, Task};

/// A transfer under way: what a request looks at.
struct Moving {
    task: Task,
    /// Bytes that were moved, once it is over.
    moved: Rc<Cell<u64>>,
}

fn moved_bytes(bytes: u64) -> weft_process::Status {
    weft_process::Status { bytes: bytes as usize as _, ..Default::default() }
}

impl External for Moving {
    fn poll(&self) -> Option<Outcome> {
        if !self.task.is_over() {
            return None;
        }
        let error = self.task.result().and_then(Result::err);
        Some(Outcome { status: moved_bytes(self.moved.get()), error })
    }

    fn is_over(&self) -> bool {
        self.task.is_over()
    }

    fn peek(&self) -> Option<Outcome> {
        self.is_over().then(|| Outcome::of(moved_bytes(self.moved.get())))
    }

    fn cancel(&self) -> Result<(), weft_process::Error> {
        Err(no_cancel())
    }

    fn release(&self) -> Result<(), weft_process::Error> {
        Ok(())
    }
}

/// One that was over before the program had its request.
struct Over {
    moved: u64,
    error: Cell<Option<weft_process::Error>>,
}

impl External for Over {
    fn poll(&self) -> Option<Outcome> {
        Some(Outcome { status: moved_bytes(self.moved), error: self.error.take() })
    }

    fn is_over(&self) -> bool {
        true
    }

    fn peek(&self) -> Option<Outcome> {
        Some(Outcome::of(moved_bytes(self.moved)))
    }

    fn cancel(&self) -> Result<(), weft_process::Error> {
        Err(no_cancel())
    }

    fn release(&self) -> Result<(), weft_process::Error> {
        Ok(())
    }
}

fn no_cancel() -> weft_process::Error {
    let text = "an operation on a file cannot be cancelled (MPI 5.0, section 14.6.5)";
    weft_process::Error::new(MPI_ERR_REQUEST, text)
}

/// What a function is given, checked.
struct Given {
    object: Rc<FileObject>,
    handle: File,
    buffer: Buffer,
    convert: Option<Rc<dyn Convert>>,
}

impl Given {
    /// # Safety
    /// The program promises the memory until the operation is over.
    unsafe fn new(
        fh: File,
        address: *const c_void,
        count: i64,
        datatype: Datatype,
    ) -> Result<Given, Error> {
        // SAFETY: by contract.
        let data = unsafe { Elements::new(address, count, datatype, BUF) };
        Given::of(fh, file(fh)?, data)
    }

    fn of(handle: File, object: Rc<FileObject>, data: Elements) -> Result<Given, Error> {
        let buffer = data.buffer()?;
        let convert = representations::conversion(&object.file, data.address);
        Ok(Given { object, handle, buffer, convert })
    }

    /// Which threads may move it on: functions of the program are called by its own alone.
    fn by(&self) -> Executor {
        match self.object.file.representation() {
            ours if ours.sizes.is_none() || ours.convert.is_some() => Executor::Anybody,
            _ => Executor::Program,
        }
    }

    /// An access of this rank alone, at its place.
    fn operation(&self, call: &'static str, way: (Direction, Place)) -> Result<Operation, Error> {
        let Given { object, buffer, convert, .. } = self;
        match object.file.alone(way, buffer, convert) {
            Some(operation) => Ok(operation?),
            None => {
                let (buffer, convert) = (buffer.clone(), convert.clone());
                run(object, call, object.file.alone_shared(way.0, buffer, convert))
            }
        }
    }

    /// An access of this rank alone.
    ///
    /// # Safety
    /// `status` is MPI_STATUS_IGNORE or may be written.
    unsafe fn alone(
        self,
        call: &'static str,
        way: (Direction, Place),
        status: *mut Status,
    ) -> Result<(), Error> {
        let operation = self.operation(call, way)?;
        let file = &self.object.file;
        let moved = match file.waits() {
            true => run(&self.object, call, file.run_waiting(&operation))?,
            false => file.run_here(&operation, &Call::new(call))?,
        };
        // SAFETY: `status` points to room for the result, as MPI requires of the program.
        unsafe { store_status(status, &moved_bytes(moved)) };
        Ok(())
    }

    /// The same beside the program.
    ///
    /// # Safety
    /// `request` is NULL or may be written.
    unsafe fn alone_beside(
        self,
        call: &'static str,
        way: (Direction, Place),
        request: *mut Request,
    ) -> Result<(), Error> {
        let by = self.by();
        let operation = self.operation(call, way)?;
        let Given { object, handle, .. } = self;
        let file = object.file.clone();
        let active = moving(&object, by, async move { file.run_beside(operation).await });
        // SAFETY: by contract.
        unsafe { requested(&object, handle, active, request) }
    }

    fn begin(
        self,
        (direction, place): (Direction, Place),
    ) -> Result<(Rc<FileObject>, Active), Error> {
        let by = self.by();
        let Given { object, buffer, convert, .. } = self;
        no_split(&object)?;
        let access = object.file.together((direction, place, true), buffer, convert)?;
        let active = moving(&object, by, access);
        Ok((object, active))
    }

    /// The same beside the program.
    ///
    /// # Safety
    /// `request` is NULL or may be written.
    unsafe fn together_beside(
        self,
        way: (Direction, Place),
        request: *mut Request,
    ) -> Result<(), Error> {
        room_for_request(request)?;
        let handle = self.handle;
        let (object, active) = self.begin(way)?;
        // SAFETY: by contract.
        unsafe { requested(&object, handle, active, request) }
    }

    /// Begins a split access.
    fn split(self, call: &'static str, way: (Direction, Place)) -> Result<(), Error> {
        let (object, active) = self.begin(way)?;
        *object.split.borrow_mut() = Some((call, active));
        Ok(())
    }
}

/// The usual access of this rank alone, done without the steps of all others; `None`, and nothing is done, if it is any other.
///
/// # Safety
/// As for [`Given::new`], and [`Given::alone`].
unsafe fn at_once(
    call: &'static str,
    object: &FileObject,
    data: Elements,
    way: (Direction, Place),
    status: *mut Status,
) -> Option<Result<(), Error>> {
    let moved = object.file.at_once(way, data.plain()?, &Call::new(call))?;
    let store = |moved| {
        // SAFETY: `status` points to room for the result, as MPI requires of the program.
        unsafe { store_status(status, &moved_bytes(moved)) };
    };
    Some(moved.map(store).map_err(Error::from))
}

/// An access of this rank alone.
///
/// # Safety
/// `status` is MPI_STATUS_IGNORE or may be written.
unsafe fn alone(
    call: &'static str,
    (fh, data): (File, Elements),
    way: (Direction, Place),
    status: *mut Status,
) -> Result<(), Error> {
    let object = file(fh)?;
    // SAFETY: by contract.
    unsafe {
        match at_once(call, &object, data, way, status) {
            Some(done) => done,
            None => Given::of(fh, object, data)?.alone(call, way, status),
        }
    }
}

/// An access of this rank alone, beside the program; at once, if to do that later would take longer.
///
/// # Safety
/// `request` is NULL or may be written.
unsafe fn alone_beside(
    call: &'static str,
    (fh, data): (File, Elements),
    way: (Direction, Place),
    request: *mut Request,
) -> Result<(), Error> {
    room_for_request(request)?;
    let object = file(fh)?;
    let short = data.plain().filter(|data| object.file.is_short(way.0, data.len() as u64));
    let done = short.and_then(|data| object.file.at_once(way, data, &Call::new(call)));
    // SAFETY: by contract.
    unsafe {
        let Some(done) = done else {
            return Given::of(fh, object, data)?.alone_beside(call, way, request);
        };
        let (moved, error) = match done {
            Ok(moved) => (moved, None),
            Err(error) => (0, Some(error)),
        };
        let active = Active::External(Rc::new(Over { moved, error: Cell::new(error) }));
        requested(&object, fh, active, request)
    }
}

/// An access of all ranks.
///
/// # Safety
/// `status` is MPI_STATUS_IGNORE or may be written.
unsafe fn together(
    call: &'static str,
    (fh, data): (File, Elements),
    way: (Direction, Place),
    status: *mut Status,
) -> Result<(), Error> {
    let object = file(fh)?;
    no_split(&object)?;
    if !object.file.is_each_its_own(way) {
        let Given { object, buffer, convert, .. } = Given::of(fh, object, data)?;
        let access = object.file.together((way.0, way.1, false), buffer, convert)?;
        let moved = run(&object, call, access)?;
        // SAFETY: `status` points to room for the result, as MPI requires of the program.
        unsafe { store_status(status, &moved_bytes(moved)) };
        return Ok(());
    }
    // SAFETY: by contract.
    unsafe { alone(call, (fh, data), way, status) }
}

/// Starts a transfer.
fn moving(
    object: &FileObject,
    by: Executor,
    access: impl Future<Output = Result<u64, weft_process::Error>> + 'static,
) -> Active {
    let engine = object.file.comm().engine();
    let moved = Rc::new(Cell::new(0));
    let told = moved.clone();
    let task = engine.spawn_by(by, async move {
        told.set(access.await?);
        Ok(())
    });
    engine.note_nonblocking(&Active::Task(task.clone()));
    Active::External(Rc::new(Moving { task, moved }))
}

/// # Safety
/// `request` is NULL or may be written.
unsafe fn requested(
    object: &FileObject,
    handle: File,
    active: Active,
    request: *mut Request,
) -> Result<(), Error> {
    let (comm, belongs) = (object.file.comm(), Belongs::File(handle));
    // SAFETY: by contract.
    unsafe { start_for(request, comm, belongs, active, RequestKind::File) }
}

/// Ends a split access that `begin` has begun.
///
/// # Safety
/// `status` is MPI_STATUS_IGNORE or may be written.
unsafe fn end(
    fh: File,
    (call, begin): (&'static str, &'static str),
    status: *mut Status,
) -> Result<(), Error> {
    let object = file(fh)?;
    let begun = object.split.borrow().as_ref().map(|(begun, _)| *begun);
    if begun != Some(begin) {
        let what = begun.map_or_else(
            || "no split collective access was begun".to_owned(),
            |begun| format!("{begun} has begun one, which has an end of its own"),
        );
        return Err(Error::new(MPI_ERR_OTHER, format_args!("{what}: {begin} comes before {call}")));
    }
    let Some((_, mut active)) = object.split.borrow_mut().take() else { return Ok(()) };
    let engine = object.file.comm().engine();
    let outcome = engine.drive(&Call::new(call), || active.poll(engine.endpoint()));
    // SAFETY: `status` points to room for the result, as MPI requires of the program.
    unsafe { store_status(status, &outcome.status) };
    outcome.error.map_or(Ok(()), |error| Err(error.into()))
}

/// The forms of an access: names, which way, the pointer that C has for the buffer, the offset's parameter if there is one,
/// and where the access begins.
macro_rules! forms {
    ($(#[$names:meta])*
    $alone:ident $alone_beside:ident $together:ident $begin:ident $end:ident ($alone_name:literal
        $alone_beside_name:literal $together_name:literal $begin_name:literal $end_name:literal:
        $way:ident, $pointer:ty, ($($offset:ident: $ty:ty)?), $place:expr)) => {
        $(#[$names])*
        pub(crate) unsafe fn $alone(
            fh: File, $($offset: $ty,)? buf: $pointer, count: i64, datatype: Datatype, status: *mut Status,
        ) -> Result<(), Error> {
            // SAFETY: the caller's buffer and status.
            unsafe {
                let data = Elements::new(buf, count, datatype, BUF);
                alone($alone_name, (fh, data), (Direction::$way, $place), status)
            }
        }

        pub(crate) unsafe fn $alone_beside(
            fh: File, $($offset: $ty,)? buf: $pointer, count: i64, datatype: Datatype, request: *mut Request,
        ) -> Result<(), Error> {
            // SAFETY: the caller's buffer and request.
            unsafe {
                let data = Elements::new(buf, count, datatype, BUF);
                alone_beside($alone_beside_name, (fh, data), (Direction::$way, $place), request)
            }
        }

        pub(crate) unsafe fn $together(
            fh: File, $($offset: $ty,)? buf: $pointer, count: i64, datatype: Datatype, status: *mut Status,
        ) -> Result<(), Error> {
            // SAFETY: the caller's buffer and status.
            unsafe {
                let data = Elements::new(buf, count, datatype, BUF);
                together($together_name, (fh, data), (Direction::$way, $place), status)
            }
        }

        pub(crate) unsafe fn $begin(
            fh: File, $($offset: $ty,)? buf: $pointer, count: i64, datatype: Datatype,
        ) -> Result<(), Error> {
            // SAFETY: the caller's buffer.
            let given = unsafe { Given::new(fh, buf, count, datatype)? };
            given.split($begin_name, (Direction::$way, $place))
        }

        pub(crate) unsafe fn $end(fh: File, _: $pointer, status: *mut Status) -> Result<(), Error> {
            // SAFETY: the caller's status.
            unsafe { end(fh, ($end_name, $begin_name), status) }
        }
    };
}

/// The nonblocking form for all ranks, which those at the shared pointer have not.
macro_rules! beside {
    ($(#[$names:meta])* $name:ident ($way:ident, $pointer:ty, ($($offset:ident: $ty:ty)?), $place:expr)) => {
        $(#[$names])*
        pub(crate) unsafe fn $name(
            fh: File, $($offset: $ty,)? buf: $pointer, count: i64, datatype: Datatype, request: *mut Request,
        ) -> Result<(), Error> {
            // SAFETY: the caller's buffer and request.
            unsafe {
                let given = Given::new(fh, buf, count, datatype)?;
                given.together_beside((Direction::$way, $place), request)
            }
        }
    };
}

forms! {
    /// MPI_File_iread_at, MPI_File_iread_at_c, MPI_File_read_at, MPI_File_read_at_all,
    /// MPI_File_read_at_all_begin, MPI_File_read_at_all_begin_c, MPI_File_read_at_all_c,
    /// MPI_File_read_at_all_end, MPI_File_read_at_c.
    file_read_at file_iread_at file_read_at_all file_read_at_all_begin file_read_at_all_end (
    "MPI_File_read_at" "MPI_File_iread_at" "MPI_File_read_at_all" "MPI_File_read_at_all_begin"
    "MPI_File_read_at_all_end": Read, *mut c_void, (offset: i64), Place::At(offset))
}
forms! {
    /// MPI_File_iwrite_at, MPI_File_iwrite_at_c, MPI_File_write_at, MPI_File_write_at_all,
    /// MPI_File_write_at_all_begin, MPI_File_write_at_all_begin_c, MPI_File_write_at_all_c,
    /// MPI_File_write_at_all_end, MPI_File_write_at_c.
    file_write_at file_iwrite_at file_write_at_all file_write_at_all_begin file_write_at_all_end (
    "MPI_File_write_at" "MPI_File_iwrite_at" "MPI_File_write_at_all" "MPI_File_write_at_all_begin"
    "MPI_File_write_at_all_end": Write, *const c_void, (offset: i64), Place::At(offset))
}
forms! {
    /// MPI_File_iread, MPI_File_iread_c, MPI_File_read, MPI_File_read_all, MPI_File_read_all_begin,
    /// MPI_File_read_all_begin_c, MPI_File_read_all_c, MPI_File_read_all_end, MPI_File_read_c.
    file_read file_iread file_read_all file_read_all_begin file_read_all_end (
    "MPI_File_read" "MPI_File_iread" "MPI_File_read_all" "MPI_File_read_all_begin"
    "MPI_File_read_all_end": Read, *mut c_void, (), Place::Own)
}
forms! {
    /// MPI_File_iwrite, MPI_File_iwrite_c, MPI_File_write, MPI_File_write_all,
    /// MPI_File_write_all_begin, MPI_File_write_all_begin_c, MPI_File_write_all_c,
    /// MPI_File_write_all_end, MPI_File_write_c.
    file_write file_iwrite file_write_all file_write_all_begin file_write_all_end (
    "MPI_File_write" "MPI_File_iwrite" "MPI_File_write_all" "MPI_File_write_all_begin"
    "MPI_File_write_all_end": Write, *const c_void, (), Place::Own)
}
forms! {
    /// MPI_File_iread_shared, MPI_File_iread_shared_c, MPI_File_read_ordered,
    /// MPI_File_read_ordered_begin, MPI_File_read_ordered_begin_c, MPI_File_read_ordered_c,
    /// MPI_File_read_ordered_end, MPI_File_read_shared, MPI_File_read_shared_c.
    file_read_shared file_iread_shared file_read_ordered file_read_ordered_begin file_read_ordered_end (
    "MPI_File_read_shared" "MPI_File_iread_shared" "MPI_File_read_ordered" "MPI_File_read_ordered_begin"
    "MPI_File_read_ordered_end": Read, *mut c_void, (), Place::Shared)
}
forms! {
    /// MPI_File_iwrite_shared, MPI_File_iwrite_shared_c, MPI_File_write_ordered,
    /// MPI_File_write_ordered_begin, MPI_File_write_ordered_begin_c, MPI_File_write_ordered_c,
    /// MPI_File_write_ordered_end, MPI_File_write_shared, MPI_File_write_shared_c.
    file_write_shared file_iwrite_shared file_write_ordered file_write_ordered_begin file_write_ordered_end (
    "MPI_File_write_shared" "MPI_File_iwrite_shared" "MPI_File_write_ordered" "MPI_File_write_ordered_begin"
    "MPI_File_write_ordered_end": Write, *const c_void, (), Place::Shared)
}
beside! {
    /// MPI_File_iread_at_all, MPI_File_iread_at_all_c.
    file_iread_at_all (Read, *mut c_void, (offset: i64), Place::At(offset))
}
beside! {
    /// MPI_File_iwrite_at_all, MPI_File_iwrite_at_all_c.
    file_iwrite_at_all (Write, *const c_void, (offset: i64), Place::At(offset))
}
beside! {
    /// MPI_File_iread_all, MPI_File_iread_all_c.
    file_iread_all(Read, *mut c_void, (), Place::Own)
}
beside! {
    /// MPI_File_iwrite_all, MPI_File_iwrite_all_c.
    file_iwrite_all(Write, *const c_void, (), Place::Own)
}
