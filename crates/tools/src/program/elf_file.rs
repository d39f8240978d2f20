//! Facts about an ELF file that the dynamic loader uses: libraries, folders to search, and the symbols of MPI.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

use object::elf::{
    DF_1_NOW, DF_BIND_NOW, DT_BIND_NOW, DT_FLAGS, DT_FLAGS_1, DT_NEEDED, DT_RPATH, DT_RUNPATH,
    DT_SONAME, ELFCLASS64, EM_386, EM_AARCH64, EM_ARM, EM_PPC64, EM_RISCV, EM_S390, EM_X86_64,
    FileHeader64, R_AARCH64_COPY, R_AARCH64_JUMP_SLOT, R_PPC64_COPY, R_PPC64_JMP_SLOT,
    R_RISCV_COPY, R_RISCV_JUMP_SLOT, R_X86_64_COPY, R_X86_64_JUMP_SLOT, SHT_DYNSYM, SHT_SYMTAB,
};
use object::read::elf::{Dyn, FileHeader, Rela, SectionHeader, SectionTable, Sym, SymbolTable};
use object::{Endianness, ReadCache, ReadRef};

use super::mpi_abi;

/// Symbol with the list of functions that Weft's library exports only to report that they do not work.
const UNSUPPORTED: &str = "weft_unsupported";

/// Types of relocations of a processor: a copy of a variable, and a function whose address is found at its first use.
struct RelocationTypes {
    machine: u16,
    copy: u32,
    jump_slot: u32,
}

const RELOCATIONS: [RelocationTypes; 4] = [
    RelocationTypes { machine: EM_X86_64, copy: R_X86_64_COPY, jump_slot: R_X86_64_JUMP_SLOT },
    RelocationTypes { machine: EM_AARCH64, copy: R_AARCH64_COPY, jump_slot: R_AARCH64_JUMP_SLOT },
    RelocationTypes { machine: EM_PPC64, copy: R_PPC64_COPY, jump_slot: R_PPC64_JMP_SLOT },
    RelocationTypes { machine: EM_RISCV, copy: R_RISCV_COPY, jump_slot: R_RISCV_JUMP_SLOT },
];

/// Names of processors.
const MACHINES: [(u16, &str); 7] = [
    (EM_X86_64, "x86-64"),
    (EM_386, "x86"),
    (EM_AARCH64, "AArch64"),
    (EM_ARM, "ARM"),
    (EM_PPC64, "POWER"),
    (EM_RISCV, "RISC-V"),
    (EM_S390, "S/390"),
];

/// Facts about an ELF file. Symbols are only those with names of MPI.
#[derive(Debug, Default)]
pub struct ElfFacts {
    pub soname: Option<String>,
    /// Libraries that the loader must load.
    pub needed: Vec<String>,
    /// List of folders, which also counts for the libraries of this file's libraries. Empty if there is a RUNPATH.
    pub rpath: String,
    /// List of folders for the libraries of this file only.
    pub runpath: Option<String>,
    /// Symbols that other files must define.
    pub uses: BTreeMap<String, SymbolUse>,
    /// Symbols that other files can use.
    pub defines: BTreeSet<String>,
    /// True if the file contains MPI_Init itself.
    pub has_mpi_init: bool,
    /// Functions that the library exports but that do not work, each with a sentence.
    pub unsupported: BTreeMap<String, String>,
}

/// The time at which the loader must find a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolUse {
    /// When the program starts: a variable, or a function in a file that was linked with `-z now`.
    Start,
    /// When the program calls the function.
    FirstCall,
}

type Header = FileHeader64<Endianness>;

/// Reads a file. The error is a sentence without the file's name.
pub fn read(path: &Path) -> Result<ElfFacts, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    let file = ReadCache::new(File::open(path).map_err(unreadable)?);
    parse(&file)
}

fn parse<'a, R: ReadRef<'a>>(file: R) -> Result<ElfFacts, String> {
    let ident = file.read_bytes_at(0, 20).ok().filter(|bytes| bytes.starts_with(b"\x7fELF"));
    let ident = ident.ok_or("is neither in the ELF format nor a script that begins with #!. Give a program, a library or a script")?;
    let machine = u16::from_le_bytes([ident[18], ident[19]]);
    let name = MACHINES.iter().find(|(known, _)| *known == machine).map(|(_, name)| *name);
    if ident[4] != ELFCLASS64 {
        return Err(
            "is a 32-bit file. Weft has only 64-bit libraries: build the program for 64 bits"
                .to_owned(),
        );
    }
    if machine != own_machine()? {
        let name = name.map_or_else(|| format!("number {machine}"), str::to_owned);
        return Err(format!(
            "is for another processor ({name}). Look at it on a machine that can run it"
        ));
    }
    let broken = |error: object::Error| format!("is damaged: {error}");
    facts(file, machine).map_err(broken)
}

/// Returns the processor for which this program was built.
fn own_machine() -> Result<u16, String> {
    let all = [
        ("x86_64", EM_X86_64),
        ("aarch64", EM_AARCH64),
        ("powerpc64", EM_PPC64),
        ("riscv64", EM_RISCV),
    ];
    let own = std::env::consts::ARCH;
    let found = all.iter().find(|(name, _)| *name == own).map(|(_, machine)| *machine);
    found.ok_or_else(|| format!("cannot be examined: weft does not know the ELF files of {own}"))
}

fn facts<'a, R: ReadRef<'a>>(file: R, machine: u16) -> object::Result<ElfFacts> {
    let header = Header::parse(file)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, file)?;
    let mut facts = ElfFacts::default();
    let is_bound_at_start = read_dynamic(&mut facts, endian, file, &sections)?;
    let symbols = sections.symbols(endian, file, SHT_DYNSYM)?;
    for symbol in symbols.iter().skip(1) {
        let Some(name) = name_of(&symbols, endian, symbol) else { continue };
        if !symbol.is_undefined(endian) && name == UNSUPPORTED {
            facts.unsupported = unsupported(endian, file, &sections, symbol);
        }
        if !mpi_abi::is_symbol(name) {
            continue;
        }
        if !symbol.is_undefined(endian) {
            facts.defines.insert(name.to_owned());
        } else if !symbol.is_weak() {
            // A reference without a relocation is never used.
            facts.uses.insert(name.to_owned(), SymbolUse::FirstCall);
        }
    }
    let Some(types) = RELOCATIONS.iter().find(|types| types.machine == machine) else {
        return Ok(facts);
    };
    for section in sections.iter() {
        let Some((relocations, link)) = section.rela(endian, file)? else { continue };
        if link != symbols.section() {
            continue;
        }
        for relocation in relocations {
            let Some(index) = relocation.symbol(endian, false) else { continue };
            let Some(name) = name_of(&symbols, endian, symbols.symbol(index)?) else { continue };
            let kind = relocation.r_type(endian, false);
            if kind == types.copy && mpi_abi::is_symbol(name) {
                // The program has room for a copy of the library's variable.
                facts.defines.remove(name);
                facts.uses.insert(name.to_owned(), SymbolUse::Start);
            } else if let Some(time) = facts.uses.get_mut(name)
                && (kind != types.jump_slot || is_bound_at_start)
            {
                *time = SymbolUse::Start;
            }
        }
    }
    let all = sections.symbols(endian, file, SHT_SYMTAB)?;
    facts.has_mpi_init = facts.defines.contains("MPI_Init")
        || all.iter().any(|symbol| {
            !symbol.is_undefined(endian) && name_of(&all, endian, symbol) == Some("MPI_Init")
        });
    Ok(facts)
}

fn name_of<'a, R: ReadRef<'a>>(
    symbols: &SymbolTable<'a, Header, R>,
    endian: Endianness,
    symbol: &<Header as FileHeader>::Sym,
) -> Option<&'a str> {
    std::str::from_utf8(symbols.symbol_name(endian, symbol).ok()?).ok()
}

/// Reads the dynamic section. Returns true if the loader finds all functions when the program starts.
fn read_dynamic<'a, R: ReadRef<'a>>(
    facts: &mut ElfFacts,
    endian: Endianness,
    file: R,
    sections: &SectionTable<'a, Header, R>,
) -> object::Result<bool> {
    let Some((entries, link)) = sections.dynamic(endian, file)? else { return Ok(false) };
    let strings = sections.strings(endian, file, link)?;
    let mut is_bound_at_start = false;
    for entry in entries {
        let text = || {
            let text = entry.string(endian, strings);
            text.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        };
        let value = entry.d_val.get(endian);
        match entry.tag(endian) {
            DT_NEEDED => facts.needed.push(text()?),
            DT_SONAME => facts.soname = Some(text()?),
            DT_RPATH => facts.rpath = text()?,
            DT_RUNPATH => facts.runpath = Some(text()?),
            DT_BIND_NOW => is_bound_at_start = true,
            DT_FLAGS => is_bound_at_start |= value & u64::from(DF_BIND_NOW) != 0,
            DT_FLAGS_1 => is_bound_at_start |= value & u64::from(DF_1_NOW) != 0,
            _ => {}
        }
    }
    if facts.runpath.is_some() {
        facts.rpath.clear();
    }
    Ok(is_bound_at_start)
}

/// Reads the text of [`UNSUPPORTED`]: lines of name and sentence, separated by a tab.
fn unsupported<'a, R: ReadRef<'a>>(
    endian: Endianness,
    file: R,
    sections: &SectionTable<'a, Header, R>,
    symbol: &<Header as FileHeader>::Sym,
) -> BTreeMap<String, String> {
    let (address, size) = (symbol.st_value(endian), symbol.st_size(endian));
    let text = sections.iter().find_map(|section| {
        let at = address.checked_sub(section.sh_addr(endian))?;
        let end = at.checked_add(size).filter(|end| *end <= section.sh_size(endian))?;
        let data = section.data(endian, file).ok()?;
        data.get(usize::try_from(at).ok()?..usize::try_from(end).ok()?)
    });
    let text = String::from_utf8_lossy(text.unwrap_or_default());
    let lines = text.lines().filter_map(|line| line.split_once('\t'));
    lines.map(|(name, sentence)| (name.to_owned(), sentence.to_owned())).collect()
}
