//! Memory that peers may reach: registrations by their keys, and what is allocated.

use crate::address::{self, Named};
use crate::ffi::*;
use crate::object::Objects;
use crate::random::random;
use crate::registrations::{RegistrationCounts, RegistrationId, Registrations};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Arc;
use weft_fabric::{Fault, Key, Region, RemoteAddr, Sge};

/// Allocations begin at addresses that this divides.
const ALIGNMENT: usize = 64;

/// What peers may do with registered memory, and this process.
const ACCESS: u64 = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_TRANSMIT | FI_RECV;

/// The memory of one process.
pub struct ProcessMemory {
    registrations: Registrations,
    /// Allocations that were given back, by their length. They stay mapped, since counters lie in them.
    free: HashMap<usize, Vec<Sge>>,
    /// Pieces of the program's memory that peers may reach.
    pub exposed: usize,
    /// All that was ever allocated.
    allocated: Vec<(*mut u8, Layout)>,
}

/// Lengths that are alike, so that memory is found again: those with three leading bits.
fn rounded(len: usize) -> usize {
    let len = len.max(ALIGNMENT);
    let step = (len.next_power_of_two() / 8).max(ALIGNMENT);
    len.next_multiple_of(step)
}

/// The name of memory that lies in a registration.
fn region(id: RegistrationId, memory: Sge) -> Region {
    let remote = RemoteAddr { addr: memory.ptr().addr() as u64, key: Key(id) };
    Region { local: memory, remote }
}

fn no_memory() -> Fault {
    Fault::system("allocating memory that other processes reach", libc::ENOMEM)
}

impl ProcessMemory {
    /// `objects`: those of each rail.
    pub fn new(objects: Vec<Arc<Objects>>) -> ProcessMemory {
        let (free, exposed, allocated) = Default::default();
        ProcessMemory { registrations: Registrations::new(objects), free, exposed, allocated }
    }

    /// What operations on a rail name memory by that was allocated or exposed here.
    pub fn descriptor(&self, rail: usize, id: RegistrationId) -> *mut c_void {
        self.registrations.descriptor(rail, id)
    }

    /// A registration of the program's memory that a transfer may use from now on, until [`ProcessMemory::transferred`].
    pub fn use_for_transfer(&mut self, memory: Sge) -> Option<RegistrationId> {
        self.registrations.use_for_transfer(memory)
    }

    /// A transfer from or to the memory of a registration is over.
    pub fn transferred(&mut self, id: RegistrationId) {
        self.registrations.transferred(id);
    }

    /// One was refused that would have used this registration.
    pub fn refused(&mut self, id: RegistrationId) {
        self.registrations.refused(id);
    }

    /// How many registrations were made so far, and how often one was found.
    pub fn made_and_found(&self) -> RegistrationCounts {
        self.registrations.totals
    }

    /// How many registrations there are, and of how many bytes.
    pub fn totals(&self) -> (usize, usize) {
        let all = self.registrations.all();
        (all.len(), all.map(|entry| entry.memory.len()).sum())
    }

    /// Registers memory and names it for peers.
    fn name(&mut self, memory: Sge, program: bool, allocated: bool) -> Result<Region, Fault> {
        let start = memory.ptr().addr();
        if memory.is_empty() {
            let named = Named { key: 0, start: 0, len: 0, program: true };
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
        // SAFETY: whoever made the `Sge` promised that the memory lives until it is withdrawn.
        let made = unsafe { self.registrations.make(memory, (program, allocated), ACCESS, wanted) };
        let id = made?;
        self.exposed += usize::from(program);
        Ok(region(id, memory))
    }

    /// Lets peers read and write the program's memory.
    pub fn expose(&mut self, memory: Sge) -> Result<Region, Fault> {
        self.name(memory, true, false)
    }

    /// Lets peers do all that they may do with allocated memory with this, which another fabric allocated.
    pub fn adopt(&mut self, memory: Sge) -> Result<Region, Fault> {
        self.name(memory, false, false)
    }

    pub fn allocate(&mut self, len: usize) -> Result<Region, Fault> {
        let whole = rounded(len);
        let memory = match self.free.get_mut(&whole).and_then(Vec::pop) {
            Some(memory) => {
                // SAFETY: ours, and nobody reaches it now.
                unsafe { std::ptr::write_bytes(memory.ptr(), 0, memory.len()) };
                memory
            }
            None => {
                let layout = Layout::from_size_align(whole, ALIGNMENT).map_err(|_| no_memory())?;
                // SAFETY: the layout is not empty.
                let at = unsafe { alloc_zeroed(layout) };
                if at.is_null() {
                    return Err(no_memory());
                }
                self.allocated.push((at, layout));
                // SAFETY: that many bytes, which stay as long as this fabric.
                unsafe { Sge::new(at, whole) }
            }
        };
        match self.name(memory, false, true) {
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
        self.exposed -= usize::from(entry.program);
        if let Some(entry) = self.registrations.withdraw(id)
            && entry.allocated
        {
            self.free.entry(entry.memory.len()).or_default().push(entry.memory);
        }
    }

    /// `len` bytes that a peer of number `rank` names, if it may reach them: it may have sent anything.
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

    /// An aligned word of allocated memory that a peer names.
    pub fn find_word(&self, rank: usize, at: RemoteAddr) -> Result<Sge, Fault> {
        address::decode_word(rank, at)?;
        let word = self.find(rank, at, 8)?;
        match self.registrations.get(at.key.0) {
            Some(entry) if !entry.program => Ok(word),
            _ => Err(Fault::corrupt(rank, "address of a word")),
        }
    }
}

impl Drop for ProcessMemory {
    fn drop(&mut self) {
        self.registrations.clear();
        for &(at, layout) in &self.allocated {
            // SAFETY: allocated with this layout, and given back once.
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
