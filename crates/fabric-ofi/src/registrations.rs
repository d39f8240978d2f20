//! Registrations of memory on all rails, shared as long as they are used.
//!
//! The rules are those of verbs: whoever names a part of registered memory of the program shares its registration, and it ends with
//! its last user. Nobody new joins once no region of the program is left in it: then the program may have given the memory
//! back, and other memory may lie there.

use crate::address::Named;
use crate::object::{MemoryRegistration, Objects};
use std::collections::{BTreeMap, HashMap};
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use weft_fabric::{Fault, Key, Sge};

/// Registrations may overlap, so the nearest start need not be the right one: as many are looked at.
const NEAREST: usize = 8;

/// What a registration is called here: the key of its names ([`weft_fabric::Key`]). The provider's alone is not enough: one with a
/// cache of its own gives registrations in one page the same.
pub type RegistrationId = [u64; 3];

/// Memory that is registered.
pub struct RegisteredEntry {
    pub memory: Sge,
    pub program: bool,
    /// Goes back to the free ones when it is withdrawn.
    pub allocated: bool,
    /// Regions in it, and transfers under way from or to it.
    pub regions: usize,
    transfers: usize,
    first: MemoryRegistration,
    /// Of the further rails.
    others: Vec<MemoryRegistration>,
}

/// How many registrations were made so far, and uses that found one to share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RegistrationCounts {
    pub made: u64,
    pub found: u64,
}

pub struct Registrations {
    /// By rail. Memory has the same key on all.
    objects: Vec<Arc<Objects>>,
    entries: HashMap<RegistrationId, RegisteredEntry>,
    /// The program's, by their start.
    by_start: BTreeMap<(usize, RegistrationId), ()>,
    /// The provider's keys, each with how many registrations have it.
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

    /// Whether some registration has this key.
    pub fn has_key(&self, key: u64) -> bool {
        self.keys.contains_key(&key)
    }

    pub fn all(&self) -> impl ExactSizeIterator<Item = &RegisteredEntry> {
        self.entries.values()
    }

    /// Ends all.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Bytes of a key.
    pub fn key_size(&self) -> usize {
        self.objects[0].facts.key_size
    }

    /// Registers memory with one region in it, for what `access` says, under `wanted` where keys are chosen here. Returns what it is called.
    ///
    /// # Safety
    /// The memory stays mapped until its last user is gone.
    pub unsafe fn make(
        &mut self,
        memory: Sge,
        (program, allocated): (bool, bool),
        access: u64,
        wanted: u64,
    ) -> Result<RegistrationId, Fault> {
        // SAFETY: `register` needs memory that stays mapped until its last user is gone. The caller promises this.
        let register = |objects: &Arc<Objects>| unsafe {
            objects.register(memory.ptr(), memory.len(), access, wanted)
        };
        let first = register(&self.objects[0])?;
        let others = self.objects[1..].iter().map(register).collect::<Result<Vec<_>, _>>()?;
        let (key, start) = (first.key(), memory.ptr().addr());
        let named = Named { key, start: start as u64, len: memory.len() as u64, program };
        let Key(id) = named.encode(0).key;
        self.totals.made += 1;
        // The same memory once more, by a provider that finds it: it needs no second registration.
        if let Some(it) = self.entries.get_mut(&id) {
            it.regions += 1;
            return Ok(id);
        }
        if program {
            self.by_start.insert((start, id), ());
        }
        *self.keys.entry(key).or_default() += 1;
        let (regions, transfers) = (1, 0);
        let entry =
            RegisteredEntry { memory, program, allocated, regions, transfers, first, others };
        self.entries.insert(id, entry);
        Ok(id)
    }

    /// A registration of the program's that holds all of `memory` and may be shared.
    fn find(&self, memory: Sge) -> Option<RegistrationId> {
        let (start, end) = (memory.ptr().addr(), memory.ptr().addr() + memory.len());
        let holds = |id: &RegistrationId| {
            let it = &self.entries[id];
            it.regions > 0 && end <= it.memory.ptr().addr() + it.memory.len()
        };
        let before = self.by_start.range(..=(start, [u64::MAX; 3])).rev().take(NEAREST);
        before.map(|(&(_, id), ())| id).find(holds)
    }

    /// One more region in a registration that is there already.
    pub fn share(&mut self, memory: Sge) -> Option<RegistrationId> {
        let id = self.find(memory)?;
        self.entries.get_mut(&id)?.regions += 1;
        self.totals.found += 1;
        Some(id)
    }

    /// One more transfer from or to registered memory.
    pub fn use_for_transfer(&mut self, memory: Sge) -> Option<RegistrationId> {
        let id = self.find(memory)?;
        self.entries.get_mut(&id)?.transfers += 1;
        self.totals.found += 1;
        Some(id)
    }

    /// A transfer that the provider has refused for now: it looks for its registration again when it is repeated.
    pub fn refused(&mut self, id: RegistrationId) {
        self.totals.found -= 1;
        self.transferred(id);
    }

    /// A region less. What it was is returned if that was the last use.
    pub fn withdraw(&mut self, id: RegistrationId) -> Option<RegisteredEntry> {
        self.entries.get_mut(&id)?.regions -= 1;
        self.end_unused(id)
    }

    /// A transfer less.
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

    /// What operations on a rail name the memory of a registration by.
    pub fn descriptor(&self, rail: usize, id: RegistrationId) -> *mut c_void {
        let registration = self.entries.get(&id).and_then(|entry| match rail {
            0 => Some(&entry.first),
            _ => entry.others.get(rail - 1),
        });
        registration.map_or(ptr::null_mut(), MemoryRegistration::descriptor)
    }
}
