//! Operators, error handlers and data representations whose functions take handles, codes and datatypes of the older ABI. Their
//! states stay until the process ends: an operator or handler lives as long as an operation or an object uses it.

use super::function_state::FunctionState;
use super::standard::{bridges, standard};
use super::{FortranHandle, LegacyAbi, LegacyHandle, codes};
use std::ffi::{c_char, c_int, c_void};
use std::mem::transmute;

type ReductionCall<D> = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut D);
type LargeReductionCall<D> = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut i64, *mut D);
type HandlerCall<H> = unsafe extern "C" fn(*mut H, *mut c_int, ...);

/// Creates an operator of a function with `int` counts. Returns the library's code.
///
/// # Safety
/// `function` is 0 or a reduction function of the older ABI; `op` may be written.
pub unsafe fn create_op<A: LegacyAbi>(function: usize, commute: c_int, op: *mut usize) -> c_int {
    // The function itself is the state.
    // SAFETY: `reduced` takes the state that is passed.
    unsafe { (bridges().op_create)(reduced::<A>, function as *mut c_void, commute, op) }
}

/// Creates an operator of a function with large counts. Returns the library's code.
///
/// # Safety
/// As for [`create_op`].
pub unsafe fn create_op_c<A: LegacyAbi>(function: usize, commute: c_int, op: *mut usize) -> c_int {
    // SAFETY: `reduced_large` takes the state that is passed.
    unsafe { (bridges().op_create)(reduced_large::<A>, function as *mut c_void, commute, op) }
}

unsafe extern "C" fn reduced<A: LegacyAbi>(
    function: *mut c_void,
    left: *mut c_void,
    right: *mut c_void,
    count: i64,
    datatype: usize,
) {
    let mut datatype = A::Datatype::from_standard(datatype);
    // The library splits operands with more elements.
    let mut count = count as c_int;
    // SAFETY: `function` is a reduction function of the older ABI, by `create_op`. The library's pointers are valid.
    unsafe {
        let function = transmute::<*mut c_void, ReductionCall<A::Datatype>>(function);
        function(left, right, &raw mut count, &raw mut datatype);
    }
}

unsafe extern "C" fn reduced_large<A: LegacyAbi>(
    function: *mut c_void,
    left: *mut c_void,
    right: *mut c_void,
    mut count: i64,
    datatype: usize,
) {
    let mut datatype = A::Datatype::from_standard(datatype);
    // SAFETY: as in `reduced`.
    unsafe {
        let function = transmute::<*mut c_void, LargeReductionCall<A::Datatype>>(function);
        function(left, right, &raw mut count, &raw mut datatype);
    }
}

/// Creates an operator of a Fortran function, which gets the number of the datatype. Returns the library's code.
///
/// # Safety
/// `function` is 0 or a reduction function of Fortran; `op` may be written.
pub unsafe fn create_fortran_op<A: LegacyAbi>(
    function: usize,
    commute: c_int,
    op: *mut usize,
) -> c_int
where
    A::Datatype: FortranHandle,
{
    // SAFETY: `reduced_in_fortran` takes the state that is passed.
    unsafe { (bridges().op_create)(reduced_in_fortran::<A>, function as *mut c_void, commute, op) }
}

unsafe extern "C" fn reduced_in_fortran<A: LegacyAbi>(
    function: *mut c_void,
    left: *mut c_void,
    right: *mut c_void,
    count: i64,
    datatype: usize,
) where
    A::Datatype: FortranHandle,
{
    let mut number = A::Datatype::from_standard(datatype).number();
    // The library splits operands with more elements.
    let mut count = count as c_int;
    // SAFETY: `function` is a reduction function of Fortran, by `create_fortran_op`. The library's pointers are valid.
    unsafe {
        let function = transmute::<*mut c_void, ReductionCall<c_int>>(function);
        function(left, right, &raw mut count, &raw mut number);
    }
}

/// Creates an error handler of a Fortran function, which gets the number of the object. Returns the library's code.
///
/// # Safety
/// `function` is 0 or a function of an error handler in Fortran; `errhandler` may be written.
pub unsafe fn create_fortran_errhandler<A: LegacyAbi, H: FortranHandle>(
    kind: c_int,
    function: usize,
    errhandler: *mut usize,
) -> c_int {
    let create = bridges().errhandler_create;
    // SAFETY: `handled_in_fortran` takes the state that is passed.
    unsafe { create(kind, handled_in_fortran::<A, H>, function as *mut c_void, errhandler) }
}

unsafe extern "C" fn handled_in_fortran<A: LegacyAbi, H: FortranHandle>(
    function: *mut c_void,
    handle: usize,
    code: *mut c_int,
) {
    let mut number = H::from_standard(handle).number();
    // SAFETY: `function` takes numbers, by `create_fortran_errhandler`; `code` is the library's.
    unsafe {
        let mut own = codes::from_standard::<A>(*code);
        transmute::<*mut c_void, HandlerCall<c_int>>(function)(&raw mut number, &raw mut own);
        *code = codes::to_standard::<A>(own);
    }
}

/// Creates an error handler for objects of `kind`, whose handles are `H`. Returns the library's code.
///
/// # Safety
/// `function` is 0 or a function of an error handler for such objects; `errhandler` may be written.
pub unsafe fn create_errhandler<A: LegacyAbi, H: LegacyHandle>(
    kind: c_int,
    function: usize,
    errhandler: *mut usize,
) -> c_int {
    let create = bridges().errhandler_create;
    // SAFETY: `handled` takes the state that is passed.
    unsafe { create(kind, handled::<A, H>, function as *mut c_void, errhandler) }
}

unsafe extern "C" fn handled<A: LegacyAbi, H: LegacyHandle>(
    function: *mut c_void,
    handle: usize,
    code: *mut c_int,
) {
    let mut handle = H::from_standard(handle);
    // SAFETY: `function` takes handles `H`, by `create_errhandler`; `code` is the library's.
    unsafe {
        let mut own = codes::from_standard::<A>(*code);
        transmute::<*mut c_void, HandlerCall<H>>(function)(&raw mut handle, &raw mut own);
        *code = codes::to_standard::<A>(own);
    }
}

/// Functions of a data representation: those that convert data that are read and written, and the function that returns extents.
type DatarepState = FunctionState<*mut c_void>;

type ConvertCall<D, C> =
    unsafe extern "C" fn(*mut c_void, D, C, *mut c_void, i64, *mut c_void) -> c_int;
type ExtentCall<D> = unsafe extern "C" fn(D, *mut isize, *mut c_void) -> c_int;

/// Registers a data representation. `C` is the type of counts: `int`, or 64 bits for `MPI_Register_datarep_c`.
///
/// # Safety
/// The functions are 0 or of the older ABI, with counts of `C`; `name` is a text.
pub unsafe fn register_datarep<A: LegacyAbi, C: DatarepCount>(
    name: *mut c_char,
    read: usize,
    write: usize,
    extent: usize,
    extra: *mut c_void,
) -> c_int {
    let state = DatarepState::leak([read, write, extent], extra);
    let address = |user: usize, own: usize| if user == 0 { 0 } else { own };
    let read = address(read, converted::<A, C, true> as ConvertCall<usize, C> as usize);
    let write = address(write, converted::<A, C, false> as ConvertCall<usize, C> as usize);
    let extent = address(extent, extended::<A> as ExtentCall<usize> as usize);
    // SAFETY: the functions take the state that is passed.
    codes::from_standard::<A>(unsafe { C::register()(name, read, write, extent, state) })
}

/// Type of the counts of a data representation's functions.
pub trait DatarepCount: Copy {
    /// Returns the library's function that registers functions with such counts.
    fn register() -> Register;
}

type Register = unsafe extern "C" fn(*mut c_char, usize, usize, usize, *mut c_void) -> c_int;

impl DatarepCount for c_int {
    fn register() -> Register {
        standard().MPI_Register_datarep
    }
}

impl DatarepCount for i64 {
    fn register() -> Register {
        standard().MPI_Register_datarep_c
    }
}

unsafe extern "C" fn converted<A: LegacyAbi, C: DatarepCount, const READ: bool>(
    user: *mut c_void,
    datatype: usize,
    count: C,
    file: *mut c_void,
    position: i64,
    state: *mut c_void,
) -> c_int {
    let datatype = A::Datatype::from_standard(datatype);
    // SAFETY: `state` is a `DatarepState`, by `register_datarep`, and its functions are of the older ABI.
    unsafe {
        let state = &*state.cast::<DatarepState>();
        let function = state.functions[if READ { 0 } else { 1 }];
        let function = transmute::<usize, ConvertCall<A::Datatype, C>>(function);
        codes::to_standard::<A>(function(user, datatype, count, file, position, state.extra))
    }
}

unsafe extern "C" fn extended<A: LegacyAbi>(
    datatype: usize,
    extent: *mut isize,
    state: *mut c_void,
) -> c_int {
    // SAFETY: as in `converted`.
    unsafe {
        let state = &*state.cast::<DatarepState>();
        let function = transmute::<usize, ExtentCall<A::Datatype>>(state.functions[2]);
        codes::to_standard::<A>(function(A::Datatype::from_standard(datatype), extent, state.extra))
    }
}
