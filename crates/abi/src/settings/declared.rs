//! Every setting, declared once: here, and those of networks beside ([`super::networks`]).

use super::kinds::Agreement::{All, Each};
use super::kinds::Audience::{Developer, Tuner, User};
use super::kinds::Part::{Collective, Fabric, Files, Launch, P2p, Rma, Shm, Waiting};
use super::kinds::{About, Setting, SettingKind};
use super::networks::NETWORKS;
use crate::table::MOST;
use weft_collective::Operation;

const fn algorithm_of(operation: Operation, name: &'static str, doc: &'static str) -> Setting {
    let about = About(Collective, User, All);
    Setting { name, about, kind: SettingKind::Algorithm(operation), default: "auto", doc }
}

/// All settings of the library.
pub const SETTINGS: &[Setting] = &{
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

const OTHERS: &[Setting] = &[
    Setting {
        name: "WEFT_EAGER",
        about: About(P2p, User, Each),
        kind: SettingKind::Number { least: 0, most: u32::MAX as u64 },
        default: "16384",
        doc: "largest payload in bytes that may be sent at once; ranks of the same machine send shorter ones by what is the \
              cheapest, and a network whose round trip is long is sent as much as pays, unless this is set",
    },
    Setting {
        name: "WEFT_CONNECT_TIMEOUT",
        about: About(P2p, User, Each),
        kind: SettingKind::Number { least: 1, most: 1_000_000 },
        default: "60",
        doc: "seconds that MPI_Comm_connect waits to be accepted, and that processes of jobs that connect wait for each other",
    },
    Setting {
        name: "WEFT_CREDIT",
        about: About(P2p, User, All),
        kind: SettingKind::Number { least: 0, most: u32::MAX as u64 },
        default: "1048576",
        doc: "eager payload in bytes that one sender may have unreceived at one receiver; where it is not set, up to 8 MiB over TCP, \
              as long as that is not more than 256 MiB from all ranks together",
    },
    Setting {
        name: "WEFT_STAGING",
        about: About(P2p, User, Each),
        kind: SettingKind::Number { least: 0, most: 1 << 30 },
        default: "5242880",
        doc: "bytes of memory through which ranks of the same machine stage payloads of up to a quarter of it, copied in and \
              out at the same time, where that is the cheapest way; taken where there is plenty; 0: none",
    },
    Setting {
        name: "WEFT_OBJECTS",
        about: About(P2p, User, Each),
        kind: SettingKind::Number { least: 16, most: MOST as u64 },
        default: "16000000",
        doc: "the most communicators, requests, datatypes and so on, of each kind, that a process may have at once",
    },
    Setting {
        name: "WEFT_SHARED_COMMS",
        about: About(Collective, Tuner, Each),
        kind: SettingKind::Maybe { least: 0, most: i32::MAX as u64 },
        default: "",
        doc: "the most communicators of a process whose ranks share memory in collective operations, up to 0.7 MiB each; \
              further ones send messages; nothing: what an eighth of the memory has room for",
    },
    Setting {
        name: "WEFT_PAST_CACHES",
        about: About(Shm, Tuner, Each),
        kind: SettingKind::Maybe { least: 0, most: i32::MAX as u64 },
        default: "",
        doc: "bytes from which payloads that ranks of the same machine copy go past the caches; nothing: in collective \
              operations of 3 and more ranks 16384 while their readers are found to be slow, as those are whose \
              processors share no cache, and between two such ranks from where the copy model says that it pays; \
              2147483647: never",
    },
    Setting {
        name: "WEFT_CACHES",
        about: About(Shm, Tuner, Each),
        kind: SettingKind::Choice(&["auto", "near", "far", "changing"]),
        default: "auto",
        doc: "how far the caches of ranks of the same machine are taken to be from each other: near (one in common), far \
              (none: payloads are fetched rather than put down, or go past the caches, as the copy model says), as copies \
              between them are found to take (auto), or changing, for tests",
    },
    Setting {
        name: "WEFT_RENDEZVOUS",
        about: About(P2p, User, Each),
        kind: SettingKind::Choice(&["read", "write"]),
        default: "read",
        doc: "how payloads move that are not sent at once: the receiver reads the sender's memory, or the sender \
              writes to the receiver's",
    },
    Setting {
        name: "WEFT_PROTOCOL",
        about: About(P2p, Tuner, Each),
        kind: SettingKind::Choice(&[
            "auto", "eager", "staged", "read", "co-copy", "written", "pieces",
        ]),
        default: "auto",
        doc: "how messages go, wherever that is possible (weft explain send says what is, and what it costs): the cheapest way \
              by the model of the machine, or always this one: eager, staged, read, co-copy, written, pieces",
    },
    Setting {
        name: "WEFT_STREAM_SEGMENT",
        about: About(Collective, Tuner, All),
        kind: SettingKind::Number { least: 64, most: 16 << 20 },
        default: "65536",
        doc: "streams (collective algorithms without MPI- before their name): bytes of an eager segment, of which a \
              process registers up to 80; the same on all ranks",
    },
    Setting {
        name: "WEFT_STREAM_WINDOW",
        about: About(Collective, Tuner, All),
        kind: SettingKind::Number { least: 1, most: 512 },
        default: "8",
        doc: "streams: segments of one message that may be under way",
    },
    Setting {
        name: "WEFT_STREAM_RENDEZVOUS",
        about: About(Collective, Tuner, All),
        kind: SettingKind::Number { least: 0, most: 1 << 40 },
        default: "262144",
        doc: "streams: largest payload in bytes that goes in segments; above it, the program's memory is registered",
    },
    Setting {
        name: "WEFT_STREAM_BLOCK",
        about: About(Collective, Tuner, All),
        kind: SettingKind::Number { least: 4 << 10, most: 1 << 30 },
        default: "131072",
        doc: "streams: bytes of the program's memory that are registered at once, while others travel; the same on all \
              ranks",
    },
    Setting {
        name: "WEFT_FENCE",
        about: About(Rma, User, All),
        kind: SettingKind::Choice(&["2S", "1S", "1S-BARRIER", "RI", "ACK"]),
        default: "ACK",
        doc: "how MPI_Win_fence works: queued operations as messages, flags of all pairs, flags and a barrier, \
              counted arrivals, acknowledged writes and a barrier; the hint weft_fence is for one window",
    },
    Setting {
        name: "WEFT_RMA_ORDER",
        about: About(Rma, User, All),
        kind: SettingKind::Choice(&["called", "turns"]),
        default: "called",
        doc: "puts and gets on a network are issued as they are called, or queued and issued in turns so that both \
              directions work at once; the hint weft_rma_order is for one window",
    },
    Setting {
        name: "WEFT_RMA_ENDING",
        about: About(Rma, User, All),
        kind: SettingKind::Choice(&["used", "every", "acknowledged"]),
        default: "used",
        doc: "how MPI_Win_complete tells a target on a network: by flags behind the data on the rails that were used, \
              on every rail, or by one flag once all data are acknowledged; the hint weft_rma_ending is for one window",
    },
    Setting {
        name: "WEFT_RMA_ATOMICS",
        about: About(Rma, User, All),
        kind: SettingKind::Choice(&["auto", "guarded", "adapter"]),
        default: "auto",
        doc: "how integers of 8 bytes in memory of MPI_Win_allocate are accumulated between nodes: by the atomic \
              operations of the adapters, one element each; under a lock of the target, which suits long accumulates; or \
              auto: by adapters where a rank's part is at most 4 KiB; the hints weft_rma_atomics and \
              mpi_accumulate_granularity (to 8: adapter, above: guarded) are for one window",
    },
    Setting {
        name: "WEFT_IO_URING",
        about: About(Files, User, Each),
        kind: SettingKind::Switch,
        default: "1",
        doc: "0: what goes on in files while the program computes is always done by threads, and nothing by io_uring, which is \
              used where the system allows it",
    },
    Setting {
        name: "WEFT_CMA",
        about: About(Shm, User, All),
        kind: SettingKind::Switch,
        default: "1",
        doc: "0: never read another process's memory directly, copy through shared cells",
    },
    Setting {
        name: "WEFT_COPY_MODEL",
        about: About(Shm, User, Each),
        kind: SettingKind::Copies,
        default: "auto",
        doc: "what moving bytes between ranks of one machine costs, by which it is chosen how: auto (as measured on this \
              host and kept in the user's cache directory; the first job measures it in a few milliseconds), measure (again), \
              generic (of no machine), or a file with a table [copies] (with a / or a . in its name); that of the lowest rank of each host \
              counts there; weft info shows the numbers",
    },
    Setting {
        name: "WEFT_MAP",
        about: About(Collective, User, All),
        kind: SettingKind::Words,
        default: "auto",
        doc: "the map that chooses collective algorithms by ranks and bytes: the name of a shipped one \
              (maps/README.md), a file of `weft tune` (with a / or a . in its name), none, or auto: shm \
              among ranks that share memory, ndr elsewhere",
    },
    Setting {
        name: "WEFT_MULTICAST_REPAIR",
        about: About(Collective, Tuner, Each),
        kind: SettingKind::Choice(&["unicast", "multicast"]),
        default: "unicast",
        doc: "how the root of a multicast answers who lacks some of it: by a message to that one (unicast), or by \
              multicast once more, which serves all that lack it and may be lost again",
    },
    algorithm_of(
        Operation::Barrier,
        "WEFT_BARRIER",
        "the algorithm of barriers, as in NAME or NAME:PARAMETER (weft info --algorithms lists them), or auto; calls that it cannot serve take the automatic one",
    ),
    algorithm_of(
        Operation::Bcast,
        "WEFT_BCAST",
        "the algorithm of broadcasts, as in NAME or NAME:PARAMETER (weft info --algorithms lists them), or auto; calls that it cannot serve take the automatic one",
    ),
    algorithm_of(
        Operation::Gather,
        "WEFT_GATHER",
        "the algorithm of gathers of equal blocks, as in NAME or NAME:PARAMETER (weft info --algorithms lists them), or auto; calls that it cannot serve take the automatic one",
    ),
    algorithm_of(
        Operation::Gatherv,
        "WEFT_GATHERV",
        "the algorithm of gathers of blocks that differ in length, as in NAME or NAME:PARAMETER (weft info --algorithms lists them), or auto; calls that it cannot serve take the automatic one",
    ),
    algorithm_of(
        Operation::Scatter,
        "WEFT_SCATTER",
        "the algorithm of scatters of equal blocks, as in NAME or NAME:PARAMETER (weft info --algorithms lists them), or auto; calls that it cannot serve take the automatic one",
    ),
    algorithm_of(
        Operation::Scatterv,
        "WEFT_SCATTERV",
        "the algorithm of scatters of blocks that differ in length, as in NAME or NAME:PARAMETER (weft info --algorithms lists them), or auto; calls that it cannot serve take the automatic one",
    ),
    algorithm_of(
        Operation::Allgather,
        "WEFT_ALLGATHER",
        "the algorithm of allgathers, as in NAME or NAME:PARAMETER (weft info --algorithms lists them), or auto; calls that it cannot serve take the automatic one",
    ),
    algorithm_of(
        Operation::Alltoall,
        "WEFT_ALLTOALL",
        "the algorithm of exchanges of equal blocks among all, as in NAME or NAME:PARAMETER (weft info --algorithms lists them), or auto; calls that it cannot serve take the automatic one",
    ),
    algorithm_of(
        Operation::Alltoallv,
        "WEFT_ALLTOALLV",
        "the algorithm of exchanges of blocks that differ in length among all, as in NAME or NAME:PARAMETER (weft info --algorithms lists them), or auto; calls that it cannot serve take the automatic one",
    ),
    algorithm_of(
        Operation::Reduce,
        "WEFT_REDUCE",
        "the algorithm of reductions to one rank, as in NAME or NAME:PARAMETER (weft info --algorithms lists them), or auto; calls that it cannot serve take the automatic one",
    ),
    algorithm_of(
        Operation::Allreduce,
        "WEFT_ALLREDUCE",
        "the algorithm of reductions to all ranks, as in NAME or NAME:PARAMETER (weft info --algorithms lists them), or auto; calls that it cannot serve take the automatic one",
    ),
    algorithm_of(
        Operation::ReduceScatter,
        "WEFT_REDUCE_SCATTER",
        "the algorithm of reductions that are scattered, as in NAME or NAME:PARAMETER (weft info --algorithms lists them), or auto; calls that it cannot serve take the automatic one",
    ),
    algorithm_of(
        Operation::Scan,
        "WEFT_SCAN",
        "the algorithm of inclusive prefix reductions, as in NAME or NAME:PARAMETER (weft info --algorithms lists them), or auto; calls that it cannot serve take the automatic one",
    ),
    algorithm_of(
        Operation::Exscan,
        "WEFT_EXSCAN",
        "the algorithm of exclusive prefix reductions, as in NAME or NAME:PARAMETER (weft info --algorithms lists them), or auto; calls that it cannot serve take the automatic one",
    ),
    Setting {
        name: "WEFT_SPIN_US",
        about: About(Waiting, Tuner, Each),
        kind: SettingKind::Number { least: 0, most: 1_000_000_000 },
        default: "500",
        doc: "microseconds to spin before yielding, where the ranks fit the processors",
    },
    Setting {
        name: "WEFT_PLACES",
        about: About(Waiting, Tuner, Each),
        kind: SettingKind::Choice(&["none", "blocks", "turns"]),
        default: "blocks",
        doc: "the processors that ranks keep to where there are more of them on a machine than processors, without being \
              bound: neighbours are together (blocks), or processors have ranks in turn (turns), or as the system puts \
              them (none)",
    },
    Setting {
        name: "WEFT_PROGRESS",
        about: About(Waiting, User, Each),
        kind: SettingKind::Choice(&["auto", "none", "locked", "signal", "handover"]),
        default: "auto",
        doc: "who moves messages while the program computes: nobody (none), a helper thread under a lock (locked), \
              the program's thread in a signal handler (signal), a helper thread while the program's is outside of \
              MPI (handover), or auto: handover, from when something asks for it",
    },
    Setting {
        name: "WEFT_PROGRESS_SIGNAL",
        about: About(Waiting, User, Each),
        kind: SettingKind::Number { least: 1, most: 64 },
        default: "23",
        doc: "number of the signal of WEFT_PROGRESS=signal, one that the program neither blocks nor handles; 23 is \
              SIGURG",
    },
    Setting {
        name: "WEFT_PROGRESS_ENDS",
        about: About(Waiting, Tuner, Each),
        kind: SettingKind::Choice(&["auto", "0", "1"]),
        default: "auto",
        doc: "1: the end of a transfer wakes the receiver's helper thread, which tells the sender; 0: the receiver's \
              next MPI call tells it; auto: 1, but 0 with signal",
    },
    Setting {
        name: "WEFT_PROGRESS_POLICY",
        about: About(Waiting, Tuner, Each),
        kind: SettingKind::Choice(&["default", "fifo", "rr"]),
        default: "default",
        doc: "how the system schedules the helper thread: default, fifo or rr (round robin) at the highest \
              permitted priority; where it is not permitted, default",
    },
    Setting {
        name: "WEFT_VERBOSE",
        about: About(Launch, User, Each),
        kind: SettingKind::Switch,
        default: "0",
        doc: "1: one rank of each node says at MPI_Init what connects the ranks: rails, bounds, and \
              adapters that are not used, with the reason",
    },
    Setting {
        name: "WEFT_FAULT",
        about: About(Fabric, Developer, Each),
        kind: SettingKind::Faults,
        default: "",
        doc: "for tests: trouble that a network may make, as in seed=7,message_delay=0.3,\
              completion_delay=0.3,reorder=1",
    },
    Setting {
        name: weft_bootstrap::nodes::SETTING,
        about: About(Launch, Developer, All),
        kind: SettingKind::Nodes,
        default: "",
        doc: "for tests: several nodes on one machine, as a number of ranks a node (2) or the node of \
              each rank (0,0,1,1)",
    },
    Setting {
        name: weft_bootstrap::PMIX_SETTING,
        about: About(Launch, User, Each),
        kind: SettingKind::File,
        default: "",
        doc: "the file of libpmix, for launchers that speak PMIx, where it is not found by itself",
    },
];
