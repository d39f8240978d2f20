//! Memory that operations use: which calls may not use the same memory at the same time (MPI 5.0, sections 3.7.2 and 6.12).

use crate::call_site::CallSite;
use crate::datatype::{MemoryRange, SHORT_CLASSES, TypeFacts, repeated};
use crate::function::{ArgumentDirection, CheckedCall};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Access of an operation to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryAccess {
    Read,
    Write,
}

/// Parameter for the result of an atomic access to a window.
const RESULT: &str = "result_addr";

/// Memory of a buffer.
#[derive(Clone, Debug)]
pub struct BufferRange {
    /// Absolute blocks, sorted.
    pub blocks: Vec<MemoryRange>,
    pub access: MemoryAccess,
    /// Name of the parameter.
    pub parameter: &'static str,
    pub filling: BufferFilling,
}

/// Place at which a message that is shorter than the buffer ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BufferFilling {
    /// As many bytes behind the begin of the only block as the message has.
    Front,
    /// Any place between two elements, whose sizes are multiples of four bytes.
    Words,
    /// Any place.
    Bytes,
}

impl BufferFilling {
    fn of(facts: &TypeFacts, elements: &ElementCount, blocks: &[MemoryRange]) -> BufferFilling {
        let is_front = |count: i64| blocks.len() == 1 && facts.is_in_order(count);
        match elements {
            ElementCount::Plain(count) if is_front(*count) => BufferFilling::Front,
            // Only poison needs the rest.
            _ if !crate::poison_switch::is_on() => BufferFilling::Bytes,
            _ if SHORT_CLASSES.iter().any(|&class| facts.signature.contains(class)) => {
                BufferFilling::Bytes
            }
            _ => BufferFilling::Words,
        }
    }
}

impl BufferRange {
    /// Returns the first address that both ranges have, if they may not be in use at the same time.
    fn conflict(&self, other: &BufferRange) -> Option<i64> {
        if self.access == MemoryAccess::Read && other.access == MemoryAccess::Read {
            return None;
        }
        // Programs give several atomic accesses one place for results that they do not read.
        if self.parameter == RESULT && other.parameter == RESULT {
            return None;
        }
        let (mut mine, mut theirs) =
            (self.blocks.iter().peekable(), other.blocks.iter().peekable());
        while let (Some(a), Some(b)) = (mine.peek(), theirs.peek()) {
            if a.offset + a.length <= b.offset {
                mine.next();
            } else if b.offset + b.length <= a.offset {
                theirs.next();
            } else {
                return Some(a.offset.max(b.offset));
            }
        }
        None
    }

    /// Hashes a sample of the memory: the first and last 4 KiB of the first and last block.
    ///
    /// # Safety
    /// The memory can be read.
    pub unsafe fn sample(&self) -> u64 {
        const SAMPLE: i64 = 4096;
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        let mut add = |start: i64, length: i64| {
            // SAFETY: the memory can be read: the caller promises it.
            let bytes = unsafe { std::slice::from_raw_parts(start as *const u8, length as usize) };
            for chunk in bytes.chunks(8) {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                hash ^= hash >> 29;
            }
        };
        if let (Some(first), Some(last)) = (self.blocks.first(), self.blocks.last()) {
            add(first.offset, first.length.min(SAMPLE));
            add(last.offset + (last.length - SAMPLE).max(0), last.length.min(SAMPLE));
        }
        hash
    }
}

/// Memory that an operation uses until it is complete.
pub struct MemoryUse {
    /// Number of the operation.
    pub operation: u64,
    pub function: &'static str,
    pub site: CallSite,
    pub ranges: Vec<BufferRange>,
}

/// Memory that operations use now.
#[derive(Default)]
pub struct MemoryUses {
    uses: Vec<MemoryUse>,
    /// For each use the memory from its first block to the end of its last block.
    spans: Vec<MemorySpan>,
}

/// Memory between two addresses.
#[derive(Clone, Copy)]
struct MemorySpan {
    start: i64,
    end: i64,
}

impl MemorySpan {
    /// Returns the memory from the first block of some ranges to the end of the last block.
    fn of(ranges: &[BufferRange]) -> MemorySpan {
        let blocks = || ranges.iter().flat_map(|range| &range.blocks);
        let start = blocks().map(|block| block.offset).min().unwrap_or(0);
        let end = blocks().map(|block| block.offset + block.length).max().unwrap_or(0);
        MemorySpan { start, end }
    }

    fn overlaps(self, other: MemorySpan) -> bool {
        self.start < other.end && other.start < self.end
    }
}

/// Number of operations that use memory now.
static IN_USE: AtomicUsize = AtomicUsize::new(0);

/// Returns true if no operation under way uses memory.
pub fn is_idle() -> bool {
    IN_USE.load(Ordering::Relaxed) == 0
}

impl MemoryUses {
    /// Returns the first use that forbids these ranges, with the parameter's name of the new call and of the earlier call.
    pub fn conflict(
        &self,
        ranges: &[BufferRange],
    ) -> Option<(&MemoryUse, &'static str, &'static str)> {
        let span = MemorySpan::of(ranges);
        let near = |&(_, other): &(&MemoryUse, &MemorySpan)| span.overlaps(*other);
        self.uses.iter().zip(&self.spans).filter(near).find_map(|(earlier, _)| {
            let pairs = earlier.ranges.iter().flat_map(|a| ranges.iter().map(move |b| (a, b)));
            let found = pairs.into_iter().find(|(a, b)| a.conflict(b).is_some());
            found.map(|(a, b)| (earlier, b.parameter, a.parameter))
        })
    }

    /// Adds the use of an operation that has begun.
    pub fn begin(&mut self, memory: MemoryUse) {
        self.spans.push(MemorySpan::of(&memory.ranges));
        self.uses.push(memory);
        IN_USE.store(self.uses.len(), Ordering::Relaxed);
    }

    /// Removes the use of an operation.
    pub fn end(&mut self, operation: u64) {
        if let Some(at) = self.uses.iter().position(|memory| memory.operation == operation) {
            self.uses.swap_remove(at);
            self.spans.swap_remove(at);
        }
        IN_USE.store(self.uses.len(), Ordering::Relaxed);
    }
}

/// Returns the first pair of ranges of one call that overlap forbiddingly.
pub fn own_conflict(ranges: &[BufferRange]) -> Option<(&'static str, &'static str)> {
    let pairs = (0..ranges.len()).flat_map(|a| (0..a).map(move |b| (b, a)));
    let found = pairs.into_iter().find(|&(a, b)| ranges[a].conflict(&ranges[b]).is_some());
    found.map(|(a, b)| (ranges[a].parameter, ranges[b].parameter))
}

/// Number of elements of a buffer, and where they are.
pub enum ElementCount {
    /// Elements one behind the other.
    Plain(i64),
    /// For each rank a number of elements, and their place in elements.
    Vector(Vec<(i64, i64)>),
}

/// Returns the memory of the buffer at a place of a call; `None` if the memory is not known.
pub fn range(
    call: &CheckedCall<'_>,
    place: usize,
    facts: &TypeFacts,
    elements: &ElementCount,
) -> Option<BufferRange> {
    let parameter = &call.function.parameters[place];
    let address = call.arguments[place] as i64;
    let blocks = facts.blocks.as_ref()?;
    let piece = |count: i64, shift: i64| {
        let blocks = repeated(blocks, facts.extent, count)?;
        let start = address + shift * facts.extent;
        Some(blocks.into_iter().map(move |b| MemoryRange { offset: b.offset + start, ..b }))
    };
    let mut blocks: Vec<MemoryRange> = match elements {
        ElementCount::Plain(count) => piece(*count, 0)?.collect(),
        ElementCount::Vector(pieces) => {
            let pieces = pieces.iter().map(|&(count, shift)| piece(count, shift));
            pieces.collect::<Option<Vec<_>>>()?.into_iter().flatten().collect()
        }
    };
    blocks.retain(|block| block.length > 0);
    blocks.sort();
    let access = if parameter.direction == ArgumentDirection::In {
        MemoryAccess::Read
    } else {
        MemoryAccess::Write
    };
    let filling = BufferFilling::of(facts, elements, &blocks);
    Some(BufferRange { blocks, access, parameter: parameter.name, filling })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(access: MemoryAccess, blocks: &[(i64, i64)]) -> BufferRange {
        let blocks =
            blocks.iter().map(|&(offset, length)| MemoryRange { offset, length }).collect();
        BufferRange { blocks, access, parameter: "buf", filling: BufferFilling::Bytes }
    }

    #[test]
    fn reads_may_overlap_and_writes_may_not() {
        let (read, write) =
            (range(MemoryAccess::Read, &[(0, 8)]), range(MemoryAccess::Write, &[(4, 8)]));
        assert_eq!(read.conflict(&read), None);
        assert_eq!(read.conflict(&write), Some(4));
        assert_eq!(write.conflict(&write), Some(4));
        assert_eq!(write.conflict(&range(MemoryAccess::Write, &[(12, 8)])), None);
        assert_eq!(write.conflict(&range(MemoryAccess::Write, &[(0, 4)])), None);
    }

    #[test]
    fn blocks_between_each_other_do_not_overlap() {
        let columns = |first: i64| {
            let blocks: Vec<_> = (0..5).map(|row| (row * 16 + first, 4)).collect();
            range(MemoryAccess::Write, &blocks)
        };
        assert_eq!(columns(0).conflict(&columns(4)), None);
        assert_eq!(columns(0).conflict(&columns(2)), Some(2));
    }

    #[test]
    fn a_use_ends_with_its_operation() {
        let mut uses = MemoryUses::default();
        let ranges = vec![range(MemoryAccess::Write, &[(0, 8)])];
        let site = CallSite::default();
        uses.begin(MemoryUse { operation: 7, function: "MPI_Irecv", site, ranges: ranges.clone() });
        assert_eq!(uses.conflict(&ranges).map(|(earlier, ..)| earlier.operation), Some(7));
        uses.end(7);
        assert!(uses.conflict(&ranges).is_none());
    }

    #[test]
    fn a_sample_sees_changes_at_both_ends() {
        let mut data = vec![0u8; 100_000];
        let memory = range(MemoryAccess::Read, &[(data.as_ptr() as i64, data.len() as i64)]);
        // SAFETY: `data` lives.
        let sample = || unsafe { memory.sample() };
        let before = sample();
        for at in [0, 4000, 96_000, 99_999] {
            // SAFETY: `data` lives, and nothing else uses it now.
            unsafe { data.as_mut_ptr().add(at).write_volatile(1) };
            assert_ne!(sample(), before, "{at}");
            // SAFETY: as above.
            unsafe { data.as_mut_ptr().add(at).write_volatile(0) };
        }
        assert_eq!(sample(), before);
    }
}
