//! The objects behind handles, beside communicators and groups.

use crate::callback::CallbackPointer;
use crate::constants::*;
use crate::error::{Error, Owner};
use crate::node::{CommObject, NodeFabric};
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

/// A datatype and what the program hung on it.
pub struct TypeObject {
    /// Compiled to what copies and packs it.
    pub ty: Type,
    /// Its own handle.
    pub handle: Cell<Datatype>,
    /// The standard's own: never freed.
    pub predefined: bool,
    /// What the program caches on it, by key.
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
}

/// An error handler that the program made.
#[derive(Clone, Copy)]
pub struct ErrhandlerObject {
    /// What is called with the object and the code.
    pub function: HandlerFunction,
    /// References that the program has: its own and those that MPI_Comm_get_errhandler gave out. At
    /// 0 the object lives on while a communicator has it.
    pub users: u32,
}

/// What an error handler calls.
#[derive(Clone, Copy)]
pub enum HandlerFunction {
    Comm(CallbackPointer<CommErrhandlerFunction>),
    Session(CallbackPointer<SessionErrhandlerFunction>),
    Win(CallbackPointer<WinErrhandlerFunction>),
    File(CallbackPointer<FileErrhandlerFunction>),
}

/// What an error handler is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HandlerKind {
    Comm,
    Session,
    Win,
    File,
}

impl HandlerFunction {
    /// What kind of object it is called for.
    pub fn kind(&self) -> HandlerKind {
        match self {
            HandlerFunction::Comm(_) => HandlerKind::Comm,
            HandlerFunction::Session(_) => HandlerKind::Session,
            HandlerFunction::Win(_) => HandlerKind::Win,
            HandlerFunction::File(_) => HandlerKind::File,
        }
    }
}

/// A session (MPI_Session).
pub struct SessionObject {
    /// The handle of its error handler.
    pub errhandler: Cell<usize>,
    /// What the program was granted: MPI_THREAD_SINGLE and so on.
    pub thread_level: i32,
    /// What the program attached for buffered sends on its communicators.
    pub buffer: OnceCell<Rc<dyn Any>>,
}

/// The file of the layer below.
pub type FileOf = weft_io::File<NodeFabric>;

/// A file (MPI_File).
pub struct FileObject {
    pub file: Rc<FileOf>,
    /// The handle of its error handler.
    pub errhandler: Cell<usize>,
    /// The split collective access under way: the function that began it, and what its end waits for.
    pub split: RefCell<Option<(&'static str, Active)>>,
}

/// The window of the layer below.
pub type WindowOf = weft_rma::Window<NodeFabric>;

/// A window (MPI_Win) and what the program hung on it.
pub struct WinObject {
    /// Its epochs, memory and locks.
    pub window: Rc<WindowOf>,
    /// Where this rank's part begins, as the program gave it or was given it.
    pub base: Cell<*mut c_void>,
    /// What its predefined attributes point to.
    pub known: WindowNumbers,
    /// What the program caches on it, by key.
    pub attributes: RefCell<Attributes>,
    /// The handle of its error handler.
    pub errhandler: Cell<usize>,
    /// What the program says about how it uses it.
    pub hints: RefCell<weft_process::Info>,
    /// The group of the last MPI_Win_post or MPI_Win_start, and its ranks in the window.
    pub members: RefCell<Option<(weft_process::Group, Rc<[usize]>)>>,
}

/// The address of memory as a program may see it: of none at all NULL.
pub fn address(memory: Sge) -> *mut c_void {
    if memory == Sge::EMPTY { std::ptr::null_mut() } else { memory.ptr().cast() }
}

/// Numbers whose addresses are predefined attributes of a window.
pub struct WindowNumbers {
    /// MPI_WIN_SIZE: bytes of this rank's part.
    pub size: Cell<isize>,
    /// MPI_WIN_DISP_UNIT: bytes.
    pub unit: Cell<c_int>,
    /// MPI_WIN_CREATE_FLAVOR: how it was made.
    pub flavor: Cell<c_int>,
    /// MPI_WIN_MODEL: unified or separate.
    pub model: Cell<c_int>,
}

impl WinObject {
    /// `unit`: this rank's displacement unit.
    pub fn new(window: Rc<WindowOf>, unit: usize) -> WinObject {
        let memory = window.memory();
        let flavor = match window.flavor() {
            WindowFlavor::Create => MPI_WIN_FLAVOR_CREATE,
            WindowFlavor::Allocate => MPI_WIN_FLAVOR_ALLOCATE,
            WindowFlavor::Shared => MPI_WIN_FLAVOR_SHARED,
            WindowFlavor::Dynamic => MPI_WIN_FLAVOR_DYNAMIC,
        };
        let base = match window.flavor() {
            // MPI_BOTTOM.
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
        }
    }
}

/// What kind of object a key is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyKind {
    Comm,
    Type,
    Win,
}

/// A key for attributes. The callbacks of all kinds have one shape: a handle of pointer size first.
#[derive(Clone, Copy)]
pub struct AttributeKey {
    /// What objects it is a key of.
    pub kind: KeyKind,
    /// Called when an object with a value is duplicated.
    pub copy: CallbackPointer<CommCopyAttrFunction>,
    /// Called when a value goes.
    pub delete: CallbackPointer<CommDeleteAttrFunction>,
    /// What both are given as extra_state; the program's own.
    pub extra: *mut c_void,
}

/// A persistent operation: how to start it.
pub trait Persistent {
    fn start(&self) -> Result<Active, Error>;

    /// Itself, if a chapter knows more of it than how to start it.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }
}

impl<F: Fn() -> Result<Active, Error>> Persistent for F {
    fn start(&self) -> Result<Active, Error> {
        self()
    }
}

/// How to start a persistent operation, shared by a request and who starts it.
pub type PersistentRecipe = Rc<dyn Persistent>;

/// A request.
pub struct RequestObject {
    /// What runs now; `None`: inactive.
    pub active: Option<Active>,
    /// How to start a persistent one again.
    pub recipe: Option<PersistentRecipe>,
    /// What object, and so whose error handler.
    pub belongs: Belongs,
    /// What operation it is of.
    pub kind: RequestOrigin,
}

/// The handle of all sends that were over when they were started: one object for all, so that none is made for each. It is
/// never freed, and whoever waits for it finds it over.
pub const SENT: crate::types::Request = crate::types::Request(7 | 1 << 36);

impl RequestObject {
    /// What [`SENT`] is the handle of.
    pub fn sent() -> RequestObject {
        let active = Some(Active::Done(weft_process::Status::default()));
        RequestObject { active, recipe: None, belongs: Belongs::Nobody, kind: RequestOrigin::Send }
    }

    /// The receive that it is, if it is no more than that: nothing to unpack, nothing that its end could free.
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

    /// Drops a plain receive: nothing of it but its reference to the communicator is to be dropped.
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

/// The object whose error handler hears of a request's errors.
#[derive(Clone)]
pub enum Belongs {
    Nobody,
    /// It may have lost its handle meanwhile.
    Comm(Rc<CommObject>),
    Win(Win),
    Session(Session),
    File(File),
}

impl Belongs {
    /// The object whose error handler hears of it.
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

/// What a request was made for: words for errors and reports.
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
    /// The message, taken out of matching.
    pub matched: weft_process::Matched,
    /// The communicator that it came on.
    pub comm: Rc<CommObject>,
}
