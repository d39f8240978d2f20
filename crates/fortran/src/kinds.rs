//! The conversion of parameters between the two languages: the table from which the entry points are made.
//!
//! A row contains C's declaration of Fortran's argument, the statements before the call of the C function, the argument of
//! the C function, and the statements after the call. In the texts `$` is the argument's name, `#` the number of its
//! elements, and `@` the type of the handle.

use crate::data::{FunctionForm, Procedure, ProcedureParameter};

/// The ways of calling from Fortran.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallVariant {
    /// `mpif.h` and the module `mpi`.
    Old,
    /// The module `mpi_f08`.
    New,
    /// `mpi_f08` with large counts.
    Large,
}

impl CallVariant {
    /// Returns the form of the C function that this way calls.
    pub fn function(self) -> FunctionForm {
        match self {
            CallVariant::Large => FunctionForm::Large,
            CallVariant::Old | CallVariant::New => FunctionForm::Plain,
        }
    }
}

/// Conversion of an argument from Fortran to C and back.
#[derive(Default, Debug)]
pub struct ArgumentRow {
    /// C's declaration of the argument.
    pub declare: String,
    /// Statements before the call.
    pub before: String,
    /// Argument of the C function.
    pub give: String,
    /// Statements after the call; `rc` is the return value of the C function.
    pub after: String,
    /// True if the length of a string is passed after all arguments.
    pub hidden: bool,
}

fn row(declare: &str, before: &str, give: &str, after: &str) -> ArgumentRow {
    let [declare, before, give, after] = [declare, before, give, after].map(str::to_owned);
    ArgumentRow { declare, before, give, after, hidden: false }
}

/// Returns the handle type of a kind, without `MPI_`.
pub fn handle(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "COMMUNICATOR" => "Comm",
        "DATATYPE" => "Type",
        "ERRHANDLER" => "Errhandler",
        "FILE" => "File",
        "GROUP" => "Group",
        "INFO" => "Info",
        "MESSAGE" => "Message",
        "OPERATION" => "Op",
        "REQUEST" => "Request",
        "SESSION" => "Session",
        "WINDOW" => "Win",
        _ => return None,
    })
}

/// Returns the C type of the handle.
pub fn handle_type(name: &str) -> String {
    format!("MPI_{}", if name == "Type" { "Datatype" } else { name })
}

/// Returns the number of elements of an array argument as a C expression. The number for arrays of `*` elements is queried.
fn elements(procedure: &Procedure, p: &ProcedureParameter) -> String {
    match (p.length.as_str(), p.kind.as_str()) {
        ("*", "DATATYPE") => {
            let side = if p.name.starts_with("send") { "sendbuf" } else { "recvbuf" };
            format!("weft_peers(weft_Comm_in(*comm), {}, {side}_at)", peers(procedure, side))
        }
        ("*", "LOGICAL") => "weft_dimensions(weft_Comm_in(*comm))".to_owned(),
        ("*" | "", _) => "0".to_owned(),
        (length, _) => format!("(int)*{length}"),
    }
}

fn peers(procedure: &Procedure, side: &str) -> &'static str {
    let is_neighborhood = procedure.name.to_lowercase().contains("neighbor");
    match (is_neighborhood, side) {
        (false, _) => "WEFT_ALL",
        (true, "sendbuf") => "WEFT_DESTINATIONS",
        (true, _) => "WEFT_SOURCES",
    }
}

fn handles(procedure: &Procedure, p: &ProcedureParameter, name: &str) -> ArgumentRow {
    let array = p.is_array();
    let mut row = match (array, p.is_in() && p.types[0].contains('*'), p.is_out()) {
        (false, false, false) => row("const int *$", "", "weft_@_in(*$)", ""),
        (false, false, true) => {
            row("int *$", "% $_c = (%)0;", "&$_c", "if (rc == MPI_SUCCESS) *$ = weft_@_out($_c);")
        }
        (false, true, _) => {
            row("int *$", "% $_c = weft_@_in(*$);", "&$_c", "*$ = weft_@_out($_c);")
        }
        (true, ..) => row(
            "int *$",
            "const int $_n = #; % $_s[WEFT_FEW], *$_c = weft_@_list($, $_n, $_s, !);",
            "$_c",
            "",
        ),
    };
    if array {
        let filled = if p.is_in() { "1" } else { "0" };
        row.before = row.before.replace('!', filled);
        if p.is_out() {
            row.after = "weft_@_unlist($, $_n, $_c);".to_owned();
        }
        if outlives(procedure) {
            // The library may read the array until the request is complete.
            row.before = row.before.replace("$_s[WEFT_FEW], ", "").replace("$_s", "NULL");
            let persistent = if is_persistent(procedure) { "WEFT_PERSISTENT" } else { "0" };
            row.after += &format!(" weft_keep(request, rc, $_c, {persistent});");
        } else {
            row.after += " weft_drop($_c, $_s);";
        }
    }
    for text in [&mut row.before, &mut row.give, &mut row.after] {
        *text = text.replace('%', &handle_type(name)).replace('@', name);
    }
    row
}

/// Returns true if the call leaves a request behind, and its arrays stay in use.
pub fn outlives(procedure: &Procedure) -> bool {
    procedure.find("REQUEST").is_some_and(|r| r.direction == "out" && !r.is_array())
}

/// Returns true if the request can be started again.
pub fn is_persistent(procedure: &Procedure) -> bool {
    outlives(procedure) && procedure.name.ends_with("_init")
}

/// Returns the maximum length of a string that C writes, with the NUL, as a C expression.
fn capacity(procedure: &Procedure, p: &ProcedureParameter) -> String {
    let by_name = |name: &str| procedure.parameters.iter().any(|p| p.name == name);
    match (p.length.as_str(), p.name.as_str()) {
        ("", "datarep") => "MPI_MAX_DATAREP_STRING".to_owned(),
        ("", "key") => "MPI_MAX_INFO_KEY".to_owned(),
        ("", _) if by_name("buflen") => "buflen_c".to_owned(),
        ("", _) if by_name("pset_len") => "pset_len_c".to_owned(),
        ("valuelen", _) => "(*valuelen < 0 ? 0 : *valuelen) + 1".to_owned(),
        ("", _) => "MPI_MAX_PORT_NAME".to_owned(),
        (constant, _) => constant.to_owned(),
    }
}

fn strings(procedure: &Procedure, p: &ProcedureParameter, way: CallVariant) -> ArgumentRow {
    let inner = way == CallVariant::Old || !procedure.is_bound_to_c();
    let count = elements(procedure, p);
    // Leading blanks are significant, except in info objects and in arguments of spawned programs.
    let trimmed =
        ["MPI_Info_", "MPI_Comm_spawn"].iter().any(|stem| procedure.name.starts_with(stem));
    let front = if trimmed { "WEFT_TRIMMED" } else { "WEFT_AS_IT_IS" };
    let mut row = match (p.kind.as_str(), p.is_out()) {
        ("STRING_ARRAY", _) => {
            let count = if p.name.starts_with("array") { "*count" } else { "-1" };
            let text = format!("char **$_c = weft_argv($_p, $_l, 1, {count});");
            row("", &text, "$_c", "free($_c);")
        }
        ("STRING_2DARRAY", _) => {
            let text = format!("char ***$_c = weft_argvs($_p, $_l, {count});");
            row("", &text, "$_c", "weft_argvs_drop($_c);")
        }
        (_, false) => {
            let text =
                format!("char $_s[WEFT_SHORT], *$_c = weft_string_in($_p, $_l, {front}, $_s);");
            row("", &text, "$_c", "weft_drop($_c, $_s);")
        }
        (_, true) => {
            let text = format!(
                "char $_s[WEFT_SHORT], *$_c = weft_string_room($_s, {});",
                capacity(procedure, p)
            );
            let flag = procedure.parameters.iter().any(|p| p.name == "flag");
            let flag = if flag { " && flag_c" } else { "" };
            // If the given length is 0, the program asks only for the length.
            let length = ["buflen", "pset_len"].into_iter().find(|name| {
                p.length.is_empty() && procedure.parameters.iter().any(|p| p.name == *name)
            });
            let (asked, text) = match length {
                Some(length) => (" && $_w", format!("const int $_w = *{length} > 0; {text}")),
                None => ("", text),
            };
            let text_after = format!(
                "if (rc == MPI_SUCCESS{flag}{asked}) weft_string_out($_p, $_l, $_c);\n    \
                 weft_drop($_c, $_s);"
            );
            row("", &text, "$_c", &text_after)
        }
    };
    let change = if p.is_out() { "" } else { "const " };
    if inner {
        row.declare = format!("{change}char *$_p");
        row.hidden = true;
    } else {
        row.declare = "CFI_cdesc_t *$".to_owned();
        let start = format!("{change}char *$_p = $->base_addr; size_t $_l = $->elem_len; ");
        row.before.insert_str(0, &start);
    }
    row
}

fn logicals(procedure: &Procedure, p: &ProcedureParameter) -> ArgumentRow {
    let mut row = match (p.is_array(), p.is_out()) {
        (false, false) => row("const weft_logical *$", "", "weft_is_true(*$)", ""),
        (false, true) => row(
            "weft_logical *$",
            "int $_c = 0;",
            "&$_c",
            "if (rc == MPI_SUCCESS) *$ = weft_truth($_c);",
        ),
        (true, false) => row(
            "const weft_logical *$",
            "const int $_n = #; int $_s[WEFT_FEW], *$_c = weft_truths_in($, $_n, $_s);",
            "$_c",
            "weft_drop($_c, $_s);",
        ),
        (true, true) => row(
            "weft_logical *$",
            "const int $_n = #; int $_s[WEFT_FEW], *$_c = weft_room($_s, $_n, sizeof(int));",
            "$_c",
            "if (rc == MPI_SUCCESS) weft_truths_out($, $_n, $_c);\n    weft_drop($_c, $_s);",
        ),
    };
    row.before = row.before.replace('#', &elements(procedure, p));
    row
}

/// Returns the row of an index. Indices of arrays count from 1 in Fortran.
fn places(procedure: &Procedure, p: &ProcedureParameter) -> Option<ArgumentRow> {
    let one = p.direction == "out" && procedure.find("REQUEST").is_some();
    match (one, p.is_array()) {
        (true, false) => Some(row(
            "int *$",
            "int $_c = MPI_UNDEFINED;",
            "&$_c",
            "*$ = $_c == MPI_UNDEFINED ? $_c : $_c + 1;",
        )),
        (true, true) => Some(row("int *$", "*outcount = 0;", "$", "weft_from_one($, *outcount);")),
        _ => None,
    }
}

/// Returns the row of a callback, or of its state.
fn callbacks(procedure: &Procedure, p: &ProcedureParameter, form: FunctionForm) -> ArgumentRow {
    let declare = "weft_function *$";
    let stateful = procedure.parameters.iter().any(|p| p.kind.starts_with("EXTRA_STATE"));
    match p.kind.as_str() {
        "EXTRA_STATE" | "EXTRA_STATE2" => {
            let functions = procedure.parameters.iter().filter(|p| !p.callback.is_empty());
            let functions: Vec<_> = functions.map(|p| p.name.as_str()).collect();
            let integer = if p.kind == "EXTRA_STATE" { "MPI_Aint" } else { "int" };
            // Callbacks of requests and data representations get the program's variable, callbacks of attributes a value.
            let (change, variable) = match procedure.find("KEYVAL") {
                Some(_) => ("const ", "NULL"),
                None => ("", "$"),
            };
            let functions = functions.join(", ");
            let text = format!("weft_state((weft_function *[3]){{{functions}}}, *$, {variable})");
            row(&format!("{change}{integer} *$"), "", &text, "")
        }
        _ if stateful => {
            let suffix = if p.kind == "POLYFUNCTION" { form.suffix() } else { "" };
            let text = if p.name.contains("conversion") {
                let trampoline = p.name.replace("_conversion_fn", "_conversion");
                format!("WEFT_CONVERSION($, weft_{trampoline}{suffix})")
            } else {
                p.callback.replacen("MPI_", "weft_", 1)
            };
            row(declare, "", &text, "")
        }
        _ => {
            let suffix = if p.kind == "POLYFUNCTION" { form.suffix() } else { "" };
            let slot = p.callback.replacen("MPI_", "weft_slot_", 1);
            row(declare, "", &format!("{slot}{suffix}($)"), "")
        }
    }
}

fn attributes(p: &ProcedureParameter, keyval: &str) -> ArgumentRow {
    let integer = if p.kind == "ATTRIBUTE_VAL" { "MPI_Aint" } else { "int" };
    if p.is_out() {
        let text = format!(
            "if (rc == MPI_SUCCESS && flag_c) *$ = ({integer})weft_attribute(*{keyval}, $_c);"
        );
        row(&format!("{integer} *$"), "void *$_c = 0;", "&$_c", &text)
    } else {
        let width = if p.kind == "ATTRIBUTE_VAL" { "WEFT_AINT" } else { "WEFT_INT" };
        row(
            &format!("const {integer} *$"),
            &format!("void *$_c = weft_attribute_in(*{keyval}, *$, {width});"),
            "$_c",
            &format!("if (rc != MPI_SUCCESS) weft_attribute_drop(*{keyval}, $_c);"),
        )
    }
}

/// Returns the row of a number, which is the same in both languages.
fn numbers(p: &ProcedureParameter, c_type: &str) -> ArgumentRow {
    let base = c_type.trim_end_matches("[]").trim_end_matches('*').trim().to_owned();
    let pointer = c_type.contains('*') || c_type.contains('[');
    let with_nul = ["STRING_LENGTH", "INFO_VALUE_LENGTH"].contains(&p.kind.as_str());
    match p.kind.as_str() {
        _ if with_nul && p.direction == "inout" => row(
            "int *$",
            "int $_c = *$ > 0 ? *$ + 1 : *$;",
            "&$_c",
            "if (rc == MPI_SUCCESS) *$ = $_c > 0 ? $_c - 1 : 0;",
        ),
        "WEIGHT" => row("int *$", "", "weft_weights($)", ""),
        "ERROR_CODE" if p.is_array() => row("int *$", "", "weft_error_codes($)", ""),
        "RANK" if p.length == "n;3" => row("int *$", "", "(int (*)[3])$", ""),
        _ if pointer => row(&format!("{base} *$"), "", "$", ""),
        _ => row(&format!("const {base} *$"), "", "*$", ""),
    }
}

/// Returns the row of a parameter. Buffers of `mpi_f08` are not in this table: they are in `sections`.
pub fn of(procedure: &Procedure, p: &ProcedureParameter, way: CallVariant) -> ArgumentRow {
    let kind = p.kind.as_str();
    let c_type = p.types[way.function() as usize].clone();
    let keyval = procedure.parameters.iter().find(|p| p.kind == "KEYVAL");
    let mut row = match kind {
        _ if p.c_alone => row("", "", if c_type == "int" { "0" } else { "NULL" }, ""),
        "BUFFER" => row("void *$", "void *const $_at = weft_buffer($);", "$_at", ""),
        "C_BUFFER" => row("void **$", "", "$", ""),
        "C_BUFFER2" if way == CallVariant::Old => {
            // Fortran cannot receive the value: by the standard it is lost.
            row("void *$", "void *$_c = NULL; (void)$;", "&$_c", "")
        }
        "C_BUFFER2" => row("void **$", "", "$", ""),
        "STATUS" => row("MPI_Status *$", "", "weft_status($)", ""),
        "LOGICAL" => logicals(procedure, p),
        "LOGICAL_VOID" => row("void *$", "", "$", ""),
        "STRING" | "STRING_ARRAY" | "STRING_2DARRAY" => strings(procedure, p, way),
        "ATTRIBUTE_VAL" | "ATTRIBUTE_VAL_10" => {
            attributes(p, keyval.map_or("keyval", |keyval| &keyval.name))
        }
        "INDEX" => places(procedure, p).unwrap_or_else(|| numbers(p, &c_type)),
        "EXTRA_STATE" | "EXTRA_STATE2" | "FUNCTION" | "POLYFUNCTION" => {
            callbacks(procedure, p, way.function())
        }
        _ => match handle(kind) {
            Some(name) => handles(procedure, p, name),
            None => numbers(p, &c_type),
        },
    };
    row.before = row.before.replace('#', &elements(procedure, p));
    for text in [&mut row.declare, &mut row.before, &mut row.give, &mut row.after] {
        *text = text.replace('$', &p.name);
    }
    row
}
