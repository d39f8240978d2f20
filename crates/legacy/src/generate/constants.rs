//! Tables of constants, and the implementation of [`crate::runtime::LegacyAbi`].

use super::{LegacyTarget, Source};
use std::fmt::Write;

/// Tables, each with the beginnings of its constants' names. An entry that ends in `!` is a complete name.
const TABLES: [(&str, &[&str]); 24] = [
    ("CLASSES", &["MPI_ERR_", "MPI_T_ERR_"]),
    ("RANKS", &["MPI_ANY_SOURCE!", "MPI_PROC_NULL!", "MPI_ROOT!", "MPI_UNDEFINED!"]),
    ("TAGS", &["MPI_ANY_TAG!"]),
    (
        "ACCESS_MODES",
        &[
            "MPI_MODE_APPEND!",
            "MPI_MODE_CREATE!",
            "MPI_MODE_DELETE_ON_CLOSE!",
            "MPI_MODE_EXCL!",
            "MPI_MODE_RDONLY!",
            "MPI_MODE_RDWR!",
            "MPI_MODE_SEQUENTIAL!",
            "MPI_MODE_UNIQUE_OPEN!",
            "MPI_MODE_WRONLY!",
        ],
    ),
    ("ASSERTS", &["MPI_MODE_NO"]),
    ("THREAD_LEVELS", &["MPI_THREAD_"]),
    ("ORDERS", &["MPI_ORDER_"]),
    ("DISTRIBUTIONS", &["MPI_DISTRIBUTE_"]),
    ("COMBINERS", &["MPI_COMBINER_"]),
    ("TYPECLASSES", &["MPI_TYPECLASS_"]),
    ("COMPARISONS", &["MPI_IDENT!", "MPI_CONGRUENT!", "MPI_SIMILAR!", "MPI_UNEQUAL!"]),
    ("TOPOLOGIES", &["MPI_CART!", "MPI_GRAPH!", "MPI_DIST_GRAPH!", "MPI_UNDEFINED!"]),
    ("SPLIT_TYPES", &["MPI_COMM_TYPE_", "MPI_UNDEFINED!"]),
    ("LOCKS", &["MPI_LOCK_"]),
    ("FLAVORS", &["MPI_WIN_FLAVOR_"]),
    ("MODELS", &["MPI_WIN_UNIFIED!", "MPI_WIN_SEPARATE!"]),
    ("SEEKS", &["MPI_SEEK_"]),
    (
        "KEYVALS",
        &[
            "MPI_KEYVAL_INVALID!",
            "MPI_TAG_UB!",
            "MPI_IO!",
            "MPI_HOST!",
            "MPI_WTIME_IS_GLOBAL!",
            "MPI_APPNUM!",
            "MPI_LASTUSEDCODE!",
            "MPI_UNIVERSE_SIZE!",
            "MPI_WIN_BASE!",
            "MPI_WIN_DISP_UNIT!",
            "MPI_WIN_SIZE!",
            "MPI_WIN_CREATE_FLAVOR!",
            "MPI_WIN_MODEL!",
        ],
    ),
    ("CALLBACK_SAFETIES", &["MPI_T_CB_REQUIRE_"]),
    ("SOURCE_ORDERS", &["MPI_T_SOURCE_"]),
    ("VERBOSITIES", &["MPI_T_VERBOSITY_"]),
    ("BINDINGS", &["MPI_T_BIND_"]),
    ("SCOPES", &["MPI_T_SCOPE_"]),
    ("PVAR_CLASSES", &["MPI_T_PVAR_CLASS_"]),
];

/// Numbers that the generated code compares with.
const NUMBERS: [&str; 17] = [
    "MPI_BSEND_OVERHEAD",
    "MPI_IN_PLACE",
    "MPI_STATUS_IGNORE",
    "MPI_MAX_DATAREP_STRING",
    "MPI_MAX_ERROR_STRING",
    "MPI_MAX_INFO_KEY",
    "MPI_MAX_INFO_VAL",
    "MPI_MAX_LIBRARY_VERSION_STRING",
    "MPI_MAX_OBJECT_NAME",
    "MPI_MAX_PORT_NAME",
    "MPI_MAX_PROCESSOR_NAME",
    "MPI_MAX_PSET_NAME_LEN",
    "MPI_DISTRIBUTE_DFLT_DARG",
    "MPI_ERR_LASTCODE",
    "MPI_KEYVAL_INVALID",
    "MPI_UNDEFINED",
    "MPI_DISPLACEMENT_CURRENT",
];

fn belongs(name: &str, names: &[&str]) -> bool {
    names.iter().any(|wanted| match wanted.strip_suffix('!') {
        Some(whole) => name == whole,
        None => name.starts_with(wanted),
    })
}

/// Classes of the standard that an older ABI may lack, and the class that its programs get.
const NEAREST: [(&str, &str); 3] = [
    ("MPI_ERR_ERRHANDLER", "MPI_ERR_ARG"),
    ("MPI_ERR_ABI", "MPI_ERR_OTHER"),
    ("MPI_T_ERR_NOT_SUPPORTED", "MPI_T_ERR_INVALID"),
];

/// Returns the pairs for classes that the older ABI lacks. They come last, so that the class of the older ABI means itself.
fn nearest(source: &Source, table: &str) -> Vec<String> {
    let lacks = |name: &str| source.legacy(name).is_none() && table == "CLASSES";
    let of = |name: &str| source.constants.iter().find(|c| c.name == name)?.standard;
    let pairs = NEAREST.iter().filter(|(name, _)| lacks(name));
    pairs
        .filter_map(|(name, other)| Some(format!("({}, {})", source.legacy(other)?, of(name)?)))
        .collect()
}

pub fn write(source: &Source) -> String {
    let mut out = String::new();
    for (table, names) in TABLES {
        let pairs = source.constants.iter().filter(|c| belongs(&c.name, names));
        let pairs: Vec<_> = pairs
            .filter(|c| c.name != "MPI_ERR_LASTCODE")
            .filter_map(|c| Some(format!("({}, {})", c.legacy.parse::<i64>().ok()?, c.standard?)))
            .chain(nearest(source, table))
            .collect();
        writeln!(out, "pub static {table}: NumberMap = &[{}];", pairs.join(", ")).unwrap();
    }
    out.push_str("\n/// Constants of this ABI.\n#[allow(unused)]\npub mod own {\n");
    for name in NUMBERS {
        let value = source.legacy(name).unwrap_or_else(|| panic!("no number {name}"));
        writeln!(out, "    pub const {name}: i64 = {value};").unwrap();
    }
    let name = match source.target {
        LegacyTarget::Mpich => "Mpich",
        LegacyTarget::OpenMpi => "OpenMpi",
    };
    write!(
        out,
        "}}\n\n/// The ABI of this library.\npub struct {name};\npub type Own = {name};\n\nimpl LegacyAbi for {name} {{\n    \
         type Comm = Comm;\n    type Datatype = Datatype;\n    type Win = Win;\n    type Session = Session;\n    \
         type File = File;\n    type Status = Status;\n"
    )
    .unwrap();
    for table in
        ["CLASSES", "KEYVALS", "RANKS", "TAGS", "FLAVORS", "MODELS", "ORDERS", "DISTRIBUTIONS"]
    {
        writeln!(out, "    const {table}: NumberMap = {table};").unwrap();
    }
    // The latest version of MPI all of whose constants are in the ABI, and the first error class for failed processes.
    let (version, failed) = match source.target {
        LegacyTarget::Mpich => ((5, 0), 101),
        LegacyTarget::OpenMpi => ((4, 0), 75),
    };
    writeln!(out, "    const VERSION: (c_int, c_int) = {version:?};").unwrap();
    writeln!(out, "    const FAILED_PROCESSES: c_int = {failed};").unwrap();
    out + "    const IN_PLACE: isize = own::MPI_IN_PLACE as isize;\n    fn bound(datatype: Datatype) -> Option<TypeBound> {\n        bound(datatype)\n    }\n    const LAST_CODE: c_int = own::MPI_ERR_LASTCODE as c_int;\n}\n\n"
}
