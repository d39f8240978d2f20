//! Pages that will be used soon. The system provides them by a single call, so that later accesses take no page fault.

use weft_fabric::Sge;

/// Provides the pages in which `memory` lies. `memory` has at least the size of a page, and is mapped for writing. If the system
/// cannot provide the pages (an old kernel, too little memory), each page is provided at its first access.
#[cold]
pub fn populate(memory: Sge) {
    let page = weft_fabric::copies::PAGE;
    if cfg!(any(loom, miri)) || memory.is_phantom() || memory.len() < page {
        return;
    }
    let skip = memory.ptr().addr() % page;
    let start = memory.ptr().wrapping_sub(skip);
    // SAFETY: MADV_POPULATE_WRITE changes no content. The pages contain parts of `memory`, which is mapped: the caller of
    // `Sge::new` promised that it stays allocated.
    unsafe { libc::madvise(start.cast(), memory.len() + skip, libc::MADV_POPULATE_WRITE) };
}
