//! The C++ bindings of Open MPI 4, which MPI 3.0 removed: `libmpi_cxx.so.40` is another name of this library.
//!
//! Open MPI's header defines the classes, whose functions are inline. Each program that includes the header has virtual tables of the
//! classes, and needs the few functions and objects of this file. An object is the address of its class's virtual table and a handle.

use crate::entry_points::*;
use std::ffi::{c_char, c_int, c_void};
use std::mem::transmute;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use weft_legacy::runtime::standard::bridges;
use weft_legacy::runtime::{LegacyAbi, LegacyHandle, callbacks};

/// A virtual table: the distance to the complete object, the type's description, and the functions.
#[repr(C)]
pub struct VirtualTable<const SLOTS: usize> {
    to_complete: isize,
    type_info: usize,
    slots: [extern "C" fn(); SLOTS],
}

/// Ends the process: a program whose objects have this library's virtual tables does not define the class.
extern "C" fn absent() {
    eprintln!(
        "weft: the program calls a virtual function of MPI's C++ bindings through an object whose class it does not define; call the C \
         function"
    );
    std::process::abort();
}

/// An object of a class whose only member is a handle.
#[repr(C)]
pub struct CxxObject {
    table: *const extern "C" fn(),
    handle: *const c_void,
}

/// Defines virtual tables. The loader takes the program's tables in their place, since the program comes first.
macro_rules! virtual_tables {
    ($($class:ident: $slots:literal, $symbol:literal;)*) => {
        mod tables {
            use super::{VirtualTable, absent};
            $(
                #[unsafe(export_name = $symbol)]
                pub static $class: VirtualTable<$slots> =
                    VirtualTable { to_complete: 0, type_info: 0, slots: [absent; $slots] };
            )*
        }
    };
}

/// Defines the objects of predefined handles.
macro_rules! objects {
    ($($name:ident: $class:ident, $handle:ident, $symbol:literal;)*) => {
        $(
            #[doc = concat!("`MPI::", stringify!($name), "`")]
            #[unsafe(export_name = $symbol)]
            pub static mut $name: CxxObject = CxxObject {
                table: (&raw const tables::$class.slots).cast(),
                handle: (&raw const $handle).cast(),
            };
        )*
    };
}

virtual_tables! {
    Errhandler: 3, "_ZTVN3MPI10ErrhandlerE";
    Op: 6, "_ZTVN3MPI2OpE";
    Win: 22, "_ZTVN3MPI3WinE";
    Comm: 56, "_ZTVN3MPI4CommE";
    File: 2, "_ZTVN3MPI4FileE";
    Info: 10, "_ZTVN3MPI4InfoE";
    Group: 9, "_ZTVN3MPI5GroupE";
    Request: 10, "_ZTVN3MPI7RequestE";
    Datatype: 30, "_ZTVN3MPI8DatatypeE";
    CommNull: 2, "_ZTVN3MPI9Comm_NullE";
    Intracomm: 69, "_ZTVN3MPI9IntracommE";
}

objects! {
    COMM_WORLD: Intracomm, ompi_mpi_comm_world, "_ZN3MPI10COMM_WORLDE";
    COMM_SELF: Intracomm, ompi_mpi_comm_self, "_ZN3MPI9COMM_SELFE";
    COMM_NULL: CommNull, ompi_mpi_comm_null, "_ZN3MPI9COMM_NULLE";
    GROUP_NULL: Group, ompi_mpi_group_null, "_ZN3MPI10GROUP_NULLE";
    GROUP_EMPTY: Group, ompi_mpi_group_empty, "_ZN3MPI11GROUP_EMPTYE";
    REQUEST_NULL: Request, ompi_request_null, "_ZN3MPI12REQUEST_NULLE";
    DATATYPE_NULL: Datatype, ompi_mpi_datatype_null, "_ZN3MPI13DATATYPE_NULLE";
    ERRHANDLER_NULL: Errhandler, ompi_mpi_errhandler_null, "_ZN3MPI15ERRHANDLER_NULLE";
    ERRORS_RETURN: Errhandler, ompi_mpi_errors_return, "_ZN3MPI13ERRORS_RETURNE";
    ERRORS_ARE_FATAL: Errhandler, ompi_mpi_errors_are_fatal, "_ZN3MPI16ERRORS_ARE_FATALE";
    ERRORS_THROW_EXCEPTIONS: Errhandler, ompi_mpi_errors_are_fatal, "_ZN3MPI23ERRORS_THROW_EXCEPTIONSE";
    WIN_NULL: Win, ompi_mpi_win_null, "_ZN3MPI8WIN_NULLE";
    FILE_NULL: File, ompi_mpi_file_null, "_ZN3MPI9FILE_NULLE";
    INFO_NULL: Info, ompi_mpi_info_null, "_ZN3MPI9INFO_NULLE";
    OP_NULL: Op, ompi_mpi_op_null, "_ZN3MPI7OP_NULLE";
    BAND: Op, ompi_mpi_op_band, "_ZN3MPI4BANDE";
    BOR: Op, ompi_mpi_op_bor, "_ZN3MPI3BORE";
    BXOR: Op, ompi_mpi_op_bxor, "_ZN3MPI4BXORE";
    LAND: Op, ompi_mpi_op_land, "_ZN3MPI4LANDE";
    LOR: Op, ompi_mpi_op_lor, "_ZN3MPI3LORE";
    LXOR: Op, ompi_mpi_op_lxor, "_ZN3MPI4LXORE";
    MAX: Op, ompi_mpi_op_max, "_ZN3MPI3MAXE";
    MAXLOC: Op, ompi_mpi_op_maxloc, "_ZN3MPI6MAXLOCE";
    MIN: Op, ompi_mpi_op_min, "_ZN3MPI3MINE";
    MINLOC: Op, ompi_mpi_op_minloc, "_ZN3MPI6MINLOCE";
    PROD: Op, ompi_mpi_op_prod, "_ZN3MPI4PRODE";
    REPLACE: Op, ompi_mpi_op_replace, "_ZN3MPI7REPLACEE";
    SUM: Op, ompi_mpi_op_sum, "_ZN3MPI3SUME";
    BOOL: Datatype, ompi_mpi_cxx_bool, "_ZN3MPI4BOOLE";
    BYTE: Datatype, ompi_mpi_byte, "_ZN3MPI4BYTEE";
    CHAR: Datatype, ompi_mpi_char, "_ZN3MPI4CHARE";
    CHARACTER: Datatype, ompi_mpi_character, "_ZN3MPI9CHARACTERE";
    COMPLEX: Datatype, ompi_mpi_cxx_cplex, "_ZN3MPI7COMPLEXE";
    DOUBLE: Datatype, ompi_mpi_double, "_ZN3MPI6DOUBLEE";
    DOUBLE_COMPLEX: Datatype, ompi_mpi_cxx_dblcplex, "_ZN3MPI14DOUBLE_COMPLEXE";
    DOUBLE_INT: Datatype, ompi_mpi_double_int, "_ZN3MPI10DOUBLE_INTE";
    DOUBLE_PRECISION: Datatype, ompi_mpi_dblprec, "_ZN3MPI16DOUBLE_PRECISIONE";
    FLOAT: Datatype, ompi_mpi_float, "_ZN3MPI5FLOATE";
    FLOAT_INT: Datatype, ompi_mpi_float_int, "_ZN3MPI9FLOAT_INTE";
    F_COMPLEX: Datatype, ompi_mpi_cplex, "_ZN3MPI9F_COMPLEXE";
    F_DOUBLE_COMPLEX: Datatype, ompi_mpi_dblcplex, "_ZN3MPI16F_DOUBLE_COMPLEXE";
    INT: Datatype, ompi_mpi_int, "_ZN3MPI3INTE";
    INTEGER: Datatype, ompi_mpi_integer, "_ZN3MPI7INTEGERE";
    INTEGER1: Datatype, ompi_mpi_integer1, "_ZN3MPI8INTEGER1E";
    INTEGER2: Datatype, ompi_mpi_integer2, "_ZN3MPI8INTEGER2E";
    INTEGER4: Datatype, ompi_mpi_integer4, "_ZN3MPI8INTEGER4E";
    LOGICAL: Datatype, ompi_mpi_logical, "_ZN3MPI7LOGICALE";
    LONG: Datatype, ompi_mpi_long, "_ZN3MPI4LONGE";
    LONG_DOUBLE: Datatype, ompi_mpi_long_double, "_ZN3MPI11LONG_DOUBLEE";
    LONG_DOUBLE_COMPLEX: Datatype, ompi_mpi_cxx_ldblcplex, "_ZN3MPI19LONG_DOUBLE_COMPLEXE";
    LONG_DOUBLE_INT: Datatype, ompi_mpi_longdbl_int, "_ZN3MPI15LONG_DOUBLE_INTE";
    LONG_INT: Datatype, ompi_mpi_long_int, "_ZN3MPI8LONG_INTE";
    LONG_LONG: Datatype, ompi_mpi_long_long_int, "_ZN3MPI9LONG_LONGE";
    LONG_LONG_INT: Datatype, ompi_mpi_long_long_int, "_ZN3MPI13LONG_LONG_INTE";
    PACKED: Datatype, ompi_mpi_packed, "_ZN3MPI6PACKEDE";
    REAL: Datatype, ompi_mpi_real, "_ZN3MPI4REALE";
    REAL2: Datatype, ompi_mpi_datatype_null, "_ZN3MPI5REAL2E";
    REAL4: Datatype, ompi_mpi_real4, "_ZN3MPI5REAL4E";
    REAL8: Datatype, ompi_mpi_real8, "_ZN3MPI5REAL8E";
    SHORT: Datatype, ompi_mpi_short, "_ZN3MPI5SHORTE";
    SHORT_INT: Datatype, ompi_mpi_short_int, "_ZN3MPI9SHORT_INTE";
    SIGNED_CHAR: Datatype, ompi_mpi_signed_char, "_ZN3MPI11SIGNED_CHARE";
    TWODOUBLE_PRECISION: Datatype, ompi_mpi_2dblprec, "_ZN3MPI19TWODOUBLE_PRECISIONE";
    TWOINT: Datatype, ompi_mpi_2int, "_ZN3MPI6TWOINTE";
    TWOINTEGER: Datatype, ompi_mpi_2integer, "_ZN3MPI10TWOINTEGERE";
    TWOREAL: Datatype, ompi_mpi_2real, "_ZN3MPI7TWOREALE";
    UNSIGNED: Datatype, ompi_mpi_unsigned, "_ZN3MPI8UNSIGNEDE";
    UNSIGNED_CHAR: Datatype, ompi_mpi_unsigned_char, "_ZN3MPI13UNSIGNED_CHARE";
    UNSIGNED_LONG: Datatype, ompi_mpi_unsigned_long, "_ZN3MPI13UNSIGNED_LONGE";
    UNSIGNED_LONG_LONG: Datatype, ompi_mpi_unsigned_long_long, "_ZN3MPI18UNSIGNED_LONG_LONGE";
    UNSIGNED_SHORT: Datatype, ompi_mpi_unsigned_short, "_ZN3MPI14UNSIGNED_SHORTE";
    WCHAR: Datatype, ompi_mpi_wchar, "_ZN3MPI5WCHARE";
}

/// An address in an exported object of C++.
#[repr(transparent)]
pub struct CxxAddress(*const c_void);

// SAFETY: nothing is written through the address.
unsafe impl Sync for CxxAddress {}

/// `MPI::BOTTOM`
#[unsafe(export_name = "_ZN3MPI6BOTTOME")]
pub static BOTTOM: CxxAddress = CxxAddress(std::ptr::null());
/// `MPI::IN_PLACE`
#[unsafe(export_name = "_ZN3MPI8IN_PLACEE")]
pub static IN_PLACE: CxxAddress =
    CxxAddress(std::ptr::without_provenance(<Own as LegacyAbi>::IN_PLACE as usize));
/// `MPI::ARGV_NULL`
#[unsafe(export_name = "_ZN3MPI9ARGV_NULLE")]
pub static mut ARGV_NULL: *const *const c_char = std::ptr::null();
/// `MPI::ARGVS_NULL`
#[unsafe(export_name = "_ZN3MPI10ARGVS_NULLE")]
pub static mut ARGVS_NULL: *const *const *const c_char = std::ptr::null();
/// `MPI::mpi_errno`
#[unsafe(export_name = "_ZN3MPI9mpi_errnoE")]
pub static mut MPI_ERRNO: c_int = 0;

/// Runs the constructor of a class that holds a null communicator.
unsafe fn construct_comm(this: *mut CxxObject, handle: *const c_void) {
    // SAFETY: `this` is memory for an object: the callers promise it.
    unsafe { this.write(CxxObject { table: (&raw const tables::Comm.slots).cast(), handle }) }
}

/// Defines functions under the mangled names of C++: a constructor has one for complete objects and one for bases.
macro_rules! functions {
    ($($symbols:tt $name:ident($($argument:ident: $kind:ty),*) $body:block)*) => {
        $(functions!(@each $symbols, $name, ($($argument: $kind),*), $body);)*
    };
    (@each [$($symbol:literal)*], $name:ident, $arguments:tt, $body:block) => {
        $(functions!(@one $symbol, $name, $arguments, $body);)*
    };
    (@one $symbol:literal, $name:ident, ($($argument:ident: $kind:ty),*), $body:block) => {
        const _: () = {
            /// A function of C++.
            ///
            /// # Safety
            /// The arguments are those of the C++ function.
            #[unsafe(export_name = $symbol)]
            pub unsafe extern "C" fn $name($($argument: $kind),*) {
                // SAFETY: the program passes what C++ declares, objects of the classes of this file.
                unsafe { $body }
            }
        };
    };
}

// The names that tools replace: Open MPI's C++ functions call these, too.
unsafe extern "C" {
    fn MPI_Type_free(datatype: *mut Datatype) -> c_int;
    fn MPI_Win_free(win: *mut Win) -> c_int;
    fn MPI_File_close(file: *mut File) -> c_int;
}

functions! {
    ["_ZN3MPI4CommC1Ev" "_ZN3MPI4CommC2Ev"] comm(this: *mut CxxObject) {
        construct_comm(this, (&raw const ompi_mpi_comm_null).cast())
    }
    ["_ZN3MPI4CommC1ERKNS_9Comm_NullE" "_ZN3MPI4CommC2ERKNS_9Comm_NullE"]
    comm_of_null(this: *mut CxxObject, null: *const CxxObject) { construct_comm(this, (*null).handle) }
    ["_ZN3MPI8Datatype4FreeEv"] datatype_free(this: *mut CxxObject) {
        MPI_Type_free((&raw mut (*this).handle).cast());
    }
    ["_ZN3MPI3Win4FreeEv"] win_free(this: *mut CxxObject) {
        MPI_Win_free((&raw mut (*this).handle).cast());
    }
    ["_ZN3MPI4File5CloseEv"] file_close(this: *mut CxxObject) {
        MPI_File_close((&raw mut (*this).handle).cast());
    }
}

/// `MPI::InitializeIntercepts()`. Open MPI's function prepares exceptions, which this library does not throw.
#[unsafe(export_name = "_ZN3MPI20InitializeInterceptsEv")]
pub extern "C" fn initialize_intercepts() {}

type CxxReduction = unsafe extern "C" fn(*const c_void, *mut c_void, c_int, *const CxxObject);

/// Calls an operator's function, which takes an object as the datatype. `MPI::Op::Init` passes this function to MPI_Op_create.
///
/// # Safety
/// The operands have `count` elements of the datatype; `function` is an operator's function of C++.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompi_mpi_cxx_op_intercept(
    left: *mut c_void,
    right: *mut c_void,
    count: *mut c_int,
    datatype: *mut Datatype,
    function: usize,
) {
    // SAFETY: the caller promises it.
    unsafe {
        let handle = std::ptr::with_exposed_provenance((*datatype).0);
        let datatype = CxxObject { table: (&raw const tables::Datatype.slots).cast(), handle };
        transmute::<usize, CxxReduction>(function)(left, right, *count, &raw const datatype);
    }
}

type CxxOpIntercept =
    unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut Datatype, usize);

/// An operator of C++: the program's name for [`ompi_mpi_cxx_op_intercept`], and the function, which is set after the operator was
/// created.
struct CxxOperator {
    intercept: usize,
    function: AtomicUsize,
}

/// Operators of C++ with their handles in the standard's ABI. They stay until the process ends, as an operation may use a freed operator.
static OPERATORS: Mutex<Vec<(usize, &'static CxxOperator)>> = Mutex::new(Vec::new());

/// Returns true for the addresses of [`ompi_mpi_cxx_op_intercept`]: a program that is not position-independent has one of its own.
fn is_intercept(function: usize) -> bool {
    // SAFETY: the name is a text with a NUL.
    let first = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"ompi_mpi_cxx_op_intercept".as_ptr()) };
    function == first.addr() || function == ompi_mpi_cxx_op_intercept as *const () as usize
}

/// Creates an operator. Returns the library's code.
///
/// # Safety
/// As for [`callbacks::create_op`].
pub unsafe fn create_op<A: LegacyAbi>(function: usize, commute: c_int, op: *mut usize) -> c_int {
    if !is_intercept(function) {
        // SAFETY: the caller promises it.
        return unsafe { callbacks::create_op::<A>(function, commute, op) };
    }
    let operator: &'static CxxOperator =
        Box::leak(Box::new(CxxOperator { intercept: function, function: AtomicUsize::new(0) }));
    let state = (&raw const *operator).cast_mut().cast();
    // SAFETY: `reduced` takes the state that is passed; `op` may be written.
    unsafe {
        let code = (bridges().op_create)(reduced, state, commute, op);
        if code == 0 {
            OPERATORS.lock().unwrap_or_else(PoisonError::into_inner).push((*op, operator));
        }
        code
    }
}

unsafe extern "C" fn reduced(
    state: *mut c_void,
    left: *mut c_void,
    right: *mut c_void,
    count: i64,
    datatype: usize,
) {
    let (mut count, mut datatype) = (count as c_int, Datatype::from_standard(datatype));
    // SAFETY: `state` is a `CxxOperator`, by `create_op`. The library's pointers are valid. The program has set the function before it
    // uses the operator.
    unsafe {
        let operator = &*state.cast::<CxxOperator>();
        let function = operator.function.load(Ordering::Relaxed);
        let intercept = transmute::<usize, CxxOpIntercept>(operator.intercept);
        intercept(left, right, &raw mut count, &raw mut datatype, function);
    }
}

/// Sets the function of an operator of C++. `MPI::Op::Init` calls this after MPI_Op_create.
#[unsafe(no_mangle)]
pub extern "C" fn ompi_op_set_cxx_callback(op: Op, function: usize) {
    let handle = op.to_standard();
    let operators = OPERATORS.lock().unwrap_or_else(PoisonError::into_inner);
    // The handle of a freed operator may be in use again: the last operator counts.
    if let Some((_, operator)) = operators.iter().rfind(|(known, _)| *known == handle) {
        operator.function.store(function, Ordering::Relaxed);
    }
}
