//! Live and freed objects of every kind, on communicators of only this process.

pub mod windows;

use crate::files;
use crate::mpi::AbusedLibrary;
use crate::signature::{HandleKind, constant};
use std::cell::{Cell, RefCell};
use std::ffi::c_int;

/// Number of bytes of one argument's memory, and the offset to which the pointer points.
pub const SLOT: usize = 32 << 10;
const FRONT: usize = 8 << 10;
/// Tags of the messages that wait to be received.
pub const TAGS: [c_int; 3] = [7, c_int::MAX, 1 << 20];

pub struct Fixture<'a> {
    pub mpi: &'a AbusedLibrary,
    /// One slot per parameter, and some for objects under way.
    arena: RefCell<Vec<u64>>,
    /// The communicator of the case.
    comm: Cell<usize>,
    pvars: Cell<usize>,
    /// The window of the case, once there is one.
    win: Cell<usize>,
    made: RefCell<Vec<(HandleKind, usize)>>,
}

/// Returns the null handle of each kind.
pub fn null(kind: HandleKind) -> usize {
    constant(match kind {
        HandleKind::Comm => "MPI_COMM_NULL",
        HandleKind::Group => "MPI_GROUP_NULL",
        HandleKind::Datatype => "MPI_DATATYPE_NULL",
        HandleKind::Op => "MPI_OP_NULL",
        HandleKind::Errhandler => "MPI_ERRHANDLER_NULL",
        HandleKind::Info => "MPI_INFO_NULL",
        HandleKind::Request => "MPI_REQUEST_NULL",
        HandleKind::Message => "MPI_MESSAGE_NULL",
        HandleKind::Session => "MPI_SESSION_NULL",
        HandleKind::File => "MPI_FILE_NULL",
        HandleKind::Win => "MPI_WIN_NULL",
        HandleKind::Cvar | HandleKind::PvarSession | HandleKind::Pvar | HandleKind::Enum => {
            return 0;
        }
        HandleKind::Registration | HandleKind::Instance => return 0,
    })
}

/// Returns the name of the function that frees an object of a kind.
fn free_name(kind: HandleKind) -> Option<&'static str> {
    Some(match kind {
        HandleKind::Comm => "MPI_Comm_free",
        HandleKind::Group => "MPI_Group_free",
        HandleKind::Datatype => "MPI_Type_free",
        HandleKind::Op => "MPI_Op_free",
        HandleKind::Errhandler => "MPI_Errhandler_free",
        HandleKind::Info => "MPI_Info_free",
        HandleKind::Session => "MPI_Session_finalize",
        HandleKind::Cvar => "MPI_T_cvar_handle_free",
        HandleKind::PvarSession => "MPI_T_pvar_session_free",
        _ => return None,
    })
}

pub extern "C" fn does_nothing() -> c_int {
    0
}

pub fn function() -> usize {
    does_nothing as *const () as usize
}

fn address<T>(of: &mut T) -> usize {
    std::ptr::from_mut(of) as usize
}

impl<'a> Fixture<'a> {
    pub fn new(mpi: &'a AbusedLibrary) -> Fixture<'a> {
        let arena = RefCell::new(vec![0; 20 * SLOT / 8]);
        let [comm, pvars, win] = [const { Cell::new(0) }; 3];
        Fixture { mpi, arena, comm, pvars, win, made: RefCell::default() }
    }

    /// Returns the memory of parameter `i`: an address with room before and behind it.
    pub fn slot(&self, i: usize) -> usize {
        self.arena.borrow_mut().as_mut_ptr() as usize + i * SLOT + FRONT
    }

    /// Sets all slots to zero.
    pub fn clear(&self, slots: usize) {
        self.arena.borrow_mut()[..slots * SLOT / 8].fill(0);
    }

    /// Stores an object, to be freed when the case is over.
    fn keep(&self, kind: HandleKind, handle: usize) -> usize {
        self.made.borrow_mut().push((kind, handle));
        handle
    }

    /// Makes the communicator of a case, of the kind that a function wants.
    pub fn open(&self, stem: &str) {
        let mpi = self.mpi;
        let myself = constant("MPI_COMM_SELF");
        let (mut one, mut zero) = ([1 as c_int; 2], [0 as c_int; 2]);
        let (one, zero) = (address(&mut one), address(&mut zero));
        let comm = if stem.contains("eighbor_a") || stem.starts_with("Cart") {
            mpi.make("MPI_Cart_create", &[myself, 1, one, one, 0])
        } else if stem.starts_with("Dist_graph_neigh") {
            let info = constant("MPI_INFO_NULL");
            let args = [myself, 1, zero, one, 1, zero, one, info, 0];
            mpi.make("MPI_Dist_graph_create_adjacent", &args)
        } else if stem.starts_with("Graph") {
            mpi.make("MPI_Graph_create", &[myself, 1, one, zero, 0])
        } else {
            mpi.make("MPI_Comm_dup", &[myself])
        };
        let plain = stem.ends_with("_create") && stem.contains("art");
        let comm = if plain { mpi.make("MPI_Comm_dup", &[myself]) } else { comm };
        mpi.must("MPI_Comm_set_errhandler", &[comm, constant("MPI_ERRORS_RETURN")]);
        self.comm.set(comm);
    }

    /// Frees the objects that the case made. The function under test may have freed some before.
    pub fn close(&self) {
        let made = std::mem::take(&mut *self.made.borrow_mut());
        self.win.set(0);
        for (kind, handle) in made.into_iter().rev() {
            self.free(kind, handle);
        }
        self.drain();
        self.free(HandleKind::Comm, self.comm.get());
        if self.pvars.get() != 0 {
            self.free(HandleKind::PvarSession, self.pvars.replace(0));
        }
    }

    /// Receives the messages that nobody received.
    fn drain(&self) {
        let (any_source, any_tag) = (constant("MPI_ANY_SOURCE"), constant("MPI_ANY_TAG"));
        loop {
            let mut flag: c_int = 0;
            let args = [any_source, any_tag, self.comm.get(), address(&mut flag), 0];
            if self.mpi.code("MPI_Iprobe", &args) != 0 || std::hint::black_box(flag) == 0 {
                return;
            }
            let args = [self.slot(19), 16, constant("MPI_INT"), any_source, any_tag];
            self.mpi.code("MPI_Recv", &[&args[..], &[self.comm.get(), 0]].concat());
        }
    }

    pub fn free(&self, kind: HandleKind, mut handle: usize) {
        let mpi = self.mpi;
        match kind {
            HandleKind::Request => self.end(handle),
            HandleKind::Win => windows::free(mpi, handle),
            HandleKind::File => files::free(mpi, handle, self.slot(18)),
            HandleKind::Pvar => {
                let args = [self.pvars.get(), address(&mut handle)];
                mpi.code("MPI_T_pvar_handle_free", &args);
            }
            HandleKind::Message => {
                let (buffer, int) = (self.slot(19), constant("MPI_INT"));
                mpi.code("MPI_Mrecv", &[buffer, 4, int, address(&mut handle), 0]);
            }
            _ => {
                if let Some(name) = free_name(kind) {
                    mpi.code(name, &[address(&mut handle)]);
                }
            }
        }
    }

    /// Ends a request: it completes soon, or is cancelled.
    fn end(&self, handle: usize) {
        let mut request = handle;
        let null = constant("MPI_REQUEST_NULL");
        for attempt in 0..40 {
            let mut flag: c_int = 0;
            let args = [address(&mut request), address(&mut flag), 0];
            let code = self.mpi.code("MPI_Test", &args);
            if code != 0 || std::hint::black_box(request) == null {
                return;
            }
            if attempt == 20 {
                self.mpi.code("MPI_Cancel", &[address(&mut request)]);
                self.mpi.code("MPI_Grequest_complete", &[request]);
            }
            if std::hint::black_box(flag) != 0 {
                break;
            }
        }
        self.mpi.code("MPI_Request_free", &[address(&mut request)]);
    }

    fn int(&self) -> usize {
        constant("MPI_INT")
    }

    /// Posts a receive of anything.
    pub fn expect_message(&self) -> usize {
        let (any_source, any_tag) = (constant("MPI_ANY_SOURCE"), constant("MPI_ANY_TAG"));
        let args = [self.slot(18), 64, self.int(), any_source, any_tag, self.comm.get()];
        let request = self.mpi.make("MPI_Irecv", &args);
        self.keep(HandleKind::Request, request)
    }

    /// Sends messages to this process, of all tags that a receive may want.
    pub fn send_messages(&self) {
        for tag in TAGS {
            let args = [self.slot(17), 4, self.int(), 0, tag as usize, self.comm.get()];
            self.mpi.must("MPI_Send", &args);
        }
    }

    /// Makes a live object. `stem` is the function that will get it.
    pub fn live(&self, kind: HandleKind, stem: &str) -> usize {
        let mpi = self.mpi;
        let made = match kind {
            HandleKind::Comm => return self.comm.get(),
            HandleKind::Group => mpi.make("MPI_Comm_group", &[constant("MPI_COMM_SELF")]),
            // With a derived type other than this one, NULL would be an address.
            HandleKind::Datatype if stem.starts_with("Type_f") || stem == "Type_commit" => {
                mpi.make("MPI_Type_contiguous", &[2, self.int()])
            }
            HandleKind::Datatype
                if ["Type_get_contents", "Type_set_name"].contains(&stem)
                    || stem.contains("_attr") =>
            {
                mpi.make("MPI_Type_contiguous", &[2, self.int()])
            }
            HandleKind::Datatype => return self.int(),
            HandleKind::Op if stem == "Op_free" => mpi.make("MPI_Op_create", &[function(), 1]),
            HandleKind::Op => return constant("MPI_SUM"),
            HandleKind::Errhandler if stem.contains("ession") => {
                mpi.make("MPI_Session_create_errhandler", &[function()])
            }
            HandleKind::Errhandler if stem.starts_with("Win") => {
                mpi.make("MPI_Win_create_errhandler", &[function()])
            }
            HandleKind::Errhandler if stem.starts_with("File") => {
                mpi.make("MPI_File_create_errhandler", &[function()])
            }
            HandleKind::Errhandler => mpi.make("MPI_Comm_create_errhandler", &[function()]),
            HandleKind::Info => {
                let info = mpi.make("MPI_Info_create", &[]);
                let text = |t: &'static std::ffi::CStr| t.as_ptr() as usize;
                mpi.must("MPI_Info_set", &[info, text(c"key"), text(c"value")]);
                info
            }
            HandleKind::Request => self.request(stem),
            HandleKind::Message => {
                // Not on the communicator of the case, where a posted receive may take the message.
                let (mut message, comm) = (0usize, constant("MPI_COMM_SELF"));
                mpi.must("MPI_Send", &[self.slot(17), 4, self.int(), 0, 7, comm]);
                let args = [0, 7, comm, address(&mut message), 0];
                mpi.must("MPI_Mprobe", &args);
                std::hint::black_box(message)
            }
            HandleKind::Session => {
                let args = [constant("MPI_INFO_NULL"), constant("MPI_ERRORS_RETURN")];
                mpi.make("MPI_Session_init", &args)
            }
            HandleKind::Cvar => {
                let (mut made, mut count) = (0usize, 0 as c_int);
                let args = [0, 0, address(&mut made), address(&mut count)];
                mpi.must("MPI_T_cvar_handle_alloc", &args);
                std::hint::black_box(made)
            }
            HandleKind::PvarSession => return self.pvar_session(),
            HandleKind::Pvar => {
                let (mut made, mut count) = (0usize, 0 as c_int);
                let args = [self.pvar_session(), 0, 0, address(&mut made), address(&mut count)];
                mpi.must("MPI_T_pvar_handle_alloc", &args);
                std::hint::black_box(made)
            }
            HandleKind::Enum => return self.enumeration(),
            HandleKind::Win => {
                if self.win.get() != 0 {
                    return self.win.get();
                }
                let win = windows::make(self, self.comm.get(), stem);
                self.win.set(win);
                win
            }
            // All calls of a case share the file: its path belongs to this process.
            HandleKind::File => files::make(mpi, self.slot(18), stem),
            // The kind has no object here.
            HandleKind::Registration | HandleKind::Instance => return null(kind),
        };
        self.keep(kind, made)
    }

    /// Makes a datatype of `count` contiguous integers, which is not committed.
    pub fn contiguous(&self, count: usize) -> usize {
        let made = self.mpi.make("MPI_Type_contiguous", &[count, self.int()]);
        self.keep(HandleKind::Datatype, made)
    }

    /// Makes a committed datatype without data.
    pub fn empty_datatype(&self) -> usize {
        let mut made = self.contiguous(0);
        self.mpi.must("MPI_Type_commit", &[address(&mut made)]);
        std::hint::black_box(made)
    }

    fn pvar_session(&self) -> usize {
        if self.pvars.get() == 0 {
            self.pvars.set(self.mpi.make("MPI_T_pvar_session_create", &[]));
        }
        self.pvars.get()
    }

    /// Returns the enumeration of some control variable. Null if none has an enumeration.
    fn enumeration(&self) -> usize {
        let count = self.mpi.make("MPI_T_cvar_get_num", &[]) as u32 as usize;
        for cvar in 0..count {
            let mut handle = 0usize;
            let enumtype = address(&mut handle);
            self.mpi.code("MPI_T_cvar_get_info", &[cvar, 0, 0, 0, 0, enumtype, 0, 0, 0, 0]);
            if std::hint::black_box(handle) != 0 {
                return handle;
            }
        }
        null(HandleKind::Enum)
    }

    /// Makes a request for which the function does not wait for ever.
    fn request(&self, stem: &str) -> usize {
        let mpi = self.mpi;
        let (comm, int, buffer) = (self.comm.get(), self.int(), self.slot(16));
        let partitioned = |name: &str, start: bool| {
            let args = [buffer, 2, 2, int, 0, 7, comm, constant("MPI_INFO_NULL")];
            let mut request = mpi.make(name, &args);
            if start {
                mpi.must("MPI_Start", &[address(&mut request)]);
            }
            std::hint::black_box(request)
        };
        if stem == "Grequest_complete" {
            let f = function();
            mpi.make("MPI_Grequest_start", &[f, f, f, 0])
        } else if stem == "Parrived" {
            partitioned("MPI_Precv_init", true)
        } else if stem.starts_with("Pready") {
            partitioned("MPI_Psend_init", true)
        } else if stem.starts_with("Start") {
            mpi.make("MPI_Send_init", &[buffer, 4, int, 0, 7, comm])
        } else if stem == "Cancel" {
            let args = [buffer, 4, int, 0, 9, comm];
            mpi.make("MPI_Irecv", &args)
        } else {
            mpi.make("MPI_Isend", &[buffer, 4, int, 0, 7, comm])
        }
    }

    /// Returns the handle of an object that was freed.
    pub fn freed(&self, kind: HandleKind) -> Option<usize> {
        let stem = match kind {
            HandleKind::Datatype => "Type_free",
            HandleKind::Op => "Op_free",
            // A send that completed at once has the handle that all such sends share, so a freed handle could not be detected.
            HandleKind::Request => "Start",
            _ => "",
        };
        let handle = match kind {
            HandleKind::Comm => self.mpi.make("MPI_Comm_dup", &[constant("MPI_COMM_SELF")]),
            HandleKind::PvarSession => self.mpi.make("MPI_T_pvar_session_create", &[]),
            HandleKind::Win => windows::make(self, self.comm.get(), ""),
            HandleKind::Enum => return None,
            _ => self.live(kind, stem),
        };
        if handle == null(kind) {
            return None;
        }
        self.free(kind, handle);
        Some(handle)
    }
}
