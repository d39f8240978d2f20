//! Memory for the races.

/// Memory at a fixed distance from the start of a page, so that no run is lucky.
pub struct Pages {
    memory: *mut u8,
    layout: std::alloc::Layout,
    start: usize,
    len: usize,
}

impl Pages {
    /// `len` zeros; `place` says which cache line of a page they begin with, in steps of 11.
    pub fn new(len: usize, place: usize) -> Pages {
        let start = 11 * 64 * place;
        let layout = std::alloc::Layout::from_size_align(start + len + 1, 4096).unwrap();
        // SAFETY: the size is not 0.
        let memory = unsafe { std::alloc::alloc_zeroed(layout) };
        assert!(!memory.is_null(), "no memory: {len} bytes");
        Pages { memory, layout, start, len }
    }

    pub fn start(&self) -> *mut u8 {
        // SAFETY: inside the allocation.
        unsafe { self.memory.add(self.start) }
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `len` bytes from the start are ours, and were initialised.
        unsafe { std::slice::from_raw_parts(self.start(), self.len) }
    }

    pub fn fill(&self, byte: impl Fn(usize) -> u8) {
        // SAFETY: as above, and nobody holds a reference meanwhile.
        (0..self.len).for_each(|i| unsafe { self.start().add(i).write(byte(i)) });
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: from `alloc_zeroed`, with this layout.
        unsafe { std::alloc::dealloc(self.memory, self.layout) }
    }
}
