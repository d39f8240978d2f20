//! An allocator that counts by thread, and so by simulated job, because a job's ranks are simulated by one thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Number of allocations by this thread.
    pub static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// Number of bytes that this thread has allocated and not freed, and the maximum of this number since the maximum was last
    /// reset.
    pub static LIVE: Cell<isize> = const { Cell::new(0) };
    pub static MOST: Cell<isize> = const { Cell::new(0) };
}

struct Counted;

/// Counts bytes that this thread allocates, or frees if `bytes` is negative.
fn count(bytes: isize) {
    // A thread that ends may allocate or free memory when its counters are gone already.
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + bytes);
        MOST.with(|most| most.set(most.get().max(live.get())));
    });
}

// SAFETY: all calls go to the system's allocator, with the same arguments. Counting does not allocate.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        count(layout.size() as isize);
        // SAFETY: `layout` has a size that is not 0: the caller of `alloc` promises it.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: `pointer` was allocated by `System` with `layout`: the caller of `dealloc` promises it.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTER: Counted = Counted;
