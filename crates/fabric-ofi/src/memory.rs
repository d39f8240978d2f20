//! Memory that peers may reach: registrations by key, and allocations.

use crate::address::{self, MemoryName};
use crate::ffi::*;
use crate::object::Objects;
use crate::random::random;
use crate::registrations::{MemoryOrigin, RegistrationId, Registrations};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::HashMap;
use std::sync::Arc;
use weft_fabric::{Fault, Key, Region, RemoteAddr, Sge};

/// Alignment of allocations, in bytes.
const ALIGNMENT: usize = 64;

/// Operations that peers and this process may do with registered memory.
const ACCESS: u64 = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_TRANSMIT | FI_RECV;

/// Memory of one process that peers may reach.
pub struct ProcessMemory {
    pub registrations: Registrations,
    /// Allocations that were given back, by length. They stay mapped, because counters lie in them.
    free: HashMap<usize, Vec<Sge>>,
    /// Number of pieces of the program's memory that peers may reach.
    pub exposed: usize,
    /// All allocations so far.
    allocated: Vec<(*mut u8, Layout)>,
}

/// Rounds a length up to a number with three significant bits, so that a freed allocation fits later requests of similar length.
fn rounded(len: usize) -> usize {
    let len = len.max(ALIGNMENT);
    let step = (len.next_power_of_two() / 8).max(ALIGNMENT);
    len.next_multiple_of(step)
}

/// Makes the region of memory that lies in a registration.
fn region(id: RegistrationId, memory: Sge) -> Region {
    let remote = RemoteAddr { addr: memory.ptr().addr() as u64, key: Key(id) };
    Region { local: memory, remote }
}

fn no_memory() -> Fault {
    Fault::system("allocating memory that other processes reach", libc::ENOMEM)
}

impl ProcessMemory {
    /// Returns an empty table. `objects` are the endpoints of the rails.
    pub fn new(objects: Vec<Arc<Objects>>) -> ProcessMemory {
        let (free, exposed, allocated) = Default::default();
        ProcessMemory { registrations: Registrations::new(objects), free, exposed, allocated }
    }

    /// Returns the number of registrations, and their total size in bytes.
    pub fn totals(&self) -> (usize, usize) {
        let all = self.registrations.all();
        (all.len(), all.map(|entry| entry.memory.len()).sum())
    }

    /// Registers memory and names it for peers.
    fn name(&mut self, memory: Sge, origin: MemoryOrigin) -> Result<Region, Fault> {
        let program = origin == MemoryOrigin::Program;
        let start = memory.ptr().addr();
        if memory.is_empty() {
            let named = MemoryName { key: 0, start: 0, len: 0, program: true };
            let at = RemoteAddr { addr: start as u64, key: named.encode(0).key };
            return Ok(Region { local: memory, remote: at });
        }
        if !start.checked_add(memory.len()).is_some_and(address::can_name) {
            return Err(Fault::unsupported(0, "name memory beyond 48 bits"));
        }
        if program && let Some(id) = self.registrations.share(memory) {
            self.exposed += 1;
            return Ok(region(id, memory));
        }
        let bits = 8 * self.registrations.key_size().clamp(1, 8) as u32;
        let wanted = loop {
            let key = random() >> (64 - bits);
            if key != 0 && !self.registrations.has_key(key) {
                break key;
            }
        };
        // SAFETY: `make` needs memory that stays mapped until its last user is gone. The maker of the `Sge` promised that the
        // memory lives until it is withdrawn (`Sge::new`).
        let made = unsafe { self.registrations.make(memory, origin, ACCESS, wanted) };
        let id = made?;
        self.exposed += usize::from(program);
        Ok(region(id, memory))
    }

    /// Lets peers read and write the program's memory.
    pub fn expose(&mut self, memory: Sge) -> Result<Region, Fault> {
        self.name(memory, MemoryOrigin::Program)
    }

    /// Lets peers use memory of another fabric like memory that this fabric allocated.
    pub fn adopt(&mut self, memory: Sge) -> Result<Region, Fault> {
        self.name(memory, MemoryOrigin::OtherFabric)
    }

    pub fn allocate(&mut self, len: usize) -> Result<Region, Fault> {
        let whole = rounded(len);
        let memory = match self.free.get_mut(&whole).and_then(Vec::pop) {
            Some(memory) => {
                // SAFETY: the memory is a whole allocation of this table. It was withdrawn, so nobody else reaches it now.
                unsafe { std::ptr::write_bytes(memory.ptr(), 0, memory.len()) };
                memory
            }
            None => {
                let layout = Layout::from_size_align(whole, ALIGNMENT).map_err(|_| no_memory())?;
                // SAFETY: `alloc_zeroed` needs a layout of nonzero size: `rounded` returns at least `ALIGNMENT` bytes.
                let at = unsafe { alloc_zeroed(layout) };
                if at.is_null() {
                    return Err(no_memory());
                }
                self.allocated.push((at, layout));
                // SAFETY: `Sge::new` needs memory that stays allocated: these are `whole` bytes at `at`, freed only when the table
                // is dropped.
                unsafe { Sge::new(at, whole) }
            }
        };
        match self.name(memory, MemoryOrigin::Allocation) {
            Ok(region) => Ok(Region { local: memory.part(0, len), ..region }),
            Err(fault) => {
                self.free.entry(whole).or_default().push(memory);
                Err(fault)
            }
        }
    }

    pub fn withdraw(&mut self, region: Region) {
        let Key(id) = region.remote.key;
        let there = self.registrations.get(id).filter(|entry| entry.regions > 0);
        let Some(entry) = there else { return };
        self.exposed -= usize::from(entry.origin == MemoryOrigin::Program);
        if let Some(entry) = self.registrations.withdraw(id)
            && entry.origin == MemoryOrigin::Allocation
        {
            self.free.entry(entry.memory.len()).or_default().push(entry.memory);
        }
    }

    /// Returns the `len` bytes at `at`, an address that peer `rank` has sent, if peers may reach these bytes. The address is
    /// checked, because a peer may send anything.
    pub fn find(&self, rank: usize, at: RemoteAddr, len: usize) -> Result<Sge, Fault> {
        address::decode(rank, at, len)?;
        if len == 0 {
            return Ok(Sge::EMPTY);
        }
        let wrong = || Fault::corrupt(rank, "remote address");
        let entry = self.registrations.get(at.key.0).ok_or_else(wrong)?;
        let offset =
            usize::try_from(at.addr).ok().and_then(|at| at.checked_sub(entry.memory.ptr().addr()));
        let end = offset.and_then(|offset| offset.checked_add(len)).ok_or_else(wrong)?;
        if end > entry.memory.len() {
            return Err(wrong());
        }
        Ok(entry.memory.part(end - len, len))
    }

    /// Returns an aligned word of allocated memory that a peer names.
    pub fn find_word(&self, rank: usize, at: RemoteAddr) -> Result<Sge, Fault> {
        address::decode_word(rank, at)?;
        let word = self.find(rank, at, 8)?;
        match self.registrations.get(at.key.0) {
            Some(entry) if entry.origin != MemoryOrigin::Program => Ok(word),
            _ => Err(Fault::corrupt(rank, "address of a word")),
        }
    }
}

impl Drop for ProcessMemory {
    fn drop(&mut self) {
        self.registrations.clear();
        for &(at, layout) in &self.allocated {
            // SAFETY: `dealloc` needs memory that was allocated with this layout and not freed yet. `allocated` has each allocation
            // once.
            unsafe { dealloc(at, layout) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn lengths_are_close_and_never_short() {
        for len in (0..5000).chain([1 << 20, (1 << 20) + 1]) {
            let whole = rounded(len);
            assert!(
                whole >= len && whole.is_multiple_of(64) && whole <= len + len / 4 + 64,
                "{len}"
            );
        }
        assert_eq!(rounded(1 << 20), 1 << 20);
    }
}
