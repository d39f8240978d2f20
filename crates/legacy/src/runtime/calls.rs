//! Conversions of single arguments, and functions with a body of their own.

use super::arguments::{
    ArrayStorage, HandleArgument, HandleArray, NumberArgument, TextArgument, length,
};
use super::standard::{constants, standard};
use super::{LegacyAbi, LegacyHandle, NumberMap, TypeBound, codes, from_standard, key_to_standard};
use std::ffi::{c_char, c_int, c_void};

/// Converts the address of a buffer: MPI_IN_PLACE and MPI_BUFFER_AUTOMATIC are 1 and 2 in the standard ABI, and 1 below 0 in
/// MPICH's. MPI_BOTTOM is 0 everywhere.
#[inline(always)]
pub fn buffer<A: LegacyAbi>(address: *mut c_void) -> *mut c_void {
    if A::IN_PLACE == 1 {
        return address;
    }
    match address.addr().wrapping_neg() {
        special @ 1..=2 => std::ptr::without_provenance_mut(special),
        _ => address,
    }
}

/// Returns true for MPI_IN_PLACE.
pub fn is_in_place<A: LegacyAbi>(address: *mut c_void) -> bool {
    address.addr() == A::IN_PLACE as usize
}

/// Converts the address of a buffer that the library has stored, which may be MPI_BUFFER_AUTOMATIC.
///
/// # Safety
/// `address` is NULL or points to an address.
pub unsafe fn convert_detached<A: LegacyAbi>(address: *mut c_void) {
    let address = address.cast::<usize>();
    // SAFETY: the caller promises it.
    unsafe {
        if A::IN_PLACE != 1
            && !address.is_null()
            && *address == constants::MPI_BUFFER_AUTOMATIC as usize
        {
            address.write((constants::MPI_BUFFER_AUTOMATIC as usize).wrapping_neg());
        }
    }
}

/// Returns the number that an argument holds.
///
/// # Safety
/// `count` is NULL or may be read.
pub unsafe fn stored(count: *mut c_int) -> usize {
    // SAFETY: `count` may be read: the caller promises it.
    if count.is_null() { 0 } else { length(unsafe { *count }) }
}

/// Converts the displacement of a file's view.
pub fn displacement(current: i64, displacement: i64) -> i64 {
    if displacement == current { constants::MPI_DISPLACEMENT_CURRENT } else { displacement }
}

/// Converts the argument of a distribution, which may be an ordinary number.
pub fn distribution_argument<A: LegacyAbi>(argument: c_int) -> c_int {
    let default = constants::MPI_DISTRIBUTE_DFLT_DARG as c_int;
    if argument == from_standard(A::DISTRIBUTIONS, default) { default } else { argument }
}

/// Returns the number of processes that a collective operation on a communicator addresses: those of the other group, if there is one.
pub fn members(comm: usize) -> usize {
    let (mut inter, mut size) = (0, 0);
    // SAFETY: the results are local variables. An error handler is called for a communicator that does not exist, as it would be
    // for the operation.
    unsafe {
        (standard().MPI_Comm_test_inter)(comm, &raw mut inter);
        match inter {
            0 => (standard().MPI_Comm_size)(comm, &raw mut size),
            _ => (standard().MPI_Comm_remote_size)(comm, &raw mut size),
        };
    }
    length(size)
}

/// Returns the number of neighbors from which (`side` 0) or to which (1) a process of a communicator with a topology sends.
pub fn neighbors(comm: usize, side: usize) -> usize {
    let (mut topology, mut rank, mut count, mut weighted) = (0, 0, [0; 2], 0);
    let standard = standard();
    let [sources, destinations] = &mut count;
    // SAFETY: the results are local variables.
    unsafe {
        (standard.MPI_Topo_test)(comm, &raw mut topology);
        match i64::from(topology) {
            constants::MPI_CART => {
                let mut dims = 0;
                (standard.MPI_Cartdim_get)(comm, &raw mut dims);
                count = [2 * dims; 2];
            }
            constants::MPI_GRAPH => {
                let mut all = 0;
                (standard.MPI_Comm_rank)(comm, &raw mut rank);
                (standard.MPI_Graph_neighbors_count)(comm, rank, &raw mut all);
                count = [all; 2];
            }
            constants::MPI_DIST_GRAPH => {
                (standard.MPI_Dist_graph_neighbors_count)(
                    comm,
                    sources,
                    destinations,
                    &raw mut weighted,
                );
            }
            _ => {}
        }
    }
    length(count[side])
}

/// Returns the number of processes that MPI_Comm_spawn_multiple starts.
///
/// # Safety
/// `most` is NULL or has `count` elements.
pub unsafe fn spawned(count: c_int, most: *mut c_int) -> usize {
    if most.is_null() {
        return 0;
    }
    // SAFETY: `most` has `count` elements: the caller promises it.
    (0..length(count)).map(|i| length(unsafe { *most.add(i) })).sum()
}

/// Runs a function that returns a handle. Returns the older ABI's code.
///
/// # Safety
/// `to` is NULL or may be written.
pub unsafe fn made<A: LegacyAbi, H: LegacyHandle>(
    to: *mut H,
    create: impl FnOnce(*mut usize) -> c_int,
) -> c_int {
    let mut argument = HandleArgument::out(to);
    let code = create(argument.pass());
    // SAFETY: `to` is NULL or may be written: the caller promises it.
    unsafe { argument.finish() };
    codes::from_standard::<A>(code)
}

/// Runs MPI_Error_class.
///
/// # Safety
/// `class` is NULL or may be written.
pub unsafe fn error_class<A: LegacyAbi>(code: c_int, class: *mut c_int) -> c_int {
    let mut argument = NumberArgument::out(class);
    let to = argument.pass();
    // SAFETY: `class` is NULL or may be written: the caller promises it.
    unsafe {
        if codes::extra::<A>(code).is_some() && !to.is_null() {
            class.write(code);
            return 0;
        }
        let result = (standard().MPI_Error_class)(codes::to_standard::<A>(code), to);
        argument.finish(codes::from_standard::<A>);
        codes::from_standard::<A>(result)
    }
}

/// Runs MPI_Error_string. `room` is the older ABI's MPI_MAX_ERROR_STRING.
///
/// # Safety
/// `text` is NULL or has `room` bytes, `length` is NULL or may be written.
pub unsafe fn error_string<A: LegacyAbi>(
    code: c_int,
    text: *mut c_char,
    room: usize,
    length: *mut c_int,
) -> c_int {
    // SAFETY: `text` and `length` are valid by the caller's promise.
    unsafe {
        if let (Some(extra), false) = (codes::extra::<A>(code), text.is_null() || length.is_null())
        {
            std::ptr::copy_nonoverlapping(extra.as_ptr(), text, extra.count_bytes() + 1);
            length.write(extra.count_bytes() as c_int);
            return 0;
        }
        let mut argument = TextArgument::<{ constants::MPI_MAX_ERROR_STRING as usize }>::out(text);
        let result =
            (standard().MPI_Error_string)(codes::to_standard::<A>(code), argument.pass(), length);
        argument.finish(room, length);
        codes::from_standard::<A>(result)
    }
}

/// Runs MPI_Get_version.
///
/// # Safety
/// The pointers are NULL or may be written.
pub unsafe fn version<A: LegacyAbi>(version: *mut c_int, subversion: *mut c_int) -> c_int {
    for (to, number) in [(version, A::VERSION.0), (subversion, A::VERSION.1)] {
        if to.is_null() {
            return codes::from_standard::<A>(constants::MPI_ERR_ARG as c_int);
        }
        // SAFETY: the pointer may be written: the caller promises it.
        unsafe { to.write(number) }
    }
    0
}

/// Runs MPI_Abi_get_version: this is not the standard ABI.
///
/// # Safety
/// The pointers are NULL or may be written.
pub unsafe fn abi_version(major: *mut c_int, minor: *mut c_int) -> c_int {
    for to in [major, minor] {
        if !to.is_null() {
            // SAFETY: the pointer may be written: the caller promises it.
            unsafe { to.write(-1) }
        }
    }
    0
}

/// Checks the arguments of MPI_Session_set_info. No key changes a session that exists, so the keys have no effect.
///
/// # Safety
/// The handles are the library's.
pub unsafe fn session_set_info<A: LegacyAbi>(session: usize, info: usize) -> c_int {
    let (mut own, mut keys) = (constants::MPI_INFO_NULL as usize, 0);
    // SAFETY: the results are local variables. The library checks the handles.
    unsafe {
        let mut code = (standard().MPI_Session_get_info)(session, &raw mut own);
        if code == 0 {
            (standard().MPI_Info_free)(&raw mut own);
            code = (standard().MPI_Info_get_nkeys)(info, &raw mut keys);
        }
        codes::from_standard::<A>(code)
    }
}

/// Copies a status to or from Fortran, where it has the same numbers.
///
/// # Safety
/// The pointers are NULL or have `numbers` elements.
pub unsafe fn status_copy(from: *mut c_int, to: *mut c_int, numbers: usize) -> c_int {
    if !from.is_null() && !to.is_null() {
        // SAFETY: both have `numbers` elements: the caller promises it.
        unsafe { std::ptr::copy(from, to, numbers) }
    }
    0
}

/// Returns Fortran's number of a handle: that of the table, or else the library's number.
///
/// # Safety
/// `number` is the library's function for such handles.
pub unsafe fn handle_to_fortran<H: LegacyHandle>(
    handle: H,
    table: NumberMap,
    number: unsafe extern "C" fn(usize) -> c_int,
) -> c_int {
    let handle = handle.to_standard();
    match handle < 0x1000 {
        // A handle that the older ABI does not have in Fortran keeps the standard's number.
        true => from_standard(table, handle as c_int),
        // SAFETY: the function takes any handle.
        false => unsafe { number(handle) },
    }
}

/// Returns the handle of Fortran's number.
///
/// # Safety
/// `handle` is the library's function for such handles.
pub unsafe fn handle_from_fortran<H: LegacyHandle>(
    number: c_int,
    table: NumberMap,
    handle: unsafe extern "C" fn(c_int) -> usize,
) -> H {
    H::from_standard(match number < 0x1000 {
        true => key_to_standard(table, number).max(0) as usize,
        // SAFETY: the function takes any number.
        false => unsafe { handle(number) },
    })
}

/// Makes the datatype of MPI_Type_struct, whose bounds may be given by datatypes.
///
/// # Safety
/// The arrays have `count` elements, `newtype` is NULL or may be written.
pub unsafe fn bounded_struct<A: LegacyAbi>(
    count: c_int,
    lengths: *mut c_int,
    displacements: *mut isize,
    types: *mut A::Datatype,
    newtype: *mut A::Datatype,
) -> c_int {
    let standard = standard();
    let n = length(count);
    // SAFETY: the arrays have `count` elements: the caller promises it.
    let block = |i: usize| unsafe { (*lengths.add(i), *displacements.add(i), *types.add(i)) };
    let marked = |wanted| {
        let marks = (0..n).map(block).filter(move |block| A::bound(block.2) == Some(wanted));
        marks.filter(|block| block.0 > 0).map(|block| block.1)
    };
    let bounds = [marked(TypeBound::Lower).min(), marked(TypeBound::Upper).max()];
    let mut own: Vec<_> = (0..n).map(block).filter(|block| A::bound(block.2).is_none()).collect();
    let (mut blocks, mut places): (Vec<_>, Vec<_>) = own.iter().map(|own| (own.0, own.1)).unzip();
    let mut kinds: Vec<_> = own.iter_mut().map(|own| own.2).collect();
    // SAFETY: all arrays have the length of `blocks`; `newtype` is valid by the caller's promise.
    unsafe {
        let mut storage = ArrayStorage::empty();
        let mut kinds = HandleArray::inout(&mut storage, kinds.as_mut_ptr(), kinds.len());
        made::<A, _>(newtype, |to| {
            let create = standard.MPI_Type_create_struct;
            let code = create(
                blocks.len() as c_int,
                blocks.as_mut_ptr(),
                places.as_mut_ptr(),
                kinds.pass(),
                to,
            );
            if code != 0 || bounds == [None; 2] {
                return code;
            }
            let (mut plain, mut lower, mut extent) = (*to, 0, 0);
            (standard.MPI_Type_get_extent)(plain, &raw mut lower, &raw mut extent);
            let [low, high] = bounds;
            let (low, high) = (low.unwrap_or(lower), high.unwrap_or(lower + extent));
            let code = (standard.MPI_Type_create_resized)(plain, low, high - low, to);
            (standard.MPI_Type_free)(&raw mut plain);
            code
        })
    }
}
