//! Access to the memory of the ranks' processes, and the counters that advanced since their last turns.

use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use nix::unistd::Pid;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use weft_fabric::Fault;
use weft_fabric_sim::{RankCounter, RankMemory, RankProcesses};

/// Number of bytes that are copied in one step.
const STEP: usize = 1 << 20;

/// Bit of a counter that marks an immediate, as the ranks expect.
const IMMEDIATE: u64 = 1 << 32;

/// The processes of the ranks.
pub struct ProcessAccess {
    pids: Vec<Cell<i32>>,
    advances: Vec<RefCell<VecDeque<u64>>>,
    buffer: RefCell<Vec<u8>>,
}

impl ProcessAccess {
    /// Creates the access to `ranks` processes that have not started.
    pub fn new(ranks: usize) -> ProcessAccess {
        ProcessAccess {
            pids: vec![Cell::new(0); ranks],
            advances: (0..ranks).map(|_| RefCell::default()).collect(),
            buffer: RefCell::default(),
        }
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
        let mut buffer = self.buffer.borrow_mut();
        let len = to.memory.len().min(from.memory.len());
        let mut at = 0;
        while at < len {
            let step = STEP.min(len - at);
            if buffer.len() < step {
                buffer.resize(step, 0);
            }
            let part = RankMemory { rank: from.rank, memory: from.memory.part(at, step) };
            self.read(part, &mut buffer[..step])?;
            let part = RankMemory { rank: to.rank, memory: to.memory.part(at, step) };
            self.write(part, &buffer[..step])?;
            at += step;
        }
        Ok(())
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
