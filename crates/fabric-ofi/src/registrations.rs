//! Registrations of memory on all rails. Users share a registration as long as it is in use.
//!
//! The rules are the same as in fabric-verbs. An operation or region on a part of registered memory of the program shares the
//! existing registration, which ends with its last user. New users may share a registration only while the program has a region in
//! the registered memory. After that the program may have freed the memory, and other memory may lie at the same addresses.

use crate::address::MemoryName;
use crate::object::{MemoryRegistration, Objects};
use std::collections::{BTreeMap, HashMap};
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use weft_fabric::{Fault, Key, Sge};

/// Maximum number of registrations that a search examines. Registrations may overlap, so the registration with the nearest start
/// need not contain the memory.
const NEAREST: usize = 8;

/// Identifier of a registration: its key for the fabric ([`weft_fabric::Key`]). The provider's key alone is not enough, because a
/// provider with a cache of its own gives the registrations in one page the same key.
pub type RegistrationId = [u64; 3];

/// Origin of registered memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryOrigin {
    /// Memory of the program, without flags and atomics.
    Program,
    /// An allocation, which goes back to the free allocations when it is withdrawn.
    Allocation,
    /// An allocation of another fabric.
    OtherFabric,
}

/// Registered memory.
pub struct RegisteredEntry {
    pub memory: Sge,
    pub origin: MemoryOrigin,
    /// Number of regions in the memory. Regions and transfers are the users of the registration.
    pub regions: usize,
    /// Number of transfers under way from or to the memory.
    transfers: usize,
    first: MemoryRegistration,
    /// Registrations on the further rails.
    others: Vec<MemoryRegistration>,
}

/// Number of registrations made so far, and number of uses that found a registration to share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RegistrationCounts {
    pub made: u64,
    pub found: u64,
}

pub struct Registrations {
    /// Endpoints, by rail. Memory has the same key on all rails.
    objects: Vec<Arc<Objects>>,
    entries: HashMap<RegistrationId, RegisteredEntry>,
    /// Registrations of the program's memory, by start address.
    by_start: BTreeMap<(usize, RegistrationId), ()>,
    /// The provider's keys, each with the number of registrations that have it.
    keys: HashMap<u64, usize>,
    pub totals: RegistrationCounts,
}

impl Registrations {
    pub fn new(objects: Vec<Arc<Objects>>) -> Registrations {
        let (entries, by_start, keys, totals) = Default::default();
        Registrations { objects, entries, by_start, keys, totals }
    }

    pub fn get(&self, id: RegistrationId) -> Option<&RegisteredEntry> {
        self.entries.get(&id)
    }

    /// Returns true if some registration has this key.
    pub fn has_key(&self, key: u64) -> bool {
        self.keys.contains_key(&key)
    }

    pub fn all(&self) -> impl ExactSizeIterator<Item = &RegisteredEntry> {
        self.entries.values()
    }

    /// Ends all registrations.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Returns the size of a key, in bytes.
    pub fn key_size(&self) -> usize {
        self.objects[0].facts.key_size
    }

    /// Registers memory for the operations in `access`, with one region as its user. Returns the identifier of the registration.
    /// `wanted` is used only if this process chooses the keys.
    ///
    /// # Safety
    /// The memory stays mapped until its last user is gone.
    pub unsafe fn make(
        &mut self,
        memory: Sge,
        origin: MemoryOrigin,
        access: u64,
        wanted: u64,
    ) -> Result<RegistrationId, Fault> {
        // SAFETY: `register` needs memory that stays mapped until the registration is closed. The caller promises this until the
        // last user is gone, and the registration is closed then.
        let register = |objects: &Arc<Objects>| unsafe {
            objects.register(memory.ptr(), memory.len(), access, wanted)
        };
        let first = register(&self.objects[0])?;
        let others = self.objects[1..].iter().map(register).collect::<Result<Vec<_>, _>>()?;
        let (key, start) = (first.key(), memory.ptr().addr());
        let program = origin == MemoryOrigin::Program;
        let named = MemoryName { key, start: start as u64, len: memory.len() as u64, program };
        let Key(id) = named.encode(0).key;
        self.totals.made += 1;
        // If a provider with a cache has returned its existing registration of the same memory, no second entry is needed.
        if let Some(it) = self.entries.get_mut(&id) {
            it.regions += 1;
            return Ok(id);
        }
        if program {
            self.by_start.insert((start, id), ());
        }
        *self.keys.entry(key).or_default() += 1;
        let (regions, transfers) = (1, 0);
        let entry = RegisteredEntry { memory, origin, regions, transfers, first, others };
        self.entries.insert(id, entry);
        Ok(id)
    }

    /// Finds a registration of the program's memory that contains all of `memory` and may be shared.
    fn find(&self, memory: Sge) -> Option<RegistrationId> {
        let (start, end) = (memory.ptr().addr(), memory.ptr().addr() + memory.len());
        let holds = |id: &RegistrationId| {
            let it = &self.entries[id];
            it.regions > 0 && end <= it.memory.ptr().addr() + it.memory.len()
        };
        let before = self.by_start.range(..=(start, [u64::MAX; 3])).rev().take(NEAREST);
        before.map(|(&(_, id), ())| id).find(holds)
    }

    /// Adds a region to an existing registration that contains `memory`.
    pub fn share(&mut self, memory: Sge) -> Option<RegistrationId> {
        let id = self.find(memory)?;
        self.entries.get_mut(&id)?.regions += 1;
        self.totals.found += 1;
        Some(id)
    }

    /// Adds a transfer from or to registered memory.
    pub fn use_for_transfer(&mut self, memory: Sge) -> Option<RegistrationId> {
        let id = self.find(memory)?;
        self.entries.get_mut(&id)?.transfers += 1;
        self.totals.found += 1;
        Some(id)
    }

    /// Undoes [`Registrations::use_for_transfer`] for a transfer that the provider refused for now. The repeated transfer looks for
    /// its registration again.
    pub fn refused(&mut self, id: RegistrationId) {
        self.totals.found -= 1;
        self.transferred(id);
    }

    /// Removes a region. Returns the entry if the region was the last user.
    pub fn withdraw(&mut self, id: RegistrationId) -> Option<RegisteredEntry> {
        self.entries.get_mut(&id)?.regions -= 1;
        self.end_unused(id)
    }

    /// Removes a transfer.
    pub fn transferred(&mut self, id: RegistrationId) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.transfers -= 1;
            self.end_unused(id);
        }
    }

    fn end_unused(&mut self, id: RegistrationId) -> Option<RegisteredEntry> {
        let it = self.entries.get(&id)?;
        if it.regions > 0 || it.transfers > 0 {
            return None;
        }
        self.by_start.remove(&(it.memory.ptr().addr(), id));
        let [_, key, _] = id;
        if let Some(count) = self.keys.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.keys.remove(&key);
            }
        }
        self.entries.remove(&id)
    }

    /// Returns the descriptor by which operations on a rail name the memory of a registration.
    pub fn descriptor(&self, rail: usize, id: RegistrationId) -> *mut c_void {
        let registration = self.entries.get(&id).and_then(|entry| match rail {
            0 => Some(&entry.first),
            _ => entry.others.get(rail - 1),
        });
        registration.map_or(ptr::null_mut(), MemoryRegistration::descriptor)
    }
}
