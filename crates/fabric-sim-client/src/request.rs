//! Requests of a rank to the simulation, as words of a slot.

use std::sync::atomic::{AtomicU64, Ordering};
use weft_fabric::{Completion, Counter, Fault, FaultCause, Head, RemoteAddr, RemoteFlag, Sge};

/// Maximum number of words of a request or reply.
pub const WORDS: usize = 20;

/// The words of a request or reply, written or read in order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SlotWords {
    words: [u64; WORDS],
    used: usize,
    read: usize,
}

impl SlotWords {
    /// Appends a word.
    pub fn put(mut self, word: u64) -> SlotWords {
        self.words[self.used] = word;
        self.used += 1;
        self
    }

    /// Appends memory of the rank. A phantom keeps only its length.
    pub fn put_memory(self, memory: Sge) -> SlotWords {
        let address = if memory.is_phantom() { 0 } else { memory.ptr().expose_provenance() as u64 };
        self.put(address).put(memory.len() as u64)
    }

    /// Appends an address of a peer.
    pub fn put_remote(self, at: RemoteAddr) -> SlotWords {
        at.words().into_iter().fold(self, SlotWords::put)
    }

    fn put_done(self, done: Completion) -> SlotWords {
        self.put(done.map_or(0, |counter| u64::from(counter.0) + 1))
    }

    /// Reads the next word; 0 after the last word.
    pub fn take(&mut self) -> u64 {
        let word = self.words.get(self.read).copied().unwrap_or(0);
        self.read += 1;
        word
    }

    /// Reads the address and the length of memory of the rank. The address is not valid in this process.
    pub fn take_memory(&mut self) -> Sge {
        let (address, len) = (self.take() as usize, self.take() as usize);
        match address {
            0 => Sge::phantom(len),
            // SAFETY: the value only names memory of another process, as `RankMemory` describes. This process never accesses it.
            _ => unsafe { Sge::new(std::ptr::with_exposed_provenance_mut(address), len) },
        }
    }

    /// Reads an address of a peer.
    pub fn take_remote(&mut self) -> RemoteAddr {
        let words = std::array::from_fn(|_| self.take());
        RemoteAddr::from_words(words)
    }

    fn take_done(&mut self) -> Completion {
        let word = self.take();
        (word > 0).then(|| Counter(word as u32 - 1))
    }

    /// Returns the words.
    pub fn used(&self) -> &[u64] {
        &self.words[..self.used]
    }

    /// Stores the words in a slot. Returns their number.
    pub fn store(&self, slot: &[AtomicU64; WORDS]) -> u32 {
        let words = self.words[..self.used].iter().zip(slot);
        words.for_each(|(&word, at)| at.store(word, Ordering::Relaxed));
        self.used as u32
    }

    /// Loads `used` words of a slot.
    pub fn load(slot: &[AtomicU64; WORDS], used: u32) -> SlotWords {
        let used = (used as usize).min(WORDS);
        let mut words = [0; WORDS];
        let pairs = words.iter_mut().zip(slot).take(used);
        pairs.for_each(|(word, at)| *word = at.load(Ordering::Relaxed));
        SlotWords { words, used, read: 0 }
    }
}

/// Effect of a write after its data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WriteEnd {
    /// Nothing more.
    Data,
    /// A flag of the peer gets a value.
    Flag(RemoteFlag, u64),
    /// The peer counts an arrival of an immediate.
    Immediate(u32),
}

/// A request of a rank. Its memory is named by addresses of the rank's process.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "the fields are those of the methods of `Fabric`")]
pub enum SimRequest {
    /// Ends the turn, until an event concerns the rank or its clock reaches `until`, in picoseconds.
    Rest {
        until: Option<u64>,
    },
    /// Lets global time catch up with the rank's clock. If the rank has done nothing since its last turn, its clock advances by the
    /// time of a look.
    Look,
    /// Only applies the charges.
    Clock,
    /// The rank leaves the simulation.
    End,
    Write {
        rail: Option<usize>,
        peer: usize,
        src: Sge,
        dst: RemoteAddr,
        then: WriteEnd,
        done: Completion,
    },
    Read {
        rail: Option<usize>,
        peer: usize,
        dst: Sge,
        src: RemoteAddr,
        done: Completion,
    },
    FlagAfter {
        rail: usize,
        peer: usize,
        flag: RemoteFlag,
        value: u64,
    },
    Add {
        peer: usize,
        target: RemoteAddr,
        operand: u64,
        result: Sge,
        done: Completion,
    },
    Swap {
        peer: usize,
        target: RemoteAddr,
        compare: u64,
        swap: u64,
        result: Sge,
        done: Completion,
    },
    /// Sends a message, whose payload of `len` bytes is at offset `at` of the slot's payload unless it is a phantom.
    Send {
        peer: usize,
        head: Head,
        phantom: bool,
        len: usize,
        at: usize,
    },
    /// Takes the first message, which the rank has found in the inbox of its slot.
    Take,
    /// Registers memory that the rank allocated for peers. Reply: the address for peers.
    Allocate {
        memory: Sge,
    },
    /// Registers memory of the program. Reply: the address for peers.
    Expose {
        memory: Sge,
    },
    Withdraw {
        memory: Sge,
        remote: RemoteAddr,
    },
    /// Reply: 1 if the rail works.
    RailWorks {
        rail: usize,
        peer: usize,
    },
    Join {
        group: u32,
    },
    Leave {
        group: u32,
    },
    /// Sends a datagram, whose payload is at offset `at` of the slot's payload.
    Multicast {
        group: u32,
        len: usize,
        at: usize,
    },
    /// Takes the next datagram, of at most `len` bytes. Reply: 0, or the source plus 1, the group, and the length.
    ReceiveMulticast {
        len: usize,
    },
    /// Reply: 0, or 1 and the four numbers of the processor groups of `peer`.
    Groups {
        peer: usize,
    },
    /// Reply: the address in the peer's process.
    MemoryOf {
        peer: usize,
        at: RemoteAddr,
        len: usize,
    },
}

fn put_rail(words: SlotWords, rail: Option<usize>) -> SlotWords {
    words.put(rail.map_or(0, |rail| rail as u64 + 1))
}

fn take_rail(words: &mut SlotWords) -> Option<usize> {
    (words.take() as usize).checked_sub(1)
}

impl SimRequest {
    /// Returns the request as words.
    pub fn words(&self) -> SlotWords {
        let kind = |kind| SlotWords::default().put(kind);
        match *self {
            SimRequest::Rest { until } => kind(0).put(until.unwrap_or(u64::MAX)),
            SimRequest::Look => kind(1),
            SimRequest::Clock => kind(2),
            SimRequest::End => kind(3),
            SimRequest::Write { rail, peer, src, dst, then, done } => {
                let words = put_rail(kind(4), rail).put(peer as u64).put_memory(src);
                let words = words.put_remote(dst).put_done(done);
                match then {
                    WriteEnd::Data => words.put(0),
                    WriteEnd::Flag(flag, value) => {
                        let words = words.put(1).put_remote(flag.at);
                        words.put(u64::from(flag.waking)).put(value)
                    }
                    WriteEnd::Immediate(immediate) => words.put(2).put(u64::from(immediate)),
                }
            }
            SimRequest::Read { rail, peer, dst, src, done } => {
                let words = put_rail(kind(5), rail).put(peer as u64).put_memory(dst);
                words.put_remote(src).put_done(done)
            }
            SimRequest::FlagAfter { rail, peer, flag, value } => {
                let words = kind(6).put(rail as u64).put(peer as u64).put_remote(flag.at);
                words.put(u64::from(flag.waking)).put(value)
            }
            SimRequest::Add { peer, target, operand, result, done } => {
                let words = kind(7).put(peer as u64).put_remote(target).put(operand);
                words.put_memory(result).put_done(done)
            }
            SimRequest::Swap { peer, target, compare, swap, result, done } => {
                let words = kind(8).put(peer as u64).put_remote(target).put(compare).put(swap);
                words.put_memory(result).put_done(done)
            }
            SimRequest::Send { peer, head, phantom, len, at } => {
                let words = head.0.into_iter().fold(kind(9).put(peer as u64), SlotWords::put);
                words.put(u64::from(phantom)).put(len as u64).put(at as u64)
            }
            SimRequest::Take => kind(10),
            SimRequest::Allocate { memory } => kind(11).put_memory(memory),
            SimRequest::Expose { memory } => kind(12).put_memory(memory),
            SimRequest::Withdraw { memory, remote } => {
                kind(13).put_memory(memory).put_remote(remote)
            }
            SimRequest::RailWorks { rail, peer } => kind(14).put(rail as u64).put(peer as u64),
            SimRequest::Join { group } => kind(15).put(u64::from(group)),
            SimRequest::Leave { group } => kind(16).put(u64::from(group)),
            SimRequest::Multicast { group, len, at } => {
                kind(17).put(u64::from(group)).put(len as u64).put(at as u64)
            }
            SimRequest::ReceiveMulticast { len } => kind(18).put(len as u64),
            SimRequest::Groups { peer } => kind(19).put(peer as u64),
            SimRequest::MemoryOf { peer, at, len } => {
                kind(20).put(peer as u64).put_remote(at).put(len as u64)
            }
        }
    }

    /// Reads a request; `None` for an unknown kind.
    pub fn of(mut words: SlotWords) -> Option<SimRequest> {
        let kind = words.take();
        SimRequest::post_of(kind, &mut words).or_else(|| SimRequest::question_of(kind, &mut words))
    }

    /// Reads a request that ends a turn or posts an operation.
    fn post_of(kind: u64, words: &mut SlotWords) -> Option<SimRequest> {
        Some(match kind {
            0 => {
                let until = words.take();
                SimRequest::Rest { until: (until != u64::MAX).then_some(until) }
            }
            1 => SimRequest::Look,
            2 => SimRequest::Clock,
            3 => SimRequest::End,
            4 => {
                let (rail, peer) = (take_rail(words), words.take() as usize);
                let (src, dst) = (words.take_memory(), words.take_remote());
                let done = words.take_done();
                let then = match words.take() {
                    0 => WriteEnd::Data,
                    1 => {
                        let (at, waking) = (words.take_remote(), words.take() != 0);
                        WriteEnd::Flag(RemoteFlag { at, waking }, words.take())
                    }
                    2 => WriteEnd::Immediate(words.take() as u32),
                    _ => return None,
                };
                SimRequest::Write { rail, peer, src, dst, then, done }
            }
            5 => SimRequest::Read {
                rail: take_rail(words),
                peer: words.take() as usize,
                dst: words.take_memory(),
                src: words.take_remote(),
                done: words.take_done(),
            },
            6 => SimRequest::FlagAfter {
                rail: words.take() as usize,
                peer: words.take() as usize,
                flag: RemoteFlag { at: words.take_remote(), waking: words.take() != 0 },
                value: words.take(),
            },
            7 => SimRequest::Add {
                peer: words.take() as usize,
                target: words.take_remote(),
                operand: words.take(),
                result: words.take_memory(),
                done: words.take_done(),
            },
            8 => SimRequest::Swap {
                peer: words.take() as usize,
                target: words.take_remote(),
                compare: words.take(),
                swap: words.take(),
                result: words.take_memory(),
                done: words.take_done(),
            },
            9 => SimRequest::Send {
                peer: words.take() as usize,
                head: Head(std::array::from_fn(|_| words.take())),
                phantom: words.take() != 0,
                len: words.take() as usize,
                at: words.take() as usize,
            },
            10 => SimRequest::Take,
            _ => return None,
        })
    }

    /// Reads a request about memory, rails, groups or peers.
    fn question_of(kind: u64, words: &mut SlotWords) -> Option<SimRequest> {
        Some(match kind {
            11 => SimRequest::Allocate { memory: words.take_memory() },
            12 => SimRequest::Expose { memory: words.take_memory() },
            13 => SimRequest::Withdraw { memory: words.take_memory(), remote: words.take_remote() },
            14 => {
                SimRequest::RailWorks { rail: words.take() as usize, peer: words.take() as usize }
            }
            15 => SimRequest::Join { group: words.take() as u32 },
            16 => SimRequest::Leave { group: words.take() as u32 },
            17 => SimRequest::Multicast {
                group: words.take() as u32,
                len: words.take() as usize,
                at: words.take() as usize,
            },
            18 => SimRequest::ReceiveMulticast { len: words.take() as usize },
            19 => SimRequest::Groups { peer: words.take() as usize },
            20 => SimRequest::MemoryOf {
                peer: words.take() as usize,
                at: words.take_remote(),
                len: words.take() as usize,
            },
            _ => return None,
        })
    }
}

/// Returns a fault as a word of a reply: the lost peer plus 1, or `u64::MAX`.
pub fn fault_word(fault: &Fault) -> u64 {
    match *fault.cause() {
        FaultCause::PeerLost { rank } => rank as u64 + 1,
        _ => u64::MAX,
    }
}

/// Returns the fault of a word of a reply; `None` for 0.
pub fn fault_of(word: u64) -> Option<Fault> {
    match word {
        0 => None,
        u64::MAX => Some(Fault::system("the simulation refused an operation", 0)),
        peer => Some(Fault::lost(peer as usize - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_survive_the_slot() {
        let at = RemoteAddr::from_words([1, 2, 3, 4]);
        let flag = RemoteFlag { at: RemoteAddr::from_words([5, 6, 7, 8]), waking: true };
        let memory = Sge::phantom(77);
        // SAFETY: nothing accesses the memory.
        let real = unsafe { Sge::new(std::ptr::with_exposed_provenance_mut(4096), 9) };
        let done = Some(Counter(3));
        let write =
            |then| SimRequest::Write { rail: Some(1), peer: 2, src: real, dst: at, then, done };
        let all = [
            SimRequest::Rest { until: None },
            SimRequest::Rest { until: Some(0) },
            SimRequest::Look,
            SimRequest::Clock,
            SimRequest::End,
            write(WriteEnd::Data),
            write(WriteEnd::Flag(flag, 9)),
            write(WriteEnd::Immediate(4)),
            SimRequest::Read { rail: None, peer: 1, dst: memory, src: at, done: None },
            SimRequest::FlagAfter { rail: 1, peer: 3, flag, value: 8 },
            SimRequest::Add { peer: 1, target: at, operand: 5, result: real, done },
            SimRequest::Swap { peer: 1, target: at, compare: 1, swap: 2, result: real, done: None },
            SimRequest::Send { peer: 1, head: Head([1, 2, 3]), phantom: true, len: 5, at: 64 },
            SimRequest::Take,
            SimRequest::Allocate { memory: real },
            SimRequest::Expose { memory },
            SimRequest::Withdraw { memory: real, remote: at },
            SimRequest::RailWorks { rail: 1, peer: 2 },
            SimRequest::Join { group: 3 },
            SimRequest::Leave { group: 3 },
            SimRequest::Multicast { group: 3, len: 100, at: 128 },
            SimRequest::ReceiveMulticast { len: 50 },
            SimRequest::Groups { peer: 2 },
            SimRequest::MemoryOf { peer: 1, at, len: 8 },
        ];
        for request in all {
            let slot = std::array::from_fn(|_| AtomicU64::new(u64::MAX));
            let used = request.words().store(&slot);
            assert_eq!(SimRequest::of(SlotWords::load(&slot, used)), Some(request));
        }
        assert_eq!(SimRequest::of(SlotWords::default().put(99)), None);
    }
}
