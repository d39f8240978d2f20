//! Memory that the adapters may access: registrations, allocations from them, and the registration cache.
//!
//! A registration covers all rails. All users of a part of its memory share it while it is in use. Afterwards it is dropped,
//! or kept for the next use if [`crate::VerbsOptions::keep`] allows.

pub mod pool;
pub mod receive_pool;
pub mod registration_uses;

use crate::RAILS_MAX;
use crate::adapter::object::{self, Domain, RegisteredMemory};
use crate::address::{self, MemoryOwner};
use crate::ffi::*;
use crate::options::Keep;
pub use registration_uses::{RegistrationTotals, Uses};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;
use weft_fabric::{Fault, Region, Sge};

const PAGE: usize = 4096;
/// Size in bytes of the chunks from which small allocations come; each chunk is a registration.
const CHUNK: usize = 1 << 20;
/// Maximum size in bytes of an allocation from a chunk. A larger allocation has its own registration.
const SMALL: usize = 256 << 10;
const SMALLEST: usize = 64;
const CLASSES: usize = (SMALL / SMALLEST).trailing_zeros() as usize + 1;

/// Number that refers to no registration.
pub const NONE: u32 = u32::MAX;

/// Owner of registered memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// Buffers and chunks of the fabric, which live as long as the fabric: their users are not counted.
    Fabric,
    /// A large allocation. Its region counts as a user.
    Allocation,
    /// Memory of the program.
    Program,
}

/// Registered memory.
struct Registration {
    start: usize,
    len: usize,
    /// Registrations with the adapters, by rail.
    memories: Vec<RegisteredMemory>,
    lkeys: [u32; RAILS_MAX],
    rkeys: [u32; RAILS_MAX],
    uses: Uses,
    /// Number of operations and regions that use the registration. An operation uses it until it is acknowledged, even if its
    /// effect was seen: the adapter reads the memory again to resend a lost packet.
    users: u32,
    owner: Owner,
    /// Number of the program's regions in the registration. Without a cache, new users may share the registration only while
    /// there is a region, since the program keeps the memory of a region mapped.
    regions: u32,
    /// True if new users may not share the registration.
    closed: bool,
    /// Clock value of the last use, which orders the evictions.
    used: u64,
}

/// The registrations of one process.
pub struct Memories {
    slots: Vec<Option<Registration>>,
    vacant: Vec<u32>,
    by_start: BTreeMap<(usize, u32), ()>,
    by_keys: HashMap<[u64; 2], u32>,
    last: u32,
    clock: u64,
    keep: Option<Keep>,
    idle: Keep,
    totals: RegistrationTotals,
    /// Free pieces of chunks, by size class. All were used before, so they need not be zero.
    free: [Vec<usize>; CLASSES],
    /// Unused end of the last chunk.
    fresh: (usize, usize),
    /// Large memory that was given back, by length: mapped, but not registered.
    spare: HashMap<usize, Vec<usize>>,
    mapped: Vec<(usize, usize)>,
    domains: Vec<Arc<Domain>>,
}

impl Memories {
    pub fn new(domains: Vec<Arc<Domain>>, keep: Option<Keep>) -> Memories {
        Memories {
            slots: Vec::new(),
            vacant: Vec::new(),
            by_start: BTreeMap::new(),
            by_keys: HashMap::new(),
            last: NONE,
            clock: 0,
            keep,
            idle: Keep { bytes: 0, entries: 0 },
            totals: RegistrationTotals::default(),
            free: Default::default(),
            fresh: (0, 0),
            spare: HashMap::new(),
            mapped: Vec::new(),
            domains,
        }
    }

    pub fn totals(&self) -> RegistrationTotals {
        self.totals
    }

    fn slot(&self, id: u32) -> &Registration {
        self.slots[id as usize].as_ref().expect("a registration in use")
    }

    fn slot_mut(&mut self, id: u32) -> &mut Registration {
        self.slots[id as usize].as_mut().expect("a registration in use")
    }

    /// Counts one more user of a registration in use. [`NONE`] has no users to count.
    pub fn add_user(&mut self, id: u32) {
        if id != NONE && !self.is_lasting(id) {
            self.slot_mut(id).users += 1;
        }
    }

    /// Returns true if users of `id` need not be counted.
    pub fn is_lasting(&self, id: u32) -> bool {
        self.slot(id).owner == Owner::Fabric
    }

    /// Returns the scatter/gather element of `memory`, which lies in registration `id`, for an operation on `rail`.
    pub fn sge(&self, id: u32, rail: usize, memory: Sge) -> ibv_sge {
        let lkey = self.slot(id).lkeys[rail];
        ibv_sge { addr: memory.ptr().addr() as u64, length: memory.len() as u32, lkey }
    }

    /// Returns a registration that holds all of `memory`, if there is one.
    fn find(&mut self, memory: Sge, uses: Uses) -> Option<u32> {
        let (start, end) = (memory.ptr().addr(), memory.ptr().addr() + memory.len());
        let holds = |it: &Registration| {
            it.start <= start && end <= it.start + it.len && it.uses >= uses && !it.closed
        };
        if let Some(Some(it)) = self.slots.get(self.last as usize)
            && holds(it)
        {
            return Some(self.last);
        }
        // Registrations may overlap, so the registration with the nearest start may not hold all of `memory`.
        let before = self.by_start.range(..=(start, NONE)).rev().take(8);
        let found = before.map(|(&(_, id), ())| id).find(|&id| holds(self.slot(id)))?;
        self.last = found;
        Some(found)
    }

    /// Adds a user to an existing registration of `memory`.
    pub fn share(&mut self, memory: Sge, uses: Uses) -> Option<u32> {
        let id = self.find(memory, uses)?;
        self.clock += 1;
        let clock = self.clock;
        let it = self.slot_mut(id);
        if it.owner == Owner::Fabric {
            return Some(id);
        }
        it.used = clock;
        it.users += 1;
        if it.users == 1 {
            let len = it.len;
            self.idle.bytes -= len;
            self.idle.entries -= 1;
        }
        self.totals.found += 1;
        Some(id)
    }

    /// Adds a user to a registration of `memory`, or makes a registration if no registration exists. Only for memory of the
    /// program.
    ///
    /// # Safety
    /// `memory` stays mapped until its last user is gone, and as long as the registration is kept.
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
        match unsafe { self.register(start, len, most, Owner::Program, None) } {
            // Read-only memory of the program (constants) cannot be registered for writes.
            Err(error) if uses == Uses::Reads && error.raw_os_error() == Some(libc::EFAULT) => {
                // SAFETY: `register` needs memory that stays mapped. The caller of `acquire` promises this.
                let id = unsafe { self.register(start, len, uses, Owner::Program, None) };
                id.map_err(|error| refused(&error))
            }
            result => result.map_err(|error| refused(&error)),
        }
    }

    /// Makes a registration with one user.
    ///
    /// # Safety
    /// `start` to `start + len` stays mapped until the registration is dropped.
    unsafe fn register(
        &mut self,
        start: usize,
        len: usize,
        uses: Uses,
        owner: Owner,
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
        self.clock += 1;
        self.by_start.insert((start, id), ());
        self.by_keys.insert(address::registration_of(rkeys), id);
        self.slots[id as usize] = Some(Registration {
            start,
            len,
            memories,
            lkeys,
            rkeys,
            uses,
            users: 1,
            owner,
            regions: 0,
            closed: owner == Owner::Program && self.keep.is_none(),
            used: self.clock,
        });
        self.totals.made += 1;
        self.totals.entries += 1;
        self.totals.registered += len;
        Ok(id)
    }

    /// Removes a user. [`NONE`] has no users.
    pub fn release(&mut self, id: u32) {
        if id == NONE {
            return;
        }
        let it = self.slot_mut(id);
        if it.owner == Owner::Fabric {
            return;
        }
        it.users -= 1;
        if it.users > 0 {
            return;
        }
        let (start, len, closed) = (it.start, it.len, it.closed);
        if it.owner == Owner::Allocation {
            self.discard(id);
            self.spare(start, len);
            return;
        }
        match self.keep {
            Some(keep) if !closed && len <= keep.bytes => {
                self.idle.bytes += len;
                self.idle.entries += 1;
                self.evict(keep);
            }
            _ => self.discard(id),
        }
    }

    /// Drops the least recently used idle registrations until the limits are met.
    fn evict(&mut self, keep: Keep) {
        while self.idle.bytes > keep.bytes || self.idle.entries > keep.entries {
            let unused = |(i, slot): (usize, &Option<Registration>)| {
                let it = slot.as_ref().filter(|it| it.users == 0)?;
                Some((it.used, i as u32, it.len))
            };
            let Some((_, id, len)) = self.slots.iter().enumerate().filter_map(unused).min() else {
                return;
            };
            self.idle.bytes -= len;
            self.idle.entries -= 1;
            self.discard(id);
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

    /// Forgets registrations that overlap the program's `memory`. A registration in use is forgotten at the end of its use.
    pub fn forget(&mut self, memory: Sge) {
        let (start, end) = (memory.ptr().addr(), memory.ptr().addr() + memory.len());
        for id in 0..self.slots.len() as u32 {
            let Some(it) = &mut self.slots[id as usize] else { continue };
            if it.owner != Owner::Program || it.start >= end || it.start + it.len <= start {
                continue;
            }
            it.closed = true;
            if it.users == 0 {
                self.idle.bytes -= it.len;
                self.idle.entries -= 1;
                self.discard(id);
            }
        }
    }

    fn name(&self, id: u32, memory: Sge, owner: MemoryOwner) -> Region {
        let it = self.slot(id);
        let at = memory.ptr().addr() as u64;
        let remote = address::encode(it.rkeys, it.start as u64, it.len as u64, at, owner);
        Region { local: memory, remote }
    }

    /// Lets peers access memory that was not allocated here: the program's memory, or for [`Uses::Atomics`] memory of another
    /// fabric.
    ///
    /// # Safety
    /// `memory` stays mapped until the region is withdrawn and its last user is gone, and as long as the registration is
    /// kept.
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
        if self.slot(id).owner == Owner::Program || address::is_programs(&region) {
            let without_cache = self.keep.is_none();
            let it = self.slot_mut(id);
            it.regions = it.regions.saturating_sub(1);
            it.closed |= without_cache && it.owner == Owner::Program && it.regions == 0;
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

    /// Returns the pages of a mapping to the system, but keeps its addresses, since counters may lie there.
    fn spare(&mut self, start: usize, len: usize) {
        // SAFETY: `madvise` discards the content, which must be unused: the mapping was made by `map`, and nothing is
        // registered in it any more. A failure costs memory only.
        unsafe {
            let start = std::ptr::with_exposed_provenance_mut(start);
            libc::madvise(start, len, libc::MADV_DONTNEED);
        }
        self.spare.entry(len).or_default().push(start);
    }

    /// Allocates zeroed memory, on which peers can do all operations.
    pub fn allocate(&mut self, len: usize) -> Result<Region, Fault> {
        let start = match class(len) {
            Some(class) => self.allocate_small(class)?,
            None => {
                let len =
                    address::rounded(len.checked_next_multiple_of(PAGE).ok_or_else(no_memory)?);
                let spare = self.spare.get_mut(&len).and_then(Vec::pop);
                let start = spare.map_or_else(|| self.map(len), Ok)?;
                if let Err(fault) = self.register_own(start, len, Owner::Allocation) {
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
            self.register_own(start, CHUNK, Owner::Fabric)?;
            self.fresh = (start, start + CHUNK);
        }
        let start = self.fresh.0;
        self.fresh.0 += size;
        Ok(start)
    }

    fn register_own(&mut self, start: usize, len: usize, owner: Owner) -> Result<u32, Fault> {
        // SAFETY: `register` needs memory that stays mapped: `map` mapped it, and dropping `self` unmaps it after all
        // registrations.
        let id = unsafe { self.register(start, len, Uses::Atomics, owner, None) };
        id.map_err(|error| refused(&error))
    }

    /// Maps zeroed memory, which stays mapped.
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

    /// Maps and registers memory of the fabric itself, for its buffers on one rail or on all rails. Returns the registration
    /// and the start.
    pub fn buffers(&mut self, len: usize, rail: Option<usize>) -> Result<(u32, *mut u8), Fault> {
        let len = len.next_multiple_of(PAGE);
        let start = self.map(len)?;
        // SAFETY: `register` needs memory that stays mapped: dropping `self` unmaps it after all registrations. Peers do not
        // access it.
        let id = unsafe { self.register(start, len, Uses::Buffers, Owner::Fabric, rail) };
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
