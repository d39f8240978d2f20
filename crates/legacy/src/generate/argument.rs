//! The conversion of one parameter.

use super::Source;
use super::handles::CLASSES;
use weft_abi_data::rust_types::{PointerMutability, pointer_type, rust_name, scalar_type};
use weft_abi_data::{AbiFunction, Param, ParameterDirection};

/// A parameter of an entry point: its type, a statement before the call, the expression that is passed, a statement after it.
pub struct EntryArgument {
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
    let class = CLASSES.iter().find(|class| base == format!("MPI_{}", class.0));
    match (scalar_type(base), class) {
        (Some(scalar), _) => scalar.into(),
        (None, Some(class)) => class.0.into(),
        (None, None) if base == "MPI_Status" => "Status".into(),
        // A status has the same numbers in mpif.h and in mpi_f08.
        (None, None) if base == "MPI_F08_status" => "c_int".into(),
        (None, None) => {
            assert!(
                source.abi.is_callback(base) || base.starts_with("MPI_T_"),
                "no Rust type is known for {base}"
            );
            "usize".into()
        }
    }
}

/// Returns the Rust type of a parameter.
pub fn rust_type(p: &Param, source: &Source) -> String {
    let stars = if source.abi.is_callback(&p.base) { 0 } else { p.stars };
    pointer_type(p, &base_type(&p.base, source), stars, PointerMutability::AlwaysMut)
}

/// Returns the number of elements of an array, as an expression.
fn length(f: &AbiFunction, length: &str) -> String {
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

/// The conversion of a parameter: an expression that makes an argument, the expression that is passed, and what follows the call.
struct Conversion {
    make: String,
    pass: String,
    /// A method of the argument, if `make` is not empty; else a statement.
    after: String,
}

impl Conversion {
    /// Passes an expression.
    fn pass(expression: String) -> Conversion {
        Conversion { make: String::new(), pass: expression, after: String::new() }
    }
}

/// A parameter with what the data says of it.
struct Described<'a> {
    function: &'a AbiFunction,
    param: &'a Param,
    name: String,
    base: String,
    stars: usize,
    is_array: bool,
    kind: &'a str,
    direction: ParameterDirection,
    /// Name of the parameter with the number of elements, `*`, or empty.
    length: &'a str,
}

impl Described<'_> {
    /// Makes an argument that is passed by address.
    fn object(&self, make: String, after: &str) -> Conversion {
        let pass = format!("{}_argument.pass()", self.name);
        Conversion { make, pass, after: after.to_owned() }
    }

    /// Runs a statement after the call, on what the library has stored in the program's memory.
    fn after(&self, statement: String) -> Conversion {
        Conversion { make: String::new(), pass: self.name.clone(), after: statement }
    }

    /// Returns the number of elements of the array, as an expression.
    fn len(&self) -> String {
        let side = if self.param.name.starts_with("recv") { "0" } else { "1" };
        let len = length(self.function, self.length).replace("SIDE", side);
        // Types of an operation in place are ignored, so the program may pass no array.
        match (self.param.name.as_str(), len.contains("members")) {
            ("sendtypes", true) => {
                format!("if calls::is_in_place::<Own>(sendbuf) {{ 0 }} else {{ {len} }}")
            }
            _ => len,
        }
    }

    fn handle(&self) -> Conversion {
        let (name, out) = (&self.name, self.direction == ParameterDirection::Out);
        let array = |kind: &str| {
            format!("HandleArray::{kind}(&mut {name}_storage, {name}, {})", self.len())
        };
        match (self.is_array, self.stars, self.param.constant) {
            (false, 0, _) => Conversion::pass(format!("{name}.to_standard()")),
            (false, ..) if out => self.object(format!("HandleArgument::out({name})"), "finish()"),
            (false, ..) => self.object(format!("HandleArgument::inout({name})"), "finish()"),
            (true, _, true) => self.object(array("inout"), ""),
            (true, ..) => self.object(array(if out { "out" } else { "inout" }), "finish()"),
        }
    }

    fn status(&self) -> Conversion {
        let (name, f) = (&self.name, self.function);
        let one = |kind: &str| format!("StatusArgument::<Own>::{kind}({name})");
        if self.is_array {
            // Functions that complete some requests store as many statuses as there are requests at most.
            let some = f.params.iter().any(|p| p.name == "incount");
            let count = if some { "incount" } else { "count" };
            let make =
                format!("StatusArray::<Own>::out(&mut {name}_storage, {name}, length({count}))");
            return self.object(make, "finish()");
        }
        match (self.param.constant, f.name.starts_with("MPI_Status_set_")) {
            (true, _) => self.object(one("inout"), ""),
            (false, true) => self.object(one("inout"), "finish()"),
            (false, false) => self.object(one("out"), "finish()"),
        }
    }

    fn number(&self, numbers: &Numbers) -> Conversion {
        let (name, direction) = (&self.name, self.direction);
        let (to, from) = (numbers.to("number"), numbers.from("number"));
        let finish = format!("finish(|number| {from})");
        match (self.is_array, self.stars) {
            (false, 0) => Conversion::pass(numbers.to(name)),
            (false, _) if direction == ParameterDirection::Out => {
                self.object(format!("NumberArgument::out({name})"), &finish)
            }
            (false, _) => {
                self.object(format!("NumberArgument::inout({name}, |number| {to})"), &finish)
            }
            (true, _) if direction != ParameterDirection::In => {
                let count = if self.kind == "ERROR_CODE" {
                    spawn_length(self.function)
                } else {
                    self.len()
                };
                self.after(format!("convert_stored({name}, {count}, |number| {from});"))
            }
            // Neighbors are ranks of processes that exist.
            (true, _) if self.length == "*" || self.length.is_empty() => {
                Conversion::pass(name.clone())
            }
            (true, _) => self.numbers(&format!("|number| {to}")),
        }
    }

    /// Converts an array of numbers that the library reads.
    fn numbers(&self, convert: &str) -> Conversion {
        let (name, len) = (&self.name, self.len());
        self.object(format!("NumberArray::new(&mut {name}_storage, {name}, {len}, {convert})"), "")
    }

    /// Returns the object of a handle of the tool interface.
    fn tool_object(&self) -> Conversion {
        let (name, f) = (&self.name, self.function);
        let index = f.params.iter().find(|p| p.name.ends_with("_index")).expect("an index");
        let kinds = [("pvar", "Performance"), ("cvar", "Control")];
        let kind =
            kinds.iter().find(|(part, _)| f.name.contains(part)).map_or("Event", |kind| kind.1);
        let index = rust_name(&index.name);
        self.object(format!("ToolObject::new::<Own>(ToolKind::{kind}, {index}, {name})"), "")
    }

    /// Converts a text, if the library could write more than the program's buffer holds.
    fn text(&self) -> Option<Conversion> {
        let (_, size) = TEXTS.iter().find(|(function, _)| *function == self.function.name)?;
        let has_length = self.function.params.iter().any(|p| p.name == "resultlen");
        let length = if has_length { "resultlen" } else { "std::ptr::null_mut()" };
        Some(self.object(
            format!("TextArgument::<{{ constants::{size} as usize }}>::out({})", self.name),
            &format!("finish(own::{size} as usize, {length})"),
        ))
    }

    fn conversion(&self) -> Conversion {
        let (name, function) = (&self.name, self.function.name.as_str());
        let is_in = self.direction == ParameterDirection::In;
        if CLASSES.iter().any(|class| class.0 == self.base) {
            return self.handle();
        }
        if self.base == "Status" {
            return self.status();
        }
        if let Some(numbers) = numbers(self.kind, function)
            && self.base == "c_int"
            && self.param.dims != "[][3]"
        {
            return self.number(&numbers);
        }
        match self.kind {
            "DTYPE_DISTRIBUTION" => self.numbers("calls::distribution_argument::<Own>"),
            "C_BUFFER2" => self.after(format!("calls::convert_detached::<Own>({name});")),
            "BUFFER"
                if self.stars == 1 && self.base == "c_void" && function != "MPI_Get_address" =>
            {
                Conversion::pass(format!("calls::buffer::<Own>({name})"))
            }
            "WEIGHT" if is_in => Conversion::pass(format!("super::weights({name})")),
            "OFFSET" if function == "MPI_File_set_view" => Conversion::pass(format!(
                "calls::displacement(own::MPI_DISPLACEMENT_CURRENT, {name})"
            )),
            "TOOL_MPI_OBJ" => self.tool_object(),
            "PVAR" if self.stars == 0 => {
                Conversion::pass(format!("super::performance_variable({name})"))
            }
            "STRING" if self.stars == 1 && self.direction == ParameterDirection::Out => {
                self.text().unwrap_or_else(|| Conversion::pass(name.clone()))
            }
            "GENERIC_DTYPE_INT" => self.after(format!(
                "contents::convert::<Own>(datatype.to_standard(), max_integers as c_int, {name});"
            )),
            _ => Conversion::pass(name.clone()),
        }
    }
}

/// Returns the conversion of a parameter of a function.
pub fn argument(source: &Source, f: &AbiFunction, p: &Param) -> EntryArgument {
    let base = base_type(&p.base, source);
    let stars = if source.abi.is_callback(&p.base) { 0 } else { p.stars };
    let rust_type = rust_type(p, source);
    let known = source.kinds.get(&f.name, &p.name);
    let described = Described {
        function: f,
        param: p,
        name: rust_name(&p.name),
        base,
        stars,
        // The data has some arrays as pointers.
        is_array: p.dims == "[]" || p.name.starts_with("array_of_") && p.stars == 1,
        kind: known.map_or("", |known| &known.kind),
        direction: known.map_or(ParameterDirection::In, |known| known.direction),
        length: known.map_or("", |known| &known.length),
    };
    let Conversion { make, pass, after } = described.conversion();
    let name = described.name;
    if make.is_empty() {
        return EntryArgument { name, rust_type, before: make, pass, after };
    }
    let (plain, storage) = (name.replace("r#", ""), make.contains("_storage"));
    let storage = match storage {
        true => format!("let mut {plain}_storage = ArrayStorage::empty(); "),
        false => String::new(),
    };
    let before = format!("{storage}let mut {plain}_argument = {make};");
    let after = match after.as_str() {
        "" => after,
        method => format!("{plain}_argument.{method};"),
    };
    EntryArgument { pass: pass.replace("r#", ""), before, after, name, rust_type }
}

/// Returns the number of processes that a spawning function starts.
fn spawn_length(f: &AbiFunction) -> String {
    match f.name.as_str() {
        "MPI_Comm_spawn_multiple" => "calls::spawned(count, array_of_maxprocs)".into(),
        _ => "length(maxprocs)".into(),
    }
}
