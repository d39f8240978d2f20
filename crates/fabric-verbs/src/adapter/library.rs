//! libibverbs, which is loaded when it is needed. So a machine without libibverbs can still use other fabrics. Other libraries are
//! loaded in the same way.

use crate::ffi::*;
use std::ffi::{c_char, c_int, c_void};

/// Declares the functions of a library, and a function that loads them by their names.
macro_rules! functions {
    (
        $(#[$doc:meta])* $library:ident from $file:literal;
        $($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*
    ) => {
        $(#[$doc])*
        pub struct $library {
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            /// This is the last field, because fields are dropped in order, and dropping this field unloads the functions.
            _handle: libloading::os::unix::Library,
        }

        impl $library {
            /// Loads the library.
            pub fn load() -> Result<$library, crate::VerbsConnectError> {
                                use libloading::os::unix::{Library as Handle, RTLD_LOCAL, RTLD_NOW};
                let missing = |error: libloading::Error| {
                    crate::VerbsConnectError::NoLibrary { name: $file, error: error.to_string() }
                };
                // SAFETY: `open` runs the library's initialisers, which depend on no state of this program in these system
                // libraries.
                let handle = unsafe { Handle::open(Some($file), RTLD_NOW | RTLD_LOCAL) };
                let handle = handle.map_err(missing)?;
                Ok($library {
                    $($name: {
                        let name = concat!(stringify!($name), "\0").as_bytes();
                        // SAFETY: `get` needs the right type: each signature is copied from the library's header.
                        *unsafe { handle.get(name) }.map_err(missing)?
                    },)*
                    _handle: handle,
                })
            }
        }
    };
}

pub(crate) use functions;

functions! {
    /// The functions of libibverbs that are exported symbols.
    Library from "libibverbs.so.1";
    ibv_fork_init: fn() -> c_int;
    ibv_get_device_list: fn(*mut c_int) -> *mut *mut ibv_device;
    ibv_free_device_list: fn(*mut *mut ibv_device);
    ibv_open_device: fn(*mut ibv_device) -> *mut ibv_context;
    ibv_close_device: fn(*mut ibv_context) -> c_int;
    ibv_query_device: fn(*mut ibv_context, *mut ibv_device_attr) -> c_int;
    ibv_query_port: fn(*mut ibv_context, u8, *mut ibv_port_attr) -> c_int;
    ibv_query_gid: fn(*mut ibv_context, u8, c_int, *mut ibv_gid) -> c_int;
    ibv_get_async_event: fn(*mut ibv_context, *mut ibv_async_event) -> c_int;
    ibv_ack_async_event: fn(*mut ibv_async_event);
    ibv_alloc_pd: fn(*mut ibv_context) -> *mut ibv_pd;
    ibv_dealloc_pd: fn(*mut ibv_pd) -> c_int;
    ibv_reg_mr: fn(*mut ibv_pd, *mut c_void, usize, c_int) -> *mut ibv_mr;
    ibv_dereg_mr: fn(*mut ibv_mr) -> c_int;
    ibv_create_comp_channel: fn(*mut ibv_context) -> *mut ibv_comp_channel;
    ibv_destroy_comp_channel: fn(*mut ibv_comp_channel) -> c_int;
    ibv_create_cq:
        fn(*mut ibv_context, c_int, *mut c_void, *mut ibv_comp_channel, c_int) -> *mut ibv_cq;
    ibv_destroy_cq: fn(*mut ibv_cq) -> c_int;
    ibv_get_cq_event: fn(*mut ibv_comp_channel, *mut *mut ibv_cq, *mut *mut c_void) -> c_int;
    ibv_ack_cq_events: fn(*mut ibv_cq, u32);
    ibv_create_srq: fn(*mut ibv_pd, *mut ibv_srq_init_attr) -> *mut ibv_srq;
    ibv_destroy_srq: fn(*mut ibv_srq) -> c_int;
    ibv_create_qp: fn(*mut ibv_pd, *mut ibv_qp_init_attr) -> *mut ibv_qp;
    ibv_modify_qp: fn(*mut ibv_qp, *mut ibv_qp_attr, c_int) -> c_int;
    ibv_destroy_qp: fn(*mut ibv_qp) -> c_int;
    ibv_create_ah: fn(*mut ibv_pd, *mut ibv_ah_attr) -> *mut ibv_ah;
    ibv_destroy_ah: fn(*mut ibv_ah) -> c_int;
    ibv_attach_mcast: fn(*mut ibv_qp, *const ibv_gid, u16) -> c_int;
    ibv_detach_mcast: fn(*mut ibv_qp, *const ibv_gid, u16) -> c_int;
    ibv_wc_status_str: fn(c_int) -> *const c_char;
}

/// Functions of a device that carry out operations or make connections. A test can replace them
/// ([`crate::VerbsOptions::interpose`]).
#[derive(Clone, Copy)]
pub struct VerbsFunctions {
    /// Posts work requests to the send queue of a queue pair. Returns 0, or an errno (`ENOMEM`: the queue is full).
    pub post_send: PostSend,
    /// Posts receive buffers to one queue pair.
    pub post_recv: PostRecv,
    /// Posts receive buffers to the shared receive queue of a rail.
    pub post_srq_recv: PostSrqRecv,
    /// Takes completions without waiting. Returns their number, or a negative number after an error.
    pub poll_cq: PollCq,
    /// Requests one event at the next completion. This event wakes a sleeper.
    pub req_notify_cq: ReqNotifyCq,
    /// Queries the state of a port. Returns 0, or an errno.
    pub query_port: QueryPort,
    /// Changes the state and the attributes of a queue pair, for example to connect it with a peer. Returns 0, or an errno.
    pub modify_qp: ModifyQp,
    /// Creates an address handle for datagrams. Returns NULL after an error.
    pub create_ah: CreateAh,
}

impl VerbsFunctions {
    /// Collects the functions of the device's provider and of the library.
    pub(crate) fn of(library: &Library, ops: &ibv_context_ops) -> VerbsFunctions {
        VerbsFunctions {
            post_send: ops.post_send,
            post_recv: ops.post_recv,
            post_srq_recv: ops.post_srq_recv,
            poll_cq: ops.poll_cq,
            req_notify_cq: ops.req_notify_cq,
            query_port: library.ibv_query_port,
            modify_qp: library.ibv_modify_qp,
            create_ah: library.ibv_create_ah,
        }
    }
}
