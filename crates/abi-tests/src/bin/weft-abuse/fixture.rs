//! Live and freed objects of every kind, on communicators of only this process.

use crate::files;
use crate::mpi::Mpi;
use crate::signature::{Kind, constant};
use crate::windows;
use std::cell::{Cell, RefCell};
use std::ffi::c_int;

/// Number of bytes of one argument's memory, and the offset to which the pointer points.
pub const SLOT: usize = 32 << 10;
const FRONT: usize = 8 << 10;
/// Tags of the messages that wait to be received.
pub const TAGS: [c_int; 3] = [7, c_int::MAX, 1 << 20];

pub struct World<'a> {
    pub mpi: &'a Mpi,
    /// One slot per parameter, and some for objects under way.
    arena: RefCell<Vec<u64>>,
    /// The communicator of the case.
    comm: Cell<usize>,
    pvars: Cell<usize>,
    /// The window of the case, once there is one.
    win: Cell<usize>,
    made: RefCell<Vec<(Kind, usize)>>,
}

/// Returns the null handle of each kind.
pub fn null(kind: Kind) -> usize {
    constant(match kind {
        Kind::Comm => "MPI_COMM_NULL",
        Kind::Group => "MPI_GROUP_NULL",
        Kind::Datatype => "MPI_DATATYPE_NULL",
        Kind::Op => "MPI_OP_NULL",
        Kind::Errhandler => "MPI_ERRHANDLER_NULL",
        Kind::Info => "MPI_INFO_NULL",
        Kind::Request => "MPI_REQUEST_NULL",
        Kind::Message => "MPI_MESSAGE_NULL",
        Kind::Session => "MPI_SESSION_NULL",
        Kind::File => "MPI_FILE_NULL",
        Kind::Win => "MPI_WIN_NULL",
        Kind::Cvar | Kind::PvarSession | Kind::Pvar | Kind::Enum => return 0,
        Kind::Registration | Kind::Instance => return 0,
    })
}

/// Returns the name of the function that frees an object of a kind.
fn free_name(kind: Kind) -> Option<&'static str> {
    Some(match kind {
        Kind::Comm => "MPI_Comm_free",
        Kind::Group => "MPI_Group_free",
        Kind::Datatype => "MPI_Type_free",
        Kind::Op => "MPI_Op_free",
        Kind::Errhandler => "MPI_Errhandler_free",
        Kind::Info => "MPI_Info_free",
        Kind::Session => "MPI_Session_finalize",
        Kind::Cvar => "MPI_T_cvar_handle_free",
        Kind::PvarSession => "MPI_T_pvar_session_free",
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

impl<'a> World<'a> {
    pub fn new(mpi: &'a Mpi) -> World<'a> {
        let arena = RefCell::new(vec![0; 20 * SLOT / 8]);
        let [comm, pvars, win] = [const { Cell::new(0) }; 3];
        World { mpi, arena, comm, pvars, win, made: RefCell::default() }
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
    fn keep(&self, kind: Kind, handle: usize) -> usize {
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
        self.free(Kind::Comm, self.comm.get());
        if self.pvars.get() != 0 {
            self.free(Kind::PvarSession, self.pvars.replace(0));
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

    pub fn free(&self, kind: Kind, mut handle: usize) {
        let mpi = self.mpi;
        match kind {
            Kind::Request => self.end(handle),
            Kind::Win => windows::free(mpi, handle),
            Kind::File => files::free(mpi, handle, self.slot(18)),
            Kind::Pvar => {
                let args = [self.pvars.get(), address(&mut handle)];
                mpi.code("MPI_T_pvar_handle_free", &args);
            }
            Kind::Message => {
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
        self.keep(Kind::Request, request)
    }

    /// Sends messages to this process, of all tags that a receive may want.
    pub fn send_messages(&self) {
        for tag in TAGS {
            let args = [self.slot(17), 4, self.int(), 0, tag as usize, self.comm.get()];
            self.mpi.must("MPI_Send", &args);
        }
    }

    /// Makes a live object. `stem` is the function that will get it.
    pub fn live(&self, kind: Kind, stem: &str) -> usize {
        let mpi = self.mpi;
        let made = match kind {
            Kind::Comm => return self.comm.get(),
            Kind::Group => mpi.make("MPI_Comm_group", &[constant("MPI_COMM_SELF")]),
            // With a derived type other than this one, NULL would be an address.
            Kind::Datatype if stem.starts_with("Type_f") || stem == "Type_commit" => {
                mpi.make("MPI_Type_contiguous", &[2, self.int()])
            }
            Kind::Datatype
                if ["Type_get_contents", "Type_set_name"].contains(&stem)
                    || stem.contains("_attr") =>
            {
                mpi.make("MPI_Type_contiguous", &[2, self.int()])
            }
            Kind::Datatype => return self.int(),
            Kind::Op if stem == "Op_free" => mpi.make("MPI_Op_create", &[function(), 1]),
            Kind::Op => return constant("MPI_SUM"),
            Kind::Errhandler if stem.contains("ession") => {
                mpi.make("MPI_Session_create_errhandler", &[function()])
            }
            Kind::Errhandler if stem.starts_with("Win") => {
                mpi.make("MPI_Win_create_errhandler", &[function()])
            }
            Kind::Errhandler if stem.starts_with("File") => {
                mpi.make("MPI_File_create_errhandler", &[function()])
            }
            Kind::Errhandler => mpi.make("MPI_Comm_create_errhandler", &[function()]),
            Kind::Info => {
                let info = mpi.make("MPI_Info_create", &[]);
                let text = |t: &'static std::ffi::CStr| t.as_ptr() as usize;
                mpi.must("MPI_Info_set", &[info, text(c"key"), text(c"value")]);
                info
            }
            Kind::Request => self.request(stem),
            Kind::Message => {
                // Not on the communicator of the case, where a posted receive may take the message.
                let (mut message, comm) = (0usize, constant("MPI_COMM_SELF"));
                mpi.must("MPI_Send", &[self.slot(17), 4, self.int(), 0, 7, comm]);
                let args = [0, 7, comm, address(&mut message), 0];
                mpi.must("MPI_Mprobe", &args);
                std::hint::black_box(message)
            }
            Kind::Session => {
                let args = [constant("MPI_INFO_NULL"), constant("MPI_ERRORS_RETURN")];
                mpi.make("MPI_Session_init", &args)
            }
            Kind::Cvar => {
                let (mut made, mut count) = (0usize, 0 as c_int);
                let args = [0, 0, address(&mut made), address(&mut count)];
                mpi.must("MPI_T_cvar_handle_alloc", &args);
                std::hint::black_box(made)
            }
            Kind::PvarSession => return self.pvar_session(),
            Kind::Pvar => {
                let (mut made, mut count) = (0usize, 0 as c_int);
                let args = [self.pvar_session(), 0, 0, address(&mut made), address(&mut count)];
                mpi.must("MPI_T_pvar_handle_alloc", &args);
                std::hint::black_box(made)
            }
            Kind::Enum => return self.enumeration(),
            Kind::Win => {
                if self.win.get() != 0 {
                    return self.win.get();
                }
                let win = windows::make(self, self.comm.get(), stem);
                self.win.set(win);
                win
            }
            // All calls of a case share the file: its path belongs to this process.
            Kind::File => files::make(mpi, self.slot(18), stem),
            // The kind has no object here.
            Kind::Registration | Kind::Instance => return null(kind),
        };
        self.keep(kind, made)
    }

    /// Makes a datatype of `count` contiguous integers.
    pub fn contiguous(&self, count: usize, commit: bool) -> usize {
        let mut made = self.mpi.make("MPI_Type_contiguous", &[count, self.int()]);
        if commit {
            self.mpi.must("MPI_Type_commit", &[address(&mut made)]);
        }
        self.keep(Kind::Datatype, std::hint::black_box(made))
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
        null(Kind::Enum)
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
    pub fn freed(&self, kind: Kind) -> Option<usize> {
        let stem = match kind {
            Kind::Datatype => "Type_free",
            Kind::Op => "Op_free",
            // A send that completed at once has the handle that all such sends share, so a freed handle could not be detected.
            Kind::Request => "Start",
            _ => "",
        };
        let handle = match kind {
            Kind::Comm => self.mpi.make("MPI_Comm_dup", &[constant("MPI_COMM_SELF")]),
            Kind::PvarSession => self.mpi.make("MPI_T_pvar_session_create", &[]),
            Kind::Win => windows::make(self, self.comm.get(), ""),
            Kind::Enum => return None,
            _ => self.live(kind, stem),
        };
        if handle == null(kind) {
            return None;
        }
        self.free(kind, handle);
        Some(handle)
    }
}
