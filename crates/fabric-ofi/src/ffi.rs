//! The part of libfabric's binary interface that this crate uses, with libfabric's names (fabric.h, fi_domain.h, fi_eq.h,
//! fi_endpoint.h, fi_rma.h, fi_cm.h; API 1.9 and later).
//!
//! Each structure is read only through pointers that the library gave, or has not changed since 1.9. Later versions append fields
//! only to structures of the first kind. A function that this crate does not call is an [`Unused`] pointer. A test compares sizes
//! and offsets with the headers of the machine.
#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_int, c_void};

/// Pointer to a function that this crate does not call.
pub type Unused = *const c_void;

/// Oldest API version that has everything this crate uses: `FI_VERSION(1, 9)`.
pub const API: u32 = 1 << 16 | 9;

pub const FI_MSG: u64 = 1 << 1;
pub const FI_RMA: u64 = 1 << 2;
pub const FI_READ: u64 = 1 << 8;
pub const FI_WRITE: u64 = 1 << 9;
pub const FI_RECV: u64 = 1 << 10;
pub const FI_TRANSMIT: u64 = 1 << 11;
pub const FI_REMOTE_READ: u64 = 1 << 12;
pub const FI_REMOTE_WRITE: u64 = 1 << 13;
pub const FI_DELIVERY_COMPLETE: u64 = 1 << 28;
pub const FI_CONTEXT: u64 = 1 << 59;
pub const FI_CONTEXT2: u64 = 1 << 52;

pub const FI_ORDER_SAW: u64 = 1 << 7;
pub const FI_ORDER_SAS: u64 = 1 << 8;

pub const FI_MR_LOCAL: c_int = 1 << 2;
pub const FI_MR_VIRT_ADDR: c_int = 1 << 4;
pub const FI_MR_ALLOCATED: c_int = 1 << 5;
pub const FI_MR_PROV_KEY: c_int = 1 << 6;
pub const FI_MR_ENDPOINT: c_int = 1 << 9;

pub const FI_EP_RDM: c_int = 3;
pub const FI_AV_TABLE: c_int = 2;
pub const FI_THREAD_SAFE: c_int = 1;
pub const FI_RM_ENABLED: c_int = 2;
pub const FI_CQ_FORMAT_MSG: c_int = 2;
pub const FI_WAIT_NONE: c_int = 0;
pub const FI_WAIT_FD: c_int = 3;

/// Commands for [`fi_ops::control`].
pub const FI_GETWAIT: c_int = 5;
pub const FI_ENABLE: c_int = 6;

/// Error codes: libfabric uses the error numbers of the system, and further codes.
pub const FI_EAGAIN: isize = libc::EAGAIN as isize;
pub const FI_EAVAIL: isize = 259;

#[repr(C)]
pub struct fid {
    pub fclass: usize,
    pub context: *mut c_void,
    pub ops: *mut fi_ops,
}

#[repr(C)]
pub struct fi_ops {
    pub size: usize,
    pub close: unsafe extern "C" fn(*mut fid) -> c_int,
    pub bind: unsafe extern "C" fn(*mut fid, *mut fid, u64) -> c_int,
    pub control: unsafe extern "C" fn(*mut fid, c_int, *mut c_void) -> c_int,
}

#[repr(C)]
pub struct fi_tx_attr {
    pub caps: u64,
    pub mode: u64,
    pub op_flags: u64,
    pub msg_order: u64,
    pub comp_order: u64,
    pub inject_size: usize,
    pub size: usize,
}

#[repr(C)]
pub struct fi_rx_attr {
    pub caps: u64,
    pub mode: u64,
    pub op_flags: u64,
    pub msg_order: u64,
}

#[repr(C)]
pub struct fi_ep_attr {
    pub kind: c_int,
    pub protocol: u32,
    pub protocol_version: u32,
    pub max_msg_size: usize,
    pub msg_prefix_size: usize,
}

#[repr(C)]
pub struct fi_domain_attr {
    pub domain: *mut fid_domain,
    pub name: *mut c_char,
    pub threading: c_int,
    pub control_progress: c_int,
    pub data_progress: c_int,
    pub resource_mgmt: c_int,
    pub av_type: c_int,
    pub mr_mode: c_int,
    pub mr_key_size: usize,
}

#[repr(C)]
pub struct fi_fabric_attr {
    pub fabric: *mut fid_fabric,
    pub name: *mut c_char,
    pub prov_name: *mut c_char,
    pub prov_version: u32,
}

#[repr(C)]
pub struct fi_info {
    pub next: *mut fi_info,
    pub caps: u64,
    pub mode: u64,
    pub addr_format: u32,
    pub src_addrlen: usize,
    pub dest_addrlen: usize,
    pub src_addr: *mut c_void,
    pub dest_addr: *mut c_void,
    pub handle: *mut fid,
    pub tx_attr: *mut fi_tx_attr,
    pub rx_attr: *mut fi_rx_attr,
    pub ep_attr: *mut fi_ep_attr,
    pub domain_attr: *mut fi_domain_attr,
    pub fabric_attr: *mut fi_fabric_attr,
}

#[repr(C)]
pub struct fid_fabric {
    pub fid: fid,
    pub ops: *mut fi_ops_fabric,
}

#[repr(C)]
pub struct fi_ops_fabric {
    pub size: usize,
    pub domain: unsafe extern "C" fn(
        *mut fid_fabric,
        *mut fi_info,
        *mut *mut fid_domain,
        *mut c_void,
    ) -> c_int,
    pub passive_ep: Unused,
    pub eq_open: Unused,
    pub wait_open: Unused,
    pub trywait: unsafe extern "C" fn(*mut fid_fabric, *mut *mut fid, c_int) -> c_int,
}

#[repr(C)]
pub struct fid_domain {
    pub fid: fid,
    pub ops: *mut fi_ops_domain,
    pub mr: *mut fi_ops_mr,
}

#[repr(C)]
pub struct fi_ops_domain {
    pub size: usize,
    pub av_open: unsafe extern "C" fn(
        *mut fid_domain,
        *mut fi_av_attr,
        *mut *mut fid_av,
        *mut c_void,
    ) -> c_int,
    pub cq_open: unsafe extern "C" fn(
        *mut fid_domain,
        *mut fi_cq_attr,
        *mut *mut fid_cq,
        *mut c_void,
    ) -> c_int,
    pub endpoint:
        unsafe extern "C" fn(*mut fid_domain, *mut fi_info, *mut *mut fid_ep, *mut c_void) -> c_int,
}

#[repr(C)]
pub struct fi_ops_mr {
    pub size: usize,
    /// Arguments: owner, memory, length, access, offset, requested key, flags, result, context.
    pub reg: unsafe extern "C" fn(
        *mut fid,
        *const c_void,
        usize,
        u64,
        u64,
        u64,
        u64,
        *mut *mut fid_mr,
        *mut c_void,
    ) -> c_int,
}

#[repr(C)]
pub struct fid_mr {
    pub fid: fid,
    pub mem_desc: *mut c_void,
    pub key: u64,
}

#[repr(C)]
pub struct fi_av_attr {
    pub kind: c_int,
    pub rx_ctx_bits: c_int,
    pub count: usize,
    pub ep_per_node: usize,
    pub name: *const c_char,
    pub map_addr: *mut c_void,
    pub flags: u64,
}

#[repr(C)]
pub struct fid_av {
    pub fid: fid,
    pub ops: *mut fi_ops_av,
}

#[repr(C)]
pub struct fi_ops_av {
    pub size: usize,
    pub insert: unsafe extern "C" fn(
        *mut fid_av,
        *const c_void,
        usize,
        *mut u64,
        u64,
        *mut c_void,
    ) -> c_int,
    pub insertsvc: Unused,
    pub insertsym: Unused,
    pub remove: Unused,
    pub lookup: Unused,
    pub straddr:
        unsafe extern "C" fn(*mut fid_av, *const c_void, *mut c_char, *mut usize) -> *const c_char,
}

#[repr(C)]
pub struct fi_cq_attr {
    pub size: usize,
    pub flags: u64,
    pub format: c_int,
    pub wait_obj: c_int,
    pub signaling_vector: c_int,
    pub wait_cond: c_int,
    pub wait_set: *mut c_void,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct fi_cq_msg_entry {
    pub op_context: *mut c_void,
    pub flags: u64,
    pub len: usize,
}

#[repr(C)]
pub struct fi_cq_err_entry {
    pub op_context: *mut c_void,
    pub flags: u64,
    pub len: usize,
    pub buf: *mut c_void,
    pub data: u64,
    pub tag: u64,
    pub olen: usize,
    pub err: c_int,
    pub prov_errno: c_int,
    pub err_data: *mut c_void,
    pub err_data_size: usize,
    /// Field that later versions append.
    pub src_addr: u64,
}

#[repr(C)]
pub struct fid_cq {
    pub fid: fid,
    pub ops: *mut fi_ops_cq,
}

#[repr(C)]
pub struct fi_ops_cq {
    pub size: usize,
    pub read: unsafe extern "C" fn(*mut fid_cq, *mut c_void, usize) -> isize,
    pub readfrom: Unused,
    pub readerr: unsafe extern "C" fn(*mut fid_cq, *mut fi_cq_err_entry, u64) -> isize,
    pub sread: Unused,
    pub sreadfrom: Unused,
    pub signal: Unused,
    pub strerror: unsafe extern "C" fn(
        *mut fid_cq,
        c_int,
        *const c_void,
        *mut c_char,
        usize,
    ) -> *const c_char,
}

#[repr(C)]
pub struct fid_ep {
    pub fid: fid,
    pub ops: *mut c_void,
    pub cm: *mut fi_ops_cm,
    pub msg: *mut fi_ops_msg,
    pub rma: *mut fi_ops_rma,
}

#[repr(C)]
pub struct fi_ops_cm {
    pub size: usize,
    pub setname: Unused,
    pub getname: unsafe extern "C" fn(*mut fid, *mut c_void, *mut usize) -> c_int,
}

#[repr(C)]
pub struct fi_ops_msg {
    pub size: usize,
    /// Arguments: endpoint, buffer, length, descriptor, source, context.
    pub recv: unsafe extern "C" fn(
        *mut fid_ep,
        *mut c_void,
        usize,
        *mut c_void,
        u64,
        *mut c_void,
    ) -> isize,
    pub recvv: Unused,
    pub recvmsg: Unused,
    /// Arguments: endpoint, buffer, length, descriptor, destination, context.
    pub send: unsafe extern "C" fn(
        *mut fid_ep,
        *const c_void,
        usize,
        *mut c_void,
        u64,
        *mut c_void,
    ) -> isize,
    pub sendv: Unused,
    pub sendmsg: Unused,
    /// Arguments: endpoint, buffer, length, destination.
    pub inject: unsafe extern "C" fn(*mut fid_ep, *const c_void, usize, u64) -> isize,
}

#[repr(C)]
pub struct fi_ops_rma {
    pub size: usize,
    /// Arguments: endpoint, buffer, length, descriptor, peer, address, key, context.
    pub read: Transfer,
    pub readv: Unused,
    pub readmsg: Unused,
    pub write: Transfer,
    pub writev: Unused,
    pub writemsg: unsafe extern "C" fn(*mut fid_ep, *const fi_msg_rma, u64) -> isize,
}

#[repr(C)]
pub struct fi_msg_rma {
    pub msg_iov: *const libc::iovec,
    pub desc: *mut *mut c_void,
    pub iov_count: usize,
    pub addr: u64,
    pub rma_iov: *const fi_rma_iov,
    pub rma_iov_count: usize,
    pub context: *mut c_void,
    pub data: u64,
}

#[repr(C)]
pub struct fi_rma_iov {
    pub addr: u64,
    pub len: usize,
    pub key: u64,
}

pub type Transfer = unsafe extern "C" fn(
    *mut fid_ep,
    *mut c_void,
    usize,
    *mut c_void,
    u64,
    u64,
    u64,
    *mut c_void,
) -> isize;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::mem::offset_of;
    use std::process::Command;

    /// Lists offsets as Rust sees them, each with the expression for the same offset in C.
    macro_rules! offsets {
        ($($type:ident.$field:ident $(= $c:ident)?),* $(,)?) => {
            [$((
                concat!(stringify!($type), ".", stringify!($field)),
                offset_of!($type, $field),
                offsets!(@c $type $field $($c)?),
            )),*]
        };
        (@c $type:ident $field:ident) => {
            concat!("offsetof(struct ", stringify!($type), ", ", stringify!($field), ")")
        };
        (@c $type:ident $field:ident $c:ident) => {
            concat!("offsetof(struct ", stringify!($type), ", ", stringify!($c), ")")
        };
    }

    /// Checks that each structure's last used field has the offset that the machine's headers give it.
    #[test]
    fn fields_are_where_the_headers_have_them() {
        let all = offsets![
            fid.ops, fi_ops.control, fi_tx_attr.size, fi_rx_attr.msg_order,
            fi_ep_attr.kind = type, fi_ep_attr.msg_prefix_size, fi_domain_attr.mr_mode,
            fi_domain_attr.mr_key_size, fi_fabric_attr.prov_version, fi_info.src_addr,
            fi_info.fabric_attr, fid_fabric.ops, fi_ops_fabric.trywait, fid_domain.mr,
            fi_ops_domain.endpoint, fi_ops_mr.reg, fid_mr.key, fi_av_attr.kind = type,
            fi_av_attr.flags, fid_av.ops, fi_ops_av.straddr, fi_cq_attr.wait_set,
            fi_cq_msg_entry.len, fi_cq_err_entry.err, fi_cq_err_entry.err_data_size,
            fid_cq.ops, fi_ops_cq.readerr, fi_ops_cq.strerror, fid_ep.msg, fid_ep.rma,
            fi_ops_cm.getname, fi_ops_msg.recv, fi_ops_msg.send, fi_ops_msg.inject,
            fi_ops_rma.read, fi_ops_rma.writemsg, fi_msg_rma.data, fi_rma_iov.key,
        ];
        let constants = [
            ("FI_DELIVERY_COMPLETE", FI_DELIVERY_COMPLETE),
            ("FI_CONTEXT2", FI_CONTEXT2),
            ("FI_ORDER_SAW", FI_ORDER_SAW),
            ("FI_MR_ENDPOINT", FI_MR_ENDPOINT as u64),
            ("FI_EP_RDM", FI_EP_RDM as u64),
            ("FI_WAIT_FD", FI_WAIT_FD as u64),
            ("FI_CQ_FORMAT_MSG", FI_CQ_FORMAT_MSG as u64),
            ("FI_GETWAIT", FI_GETWAIT as u64),
            ("FI_ENABLE", FI_ENABLE as u64),
            ("FI_EAVAIL", FI_EAVAIL as u64),
        ];
        let mut text = String::from("#include <stddef.h>\n");
        for header in ["fabric", "fi_domain", "fi_eq", "fi_endpoint", "fi_rma", "fi_cm", "fi_errno"]
        {
            text += &format!("#include <rdma/{header}.h>\n");
        }
        for (name, offset, in_c) in all {
            text += &format!("_Static_assert({in_c} == {offset}, \"{name}\");\n");
        }
        for (name, value) in constants {
            text += &format!("_Static_assert({name} == {value}ull, \"{name}\");\n");
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("layout.c");
        std::fs::write(&file, text).unwrap();
        let compiled = Command::new("cc").args(["-fsyntax-only", "-x", "c"]).arg(&file).output();
        let output = compiled.expect("a C compiler");
        let error = String::from_utf8_lossy(&output.stderr);
        if error.contains("rdma/fabric.h: No such file") {
            let mut out = std::io::stderr();
            let _ =
                writeln!(out, "\nNOT RUN: libfabric's headers are not installed (libfabric-dev)");
            assert!(std::env::var_os("WEFT_TEST_OFI").is_none(), "{error}");
            return;
        }
        assert!(output.status.success(), "{error}");
    }
}
