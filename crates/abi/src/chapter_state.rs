//! State of the process that belongs to a single chapter.

use std::ops::Deref;

/// State of the process that only one chapter uses, in a static of this chapter. Like [`crate::state::ProcessState`],
/// this state is used only under the lock.
pub struct ChapterState<T>(T);

// SAFETY: threads use the value one after the other. Only the thread that holds `crate::lock` uses it, or under MPI_THREAD_SINGLE
// the only thread that calls MPI, as the program promises.
unsafe impl<T> Sync for ChapterState<T> {}
// SAFETY: threads use the value one after the other, as for `Sync`.
unsafe impl<T> Send for ChapterState<T> {}

impl<T> ChapterState<T> {
    /// Creates the state of a chapter, which is `value` at the start of the process.
    pub const fn new(value: T) -> ChapterState<T> {
        ChapterState(value)
    }
}

impl<T> Deref for ChapterState<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}
