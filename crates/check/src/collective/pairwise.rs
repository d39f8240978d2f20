//! Comparison of the parts that pairs of ranks exchange in a collective operation: of `v` and `w` operations, and of neighborhoods.
//!
//! Each rank sends each other rank a record of the parts for it, and compares the records of others with the parts that it receives.
//! A pair may have several parts, as in a ring of two processes. Their order is left open, so their hashes are added.

use super::{CollectiveContext, SignatureWords};
use crate::call_site::CallSite;
use crate::function::{CheckedCall, Form};
use crate::library::mpi;
use crate::role::base_name;
use crate::shadow::{CommKind, MPI_IN_PLACE};
use crate::signature::TypeSignature;
use std::ffi::c_int;

const MPI_BYTE: usize = 0x247;
const MPI_ROOT: i64 = -4;
const MPI_PROC_NULL: i64 = -3;
/// Tags of records. Comparisons under way at the same time have different tags.
const TAGS: u64 = 1 << 14;

/// Parts for a rank.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct PairRecord {
    pub site: CallSite,
    pub signature: SignatureWords,
    /// Number of parts, and of parts whose type is not known.
    pub parts: u32,
    unknown: u32,
    pub function: u32,
    /// Rank in MPI_COMM_WORLD.
    pub rank: i32,
}

impl PairRecord {
    /// Adds a part.
    pub fn add(&mut self, part: Option<&TypeSignature>) {
        self.parts += 1;
        let Some(part) = part.map(SignatureWords::new) else {
            self.unknown += 1;
            return;
        };
        if self.signature.elements == 0 {
            self.signature.first = part.first;
        }
        let words = &mut self.signature;
        words.is_known = 1;
        words.elements = words.elements.wrapping_add(part.elements);
        // Empty parts of different types are equal.
        let hash = if part.elements == 0 { 0 } else { part.hash.rotate_left(7) ^ part.elements };
        words.hash = words.hash.wrapping_add(hash.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }

    /// Returns true if the parts that one rank sends differ from those that another receives.
    pub fn differs(&self, other: &PairRecord) -> bool {
        self.parts != other.parts
            || (self.unknown == 0 && other.unknown == 0 && self.signature.differs(&other.signature))
    }

    /// Describes the parts for a report.
    pub fn describe(&self) -> String {
        match self.parts {
            0 => "nothing".to_owned(),
            1 => self.signature.describe(),
            n => format!("{n} parts with {}", self.signature.describe()),
        }
    }
}

/// Exchange of the records of an operation.
pub struct PairExchange {
    sends: Vec<PairRecord>,
    receives: Vec<PairRecord>,
    requests: Vec<usize>,
    arrived: Vec<PairRecord>,
}

/// Parts that differ: those that another rank sends, and those that this rank receives from it.
pub struct PairMismatch {
    pub sent: PairRecord,
    pub received: PairRecord,
}

impl PairExchange {
    /// Sends the records to all ranks, and posts the receives.
    pub fn start(&mut self, comm: usize, sequence: u64) {
        let (tag, n) = (sequence % TAGS, size_of::<PairRecord>());
        for (peer, record) in self.sends.iter().enumerate() {
            let (record, mut request) = (&raw const *record, 0usize);
            // SAFETY: the records live until `finish`.
            unsafe { mpi!(MPI_Isend(record, n, MPI_BYTE, peer, tag, comm, &raw mut request)) };
            self.requests.push(request);
        }
        for (peer, record) in self.arrived.iter_mut().enumerate() {
            let (record, mut request) = (&raw mut *record, 0usize);
            // SAFETY: the records live until `finish`, and nothing else uses them before.
            unsafe { mpi!(MPI_Irecv(record, n, MPI_BYTE, peer, tag, comm, &raw mut request)) };
            self.requests.push(request);
        }
    }

    /// Ends the exchange without a result, because other ranks may not take part in it.
    pub fn abandon(&mut self) {
        let count = self.requests.len();
        // SAFETY: the requests are ours. A request that is cancelled, or whose message has come, is complete soon.
        unsafe {
            for request in &mut self.requests {
                mpi!(MPI_Cancel(&raw mut *request));
            }
            mpi!(MPI_Waitall(count, self.requests.as_mut_ptr(), 0));
        }
    }

    /// Waits for the records of all ranks, which have begun the operation, and returns the first parts that differ.
    pub fn finish(&mut self) -> Option<PairMismatch> {
        let (count, requests) = (self.requests.len(), self.requests.as_mut_ptr());
        // SAFETY: the requests are ours.
        if unsafe { mpi!(MPI_Waitall(count, requests, 0)) } != 0 {
            return None;
        }
        let both = self.arrived.iter().zip(&self.receives);
        let wrong = both.into_iter().find(|(sent, received)| sent.differs(received));
        wrong.map(|(sent, received)| PairMismatch { sent: *sent, received: *received })
    }
}

/// Neighbors of this process: the sources and destinations of a neighborhood operation, in their order.
struct NeighborRanks {
    sources: Vec<c_int>,
    destinations: Vec<c_int>,
}

/// Returns the neighbors in a communicator with a topology.
fn neighbors(comm: usize) -> Option<NeighborRanks> {
    let (mut kind, mut rank) = (0 as c_int, 0 as c_int);
    // SAFETY: the results are local variables, and arrays of the sizes that the library has returned.
    unsafe {
        mpi!(MPI_Topo_test(comm, &raw mut kind));
        mpi!(MPI_Comm_rank(comm, &raw mut rank));
        match kind {
            211 => {
                let mut dimensions = 0 as c_int;
                mpi!(MPI_Cartdim_get(comm, &raw mut dimensions));
                let mut all = Vec::new();
                for dimension in 0..dimensions {
                    let (mut low, mut high) = (0 as c_int, 0 as c_int);
                    mpi!(MPI_Cart_shift(comm, dimension, 1, &raw mut low, &raw mut high));
                    all.extend([low, high]);
                }
                Some(NeighborRanks { sources: all.clone(), destinations: all })
            }
            212 => {
                let mut n = 0 as c_int;
                mpi!(MPI_Graph_neighbors_count(comm, rank, &raw mut n));
                let mut all = vec![0 as c_int; n.max(0) as usize];
                mpi!(MPI_Graph_neighbors(comm, rank, n, all.as_mut_ptr()));
                Some(NeighborRanks { sources: all.clone(), destinations: all })
            }
            213 => {
                let (mut ins, mut outs, mut weighted) = (0 as c_int, 0 as c_int, 0 as c_int);
                let counts = (&raw mut ins, &raw mut outs, &raw mut weighted);
                mpi!(MPI_Dist_graph_neighbors_count(comm, counts.0, counts.1, counts.2));
                let mut sources = vec![0 as c_int; ins.max(0) as usize];
                let mut destinations = vec![0 as c_int; outs.max(0) as usize];
                let mut weights = vec![0 as c_int; sources.len().max(destinations.len()).max(1)];
                let mut other = weights.clone();
                mpi!(MPI_Dist_graph_neighbors(
                    comm,
                    ins,
                    sources.as_mut_ptr(),
                    weights.as_mut_ptr(),
                    outs,
                    destinations.as_mut_ptr(),
                    other.as_mut_ptr()
                ));
                Some(NeighborRanks { sources, destinations })
            }
            _ => None,
        }
    }
}

/// Side of a call: its send or its receive parameters.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Send,
    Receive,
}

/// Sides of an operation with a root: the side with a part for each rank, and the side with one part.
struct RootedSides {
    many: Side,
    one: Side,
}

/// Maker of the records of a call.
struct PairPlan<'a> {
    call: &'a CheckedCall<'a>,
    /// Returns the signature of elements of a type.
    signature: &'a mut dyn FnMut(usize, i64) -> Option<TypeSignature>,
    empty: PairRecord,
    sends: Vec<PairRecord>,
    receives: Vec<PairRecord>,
}

impl PairPlan<'_> {
    /// Returns the signature of part `index` of a side.
    fn part(&mut self, side: Side, index: usize) -> Option<TypeSignature> {
        let prefix = if side == Side::Send { "send" } else { "recv" };
        let function = self.call.function;
        let place = |suffix: &str| function.place(&format!("{prefix}{suffix}"));
        let count = match (place("count"), place("counts")) {
            (Some(place), _) => self.call.integer(place),
            // SAFETY: arrays have an element for each part, as MPI requires of the program.
            (_, Some(place)) => unsafe { self.call.element(place, index) },
            _ => return None,
        };
        let datatype = match (place("type"), place("types")) {
            (Some(place), _) => self.call.arguments[place],
            (_, Some(place)) if function.parameters[place].form == Form::Pointer => {
                let array = self.call.arguments[place] as *const usize;
                if array.is_null() {
                    return None;
                }
                // SAFETY: the array has a type for each part, as MPI requires of the program.
                unsafe { *array.add(index) }
            }
            _ => return None,
        };
        (self.signature)(datatype, count)
    }

    /// Adds part `index` of a side to the record for a rank.
    fn add(&mut self, side: Side, index: usize, peer: usize) {
        let part = self.part(side, index);
        self.add_part(side, part.as_ref(), peer);
    }

    fn add_part(&mut self, side: Side, part: Option<&TypeSignature>, peer: usize) {
        let empty = self.empty;
        let list = if side == Side::Send { &mut self.sends } else { &mut self.receives };
        if let Some(record) = list.get_mut(peer) {
            if record.parts == 0 {
                *record = empty;
            }
            record.add(part);
        }
    }

    /// Adds the parts of an operation with a root. Every rank of an intercommunicator's other group is addressed; of an
    /// intracommunicator the own rank, too.
    fn add_rooted(&mut self, context: &CollectiveContext, sides: RootedSides) {
        let root = self.call.named("root");
        // The processes of the root's group that are not the root take no part.
        if root == Some(MPI_PROC_NULL) {
            return;
        }
        let RootedSides { many, one } = sides;
        let (own, peers) = (context.rank, &context.peers);
        let root_peer = root.filter(|&root| root >= 0).and_then(|root| peers.get(root as usize));
        let root_peer = root_peer.copied();
        let is_root =
            root == Some(MPI_ROOT) || (context.kind == CommKind::Intra && root_peer == Some(own));
        let name = if one == Side::Send { "sendbuf" } else { "recvbuf" };
        let in_place = is_root && self.is_in_place(name);
        if is_root {
            let others = peers.iter().enumerate().filter(|(_, peer)| !in_place || **peer != own);
            others.for_each(|(index, &peer)| self.add(many, index, peer));
        }
        if let Some(root) = root_peer.filter(|_| !in_place) {
            self.add(one, 0, root);
        }
    }

    fn is_in_place(&self, name: &str) -> bool {
        self.call.function.place(name).is_some_and(|p| self.call.arguments[p] == MPI_IN_PLACE)
    }
}

/// Prepares the records of a call; `None` for operations whose parts are all equal.
pub fn exchange(
    call: &CheckedCall<'_>,
    function: u32,
    rank: c_int,
    context: &CollectiveContext,
    signature: &mut dyn FnMut(usize, i64) -> Option<TypeSignature>,
) -> Option<PairExchange> {
    let base = base_name(call.function.stem());
    let empty = PairRecord { site: call.site, function, rank, ..PairRecord::default() };
    let mut plan = PairPlan {
        call,
        signature,
        empty,
        sends: vec![empty; context.size],
        receives: vec![empty; context.size],
    };
    let (own, peers) = (context.rank, &context.peers);
    match base.as_str() {
        "gatherv" => plan.add_rooted(context, RootedSides { many: Side::Receive, one: Side::Send }),
        "scatterv" => {
            plan.add_rooted(context, RootedSides { many: Side::Send, one: Side::Receive })
        }
        "allgatherv" => {
            let in_place = plan.is_in_place("sendbuf");
            let part = match in_place {
                true => plan.part(Side::Receive, own),
                false => plan.part(Side::Send, 0),
            };
            for (index, &peer) in peers.iter().enumerate() {
                plan.add_part(Side::Send, part.as_ref(), peer);
                plan.add(Side::Receive, index, peer);
            }
        }
        "alltoallv" | "alltoallw" => {
            let in_place = plan.is_in_place("sendbuf");
            for (index, &peer) in peers.iter().enumerate() {
                let sent = if in_place { Side::Receive } else { Side::Send };
                let part = plan.part(sent, index);
                plan.add_part(Side::Send, part.as_ref(), peer);
                plan.add(Side::Receive, index, peer);
            }
        }
        name if name.starts_with("neighbor_") => {
            let all = neighbors(call.handle("COMMUNICATOR")?)?;
            let real = |(index, &rank): (usize, &c_int)| {
                peers.get(usize::try_from(rank).ok()?).map(|&peer| (index, peer))
            };
            for (index, peer) in all.destinations.iter().enumerate().filter_map(real) {
                plan.add(Side::Send, index, peer);
            }
            for (index, peer) in all.sources.iter().enumerate().filter_map(real) {
                plan.add(Side::Receive, index, peer);
            }
        }
        _ => return None,
    }
    let (sends, receives) = (plan.sends, plan.receives);
    let arrived = vec![PairRecord::default(); context.size];
    Some(PairExchange { sends, receives, requests: Vec::new(), arrived })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(parts: &[(u8, u64)]) -> PairRecord {
        let mut record = PairRecord::default();
        for &(class, count) in parts {
            record.add(Some(&TypeSignature::element(class).repeat(count)));
        }
        record
    }

    #[test]
    fn the_order_of_a_pairs_parts_is_open() {
        assert!(!pair(&[(12, 4), (33, 1)]).differs(&pair(&[(33, 1), (12, 4)])));
        assert!(pair(&[(12, 4)]).differs(&pair(&[(12, 8)])));
        assert!(pair(&[(12, 4)]).differs(&pair(&[(32, 4)])));
        assert!(pair(&[(12, 4)]).differs(&pair(&[(12, 2), (12, 2)])));
        assert!(pair(&[]).differs(&pair(&[(12, 0)])));
    }

    #[test]
    fn parts_without_elements_match_for_all_types() {
        assert!(!pair(&[(12, 0)]).differs(&pair(&[(33, 0)])));
        let mut unknown = PairRecord::default();
        unknown.add(None);
        assert!(!unknown.differs(&pair(&[(12, 4)])));
    }
}
