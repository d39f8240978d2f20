//! Writes whose bytes become visible in any order, and late completions.
//!
//! A write with a completion is read from its source as late as that permits, so that reusing the
//! source too early is found out; one without is copied at the post.

use crate::faulty::Faulty;
use std::cell::RefCell;
use weft_fabric::{Completion, Counter, Fabric, Fault, RemoteAddr, RemoteFlag, Sge};

/// What follows the data of a write.
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
    /// Pieces that are not placed yet, the next one last: offset and length.
    pieces: Vec<(usize, usize)>,
    late: Late,
    done: Completion,
    /// Keeps the memory of `src`, if it was copied.
    _copy: Option<Box<[u8]>>,
}

#[derive(Default)]
pub(crate) struct Writes {
    writes: RefCell<Vec<Write>>,
    completions: RefCell<Vec<(u64, Counter)>>,
}

impl Writes {
    pub fn held(&self) -> usize {
        self.writes.borrow().len() + self.completions.borrow().len()
    }
}

/// Most pieces of one packet, so that large writes stay affordable.
const PIECES: usize = 8;

impl<F: Fabric> Faulty<F> {
    pub(crate) fn write_late(
        &self,
        peer: usize,
        mut src: Sge,
        dst: RemoteAddr,
        late: Late,
        done: Completion,
    ) -> Result<(), Fault> {
        if !self.plan.reorder {
            match late {
                Late::Nothing => self.inner.write(peer, src, dst, None)?,
                Late::Flag(flag, value) => {
                    self.inner.write_flag(peer, src, dst, flag, value, None)?;
                }
                Late::Immediate(imm) => self.inner.write_imm(peer, src, dst, imm, None)?,
            }
            self.complete_late(done);
            return Ok(());
        }
        self.check(peer, src.len(), dst, late)?;
        let mut copy = None;
        if done.is_none() {
            let mut bytes = vec![0; src.len()].into_boxed_slice();
            src.read(&mut bytes);
            // SAFETY: the boxed bytes stay with the write until it is over.
            src = unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) };
            copy = Some(bytes);
        }
        let pieces = self.pieces(src.len());
        let write = Write { peer, src, dst, pieces, late, done, _copy: copy };
        self.writes.writes.borrow_mut().push(write);
        self.note_pending();
        Ok(())
    }

    /// Refuses now what would be refused when it is performed.
    fn check(&self, peer: usize, len: usize, dst: RemoteAddr, late: Late) -> Result<(), Fault> {
        let mut bytes = [0u8; 8];
        // SAFETY: `bytes` outlives the reads, which complete at once or are never looked at.
        let scratch = unsafe { Sge::new(bytes.as_mut_ptr(), 8) };
        if len > 0 {
            let (first, last) = (dst.addr, dst.addr.wrapping_add(len as u64 - 1));
            if last < first {
                return Err(Fault::Corrupt { rank: peer, what: "remote address" });
            }
            self.inner.read(peer, scratch.part(0, 1), dst, None)?;
            self.inner.read(peer, scratch.part(0, 1), dst.offset(len as u64 - 1), None)?;
        }
        if let Late::Flag(flag, _) = late {
            // An addition of nothing finds out whether the flag is one, and changes nothing.
            self.inner.fetch_add(peer, flag.at, 0, scratch, None)?;
        }
        Ok(())
    }

    /// Cuts `len` bytes into packets in random order, each into pieces in random order.
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

    /// Places some pieces of some writes, and completes what is due.
    pub(crate) fn move_writes(&self) -> bool {
        let mut moved = false;
        let mut writes = std::mem::take(&mut *self.writes.writes.borrow_mut());
        // Each write moves at its own random pace, so that later ones overtake earlier ones.
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

    /// Takes so many steps of a write: whether it is over, and whether any was taken.
    fn advance(&self, write: &mut Write, steps: usize) -> (bool, bool) {
        for _ in 0..steps {
            let Write { peer, src, dst, .. } = *write;
            let result = if let Some((offset, len)) = write.pieces.pop() {
                self.inner.write(peer, src.part(offset, len), dst.offset(offset as u64), None)
            } else {
                let result = match write.late {
                    Late::Nothing => Ok(()),
                    Late::Flag(flag, value) => {
                        self.inner.write_flag(peer, Sge::EMPTY, dst, flag, value, None)
                    }
                    Late::Immediate(immediate) => {
                        self.inner.write_imm(peer, Sge::EMPTY, dst, immediate, None)
                    }
                };
                if result.is_ok() {
                    self.complete_late(write.done);
                    return (true, true);
                }
                result
            };
            if let Err(fault) = result {
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
