//! The conversion of one parameter: a table by the parameter's kind. In the texts `$` is the parameter's name, `#` the number of its
//! elements, and `@` the class of its handles.

use super::BindingSource;
use super::handles::CLASSES;
use weft_abi_data::rust_types::{is_reserved, scalar_type};
use weft_fortran::data::{Procedure, ProcedureParameter};

/// A parameter of an entry point.
#[derive(Default)]
pub struct ParameterRow {
    /// Rust type of Fortran's argument. Empty if only C has the parameter.
    pub declare: String,
    /// Statement before the call.
    pub before: String,
    /// Argument of the C function.
    pub pass: String,
    /// Statement after the call; `code` is the result of the C function.
    pub after: String,
    /// True if the length of a text is passed after all arguments.
    pub hidden: bool,
}

fn row(declare: &str, before: &str, pass: &str, after: &str) -> ParameterRow {
    let [declare, before, pass, after] = [declare, before, pass, after].map(str::to_owned);
    ParameterRow { declare, before, pass, after, hidden: false }
}

/// Returns the Rust type of a C type.
pub fn rust_type(c_type: &str) -> String {
    let base = c_type.trim_end_matches("[]").trim_end_matches(['*', ' ']).trim();
    let mut stars = c_type.matches('*').count() + c_type.matches("[]").count();
    let class =
        base.strip_prefix("MPI_").filter(|name| CLASSES.iter().any(|class| class.0 == *name));
    let is_function = base.ends_with("_function") || base.ends_with("_function_c");
    if is_function {
        // A function's type is a pointer already.
        stars -= 1;
    }
    let base = match scalar_type(base) {
        Some(scalar) => scalar,
        None if base == "MPI_Status" => "c_int",
        None if is_function => "usize",
        None => class.unwrap_or_else(|| panic!("no Rust type for {c_type}")),
    };
    "*mut ".repeat(stars) + base
}

/// Returns the Rust name of a parameter, to which letters may be appended.
pub fn rust_name(name: &str) -> String {
    if is_reserved(name) { format!("{name}_") } else { name.to_owned() }
}

/// Returns the number of elements of an array of handles.
fn elements(procedure: &Procedure, p: &ProcedureParameter) -> String {
    if p.length != "*" {
        return format!("length(*{})", rust_name(&p.length));
    }
    let is_neighborhood = procedure.name.to_lowercase().contains("neighbor");
    let (side, peers) = match p.name.starts_with("send") {
        true => ("sendbuf", "Destinations"),
        false => ("recvbuf", "Sources"),
    };
    let peers = if is_neighborhood { peers } else { "All" };
    format!(
        "if special::is_in_place({side}) {{ 0 }} else {{ QUERIES.count(Comm::of(*comm), PeerGroup::{peers}) }}"
    )
}

fn handles(
    source: &BindingSource,
    procedure: &Procedure,
    p: &ProcedureParameter,
    class: &str,
) -> ParameterRow {
    let by_address = p.types[0].contains('*');
    let mut row = match (p.is_array(), by_address, p.is_in(), p.is_out()) {
        _ if source.is_number(class) && (p.is_array() || by_address) => {
            row("*mut c_int", "", "$.cast()", "")
        }
        (false, false, ..) => row("*const c_int", "", "@::of(*$)", ""),
        (false, true, false, _) => row(
            "*mut c_int",
            "let mut $_c = @::NOTHING;",
            "&raw mut $_c",
            "if !$_c.is_nothing() { *$ = $_c.number(); }",
        ),
        (false, true, true, _) => {
            row("*mut c_int", "let mut $_c = @::of(*$);", "&raw mut $_c", "*$ = $_c.number();")
        }
        (true, _, true, false) => {
            row("*mut c_int", "let mut $_c = NumberedHandles::<@>::read($, #);", "$_c.pass()", "")
        }
        (true, _, true, true) => row(
            "*mut c_int",
            "let mut $_c = NumberedHandles::<@>::read($, #);",
            "$_c.pass()",
            "$_c.store();",
        ),
        (true, _, false, _) => row(
            "*mut c_int",
            "let mut $_c = NumberedHandles::<@>::room($, #);",
            "$_c.pass()",
            "$_c.store();",
        ),
    };
    if row.before.contains('#') {
        row.before = row.before.replace('#', &elements(procedure, p));
    }
    for text in [&mut row.before, &mut row.pass] {
        *text = text.replace('@', class);
    }
    row
}

/// Returns the maximum length of a text that C writes, with the NUL.
fn capacity(procedure: &Procedure, p: &ProcedureParameter) -> String {
    let has = |name: &str| procedure.parameters.iter().any(|p| p.name == name);
    match (p.length.as_str(), p.name.as_str()) {
        ("", "datarep") => "MPI_MAX_DATAREP_STRING as usize".to_owned(),
        ("", "key") => "MPI_MAX_INFO_KEY as usize".to_owned(),
        ("", _) if has("buflen") => "length(buflen_c)".to_owned(),
        ("", _) if has("pset_len") => "length(pset_len_c)".to_owned(),
        ("valuelen", _) => "length(*valuelen) + 1".to_owned(),
        ("", _) => "MPI_MAX_PORT_NAME as usize".to_owned(),
        (constant, _) => format!("{constant} as usize"),
    }
}

fn texts(procedure: &Procedure, p: &ProcedureParameter) -> ParameterRow {
    // Leading blanks are significant, except in info objects and in commands.
    let trims = ["MPI_Info_", "MPI_Comm_spawn"].iter().any(|stem| procedure.name.starts_with(stem));
    let leading = if trims { "LeadingBlanks::Trim" } else { "LeadingBlanks::Keep" };
    let mut row = match (p.kind.as_str(), p.is_out()) {
        ("STRING_ARRAY", _) => {
            let count = if p.name.starts_with("array") { "Some(*count)" } else { "None" };
            let read = format!(
                "TextArray::read(TextColumn {{ first: $, len: $_len, step: 1, count: {count} }})"
            );
            let before = format!(
                "let mut $_c = if special::is_no_argument($) {{ None }} else {{ Some({read}) }};"
            );
            row("*const c_char", &before, "$_c.as_mut().map_or(null_mut(), TextArray::pass)", "")
        }
        ("STRING_2DARRAY", _) => {
            let before = "let mut $_c = if special::is_no_argument($) { None } else { Some(ArgumentLists::read($, $_len, *count)) };";
            row("*const c_char", before, "$_c.as_mut().map_or(null_mut(), ArgumentLists::pass)", "")
        }
        (_, false) => {
            let before = format!("let mut $_c = PaddedText::read($, $_len, {leading});");
            row("*const c_char", &before, "$_c.pass()", "")
        }
        (_, true) => {
            let has = |name: &str| procedure.parameters.iter().any(|p| p.name == name);
            let flag = if has("flag") { " && *flag != 0" } else { "" };
            // If the given length is 0, the program asks only for the length.
            let length =
                ["buflen", "pset_len"].into_iter().find(|name| p.length.is_empty() && has(name));
            let asks =
                length.map(|length| format!("let $_wanted = *{length} > 0; ")).unwrap_or_default();
            let wanted = if asks.is_empty() { "" } else { " && $_wanted" };
            let before =
                format!("{asks}let mut $_c = PaddedText::room({});", capacity(procedure, p));
            row(
                "*mut c_char",
                &before,
                "$_c.pass()",
                &format!("if code == 0{flag}{wanted} {{ $_c.store($, $_len); }}"),
            )
        }
    };
    row.hidden = true;
    row
}

/// Returns the row of an index. Indices of arrays count from 1 in Fortran.
fn indices(procedure: &Procedure, p: &ProcedureParameter) -> Option<ParameterRow> {
    let of_requests = p.direction == "out" && procedure.find("REQUEST").is_some();
    match (of_requests, p.is_array()) {
        (true, false) => Some(row(
            "*mut c_int",
            "let mut $_c = MPI_UNDEFINED;",
            "&raw mut $_c",
            "*$ = if $_c == MPI_UNDEFINED { $_c } else { $_c + 1 };",
        )),
        (true, true) => {
            Some(row("*mut c_int", "*outcount = 0;", "$", "count_from_one($, *outcount);"))
        }
        _ => None,
    }
}

/// Callbacks with a state, by type and the name's beginning, and the C functions that call them.
const STATEFUL: [(&str, &str, &str); 15] = [
    ("MPI_Comm_copy_attr_function", "", "attributes::copied::<Comm, isize> as *const () as usize"),
    (
        "MPI_Comm_delete_attr_function",
        "",
        "attributes::deleted::<Comm, isize> as *const () as usize",
    ),
    (
        "MPI_Type_copy_attr_function",
        "",
        "attributes::copied::<Datatype, isize> as *const () as usize",
    ),
    (
        "MPI_Type_delete_attr_function",
        "",
        "attributes::deleted::<Datatype, isize> as *const () as usize",
    ),
    ("MPI_Win_copy_attr_function", "", "attributes::copied::<Win, isize> as *const () as usize"),
    ("MPI_Win_delete_attr_function", "", "attributes::deleted::<Win, isize> as *const () as usize"),
    ("MPI_Copy_function", "", "attributes::copied::<Comm, c_int> as *const () as usize"),
    ("MPI_Delete_function", "", "attributes::deleted::<Comm, c_int> as *const () as usize"),
    ("MPI_Grequest_query_function", "", "callbacks::queried as *const () as usize"),
    ("MPI_Grequest_free_function", "", "callbacks::freed as *const () as usize"),
    ("MPI_Grequest_cancel_function", "", "callbacks::cancelled as *const () as usize"),
    ("MPI_Datarep_extent_function", "", "callbacks::extended::<Datatype> as *const () as usize"),
    (
        "MPI_Datarep_conversion_function",
        "read",
        "if is_no_conversion($) { 0 } else { callbacks::converted::<Datatype, 0> as *const () as usize }",
    ),
    (
        "MPI_Datarep_conversion_function",
        "write",
        "if is_no_conversion($) { 0 } else { callbacks::converted::<Datatype, 1> as *const () as usize }",
    ),
    ("", "", ""),
];

/// Callbacks without a state. The C library's function for Fortran takes them as they are.
const STATELESS: [&str; 5] = [
    "MPI_User_function",
    "MPI_Comm_errhandler_function",
    "MPI_File_errhandler_function",
    "MPI_Win_errhandler_function",
    "MPI_Session_errhandler_function",
];

fn callback(p: &ProcedureParameter) -> ParameterRow {
    let stateful = STATEFUL
        .iter()
        .find(|row| row.0 == p.callback && p.name.starts_with(row.1))
        .map(|row| row.2);
    let stateless = || STATELESS.contains(&p.callback.as_str()).then_some("$");
    let text = stateful
        .or_else(stateless)
        .unwrap_or_else(|| panic!("no function calls {} {}", p.callback, p.name));
    row("usize", "", text, "")
}

/// Returns the row of a callback's state.
fn state(procedure: &Procedure, p: &ProcedureParameter) -> ParameterRow {
    let functions = procedure.parameters.iter().filter(|p| !p.callback.is_empty());
    let mut functions: Vec<_> = functions.map(|p| rust_name(&p.name)).collect();
    functions.resize(3, "0".to_owned());
    let functions = functions.join(", ");
    let integer = if p.kind == "EXTRA_STATE" { "isize" } else { "c_int" };
    // Callbacks of requests and data representations get the program's variable, callbacks of attributes a value.
    match procedure.find("KEYVAL") {
        Some(_) => row(
            &format!("*const {integer}"),
            "",
            &format!("callbacks::with_value([{functions}], *$ as isize)"),
            "",
        ),
        None => row("*mut isize", "", &format!("callbacks::with_variable([{functions}], $)"), ""),
    }
}

fn attribute(procedure: &Procedure, p: &ProcedureParameter) -> ParameterRow {
    let key = rust_name(&procedure.find("KEYVAL").expect("attributes have a key").name);
    let (integer, width) = match p.kind.as_str() {
        "ATTRIBUTE_VAL" => ("isize", "Aint"),
        _ => ("c_int", "Int"),
    };
    if p.is_out() {
        return row(
            &format!("*mut {integer}"),
            "let mut $_c: *mut c_void = null_mut();",
            "(&raw mut $_c).cast()",
            &format!("if code == 0 && *flag != 0 {{ *$ = KEYS.value(*{key}, $_c) as {integer}; }}"),
        );
    }
    row(
        &format!("*const {integer}"),
        &format!("let $_c = attributes::keep(*{key}, *$ as isize, IntegerWidth::{width});"),
        "$_c",
        &format!("if code != 0 {{ attributes::forget(*{key}, $_c); }}"),
    )
}

/// Returns the row of a number, which is the same in both languages.
fn numbers(p: &ProcedureParameter) -> ParameterRow {
    let c_type = rust_type(&p.types[0]);
    let with_nul =
        ["STRING_LENGTH", "INFO_VALUE_LENGTH"].contains(&p.kind.as_str()) && p.direction == "inout";
    match p.kind.as_str() {
        _ if with_nul => row(
            "*mut c_int",
            "let mut $_c = if *$ > 0 { *$ + 1 } else { *$ };",
            "&raw mut $_c",
            "if code == 0 { *$ = ($_c - 1).max(0); }",
        ),
        "WEIGHT" => row("*mut c_int", "", "special::weights($)", ""),
        "ERROR_CODE" if p.is_array() => row("*mut c_int", "", "special::error_codes($)", ""),
        "KEYVAL" if !c_type.starts_with('*') => row("*const c_int", "", "KEYS.to_c(*$)", ""),
        _ if c_type.starts_with('*') => row(&c_type, "", "$", ""),
        _ => row(&format!("*const {c_type}"), "", "*$", ""),
    }
}

/// Returns the row of a parameter.
pub fn argument(
    source: &BindingSource,
    procedure: &Procedure,
    p: &ProcedureParameter,
) -> ParameterRow {
    let kind = p.kind.as_str();
    let mut row = match kind {
        _ if p.c_alone => row("", "", if p.types[0] == "int" { "0" } else { "null_mut()" }, ""),
        "BUFFER" => row("*mut c_void", "", "special::buffer($)", ""),
        "C_BUFFER" => row("*mut c_void", "", "$", ""),
        // Without `C_PTR`, Fortran cannot receive the value: by the standard it is lost.
        "C_BUFFER2" => row(
            "*mut c_void",
            "let _ = $; let mut $_c: *mut c_void = null_mut();",
            "(&raw mut $_c).cast()",
            "",
        ),
        "STATUS" => row("*mut c_int", "", "special::status($)", ""),
        "STRING" | "STRING_ARRAY" | "STRING_2DARRAY" => texts(procedure, p),
        "ATTRIBUTE_VAL" | "ATTRIBUTE_VAL_10" => attribute(procedure, p),
        "INDEX" => indices(procedure, p).unwrap_or_else(|| numbers(p)),
        "FUNCTION" | "POLYFUNCTION" => callback(p),
        "EXTRA_STATE" | "EXTRA_STATE2" => state(procedure, p),
        _ => match CLASSES.iter().find(|class| class.1 == kind) {
            Some(class) => handles(source, procedure, p, class.0),
            None => numbers(p),
        },
    };
    for text in [&mut row.before, &mut row.pass, &mut row.after] {
        *text = text.replace('$', &rust_name(&p.name));
    }
    row
}
