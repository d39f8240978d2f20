//! Staging buffers: local memory for temporary use, recycled by a pool.

use crate::Sge;
use crate::block::OwnedBlock;
use std::cell::RefCell;
use std::rc::Rc;

/// A local buffer from a pool. While the pool lives, the memory of its buffers is not given back to the system. So an operation
/// that outlives the buffer, because its future was dropped, writes into idle memory, not into memory of another owner.
pub struct Staging {
    /// `None` if the buffer is empty or a phantom.
    memory: Option<OwnedBlock<u64>>,
    len: usize,
    pool: StagingPool,
}

impl Staging {
    /// Returns an element that names the whole buffer.
    #[inline]
    pub fn sge(&self) -> Sge {
        match &self.memory {
            // SAFETY: the pool keeps the allocation of `len` bytes, and only elements of this buffer name it.
            Some(memory) => unsafe { Sge::new(memory.first().as_ptr().cast(), self.len) },
            None if self.len == 0 => Sge::EMPTY,
            None => Sge::phantom(self.len),
        }
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the buffer was taken with a length of zero. It holds no memory then.
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
            self.pool.idle.borrow_mut()[class].push(memory);
        }
    }
}

/// Idle buffers of one size.
type FreeList = Vec<OwnedBlock<u64>>;

/// Maximum length, in words, of a buffer that the pool keeps: 128 MiB. Larger buffers go back to the system at once. Otherwise
/// the pool would hold the memory of a program's largest reduction for ever. New memory for such a buffer costs only about the
/// time of a copy of it.
const MOST_KEPT: usize = 1 << (CLASSES - 1);
const CLASSES: usize = 25;

/// The source of [`Staging`] buffers. Sizes are rounded up to powers of two. Buffers are reused, except buffers above the maximum
/// length.
#[derive(Clone, Default)]
pub struct StagingPool {
    /// Idle buffers by the logarithm of the number of words.
    idle: Rc<RefCell<[FreeList; CLASSES]>>,
}

impl StagingPool {
    /// Returns a buffer of `len` bytes, 8-byte aligned, with unspecified content.
    #[inline]
    pub fn take(&self, len: usize) -> Staging {
        let words = len.div_ceil(8);
        let memory = match words {
            0 => None,
            1..=MOST_KEPT => {
                let words = words.next_power_of_two();
                let idle = self.idle.borrow_mut()[words.trailing_zeros() as usize].pop();
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

    /// Returns a buffer as long as `data`; a phantom if `data` is a phantom.
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
        pool.idle.borrow().iter().flatten().map(|block| block.len()).collect()
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
        // The buffer is never accessed, so it takes no memory.
        let large = pool.take(8 * MOST_KEPT + 1);
        assert_eq!(large.memory.as_ref().map(|m| m.len()), Some(MOST_KEPT + 1));
        drop((again, large));
        assert_eq!(idle(&pool), [16]);
    }
}
