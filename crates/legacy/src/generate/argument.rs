//! The conversion of one parameter.

use super::Source;
use super::handles::CLASSES;
use weft_abi_data::{Direction, Function, Param};

/// A parameter of an entry point: its type, a statement before the call, the expression that is passed, a statement after it.
pub struct Argument {
    pub name: String,
    pub rust_type: String,
    pub before: String,
    pub pass: String,
    pub after: String,
}

/// Conversion of a number by its kind: the table, and the two functions.
struct Numbers(&'static str, &'static str, &'static str);

/// Returns the conversion of numbers of a kind.
fn numbers(kind: &str, name: &str) -> Option<Numbers> {
    let (special, plain) =
        (("special_to_standard", "special_from_standard"), ("to_standard", "from_standard"));
    let flags = ("flags_to_standard", "flags_from_standard");
    let (table, (to, from)) = match kind {
        "RANK" | "RANK_NNI" => ("RANKS", special),
        "TAG" => ("TAGS", special),
        "ACCESS_MODE" => ("ACCESS_MODES", flags),
        "ASSERT" => ("ASSERTS", flags),
        "THREAD_LEVEL" => ("THREAD_LEVELS", plain),
        "ORDER" => ("ORDERS", plain),
        "DISTRIB_ENUM" => ("DISTRIBUTIONS", plain),
        "COMBINER" => ("COMBINERS", plain),
        "TYPECLASS" => ("TYPECLASSES", plain),
        "COMM_COMPARISON" | "GROUP_COMPARISON" => ("COMPARISONS", plain),
        "TOPOLOGY_TYPE" => ("TOPOLOGIES", plain),
        "SPLIT_TYPE" => ("SPLIT_TYPES", plain),
        "LOCK_TYPE" => ("LOCKS", plain),
        "UPDATE_MODE" => ("SEEKS", plain),
        "KEYVAL" => ("KEYVALS", ("key_to_standard", "from_standard")),
        "CALLBACK_SAFETY" => ("CALLBACK_SAFETIES", plain),
        "SOURCE_ORDERING" => ("SOURCE_ORDERS", plain),
        "TOOL_VAR_VERBOSITY" => ("VERBOSITIES", plain),
        "BIND_TYPE" => ("BINDINGS", plain),
        "VARIABLE_SCOPE" => ("SCOPES", plain),
        "PVAR_CLASS" => ("PVAR_CLASSES", plain),
        // The exit code of a job is no error code.
        "ERROR_CODE" | "ERROR_CLASS" if name != "MPI_Abort" => ("", ("", "")),
        _ => return None,
    };
    Some(Numbers(table, to, from))
}

impl Numbers {
    /// Returns an expression that converts a number of the program.
    fn to(&self, number: &str) -> String {
        let Numbers(table, to, _) = self;
        if table.is_empty() {
            format!("codes::to_standard::<Own>({number})")
        } else {
            format!("{to}({table}, {number})")
        }
    }

    /// Returns an expression that converts a number of the library.
    fn from(&self, number: &str) -> String {
        let Numbers(table, _, from) = self;
        if table.is_empty() {
            format!("codes::from_standard::<Own>({number})")
        } else {
            format!("{from}({table}, {number})")
        }
    }
}

/// Texts that the library writes without knowing the size of the program's buffer, with the constant that is its size.
const TEXTS: [(&str, &str); 10] = [
    ("MPI_Comm_get_name", "MPI_MAX_OBJECT_NAME"),
    ("MPI_Type_get_name", "MPI_MAX_OBJECT_NAME"),
    ("MPI_Win_get_name", "MPI_MAX_OBJECT_NAME"),
    ("MPI_Error_string", "MPI_MAX_ERROR_STRING"),
    ("MPI_Get_processor_name", "MPI_MAX_PROCESSOR_NAME"),
    ("MPI_Get_library_version", "MPI_MAX_LIBRARY_VERSION_STRING"),
    ("MPI_File_get_view", "MPI_MAX_DATAREP_STRING"),
    ("MPI_Info_get_nthkey", "MPI_MAX_INFO_KEY"),
    ("MPI_Lookup_name", "MPI_MAX_PORT_NAME"),
    ("MPI_Open_port", "MPI_MAX_PORT_NAME"),
];

/// Returns the Rust type of a C type without stars.
fn base_type(base: &str, source: &Source) -> String {
    match base {
        "void" => "c_void".into(),
        "int" | "MPI_T_cb_safety" | "MPI_T_source_order" => "c_int".into(),
        "char" => "c_char".into(),
        "double" => "f64".into(),
        "MPI_Count" | "MPI_Offset" => "i64".into(),
        "MPI_Aint" => "isize".into(),
        "MPI_Status" => "Status".into(),
        _ => match CLASSES.iter().find(|class| base == format!("MPI_{}", class.0)) {
            Some(class) => class.0.into(),
            None => {
                assert!(
                    source.abi.is_callback(base) || base.starts_with("MPI_T_"),
                    "no Rust type is known for {base}"
                );
                "usize".into()
            }
        },
    }
}

/// Returns the Rust name of a parameter.
fn rust_name(name: &str) -> String {
    match name {
        "type" | "ref" | "in" | "box" | "move" | "use" | "where" | "final" => format!("r#{name}"),
        _ => name.to_owned(),
    }
}

/// Returns the number of elements of an array, as an expression.
fn length(f: &Function, length: &str) -> String {
    let counts = f.params.iter().find(|p| p.name == length && p.stars == 0);
    if counts.is_some_and(|p| p.base == "int") {
        return format!("length({})", rust_name(length));
    }
    if counts.is_some() {
        return format!("length({} as c_int)", rust_name(length));
    }
    if f.params.iter().any(|p| p.name == length && p.stars == 1) {
        return format!("calls::stored({})", rust_name(length));
    }
    // Arrays with an element for each process or neighbor.
    match f.name.contains("eighbor") {
        true => "calls::neighbors(comm.to_standard(), SIDE)".into(),
        false => "calls::members(comm.to_standard())".into(),
    }
}

pub fn argument(source: &Source, f: &Function, p: &Param) -> Argument {
    let name = rust_name(&p.name);
    let base = base_type(&p.base, source);
    let stars = match source.abi.is_callback(&p.base) {
        true => 0,
        false => p.stars,
    };
    let rust_type = match p.dims.as_str() {
        "" => "*mut ".repeat(stars) + &base,
        "[][3]" => format!("*mut [{base}; 3]"),
        _ => "*mut ".repeat(stars + 1) + &base,
    };
    let mut argument = Argument {
        name: name.clone(),
        rust_type,
        before: String::new(),
        pass: name.clone(),
        after: String::new(),
    };
    let known = source.kinds.get(&f.name, &p.name);
    // The data has some arrays as pointers.
    let is_array = p.dims == "[]" || p.name.starts_with("array_of_") && p.stars == 1;
    let kind = known.map_or("", |known| known.kind.as_str());
    let direction = known.map_or(Direction::In, |known| known.direction);
    let len = || {
        length(f, known.map_or("", |known| &known.length))
            .replace("SIDE", if p.name.starts_with("recv") { "0" } else { "1" })
    };
    let object =
        |make: String, after: &str| (make, format!("{name}_argument.pass()"), after.to_owned());
    let (before, pass, after) = if CLASSES.iter().any(|class| class.0 == base) {
        match (is_array, stars, p.constant, direction) {
            (false, 0, ..) => (String::new(), format!("{name}.to_standard()"), String::new()),
            (false, _, _, Direction::Out) => {
                object(format!("HandleArgument::out({name})"), "finish()")
            }
            (false, ..) => object(format!("HandleArgument::inout({name})"), "finish()"),
            (true, _, true, _) => {
                object(format!("HandleArray::inout(&mut {name}_storage, {name}, {})", len()), "")
            }
            (true, _, false, Direction::Out) => object(
                format!("HandleArray::out(&mut {name}_storage, {name}, {})", len()),
                "finish()",
            ),
            (true, ..) => object(
                format!("HandleArray::inout(&mut {name}_storage, {name}, {})", len()),
                "finish()",
            ),
        }
    } else if base == "Status" {
        match (is_array, p.constant, f.name.starts_with("MPI_Status_set_")) {
            (true, ..) => {
                // Functions that complete some requests store as many statuses as there are requests at most.
                let count =
                    if f.params.iter().any(|p| p.name == "incount") { "incount" } else { "count" };
                object(
                    format!(
                        "StatusArray::<Own>::out(&mut {name}_storage, {name}, length({count}))"
                    ),
                    "finish()",
                )
            }
            (false, true, _) => object(format!("StatusArgument::<Own>::inout({name})"), ""),
            (false, _, true) => object(format!("StatusArgument::<Own>::inout({name})"), "finish()"),
            _ => object(format!("StatusArgument::<Own>::out({name})"), "finish()"),
        }
    } else if let (Some(numbers), true) =
        (numbers(kind, &f.name), base == "c_int" && p.dims != "[][3]")
    {
        match (is_array, stars, direction) {
            (false, 0, _) => (String::new(), numbers.to(&name), String::new()),
            (false, _, Direction::Out) => object(
                format!("NumberArgument::out({name})"),
                &format!("finish(|number| {})", numbers.from("number")),
            ),
            (false, ..) => object(
                format!("NumberArgument::inout({name}, |number| {})", numbers.to("number")),
                &format!("finish(|number| {})", numbers.from("number")),
            ),
            // Neighbors are ranks of processes that exist.
            (true, _, Direction::In)
                if known.is_some_and(|k| k.length == "*" || k.length.is_empty()) =>
            {
                (String::new(), name.clone(), String::new())
            }
            (true, _, Direction::In) => object(
                format!(
                    "NumberArray::new(&mut {name}_storage, {name}, {}, |number| {})",
                    len(),
                    numbers.to("number")
                ),
                "",
            ),
            (true, ..) => {
                let count = if known.is_some_and(|k| k.kind == "ERROR_CODE") {
                    spawn_length(f)
                } else {
                    len()
                };
                argument.after = format!(
                    "convert_stored({name}, {count}, |number| {});",
                    numbers.from("number")
                );
                return argument;
            }
        }
    } else if kind == "DTYPE_DISTRIBUTION" {
        object(
            format!(
                "NumberArray::new(&mut {name}_storage, {name}, {}, calls::distribution_argument::<Own>)",
                len()
            ),
            "",
        )
    } else if kind == "C_BUFFER2" {
        argument.after = format!("calls::convert_detached::<Own>({name});");
        return argument;
    } else if kind == "BUFFER" && stars == 1 && base == "c_void" && f.name != "MPI_Get_address" {
        (String::new(), format!("calls::buffer::<Own>({name})"), String::new())
    } else if kind == "WEIGHT" && direction == Direction::In {
        (String::new(), format!("super::weights({name})"), String::new())
    } else if kind == "OFFSET" && f.name == "MPI_File_set_view" {
        (
            String::new(),
            format!("calls::displacement(own::MPI_DISPLACEMENT_CURRENT, {name})"),
            String::new(),
        )
    } else if kind == "TOOL_MPI_OBJ" {
        let index = rust_name(
            &f.params
                .iter()
                .find(|p| p.name.ends_with("_index"))
                .expect("what the handle is of")
                .name,
        );
        let what = if f.name.contains("pvar") {
            "Performance"
        } else if f.name.contains("cvar") {
            "Control"
        } else {
            "Event"
        };
        object(format!("ToolObject::new::<Own>(ToolKind::{what}, {index}, {name})"), "")
    } else if kind == "PVAR" && stars == 0 {
        (String::new(), format!("super::performance_variable({name})"), String::new())
    } else if kind == "STRING"
        && stars == 1
        && direction == Direction::Out
        && let Some((_, size)) = TEXTS.iter().find(|(function, _)| *function == f.name)
    {
        let resultlen = if f.params.iter().any(|p| p.name == "resultlen") {
            "resultlen"
        } else {
            "std::ptr::null_mut()"
        };
        object(
            format!("TextArgument::<{{ constants::{size} as usize }}>::out({name})"),
            &format!("finish(own::{size} as usize, {resultlen})"),
        )
    } else if kind == "GENERIC_DTYPE_INT" {
        argument.after = format!(
            "contents::convert::<Own>(datatype.to_standard(), max_integers as c_int, {name});"
        );
        return argument;
    } else {
        (String::new(), name.clone(), String::new())
    };
    if !before.is_empty() {
        let mutable = if pass.contains("pass()") { "mut " } else { "" };
        let storage = match before.contains("_storage") {
            true => format!("let mut {name}_storage = Storage::empty(); "),
            false => String::new(),
        };
        argument.before =
            format!("{storage}let {mutable}{name}_argument = {before};").replace("r#", "");
    }
    argument.pass = pass.replace("r#type_argument", "type_argument");
    if !after.is_empty() {
        argument.after =
            format!("{name}_argument.{after};").replace("r#type_argument", "type_argument");
    }
    argument
}

/// Returns the number of processes that a spawning function starts.
fn spawn_length(f: &Function) -> String {
    match f.name.as_str() {
        "MPI_Comm_spawn_multiple" => "calls::spawned(count, array_of_maxprocs)".into(),
        _ => "length(maxprocs)".into(),
    }
}
