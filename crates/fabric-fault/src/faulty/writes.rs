//! Writes whose bytes become visible in any order, and late completions.
//!
//! A write with a completion reads its source as late as the contract permits, so that tests notice if the source is reused too
//! early. A write without a completion copies its source at the post. The wrapped fabric may complete its operations at any
//! time. Whatever must follow these operations waits for their completion.

use super::FaultyFabric;
use std::cell::{OnceCell, RefCell};
use weft_fabric::{
    Completion, Counter, CounterTarget, Fabric, FabricExt, Fault, FetchAdd, FlagWrite, RemoteRead,
    RemoteWrite, Sge,
};

/// The operation that follows the data of a write.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WriteEnding {
    Nothing,
    Flag(FlagWrite),
    Immediate(u32),
}

struct LateWrite {
    peer: usize,
    write: RemoteWrite,
    /// Pieces that are not placed yet, each as offset and length. The next piece is the last entry.
    pieces: Vec<(usize, usize)>,
    /// The operation that must still follow the pieces.
    late: Option<WriteEnding>,
    /// End of the operations of the wrapped fabric.
    inside: CounterTarget,
    /// Keeps the memory of the source, if it was copied.
    _copy: Option<Box<[u8]>>,
}

#[derive(Default)]
pub(crate) struct Writes {
    writes: RefCell<Vec<LateWrite>>,
    /// Operations under way in the wrapped fabric, and the completions to advance after them.
    inside: RefCell<Vec<(CounterTarget, Completion)>>,
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
        write: &RemoteWrite,
        late: WriteEnding,
    ) -> Result<(), Fault> {
        let mut write = *write;
        if !self.plan.reorder {
            return self.pass_on(write.done, |done| {
                self.write_inside(peer, &RemoteWrite { done, ..write }, late)
            });
        }
        let mut inside = self.open();
        if let Err(fault) = self.check(peer, &write, late, &mut inside) {
            self.writes.inside.borrow_mut().push((inside, None));
            self.settle();
            return Err(fault);
        }
        let mut copy = None;
        if write.done.is_none() {
            let mut bytes = vec![0; write.src.len()].into_boxed_slice();
            write.src.read(&mut bytes);
            // SAFETY: the boxed bytes stay with the write, in `_copy`, until the write is complete.
            write.src = unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) };
            copy = Some(bytes);
        }
        let pieces = self.pieces(write.src.len());
        let late = Some(late);
        let write = LateWrite { peer, write, pieces, late, inside, _copy: copy };
        self.writes.writes.borrow_mut().push(write);
        self.note_pending();
        Ok(())
    }

    /// Posts a write on the wrapped fabric, with the operation that follows its data.
    fn write_inside(
        &self,
        peer: usize,
        write: &RemoteWrite,
        late: WriteEnding,
    ) -> Result<(), Fault> {
        match late {
            WriteEnding::Nothing => self.inner.write(peer, write),
            WriteEnding::Flag(flag) => self.inner.write_flag(peer, write, &flag),
            WriteEnding::Immediate(immediate) => self.inner.write_imm(peer, write, immediate),
        }
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
            inside.value -= 1;
        }
        let done = if posted.is_ok() { done } else { None };
        self.writes.inside.borrow_mut().push((inside, done));
        self.settle();
        posted
    }

    fn open(&self) -> CounterTarget {
        CounterTarget::new(self.counters(), self.counters().allocate())
    }

    /// Passes on completions of the wrapped fabric. Returns true if there were any.
    fn settle(&self) -> bool {
        let all = std::mem::take(&mut *self.writes.inside.borrow_mut());
        let (over, rest): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(inside, _)| inside.has_come(self.counters()));
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
        write: &RemoteWrite,
        late: WriteEnding,
        inside: &mut CounterTarget,
    ) -> Result<(), Fault> {
        let (len, target) = (write.src.len(), write.dst);
        let scratch = self.scratch()?;
        let mut count = |posted: Result<(), Fault>| posted.map(|()| inside.value += 1);
        let done = Some(inside.counter);
        // The flag is checked first, because tests get it wrong while all else is right. If it is refused, nothing is under way
        // that might outlive the peer's memory.
        if let WriteEnding::Flag(FlagWrite { flag, .. }) = late {
            // Adding zero finds out whether the word is a flag, and changes nothing.
            let nothing = FetchAdd { target: flag.at, operand: 0, result: scratch, done };
            count(self.inner.fetch_add(peer, &nothing))?;
        }
        if len > 0 {
            let (first, last) = (target.addr, target.addr.wrapping_add(len as u64 - 1));
            if last < first {
                return Err(Fault::corrupt(peer, "remote address"));
            }
            for src in [target.offset(len as u64 - 1), target] {
                let byte = RemoteRead::new(scratch.part(0, 1), src, done);
                count(self.inner.read(peer, &byte))?;
            }
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
    fn advance(&self, late: &mut LateWrite, steps: usize) -> (bool, bool) {
        for step in 0..steps {
            let LateWrite { peer, write: RemoteWrite { src, dst, .. }, .. } = *late;
            let posted = if let Some((offset, len)) = late.pieces.pop() {
                let (src, dst) = (src.part(offset, len), dst.offset(offset as u64));
                let piece = RemoteWrite::new(src, dst, late.inside.one_more());
                self.inner.write(peer, &piece)
            } else if !late.inside.has_come(self.counters()) {
                return (false, step > 0);
            } else if let Some(tail) = late.late.take() {
                match tail {
                    WriteEnding::Nothing => Ok(()),
                    _ => {
                        let done = late.inside.one_more();
                        self.write_inside(peer, &RemoteWrite::new(Sge::EMPTY, dst, done), tail)
                    }
                }
            } else {
                self.counters().free(late.inside.counter);
                self.complete_late(late.write.done);
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
