//! Values of parameters: good values, by type and name, and bad values.

use crate::fixture::{self, Fixture, windows};
use crate::signature::{HandleKind, Parameter, ParameterType, Signature, constant};
use std::ffi::c_int;

/// A bad value of an argument.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Bad {
    Null,
    Freed,
    /// A datatype that is not committed, and a datatype of no bytes, which may be good.
    Uncommitted,
    Empty,
    /// A live object of another kind.
    Other(HandleKind),
    Bits(usize),
    /// The live handle with some bits flipped.
    Turned(usize),
    /// NULL as a pointer.
    NoPointer,
    /// A pointer to a handle with such a value.
    Behind(Box<Bad>),
    Number(i64),
    /// The first element of a list of numbers.
    Element(i64),
    Text(&'static str),
    /// MPI_IN_PLACE as a buffer.
    InPlace,
}

const OTHERS: [HandleKind; 11] = [
    HandleKind::Comm,
    HandleKind::Group,
    HandleKind::Datatype,
    HandleKind::Op,
    HandleKind::Errhandler,
    HandleKind::Info,
    HandleKind::Request,
    HandleKind::Session,
    HandleKind::Message,
    HandleKind::Win,
    HandleKind::File,
];

/// Returns all bad values of a parameter, the same for the same seed.
pub fn bad(parameter: &Parameter, rng: &mut fastrand::Rng) -> Vec<Bad> {
    let undefined = constant("MPI_UNDEFINED") as i64;
    match parameter.ty {
        ParameterType::Handle(kind) => handles(kind, rng),
        ParameterType::Handles(kind) => {
            let behind = handles(kind, rng).into_iter().map(|b| Bad::Behind(Box::new(b)));
            std::iter::once(Bad::NoPointer).chain(behind).collect()
        }
        ParameterType::Int => {
            [-1, c_int::MIN.into(), c_int::MAX.into(), undefined, -3, -4, 1 << 20, 0, 2]
                .map(Bad::Number)
                .to_vec()
        }
        ParameterType::Wide => {
            let rest = [-1, i64::MIN, i64::MAX, i64::MAX / 4, undefined, 0, 2].map(Bad::Number);
            rest.to_vec()
        }
        ParameterType::Ints => {
            let numbers =
                [-1, c_int::MIN.into(), c_int::MAX.into(), undefined, 0, 2].map(Bad::Element);
            std::iter::once(Bad::NoPointer).chain(numbers).collect()
        }
        ParameterType::Wides => {
            let numbers = [-1, i64::MIN, i64::MAX, i64::MAX / 4, 0, 2].map(Bad::Element);
            std::iter::once(Bad::NoPointer).chain(numbers).collect()
        }
        ParameterType::Text if parameter.constant => {
            vec![Bad::NoPointer, Bad::Text("empty"), Bad::Text("long"), Bad::Text("not UTF-8")]
        }
        ParameterType::Memory if parameter.name.contains("buf") => {
            vec![Bad::NoPointer, Bad::InPlace]
        }
        ParameterType::Text
        | ParameterType::Status
        | ParameterType::Memory
        | ParameterType::Function
        | ParameterType::Lists => {
            vec![Bad::NoPointer]
        }
    }
}

fn handles(kind: HandleKind, rng: &mut fastrand::Rng) -> Vec<Bad> {
    let mut all = vec![Bad::Null, Bad::Freed];
    if kind == HandleKind::Datatype {
        all.extend([Bad::Uncommitted, Bad::Empty]);
    }
    all.extend([0, 1, 7, 0xfff, 0x1000, usize::MAX, usize::MAX / 2].map(Bad::Bits));
    // Predefined handles of other kinds.
    let other = ["MPI_COMM_WORLD", "MPI_INT", "MPI_SUM", "MPI_GROUP_EMPTY", "MPI_INFO_ENV"];
    let own = [
        HandleKind::Comm,
        HandleKind::Datatype,
        HandleKind::Op,
        HandleKind::Group,
        HandleKind::Info,
    ];
    let foreign = other.iter().zip(own).filter(|(_, k)| *k != kind);
    all.extend(foreign.map(|(name, _)| Bad::Bits(constant(name))));
    all.extend((0..2).map(|_| Bad::Bits(rng.usize(..))));
    all.extend([1 << 40, 1 << 12, 1 << 62].map(Bad::Turned));
    let mut kinds: Vec<HandleKind> = OTHERS.into_iter().filter(|k| *k != kind).collect();
    rng.shuffle(&mut kinds);
    all.extend(kinds.into_iter().take(3).map(Bad::Other));
    all
}

/// Returns the address of a bad text, of one of several kinds.
fn text(name: &str) -> usize {
    static LONG: [u8; 70001] = {
        let mut bytes = [b'x'; 70001];
        bytes[70000] = 0;
        bytes
    };
    let text = match name {
        "long" => return LONG.as_ptr() as usize,
        "not UTF-8" => c"\xff\xfe\x80key",
        _ => c"",
    };
    text.as_ptr() as usize
}

/// Returns an argument with a bad value, in place of its good value `good`.
pub fn spoilt(world: &Fixture, f: &Signature, i: usize, bad: &Bad, good: usize) -> Option<usize> {
    let parameter = &f.parameters[i];
    let kind = match parameter.ty {
        ParameterType::Handle(kind) | ParameterType::Handles(kind) => Some(kind),
        _ => None,
    };
    Some(match bad {
        Bad::Null => fixture::null(kind?),
        Bad::Freed => world.freed(kind?)?,
        Bad::Uncommitted => world.contiguous(2),
        Bad::Empty => world.empty_datatype(),
        Bad::Other(other) => world.live(*other, ""),
        Bad::Bits(bits) => *bits,
        Bad::Turned(bits) => match parameter.ty {
            // SAFETY: `good` is the address of this parameter's slot, which holds the handle.
            ParameterType::Handles(_) => bits ^ unsafe { *(good as *const usize) },
            _ => good ^ bits,
        },
        Bad::NoPointer => 0,
        Bad::InPlace => constant("MPI_IN_PLACE"),
        Bad::Behind(bad) => {
            let handle = spoilt(world, f, i, bad, good)?;
            // SAFETY: `good` is the address of this parameter's slot, which is valid for writes of a handle.
            unsafe { *(good as *mut usize) = handle };
            good
        }
        Bad::Number(n) => *n as usize,
        Bad::Element(n) => {
            // SAFETY: `good` is the address of this parameter's slot, which is valid for writes of a number.
            unsafe {
                match parameter.ty {
                    ParameterType::Ints => *(good as *mut c_int) = *n as c_int,
                    _ => *(good as *mut i64) = *n,
                }
            }
            good
        }
        Bad::Text(name) => text(name),
    })
}

/// Returns arguments with which the function succeeds.
pub fn good(world: &Fixture, f: &Signature) -> Vec<usize> {
    let all = f.parameters.iter().enumerate();
    all.map(|(i, p)| argument(world, f, i, p)).collect()
}

/// Number of elements of a list that are filled.
const LIST: usize = 16;

fn argument(world: &Fixture, f: &Signature, i: usize, parameter: &Parameter) -> usize {
    let (slot, stem) = (world.slot(i), f.stem());
    // SAFETY: a slot is valid for writes of the whole list, and aligned to 8 bytes.
    let word = |k: usize, value: usize| unsafe { *(slot as *mut usize).add(k) = value };
    // SAFETY: a slot is valid for writes of the whole list, and aligned to 8 bytes.
    let int = |k: usize, value: c_int| unsafe { *(slot as *mut c_int).add(k) = value };
    match parameter.ty {
        ParameterType::Int | ParameterType::Wide => number(world, stem, parameter.name) as usize,
        ParameterType::Handle(kind) => world.live(kind, stem),
        ParameterType::Handles(kind) => {
            let one = world.live(kind, stem);
            let several = matches!(kind, HandleKind::Datatype) && parameter.name.ends_with('s');
            (0..if several { LIST } else { 1 }).for_each(|k| word(k, one));
            slot
        }
        ParameterType::Ints => {
            (0..LIST).for_each(|k| int(k, element(world, stem, parameter.name, k) as c_int));
            slot
        }
        ParameterType::Wides => {
            (0..LIST).for_each(|k| word(k, element(world, stem, parameter.name, k) as usize));
            slot
        }
        ParameterType::Text if parameter.constant => {
            let text = match (stem, parameter.name) {
                (_, "filename") => return crate::files::path(),
                ("File_set_view", "datarep") => c"native",
                (_, "datarep") => c"external32",
                (_, "pset_name") => c"mpi://SELF",
                ("T_cvar_get_index" | "T_pvar_get_index" | "T_category_get_index", _) => c"",
                _ => c"key",
            };
            if text.is_empty() { variable(world, stem, slot) } else { text.as_ptr() as usize }
        }
        ParameterType::Memory if parameter.name == "obj_handle" => 0,
        ParameterType::Function => fixture::function(),
        ParameterType::Lists if stem.starts_with("Init") || stem == "Info_create_env" => slot,
        ParameterType::Text
        | ParameterType::Status
        | ParameterType::Memory
        | ParameterType::Lists => slot,
    }
}

/// Stores the name of the first variable or category in a slot.
fn variable(world: &Fixture, stem: &str, slot: usize) -> usize {
    let mut len: c_int = 256;
    let len = std::ptr::from_mut(&mut len) as usize;
    match stem {
        "T_cvar_get_index" => {
            world.mpi.must("MPI_T_cvar_get_info", &[0, slot, len, 0, 0, 0, 0, 0, 0, 0]);
        }
        "T_pvar_get_index" => {
            let args = [0, slot, len, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            world.mpi.must("MPI_T_pvar_get_info", &args);
        }
        _ => world.mpi.must("MPI_T_category_get_info", &[0, slot, len, 0, 0, 0, 0, 0]),
    }
    slot
}

/// Returns a key of attributes, or an error class, that the program made.
fn key(world: &Fixture, stem: &str) -> i64 {
    let f = fixture::function();
    let name = match stem.split('_').next() {
        Some("Type") => "MPI_Type_create_keyval",
        Some("Win") => "MPI_Win_create_keyval",
        _ => "MPI_Comm_create_keyval",
    };
    let mut made: c_int = 0;
    world.mpi.must(name, &[f, f, std::ptr::from_mut(&mut made) as usize, 0]);
    std::hint::black_box(made).into()
}

fn number(world: &Fixture, stem: &str, name: &str) -> i64 {
    let named = |c| constant(c) as i64;
    match (stem, name) {
        (_, "keyval" | "comm_keyval" | "type_keyval" | "win_keyval") => key(world, stem),
        ("Remove_error_class", _) => world.mpi.make("MPI_Add_error_class", &[]) as c_int as i64,
        ("Add_error_code", "errorclass") => named("MPI_ERR_OTHER"),
        ("Add_error_string" | "Remove_error_code" | "Remove_error_string", _) => {
            let code = world.mpi.make("MPI_Add_error_code", &[constant("MPI_ERR_OTHER")]) as c_int;
            if stem == "Remove_error_string" {
                let text = c"a text".as_ptr() as usize;
                world.mpi.must("MPI_Add_error_string", &[code as usize, text]);
            }
            code.into()
        }
        (_, "sendtag" | "recvtag" | "tag") => 7,
        ("Win_allocate" | "Win_allocate_shared" | "Win_create" | "Win_attach", "size") => {
            windows::ATTACHED as i64
        }
        (_, "disp_unit") => 1,
        ("File_open", "amode") => crate::files::amode() as i64,
        (_, "whence") => named("MPI_SEEK_SET"),
        (_, "lock_type") => named("MPI_LOCK_SHARED"),
        (_, "origin_count" | "target_count" | "result_count") => 4,
        ("Waitall" | "Testall" | "Waitany" | "Testany" | "Startall", "count") => 1,
        ("Waitsome" | "Testsome" | "Request_get_status_some", "incount") => 1,
        ("Request_get_status_all" | "Request_get_status_any", "count") => 1,
        ("Type_create_struct", "count") => 2,
        ("Type_match_size", "typeclass") => named("MPI_TYPECLASS_INTEGER"),
        ("Type_match_size", "size") => 4,
        ("Type_create_f90_complex" | "Type_create_f90_real", "p") => 6,
        (_, "r") => 6,
        (_, "split_type") => named("MPI_COMM_TYPE_SHARED"),
        (_, "array_of_psizes" | "order") => named("MPI_ORDER_C"),
        (_, "logical_size") => 4,
        (_, "insize" | "outsize") => 4096,
        ("Buffer_attach" | "Comm_attach_buffer" | "Session_attach_buffer", "size") => 4096,
        ("Psend_init" | "Precv_init", "partitions") => 2,
        ("Cart_shift", "direction") => 0,
        ("Cart_shift", "disp") => 1,
        ("Type_create_resized", "extent") => 8,
        (_, "valuelen" | "buflen") => 64,
        ("T_pvar_get_index", "var_class") => {
            let mut class: c_int = 0;
            let class_at = std::ptr::from_mut(&mut class) as usize;
            let args = [0, 0, 0, 0, class_at, 0, 0, 0, 0, 0, 0, 0, 0];
            world.mpi.must("MPI_T_pvar_get_info", &args);
            std::hint::black_box(class).into()
        }
        (
            _,
            "count" | "sendcount" | "recvcount" | "incount" | "outcount" | "maxindex" | "maxedges",
        ) => 4,
        (_, "max_integers" | "max_addresses" | "max_datatypes" | "max_large_counts") => 4,
        (_, "n") if stem.starts_with("Info_get") || stem.starts_with("Session") => 0,
        (
            _,
            "n" | "ndims" | "maxdims" | "nnodes" | "size" | "length" | "blocklength" | "stride",
        ) => 1,
        (_, "indegree" | "outdegree" | "maxindegree" | "maxoutdegree" | "maxneighbors") => 1,
        (_, "len") => 4,
        _ => 0,
    }
}

fn element(world: &Fixture, stem: &str, name: &str, k: usize) -> i64 {
    let named = |c| constant(c) as i64;
    let at = 16 * k as i64;
    match (stem, name) {
        (_, "keyval" | "comm_keyval" | "type_keyval" | "win_keyval")
            if stem.contains("free") && k == 0 =>
        {
            key(world, stem)
        }
        (_, "recvcounts" | "sendcounts") => 4,
        (_, "displs" | "sdispls" | "rdispls" | "array_of_displacements") => at,
        (_, "dims" | "periods" | "remain_dims" | "degrees" | "weights") => 1,
        (_, "sourceweights" | "destweights" | "array_of_psizes" | "array_of_blocklengths") => 1,
        (_, "indx") => 1,
        (_, "array_of_gsizes" | "array_of_sizes") => 4,
        (_, "array_of_subsizes") => 2,
        (_, "array_of_distribs") => named("MPI_DISTRIBUTE_BLOCK"),
        (_, "array_of_dargs") => named("MPI_DISTRIBUTE_DFLT_DARG"),
        (_, "ranges") if k == 2 => 1,
        (_, "array_of_partitions") => k as i64,
        (_, "name_len" | "desc_len" | "buflen" | "pset_len" | "resultlen") => 64,
        _ => 0,
    }
}
