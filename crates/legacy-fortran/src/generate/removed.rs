//! Procedures that the standard no longer has, procedures without a C function, and predefined callbacks.

use super::entry_point::{EntryPoint, all_names, module_names};
use super::{BindingSource, OlderBinding, modern};
use std::fmt::Write;
use weft_fortran::data::FunctionForm;

/// An entry point: its name, its parameters in Rust, and its body.
struct Written(&'static str, &'static str, &'static str);

const REMOVED: &[Written] = &[
    Written(
        "mpi_address",
        "location: *mut c_void, address: *mut c_int, ierror: *mut c_int",
        "let mut wide = 0; let code = PMPI_Get_address(special::buffer(location), &raw mut wide); *address = wide as c_int; store_code(ierror, code);",
    ),
    Written(
        "mpi_errhandler_create",
        "function: usize, errhandler: *mut c_int, ierror: *mut c_int",
        "let mut made = Errhandler::NOTHING; let code = weft_fortran_errhandler_create(0, function, &raw mut made); \
         if code == 0 { *errhandler = made.number(); } store_code(ierror, code);",
    ),
    Written(
        "mpi_errhandler_get",
        "comm: *const c_int, errhandler: *mut c_int, ierror: *mut c_int",
        "let mut found = Errhandler::NOTHING; let code = PMPI_Comm_get_errhandler(Comm::of(*comm), &raw mut found); \
         if code == 0 { *errhandler = found.number(); } store_code(ierror, code);",
    ),
    Written(
        "mpi_errhandler_set",
        "comm: *const c_int, errhandler: *const c_int, ierror: *mut c_int",
        "store_code(ierror, PMPI_Comm_set_errhandler(Comm::of(*comm), Errhandler::of(*errhandler)));",
    ),
    Written(
        "mpi_type_extent",
        "datatype: *const c_int, result: *mut c_int, ierror: *mut c_int",
        "let (mut lower, mut extent) = (0, 0); let code = PMPI_Type_get_extent(Datatype::of(*datatype), &raw mut lower, &raw mut extent); \
         *result = extent as c_int; store_code(ierror, code);",
    ),
    Written(
        "mpi_type_lb",
        "datatype: *const c_int, result: *mut c_int, ierror: *mut c_int",
        "let (mut lower, mut extent) = (0, 0); let code = PMPI_Type_get_extent(Datatype::of(*datatype), &raw mut lower, &raw mut extent); \
         *result = lower as c_int; store_code(ierror, code);",
    ),
    Written(
        "mpi_type_ub",
        "datatype: *const c_int, result: *mut c_int, ierror: *mut c_int",
        "let (mut lower, mut extent) = (0, 0); let code = PMPI_Type_get_extent(Datatype::of(*datatype), &raw mut lower, &raw mut extent); \
         *result = (lower + extent) as c_int; store_code(ierror, code);",
    ),
    Written(
        "mpi_type_hvector",
        "count: *const c_int, blocklength: *const c_int, stride: *const c_int, oldtype: *const c_int, newtype: *mut c_int, ierror: *mut c_int",
        "let mut made = Datatype::NOTHING; \
         let code = PMPI_Type_create_hvector(*count, *blocklength, *stride as isize, Datatype::of(*oldtype), &raw mut made); \
         if code == 0 { *newtype = made.number(); } store_code(ierror, code);",
    ),
    Written(
        "mpi_type_hindexed",
        "count: *const c_int, lengths: *mut c_int, displacements: *const c_int, oldtype: *const c_int, newtype: *mut c_int, ierror: *mut c_int",
        "let mut made = Datatype::NOTHING; let mut wide: Vec<_> = (0..length(*count)).map(|i| *displacements.add(i) as isize).collect(); \
         let code = PMPI_Type_create_hindexed(*count, lengths, wide.as_mut_ptr(), Datatype::of(*oldtype), &raw mut made); \
         if code == 0 { *newtype = made.number(); } store_code(ierror, code);",
    ),
    // The C function of the same name knows MPI_LB and MPI_UB.
    Written(
        "mpi_type_struct",
        "count: *const c_int, lengths: *mut c_int, displacements: *const c_int, types: *mut c_int, newtype: *mut c_int, ierror: *mut c_int",
        "let mut made = Datatype::NOTHING; let mut wide: Vec<_> = (0..length(*count)).map(|i| *displacements.add(i) as isize).collect(); \
         let mut types = NumberedHandles::<Datatype>::read(types, length(*count)); \
         let code = PMPI_Type_struct(*count, lengths, wide.as_mut_ptr(), types.pass(), &raw mut made); \
         if code == 0 { *newtype = made.number(); } store_code(ierror, code);",
    ),
    Written("mpi_f_sync_reg", "_buffer: *mut c_void", ""),
    Written(
        "mpi_status_f082f",
        "from: *const c_int, to: *mut c_int, ierror: *mut c_int",
        "std::ptr::copy(from, to, STATUS_NUMBERS); store_code(ierror, 0);",
    ),
    Written(
        "mpi_status_f2f08",
        "from: *const c_int, to: *mut c_int, ierror: *mut c_int",
        "std::ptr::copy(from, to, STATUS_NUMBERS); store_code(ierror, 0);",
    ),
    // Addresses as C_PTR, in the module `mpi`.
    Written(
        "mpi_alloc_mem_cptr",
        "size: *const isize, info: *const c_int, at: *mut c_void, ierror: *mut c_int",
        "store_code(ierror, PMPI_Alloc_mem(*size, Info::of(*info), at));",
    ),
    Written(
        "mpi_win_allocate_cptr",
        "size: *const isize, unit: *const c_int, info: *const c_int, comm: *const c_int, at: *mut c_void, win: *mut c_int, ierror: *mut c_int",
        "let mut made = Win::NOTHING; let code = PMPI_Win_allocate(*size, *unit, Info::of(*info), Comm::of(*comm), at, &raw mut made); \
         if code == 0 { *win = made.number(); } store_code(ierror, code);",
    ),
    Written(
        "mpi_win_allocate_shared_cptr",
        "size: *const isize, unit: *const c_int, info: *const c_int, comm: *const c_int, at: *mut c_void, win: *mut c_int, ierror: *mut c_int",
        "let mut made = Win::NOTHING; let code = PMPI_Win_allocate_shared(*size, *unit, Info::of(*info), Comm::of(*comm), at, &raw mut made); \
         if code == 0 { *win = made.number(); } store_code(ierror, code);",
    ),
    Written(
        "mpi_win_shared_query_cptr",
        "win: *const c_int, rank: *const c_int, size: *mut isize, unit: *mut c_int, at: *mut c_void, ierror: *mut c_int",
        "store_code(ierror, PMPI_Win_shared_query(Win::of(*win), *rank, size, unit, at));",
    ),
    // Its address counts: it is never called.
    Written("mpi_conversion_fn_null", "", ""),
    Written("mpi_conversion_fn_null_c", "", ""),
];

/// Kinds of predefined functions of attributes, and the type of their integers.
const ATTRIBUTES: [(&str, &str); 4] =
    [("comm_", "isize"), ("type_", "isize"), ("win_", "isize"), ("", "c_int")];

pub fn write(source: &BindingSource) -> String {
    let mut out = String::from(
        "unsafe extern \"C\" {\n    fn PMPI_Type_struct(count: c_int, lengths: *mut c_int, displacements: *mut isize, types: *mut Datatype, newtype: *mut Datatype) -> c_int;\n}\n\n",
    );
    for Written(name, parameters, body) in REMOVED {
        out += &written(source, name, parameters, body);
    }
    for (kind, integer) in ATTRIBUTES {
        let copy = format!(
            "_object: *mut c_int, _key: *mut c_int, _extra: *mut {integer}, from: *mut {integer}, to: *mut {integer}, flag: *mut c_int, ierror: *mut c_int"
        );
        let delete = format!(
            "_object: *mut c_int, _key: *mut c_int, _value: *mut {integer}, _extra: *mut {integer}, ierror: *mut c_int"
        );
        out += &written(
            source,
            &format!("mpi_{kind}null_copy_fn"),
            &copy,
            "let _ = (from, to); *flag = 0; store_code(ierror, 0);",
        );
        out += &written(
            source,
            &format!("mpi_{kind}dup_fn"),
            &copy,
            "*to = *from; *flag = 1; store_code(ierror, 0);",
        );
        out += &written(
            source,
            &format!("mpi_{kind}null_delete_fn"),
            &delete,
            "store_code(ierror, 0);",
        );
    }
    // The program's name for MPI_CONVERSION_FN_NULL is one of these.
    let names = [
        "mpi_conversion_fn_null_",
        "mpi_conversion_fn_null",
        "mpi_conversion_fn_null__",
        "MPI_CONVERSION_FN_NULL",
        "__mpi_f08_callbacks_MOD_mpi_conversion_fn_null",
        "mpi_f08_callbacks_mp_mpi_conversion_fn_null_",
    ];
    out.push_str("mod no_conversion {\n    unsafe extern \"C\" {\n");
    for name in names {
        writeln!(out, "        pub fn {name}();").unwrap();
    }
    let all = names.map(|name| format!("no_conversion::{name} as *const () as usize")).join(", ");
    write!(out, "    }}\n}}\n\nfn is_no_conversion(function: usize) -> bool {{\n    [{all}].contains(&function)\n}}\n\n").unwrap();
    out
}

fn written(source: &BindingSource, name: &str, parameters: &str, body: &str) -> String {
    let names = parameters
        .split(", ")
        .filter(|p| !p.is_empty())
        .map(|p| p.split(':').next().expect("a name"));
    let names = names.collect::<Vec<_>>().join(", ");
    let (name, parameters, body) = (name.to_owned(), parameters.to_owned(), body.to_owned());
    let mut entry = EntryPoint {
        name,
        parameters,
        form: FunctionForm::Plain,
        names,
        result: "",
        body,
        further: Vec::new(),
        described: String::new(),
    };
    entry.further = modern::names(source, &entry);
    if entry.name.ends_with("_fn") || entry.name.contains("_fn_null") {
        entry.further.extend(module_names("mpi_f08_callbacks", &entry.name));
    }
    if entry.name.starts_with("mpi_status_") {
        for profiling in ["", "p"] {
            let item = format!("{profiling}{}", entry.name);
            entry.further.extend(module_names("mpi_f08_types", &item));
        }
    }
    // The module's procedure with a descriptor does nothing with its argument.
    if entry.name == "mpi_f_sync_reg" && source.target == OlderBinding::Mpich {
        entry
            .further
            .extend(["mpi_f_sync_reg_f08ts_", "pmpir_f_sync_reg_f08ts_"].map(str::to_owned));
    }
    all_names(&entry)
}
