//! Records of collective calls, and the rules by which they are compared.

use super::{PACKED, TypeSignature, describe};
use crate::call_site::CallSite;
use crate::function::CheckedCall;
use crate::role::{CommonSignature, base_name, equal_arguments};

/// Highest handle of a predefined operator. Handles of the program's operators differ among ranks.
const LAST_OPERATOR: usize = 0x3f;
const MPI_ROOT: i32 = -4;
const MPI_PROC_NULL: i32 = -3;

/// Flag of a call with MPI_IN_PLACE.
pub const IN_PLACE: u32 = 1;

/// A signature in a record.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct SignatureWords {
    pub elements: u64,
    pub hash: u64,
    /// Class of the first element.
    pub first: u32,
    /// 1 if there is a signature.
    pub is_known: u32,
}

impl SignatureWords {
    pub fn new(signature: &TypeSignature) -> SignatureWords {
        SignatureWords {
            elements: signature.hash.elements,
            hash: signature.hash.hash,
            first: u32::from(signature.first().unwrap_or(0)),
            is_known: 1,
        }
    }

    /// Returns true if both signatures are known and differ. MPI_PACKED matches every type.
    pub fn differs(&self, other: &SignatureWords) -> bool {
        !self.is_open()
            && !other.is_open()
            && (self.elements, self.hash) != (other.elements, other.hash)
    }

    /// Returns true if the signature is not known, or matches every signature.
    pub fn is_open(&self) -> bool {
        self.is_known == 0 || self.first == u32::from(PACKED)
    }

    /// Describes the signature for a report.
    pub fn describe(&self) -> String {
        describe(self.elements, self.first as u8)
    }
}

/// Record of a collective call.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct CollectiveRecord {
    pub site: CallSite,
    /// Signature that the ranks have in common.
    pub common: SignatureWords,
    /// Signature of the send buffer, for intercommunicators.
    pub send: SignatureWords,
    /// Arguments that the ranks have in common, and a hash of such arrays.
    pub arguments: [i64; 2],
    pub arrays: u64,
    pub operator: u64,
    /// Number of the operation among those of its communicator, window or file.
    pub sequence: u64,
    /// Index of the function.
    pub function: u32,
    /// Rank in MPI_COMM_WORLD.
    pub rank: i32,
    pub root: i32,
    pub flags: u32,
    /// Group of an intercommunicator.
    pub group: u32,
    pub is_inter: u32,
}

/// Returns FNV-1a of words.
fn hash(words: &[u64]) -> u64 {
    words.iter().flat_map(|word| word.to_le_bytes()).fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Returns a hash of integers.
pub fn hash_words(words: &[i64]) -> u64 {
    hash(&words.iter().map(|&word| word as u64).collect::<Vec<_>>())
}

impl CollectiveRecord {
    /// Returns the function's name without `MPI_` and without `_c`.
    fn stem(&self) -> &'static str {
        crate::FUNCTIONS.get(self.function as usize).map_or("?", |function| function.stem())
    }

    /// Returns the words that are equal on all ranks of an intracommunicator.
    fn key(&self) -> [u64; 6] {
        let arguments = [self.arguments[0] as u64, self.arguments[1] as u64];
        [
            hash(&self.stem().bytes().map(u64::from).collect::<Vec<_>>()),
            self.operator,
            self.sequence,
            u64::from(self.flags),
            hash(&[arguments[0], arguments[1], self.arrays]),
            self.root as u64,
        ]
    }

    /// Returns a hash of all that is equal on all ranks of an intracommunicator, without the signature.
    pub fn key_hash(&self) -> u64 {
        hash(&self.key())
    }

    /// Returns a hash of all that is equal on all ranks of an intracommunicator.
    pub fn hash(&self) -> u64 {
        let signature = [self.common.elements, self.common.hash, u64::from(self.common.is_known)];
        hash(&[self.key_hash(), hash(&signature)])
    }
}

/// Returns the first two records that differ, if any do.
pub fn mismatch(records: &[CollectiveRecord]) -> Option<[CollectiveRecord; 2]> {
    let first = records.first()?;
    if first.is_inter != 0 {
        return inter_mismatch(records);
    }
    // Without a signature, the name or another argument differs, or the type is not known.
    let differs = |other: &&CollectiveRecord| {
        other.key() != first.key() || other.common.differs(&first.common)
    };
    records.iter().find(differs).map(|other| [*first, *other])
}

/// Returns the first two records of an intercommunicator's operation that differ, if any do.
fn inter_mismatch(records: &[CollectiveRecord]) -> Option<[CollectiveRecord; 2]> {
    let first = records.first()?;
    // Only ranks of one group have equal roots and arguments.
    let name = |r: &CollectiveRecord| (r.stem(), r.operator, r.sequence);
    if let Some(other) = records.iter().find(|other| name(other) != name(first)) {
        return Some([*first, *other]);
    }
    let has_root = crate::FUNCTIONS
        .get(first.function as usize)
        .is_some_and(|function| function.place("root").is_some());
    if has_root {
        return rooted_mismatch(records);
    }
    let differs = |a: &SignatureWords, b: &SignatureWords| a.differs(b);
    // The common signature is that of the receive buffer, and each group receives what the other group sends.
    let crosses = matches!(base_name(first.stem()).as_str(), "allgather" | "alltoall");
    let pairs = records.iter().flat_map(|a| records.iter().map(move |b| (a, b)));
    let wrong = pairs.into_iter().find(|(a, b)| match crosses {
        true => a.group != b.group && differs(&a.common, &b.send),
        false => differs(&a.common, &b.common),
    });
    wrong.map(|(a, b)| [*a, *b])
}

/// Compares an operation of an intercommunicator with a root. The root gives MPI_ROOT, the others of its group MPI_PROC_NULL, and the ranks
/// of the other group the root's rank.
fn rooted_mismatch(records: &[CollectiveRecord]) -> Option<[CollectiveRecord; 2]> {
    let first = records.first()?;
    let second = records.iter().find(|record| record.group != first.group)?;
    // If no rank names a process as the root, the library refuses the call on each rank, and names the argument.
    let others = |own: u32| records.iter().filter(|record| record.group != own).count();
    let is_refused = |r: &CollectiveRecord| match r.root {
        MPI_ROOT | MPI_PROC_NULL => false,
        root => root < 0 || root as usize >= others(r.group),
    };
    if records.iter().all(is_refused) {
        return None;
    }
    let roots: Vec<_> = records.iter().filter(|record| record.root == MPI_ROOT).collect();
    let root = match roots[..] {
        [root] => root,
        [] => return Some([*first, *second]),
        [one, other, ..] => return Some([*one, *other]),
    };
    // The rank of the root in its group is its place among the group's records.
    let place = records.iter().filter(|r| r.group == root.group).position(|r| r.rank == root.rank);
    let place = place.unwrap_or(0) as i32;
    let is_wrong = |record: &&CollectiveRecord| match record.group == root.group {
        true => record.root != MPI_ROOT && record.root != MPI_PROC_NULL,
        false => record.root != place || record.common.differs(&root.common),
    };
    records.iter().find(is_wrong).map(|wrong| [*root, *wrong])
}

/// Returns the operator's handle if it is predefined, 1 for the program's operators, and 0 without an operator.
pub fn operator(call: &CheckedCall<'_>) -> u64 {
    match call.handle("OPERATION") {
        None => 0,
        Some(handle) if handle <= LAST_OPERATOR => handle as u64,
        Some(_) => 1,
    }
}

/// Part of a rank in a collective operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum RootPart {
    Root,
    Other,
}

/// Returns the names of the buffer whose signature all ranks have in common.
pub fn common_buffer(common: CommonSignature, part: RootPart) -> Option<&'static [&'static str]> {
    const FIRST: &[&str] = &["buffer", "sendbuf"];
    const SEND: &[&str] = &["sendbuf"];
    const RECEIVE: &[&str] = &["recvbuf"];
    match (common, part) {
        (CommonSignature::None, _) => None,
        (CommonSignature::First, _) => Some(FIRST),
        (CommonSignature::ToRoot, RootPart::Other)
        | (CommonSignature::FromRoot, RootPart::Root) => Some(SEND),
        (CommonSignature::ToRoot, RootPart::Root)
        | (CommonSignature::FromRoot, RootPart::Other) => Some(RECEIVE),
        (CommonSignature::Receive, _) => Some(RECEIVE),
    }
}

/// Describes a record for a report.
pub fn describe_record(record: &CollectiveRecord) -> String {
    let function = crate::FUNCTIONS.get(record.function as usize);
    let has_root = function.is_some_and(|function| function.place("root").is_some());
    let mut text = format!("collective operation {}", record.sequence);
    if has_root {
        text += &match record.root {
            MPI_ROOT => ", MPI_ROOT".to_owned(),
            MPI_PROC_NULL => ", MPI_PROC_NULL".to_owned(),
            root => format!(", root {root}"),
        };
    }
    if record.operator != 0 {
        let name = crate::OPERATORS.iter().find(|(handle, _)| *handle == record.operator);
        text += &format!(", operator {}", name.map_or("of the program", |(_, name)| name));
    }
    for (name, value) in equal_arguments(record.stem()).iter().zip(record.arguments) {
        let place = function.and_then(|function| function.place(name));
        let is_array = place.is_some_and(|p| function.is_some_and(|f| f.parameters[p].is_array));
        text += &if is_array { format!(", {name}") } else { format!(", {name} {value}") };
    }
    if record.common.is_known != 0 {
        text += &format!(", {}", record.common.describe());
    }
    if record.flags & IN_PLACE != 0 {
        text += ", MPI_IN_PLACE";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(name: &str) -> u32 {
        crate::FUNCTIONS.iter().position(|f| f.name() == name).expect("a function") as u32
    }

    fn record(name: &str, rank: i32) -> CollectiveRecord {
        CollectiveRecord { function: index(name), rank, ..CollectiveRecord::default() }
    }

    #[test]
    fn a_key_does_not_contain_the_signature() {
        let known = SignatureWords { elements: 1, hash: 5, first: 12, is_known: 1 };
        let [a, b] = [SignatureWords::default(), known]
            .map(|common| CollectiveRecord { common, ..record("MPI_Bcast", 0) });
        assert!(a.key_hash() == b.key_hash() && a.hash() != b.hash());
        assert!(a.common.is_open() && !b.common.is_open());
    }

    #[test]
    fn packed_data_match_every_signature() {
        let words = |first, elements| SignatureWords { elements, hash: 5, first, is_known: 1 };
        assert!(words(12, 1).differs(&words(12, 2)));
        assert!(!words(12, 1).differs(&words(u32::from(PACKED), 2)));
        assert!(!words(12, 1).differs(&SignatureWords::default()));
    }

    #[test]
    fn a_group_of_an_intercommunicator_has_one_root() {
        let of = |rank: i32, group, root| CollectiveRecord {
            is_inter: 1,
            group,
            root,
            ..record("MPI_Bcast", rank)
        };
        let right = [of(0, 0, MPI_PROC_NULL), of(1, 0, MPI_ROOT), of(2, 2, 1), of(3, 2, 1)];
        assert!(mismatch(&right).is_none());
        let mut wrong = right;
        wrong[3].root = 0;
        assert_eq!(mismatch(&wrong).map(|pair| pair.map(|r| r.rank)), Some([1, 3]));
        wrong = right;
        wrong[0].root = MPI_ROOT;
        assert_eq!(mismatch(&wrong).map(|pair| pair.map(|r| r.rank)), Some([0, 1]));
        let refused = right.map(|record| CollectiveRecord { root: 2, ..record });
        assert!(mismatch(&refused).is_none(), "the library refuses the call on each rank");
        wrong = refused;
        wrong[3].root = 1;
        assert!(mismatch(&wrong).is_some());
    }

    #[test]
    fn names_and_arguments_of_all_ranks_are_equal() {
        let (a, b) = (record("MPI_Win_fence", 0), record("MPI_Win_fence", 1));
        assert!(mismatch(&[a, b]).is_none());
        let c = CollectiveRecord { arguments: [2048, 0], rank: 2, ..b };
        assert_eq!(mismatch(&[a, b, c]).map(|pair| pair.map(|r| r.rank)), Some([0, 2]));
        assert_ne!(a.hash(), c.hash());
        assert!(mismatch(&[a, record("MPI_Barrier", 1)]).is_some());
    }
}
