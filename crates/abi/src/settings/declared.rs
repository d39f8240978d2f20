//! Declarations of all settings, except those of networks ([`super::networks`]).

use super::kinds::Audience::{Developer, Tuner, User};
use super::kinds::SettingAgreement::{All, Each, Job};
use super::kinds::SettingPart::{Collective, Fabric, Files, Launch, P2p, Rma, Shm, Waiting};
use super::kinds::{SettingKind, SettingSpec, SettingText};
use super::networks::NETWORKS;
use crate::table::LANES_END;
use crate::table::MOST;
use weft_collective::CollectiveKind;

const fn algorithm_of(
    operation: CollectiveKind,
    name: &'static str,
    doc: &'static str,
) -> SettingSpec {
    let about = SettingText(Collective, User, All);
    SettingSpec { name, about, kind: SettingKind::Algorithm(operation), default: "auto", doc }
}

/// All settings of the library.
pub const SETTINGS: &[SettingSpec] = &{
    let mut all = [OTHERS[0]; OTHERS.len() + NETWORKS.len()];
    let mut at = 0;
    while at < all.len() {
        let networks = at.checked_sub(OTHERS.len());
        all[at] = match networks {
            Some(at) => NETWORKS[at],
            None => OTHERS[at],
        };
        at += 1;
    }
    all
};

const OTHERS: &[SettingSpec] = &[
    SettingSpec {
        name: "WEFT_EAGER",
        about: SettingText(P2p, User, Each),
        kind: SettingKind::Number { least: 0, most: u32::MAX as u64 },
        default: "16384",
        doc: "Largest payload in bytes that is sent at once, before the receive is known to be posted.",
    },
    SettingSpec {
        name: "WEFT_CONNECT_TIMEOUT",
        about: SettingText(P2p, User, Each),
        kind: SettingKind::Number { least: 1, most: 1_000_000 },
        default: "60",
        doc: "Seconds that MPI_Comm_connect waits for MPI_Comm_accept.",
    },
    SettingSpec {
        name: "WEFT_CREDIT",
        about: SettingText(P2p, User, All),
        kind: SettingKind::Number { least: 0, most: u32::MAX as u64 },
        default: "1048576",
        doc: "Maximum eager bytes from one sender that one receiver has not yet received.",
    },
    SettingSpec {
        name: "WEFT_STAGING",
        about: SettingText(P2p, User, Each),
        kind: SettingKind::Number { least: 0, most: 1 << 30 },
        default: "5242880",
        doc: "Bytes of shared memory of a process for staged payloads within a host; 0 disables staging.",
    },
    SettingSpec {
        name: "WEFT_OBJECTS",
        about: SettingText(P2p, User, Each),
        kind: SettingKind::Number { least: 16, most: MOST as u64 },
        default: "16000000",
        doc: "Maximum number of objects of each kind (communicators, requests, ...) in a process.",
    },
    SettingSpec {
        name: "WEFT_LANES",
        about: SettingText(P2p, Tuner, Each),
        kind: SettingKind::Number { least: 0, most: LANES_END as u64 - 1 },
        default: "4",
        doc: "Number of lanes for communicators under MPI_THREAD_MULTIPLE on one host; 0 is none.",
    },
    SettingSpec {
        name: "WEFT_SHARED_COMMS",
        about: SettingText(Collective, Tuner, Each),
        kind: SettingKind::Maybe { least: 0, most: i32::MAX as u64 },
        default: "",
        doc: "Maximum number of communicators of a process with shared memory for collectives.",
    },
    SettingSpec {
        name: "WEFT_CACHES",
        about: SettingText(Shm, Tuner, Each),
        kind: SettingKind::Choice(&["auto", "near", "far"]),
        default: "auto",
        doc: "Assumed distance of the caches of ranks of one host: auto, near or far.",
    },
    SettingSpec {
        name: "WEFT_RENDEZVOUS",
        about: SettingText(P2p, User, Each),
        kind: SettingKind::Choice(&["read", "write"]),
        default: "read",
        doc: "Direction of rendezvous: the receiver reads (read) or the sender writes (write).",
    },
    SettingSpec {
        name: "WEFT_PROTOCOL",
        about: SettingText(P2p, Tuner, Each),
        kind: SettingKind::Choice(&[
            "auto", "eager", "staged", "read", "co-copy", "written", "pieces",
        ]),
        default: "auto",
        doc: "Protocol of all messages, where it is possible; auto takes the cheapest.",
    },
    SettingSpec {
        name: "WEFT_STREAM_SEGMENT",
        about: SettingText(Collective, Tuner, All),
        kind: SettingKind::Number { least: 64, most: 16 << 20 },
        default: "65536",
        doc: "Bytes of one eager segment of a stream.",
    },
    SettingSpec {
        name: "WEFT_STREAM_WINDOW",
        about: SettingText(Collective, Tuner, All),
        kind: SettingKind::Number { least: 1, most: 512 },
        default: "8",
        doc: "Maximum number of segments of one stream message in flight.",
    },
    SettingSpec {
        name: "WEFT_STREAM_RENDEZVOUS",
        about: SettingText(Collective, Tuner, All),
        kind: SettingKind::Number { least: 0, most: 1 << 40 },
        default: "262144",
        doc: "Largest payload in bytes that a stream sends in segments.",
    },
    SettingSpec {
        name: "WEFT_STREAM_BLOCK",
        about: SettingText(Collective, Tuner, All),
        kind: SettingKind::Number { least: 4 << 10, most: 1 << 30 },
        default: "131072",
        doc: "Bytes of the program's memory that a stream registers at a time.",
    },
    SettingSpec {
        name: "WEFT_FENCE",
        about: SettingText(Rma, User, All),
        kind: SettingKind::Choice(&["2S", "2S-APART", "1S", "1S-BARRIER", "RI", "ACK"]),
        default: "ACK",
        doc: "Design of MPI_Win_fence: 2S, 2S-APART, 1S, 1S-BARRIER, RI or ACK.",
    },
    SettingSpec {
        name: "WEFT_RMA_ORDER",
        about: SettingText(Rma, User, All),
        kind: SettingKind::Choice(&["called", "turns"]),
        default: "called",
        doc: "Order in which puts and gets are issued on a network: called or turns.",
    },
    SettingSpec {
        name: "WEFT_RMA_ATOMICS",
        about: SettingText(Rma, User, All),
        kind: SettingKind::Choice(&["auto", "guarded", "adapter"]),
        default: "auto",
        doc: "Method to accumulate 8-byte integers between nodes: auto, guarded or adapter.",
    },
    SettingSpec {
        name: "WEFT_IO_URING",
        about: SettingText(Files, User, Each),
        kind: SettingKind::Switch,
        default: "1",
        doc: "Use of io_uring for file access in the background: 1 where available, 0 never.",
    },
    SettingSpec {
        name: "WEFT_CMA",
        about: SettingText(Shm, User, All),
        kind: SettingKind::Switch,
        default: "1",
        doc: "Direct reads of another process's memory within a host: 1 allows, 0 forbids them.",
    },
    SettingSpec {
        name: "WEFT_COPY_MODEL",
        about: SettingText(Shm, User, Each),
        kind: SettingKind::Copies,
        default: "auto",
        doc: "Source of the costs of copies: auto, measure, generic or a file.",
    },
    SettingSpec {
        name: "WEFT_MAP",
        about: SettingText(Collective, User, All),
        kind: SettingKind::Words,
        default: "auto",
        doc: "Map that chooses collective algorithms: auto, none, a name or a file.",
    },
    SettingSpec {
        name: "WEFT_LEARN",
        about: SettingText(Collective, User, All),
        kind: SettingKind::Switch,
        default: "1",
        doc: "Choice of algorithms within a host by the times of earlier calls, 1, or by costs only, 0.",
    },
    SettingSpec {
        name: "WEFT_MULTICAST_REPAIR",
        about: SettingText(Collective, Tuner, Each),
        kind: SettingKind::Choice(&["unicast", "multicast"]),
        default: "unicast",
        doc: "Repair of a lost multicast by its root: unicast or multicast.",
    },
    algorithm_of(
        CollectiveKind::Barrier,
        "WEFT_BARRIER",
        "Algorithm of MPI_Barrier: auto, or a name that weft info --algorithms lists.",
    ),
    algorithm_of(
        CollectiveKind::Bcast,
        "WEFT_BCAST",
        "Algorithm of MPI_Bcast: auto, or a name that weft info --algorithms lists.",
    ),
    algorithm_of(
        CollectiveKind::Gather,
        "WEFT_GATHER",
        "Algorithm of MPI_Gather: auto, or a name that weft info --algorithms lists.",
    ),
    algorithm_of(
        CollectiveKind::Gatherv,
        "WEFT_GATHERV",
        "Algorithm of MPI_Gatherv: auto, or a name that weft info --algorithms lists.",
    ),
    algorithm_of(
        CollectiveKind::Scatter,
        "WEFT_SCATTER",
        "Algorithm of MPI_Scatter: auto, or a name that weft info --algorithms lists.",
    ),
    algorithm_of(
        CollectiveKind::Scatterv,
        "WEFT_SCATTERV",
        "Algorithm of MPI_Scatterv: auto, or a name that weft info --algorithms lists.",
    ),
    algorithm_of(
        CollectiveKind::Allgather,
        "WEFT_ALLGATHER",
        "Algorithm of MPI_Allgather: auto, or a name that weft info --algorithms lists.",
    ),
    algorithm_of(
        CollectiveKind::Alltoall,
        "WEFT_ALLTOALL",
        "Algorithm of MPI_Alltoall: auto, or a name that weft info --algorithms lists.",
    ),
    algorithm_of(
        CollectiveKind::Alltoallv,
        "WEFT_ALLTOALLV",
        "Algorithm of MPI_Alltoallv: auto, or a name that weft info --algorithms lists.",
    ),
    algorithm_of(
        CollectiveKind::Reduce,
        "WEFT_REDUCE",
        "Algorithm of MPI_Reduce: auto, or a name that weft info --algorithms lists.",
    ),
    algorithm_of(
        CollectiveKind::Allreduce,
        "WEFT_ALLREDUCE",
        "Algorithm of MPI_Allreduce: auto, or a name that weft info --algorithms lists.",
    ),
    algorithm_of(
        CollectiveKind::ReduceScatter,
        "WEFT_REDUCE_SCATTER",
        "Algorithm of MPI_Reduce_scatter: auto, or a name that weft info --algorithms lists.",
    ),
    algorithm_of(
        CollectiveKind::Scan,
        "WEFT_SCAN",
        "Algorithm of MPI_Scan: auto, or a name that weft info --algorithms lists.",
    ),
    algorithm_of(
        CollectiveKind::Exscan,
        "WEFT_EXSCAN",
        "Algorithm of MPI_Exscan: auto, or a name that weft info --algorithms lists.",
    ),
    SettingSpec {
        name: "WEFT_SPIN_US",
        about: SettingText(Waiting, Tuner, Each),
        kind: SettingKind::Number { least: 0, most: 1_000_000_000 },
        default: "500",
        doc: "Microseconds that a waiting rank spins before it yields the processor.",
    },
    SettingSpec {
        name: "WEFT_PLACES",
        about: SettingText(Waiting, Tuner, Each),
        kind: SettingKind::Choice(&["none", "blocks"]),
        default: "blocks",
        doc: "Placement of ranks that share processors: blocks or none.",
    },
    SettingSpec {
        name: "WEFT_PROGRESS",
        about: SettingText(Waiting, User, Each),
        kind: SettingKind::Choice(&["auto", "none", "locked", "signal", "handover"]),
        default: "auto",
        doc: "Progress while the program computes: auto, none, locked, signal or handover.",
    },
    SettingSpec {
        name: "WEFT_PROGRESS_SIGNAL",
        about: SettingText(Waiting, User, Each),
        kind: SettingKind::Number { least: 1, most: 64 },
        default: "23",
        doc: "Number of the signal that WEFT_PROGRESS=signal uses.",
    },
    SettingSpec {
        name: "WEFT_VERBOSE",
        about: SettingText(Launch, User, Each),
        kind: SettingKind::Switch,
        default: "0",
        doc: "Report of connections at MPI_Init, and of learned algorithms at MPI_Finalize: 0 or 1.",
    },
    SettingSpec {
        name: "WEFT_FAULT",
        about: SettingText(Fabric, Developer, Each),
        kind: SettingKind::Faults,
        default: "",
        doc: "Faults that are injected into the network, for tests.",
    },
    SettingSpec {
        name: weft_bootstrap::nodes::SETTING,
        about: SettingText(Launch, Developer, Job("each job has ranks, and so nodes, of its own")),
        kind: SettingKind::Nodes,
        default: "",
        doc: "Division of the ranks of one host into several simulated nodes, for tests.",
    },
    SettingSpec {
        name: weft_bootstrap::PMIX_SETTING,
        about: SettingText(Launch, User, Each),
        kind: SettingKind::File,
        default: "",
        doc: "File name of libpmix, for launchers that use PMIx.",
    },
];
