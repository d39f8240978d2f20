//! The settings of networks.

use super::kinds::Agreement::{All, Each};
use super::kinds::Audience::{Tuner, User};
use super::kinds::Part::{Fabric, Ofi, Rma, Verbs};
use super::kinds::{About, Setting, SettingKind};

/// What connects the ranks, verbs, and libfabric.
pub const NETWORKS: &[Setting] = &[
    Setting {
        name: "WEFT_FABRIC",
        about: About(Fabric, User, All),
        kind: SettingKind::Choice(&["auto", "shm", "verbs", "ofi", "shm+verbs", "shm+ofi"]),
        default: "auto",
        doc: "what connects the ranks: shm (shared memory, one node); shm+verbs or shm+ofi (shared memory within nodes, InfiniBand \
              and RoCE, or TCP or another network of libfabric between them; on one node, too, so that jobs elsewhere can be \
              connected); verbs or ofi (that alone, within a node, too); or auto: \
              shared memory within nodes, between them verbs where each has an adapter with an active port, else TCP, or another network of libfabric",
    },
    Setting {
        name: "WEFT_DEVICES",
        about: About(Verbs, User, Each),
        kind: SettingKind::Words,
        default: "",
        doc: "the adapters to use, in the order of rails, as in mlx5_0,mlx5_1:1 (of a port); nothing: \
              all with an active port. Lists separated by ; are for nodes in turn",
    },
    Setting {
        name: "WEFT_RAILS",
        about: About(Verbs, User, All),
        kind: SettingKind::Number { least: 1, most: weft_fabric_verbs::RAILS_MAX as u64 },
        default: "4",
        doc: "the most rails (adapters, ports, interfaces or paths) to use",
    },
    Setting {
        name: "WEFT_PATHS",
        about: About(Verbs, Tuner, All),
        kind: SettingKind::Number { least: 1, most: 128 },
        default: "1",
        doc: "InfiniBand: the most paths of one port that become rails, where the subnet manager gave the port several \
              LIDs (LMC), for ways of their own through the network. libfabric: connections of one interface with a peer \
              that become rails, where the network bounds what one carries",
    },
    Setting {
        name: "WEFT_RAIL_WRITE",
        about: About(Rma, Tuner, All),
        kind: SettingKind::Number { least: 0, most: u32::MAX as u64 },
        default: "8192",
        doc: "puts and other writes of so many bytes and more are spread over all rails to a peer",
    },
    Setting {
        name: "WEFT_RAIL_READ",
        about: About(Rma, Tuner, All),
        kind: SettingKind::Number { least: 0, most: u32::MAX as u64 },
        default: "8192",
        doc: "gets and other reads of so many bytes and more are spread over all rails to a peer",
    },
    Setting {
        name: "WEFT_RAIL_RENDEZVOUS",
        about: About(Rma, Tuner, All),
        kind: SettingKind::Number { least: 0, most: u32::MAX as u64 },
        default: "16384",
        doc: "the payload of a message of so many bytes and more is read over all rails to its sender",
    },
    Setting {
        name: "WEFT_RAIL",
        about: About(Verbs, Tuner, All),
        kind: SettingKind::Maybe { least: 0, most: weft_fabric_verbs::RAILS_MAX as u64 - 1 },
        default: "",
        doc: "the rail for all traffic; nothing: messages of a pair of ranks take one, by the sum of the ranks, and long transfers all",
    },
    Setting {
        name: "WEFT_GID_INDEX",
        about: About(Verbs, Tuner, Each),
        kind: SettingKind::Maybe { least: 0, most: 255 },
        default: "",
        doc: "RoCE: entry of the port's table of addresses; nothing: version 2 over IPv4 if there is \
              one, then over IPv6, then version 1",
    },
    Setting {
        name: "WEFT_SERVICE_LEVEL",
        about: About(Verbs, Tuner, Each),
        kind: SettingKind::Number { least: 0, most: 15 },
        default: "0",
        doc: "InfiniBand: the service level of all traffic",
    },
    Setting {
        name: "WEFT_DATAGRAM_SERVICE_LEVEL",
        about: About(Verbs, Tuner, Each),
        kind: SettingKind::Maybe { least: 0, most: 15 },
        default: "",
        doc: "InfiniBand: the service level of datagrams (multicast, and the connect requests before connections) apart from the \
              rest, so that fewer are lost under load; nothing: as the rest, and for multicast that of the group",
    },
    Setting {
        name: "WEFT_TRAFFIC_CLASS",
        about: About(Verbs, Tuner, Each),
        kind: SettingKind::Number { least: 0, most: 255 },
        default: "0",
        doc: "RoCE: the traffic class (DSCP and ECN bits) of all traffic",
    },
    Setting {
        name: "WEFT_MTU",
        about: About(Verbs, Tuner, Each),
        kind: SettingKind::Maybe { least: 256, most: 4096 },
        default: "",
        doc: "the largest packet in bytes, if less than what the ports have",
    },
    Setting {
        name: "WEFT_CONNECTIONS",
        about: About(Verbs, Tuner, All),
        kind: SettingKind::Number { least: 1, most: 1 << 24 },
        default: "4096",
        doc: "the most connections (queue pairs) of one process",
    },
    Setting {
        name: "WEFT_IN_ORDER",
        about: About(Verbs, Tuner, All),
        kind: SettingKind::Choice(&["auto", "0", "1"]),
        default: "auto",
        doc: "whether adapters place the bytes of a write in ascending order, so that a receiver may \
              poll the last one: auto (by the list of adapters that do), 0 (no), or 1 (yes)",
    },
    Setting {
        name: "WEFT_ACK_TIMEOUT",
        about: About(Verbs, Tuner, Each),
        kind: SettingKind::Number { least: 1, most: 31 },
        default: "16",
        doc: "verbs: the time for one transmission, as exponent: 4.096 us times two to it",
    },
    Setting {
        name: "WEFT_PATIENCE",
        about: About(Verbs, Tuner, Each),
        kind: SettingKind::Number { least: 1, most: 1_000_000 },
        default: "300",
        doc: "verbs: seconds that a peer may leave the request for a connection unanswered",
    },
    Setting {
        name: "WEFT_KEEPALIVE",
        about: About(Verbs, Tuner, Each),
        kind: SettingKind::Number { least: 0, most: 1_000_000 },
        default: "2",
        doc: "seconds after which a waiting process asks silent peers for a sign of life; 0: never",
    },
    Setting {
        name: "WEFT_OFI_PROVIDER",
        about: About(Ofi, User, All),
        kind: SettingKind::Words,
        default: "",
        doc: "the provider to use: weft-tcp, which is built in, or one of libfabric, as in tcp, efa, cxi, psm2, verbs;ofi_rxm, \
              udp;ofi_rxd (fi_info lists them); nothing: of cxi, efa, opx, psm2, verbs;ofi_rxm and weft-tcp the first that all \
              hosts have",
    },
    Setting {
        name: "WEFT_OFI_INTERFACES",
        about: About(Ofi, User, Each),
        kind: SettingKind::Words,
        default: "",
        doc: "the interfaces (libfabric's domains) to use, as in eth0,eth1, the best first; nothing: those of a network that all \
              hosts have, but for loopback, bridges and cables to containers. Lists separated by ; are for nodes in turn",
    },
    Setting {
        name: "WEFT_OFI_LIBRARY",
        about: About(Ofi, User, Each),
        kind: SettingKind::Words,
        default: "",
        doc: "the file of libfabric; nothing: libfabric.so.1 as the system finds it",
    },
    Setting {
        name: "WEFT_OFI_TIMEOUT",
        about: About(Ofi, User, All),
        kind: SettingKind::Number { least: 1, most: 32_000 },
        default: "30",
        doc: "over TCP: seconds that the host of a peer may leave something unacknowledged, or a request for a \
              connection unanswered, before the peer is lost; a cable that is back before loses nothing",
    },
    Setting {
        name: "WEFT_OFI_CREDITS",
        about: About(Ofi, Tuner, All),
        kind: SettingKind::Number { least: 4, most: 16384 },
        default: "64",
        doc: "TCP and libfabric: the most messages that one peer may have on their way to a process or unreceived there",
    },
];
