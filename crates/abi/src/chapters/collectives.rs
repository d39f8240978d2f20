//! Collective communication (MPI 5.0, chapter 6): each operation once, run in place, in the
//! nonblocking_context, or again and again.

use crate::arguments::{buffer, comm, count, optional_info, root};
use crate::chapters::messages::{persist, start};
use crate::constants::*;
use crate::error::Error;
use crate::node::CommObject;
use crate::objects::RequestKind;
use crate::settings;
use crate::types::{Comm, Datatype, Info, Request};
use crate::waiting::Call;
use crate::widen::Counts;
use smallvec::SmallVec;
use std::ffi::{c_int, c_void};
use std::rc::Rc;
use weft_collective::{Operation, Selection, maps};
use weft_process::{Active, Buffer, Executor, Root, Running};

/// The algorithms, and the map, that the settings name.
pub fn selection() -> Result<Selection, String> {
    let named = settings::words(MAP)?;
    let mut selection = match named.to_ascii_lowercase().as_str() {
        "none" | "auto" => Selection::default(),
        _ => Selection::by(Rc::new(maps::load(&named).map_err(|e| format!("{MAP}={named}: {e}"))?)),
    };
    for operation in Operation::ALL {
        let name = settings::algorithm(operation);
        let text = settings::words(name)?;
        selection.ask_for(operation, &text).map_err(|why| format!("{name}={text}: {why}"))?;
    }
    Ok(selection)
}

/// The setting that names the map.
pub const MAP: &str = "WEFT_MAP";

/// The maps that serve where none is named: that of shared memory and, unless all ranks are of the
/// `same_node`, that of a network.
pub fn usual_maps(selection: &mut Selection, same_node: bool) -> Result<(), String> {
    if !settings::words(MAP)?.eq_ignore_ascii_case("auto") {
        return Ok(());
    }
    let load = |name| maps::load(name).map(Rc::new).map_err(|e| e.to_string());
    let apart = if same_node { None } else { Some(load(maps::APART)?) };
    selection.use_maps(Some(load(maps::TOGETHER)?), apart);
    Ok(())
}

/// Makes an operation on a communicator, or on a view of it, as often as it is started.
pub(crate) trait Make: 'static {
    type Operation: Running;

    fn make(&self, on: Rc<CommObject>) -> Self::Operation;
}

impl<M, R> Make for M
where
    M: Fn(Rc<CommObject>) -> R + 'static,
    R: Running,
{
    type Operation = R;

    fn make(&self, on: Rc<CommObject>) -> R {
        self(on)
    }
}

/// An operation whose arguments are right: on which communicator, who may run it in the nonblocking_context,
/// and how it is made.
pub(crate) struct Ready<M> {
    comm: Rc<CommObject>,
    by: Executor,
    make: M,
}

/// Counts an operation as started, for the tool interface.
macro_rules! tally {
    ($name:literal, $comm:expr) => {{
        use crate::chapters::tools::started;
        started::count(const { started::kind($name) }, $comm)
    }};
}

/// Defines an operation in its three forms from one function that prepares it: `prepare` checks the
/// arguments; `at once` names a shorter way for most blocking calls. Blocking ones run on the caller's stack; a persistent one is boxed once, not at each start.
macro_rules! operation {
    (
        $name:literal $blocking:ident $nonblocking:ident $persistent:ident
        ($($arg:ident: $ty:ty),* $(,)?) $prepare:path
    ) => {
        operation!(@ $name $blocking $nonblocking $persistent ($($arg: $ty),*) $prepare {});
    };
    (
        $name:literal $blocking:ident $nonblocking:ident $persistent:ident
        ($($arg:ident: $ty:ty),* $(,)?) $prepare:path, at once by $at_once:path
    ) => {
        operation!(@ $name $blocking $nonblocking $persistent ($($arg: $ty),*) $prepare {
            // SAFETY: the caller's buffers stay until the call returns.
            if let Some(outcome) = unsafe { $at_once($($arg),*) } {
                return outcome;
            }
        });
    };
    (
        @ $name:literal $blocking:ident $nonblocking:ident $persistent:ident
        ($($arg:ident: $ty:ty),*) $prepare:path { $($first:tt)* }
    ) => {
        pub(crate) unsafe fn $blocking($($arg: $ty),*) -> Result<(), Error> {
            $($first)*
            // SAFETY: the caller's buffers stay until this returns.
            let Ready { comm, make, .. } = unsafe { $prepare($($arg),*) }?;
            tally!($name, &comm);
            let engine = comm.engine().clone();
            // Pinned where it is made: it need not be moved.
            let operation = std::pin::pin!(make.make(comm));
            Ok(engine.block_on(&Call::new($name), operation)?)
        }

        pub(crate) unsafe fn $nonblocking(
            $($arg: $ty,)*
            request: *mut Request,
        ) -> Result<(), Error> {
            crate::arguments::room_for_request(request)?;
            // SAFETY: the caller's buffers stay until the request is over.
            unsafe {
                let Ready { comm, by, make } = $prepare($($arg),*)?;
                tally!($name, &comm);
                let task = comm.engine().spawn_by(by, make.make(comm.nonblocking_context().clone()));
                start(request, &comm, Active::Task(task), RequestKind::Collective)
            }
        }

        pub(crate) unsafe fn $persistent(
            $($arg: $ty,)*
            info: Info,
            request: *mut Request,
        ) -> Result<(), Error> {
            crate::arguments::room_for_request(request)?;
            optional_info(info)?;
            // SAFETY: the caller's buffers stay while the request is active.
            unsafe {
                let Ready { comm, by, make } = $prepare($($arg),*)?;
                // Matched here, not by the order of the starts (MPI 5.0, section 6.13).
                let context = comm.persistent_context();
                let operation = weft_process::PersistentTask::new(by, move || make.make(context.clone()));
                let on = comm.clone();
                let recipe = move || {
                    tally!($name, &on);
                    Ok(Active::Task(on.engine().start(&operation)))
                };
                persist(request, &comm, recipe, RequestKind::Collective)
            }
        }
    };
}

type Prepared<M> = Result<Ready<M>, Error>;

/// An operation that any thread of the library may move on.
fn ready<M: Make>(comm: Rc<CommObject>, make: M) -> Prepared<M> {
    ready_by(Executor::Anybody, comm, make)
}

/// The same for one that may call functions of the program.
fn ready_by<M: Make>(by: Executor, comm: Rc<CommObject>, make: M) -> Prepared<M> {
    Ok(Ready { comm, by, make })
}

mod at_once;
pub(crate) mod blocks;
pub(crate) mod neighbors;
pub(crate) mod reductions;

unsafe fn prepare_barrier(handle: Comm) -> Prepared<impl Make> {
    ready(comm(handle)?, |c: Rc<CommObject>| c.barrier())
}

operation!("MPI_Barrier" barrier ibarrier barrier_init (handle: Comm) prepare_barrier,
    at once by at_once::barrier);

unsafe fn prepare_bcast(
    buf: *mut c_void,
    n: i64,
    datatype: Datatype,
    root_: c_int,
    handle: Comm,
) -> Prepared<impl Make> {
    let comm = comm(handle)?;
    let root = root(&comm, root_)?;
    // Beside the root the buffer means nothing.
    let (buf, n, datatype) = match root {
        Root::Beside => (std::ptr::null_mut(), 0, MPI_BYTE),
        _ => (buf, n, datatype),
    };
    // SAFETY: the caller's buffer.
    let data = unsafe { buffer(buf, n, datatype, ["buffer", "count", "datatype"]) }?;
    ready(comm, move |c: Rc<CommObject>| c.bcast(data.clone(), root))
}

operation!("MPI_Bcast" bcast ibcast bcast_init
    (buf: *mut c_void, n: i64, datatype: Datatype, root: c_int, handle: Comm) prepare_bcast,
    at once by at_once::bcast);

/// A buffer that may be `MPI_IN_PLACE`, which is `None`, but not where there are two groups.
///
/// # Safety
/// As for [`buffer`].
unsafe fn in_place(
    comm: &CommObject,
    buf: *const c_void,
    n: i64,
    datatype: Datatype,
    names: [&'static str; 3],
) -> Result<Option<Buffer>, Error> {
    if is_in_place(comm, buf, names[0])? {
        return Ok(None);
    }
    // SAFETY: by contract.
    unsafe { buffer(buf, n, datatype, names) }.map(Some)
}

fn is_in_place(comm: &CommObject, buf: *const c_void, name: &str) -> Result<bool, Error> {
    let yes = buf.addr() == MPI_IN_PLACE;
    if yes && comm.remote().is_some() {
        let text = format!("argument {name} is MPI_IN_PLACE, which intercommunicators do not have");
        return Err(Error::new(MPI_ERR_BUFFER, text));
    }
    Ok(yes)
}

/// One count a rank, without a heap for few ranks.
type CountArray = SmallVec<[usize; 8]>;

/// One count a rank, none negative.
///
/// # Safety
/// The array is NULL or has `n` counts.
unsafe fn count_array(counts: Counts, n: usize, name: &str) -> Result<CountArray, Error> {
    if counts.is_null() && n > 0 {
        return Err(Error::new(MPI_ERR_ARG, format_args!("argument {name} is NULL")));
    }
    let one = |i| {
        // SAFETY: by contract.
        let value = unsafe { counts.get(i) };
        usize::try_from(value).or_else(|_| count(value, &format!("{name}[{i}]")))
    };
    (0..n).map(one).collect()
}
