//! Memory for the timings.

/// Memory at a fixed distance from the start of a page, so that no run profits from a lucky alignment.
pub struct Pages {
    memory: *mut u8,
    layout: std::alloc::Layout,
    start: usize,
    len: usize,
}

impl Pages {
    /// Allocates `len` zeros. They begin at cache line `11 * place` of a page.
    pub fn new(len: usize, place: usize) -> Pages {
        let start = 11 * 64 * place;
        let layout = std::alloc::Layout::from_size_align(start + len + 1, 4096).unwrap();
        // SAFETY: `alloc_zeroed` needs a layout of non-zero size: its size is at least 1.
        let memory = unsafe { std::alloc::alloc_zeroed(layout) };
        assert!(!memory.is_null(), "no memory: {len} bytes");
        Pages { memory, layout, start, len }
    }

    pub fn start(&self) -> *mut u8 {
        // SAFETY: `add` needs a result inside the allocation, which has `start + len + 1` bytes.
        unsafe { self.memory.add(self.start) }
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `from_raw_parts` needs initialised bytes: the `len` bytes from the start lie in the allocation, and were
        // zeroed.
        unsafe { std::slice::from_raw_parts(self.start(), self.len) }
    }

    pub fn fill(&self, byte: impl Fn(usize) -> u8) {
        // SAFETY: `write` needs valid bytes that nothing else uses: they lie in the allocation, and nobody holds a reference
        // now.
        (0..self.len).for_each(|i| unsafe { self.start().add(i).write(byte(i)) });
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: `dealloc` needs memory of the same allocator and layout: `alloc_zeroed` made it with this layout.
        unsafe { std::alloc::dealloc(self.memory, self.layout) }
    }
}
