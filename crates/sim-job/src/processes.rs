//! Access to the memory of the ranks' processes, and the counters that advanced since their last turns.

use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use nix::unistd::Pid;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;
use weft_fabric::Fault;
use weft_fabric_sim::{RankCounter, RankMemory, RankProcesses};
use weft_fabric_sim_client::IMMEDIATE;

/// Number of bytes that are copied in one step.
const STEP: usize = 1 << 20;

/// Number of bytes at either end of a phantom payload that are copied all the same: words of the library before or behind the
/// program's data.
const PHANTOM_EDGE: usize = 1 << 10;

/// Bytes that writes and reads have moved between processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CopiedBytes {
    /// Number of bytes that were copied.
    pub copied: u64,
    /// Number of bytes of phantom payloads that were not copied.
    pub spared: u64,
}

/// The processes of the ranks.
pub struct ProcessAccess {
    pids: Vec<Cell<i32>>,
    advances: Vec<RefCell<VecDeque<u64>>>,
    buffer: RefCell<Vec<u8>>,
    /// Number of bytes above which payloads are phantoms; `None` if all are copied.
    phantom: Option<usize>,
    copied: Cell<CopiedBytes>,
}

impl ProcessAccess {
    /// Creates the access to `ranks` processes that have not started. Payloads of more than `phantom` bytes are not copied.
    pub fn new(ranks: usize, phantom: Option<usize>) -> ProcessAccess {
        ProcessAccess {
            pids: vec![Cell::new(0); ranks],
            advances: (0..ranks).map(|_| RefCell::default()).collect(),
            buffer: RefCell::default(),
            phantom: phantom.map(|limit| limit.max(2 * PHANTOM_EDGE)),
            copied: Cell::default(),
        }
    }

    /// Returns the number of bytes that were copied so far, and of those that were not.
    pub fn copied(&self) -> CopiedBytes {
        self.copied.get()
    }

    /// Notes the process of a rank.
    pub fn set_pid(&self, rank: usize, pid: u32) {
        self.pids[rank].set(pid as i32);
    }

    /// Returns the process of a rank; 0 before it has attached.
    pub fn pid(&self, rank: usize) -> i32 {
        self.pids[rank].get()
    }

    /// Takes the next counter that advanced.
    pub fn next_advance(&self, rank: usize) -> Option<u64> {
        self.advances[rank].borrow_mut().pop_front()
    }

    /// Returns true if counters advanced that the rank does not know of.
    pub fn has_advances(&self, rank: usize) -> bool {
        !self.advances[rank].borrow().is_empty()
    }

    /// Returns the counters that advanced and of which the rank does not know, in order.
    pub fn pending_advances(&self, rank: usize) -> Vec<u64> {
        self.advances[rank].borrow().iter().copied().collect()
    }

    /// Copies the bytes of `part`.
    fn copy_part(&self, to: RankMemory, from: RankMemory, part: Range<usize>) -> Result<(), Fault> {
        let mut buffer = self.buffer.borrow_mut();
        let mut at = part.start;
        while at < part.end {
            let step = STEP.min(part.end - at);
            if buffer.len() < step {
                buffer.resize(step, 0);
            }
            let piece = RankMemory { rank: from.rank, memory: from.memory.part(at, step) };
            self.read(piece, &mut buffer[..step])?;
            let piece = RankMemory { rank: to.rank, memory: to.memory.part(at, step) };
            self.write(piece, &buffer[..step])?;
            at += step;
        }
        Ok(())
    }

    fn fault(&self, rank: usize, error: nix::Error) -> Fault {
        match error {
            nix::Error::ESRCH => Fault::lost(rank),
            _ => Fault::system("reading or writing the memory of a simulated rank", error as i32),
        }
    }
}

/// Returns the address of a rank's memory in its process.
fn remote(memory: RankMemory, at: usize, len: usize) -> RemoteIoVec {
    RemoteIoVec { base: memory.memory.ptr().addr() + at, len }
}

impl RankProcesses for ProcessAccess {
    fn copy(&self, to: RankMemory, from: RankMemory) -> Result<(), Fault> {
        let len = to.memory.len().min(from.memory.len());
        let mut count = self.copied.get();
        let parts = match self.phantom {
            Some(limit) if len > limit => [0..PHANTOM_EDGE, len - PHANTOM_EDGE..len],
            _ => [0..len, len..len],
        };
        let copied: usize = parts.iter().map(|part| part.len()).sum();
        count.copied += copied as u64;
        count.spared += (len - copied) as u64;
        self.copied.set(count);
        parts.into_iter().try_for_each(|part| self.copy_part(to, from, part))
    }

    fn spares(&self, len: usize, part: Range<usize>) -> bool {
        let middle = PHANTOM_EDGE..len.saturating_sub(PHANTOM_EDGE);
        let is_long = self.phantom.is_some_and(|limit| len > limit);
        let spares = is_long && middle.start <= part.start && part.end <= middle.end;
        if spares {
            let CopiedBytes { copied, spared } = self.copied.get();
            self.copied.set(CopiedBytes { copied, spared: spared + part.len() as u64 });
        }
        spares
    }

    fn read(&self, from: RankMemory, out: &mut [u8]) -> Result<(), Fault> {
        let pid = Pid::from_raw(self.pid(from.rank));
        let mut done = 0;
        while done < out.len() {
            let there = remote(from, done, out.len() - done);
            let here = &mut [IoSliceMut::new(&mut out[done..])];
            match process_vm_readv(pid, here, &[there]) {
                Ok(0) => return Err(self.fault(from.rank, nix::Error::EFAULT)),
                Ok(count) => done += count,
                Err(error) => return Err(self.fault(from.rank, error)),
            }
        }
        Ok(())
    }

    fn write(&self, to: RankMemory, bytes: &[u8]) -> Result<(), Fault> {
        let pid = Pid::from_raw(self.pid(to.rank));
        let mut done = 0;
        while done < bytes.len() {
            let there = remote(to, done, bytes.len() - done);
            match process_vm_writev(pid, &[IoSlice::new(&bytes[done..])], &[there]) {
                Ok(0) => return Err(self.fault(to.rank, nix::Error::EFAULT)),
                Ok(count) => done += count,
                Err(error) => return Err(self.fault(to.rank, error)),
            }
        }
        Ok(())
    }

    fn advance(&self, rank: usize, counter: RankCounter) {
        let word = match counter {
            RankCounter::Completion(counter) => u64::from(counter.0),
            RankCounter::Immediate(immediate) => IMMEDIATE | u64::from(immediate),
        };
        self.advances[rank].borrow_mut().push_back(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_fabric::Sge;

    /// Copies within this process, which stands for two ranks, and returns the copy and the count.
    fn copied(phantom: Option<usize>, len: usize) -> (Vec<u8>, CopiedBytes) {
        let access = ProcessAccess::new(2, phantom);
        (0..2).for_each(|rank| access.set_pid(rank, std::process::id()));
        let (source, mut target) = (vec![7u8; len], vec![0u8; len]);
        // SAFETY: both outlive the copy, and nothing else accesses them meanwhile.
        let [from, to] = unsafe {
            [Sge::new(source.as_ptr().cast_mut(), len), Sge::new(target.as_mut_ptr(), len)]
        };
        let memory = |rank, memory| RankMemory { rank, memory };
        access.copy(memory(1, to), memory(0, from)).unwrap();
        let count = access.copied();
        (target, count)
    }

    #[test]
    #[cfg_attr(miri, ignore = "process_vm_readv")]
    fn phantom_payloads_keep_their_ends_only() {
        let (all, count) = copied(None, 10_000);
        assert_eq!((all, count), (vec![7; 10_000], CopiedBytes { copied: 10_000, spared: 0 }));
        let (short, _) = copied(Some(4096), 4096);
        assert_eq!(short, [7; 4096]);
        let (long, count) = copied(Some(4096), 10_000);
        assert_eq!(count, CopiedBytes { copied: 2048, spared: 7952 });
        assert_eq!((&long[..1024], &long[8976..]), (&[7; 1024][..], &[7; 1024][..]));
        assert_eq!(long[1024..8976], [0; 7952]);
        let access = ProcessAccess::new(2, Some(4096));
        assert!(access.spares(10_000, 1024..8976) && access.spares(10_000, 4096..8192));
        assert!(!access.spares(10_000, 0..4096) && !access.spares(10_000, 8192..10_000));
        assert!(!access.spares(4096, 2048..3072));
        assert_eq!(access.copied().spared, 7952 + 4096);
    }
}
