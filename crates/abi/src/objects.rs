//! Objects behind handles, except communicators and groups.

use crate::callback::CallbackPointer;
use crate::constants::*;
use crate::engine::{CommObject, JobFabric};
use crate::error::{Error, Owner};
use crate::types::{
    CommCopyAttrFunction, CommDeleteAttrFunction, CommErrhandlerFunction, Datatype, File,
    FileErrhandlerFunction, Session, SessionErrhandlerFunction, UserFunction, UserFunctionC, Win,
    WinErrhandlerFunction,
};
use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::ffi::{c_int, c_void};
use std::rc::Rc;
use weft_datatype::Type;
use weft_fabric::Sge;
use weft_process::{Active, Attributes};
use weft_rma::WindowFlavor;

/// A datatype with the attributes that the program caches on it.
pub struct TypeObject {
    /// The datatype, compiled for copying and packing.
    pub ty: Type,
    /// Handle of the datatype.
    pub handle: Cell<Datatype>,
    /// True if the standard defines the datatype. Such a datatype is never freed.
    pub predefined: bool,
    /// Attributes that the program caches on the datatype, by key.
    pub attributes: RefCell<Attributes>,
}

/// A reduction operator.
pub enum OpObject {
    Predefined(weft_datatype::PredefinedOp),
    User { function: UserReduction, commutes: bool },
}

/// A program's reduction function.
#[derive(Clone, Copy)]
pub enum UserReduction {
    Int(CallbackPointer<UserFunction>),
    Count(CallbackPointer<UserFunctionC>),
    /// Called through a library of another ABI.
    Bridged(BridgedReduction),
}

/// A reduction function behind a library of another ABI, which converts the datatype's handle.
#[derive(Clone, Copy)]
pub struct BridgedReduction {
    pub call: BridgedReductionCall,
    /// First argument of `call`.
    pub state: *mut c_void,
}

/// Function of a library of another ABI: its state, the left and the right elements, their number, and the datatype.
pub type BridgedReductionCall =
    unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void, i64, Datatype);

/// A function of an error handler behind a library of another ABI, which converts the object's handle and the code.
#[derive(Clone, Copy)]
pub struct BridgedHandler {
    pub kind: HandlerKind,
    pub call: BridgedHandlerCall,
    /// First argument of `call`.
    pub state: *mut c_void,
}

/// Function of a library of another ABI: its state, the handle of the object, and the code, which it may change.
pub type BridgedHandlerCall = unsafe extern "C" fn(*mut c_void, usize, *mut c_int);

/// An error handler that the program made.
#[derive(Clone, Copy)]
pub struct ErrhandlerObject {
    /// Function that is called with the object and the code.
    pub function: HandlerFunction,
    /// Number of references that the program has: the handle that it created, and handles that MPI_Comm_get_errhandler returned. At
    /// 0 the object still exists while a communicator uses it.
    pub users: u32,
}

/// Function of an error handler.
#[derive(Clone, Copy)]
pub enum HandlerFunction {
    Comm(CallbackPointer<CommErrhandlerFunction>),
    Session(CallbackPointer<SessionErrhandlerFunction>),
    Win(CallbackPointer<WinErrhandlerFunction>),
    File(CallbackPointer<FileErrhandlerFunction>),
    /// Called through a library of another ABI.
    Bridged(BridgedHandler),
}

/// Kind of object to which an error handler can be attached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HandlerKind {
    Comm,
    Session,
    Win,
    File,
}

impl HandlerKind {
    /// Returns the null handle of such objects.
    pub fn null(self) -> usize {
        match self {
            HandlerKind::Comm => MPI_COMM_NULL.0,
            HandlerKind::Session => MPI_SESSION_NULL.0,
            HandlerKind::Win => MPI_WIN_NULL.0,
            HandlerKind::File => MPI_FILE_NULL.0,
        }
    }
}

impl HandlerFunction {
    /// Returns the kind of object to which an error handler with this function can be attached.
    pub fn kind(&self) -> HandlerKind {
        match self {
            HandlerFunction::Comm(_) => HandlerKind::Comm,
            HandlerFunction::Session(_) => HandlerKind::Session,
            HandlerFunction::Win(_) => HandlerKind::Win,
            HandlerFunction::File(_) => HandlerKind::File,
            HandlerFunction::Bridged(handler) => handler.kind,
        }
    }
}

/// A session (MPI_Session).
pub struct SessionObject {
    /// Handle of the session's error handler.
    pub errhandler: Cell<usize>,
    /// Thread level that the program was granted, such as MPI_THREAD_SINGLE.
    pub thread_level: i32,
    /// Buffer that the program attached for buffered sends on the session's communicators.
    pub buffer: OnceCell<Rc<dyn Any>>,
}

/// The file of the layer below.
pub type FileOf = weft_io::File<JobFabric>;

/// A file (MPI_File).
pub struct FileObject {
    pub file: Rc<FileOf>,
    /// Handle of the file's error handler.
    pub errhandler: Cell<usize>,
    /// The split collective access under way: the name of the function that began it, and the operation that the ending function
    /// waits for.
    pub split: RefCell<Option<(&'static str, Active)>>,
}

/// The window of the layer below.
pub type WindowOf = weft_rma::Window<JobFabric>;

/// A window (MPI_Win) with the attributes that the program caches on it.
pub struct WinObject {
    /// The window with its epochs, memory and locks.
    pub window: Rc<WindowOf>,
    /// Address of this rank's part, which the program passed to the creating call or received from it.
    pub base: Cell<*mut c_void>,
    /// Numbers to which the predefined attributes point.
    pub known: WindowNumbers,
    /// Attributes that the program caches on the window, by key.
    pub attributes: RefCell<Attributes>,
    /// Handle of the window's error handler.
    pub errhandler: Cell<usize>,
    /// Hints of the program about its use of the window.
    pub hints: RefCell<weft_process::Info>,
    /// The group of the last MPI_Win_post or MPI_Win_start, and its ranks in the window.
    pub members: RefCell<Option<(weft_process::Group, Rc<[usize]>)>>,
    /// Number of the window's place, if the window has a lock of its own (`lanes/windows.rs`).
    pub place: Cell<Option<usize>>,
}

/// Returns the address of memory as a program may see it: NULL if the memory is empty.
pub fn address(memory: Sge) -> *mut c_void {
    if memory == Sge::EMPTY { std::ptr::null_mut() } else { memory.ptr().cast() }
}

/// Numbers whose addresses are predefined attributes of a window.
pub struct WindowNumbers {
    /// MPI_WIN_SIZE: number of bytes of this rank's part.
    pub size: Cell<isize>,
    /// MPI_WIN_DISP_UNIT: displacement unit in bytes.
    pub unit: Cell<c_int>,
    /// MPI_WIN_CREATE_FLAVOR: the function that created the window.
    pub flavor: Cell<c_int>,
    /// MPI_WIN_MODEL: memory model, unified or separate.
    pub model: Cell<c_int>,
}

impl WinObject {
    /// Makes the object of a window. `unit`: this rank's displacement unit.
    pub fn new(window: Rc<WindowOf>, unit: usize) -> WinObject {
        let memory = window.memory();
        let flavor = match window.flavor() {
            WindowFlavor::Create => MPI_WIN_FLAVOR_CREATE,
            WindowFlavor::Allocate => MPI_WIN_FLAVOR_ALLOCATE,
            WindowFlavor::Shared => MPI_WIN_FLAVOR_SHARED,
            WindowFlavor::Dynamic => MPI_WIN_FLAVOR_DYNAMIC,
        };
        let base = match window.flavor() {
            // Displacements in a dynamic window count from MPI_BOTTOM.
            WindowFlavor::Dynamic => std::ptr::null_mut(),
            _ => address(memory),
        };
        let known = WindowNumbers {
            size: Cell::new(memory.len() as isize),
            unit: Cell::new(c_int::try_from(unit).unwrap_or(c_int::MAX)),
            flavor: Cell::new(flavor),
            model: Cell::new(MPI_WIN_UNIFIED),
        };
        WinObject {
            window,
            base: Cell::new(base),
            known,
            attributes: RefCell::default(),
            errhandler: Cell::new(MPI_ERRORS_ARE_FATAL.0),
            hints: RefCell::default(),
            members: RefCell::default(),
            place: Cell::new(None),
        }
    }
}

/// Kind of object for whose attributes a key is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyKind {
    Comm,
    Type,
    Win,
}

/// A key for attributes. The callbacks for all kinds of objects have the same signature, because all handles have the size of a
/// pointer.
#[derive(Clone, Copy)]
pub struct AttributeKey {
    /// Kind of the objects that have attributes of this key.
    pub kind: KeyKind,
    /// Function that is called when an object with a value is duplicated.
    pub copy: CallbackPointer<CommCopyAttrFunction>,
    /// Function that is called when a value is deleted.
    pub delete: CallbackPointer<CommDeleteAttrFunction>,
    /// The program's extra_state, which both functions receive.
    pub extra: *mut c_void,
}

/// A persistent operation, which can be started.
pub trait Persistent {
    fn start(&self) -> Result<Active, Error>;

    /// Returns the operation itself, if a chapter has further functions for it, such as partitions.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }
}

impl<F: Fn() -> Result<Active, Error>> Persistent for F {
    fn start(&self) -> Result<Active, Error> {
        self()
    }
}

/// A persistent operation, shared by its request and the call that starts it.
pub type PersistentRecipe = Rc<dyn Persistent>;

/// A request.
pub struct RequestObject {
    /// The operation under way. `None` if the request is inactive.
    pub active: Option<Active>,
    /// The operation that each start of a persistent request begins. `None` for any other request.
    pub recipe: Option<PersistentRecipe>,
    /// The object to which the request belongs, whose error handler receives the errors of the request.
    pub belongs: Belongs,
    /// Kind of operation for which the request was made.
    pub kind: RequestOrigin,
}

/// Handle of all sends that were complete when they were started. All these sends share an object, so that no object has to be made
/// for each send. The object is never freed, and every wait for the object finds a complete operation.
pub const SENT: crate::types::Request = crate::types::Request(7 | 1 << 36);

impl RequestObject {
    /// Returns an active request that is not persistent.
    #[inline(always)]
    pub fn new(active: Active, belongs: Belongs, kind: RequestOrigin) -> RequestObject {
        RequestObject { active: Some(active), recipe: None, belongs, kind }
    }

    /// Returns the object of [`SENT`].
    pub fn sent() -> RequestObject {
        let active = Active::Done(weft_process::Status::default());
        RequestObject::new(active, Belongs::Nobody, RequestOrigin::Send)
    }

    /// Returns the receive of a plain request, and `None` for any other request. A plain request consists of one receive, unpacks
    /// nothing, and frees no other object when it ends.
    #[inline(always)]
    pub fn plain_receive(&self) -> Option<weft_process::RequestId> {
        match self {
            RequestObject {
                active: Some(Active::Receive { id, unpack: None }),
                recipe: None,
                belongs: Belongs::Comm(comm),
                ..
            } if Rc::strong_count(comm) > 1 => Some(*id),
            _ => None,
        }
    }

    /// Drops a plain request. Only its reference to the communicator needs a drop.
    #[inline(always)]
    pub fn forget_plain(self) {
        debug_assert!(self.plain_receive().is_some());
        let RequestObject { active, recipe, belongs, .. } = self;
        std::mem::forget((active, recipe));
        if let Belongs::Comm(comm) = belongs {
            drop(comm);
        }
    }
}

/// The object whose error handler receives a request's errors.
#[derive(Clone)]
pub enum Belongs {
    Nobody,
    /// A communicator, whose handle may have been freed meanwhile.
    Comm(Rc<CommObject>),
    Win(Win),
    Session(Session),
    File(File),
}

impl Belongs {
    /// Returns the object whose error handler receives the errors.
    pub fn owner(&self) -> Owner {
        match self {
            Belongs::Nobody => Owner::None,
            Belongs::Comm(comm) => Owner::Object(comm.clone()),
            Belongs::Win(win) => Owner::Win(*win),
            Belongs::Session(session) => Owner::Session(*session),
            Belongs::File(file) => Owner::File(*file),
        }
    }
}

/// Kind of operation for which a request was made, for errors and reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestOrigin {
    Send,
    Receive,
    Collective,
    OneSided,
    File,
    Generalized,
}

/// A matched message (MPI_Message).
pub struct MessageObject {
    /// The message, which is no longer available for matching.
    pub matched: weft_process::Matched,
    /// The communicator on which the message arrived.
    pub comm: Rc<CommObject>,
}
