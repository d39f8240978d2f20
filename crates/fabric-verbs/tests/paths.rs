//! Paths of packets, as the fabric requests them from the adapter. soft-RoCE has no LIDs and no subnet manager. So the test shows
//! its ports to the fabric as ports of InfiniBand with several paths, and records the paths that connections and datagrams
//! request.

mod side;

use side::*;
use std::ffi::c_int;
use std::sync::{Mutex, OnceLock};
use weft_fabric_verbs::ffi::*;
use weft_fabric_verbs::{VerbsFunctions, VerbsOptions};

/// Service levels of connections and of datagrams.
const LEVELS: [u8; 2] = [3, 5];
/// Logarithm of the number of paths of a port: two paths.
const LMC: u8 = 1;

static ORIGINAL: OnceLock<VerbsFunctions> = OnceLock::new();

/// A path that was requested from the adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Asked {
    level: u8,
    destination: u16,
    source_path: u8,
}

/// Paths of connections, and of datagrams.
static ASKED: [Mutex<Vec<Asked>>; 2] = [const { Mutex::new(Vec::new()) }; 2];

/// Returns the base LID of a port. It depends on the adapter's end of the cable.
fn base_lid(context: *mut ibv_context) -> u16 {
    // SAFETY: the context is open and belongs to the fabric.
    let name = unsafe { (*(*context).device).name };
    let is_first = name.windows(2).any(|two| two == [b'v' as _, b'a' as _]);
    if is_first { 8 } else { 16 }
}

unsafe extern "C" fn query_port(
    context: *mut ibv_context,
    number: u8,
    attributes: *mut ibv_port_attr,
) -> c_int {
    // SAFETY: the original function gets the arguments that the caller of `query_port` promises to be valid.
    let code = unsafe { (ORIGINAL.get().unwrap().query_port)(context, number, attributes) };
    // SAFETY: the library has filled in the structure.
    let port = unsafe { &mut *attributes };
    (port.link_layer, port.lid, port.lmc) = (1, base_lid(context), LMC);
    code
}

/// Records a path, and changes it to a path by global address, which soft-RoCE accepts.
fn asked(kind: usize, way: &mut ibv_ah_attr) {
    assert_eq!((way.is_global, way.port_num), (0, 1), "within a subnet LIDs lead");
    let (level, destination, source_path) = (way.sl, way.dlid, way.src_path_bits);
    ASKED[kind].lock().unwrap().push(Asked { level, destination, source_path });
    (way.is_global, way.dlid, way.src_path_bits) = (1, 0, 0);
}

unsafe extern "C" fn modify_qp(
    pair: *mut ibv_qp,
    attributes: *mut ibv_qp_attr,
    mask: c_int,
) -> c_int {
    if mask & IBV_QP_AV != 0 {
        // SAFETY: the caller of `modify_qp` promises that `attributes` is valid and not shared.
        asked(0, unsafe { &mut (*attributes).ah_attr });
    }
    // SAFETY: the original function gets the arguments that the caller of `modify_qp` promises to be valid.
    unsafe { (ORIGINAL.get().unwrap().modify_qp)(pair, attributes, mask) }
}

unsafe extern "C" fn create_ah(domain: *mut ibv_pd, attributes: *mut ibv_ah_attr) -> *mut ibv_ah {
    // SAFETY: the caller of `create_ah` promises that `attributes` is valid and not shared.
    asked(1, unsafe { &mut *attributes });
    // SAFETY: the original function gets the arguments that the caller of `create_ah` promises to be valid.
    unsafe { (ORIGINAL.get().unwrap().create_ah)(domain, attributes) }
}

fn change(options: &mut VerbsOptions) {
    options.devices.truncate(1);
    (options.paths, options.rails) = (2, 2);
    options.service_level = LEVELS[0];
    options.datagram_service_level = Some(LEVELS[1]);
    options.interpose = Some(|table| {
        ORIGINAL.get_or_init(|| table);
        VerbsFunctions { query_port, modify_qp, create_ah, ..table }
    });
}

#[test]
fn paths_of_a_port_are_rails_with_lids_of_their_own_and_levels_are_asked_for() {
    let Some(cables) = Cables::take() else { return };
    let rounds = |side: &Side| (1..3).for_each(|number| round(side, number, || ()));
    pair(&cables, change, rounds, |_| ());
    let [mut connections, mut datagrams] =
        ASKED.each_ref().map(|list| list.lock().unwrap().clone());
    for list in [&mut connections, &mut datagrams] {
        list.sort_unstable();
        list.dedup();
    }
    // Each end connects path p of its port with path p of the peer.
    let both = |level| {
        let way = |destination, source_path| Asked { level, destination, source_path };
        vec![way(8, 0), way(9, 1), way(16, 0), way(17, 1)]
    };
    assert_eq!(connections, both(LEVELS[0]));
    assert!(!datagrams.is_empty() && datagrams.iter().all(|way| both(LEVELS[1]).contains(way)));
}
