//! Functions of Fortran without a state, operators and error handlers: a C function for each, from a store of them.

use super::NumberedHandle;
use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of different functions of a kind.
const SLOTS: usize = 128;

/// Functions of a kind, by slot. 0 is an empty slot. A slot is filled once, and read at each call without a lock.
struct SlotTable([AtomicUsize; SLOTS]);

impl SlotTable {
    const fn new() -> SlotTable {
        SlotTable([const { AtomicUsize::new(0) }; SLOTS])
    }

    /// Returns the function in a slot.
    fn get(&self, slot: usize) -> usize {
        self.0[slot].load(Ordering::Relaxed)
    }

    /// Returns the slot of a function. Ends the process with a sentence if all slots are in use.
    fn slot(&self, function: usize, use_of: &str) -> usize {
        let claims = |slot: &AtomicUsize| {
            let (order, other) = (Ordering::Relaxed, Ordering::Relaxed);
            let claimed = slot.compare_exchange(0, function, order, other);
            claimed.is_ok() || claimed == Err(function)
        };
        let Some(slot) = self.0.iter().position(claims) else {
            eprintln!(
                "weft: the program passes more than {SLOTS} different Fortran functions to {use_of}; use fewer functions"
            );
            std::process::abort();
        };
        slot
    }
}

static OPERATORS: SlotTable = SlotTable::new();
/// Error handlers of communicators, files, windows and sessions.
static HANDLERS: [SlotTable; 4] = [const { SlotTable::new() }; 4];

type FortranOperator = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut c_int);
type Handler = unsafe extern "C" fn(*mut c_int, *mut c_int);

unsafe extern "C" fn reduced<D: NumberedHandle, const SLOT: usize>(
    left: *mut c_void,
    right: *mut c_void,
    count: *mut c_int,
    datatype: *mut D,
) {
    // SAFETY: the slot has a function of this type, by `operator`. The library's pointers are valid.
    unsafe {
        let mut number = (*datatype).number();
        transmute::<usize, FortranOperator>(OPERATORS.get(SLOT))(
            left,
            right,
            count,
            &raw mut number,
        );
    }
}

unsafe extern "C" fn handled<H: NumberedHandle, const KIND: usize, const SLOT: usize>(
    object: *mut H,
    code: *mut c_int,
) {
    // SAFETY: the slot has a function of this type, by `handler`. The library's pointers are valid.
    unsafe {
        let mut number = (*object).number();
        transmute::<usize, Handler>(HANDLERS[KIND].get(SLOT))(&raw mut number, code);
    }
}

/// Builds the array of a function's instances for all slots.
macro_rules! all_slots {
    ($kind:ty, $function:ident < $($argument:tt),* >) => {
        all_slots!(@rows $kind, $function, ($($argument),*), 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    (@rows $kind:ty, $function:ident, $arguments:tt, $($row:literal)*) => {
        [$(all_slots!(@row $kind, $function, $arguments, $row)),*]
    };
    (@row $kind:ty, $function:ident, ($($argument:tt),*), $row:literal) => {
        [
            $function::<$($argument,)* { $row * 8 }> as $kind, $function::<$($argument,)* { $row * 8 + 1 }>,
            $function::<$($argument,)* { $row * 8 + 2 }>, $function::<$($argument,)* { $row * 8 + 3 }>,
            $function::<$($argument,)* { $row * 8 + 4 }>, $function::<$($argument,)* { $row * 8 + 5 }>,
            $function::<$($argument,)* { $row * 8 + 6 }>, $function::<$($argument,)* { $row * 8 + 7 }>,
        ]
    };
}

type CReduction<D> = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut D);
type ErrorFunction<H> = unsafe extern "C" fn(*mut H, *mut c_int);

/// Returns a C function that calls Fortran's operator.
pub fn operator<D: NumberedHandle>(function: usize) -> usize {
    let slot = OPERATORS.slot(function, "MPI_Op_create");
    all_slots!(CReduction<D>, reduced<D>)[slot / 8][slot % 8] as usize
}

/// Returns a C function that calls Fortran's error handler for objects of `KIND`, whose handles are `H`.
pub fn handler<H: NumberedHandle, const KIND: usize>(function: usize) -> usize {
    let slot = HANDLERS[KIND].slot(function, "functions that create error handlers");
    all_slots!(ErrorFunction<H>, handled<H, KIND>)[slot / 8][slot % 8] as usize
}
