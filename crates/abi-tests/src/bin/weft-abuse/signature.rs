//! Signature of a function by the standard's data: its name, its result, its parameters.

use weft_abi_tests::Declaration;

/// A parameter of a C function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    pub name: &'static str,
    pub ty: ParameterType,
    /// True if the function only reads the memory behind a pointer.
    pub constant: bool,
}

/// Type of a parameter, as far as bad values depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParameterType {
    /// `int`, or an enumeration.
    Int,
    /// `MPI_Count`, `MPI_Aint`, `MPI_Offset`.
    Wide,
    Handle(HandleKind),
    /// A pointer to one or several handles.
    Handles(HandleKind),
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
pub enum HandleKind {
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

impl HandleKind {
    fn named(c: &str) -> Option<HandleKind> {
        Some(match c {
            "MPI_Comm" => HandleKind::Comm,
            "MPI_Group" => HandleKind::Group,
            "MPI_Datatype" => HandleKind::Datatype,
            "MPI_Op" => HandleKind::Op,
            "MPI_Errhandler" => HandleKind::Errhandler,
            "MPI_Info" => HandleKind::Info,
            "MPI_Request" => HandleKind::Request,
            "MPI_Message" => HandleKind::Message,
            "MPI_Session" => HandleKind::Session,
            "MPI_File" => HandleKind::File,
            "MPI_Win" => HandleKind::Win,
            "MPI_T_cvar_handle" => HandleKind::Cvar,
            "MPI_T_pvar_session" => HandleKind::PvarSession,
            "MPI_T_pvar_handle" => HandleKind::Pvar,
            "MPI_T_enum" => HandleKind::Enum,
            "MPI_T_event_registration" => HandleKind::Registration,
            "MPI_T_event_instance" => HandleKind::Instance,
            _ => return None,
        })
    }
}

/// A C function.
#[derive(Clone, Debug)]
pub struct Signature {
    pub name: &'static str,
    pub parameters: Vec<Parameter>,
    /// True if its result is an error code.
    pub returns_code: bool,
}

impl Signature {
    /// Returns the name without `MPI_` and `_c`.
    pub fn stem(&self) -> &'static str {
        let name = self.name.strip_prefix("MPI_").unwrap_or(self.name);
        name.strip_suffix("_c").unwrap_or(name)
    }
}

/// Returns all functions of the standard that have parameters.
pub fn all() -> Vec<Signature> {
    weft_abi_tests::functions().filter(|f| !f.parameters.is_empty()).map(function).collect()
}

fn function(Declaration { name, result, parameters }: Declaration) -> Signature {
    let value = name.ends_with("_toint") || result != "int";
    let parameters = parameters.into_iter().filter(|p| *p != "...").map(parameter).collect();
    Signature { name, parameters, returns_code: !value }
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
        ("int" | "MPI_T_source_order" | "MPI_T_cb_safety", 0) => ParameterType::Int,
        ("int" | "MPI_T_source_order" | "MPI_Fint", _) => ParameterType::Ints,
        ("MPI_Count" | "MPI_Aint" | "MPI_Offset", 0) => ParameterType::Wide,
        ("MPI_Count" | "MPI_Aint" | "MPI_Offset", _) => ParameterType::Wides,
        ("char", 1) => ParameterType::Text,
        ("char", _) => ParameterType::Lists,
        ("void", _) => ParameterType::Memory,
        ("MPI_Status", _) => ParameterType::Status,
        _ if base.ends_with("_fn") || base.contains("_function") => ParameterType::Function,
        _ => match HandleKind::named(base) {
            Some(kind) if stars == 0 => ParameterType::Handle(kind),
            Some(kind) => ParameterType::Handles(kind),
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
        assert_eq!(of("const void *buf"), ("buf", ParameterType::Memory, true));
        assert_eq!(of("int ranges[][3]"), ("ranges", ParameterType::Ints, false));
        assert_eq!(
            of("const MPI_Datatype t[]"),
            ("t", ParameterType::Handles(HandleKind::Datatype), true)
        );
        assert_eq!(of("char ***argv"), ("argv", ParameterType::Lists, false));
        assert_eq!(of("MPI_User_function *f"), ("f", ParameterType::Function, false));
    }

    #[test]
    fn every_function_is_understood() {
        let all = all();
        assert!(all.len() > 640, "{} functions", all.len());
        let wait = all.iter().find(|f| f.name == "MPI_Wait").unwrap();
        let types: Vec<_> = wait.parameters.iter().map(|p| p.ty).collect();
        assert_eq!(types, [ParameterType::Handles(HandleKind::Request), ParameterType::Status]);
        assert_eq!(constant("MPI_COMM_WORLD"), 0x101);
    }
}
