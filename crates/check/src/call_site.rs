//! Call sites: the return addresses of the program's calls, and their functions, files and lines.
//!
//! An entry point stores its return address in a word of the thread and jumps on, so a call site costs three instructions. Addresses
//! travel to other ranks relative to their module, since processes have their modules at different addresses.

use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::ffi::{CStr, c_int, c_void};
use std::fmt;
use std::path::Path;
use std::sync::OnceLock;

std::arch::global_asm!(
    ".section .tbss,\"awT\",@nobits",
    ".globl weft_check_call_site",
    ".hidden weft_check_call_site",
    ".type weft_check_call_site,@object",
    ".size weft_check_call_site,8",
    ".align 8",
    "weft_check_call_site:",
    ".zero 8",
    ".text",
);

/// Body of an entry point.
macro_rules! call_site_entry {
    ($call:ident) => {
        std::arch::naked_asm!(
            "mov r11, [rsp]",
            "mov rax, weft_check_call_site@GOTTPOFF[rip]",
            "mov fs:[rax], r11",
            "jmp {}",
            sym $call
        )
    };
}
pub(crate) use call_site_entry;

/// Place of a call in a module of the program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Debug)]
pub struct CallSite {
    /// Hash of the module's file name.
    pub module: u64,
    /// Offset of the call in the module.
    pub offset: u64,
}

/// A module that is loaded.
struct Module {
    hash: u64,
    start: u64,
    end: u64,
    base: u64,
}

/// Function that returns the words for a call site in the code of an interpreter, and `None` for any other call site.
pub static INTERPRETER: OnceLock<fn(&CallSite) -> Option<String>> = OnceLock::new();

thread_local! {
    /// Call sites by return address, so that each thread looks up each address once.
    static SITES: RefCell<FxHashMap<u64, CallSite>> = RefCell::default();
}

/// Returns the return address of the thread's present call.
#[inline]
pub fn return_address() -> u64 {
    let address: u64;
    // SAFETY: reads a word of the thread, which the entry points write.
    unsafe {
        std::arch::asm!(
            "mov {0}, weft_check_call_site@GOTTPOFF[rip]",
            "mov {0}, fs:[{0}]",
            out(reg) address,
            options(nostack, readonly, preserves_flags)
        );
    }
    address
}

/// Returns the call site of a return address.
pub fn of(address: u64) -> CallSite {
    SITES.with_borrow_mut(|sites| *sites.entry(address).or_insert_with(|| of_address(address)))
}

fn of_address(address: u64) -> CallSite {
    let module = modules().into_iter().find(|m| (m.start..m.end).contains(&address));
    module.map_or(CallSite { module: 0, offset: address }, |module| CallSite {
        module: module.hash,
        offset: address - module.base,
    })
}

/// Returns FNV-1a of the last part of a path, which is the same for all processes of a program.
pub fn hash(path: &[u8]) -> u64 {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    name.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Lists the modules of this process.
fn modules() -> Vec<Module> {
    extern "C" fn add(info: *mut libc::dl_phdr_info, _: usize, list: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid description, and `modules` its list.
        let (info, list) = unsafe { (&*info, &mut *list.cast::<Vec<Module>>()) };
        // SAFETY: the name is a string of the loader.
        let name = unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes();
        // The program itself has no name.
        let exe = std::fs::read_link("/proc/self/exe").unwrap_or_default();
        let name = if name.is_empty() && list.is_empty() {
            exe.as_os_str().as_encoded_bytes()
        } else {
            name
        };
        // SAFETY: the loader's description has this number of headers.
        let headers =
            unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        let loaded = headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        let end = loaded.map(|header| header.p_vaddr + header.p_memsz).max().unwrap_or(0);
        let base = info.dlpi_addr;
        list.push(Module { hash: hash(name), start: base, end: base + end, base });
        0
    }
    let mut list: Vec<Module> = Vec::new();
    // SAFETY: `add` takes the list as its last parameter.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut list).cast()) };
    list
}

impl fmt::Display for CallSite {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(words) = INTERPRETER.get().and_then(|words_of| words_of(self)) {
            return write!(to, "{words}");
        }
        let module = modules().into_iter().find(|module| module.hash == self.module);
        let Some(module) = module else { return write!(to, "address {:#x}", self.offset) };
        // The return address is behind the call, so the byte before it belongs to the line of the call.
        let address = (module.base + self.offset).wrapping_sub(1) as *mut c_void;
        let mut text = None;
        backtrace::resolve(address, |symbol| {
            if text.is_some() {
                return;
            }
            let name = symbol.name().map_or_else(|| "?".to_owned(), |name| name.to_string());
            let file = symbol.filename().and_then(Path::file_name);
            text = Some(match (file, symbol.lineno()) {
                (Some(file), Some(line)) => format!("{name} ({}:{line})", file.to_string_lossy()),
                _ => format!(
                    "{name} (offset {:#x}; -g at compilation adds file and line)",
                    self.offset
                ),
            });
        });
        write!(to, "{}", text.unwrap_or_else(|| format!("offset {:#x}", self.offset)))
    }
}
