//! The entry points.

use super::argument::{EntryArgument, argument};
use super::{LegacyTarget, Source};
use std::fmt::Write;
use weft_abi_data::AbiFunction;

/// Functions with a body of their own: their name without `MPI_`, and the body.
const OWN: &[(&str, &str)] = &[
    (
        "Comm_create_keyval",
        "attributes::create_key::<Own, Comm>(standard().MPI_Comm_create_keyval, comm_copy_attr_fn, comm_delete_attr_fn, comm_keyval, extra_state)",
    ),
    (
        "Keyval_create",
        "attributes::create_key::<Own, Comm>(standard().MPI_Comm_create_keyval, copy_fn, delete_fn, keyval, extra_state)",
    ),
    (
        "Type_create_keyval",
        "attributes::create_key::<Own, Datatype>(standard().MPI_Type_create_keyval, type_copy_attr_fn, type_delete_attr_fn, type_keyval, extra_state)",
    ),
    (
        "Win_create_keyval",
        "attributes::create_key::<Own, Win>(standard().MPI_Win_create_keyval, win_copy_attr_fn, win_delete_attr_fn, win_keyval, extra_state)",
    ),
    ("Op_create", "calls::made::<Own, Op>(op, |op| create_op::<Own>(user_fn, commute, op))"),
    (
        "Op_create_c",
        "calls::made::<Own, Op>(op, |op| callbacks::create_op_c::<Own>(user_fn, commute, op))",
    ),
    (
        "Comm_create_errhandler",
        "calls::made::<Own, Errhandler>(errhandler, |to| callbacks::create_errhandler::<Own, Comm>(0, comm_errhandler_fn, to))",
    ),
    (
        "Session_create_errhandler",
        "calls::made::<Own, Errhandler>(errhandler, |to| callbacks::create_errhandler::<Own, Session>(1, session_errhandler_fn, to))",
    ),
    (
        "Win_create_errhandler",
        "calls::made::<Own, Errhandler>(errhandler, |to| callbacks::create_errhandler::<Own, Win>(2, win_errhandler_fn, to))",
    ),
    (
        "File_create_errhandler",
        "calls::made::<Own, Errhandler>(errhandler, |to| callbacks::create_errhandler::<Own, File>(3, file_errhandler_fn, to))",
    ),
    (
        "Grequest_start",
        "calls::made::<Own, Request>(request, |to| generalized::start::<Own>(query_fn, free_fn, cancel_fn, extra_state, to))",
    ),
    (
        "Register_datarep",
        "callbacks::register_datarep::<Own, c_int>(datarep, read_conversion_fn, write_conversion_fn, dtype_file_extent_fn, extra_state)",
    ),
    (
        "Register_datarep_c",
        "callbacks::register_datarep::<Own, i64>(datarep, read_conversion_fn, write_conversion_fn, dtype_file_extent_fn, extra_state)",
    ),
    ("Abi_get_version", "calls::abi_version(abi_major, abi_minor)"),
    // Which types Fortran has is a question of the standard ABI, whose library is used by several compilers.
    (
        "Abi_get_fortran_info",
        "calls::made::<Own, Info>(info, |to| { if !to.is_null() { *to = constants::MPI_INFO_NULL as usize; } 0 })",
    ),
    ("Get_version", "calls::version::<Own>(version, subversion)"),
    ("Error_class", "calls::error_class::<Own>(errorcode, errorclass)"),
    (
        "Error_string",
        "calls::error_string::<Own>(errorcode, string, own::MPI_MAX_ERROR_STRING as usize, resultlen)",
    ),
    (
        "Comm_idup",
        "duplicate(newcomm, request, |newcomm, request| (standard().MPI_Comm_idup)(comm.to_standard(), newcomm, request))",
    ),
    (
        "Comm_idup_with_info",
        "duplicate(newcomm, request, |newcomm, request| (standard().MPI_Comm_idup_with_info)(comm.to_standard(), info.to_standard(), newcomm, request))",
    ),
];

/// Functions that are written with those for Fortran.
fn is_left_out(name: &str) -> bool {
    name.ends_with("_toint") || name.ends_with("_fromint")
}

/// Functions after which a communicator of MPI_Comm_idup may be complete.
fn completes(name: &str) -> bool {
    let kind = name.trim_start_matches("MPI_");
    kind.starts_with("Wait") || kind.starts_with("Test") || kind.starts_with("Request_get_status")
}

pub fn write(source: &Source) -> String {
    let mut out = String::new();
    for f in source.abi.functions.iter().filter(|f| !is_left_out(&f.name)) {
        out += &entry(source, f);
    }
    out
}

fn entry(source: &Source, f: &AbiFunction) -> String {
    let arguments: Vec<_> = f.params.iter().map(|p| argument(source, f, p)).collect();
    let list = arguments.iter().map(|a| format!("{}: {}", a.name, a.rust_type));
    let list = list.collect::<Vec<_>>().join(", ");
    let names = arguments.iter().map(|a| a.name.as_str()).collect::<Vec<_>>().join(", ");
    let result = match f.returns.as_str() {
        "double" => "f64",
        "MPI_Aint" => "isize",
        _ => "c_int",
    };
    let own = OWN.iter().find(|(name, _)| f.name[4..] == **name);
    let body = own.map_or_else(|| body(source, f, &arguments), |(_, body)| (*body).to_owned());
    let further = extension_name(source, f);
    let all = std::iter::once(f.name.clone()).chain(further);
    all.map(|name| both(&name, &list, &names, result, &body)).collect()
}

/// Returns the name that a function had as an extension of the older ABI's library before the standard had it.
fn extension_name(source: &Source, f: &AbiFunction) -> Option<String> {
    let has = |base: &str| f.params.iter().any(|p| p.base == base && p.stars == 0);
    let name = f.name.strip_prefix("MPI_")?;
    match source.target {
        LegacyTarget::Mpich => {
            let what = name.strip_prefix("Remove_error_")?;
            Some(format!("MPIX_Delete_error_{what}"))
        }
        LegacyTarget::OpenMpi => {
            let is_persistent = name.ends_with("_init") && has("MPI_Comm") && has("MPI_Info");
            let is_collective = is_persistent && !["Psend_init", "Precv_init"].contains(&name);
            is_collective.then(|| format!("MPIX_{name}"))
        }
    }
}

/// Writes `MPI_X` and `PMPI_X` over one function. Neither calls the other, so that a profiling library sees each call once.
pub fn both(name: &str, list: &str, names: &str, result: &str, body: &str) -> String {
    format!(
        "const _: () = {{\n    #[inline(never)]\n    unsafe extern \"C\" fn call({list}) -> {result} {{\n        \
         // SAFETY: the program keeps MPI's rules for its arguments.\n        unsafe {{ {body} }}\n    }}\n    \
         #[unsafe(no_mangle)]\n    pub unsafe extern \"C\" fn {name}({list}) -> {result} {{\n        // SAFETY: as in `call`.\n        unsafe {{ call({names}) }}\n    }}\n    \
         #[unsafe(no_mangle)]\n    pub unsafe extern \"C\" fn P{name}({list}) -> {result} {{\n        // SAFETY: as in `call`.\n        unsafe {{ call({names}) }}\n    }}\n}};\n\n"
    )
}

fn body(source: &Source, f: &AbiFunction, arguments: &[EntryArgument]) -> String {
    let mut out = String::new();
    for a in arguments.iter().filter(|a| !a.before.is_empty()) {
        write!(out, "{} ", a.before).unwrap();
    }
    let pass = arguments.iter().map(|a| a.pass.as_str()).collect::<Vec<_>>().join(", ");
    let call = format!("(standard().{})({pass})", f.name);
    if f.returns != "int" {
        return format!("{out}{call}");
    }
    let after: Vec<_> =
        arguments.iter().map(|a| a.after.as_str()).filter(|a| !a.is_empty()).collect();
    // The value of a predefined attribute may be a constant.
    let gets = f.name.ends_with("_get_attr") || f.name == "MPI_Attr_get";
    let value = gets.then_some(
        "attributes::convert_value::<Own>(key_to_standard(KEYVALS, KEY), attribute_val, flag);",
    );
    let value = value.map(|text| {
        let key = f.params.iter().find(|p| p.name.ends_with("keyval")).expect("the key");
        text.replace("KEY)", &format!("{})", key.name))
    });
    let pending = match source.target {
        LegacyTarget::Mpich if completes(&f.name) => "DUPLICATES.store_complete();",
        _ => "",
    };
    if after.is_empty() && value.is_none() && pending.is_empty() {
        return format!("{out}codes::from_standard::<Own>({call})");
    }
    let after = after.join(" ");
    let value = value.unwrap_or_default();
    format!("{out}let code = {call}; {after} {value} {pending} codes::from_standard::<Own>(code)")
}
