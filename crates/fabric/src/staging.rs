//! Staging buffers: local memory for a while, used again.

use crate::Sge;
use crate::block::OwnedBlock;
use std::cell::RefCell;
use std::rc::Rc;

/// A local buffer from a pool whose memory is never given back while the pool lives, so that an
/// operation that outlives the buffer (a dropped future) writes into idle memory and not into
/// someone else's.
pub struct Staging {
    /// `None` if it is empty or a phantom.
    memory: Option<OwnedBlock<u64>>,
    len: usize,
    pool: StagingPool,
}

impl Staging {
    /// All of the buffer.
    #[inline]
    pub fn sge(&self) -> Sge {
        match &self.memory {
            // SAFETY: the pool keeps the allocation; only elements of this buffer name it.
            Some(memory) => unsafe { Sge::new(memory.first().as_ptr().cast(), self.len) },
            None if self.len == 0 => Sge::EMPTY,
            None => Sge::phantom(self.len),
        }
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it was taken with a length of zero; it holds no memory then.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Drop for Staging {
    #[inline]
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take()
            && memory.len() <= MOST_KEPT
        {
            let class = memory.len().trailing_zeros() as usize;
            self.pool.idle[class].borrow_mut().push(memory);
        }
    }
}

/// Idle buffers of one size.
type FreeList = RefCell<Vec<OwnedBlock<u64>>>;

/// Larger buffers, in words, go back to the system at once: 128 MiB. Kept, they would hold the memory of
/// the largest reduction of a program for ever; to touch such a buffer anew costs a copy's time.
const MOST_KEPT: usize = 1 << (CLASSES - 1);
const CLASSES: usize = 25;

/// Where [`Staging`] buffers come from: sizes are rounded up to powers of two and reused, but for the
/// largest.
#[derive(Clone, Default)]
pub struct StagingPool {
    /// By the logarithm of the number of words.
    idle: Rc<[FreeList; CLASSES]>,
}

impl StagingPool {
    /// A buffer of `len` bytes, 8-byte aligned, with unspecified content.
    #[inline]
    pub fn take(&self, len: usize) -> Staging {
        let words = len.div_ceil(8);
        let memory = match words {
            0 => None,
            1..=MOST_KEPT => {
                let words = words.next_power_of_two();
                let idle = self.idle[words.trailing_zeros() as usize].borrow_mut().pop();
                Some(idle.unwrap_or_else(|| StagingPool::fresh(words)))
            }
            _ => Some(StagingPool::fresh(words)),
        };
        Staging { memory, len, pool: self.clone() }
    }

    #[cold]
    fn fresh(words: usize) -> OwnedBlock<u64> {
        OwnedBlock::new(vec![0; words])
    }

    /// A buffer as long as `data`, and a phantom if `data` is one.
    pub fn take_for(&self, data: Sge) -> Staging {
        if data.is_phantom() {
            Staging { memory: None, len: data.len(), pool: self.clone() }
        } else {
            self.take(data.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle(pool: &StagingPool) -> Vec<usize> {
        pool.idle
            .iter()
            .flat_map(|list| list.borrow().iter().map(|b| b.len()).collect::<Vec<_>>())
            .collect()
    }

    #[test]
    #[cfg_attr(miri, ignore = "128 MiB that Miri would write")]
    fn staging_is_used_again_unless_it_is_very_large() {
        let pool = StagingPool::default();
        let small = pool.take(100);
        let place = small.sge().ptr();
        drop(small);
        assert_eq!(idle(&pool), [16]);
        let again = pool.take(128);
        assert_eq!(again.sge().ptr(), place);
        assert!(idle(&pool).is_empty());
        // Nothing of it is touched.
        let large = pool.take(8 * MOST_KEPT + 1);
        assert_eq!(large.memory.as_ref().map(|m| m.len()), Some(MOST_KEPT + 1));
        drop((again, large));
        assert_eq!(idle(&pool), [16]);
    }
}
