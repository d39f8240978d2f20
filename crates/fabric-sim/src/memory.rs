//! Memory that other ranks can reach: a table of regions, whose bounds are checked at every use.

use std::collections::BTreeMap;
use weft_fabric::block::OwnedBlock;
use weft_fabric::{Fault, Key, Region, RemoteAddr, Sge};

/// Maximum size of a region in bytes. No machine has more memory.
const LARGEST: usize = 1 << 40;

#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line {
    _words: [u64; 8],
}

#[derive(Clone, Copy)]
struct Entry {
    rank: u32,
    generation: u32,
    memory: Sge,
    /// True if flags and atomics may be in the region.
    allocated: bool,
    live: bool,
}

/// All regions of a world. Allocated memory is freed only at the end of the world, because counters point into it. When a region
/// ends, its block is reused for another region.
#[derive(Default)]
pub struct WorldMemory {
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// Idle blocks by their number of cache lines.
    idle: BTreeMap<usize, Vec<OwnedBlock<Line>>>,
    /// Blocks in use, by region.
    used: BTreeMap<u32, OwnedBlock<Line>>,
}

impl WorldMemory {
    /// Allocates zeroed memory for `rank`.
    pub fn allocate(&mut self, rank: usize, len: usize) -> Result<Region, Fault> {
        if len > LARGEST {
            const ENOMEM: i32 = 12;
            return Err(Fault::system("memory of the simulated cluster", ENOMEM));
        }
        let lines = len.div_ceil(64).max(1);
        let block = match self.idle.get_mut(&lines).and_then(Vec::pop) {
            Some(block) => block,
            None => OwnedBlock::new(vec![Line { _words: [0; 8] }; lines]),
        };
        let start = block.first().as_ptr();
        // SAFETY: `start` is valid for `lines` lines, the length of the block, and `WorldMemory` keeps the block until the world
        // ends.
        let memory = unsafe {
            std::ptr::write_bytes(start, 0, lines);
            Sge::new(start.cast(), len)
        };
        let region = self.enter(rank, memory, true);
        self.used.insert(region.remote.key.0[0] as u32, block);
        Ok(region)
    }

    /// Registers memory of the program as a region.
    pub fn expose(&mut self, rank: usize, memory: Sge) -> Region {
        self.enter(rank, memory, false)
    }

    /// Makes a region of `memory`.
    pub fn enter(&mut self, rank: usize, memory: Sge, allocated: bool) -> Region {
        let rank = rank as u32;
        let index = self.free.pop().unwrap_or_else(|| {
            let entry = Entry { rank, generation: 0, memory, allocated, live: false };
            self.entries.push(entry);
            self.entries.len() as u32 - 1
        });
        let generation = self.entries[index as usize].generation + 1;
        self.entries[index as usize] = Entry { rank, generation, memory, allocated, live: true };
        let key = u64::from(generation) << 32 | u64::from(index);
        Region { local: memory, remote: RemoteAddr::new(key, 0) }
    }

    /// Ends a region. Its key is refused from now on.
    pub fn withdraw(&mut self, region: Region) {
        let Key([key, ..]) = region.remote.key;
        let index = key as u32;
        let entry = &mut self.entries[index as usize];
        assert!(entry.live && entry.generation == (key >> 32) as u32);
        entry.live = false;
        if let Some(block) = self.used.remove(&index) {
            self.idle.entry(block.len()).or_default().push(block);
        }
        self.free.push(index);
    }

    /// Returns the memory of `len` bytes at `at`, which `rank` must own.
    pub fn find(&self, rank: usize, at: RemoteAddr, len: usize) -> Result<Sge, Fault> {
        let corrupt = |what| Err(Fault::corrupt(rank, what));
        let Key([key, ..]) = at.key;
        let Some(entry) = self.entries.get(key as u32 as usize) else {
            return corrupt("key of a region");
        };
        let current = entry.live && u64::from(entry.generation) == key >> 32;
        if !current || entry.rank as usize != rank {
            return corrupt("key of a region");
        }
        let whole = entry.memory.len() as u64;
        if at.addr > whole || len as u64 > whole - at.addr {
            return corrupt("address in a region");
        }
        Ok(entry.memory.part(at.addr as usize, len))
    }

    /// Returns true if the fabric allocated the memory of the region of `at`.
    pub fn is_allocated(&self, at: RemoteAddr) -> bool {
        self.entries.get(at.key.0[0] as u32 as usize).is_some_and(|entry| entry.allocated)
    }

    /// Returns the word at `at`, which must be aligned and in memory that the fabric allocated.
    pub fn word(&self, rank: usize, at: RemoteAddr) -> Result<Sge, Fault> {
        let word = self.find(rank, at, 8)?;
        let allocated = self.entries[at.key.0[0] as u32 as usize].allocated;
        if !allocated || !at.addr.is_multiple_of(8) {
            return Err(Fault::corrupt(rank, "address of a word"));
        }
        Ok(word)
    }
}
