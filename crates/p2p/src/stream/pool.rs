//! Registered memory: places where peers' segments land (receive tokens), segments to send from (send
//! tokens), and flags for blocks. All communicators of a process share them.
//!
//! ```text
//!   a chunk of 8 places:   flag, flag, ... (a cache line each) | segment | segment | ...
//! ```
//! Memory is allocated by chunks at first need, never more than the sizes allow, and is kept.

use super::StreamSizes;
use weft_fabric::{
    Counter, Fabric, Fault, Flag, FlagKind, FlagWrite, Region, RemoteAddr, RemoteFlag, Sge,
};

/// Number of places in a chunk.
pub const CHUNK: usize = 8;
/// Size of a cache line, in bytes. Each flag has a line of its own.
const LINE: usize = 64;

/// State and owner of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceOwner {
    Free,
    /// The peer with this rank may write its next segment to the place.
    Standing(u32),
    /// A piece of a certain message will be written to the place.
    Landing,
    /// The segment was received and copied, but is still being relayed.
    Held,
}

struct Slot {
    memory: Sge,
    arrival: Counter,
    /// Value of the flag when the awaited segment has arrived. Each value is used only once.
    stamp: u64,
    state: PlaceOwner,
    /// Number of writes under way that read from this place.
    readers: u32,
}

/// Places for segments.
#[derive(Default)]
pub struct SegmentPlaces {
    chunks: Vec<Region>,
    slots: Vec<Slot>,
    free: Vec<u16>,
    /// True if there is no memory for more chunks.
    exhausted: bool,
}

impl SegmentPlaces {
    /// Takes a free place, from a new chunk if needed. Returns `None` if all places are in use.
    pub fn take<F: Fabric>(
        &mut self,
        fabric: &F,
        sizes: &StreamSizes,
    ) -> Result<Option<u16>, Fault> {
        if self.free.is_empty() && self.slots.len() + CHUNK <= self.most(sizes) {
            let region = match fabric.allocate(CHUNK * (LINE + sizes.segment)) {
                Ok(region) => region,
                // If memory runs out, only the existing places are used.
                Err(_) if !self.slots.is_empty() => {
                    self.exhausted = true;
                    return Ok(None);
                }
                Err(fault) => return Err(fault),
            };
            for i in 0..CHUNK {
                let memory = region.local.part(CHUNK * LINE + i * sizes.segment, sizes.segment);
                let Flag { local: arrival, .. } = fabric.flag(&region, i * LINE, FlagKind::Waking);
                let slot = Slot { memory, arrival, stamp: 0, state: PlaceOwner::Free, readers: 0 };
                self.slots.push(slot);
            }
            let first = (self.chunks.len() * CHUNK) as u16;
            self.free.extend((first..first + CHUNK as u16).rev());
            self.chunks.push(region);
        }
        Ok(self.free.pop())
    }

    /// Returns the maximum number of places.
    pub fn most(&self, sizes: &StreamSizes) -> usize {
        if self.exhausted { self.slots.len() } else { sizes.slots }
    }

    /// Returns the number of places that can still be taken.
    pub fn left(&self, sizes: &StreamSizes) -> usize {
        self.free.len() + (self.most(sizes) - self.slots.len())
    }

    /// Returns the number of places that may be granted to senders that do not fill places at once. Half of all places are reserved
    /// for other senders.
    pub fn spare(&self, sizes: &StreamSizes) -> usize {
        self.left(sizes).saturating_sub(self.most(sizes) / 2)
    }

    pub fn bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.local.len()).sum()
    }

    /// Returns the address of a chunk, for peers.
    pub fn chunk(&self, chunk: usize) -> RemoteAddr {
        self.chunks[chunk].remote
    }

    /// Assigns a place to a peer. `stamp` is the value that the flag of the place must reach.
    pub fn assign(&mut self, place: u16, state: PlaceOwner, stamp: u64) {
        let slot = &mut self.slots[usize::from(place)];
        (slot.state, slot.stamp) = (state, stamp);
    }

    pub fn state(&self, place: u16) -> Option<PlaceOwner> {
        self.slots.get(usize::from(place)).map(|slot| slot.state)
    }

    pub fn set_state(&mut self, place: u16, state: PlaceOwner) {
        self.slots[usize::from(place)].state = state;
    }

    /// Returns true if the awaited segment has arrived.
    pub fn arrived<F: Fabric>(&self, fabric: &F, place: u16) -> bool {
        let slot = &self.slots[usize::from(place)];
        fabric.counters().value(slot.arrival) >= slot.stamp
    }

    pub fn memory(&self, place: u16) -> Sge {
        self.slots[usize::from(place)].memory
    }

    /// Notes that a write from the place begins.
    pub fn hold(&mut self, place: u16) {
        self.slots[usize::from(place)].readers += 1;
    }

    /// Notes that a write from the place is complete. Returns true if no other write keeps the place from being free.
    pub fn unhold(&mut self, place: u16) -> bool {
        let slot = &mut self.slots[usize::from(place)];
        slot.readers -= 1;
        slot.readers == 0 && slot.state == PlaceOwner::Held && self.give(place)
    }

    /// Gives the place up. Returns true if the place is free now, because no write from it is under way.
    pub fn give(&mut self, place: u16) -> bool {
        let slot = &mut self.slots[usize::from(place)];
        let free = slot.readers == 0;
        slot.state = if free { PlaceOwner::Free } else { PlaceOwner::Held };
        if free {
            self.free.push(place);
        }
        free
    }
}

/// A place, as the sender sees it: its address, and the stamp for its flag.
#[derive(Debug, Clone, Copy)]
pub struct SegmentSlot {
    pub at: RemoteAddr,
    pub stamp: FlagWrite,
}

/// Returns place `place` of the chunk that begins at `chunk`: the address of its segment of `segment` bytes, and the write of
/// `stamp` to its flag.
pub fn place_at(chunk: RemoteAddr, place: u16, stamp: u64, segment: usize) -> SegmentSlot {
    let i = usize::from(place) % CHUNK;
    let flag = RemoteFlag { at: chunk.offset((i * LINE) as u64), waking: true };
    SegmentSlot { at: chunk.offset((CHUNK * LINE + i * segment) as u64), stamp: flag.with(stamp) }
}

/// Segments to send from.
#[derive(Default)]
pub struct Tokens {
    regions: Vec<Region>,
    free: Vec<u16>,
}

impl Tokens {
    pub fn take<F: Fabric>(
        &mut self,
        fabric: &F,
        sizes: &StreamSizes,
    ) -> Result<Option<u16>, Fault> {
        if self.free.is_empty() && self.regions.len() < sizes.tokens {
            match fabric.allocate(sizes.segment) {
                Ok(region) => self.regions.push(region),
                // If memory runs out, sends wait for tokens that are in use.
                Err(_) if !self.regions.is_empty() => return Ok(None),
                Err(fault) => return Err(fault),
            }
            self.free.push(self.regions.len() as u16 - 1);
        }
        Ok(self.free.pop())
    }

    pub fn bytes(&self) -> usize {
        self.regions.iter().map(|region| region.local.len()).sum()
    }

    pub fn memory(&self, token: u16) -> Sge {
        self.regions[usize::from(token)].local
    }

    pub fn give(&mut self, token: u16) {
        self.free.push(token);
    }
}

/// Flags that show that a block has landed.
#[derive(Default)]
pub struct LandingFlags {
    flags: Vec<Flag>,
    free: Vec<u16>,
}

impl LandingFlags {
    pub fn take<F: Fabric>(
        &mut self,
        fabric: &F,
        sizes: &StreamSizes,
    ) -> Result<Option<u16>, Fault> {
        if self.flags.is_empty() {
            let region = fabric.allocate(sizes.flags * LINE)?;
            self.flags
                .extend((0..sizes.flags).map(|i| fabric.flag(&region, i * LINE, FlagKind::Waking)));
            self.free.extend((0..sizes.flags as u16).rev());
        }
        Ok(self.free.pop())
    }

    pub fn bytes(&self) -> usize {
        self.flags.len() * LINE
    }

    /// Returns the number of flags that can still be taken.
    pub fn left(&self, sizes: &StreamSizes) -> usize {
        if self.flags.is_empty() { sizes.flags } else { self.free.len() }
    }

    pub fn remote(&self, flag: u16) -> RemoteAddr {
        self.flags[usize::from(flag)].remote.at
    }

    pub fn arrived<F: Fabric>(&self, fabric: &F, flag: u16, stamp: u64) -> bool {
        fabric.counters().value(self.flags[usize::from(flag)].local) >= stamp
    }

    pub fn give(&mut self, flag: u16) {
        self.free.push(flag);
    }
}
