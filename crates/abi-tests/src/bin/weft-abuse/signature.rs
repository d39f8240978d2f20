//! Signature of a function by the standard's data: its name, its result, its parameters.

use weft_abi_tests::Declaration;

/// A parameter of a C function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    pub name: &'static str,
    pub ty: Type,
    /// True if the function only reads the memory behind a pointer.
    pub constant: bool,
}

/// Type of a parameter, as far as bad values depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    /// `int`, or an enumeration.
    Int,
    /// `MPI_Count`, `MPI_Aint`, `MPI_Offset`.
    Wide,
    Handle(Kind),
    /// A pointer to one or several handles.
    Handles(Kind),
    /// A pointer to one or several `int`.
    Ints,
    /// A pointer to 64-bit integers.
    Wides,
    /// A pointer to characters.
    Text,
    /// A pointer to statuses.
    Status,
    /// Memory of the program, or the address of something that the function knows.
    Memory,
    Function,
    /// `char *[]`, `char ***` and the like.
    Lists,
}

/// A kind of handle.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    Comm,
    Group,
    Datatype,
    Op,
    Errhandler,
    Info,
    Request,
    Message,
    Session,
    File,
    Win,
    Cvar,
    PvarSession,
    Pvar,
    Enum,
    Registration,
    Instance,
}

impl Kind {
    fn named(c: &str) -> Option<Kind> {
        Some(match c {
            "MPI_Comm" => Kind::Comm,
            "MPI_Group" => Kind::Group,
            "MPI_Datatype" => Kind::Datatype,
            "MPI_Op" => Kind::Op,
            "MPI_Errhandler" => Kind::Errhandler,
            "MPI_Info" => Kind::Info,
            "MPI_Request" => Kind::Request,
            "MPI_Message" => Kind::Message,
            "MPI_Session" => Kind::Session,
            "MPI_File" => Kind::File,
            "MPI_Win" => Kind::Win,
            "MPI_T_cvar_handle" => Kind::Cvar,
            "MPI_T_pvar_session" => Kind::PvarSession,
            "MPI_T_pvar_handle" => Kind::Pvar,
            "MPI_T_enum" => Kind::Enum,
            "MPI_T_event_registration" => Kind::Registration,
            "MPI_T_event_instance" => Kind::Instance,
            _ => return None,
        })
    }
}

/// A C function.
#[derive(Clone, Debug)]
pub struct Function {
    pub name: &'static str,
    pub parameters: Vec<Parameter>,
    /// True if its result is an error code.
    pub returns_code: bool,
}

impl Function {
    /// Returns the name without `MPI_` and `_c`.
    pub fn stem(&self) -> &'static str {
        let name = self.name.strip_prefix("MPI_").unwrap_or(self.name);
        name.strip_suffix("_c").unwrap_or(name)
    }
}

/// Returns all functions of the standard that have parameters.
pub fn all() -> Vec<Function> {
    weft_abi_tests::functions().filter(|f| !f.parameters.is_empty()).map(function).collect()
}

fn function(Declaration { name, result, parameters }: Declaration) -> Function {
    let value = name.ends_with("_toint") || result != "int";
    let parameters = parameters.into_iter().filter(|p| *p != "...").map(parameter).collect();
    Function { name, parameters, returns_code: !value }
}

/// Parses a declaration such as `const int displs[]`.
fn parameter(declaration: &'static str) -> Parameter {
    let brackets = declaration.find('[').unwrap_or(declaration.len());
    let (front, arrays) = declaration.split_at(brackets);
    let at = front.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |i| i + 1);
    let (mut c, name) = (front[..at].trim(), &front[at..]);
    let constant = c.starts_with("const ");
    c = c.strip_prefix("const ").unwrap_or(c);
    let stars = c.matches('*').count() + arrays.matches("[]").count();
    let base = c.trim_end_matches('*').trim();
    let ty = match (base, stars) {
        ("int" | "MPI_T_source_order" | "MPI_T_cb_safety", 0) => Type::Int,
        ("int" | "MPI_T_source_order" | "MPI_Fint", _) => Type::Ints,
        ("MPI_Count" | "MPI_Aint" | "MPI_Offset", 0) => Type::Wide,
        ("MPI_Count" | "MPI_Aint" | "MPI_Offset", _) => Type::Wides,
        ("char", 1) => Type::Text,
        ("char", _) => Type::Lists,
        ("void", _) => Type::Memory,
        ("MPI_Status", _) => Type::Status,
        _ if base.ends_with("_fn") || base.contains("_function") => Type::Function,
        _ => match Kind::named(base) {
            Some(kind) if stars == 0 => Type::Handle(kind),
            Some(kind) => Type::Handles(kind),
            None => panic!("functions.csv: no rule for the type of '{declaration}'"),
        },
    };
    Parameter { name, ty, constant }
}

/// Returns the value of a constant of the standard ABI, as an argument.
pub fn constant(name: &str) -> usize {
    weft_abi_tests::constant(name) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_understood() {
        let of = |d| (parameter(d).name, parameter(d).ty, parameter(d).constant);
        assert_eq!(of("const void *buf"), ("buf", Type::Memory, true));
        assert_eq!(of("int ranges[][3]"), ("ranges", Type::Ints, false));
        assert_eq!(of("const MPI_Datatype t[]"), ("t", Type::Handles(Kind::Datatype), true));
        assert_eq!(of("char ***argv"), ("argv", Type::Lists, false));
        assert_eq!(of("MPI_User_function *f"), ("f", Type::Function, false));
    }

    #[test]
    fn every_function_is_understood() {
        let all = all();
        assert!(all.len() > 640, "{} functions", all.len());
        let wait = all.iter().find(|f| f.name == "MPI_Wait").unwrap();
        let types: Vec<_> = wait.parameters.iter().map(|p| p.ty).collect();
        assert_eq!(types, [Type::Handles(Kind::Request), Type::Status]);
        assert_eq!(constant("MPI_COMM_WORLD"), 0x101);
    }
}
