//! Memory that peers may reach: registrations by their keys, and what is allocated.

use crate::address::{self, Named};
use crate::ffi::*;
use crate::object::{Objects, Registration};
use crate::random::random;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Arc;
use weft_fabric::{Fault, Key, Region, RemoteAddr, Sge};

/// Allocations begin at addresses that this divides.
const ALIGNMENT: usize = 64;

/// What peers may do with registered memory, and this process.
const ACCESS: u64 = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_TRANSMIT | FI_RECV;

struct Entry {
    memory: Sge,
    program: bool,
    /// Goes back to the free ones when it is withdrawn.
    allocated: bool,
    registration: Registration,
    /// Of the further rails.
    others: Vec<Registration>,
}

/// The memory of one process.
pub struct Memory {
    objects: Arc<Objects>,
    /// Of the further rails, where memory has the same keys.
    others: Vec<Arc<Objects>>,
    /// By the provider's key.
    entries: HashMap<u64, Entry>,
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

fn no_memory() -> Fault {
    Fault::system("allocating memory that other processes reach", libc::ENOMEM)
}

impl Memory {
    pub fn new(objects: Arc<Objects>, others: Vec<Arc<Objects>>) -> Memory {
        let (entries, free, exposed, allocated) = Default::default();
        Memory { objects, others, entries, free, exposed, allocated }
    }

    /// What operations on a rail name memory by that was allocated or exposed here under `key`.
    pub fn descriptor(&self, rail: usize, key: u64) -> *mut c_void {
        let entry = self.entries.get(&key);
        let registration = entry.and_then(|entry| match rail {
            0 => Some(&entry.registration),
            _ => entry.others.get(rail - 1),
        });
        registration.map_or(std::ptr::null_mut(), Registration::descriptor)
    }

    /// How many registrations there are, and of how many bytes.
    pub fn totals(&self) -> (usize, usize) {
        (self.entries.len(), self.entries.values().map(|entry| entry.memory.len()).sum())
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
        let bits = 8 * self.objects.facts.key_size.clamp(1, 8) as u32;
        let wanted = loop {
            let key = random() >> (64 - bits);
            if key != 0 && !self.entries.contains_key(&key) {
                break key;
            }
        };
        // SAFETY: whoever made the `Sge` promised that the memory lives until it is withdrawn.
        let register = |objects: &Arc<Objects>| unsafe {
            objects.register(memory.ptr(), memory.len(), ACCESS, wanted)
        };
        let registration = register(&self.objects)?;
        let others = self.others.iter().map(register).collect::<Result<Vec<_>, _>>()?;
        let key = registration.key();
        let named = Named { key, start: start as u64, len: memory.len() as u64, program };
        let entry = Entry { memory, program, allocated, registration, others };
        self.exposed += usize::from(program);
        self.entries.insert(key, entry);
        Ok(Region { local: memory, remote: named.encode(start as u64) })
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
        let Key([_, key, _]) = region.remote.key;
        let Some(entry) = self.entries.remove(&key) else { return };
        self.exposed -= usize::from(entry.program);
        if entry.allocated {
            self.free.entry(entry.memory.len()).or_default().push(entry.memory);
        }
    }

    /// `len` bytes that a peer of number `rank` names, if it may reach them: it may have sent anything.
    pub fn find(&self, rank: usize, at: RemoteAddr, len: usize) -> Result<Sge, Fault> {
        let target = address::decode(rank, at, len)?;
        if len == 0 {
            return Ok(Sge::EMPTY);
        }
        let wrong = || Fault::corrupt(rank, "remote address");
        let entry = self.entries.get(&target.key).ok_or_else(wrong)?;
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
        let target = address::decode_word(rank, at)?;
        let word = self.find(rank, at, 8)?;
        match self.entries.get(&target.key) {
            Some(entry) if !entry.program => Ok(word),
            _ => Err(Fault::corrupt(rank, "address of a word")),
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.entries.clear();
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
