//! Compares `ffi.rs` with the system's `<infiniband/verbs.h>`. A C program prints the layouts and constants of the header.

use crate::adapter::manager::{
    EventChannel, RDMA_CM_EVENT_MULTICAST_ERROR, RDMA_CM_EVENT_MULTICAST_JOIN, RDMA_PS_UDP,
    RdmaCmEvent, RdmaUdParam,
};
use crate::ffi::*;
use std::mem::{offset_of, size_of};
use std::process::Command;

/// A name, the value in `ffi.rs`, and the C expression that gives the value.
type Fact = (&'static str, u64, String);

/// Facts about structures and their fields. A structure is complete (`=`), or declared only up to a field (`<`). A field is written
/// `rust: c` if the names differ.
macro_rules! facts {
    ($facts:ident; $($name:ident $kind:tt { $($field:ident $(: $c:literal)?),* $(,)? })*) => {
        $(
            facts!(@ $kind $facts $name);
            $(
                let field = stringify!($field);
                $(let field = { let _ = field; $c };)?
                let c = format!("offsetof(struct {}, {field})", stringify!($name));
                let name = concat!(stringify!($name), ".", stringify!($field));
                $facts.push((name, offset_of!($name, $field) as u64, c));
            )*
        )*
    };
    (@ = $facts:ident $name:ident) => {
        let c = format!("sizeof(struct {})", stringify!($name));
        $facts.push((stringify!($name), size_of::<$name>() as u64, c));
    };
    (@ < $facts:ident $name:ident) => {};
}

macro_rules! constants {
    ($facts:ident; $($name:ident),* $(,)?) => {
        $($facts.push((stringify!($name), $name as u64, stringify!($name).to_owned()));)*
    };
}

fn facts() -> Vec<Fact> {
    let mut facts: Vec<Fact> = Vec::new();
    facts! { facts;
        ibv_device_attr = {
            fw_ver, node_guid, max_mr_size, vendor_id, max_qp, max_qp_wr, max_sge, max_cq, max_cqe,
            max_mr, max_qp_rd_atom, max_qp_init_rd_atom, atomic_cap, max_mcast_grp, max_ah, max_srq,
            max_srq_wr, max_srq_sge, max_pkeys, local_ca_ack_delay, phys_port_cnt
        }
        ibv_port_attr = {
            state, max_mtu, active_mtu, gid_tbl_len, port_cap_flags, max_msg_sz, pkey_tbl_len, lid,
            sm_lid, lmc, active_width, active_speed, phys_state, link_layer, flags, port_cap_flags2
        }
        ibv_wc = {
            wr_id, status, opcode, vendor_err, byte_len, imm_data, qp_num, src_qp, wc_flags,
            pkey_index, slid, sl, dlid_path_bits
        }
        ibv_global_route = { dgid, flow_label, sgid_index, hop_limit, traffic_class }
        ibv_ah_attr = { grh, dlid, sl, src_path_bits, static_rate, is_global, port_num }
        ibv_srq_attr = { max_wr, max_sge, srq_limit }
        ibv_srq_init_attr = { srq_context, attr }
        ibv_qp_cap = { max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data }
        ibv_qp_init_attr = { qp_context, send_cq, recv_cq, srq, cap, qp_type, sq_sig_all }
        ibv_qp_attr = {
            qp_state, cur_qp_state, path_mtu, path_mig_state, qkey, rq_psn, sq_psn, dest_qp_num,
            qp_access_flags, cap, ah_attr, alt_ah_attr, pkey_index, alt_pkey_index,
            en_sqd_async_notify, sq_draining, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer,
            port_num, timeout, retry_cnt, rnr_retry, alt_port_num, alt_timeout, rate_limit
        }
        ibv_sge = { addr, length, lkey }
        ibv_send_wr = {
            wr_id, next, sg_list, num_sge, opcode, send_flags, imm_data, wr, rest: "qp_type"
        }
        ibv_recv_wr = { wr_id, next, sg_list, num_sge }
        ibv_srq < { context }
        ibv_qp < { context, qp_context, pd, send_cq, recv_cq, srq, handle, qp_num }
        ibv_comp_channel < { context, fd }
        ibv_cq < { context, channel, cq_context, handle, cqe }
        ibv_mr = { context, pd, addr, length, handle, lkey, rkey }
        ibv_context_ops = { poll_cq, req_notify_cq, post_srq_recv, post_send, post_recv }
        ibv_context < { device, ops, cmd_fd, async_fd, num_comp_vectors }
        ibv_device = {
            ops: "_ops", node_type, transport_type, name, dev_name, dev_path, ibdev_path
        }
        ibv_async_event = { element, event_type }
    }
    let wr = |field: &str| {
        format!("offsetof(struct ibv_send_wr, wr.{field}) - offsetof(struct ibv_send_wr, wr)")
    };
    let mut target =
        |name, offset: usize, field: &str| facts.push((name, offset as u64, wr(field)));
    target("rdma.remote_addr", offset_of!(ibv_rdma, remote_addr), "rdma.remote_addr");
    target("rdma.rkey", offset_of!(ibv_rdma, rkey), "rdma.rkey");
    target("atomic.remote_addr", offset_of!(ibv_atomic, remote_addr), "atomic.remote_addr");
    target("atomic.compare_add", offset_of!(ibv_atomic, compare_add), "atomic.compare_add");
    target("atomic.swap", offset_of!(ibv_atomic, swap), "atomic.swap");
    target("atomic.rkey", offset_of!(ibv_atomic, rkey), "atomic.rkey");
    target("ud.ah", offset_of!(ibv_ud, ah), "ud.ah");
    target("ud.remote_qpn", offset_of!(ibv_ud, remote_qpn), "ud.remote_qpn");
    target("ud.remote_qkey", offset_of!(ibv_ud, remote_qkey), "ud.remote_qkey");
    constants! { facts;
        IBV_PORT_ACTIVE, IBV_LINK_LAYER_ETHERNET, IBV_TRANSPORT_IB, IBV_ATOMIC_NONE,
        IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ,
        IBV_ACCESS_REMOTE_ATOMIC, IBV_QPT_RC, IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_ERR,
        IBV_QP_STATE, IBV_QP_ACCESS_FLAGS, IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_QKEY, IBV_QP_AV,
        IBV_QP_PATH_MTU, IBV_QP_TIMEOUT, IBV_QP_RETRY_CNT, IBV_QP_RNR_RETRY, IBV_QP_RQ_PSN,
        IBV_QP_MAX_QP_RD_ATOMIC, IBV_QP_MIN_RNR_TIMER, IBV_QP_SQ_PSN, IBV_QP_MAX_DEST_RD_ATOMIC,
        IBV_QP_DEST_QPN, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND,
        IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
        IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_SEND_SIGNALED, IBV_SEND_SOLICITED, IBV_SEND_INLINE,
        IBV_WC_SUCCESS, IBV_WC_WR_FLUSH_ERR, IBV_WC_REM_ACCESS_ERR, IBV_WC_RETRY_EXC_ERR,
        IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM,
        IBV_EVENT_DEVICE_FATAL, IBV_EVENT_PORT_ACTIVE, IBV_EVENT_PORT_ERR,
    }
    facts
}

/// Returns the facts about `<rdma/rdma_cma.h>`.
fn manager_facts() -> Vec<Fact> {
    let mut facts: Vec<Fact> = Vec::new();
    let mut field = |name, offset: usize, of: &str, field: &str| {
        facts.push((name, offset as u64, format!("offsetof(struct {of}, {field})")));
    };
    field("fd", offset_of!(EventChannel, fd), "rdma_event_channel", "fd");
    field("id", offset_of!(RdmaCmEvent, id), "rdma_cm_event", "id");
    field("listen_id", offset_of!(RdmaCmEvent, listen_id), "rdma_cm_event", "listen_id");
    field("event", offset_of!(RdmaCmEvent, event), "rdma_cm_event", "event");
    field("status", offset_of!(RdmaCmEvent, status), "rdma_cm_event", "status");
    field("ud", offset_of!(RdmaCmEvent, ud), "rdma_cm_event", "param.ud");
    field("ah_attr", offset_of!(RdmaUdParam, ah_attr), "rdma_ud_param", "ah_attr");
    field("qp_num", offset_of!(RdmaUdParam, qp_num), "rdma_ud_param", "qp_num");
    field("qkey", offset_of!(RdmaUdParam, qkey), "rdma_ud_param", "qkey");
    constants! { facts;
        RDMA_PS_UDP, RDMA_CM_EVENT_MULTICAST_JOIN, RDMA_CM_EVENT_MULTICAST_ERROR,
    }
    facts
}

#[test]
fn structures_and_constants_are_those_of_the_header() {
    let facts = facts();
    assert!(facts.len() > 200, "{}", facts.len());
    compare("infiniband/verbs.h", "libibverbs-dev", &facts);
}

#[test]
fn those_of_the_connection_manager_are_too() {
    compare("rdma/rdma_cma.h", "librdmacm-dev", &manager_facts());
}

fn compare(header: &str, package: &str, facts: &[Fact]) {
    if !std::path::Path::new("/usr/include").join(header).exists() {
        eprintln!("NOT RUN: no <{header}> (Debian: {package})");
        return;
    }
    let mut program = format!(
        "#include <{header}>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {{\n"
    );
    for (_, _, c) in facts {
        program += &format!("printf(\"%llu\\n\", (unsigned long long)({c}));\n");
    }
    program += "return 0; }\n";
    let directory =
        std::env::temp_dir().join(format!("weft-layout-{package}-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (source, binary) = (directory.join("layout.c"), directory.join("layout"));
    std::fs::write(&source, program).unwrap();
    let status = Command::new("cc").arg("-o").arg(&binary).arg(&source).status();
    assert!(status.expect("a C compiler").success());
    let output = Command::new(&binary).output().unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let theirs: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(theirs.len(), facts.len());
    for ((name, ours, c), theirs) in facts.iter().zip(theirs) {
        assert_eq!(*ours, theirs, "{name}: {c}");
    }
}
