//! Memory that the adapters may access: registrations, and allocations from registrations.
//!
//! A registration covers all rails. All users of the same memory share one registration. It is dropped when its last user is gone.

pub mod pool;
pub mod receive_pool;
pub mod registration_uses;

use crate::RAILS_MAX;
use crate::adapter::object::{self, Domain, RegisteredMemory};
use crate::address::{self, MemoryOwner};
use crate::ffi::*;
pub use registration_uses::{RegistrationTotals, Uses};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;
use weft_fabric::{Fault, Region, Sge};

const PAGE: usize = 4096;
/// Size in bytes of a chunk. Small allocations are parts of chunks, and each chunk has one registration.
const CHUNK: usize = 1 << 20;
/// Maximum size in bytes of an allocation from a chunk. A larger allocation has its own registration.
const SMALL: usize = 256 << 10;
const SMALLEST: usize = 64;
const CLASSES: usize = (SMALL / SMALLEST).trailing_zeros() as usize + 1;

/// Number that stands for no registration.
pub const NONE: u32 = u32::MAX;

/// Holder of registered memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holder {
    /// Buffers and chunks of the fabric. They live as long as the fabric, so their users are not counted.
    Fabric,
    /// A large allocation. Its region counts as a user.
    Allocation,
    /// Memory of the program.
    Program,
}

/// Registered memory.
struct MemoryEntry {
    start: usize,
    len: usize,
    /// Registrations with the adapters, by rail.
    memories: Vec<RegisteredMemory>,
    lkeys: [u32; RAILS_MAX],
    rkeys: [u32; RAILS_MAX],
    uses: Uses,
    /// Number of operations and regions that use the registration. An operation is a user until it is acknowledged, because the
    /// adapter reads the memory again to resend a lost packet. The effect of the operation may be visible earlier.
    users: u32,
    owner: Holder,
    /// Number of the program's regions in the registration. New users may share the registration only while there is a region,
    /// because the program keeps only the memory of a region mapped.
    regions: u32,
    /// True if new users must not share the registration.
    closed: bool,
}

/// The registrations of one process.
pub struct Memories {
    slots: Vec<Option<MemoryEntry>>,
    vacant: Vec<u32>,
    by_start: BTreeMap<(usize, u32), ()>,
    by_keys: HashMap<[u64; 2], u32>,
    last: u32,
    pub totals: RegistrationTotals,
    /// Free pieces of chunks, by size class. All these pieces have been used before, so they may contain old data.
    free: [Vec<usize>; CLASSES],
    /// The part of the last chunk that has not been used yet.
    fresh: (usize, usize),
    /// Large allocations that were given back, by length. They are mapped, but not registered.
    spare: HashMap<usize, Vec<usize>>,
    mapped: Vec<(usize, usize)>,
    domains: Vec<Arc<Domain>>,
}

impl Memories {
    pub fn new(domains: Vec<Arc<Domain>>) -> Memories {
        Memories {
            slots: Vec::new(),
            vacant: Vec::new(),
            by_start: BTreeMap::new(),
            by_keys: HashMap::new(),
            last: NONE,
            totals: RegistrationTotals::default(),
            free: Default::default(),
            fresh: (0, 0),
            spare: HashMap::new(),
            mapped: Vec::new(),
            domains,
        }
    }

    fn slot(&self, id: u32) -> &MemoryEntry {
        self.slots[id as usize].as_ref().expect("a registration in use")
    }

    fn slot_mut(&mut self, id: u32) -> &mut MemoryEntry {
        self.slots[id as usize].as_mut().expect("a registration in use")
    }

    /// Adds a user to a registration that is in use. Does nothing for [`NONE`].
    pub fn add_user(&mut self, id: u32) {
        if id != NONE && !self.is_lasting(id) {
            self.slot_mut(id).users += 1;
        }
    }

    /// Returns true if the registration `id` lasts as long as the fabric, so its users need not be counted.
    pub fn is_lasting(&self, id: u32) -> bool {
        self.slot(id).owner == Holder::Fabric
    }

    /// Returns the scatter/gather element of `memory`, which lies in registration `id`, for an operation on `rail`.
    pub fn sge(&self, id: u32, rail: usize, memory: Sge) -> ibv_sge {
        let lkey = self.slot(id).lkeys[rail];
        ibv_sge { addr: memory.ptr().addr() as u64, length: memory.len() as u32, lkey }
    }

    /// Returns a registration that contains all of `memory`, if there is such a registration.
    fn find(&mut self, memory: Sge, uses: Uses) -> Option<u32> {
        let (start, end) = (memory.ptr().addr(), memory.ptr().addr() + memory.len());
        let holds = |it: &MemoryEntry| {
            it.start <= start && end <= it.start + it.len && it.uses >= uses && !it.closed
        };
        if let Some(Some(it)) = self.slots.get(self.last as usize)
            && holds(it)
        {
            return Some(self.last);
        }
        // Registrations may overlap. So the registration with the nearest start need not contain all of `memory`.
        let before = self.by_start.range(..=(start, NONE)).rev().take(8);
        let found = before.map(|(&(_, id), ())| id).find(|&id| holds(self.slot(id)))?;
        self.last = found;
        Some(found)
    }

    /// Adds a user to an existing registration of `memory`.
    pub fn share(&mut self, memory: Sge, uses: Uses) -> Option<u32> {
        let id = self.find(memory, uses)?;
        let it = self.slot_mut(id);
        if it.owner == Holder::Fabric {
            return Some(id);
        }
        it.users += 1;
        self.totals.found += 1;
        Some(id)
    }

    /// Adds a user to a registration of `memory`, or makes a registration if no registration exists. Only for memory of the
    /// program.
    ///
    /// # Safety
    /// `memory` stays mapped until its last user is gone.
    pub unsafe fn acquire(&mut self, memory: Sge, uses: Uses) -> Result<u32, Fault> {
        if let Some(id) = self.share(memory, uses) {
            return Ok(id);
        }
        let (start, len) = (memory.ptr().addr(), memory.len());
        if !address::can_name(start + len) {
            let what = "registering memory at so high an address";
            return Err(Fault::system(what, libc::EFAULT));
        }
        let most = uses.max(Uses::Writes);
        // SAFETY: `register` needs memory that stays mapped. The caller of `acquire` promises this.
        match unsafe { self.register(start, len, most, Holder::Program, None) } {
            // Read-only memory of the program (constants) can only be registered for reads.
            Err(error) if uses == Uses::Reads && error.raw_os_error() == Some(libc::EFAULT) => {
                // SAFETY: `register` needs memory that stays mapped. The caller of `acquire` promises this.
                let id = unsafe { self.register(start, len, uses, Holder::Program, None) };
                id.map_err(|error| refused(&error))
            }
            result => result.map_err(|error| refused(&error)),
        }
    }

    /// Makes a registration that has one user.
    ///
    /// # Safety
    /// `start` to `start + len` stays mapped until the registration is dropped.
    unsafe fn register(
        &mut self,
        start: usize,
        len: usize,
        uses: Uses,
        owner: Holder,
        only: Option<usize>,
    ) -> io::Result<u32> {
        let mut memories = Vec::with_capacity(self.domains.len());
        let (mut lkeys, mut rkeys) = ([0; RAILS_MAX], [0; RAILS_MAX]);
        for (rail, domain) in self.domains.iter().enumerate() {
            if only.is_some_and(|only| only != rail) {
                continue;
            }
            let pointer = std::ptr::with_exposed_provenance_mut(start);
            // SAFETY: `object::register` needs memory that stays mapped until the registration is dropped. The caller promises
            // this.
            let memory = unsafe { object::register(domain, pointer, len, uses.access()) }?;
            (lkeys[rail], rkeys[rail]) = (memory.lkey(), memory.rkey());
            memories.push(memory);
        }
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        self.by_start.insert((start, id), ());
        self.by_keys.insert(address::registration_of(rkeys), id);
        self.slots[id as usize] = Some(MemoryEntry {
            start,
            len,
            memories,
            lkeys,
            rkeys,
            uses,
            users: 1,
            owner,
            regions: 0,
            closed: owner == Holder::Program,
        });
        self.totals.made += 1;
        self.totals.entries += 1;
        self.totals.registered += len;
        Ok(id)
    }

    /// Removes a user. Does nothing for [`NONE`].
    pub fn release(&mut self, id: u32) {
        if id == NONE {
            return;
        }
        let it = self.slot_mut(id);
        if it.owner == Holder::Fabric {
            return;
        }
        it.users -= 1;
        if it.users > 0 {
            return;
        }
        let (start, len, owner) = (it.start, it.len, it.owner);
        self.discard(id);
        if owner == Holder::Allocation {
            self.spare(start, len);
        }
    }

    fn discard(&mut self, id: u32) {
        let it = self.slots[id as usize].take().expect("a registration in use");
        self.by_start.remove(&(it.start, id));
        self.by_keys.remove(&address::registration_of(it.rkeys));
        self.vacant.push(id);
        self.totals.entries -= 1;
        self.totals.registered -= it.len;
        drop(it.memories);
    }

    fn name(&self, id: u32, memory: Sge, owner: MemoryOwner) -> Region {
        let it = self.slot(id);
        let at = memory.ptr().addr() as u64;
        let remote = address::encode(it.rkeys, it.start as u64, it.len as u64, at, owner);
        Region { local: memory, remote }
    }

    /// Lets peers access memory that was not allocated here: the program's memory or, with [`Uses::Atomics`], memory of another
    /// fabric.
    ///
    /// # Safety
    /// `memory` stays mapped until the region is withdrawn and its last user is gone.
    pub unsafe fn expose(&mut self, memory: Sge, uses: Uses) -> Result<Region, Fault> {
        if memory.is_empty() {
            let remote = address::empty(memory.ptr().addr() as u64);
            return Ok(Region { local: memory, remote });
        }
        // SAFETY: `acquire` has the same contract as `expose`.
        let id = unsafe { self.acquire(memory, uses) }?;
        let it = self.slot_mut(id);
        it.regions += 1;
        it.closed = false;
        let owner = match uses {
            Uses::Atomics => MemoryOwner::Fabric,
            _ => MemoryOwner::Program,
        };
        Ok(self.name(id, memory, owner))
    }

    /// Withdraws a region from peers.
    pub fn withdraw(&mut self, region: Region) {
        // An empty region has no registration.
        let Some(&id) = self.by_keys.get(&address::registration(&region)) else { return };
        if self.slot(id).owner == Holder::Program || address::is_programs(&region) {
            let it = self.slot_mut(id);
            it.regions = it.regions.saturating_sub(1);
            it.closed |= it.owner == Holder::Program && it.regions == 0;
            self.release(id);
            return;
        }
        let start = region.local.ptr().addr();
        match class(region.local.len()) {
            Some(class) => self.free[class].push(start),
            None => {
                self.slot_mut(id).closed = true;
                self.release(id);
            }
        }
    }

    /// Returns the pages of a mapping to the system. Keeps the addresses mapped, because counters may lie there.
    fn spare(&mut self, start: usize, len: usize) {
        // SAFETY: `madvise` discards the content, which must be unused: the mapping was made by `map`, and nothing is
        // registered in it any more. A failure costs memory only.
        unsafe {
            let start = std::ptr::with_exposed_provenance_mut(start);
            libc::madvise(start, len, libc::MADV_DONTNEED);
        }
        self.spare.entry(len).or_default().push(start);
    }

    /// Allocates zeroed memory. Peers can do all operations on this memory.
    pub fn allocate(&mut self, len: usize) -> Result<Region, Fault> {
        let start = match class(len) {
            Some(class) => self.allocate_small(class)?,
            None => {
                let len =
                    address::rounded(len.checked_next_multiple_of(PAGE).ok_or_else(no_memory)?);
                let spare = self.spare.get_mut(&len).and_then(Vec::pop);
                let start = spare.map_or_else(|| self.map(len), Ok)?;
                if let Err(fault) = self.register_own(start, len, Holder::Allocation) {
                    self.spare.entry(len).or_default().push(start);
                    return Err(fault);
                }
                start
            }
        };
        // SAFETY: `Sge::new` needs `len` valid bytes: they were mapped above for this region only, and stay mapped while
        // `self` lives.
        let local = unsafe { Sge::new(std::ptr::with_exposed_provenance_mut(start), len) };
        let id = self.find(local, Uses::Atomics).expect("registered above");
        Ok(self.name(id, local, MemoryOwner::Fabric))
    }

    fn allocate_small(&mut self, class: usize) -> Result<usize, Fault> {
        let size = SMALLEST << class;
        if let Some(start) = self.free[class].pop() {
            let pointer = std::ptr::with_exposed_provenance_mut::<u8>(start);
            // SAFETY: `write_bytes` needs `size` writable bytes that nobody else uses: a free piece of a chunk has that size.
            unsafe { std::ptr::write_bytes(pointer, 0, size) };
            return Ok(start);
        }
        if self.fresh.1 - self.fresh.0 < size {
            let start = self.map(CHUNK)?;
            self.register_own(start, CHUNK, Holder::Fabric)?;
            self.fresh = (start, start + CHUNK);
        }
        let start = self.fresh.0;
        self.fresh.0 += size;
        Ok(start)
    }

    fn register_own(&mut self, start: usize, len: usize, owner: Holder) -> Result<u32, Fault> {
        // SAFETY: `register` needs memory that stays mapped: `map` mapped it, and dropping `self` unmaps it after all
        // registrations.
        let id = unsafe { self.register(start, len, Uses::Atomics, owner, None) };
        id.map_err(|error| refused(&error))
    }

    /// Maps zeroed memory, which stays mapped until `self` is dropped.
    fn map(&mut self, len: usize) -> Result<usize, Fault> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: `mmap` of anonymous memory at an address that the system chooses touches no existing memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            let errno = io::Error::last_os_error().raw_os_error().unwrap_or(0);
            return Err(Fault::system("allocating memory for the adapter", errno));
        }
        let start = start.expose_provenance();
        self.mapped.push((start, len));
        Ok(start)
    }

    /// Maps and registers memory for the fabric's own buffers, on rail `rail` or on all rails. Returns the registration and the
    /// start of the memory.
    pub fn buffers(&mut self, len: usize, rail: Option<usize>) -> Result<(u32, *mut u8), Fault> {
        let len = len.next_multiple_of(PAGE);
        let start = self.map(len)?;
        // SAFETY: `register` needs memory that stays mapped: dropping `self` unmaps it after all registrations. Peers do not
        // access it.
        let id = unsafe { self.register(start, len, Uses::Buffers, Holder::Fabric, rail) };
        let id = id.map_err(|error| refused(&error))?;
        Ok((id, std::ptr::with_exposed_provenance_mut(start)))
    }
}

impl Drop for Memories {
    fn drop(&mut self) {
        self.slots.clear();
        for &(start, len) in &self.mapped {
            let start = std::ptr::with_exposed_provenance_mut(start);
            // SAFETY: `munmap` needs memory without users: `map` mapped it, nothing is registered in it any more, and regions
            // and counters end with the fabric.
            unsafe { libc::munmap(start, len) };
        }
    }
}

fn no_memory() -> Fault {
    Fault::system("allocating memory for the adapter", libc::ENOMEM)
}

fn refused(error: &io::Error) -> Fault {
    let errno = error.raw_os_error().unwrap_or(0);
    let what = match errno {
        libc::ENOMEM | libc::EAGAIN | libc::EPERM => {
            "registering memory with the adapter (is the limit on locked memory, `ulimit -l`, too \
             small?)"
        }
        _ => "registering memory with the adapter",
    };
    Fault::system(what, errno)
}

/// Returns the size class of a small allocation, or `None` for a large allocation.
fn class(len: usize) -> Option<usize> {
    let size = len.max(SMALLEST).checked_next_power_of_two()?;
    (size <= SMALL).then(|| (size / SMALLEST).trailing_zeros() as usize)
}
