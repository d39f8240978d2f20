//! Announcements of memory that peers fill, for tools that follow each byte of a process.
//!
//! valgrind's memcheck sees the stores of this process and of the system, but not the stores of another process into its
//! memory. So memory is declared as written when peers learn its address. Without a tool the request is a few rotations
//! of a register, and calls no function.

use crate::Sge;

/// memcheck's request to treat all accessible bytes of a range as written. Inaccessible bytes stay inaccessible.
const MAKE_DEFINED_IF_ADDRESSABLE: u64 = (b'M' as u64) << 24 | (b'C' as u64) << 16 | 11;

/// Declares that peers will write into `memory`.
pub(crate) fn filled_by_peers(memory: Sge) {
    if !memory.is_empty() {
        let (address, len) = (memory.ptr().addr() as u64, memory.len() as u64);
        request(&[MAKE_DEFINED_IF_ADDRESSABLE, address, len, 0, 0, 0]);
    }
}

/// Makes a client request as valgrind documents it, by instructions that change nothing and that valgrind recognizes.
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
fn request(words: &[u64; 6]) -> u64 {
    let mut answer = 0u64;
    // SAFETY: the rotations add up to 128 bits, so that rdi keeps its value, and an exchange of rbx with itself changes
    // nothing: outside of valgrind only the flags change. Under valgrind the six words are read, and rdx is written.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") words.as_ptr(),
            inout("rdx") answer,
            options(nostack),
        );
    }
    answer
}

/// Makes a client request on this processor.
#[cfg(all(target_arch = "aarch64", target_os = "linux", not(miri)))]
fn request(words: &[u64; 6]) -> u64 {
    let mut answer = 0u64;
    // SAFETY: the rotations add up to 128 bits, so that x12 keeps its value, and x10 or x10 is x10: outside of valgrind
    // nothing changes. Under valgrind the six words are read, and x3 is written.
    unsafe {
        std::arch::asm!(
            "ror x12, x12, #3",
            "ror x12, x12, #13",
            "ror x12, x12, #51",
            "ror x12, x12, #61",
            "orr x10, x10, x10",
            inout("x3") answer,
            in("x4") words.as_ptr(),
            options(nostack),
        );
    }
    answer
}

/// Does nothing: no tool is supported on this platform.
#[cfg(not(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_os = "linux",
    not(miri)
)))]
fn request(_: &[u64; 6]) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_without_a_tool_changes_nothing() {
        let mut memory = [7u8; 100];
        // SAFETY: `memory` is writable for its length and outlives the call.
        filled_by_peers(unsafe { Sge::new(memory.as_mut_ptr(), memory.len()) });
        filled_by_peers(Sge::EMPTY);
        assert_eq!(memory, [7; 100]);
        assert_eq!(request(&[0x1001, 0, 0, 0, 0, 0]), 0, "the tests run under valgrind?");
    }
}
