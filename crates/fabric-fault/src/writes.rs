//! Writes whose bytes become visible in any order, and late completions.
//!
//! A write with a completion reads its source as late as the contract permits, so that tests notice if the source is reused too
//! early. A write without a completion copies its source at the post. The wrapped fabric may complete its operations at any
//! time. Whatever must follow these operations waits for their completion.

use crate::faulty::FaultyFabric;
use std::cell::{OnceCell, RefCell};
use weft_fabric::{Completion, Counter, Fabric, FabricExt, Fault, RemoteAddr, RemoteFlag, Sge};

/// The operation that follows the data of a write.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Late {
    Nothing,
    Flag(RemoteFlag, u64),
    Immediate(u32),
}

struct Write {
    peer: usize,
    src: Sge,
    dst: RemoteAddr,
    /// Pieces that are not placed yet, each as offset and length. The next piece is the last entry.
    pieces: Vec<(usize, usize)>,
    /// The operation that must still follow the pieces.
    late: Option<Late>,
    done: Completion,
    inside: Inside,
    /// Keeps the memory of `src`, if it was copied.
    _copy: Option<Box<[u8]>>,
}

/// Operations of the wrapped fabric that end together: their counter reaches `target` then.
#[derive(Debug, Clone, Copy)]
struct Inside {
    counter: Counter,
    target: u64,
}

impl Inside {
    /// Counts another posted operation, and returns its completion.
    fn one_more(&mut self) -> Completion {
        self.target += 1;
        Some(self.counter)
    }
}

#[derive(Default)]
pub(crate) struct Writes {
    writes: RefCell<Vec<Write>>,
    /// Operations under way in the wrapped fabric, and the completions to advance after them.
    inside: RefCell<Vec<(Inside, Completion)>>,
    /// The destination of the reads that check a write. This memory outlives all of them.
    scratch: OnceCell<Sge>,
    completions: RefCell<Vec<(u64, Counter)>>,
}

impl Writes {
    pub fn held(&self) -> usize {
        let inside = self.inside.borrow().len();
        self.writes.borrow().len() + inside + self.completions.borrow().len()
    }
}

/// Maximum number of pieces of a packet, so that large writes stay affordable.
const PIECES: usize = 8;

impl<F: Fabric> FaultyFabric<F> {
    pub(crate) fn write_late(
        &self,
        peer: usize,
        mut src: Sge,
        dst: RemoteAddr,
        late: Late,
        done: Completion,
    ) -> Result<(), Fault> {
        if !self.plan.reorder {
            return self.pass_on(done, |done| match late {
                Late::Nothing => self.inner.write(peer, src, dst, done),
                Late::Flag(flag, value) => self.inner.write_flag(peer, src, dst, flag, value, done),
                Late::Immediate(immediate) => self.inner.write_imm(peer, src, dst, immediate, done),
            });
        }
        let mut inside = self.open();
        if let Err(fault) = self.check(peer, src.len(), dst, late, &mut inside) {
            self.writes.inside.borrow_mut().push((inside, None));
            self.settle();
            return Err(fault);
        }
        let mut copy = None;
        if done.is_none() {
            let mut bytes = vec![0; src.len()].into_boxed_slice();
            src.read(&mut bytes);
            // SAFETY: the boxed bytes stay with the write, in `_copy`, until the write is complete.
            src = unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) };
            copy = Some(bytes);
        }
        let pieces = self.pieces(src.len());
        let late = Some(late);
        let write = Write { peer, src, dst, pieces, late, done, inside, _copy: copy };
        self.writes.writes.borrow_mut().push(write);
        self.note_pending();
        Ok(())
    }

    /// Posts an operation on the wrapped fabric. Its completion is passed on late.
    pub(crate) fn pass_on(
        &self,
        done: Completion,
        post: impl FnOnce(Completion) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        if done.is_none() {
            return post(None);
        }
        let mut inside = self.open();
        let posted = post(inside.one_more());
        if posted.is_err() {
            inside.target -= 1;
        }
        let done = if posted.is_ok() { done } else { None };
        self.writes.inside.borrow_mut().push((inside, done));
        self.settle();
        posted
    }

    fn open(&self) -> Inside {
        let counter = self.counters().allocate();
        Inside { counter, target: self.counters().value(counter) }
    }

    fn is_over(&self, inside: Inside) -> bool {
        self.counters().value(inside.counter) >= inside.target
    }

    /// Passes on completions of the wrapped fabric. Returns true if there were any.
    fn settle(&self) -> bool {
        let all = std::mem::take(&mut *self.writes.inside.borrow_mut());
        let (over, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(|&(i, _)| self.is_over(i));
        *self.writes.inside.borrow_mut() = rest;
        for &(inside, done) in &over {
            self.counters().free(inside.counter);
            self.complete_late(done);
        }
        self.note_pending();
        !over.is_empty()
    }

    fn scratch(&self) -> Result<Sge, Fault> {
        if let Some(&known) = self.writes.scratch.get() {
            return Ok(known);
        }
        // Never withdrawn, because reads into this memory may be under way until the end.
        let region = self.inner.allocate(8)?;
        Ok(*self.writes.scratch.get_or_init(|| region.local))
    }

    /// Refuses a write now if it would be refused when it is performed.
    fn check(
        &self,
        peer: usize,
        len: usize,
        dst: RemoteAddr,
        late: Late,
        inside: &mut Inside,
    ) -> Result<(), Fault> {
        let scratch = self.scratch()?;
        let mut count = |posted: Result<(), Fault>| posted.map(|()| inside.target += 1);
        let done = Some(inside.counter);
        // The flag is checked first, because tests get it wrong while all else is right. If it is refused, nothing is under way
        // that might outlive the peer's memory.
        if let Late::Flag(flag, _) = late {
            // Adding zero finds out whether the word is a flag, and changes nothing.
            count(self.inner.fetch_add(peer, flag.at, 0, scratch, done))?;
        }
        if len > 0 {
            let (first, last) = (dst.addr, dst.addr.wrapping_add(len as u64 - 1));
            if last < first {
                return Err(Fault::corrupt(peer, "remote address"));
            }
            let byte = scratch.part(0, 1);
            count(self.inner.read(peer, byte, dst.offset(len as u64 - 1), done))?;
            count(self.inner.read(peer, byte, dst, done))?;
        }
        Ok(())
    }

    /// Cuts `len` bytes into packets in random order, and each packet into pieces in random order.
    fn pieces(&self, len: usize) -> Vec<(usize, usize)> {
        let mut rng = self.rng.borrow_mut();
        let mtu = if self.plan.mtu == 0 { 4096 } else { self.plan.mtu };
        let mut packets: Vec<usize> = (0..len).step_by(mtu).collect();
        rng.shuffle(&mut packets);
        let mut all = Vec::new();
        for start in packets {
            let end = (start + mtu).min(len);
            let mut pieces = Vec::new();
            let mut at = start;
            while at < end {
                let most = (end - start).div_ceil(PIECES / 2);
                let piece = rng.usize(1..=most).min(end - at);
                pieces.push((at, piece));
                at += piece;
            }
            rng.shuffle(&mut pieces);
            all.extend(pieces);
        }
        all
    }

    /// Places some pieces of some writes, and completes what is due. Returns true if anything moved.
    pub(crate) fn move_writes(&self) -> bool {
        let mut moved = false;
        let mut writes = std::mem::take(&mut *self.writes.writes.borrow_mut());
        // Each write moves at its own random pace, so that later writes overtake earlier writes.
        writes.retain_mut(|write| {
            let steps = {
                let mut rng = self.rng.borrow_mut();
                rng.usize(0..=4 + write.pieces.len() / 4)
            };
            let (over, some) = self.advance(write, steps);
            moved |= some;
            !over
        });
        self.writes.writes.borrow_mut().extend(writes);
        moved |= self.settle();
        let now = self.clock.get();
        self.writes.completions.borrow_mut().retain(|&(due, counter)| {
            if due <= now {
                self.counters().add(counter, 1);
                moved = true;
            }
            due > now
        });
        moved
    }

    /// Takes up to `steps` steps of a write. Returns two flags: the write is complete, and a step was taken.
    fn advance(&self, write: &mut Write, steps: usize) -> (bool, bool) {
        for step in 0..steps {
            let Write { peer, src, dst, .. } = *write;
            let posted = if let Some((offset, len)) = write.pieces.pop() {
                let done = write.inside.one_more();
                self.inner.write(peer, src.part(offset, len), dst.offset(offset as u64), done)
            } else if !self.is_over(write.inside) {
                return (false, step > 0);
            } else if let Some(late) = write.late.take() {
                let mut done = || write.inside.one_more();
                match late {
                    Late::Nothing => Ok(()),
                    Late::Flag(flag, value) => {
                        self.inner.write_flag(peer, Sge::EMPTY, dst, flag, value, done())
                    }
                    Late::Immediate(immediate) => {
                        self.inner.write_imm(peer, Sge::EMPTY, dst, immediate, done())
                    }
                }
            } else {
                self.counters().free(write.inside.counter);
                self.complete_late(write.done);
                return (true, true);
            };
            if let Err(fault) = posted {
                self.fail(fault);
                return (true, true);
            }
        }
        (false, steps > 0)
    }

    pub(crate) fn complete_late(&self, done: Completion) {
        let Some(counter) = done else { return };
        let due = self.due(self.plan.completion_delay);
        if due <= self.clock.get() {
            self.counters().add(counter, 1);
        } else {
            self.writes.completions.borrow_mut().push((due, counter));
            self.note_pending();
        }
    }
}
