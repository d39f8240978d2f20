//! Entry points for programs with the module `mpi_f08` alone: comparisons of handles, and in MPICH's ABI buffers as descriptors.

use super::argument::rust_name;
use super::entry_point::{EntryPoint, module_names};
use super::handles::CLASSES;
use super::{BindingConstant, BindingSource, OlderBinding};
use std::collections::HashSet;
use std::fmt::Write;
use weft_fortran::data::{FunctionForm, Procedure, ProcedureParameter};

/// Returns the names of an entry point for `mpi_f08`, with addresses of buffers.
pub fn names(source: &BindingSource, entry: &EntryPoint) -> Vec<String> {
    match source.target {
        OlderBinding::OpenMpi => {
            vec![format!("{}_f08_", entry.name), format!("p{}_f08_", entry.name)]
        }
        OlderBinding::Mpich => mpich_names(entry, "f08"),
    }
}

/// Returns MPICH's names of an entry point. MPICH has had two names for forms with large counts.
fn mpich_names(entry: &EntryPoint, module: &str) -> Vec<String> {
    let ends = match entry.form {
        FunctionForm::Plain => vec![format!("{module}_")],
        FunctionForm::Large => vec![format!("{module}_large_"), format!("c_{module}_")],
    };
    let stems = [entry.name.clone(), entry.name.replacen("mpi", "pmpir", 1)];
    stems.iter().flat_map(|stem| ends.iter().map(move |end| format!("{stem}_{end}"))).collect()
}

/// Returns the names of functions that Open MPI's module `mpi` calls by a name of their own.
pub fn function_names(source: &BindingSource, name: &str) -> Vec<String> {
    if source.target != OlderBinding::OpenMpi
        || !["mpi_wtime", "mpi_wtick", "mpi_aint_add", "mpi_aint_diff"].contains(&name)
    {
        return Vec::new();
    }
    let stems = [format!("{name}_f90"), format!("p{name}_f90")];
    let spellings = |stem: &String| {
        [stem.clone(), format!("{stem}_"), format!("{stem}__"), stem.to_uppercase()]
    };
    stems.iter().flat_map(spellings).collect()
}

/// Returns the names of Open MPI's extension for persistent collective operations, which became a part of the standard.
pub fn extension_names(source: &BindingSource, procedure: &Procedure) -> Vec<String> {
    let is_collective =
        procedure.name.ends_with("_init") && procedure.find("COMMUNICATOR").is_some();
    let is_collective = is_collective && procedure.find("INFO").is_some();
    if source.target != OlderBinding::OpenMpi
        || !is_collective
        || procedure.find("PARTITION").is_some()
    {
        return Vec::new();
    }
    let name = procedure.name.to_lowercase().replacen("mpi_", "mpix_", 1);
    let stems = [name.clone(), format!("p{name}")];
    let ends = ["", "_", "__", "_f08_"];
    let lower = stems.iter().flat_map(|stem| ends.map(|end| format!("{stem}{end}")));
    lower.chain(stems.iter().map(|stem| stem.to_uppercase())).collect()
}

/// A buffer of a procedure: its name, the names of its count and datatype if a datatype can describe a section, and the variant of
/// `SectionUse`.
struct DescribedBuffer {
    name: String,
    elements: Option<[String; 2]>,
    section: String,
}

/// Procedures that use only the address of a buffer, whatever its shape.
const ADDRESSES: [&str; 4] =
    ["MPI_Get_address", "MPI_Free_mem", "MPI_Fetch_and_op", "MPI_Compare_and_swap"];

/// Returns true if a datatype of a complete section cannot stand for the count and the datatype: a reduction needs the datatype itself,
/// and other operations the blocks of several processes or partitions. An operation on a window takes such a datatype.
fn needs_datatype(procedure: &Procedure) -> bool {
    let name = procedure.name.to_lowercase();
    let blocks = ["gather", "scatter", "alltoall"].iter().any(|part| name.contains(part));
    let reduces = procedure.find("OPERATION").is_some() && procedure.find("WINDOW").is_none();
    blocks || reduces || procedure.find("PARTITION").is_some()
}

/// Returns the variant of `SectionUse` for a buffer that no datatype describes.
fn section_use(procedure: &Procedure, p: &ProcedureParameter) -> &'static str {
    let name = procedure.name.trim_end_matches("_c");
    let packs = ["MPI_Pack", "MPI_Unpack"].iter().any(|stem| name.starts_with(stem));
    let is_collective = procedure.find("COMMUNICATOR").is_some() && needs_datatype(procedure);
    match () {
        // The second call of a split collective operation has the buffer of the first.
        () if ADDRESSES.contains(&name) || name.starts_with("MPI_File_") => "Address",
        // A copy must not outlive the call.
        () if procedure.find("REQUEST").is_some() => "Refuse",
        () if packs || is_collective || name == "MPI_Reduce_local" => {
            if p.is_out() {
                "Copy(SectionCopies::Both)"
            } else {
                "Copy(SectionCopies::In)"
            }
        }
        () => "Refuse",
    }
}

/// Returns the buffers of a procedure. A count is used with its datatype alone: two buffers may share them.
fn buffers(procedure: &Procedure) -> Vec<DescribedBuffer> {
    let all: Vec<_> = procedure.parameters.iter().collect();
    let of = |i: usize| {
        let rest = &all[i + 1..];
        let end = rest.iter().position(|p| p.kind == "BUFFER").unwrap_or(rest.len());
        let own = &rest[..end];
        let count = own.iter().find(|p| p.kind.contains("NUM_ELEM"))?;
        let datatype = own.iter().find(|p| p.kind == "DATATYPE")?;
        let plain = [count, datatype].iter().all(|p| !p.is_array());
        let only = !needs_datatype(procedure);
        (plain && only).then(|| [rust_name(&count.name), rust_name(&datatype.name)])
    };
    let buffers = all.iter().enumerate().filter(|(_, p)| p.kind == "BUFFER");
    let describe = |(i, p): (usize, &&ProcedureParameter)| {
        let elements = of(i);
        let section = match &elements {
            Some([count, datatype]) => {
                let fields = [("count", count), ("datatype", datatype)].map(|(field, name)| {
                    if field == name { field.to_owned() } else { format!("{field}: {name}") }
                });
                format!("Datatype(BufferElements {{ {} }})", fields.join(", "))
            }
            None => section_use(procedure, p).to_owned(),
        };
        DescribedBuffer { name: rust_name(&p.name), elements, section }
    };
    buffers.map(describe).collect()
}

/// Writes the entry points with descriptors over `call`, the body of the entry point with addresses.
pub fn described(procedure: &Procedure, entry: &EntryPoint) -> String {
    let EntryPoint { parameters, names, form, .. } = entry;
    let (mut parameters, mut names, mut before) =
        (parameters.clone(), format!("{names},"), String::new());
    let counts = if *form == FunctionForm::Large { "i64" } else { "c_int" };
    let comm = match procedure.find("COMMUNICATOR") {
        Some(comm) => format!("Some(*{})", comm.name),
        None => "None".to_owned(),
    };
    let code = if procedure.has_error() { "ierror" } else { "null_mut()" };
    for DescribedBuffer { name, elements, section } in buffers(procedure) {
        parameters = parameters.replacen(
            &format!("{name}: *mut c_void"),
            &format!("{name}: *const ArrayDescriptor"),
            1,
        );
        write!(
            before,
            "let Some({name}) = SectionView::<{counts}>::of({name}, SectionUse::{section}, &DATATYPES) else \
             {{ return store_code({code}, refuse_section(\"{}\", {comm})) }}; ",
            procedure.name
        )
        .unwrap();
        let mut replace = |from: &str, to: String| {
            let spaced = format!(" {names}").replacen(&format!(" {from},"), &format!(" {to},"), 1);
            names = spaced.trim_start().to_owned();
        };
        if let Some([count, datatype]) = &elements {
            replace(count, format!("{name}.count()"));
            replace(datatype, format!("{name}.datatype()"));
        }
        replace(&name, format!("{name}.at()"));
    }
    let names = names.trim_end_matches(',');
    let mut out = String::new();
    for name in mpich_names(entry, "f08ts") {
        write!(
            out,
            "    #[unsafe(no_mangle)]\n    pub unsafe extern \"C\" fn {name}({parameters}) {{\n        \
             // SAFETY: as in `call`; the descriptors are gfortran's.\n        unsafe {{ {before} call({names}) }}\n    }}\n"
        )
        .unwrap();
    }
    out
}

/// Writes the entry points that return the address of a detached buffer: a `C_PTR`, which `mpif.h` cannot receive.
pub fn detaching(source: &BindingSource, entry: &EntryPoint) -> String {
    let EntryPoint { parameters, body, .. } = entry;
    // The C function stores at the program's variable, if there is one.
    let body =
        body.replace("let _ = buffer_addr; let mut buffer_addr_c: *mut c_void = null_mut();", "");
    let body = body.replace("(&raw mut buffer_addr_c).cast()", "buffer_addr");
    let mut all = names(source, entry);
    if source.target == OlderBinding::OpenMpi {
        let name = entry.name.replacen("mpi_", "ompi_", 1);
        all.extend([format!("{name}_f08"), format!("p{name}_f08")]);
    }
    let one = |name: &String| {
        format!(
            "    #[unsafe(no_mangle)]\n    pub unsafe extern \"C\" fn {name}({parameters}) {{\n        \
             // SAFETY: as in `call`.\n        unsafe {{ {body} }}\n    }}\n"
        )
    };
    all.iter().map(one).collect()
}

/// Writes comparisons of handles, which are structures of a number.
pub fn write(source: &BindingSource) -> String {
    let mut out = String::new();
    let mut add = |module: &str, item: String, operator: &str| {
        for name in module_names(module, &item) {
            write!(
                out,
                "#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {name}(a: *const c_int, b: *const c_int) -> c_int {{\n    \
                 // SAFETY: both are handles of the program.\n    c_int::from(unsafe {{ *a {operator} *b }})\n}}\n\n"
            )
            .unwrap();
        }
    };
    for (class, _, _) in CLASSES {
        let class = class.to_lowercase();
        match source.target {
            OlderBinding::OpenMpi => {
                add("mpi_f08_types", format!("ompi_{class}_op_eq"), "==");
                add("mpi_f08_types", format!("ompi_{class}_op_ne"), "!=");
            }
            OlderBinding::Mpich => {
                for (form, operator) in [
                    ("eq", "=="),
                    ("neq", "!="),
                    ("f08_eq_f", "=="),
                    ("f08_neq_f", "!="),
                    ("f_eq_f08", "=="),
                    ("f_neq_f08", "!="),
                    ("f08_ne_f", "!="),
                    ("f_ne_f08", "!="),
                ] {
                    add("mpi_f08_types", format!("mpi_{class}_{form}"), operator);
                }
                add("mpi_constants", format!("{class}eq"), "==");
                add("mpi_constants", format!("{class}neq"), "!=");
            }
        }
    }
    out += &handle_variables(source);
    if source.target == OlderBinding::Mpich {
        writeln!(out, "const COMM_SELF: c_int = {};", source.c("MPI_COMM_SELF")).unwrap();
        writeln!(out, "const ERR_BUFFER: c_int = {};", source.c("MPI_ERR_BUFFER")).unwrap();
        out += DATATYPES;
    }
    out
}

/// Writes the variables of predefined handles in `mpi_f08` of Open MPI 3 and 4.0: structures of a number.
fn handle_variables(source: &BindingSource) -> String {
    let mut out = String::new();
    if source.target == OlderBinding::Mpich {
        return out;
    }
    let mut seen = HashSet::new();
    for BindingConstant { name, c, fortran } in &source.constants {
        let (None, Some(number)) = (c, fortran) else { continue };
        let name = name.to_lowercase();
        let name = name.strip_suffix("_t").unwrap_or(&name);
        if name.starts_with("mpi_") && seen.insert(name.to_owned()) {
            writeln!(out, "#[unsafe(no_mangle)]\npub static ompi_f08_{name}: c_int = {number};")
                .unwrap();
        }
    }
    out
}

/// The C library's functions for datatypes, with numbers as handles, and the refusal of a section.
const DATATYPES: &str = "mod datatype {\n    use super::*;\n    #[allow(clashing_extern_declarations)]\n    unsafe extern \"C\" {\n        \
    fn PMPI_Type_size(datatype: c_int, size: *mut c_int) -> c_int;\n        \
    fn PMPI_Type_contiguous(count: c_int, old: c_int, new: *mut c_int) -> c_int;\n        \
    fn PMPI_Type_create_hvector(count: c_int, block: c_int, stride: isize, old: c_int, new: *mut c_int) -> c_int;\n        \
    fn PMPI_Type_create_hindexed_block(count: c_int, block: c_int, places: *mut isize, old: c_int, new: *mut c_int) -> c_int;\n        \
    fn PMPI_Type_commit(datatype: *mut c_int) -> c_int;\n        pub fn PMPI_Comm_call_errhandler(comm: c_int, code: c_int) -> c_int;\n        fn PMPI_Type_free(datatype: *mut c_int) -> c_int;\n    }\n    \
    pub static DATATYPES: DatatypeFunctions = DatatypeFunctions {\n        size: PMPI_Type_size,\n        contiguous: PMPI_Type_contiguous,\n        \
    hvector: PMPI_Type_create_hvector,\n        hindexed_block: PMPI_Type_create_hindexed_block,\n        commit: PMPI_Type_commit,\n        free: PMPI_Type_free,\n    };\n}\nuse datatype::DATATYPES;\n\n\
    /// Says that a section is refused, and calls the error handler of the communicator, or of MPI_COMM_SELF.\nfn refuse_section(name: &str, comm: Option<c_int>) -> c_int {\n    \
    eprintln!(\"weft: {name}: the call got a section of an array with gaps, and its buffer stays in use after the call; pass a copy of the section\");\n    \
    // SAFETY: the library checks the handle.\n    unsafe { datatype::PMPI_Comm_call_errhandler(comm.unwrap_or(COMM_SELF), ERR_BUFFER) };\n    ERR_BUFFER\n}\n\n";
