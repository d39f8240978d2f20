//! Attributes (MPI 5.0, section 19.3.7): C sets and gets addresses, Fortran integers. An integer that Fortran sets lies here, and C
//! gets its address; an address that C sets is the integer that Fortran gets.

use super::NumberedHandle;
use super::callbacks::VariableState;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};
use std::sync::{LazyLock, Mutex, PoisonError};

/// An integer of an attribute: the type that Fortran's function has.
pub trait AttributeInteger: Copy + 'static {
    const WIDTH: IntegerWidth;
    fn wide(self) -> isize;
    fn narrow(value: isize) -> Self;
}

/// Type of the integer that C finds at an attribute's address.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum IntegerWidth {
    Int,
    Aint,
}

impl AttributeInteger for c_int {
    const WIDTH: IntegerWidth = IntegerWidth::Int;
    fn wide(self) -> isize {
        self as isize
    }
    fn narrow(value: isize) -> c_int {
        value as c_int
    }
}

impl AttributeInteger for isize {
    const WIDTH: IntegerWidth = IntegerWidth::Aint;
    fn wide(self) -> isize {
        self
    }
    fn narrow(value: isize) -> isize {
        value
    }
}

/// An integer that Fortran has set. On a little-endian processor, the `int` that C may read is its first half.
struct KeptInteger {
    key: c_int,
    width: IntegerWidth,
    value: Box<isize>,
}

/// The integers that Fortran has set, by address.
static KEPT: LazyLock<Mutex<HashMap<usize, KeptInteger>>> = LazyLock::new(Mutex::default);

fn kept<R>(run: impl FnOnce(&mut HashMap<usize, KeptInteger>) -> R) -> R {
    // A panic leaves the map as it was.
    run(&mut KEPT.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Keeps an integer, and returns the address that C gets.
pub fn keep(key: c_int, value: isize, width: IntegerWidth) -> *mut c_void {
    let value = Box::new(value);
    let address = (&raw const *value).expose_provenance();
    kept(|all| all.insert(address, KeptInteger { key, width, value }));
    with_exposed_provenance_mut(address)
}

/// Forgets an integer, if Fortran has set it for this key.
pub fn forget(key: c_int, address: *mut c_void) {
    kept(|all| {
        if all.get(&address.addr()).is_some_and(|one| one.key == key) {
            all.remove(&address.addr());
        }
    });
}

/// Predefined keys of an older ABI, in C and in Fortran.
pub struct PredefinedKeys {
    /// Fortran's and C's numbers of the keys.
    pub numbers: &'static [(c_int, c_int)],
    /// Fortran's numbers of the keys whose attributes are addresses of an `int`.
    pub ints: &'static [c_int],
    /// Fortran's number of MPI_WIN_SIZE, whose attribute is the address of an `MPI_Aint`.
    pub aint: c_int,
}

impl PredefinedKeys {
    /// Returns C's number of a key.
    pub fn to_c(&self, key: c_int) -> c_int {
        self.numbers.iter().find(|(fortran, _)| *fortran == key).map_or(key, |&(_, c)| c)
    }

    /// Returns an attribute's value for Fortran.
    ///
    /// # Safety
    /// `address` is the attribute that the library has for Fortran's number `key`.
    pub unsafe fn value(&self, key: c_int, address: *mut c_void) -> isize {
        if self.ints.contains(&key) {
            // SAFETY: such attributes are addresses of an `int`.
            return unsafe { *with_exposed_provenance::<c_int>(address.expose_provenance()) }
                as isize;
        }
        if self.aint == key {
            // SAFETY: such attributes are addresses of an `MPI_Aint`.
            return unsafe { *with_exposed_provenance::<isize>(address.expose_provenance()) };
        }
        set_value(key, address)
    }
}

/// Returns the value of an attribute that the program has set.
fn set_value(key: c_int, address: *mut c_void) -> isize {
    let found =
        kept(|all| all.get(&address.addr()).filter(|one| one.key == key).map(|one| *one.value));
    found.unwrap_or(address.addr() as isize)
}

type CopyFunction<I> =
    unsafe extern "C" fn(*mut c_int, *mut c_int, *mut I, *mut I, *mut I, *mut c_int, *mut c_int);
type DeleteFunction<I> = unsafe extern "C" fn(*mut c_int, *mut c_int, *mut I, *mut I, *mut c_int);

/// Calls Fortran's function that copies an attribute.
///
/// # Safety
/// `state` is a [`VariableState`] whose first function copies attributes; `new` and `flag` may be written.
pub unsafe extern "C" fn copied<H: NumberedHandle, I: AttributeInteger>(
    handle: H,
    mut key: c_int,
    state: *mut c_void,
    value: *mut c_void,
    new: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the caller promises it. The function is of this type by the interface that the standard gives it.
    unsafe {
        let state = &*state.cast::<VariableState>();
        let copy = transmute::<usize, CopyFunction<I>>(state.functions[0]);
        let (mut number, mut extra) = (handle.number(), I::narrow(state.extra.value));
        let (mut from, mut to) = (I::narrow(set_value(key, value)), I::narrow(0));
        let (mut copies, mut code) = (0, 0);
        copy(
            &raw mut number,
            &raw mut key,
            &raw mut extra,
            &raw mut from,
            &raw mut to,
            &raw mut copies,
            &raw mut code,
        );
        flag.write(c_int::from(copies != 0));
        if code == 0 && copies != 0 {
            // The copy is like its original: an integer of Fortran, or an address.
            let width = kept(|all| {
                all.get(&value.addr()).filter(|one| one.key == key).map(|one| one.width)
            });
            let address = with_exposed_provenance_mut(to.wide() as usize);
            let address = width.map_or(address, |width| keep(key, to.wide(), width));
            new.cast::<*mut c_void>().write(address);
        }
        code
    }
}

/// Calls Fortran's function that deletes an attribute.
///
/// # Safety
/// `state` is a [`VariableState`] whose second function deletes attributes.
pub unsafe extern "C" fn deleted<H: NumberedHandle, I: AttributeInteger>(
    handle: H,
    mut key: c_int,
    value: *mut c_void,
    state: *mut c_void,
) -> c_int {
    // SAFETY: as in `copied`.
    unsafe {
        let state = &*state.cast::<VariableState>();
        let delete = transmute::<usize, DeleteFunction<I>>(state.functions[1]);
        let (mut number, mut extra) = (handle.number(), I::narrow(state.extra.value));
        let (mut from, mut code) = (I::narrow(set_value(key, value)), 0);
        delete(&raw mut number, &raw mut key, &raw mut from, &raw mut extra, &raw mut code);
        if code == 0 {
            forget(key, value);
        }
        code
    }
}
