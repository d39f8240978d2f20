//! Comparison of collective operations among their ranks, before data move.
//!
//! Each communicator, window and file of the program has a communicator of its own for these comparisons. Each rank reduces a hash of
//! its call, and the hash's complement, with MPI_MAX there. All hashes are equal if the two maxima are complements. A second hash contains
//! the signature; it counts only if all ranks know theirs. If hashes differ, all ranks gather their records, and the lowest rank reports the
//! first two that differ. An intercommunicator has one communicator for both groups, on which records are gathered at once, since the
//! groups play different parts.
//!
//! The standard has one order for blocking and nonblocking operations (MPI 5.0, section 6.12), so each rank completes its comparisons in the
//! order of the calls. Parts of an operation that differ between pairs of ranks are compared in `pairwise`.

use crate::datatype::PACKED;
use crate::library::mpi;
use crate::objects::ObjectHandle;
use crate::shadow::{CommKind, MPI_COMM_NULL, MPI_INT, describe};
use crate::signature::TypeSignature;
use crate::wait_clock;
use std::collections::{HashMap, VecDeque};
use std::ffi::c_int;

pub mod pairwise;
mod record;

use pairwise::PairExchange;
pub use record::{
    CollectiveRecord, IN_PLACE, RootPart, SignatureWords, common_buffer, describe_record,
    hash_words, mismatch, operator,
};

const MPI_BYTE: usize = 0x247;
const MPI_UINT64_T: usize = 0x259;
const MPI_MAX: usize = 0x23;
const MPI_ERRORS_RETURN: usize = 0x143;

/// Place of a comparison in the order of its communicator, window or file.
pub struct CollectiveComparison {
    pub context: ObjectHandle,
    pub sequence: u64,
}

/// Plan of a comparison that begins.
#[derive(Default)]
pub struct ComparisonPlan {
    pub record: CollectiveRecord,
    /// Records for pairs of ranks, if the operation has parts that differ between pairs.
    pub pairs: Option<PairExchange>,
    /// True if this rank has accesses to windows for the other ranks.
    pub has_accesses: bool,
    /// Name of the host's clock, if the user asks for waits; else 0.
    pub host: u64,
}

/// Rank that is the last one to begin a collective operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LastRank {
    /// Rank in MPI_COMM_WORLD.
    pub rank: i32,
    pub began: u64,
}

impl LastRank {
    /// Number of bits of a rank.
    const RANK_BITS: u32 = 20;

    /// Returns microseconds and the rank in one word. The last rank has the greatest word.
    fn word(self) -> u64 {
        let rank = self.rank as u64 & ((1 << LastRank::RANK_BITS) - 1);
        (self.began / 1000) << LastRank::RANK_BITS | rank
    }

    /// Reads the greatest word of all ranks. The word has the low bits of its microseconds, and `now` has the others.
    fn of_word(word: u64, now: u64) -> LastRank {
        let rank = (word & ((1 << LastRank::RANK_BITS) - 1)) as i32;
        let (low, own) = (word >> LastRank::RANK_BITS, now / 1000);
        let age = own.wrapping_sub(low) & (u64::MAX >> LastRank::RANK_BITS);
        LastRank { rank, began: own.saturating_sub(age) * 1000 }
    }
}

/// Words that all ranks reduce with MPI_MAX.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct HashWords {
    /// Hash of the call without its signature, and the hash's complement.
    key: [u64; 2],
    /// The same with the signature.
    whole: [u64; 2],
    /// 1 if the signature is not known, or matches every signature. Then the signatures are not compared.
    is_open: u64,
    /// 1 if this rank has accesses to windows for the other ranks.
    has_accesses: u64,
    /// Begin of the call, see [`LastRank`], and the name of the host's clock with its complement. They are 0 at ranks whose user does not
    /// ask for waits.
    last: u64,
    host: [u64; 2],
}

impl HashWords {
    fn of(record: &CollectiveRecord) -> HashWords {
        let (key, whole) = (record.key_hash(), record.hash());
        HashWords {
            key: [key, !key],
            whole: [whole, !whole],
            is_open: u64::from(record.common.is_open()),
            ..HashWords::default()
        }
    }

    /// Returns true if the maxima of all ranks say that all calls are equal.
    fn is_equal(&self) -> bool {
        self.key[0] == !self.key[1] && (self.is_open != 0 || self.whole[0] == !self.whole[1])
    }
}

/// A comparison under way.
pub struct ComparisonUnderWay {
    pub record: CollectiveRecord,
    own: HashWords,
    all: HashWords,
    /// Records of all ranks, for intercommunicators.
    gathered: Vec<CollectiveRecord>,
    request: usize,
    /// Result of the library for the exchange.
    code: c_int,
    comm: usize,
    size: usize,
    pub pairs: Option<PairExchange>,
}

impl ComparisonUnderWay {
    /// Begins the exchange. The structure must not move until [`ComparisonUnderWay::wait`].
    fn start(&mut self) {
        let request = &raw mut self.request;
        // SAFETY: the arrays have the sizes of the calls, and live in a box until the request is complete.
        self.code = unsafe {
            if self.gathered.is_empty() {
                let (own, all) = (&raw const self.own, &raw mut self.all);
                let words = size_of::<HashWords>() / size_of::<u64>();
                mpi!(MPI_Iallreduce(own, all, words, MPI_UINT64_T, MPI_MAX, self.comm, request))
            } else {
                let (own, all) = (&raw const self.record, self.gathered.as_mut_ptr());
                let n = size_of::<CollectiveRecord>();
                mpi!(MPI_Iallgather(own, n, MPI_BYTE, all, n, MPI_BYTE, self.comm, request))
            }
        };
        if let Some(pairs) = &mut self.pairs {
            pairs.start(self.comm, self.record.sequence);
        }
    }

    /// Waits for the other ranks.
    pub fn wait(&mut self) {
        // SAFETY: the request is ours.
        let code = unsafe { mpi!(MPI_Wait(&raw mut self.request, 0)) };
        self.code = self.code.max(code);
    }

    /// Returns the first two records that differ, if any do. All ranks call this function.
    pub fn mismatch(&self) -> Option<[CollectiveRecord; 2]> {
        // An exchange that has failed, because a process has, says nothing about the program.
        if self.code != 0 {
            return None;
        }
        if !self.gathered.is_empty() {
            return mismatch(&self.gathered);
        }
        if self.all.is_equal() { None } else { mismatch(&self.records()) }
    }

    /// Returns true if a rank has accesses to windows for the other ranks.
    pub fn has_accesses(&self) -> bool {
        self.code == 0 && self.all.has_accesses != 0
    }

    /// Returns the rank that began last, if all ranks have one clock.
    pub fn last(&self) -> Option<LastRank> {
        let has_one_clock = self.gathered.is_empty() && self.all.host[0] == !self.all.host[1];
        (self.code == 0 && has_one_clock)
            .then_some(LastRank::of_word(self.all.last, wait_clock::moment()))
    }

    /// Gathers the records of all ranks, after a comparison has failed. All ranks call this function.
    fn records(&self) -> Vec<CollectiveRecord> {
        let mut all = vec![CollectiveRecord::default(); self.size];
        let (own, n) = (&raw const self.record, size_of::<CollectiveRecord>());
        // SAFETY: the array has a record for each rank.
        unsafe { mpi!(MPI_Allgather(own, n, MPI_BYTE, all.as_mut_ptr(), n, MPI_BYTE, self.comm)) };
        all
    }

    /// Returns true if any rank passes true. All ranks call this function.
    pub fn any(&self, own: impl Into<c_int>) -> bool {
        let (own, mut all): (c_int, c_int) = (own.into(), 0);
        let result = &raw mut all;
        // SAFETY: the communicator is ours, and both words are local variables.
        unsafe { mpi!(MPI_Allreduce(&raw const own, result, 1, MPI_INT, MPI_MAX, self.comm)) };
        all != 0
    }
}

/// Communicator for comparisons of a communicator, window or file of the program.
pub struct CollectiveContext {
    pub comm: usize,
    pub size: usize,
    /// Own rank in `comm`.
    pub rank: usize,
    /// Ranks in `comm` of the processes that an operation addresses by their rank in the program's communicator.
    pub peers: Vec<usize>,
    pub kind: CommKind,
    /// Group of an intercommunicator: the lowest rank in `comm` of its members.
    pub group: u32,
    sequence: u64,
    under_way: VecDeque<Box<ComparisonUnderWay>>,
}

impl CollectiveContext {
    /// Makes a context for the processes of a communicator. Collective.
    ///
    /// # Safety
    /// `of` is a communicator, all of whose processes call this function.
    pub unsafe fn new(of: usize) -> CollectiveContext {
        let (mut split, mut comm) = (MPI_COMM_NULL, MPI_COMM_NULL);
        let (mut inter, mut size, mut rank) = (0 as c_int, 0 as c_int, 0 as c_int);
        // SAFETY: the results are local variables.
        unsafe {
            mpi!(MPI_Comm_test_inter(of, &raw mut inter));
            // MPI_Comm_dup would call the program's copy functions of attributes.
            mpi!(MPI_Comm_split(of, 0, 0, &raw mut split));
            if inter == 0 {
                comm = split;
            } else {
                mpi!(MPI_Intercomm_merge(split, 0, &raw mut comm));
            }
            mpi!(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
            mpi!(MPI_Comm_size(comm, &raw mut size));
            mpi!(MPI_Comm_rank(comm, &raw mut rank));
        }
        let size = size.max(1) as usize;
        let (mut peers, mut group) = ((0..size).collect::<Vec<_>>(), 0);
        if inter != 0 {
            // SAFETY: both are communicators of ours.
            unsafe {
                peers = ranks_in(split, comm, InterGroup::Remote);
                group =
                    ranks_in(split, comm, InterGroup::Local).into_iter().min().unwrap_or(0) as u32;
                mpi!(MPI_Comm_free(&raw mut split));
            }
        }
        CollectiveContext {
            comm,
            size,
            rank: rank.max(0) as usize,
            peers,
            kind: CommKind::of_flag(inter),
            group,
            sequence: 0,
            under_way: VecDeque::new(),
        }
    }
}

/// Group of an intercommunicator, as a process of it sees the groups.
#[derive(Clone, Copy)]
enum InterGroup {
    Local,
    Remote,
}

/// Returns the ranks in `comm` of a group of an intercommunicator.
///
/// # Safety
/// Both are communicators, and `comm` has all processes of `inter`.
unsafe fn ranks_in(inter: usize, comm: usize, side: InterGroup) -> Vec<usize> {
    let (mut group, mut all, mut size) = (0usize, 0usize, 0 as c_int);
    // SAFETY: the results are local variables, and the arrays have an element for each process of the group.
    unsafe {
        match side {
            InterGroup::Remote => mpi!(MPI_Comm_remote_group(inter, &raw mut group)),
            InterGroup::Local => mpi!(MPI_Comm_group(inter, &raw mut group)),
        };
        mpi!(MPI_Comm_group(comm, &raw mut all));
        mpi!(MPI_Group_size(group, &raw mut size));
        let from: Vec<c_int> = (0..size).collect();
        let mut to = vec![0 as c_int; from.len()];
        mpi!(MPI_Group_translate_ranks(group, size, from.as_ptr(), all, to.as_mut_ptr()));
        mpi!(MPI_Group_free(&raw mut group));
        mpi!(MPI_Group_free(&raw mut all));
        to.into_iter().map(|rank| rank.max(0) as usize).collect()
    }
}

/// Contexts of the program's communicators, windows and files.
#[derive(Default)]
pub struct CollectiveContexts {
    contexts: HashMap<ObjectHandle, CollectiveContext>,
    /// Number of contexts whose communicator the program has freed.
    retired: usize,
}

/// Kind of the contexts of communicators that the program has freed.
const RETIRED: &str = "retired";

impl CollectiveContexts {
    /// Adds the context of an object.
    pub fn insert(&mut self, object: ObjectHandle, context: CollectiveContext) {
        self.contexts.insert(object, context);
    }

    /// Returns the context of an object.
    pub fn get(&self, object: ObjectHandle) -> Option<&CollectiveContext> {
        self.contexts.get(&object)
    }

    /// Removes the context of an object. Returns its communicator, which the caller frees.
    pub fn remove(&mut self, object: ObjectHandle) -> Option<usize> {
        self.contexts.remove(&object).map(|context| context.comm)
    }

    /// Returns all objects that have a context for several ranks, first those that the program has not freed.
    pub fn objects(&self) -> [Vec<ObjectHandle>; 2] {
        let several = self.contexts.iter().filter(|(_, context)| context.size > 1);
        let (retired, alive) =
            several.map(|(object, _)| *object).partition(|object| object.kind == RETIRED);
        [alive, retired]
    }

    /// Returns the objects whose comparisons are not complete.
    pub fn objects_under_way(&self) -> Vec<ObjectHandle> {
        let waits = self.contexts.iter().filter(|(_, context)| !context.under_way.is_empty());
        waits.map(|(object, _)| *object).collect()
    }

    /// Gives the context of an object that the program frees another name. Its comparisons are judged later, since MPI_Comm_free need not
    /// wait for other ranks.
    pub fn retire(&mut self, object: ObjectHandle) {
        if let Some(context) = self.contexts.remove(&object) {
            self.retired += 1;
            let retired = ObjectHandle { kind: RETIRED, handle: self.retired };
            self.contexts.insert(retired, context);
        }
    }

    /// Removes a retired context without comparisons under way. Returns its communicator, which the caller frees.
    pub fn remove_idle(&mut self, object: ObjectHandle) -> Option<usize> {
        let is_idle = self.contexts.get(&object).is_some_and(|c| c.under_way.is_empty());
        (object.kind == RETIRED && is_idle).then(|| self.remove(object)).flatten()
    }

    /// Takes the communicators of all contexts.
    pub fn take_comms(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.contexts).into_values().map(|context| context.comm).collect()
    }

    /// Begins the comparison of a call; `None` if the object has no context, or a single rank.
    pub fn start(
        &mut self,
        object: ObjectHandle,
        plan: ComparisonPlan,
    ) -> Option<CollectiveComparison> {
        let context = self.contexts.get_mut(&object).filter(|context| context.size > 1)?;
        let ComparisonPlan { mut record, pairs, has_accesses, host } = plan;
        context.sequence += 1;
        let sequence = context.sequence;
        record.sequence = sequence;
        record.group = context.group;
        record.is_inter = u32::from(context.kind == CommKind::Inter);
        let has_accesses = u64::from(has_accesses);
        let last = LastRank { rank: record.rank, began: wait_clock::moment() }.word();
        let host = [host, !host];
        let own = HashWords { has_accesses, last, host, ..HashWords::of(&record) };
        let gathered = if context.kind == CommKind::Inter { context.size } else { 0 };
        context.under_way.push_back(Box::new(ComparisonUnderWay {
            record,
            own,
            all: HashWords::default(),
            gathered: vec![CollectiveRecord::default(); gathered],
            request: 0,
            code: 0,
            comm: context.comm,
            size: context.size,
            pairs,
        }));
        context.under_way.back_mut().expect("a comparison was added").start();
        Some(CollectiveComparison { context: object, sequence })
    }

    /// Takes the earliest comparison of an object, if it does not come after a sequence number.
    pub fn take_until(
        &mut self,
        object: ObjectHandle,
        last: u64,
    ) -> Option<Box<ComparisonUnderWay>> {
        let queue = &mut self.contexts.get_mut(&object)?.under_way;
        let is_in_time = queue.front().is_some_and(|first| first.record.sequence <= last);
        is_in_time.then(|| queue.pop_front()).flatten()
    }

    /// Takes the earliest comparison of an object, if all ranks have begun it.
    pub fn take_complete(&mut self, object: ObjectHandle) -> Option<Box<ComparisonUnderWay>> {
        let queue = &mut self.contexts.get_mut(&object)?.under_way;
        let mut flag = 0 as c_int;
        // SAFETY: the request is ours.
        unsafe { mpi!(MPI_Test(&raw mut queue.front_mut()?.request, &raw mut flag, 0)) };
        if flag == 0 { None } else { queue.pop_front() }
    }

    /// Waits until the earliest comparison of any of these objects is complete. Returns the object; `None` if there is no comparison.
    ///
    /// # Safety
    /// No other thread uses the checker.
    pub unsafe fn wait_any(&mut self, objects: &[ObjectHandle]) -> Option<ObjectHandle> {
        let first = |object| Some(self.contexts.get(object)?.under_way.front()?.request);
        // The null handle stands for no comparison.
        let mut requests: Vec<_> =
            objects.iter().map(|object| first(object).unwrap_or(0x180)).collect();
        let mut index = -1 as c_int;
        let count = requests.len();
        // SAFETY: the requests are ours.
        unsafe { mpi!(MPI_Waitany(count, requests.as_mut_ptr(), &raw mut index, 0)) };
        let object = *objects.get(usize::try_from(index).ok()?)?;
        // The request is complete, so its handle is no longer valid.
        self.contexts.get_mut(&object)?.under_way.front_mut()?.request = 0x180;
        Some(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_rank_has_the_greatest_word() {
        let rank = |rank, began| LastRank { rank, began };
        let all = [rank(5, 3_000_000), rank(0, 9_000_000), rank(1_000_000, 8_999_000)];
        let greatest = all.map(LastRank::word).into_iter().max().expect("three words");
        assert_eq!(LastRank::of_word(greatest, 9_500_000), all[1]);
        assert_eq!(LastRank::of_word(all[2].word(), 9_500_000), all[2]);
        // A host that has run for a year.
        let year = rank(3, 31_536_000_000_000_000);
        assert_eq!(LastRank::of_word(year.word(), year.began + 70_000), year);
    }
}
