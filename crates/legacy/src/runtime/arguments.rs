//! Arguments by address: each is made from the program's pointer, gives the library a pointer, and stores results afterwards.

use super::standard::StandardStatus;
use super::{INLINE, LegacyAbi, LegacyHandle, LegacyStatus, StatusFields};
use super::{codes, special_from_standard, special_to_standard};
use std::ffi::{c_char, c_int};
use std::mem::MaybeUninit;
use std::ptr::null_mut;

/// A value that the library never stores: it shows that nothing was stored.
const NOTHING: c_int = c_int::MIN;

/// A handle that the library returns, or changes.
pub struct HandleArgument<H> {
    user: *mut H,
    standard: usize,
    before: usize,
}

impl<H: LegacyHandle> HandleArgument<H> {
    /// Begins an argument that is only written.
    #[inline(always)]
    pub fn out(user: *mut H) -> HandleArgument<H> {
        HandleArgument { user, standard: usize::MAX, before: usize::MAX }
    }

    /// Begins an argument that is read and written.
    ///
    /// # Safety
    /// `user` is NULL or may be read.
    #[inline(always)]
    pub unsafe fn inout(user: *mut H) -> HandleArgument<H> {
        // SAFETY: `user` is not NULL, so it may be read: the caller promises it.
        let standard = if user.is_null() { 0 } else { unsafe { *user }.to_standard() };
        HandleArgument { user, standard, before: standard }
    }

    /// Returns the address for the library: NULL if the program's is NULL.
    #[inline(always)]
    pub fn pass(&mut self) -> *mut usize {
        if self.user.is_null() { null_mut() } else { &raw mut self.standard }
    }

    /// Stores the handle if the library has stored one.
    ///
    /// # Safety
    /// The program's pointer is NULL or may be written.
    #[inline(always)]
    pub unsafe fn finish(self) {
        if self.standard != self.before && !self.user.is_null() {
            // SAFETY: the pointer is not NULL, so it may be written: the caller promises it.
            unsafe { self.user.write(H::from_standard(self.standard)) }
        }
    }
}

/// Converts a negative length, which the library refuses, to an empty array.
pub fn length(count: c_int) -> usize {
    usize::try_from(count).unwrap_or(0)
}

/// Memory for an array, on the stack of the entry point unless the array is long. It lies outside the arguments, so that nothing
/// copies it.
pub struct ArrayStorage<T> {
    inline: [MaybeUninit<T>; INLINE],
    heap: Vec<T>,
}

impl<T: Copy> ArrayStorage<T> {
    /// Makes room, without any element.
    #[inline(always)]
    pub fn empty() -> ArrayStorage<T> {
        ArrayStorage { inline: [const { MaybeUninit::uninit() }; INLINE], heap: Vec::new() }
    }

    /// Stores `len` elements.
    #[inline(always)]
    fn fill(&mut self, len: usize, element: impl Fn(usize) -> T) -> &mut [T] {
        if len > INLINE {
            self.heap = (0..len).map(element).collect();
            return &mut self.heap;
        }
        for (i, place) in self.inline.iter_mut().take(len).enumerate() {
            place.write(element(i));
        }
        // SAFETY: the first `len` elements were written, and `len` is at most `INLINE`.
        unsafe { std::slice::from_raw_parts_mut(self.inline.as_mut_ptr().cast(), len) }
    }
}

/// An array of handles.
pub struct HandleArray<'a, H> {
    user: *mut H,
    standard: &'a mut [usize],
}

impl<'a, H: LegacyHandle> HandleArray<'a, H> {
    /// Converts an array of the program.
    ///
    /// # Safety
    /// `user` is NULL or has `len` elements.
    #[inline(always)]
    pub unsafe fn inout(storage: &'a mut ArrayStorage<usize>, user: *mut H, len: usize) -> Self {
        let len = if user.is_null() { 0 } else { len };
        // SAFETY: `user` has `len` elements: the caller promises it.
        let standard = storage.fill(len, |i| unsafe { *user.add(i) }.to_standard());
        HandleArray { user, standard }
    }

    /// Begins an array that is only written.
    pub fn out(storage: &'a mut ArrayStorage<usize>, user: *mut H, len: usize) -> Self {
        HandleArray { user, standard: storage.fill(len, |_| usize::MAX) }
    }

    /// Returns the address for the library: NULL if the program's is NULL.
    pub fn pass(&mut self) -> *mut usize {
        if self.user.is_null() { null_mut() } else { self.standard.as_mut_ptr() }
    }

    /// Stores the handles.
    ///
    /// # Safety
    /// The program's array may be written.
    pub unsafe fn finish(self) {
        for (i, &handle) in self.standard.iter().enumerate() {
            if handle != usize::MAX && !self.user.is_null() {
                // SAFETY: the array has as many elements as `standard`.
                unsafe { self.user.add(i).write(H::from_standard(handle)) }
            }
        }
    }
}

/// Converts a status of the program.
pub fn status_to_standard<A: LegacyAbi>(status: &A::Status) -> StandardStatus {
    let StatusFields { source, tag, error, bytes, cancelled } = status.fields();
    StandardStatus {
        source: special_to_standard(A::RANKS, source),
        tag: special_to_standard(A::TAGS, tag),
        error: codes::to_standard::<A>(error),
        internal: [bytes as u32 as c_int, (bytes >> 32) as c_int, c_int::from(cancelled), 0, 0],
    }
}

/// Stores what the library has stored in a status: all fields, the error alone, or nothing.
fn store_status<A: LegacyAbi>(from: &StandardStatus, to: &mut A::Status) {
    let [low, high, cancelled, ..] = from.internal;
    if from.source != NOTHING {
        to.store(StatusFields {
            source: special_from_standard(A::RANKS, from.source),
            tag: special_from_standard(A::TAGS, from.tag),
            error: 0,
            bytes: u64::from(low as u32) | u64::from(high as u32) << 32,
            cancelled: cancelled != 0,
        });
    }
    if from.error != NOTHING {
        to.store_error(codes::from_standard::<A>(from.error));
    }
}

const EMPTY: StandardStatus =
    StandardStatus { source: NOTHING, tag: 0, error: NOTHING, internal: [0; 5] };

/// A status that the library returns.
pub struct StatusArgument<A: LegacyAbi> {
    user: *mut A::Status,
    standard: StandardStatus,
}

impl<A: LegacyAbi> StatusArgument<A> {
    /// Begins a status that is only written.
    #[inline(always)]
    pub fn out(user: *mut A::Status) -> StatusArgument<A> {
        StatusArgument { user, standard: EMPTY }
    }

    /// Begins a status that is read, or read and written.
    ///
    /// # Safety
    /// `user` is NULL, stands for an ignored status, or may be read.
    pub unsafe fn inout(user: *mut A::Status) -> StatusArgument<A> {
        let mut argument = StatusArgument::out(user);
        if !argument.ignored() {
            // SAFETY: `user` may be read: the caller promises it.
            argument.standard = status_to_standard::<A>(unsafe { &*user });
        }
        argument
    }

    #[inline(always)]
    fn ignored(&self) -> bool {
        self.user.is_null() || self.user.addr() == A::Status::IGNORE
    }

    /// Returns the address for the library.
    #[inline(always)]
    pub fn pass(&mut self) -> *mut StandardStatus {
        if self.ignored() { null_mut() } else { &raw mut self.standard }
    }

    /// Stores the status.
    ///
    /// # Safety
    /// The program's pointer is NULL, stands for an ignored status, or may be written.
    #[inline(always)]
    pub unsafe fn finish(self) {
        if !self.ignored() {
            // SAFETY: the pointer may be written: the caller promises it.
            store_status::<A>(&self.standard, unsafe { &mut *self.user });
        }
    }
}

/// An array of statuses that the library returns.
pub struct StatusArray<'a, A: LegacyAbi> {
    user: *mut A::Status,
    standard: &'a mut [StandardStatus],
}

impl<'a, A: LegacyAbi> StatusArray<'a, A> {
    /// Begins an array of `len` statuses.
    #[inline(always)]
    pub fn out(
        storage: &'a mut ArrayStorage<StandardStatus>,
        user: *mut A::Status,
        len: usize,
    ) -> Self {
        let ignored = user.is_null() || user.addr() == A::Status::IGNORE;
        StatusArray { user, standard: storage.fill(if ignored { 0 } else { len }, |_| EMPTY) }
    }

    /// Returns the address for the library.
    pub fn pass(&mut self) -> *mut StandardStatus {
        match self.user.is_null() || self.user.addr() == A::Status::IGNORE {
            true => null_mut(),
            false => self.standard.as_mut_ptr(),
        }
    }

    /// Stores the statuses.
    ///
    /// # Safety
    /// The program's array may be written.
    pub unsafe fn finish(self) {
        for (i, status) in self.standard.iter().enumerate() {
            // SAFETY: the array has as many elements as `standard`, which is empty if the program ignores statuses.
            store_status::<A>(status, unsafe { &mut *self.user.add(i) });
        }
    }
}

/// A number that the library returns, or changes.
pub struct NumberArgument {
    user: *mut c_int,
    standard: c_int,
}

impl NumberArgument {
    /// Begins a number that is only written.
    pub fn out(user: *mut c_int) -> NumberArgument {
        NumberArgument { user, standard: NOTHING }
    }

    /// Begins a number that is read by `convert`, and written.
    ///
    /// # Safety
    /// `user` is NULL or may be read.
    pub unsafe fn inout(user: *mut c_int, convert: impl Fn(c_int) -> c_int) -> NumberArgument {
        // SAFETY: `user` is not NULL, so it may be read: the caller promises it.
        let standard = if user.is_null() { NOTHING } else { convert(unsafe { *user }) };
        NumberArgument { user, standard }
    }

    /// Returns the address for the library: NULL if the program's is NULL.
    pub fn pass(&mut self) -> *mut c_int {
        if self.user.is_null() { null_mut() } else { &raw mut self.standard }
    }

    /// Stores the number that `convert` makes of the library's.
    ///
    /// # Safety
    /// The program's pointer is NULL or may be written.
    pub unsafe fn finish(self, convert: impl Fn(c_int) -> c_int) {
        if !self.user.is_null() && self.standard != NOTHING {
            // SAFETY: the pointer may be written: the caller promises it.
            unsafe { self.user.write(convert(self.standard)) }
        }
    }
}

/// An array of numbers that the library reads.
pub struct NumberArray<'a> {
    user: *mut c_int,
    standard: &'a mut [c_int],
}

impl<'a> NumberArray<'a> {
    /// Converts an array of the program.
    ///
    /// # Safety
    /// `user` is NULL or has `len` elements.
    pub unsafe fn new(
        storage: &'a mut ArrayStorage<c_int>,
        user: *mut c_int,
        len: usize,
        convert: impl Fn(c_int) -> c_int,
    ) -> Self {
        let len = if user.is_null() { 0 } else { len };
        // SAFETY: `user` has `len` elements: the caller promises it.
        NumberArray { user, standard: storage.fill(len, |i| convert(unsafe { *user.add(i) })) }
    }

    /// Returns the address for the library.
    pub fn pass(&mut self) -> *mut c_int {
        if self.user.is_null() { null_mut() } else { self.standard.as_mut_ptr() }
    }
}

/// Converts numbers that the library has stored in an array of the program.
///
/// # Safety
/// `user` is NULL or has `len` elements.
pub unsafe fn convert_stored(user: *mut c_int, len: usize, convert: impl Fn(c_int) -> c_int) {
    if !user.is_null() {
        for i in 0..len {
            // SAFETY: `user` has `len` elements: the caller promises it.
            unsafe { *user.add(i) = convert(*user.add(i)) }
        }
    }
}

/// A text of at most `N` bytes that the library returns, where the program's buffer may be smaller.
pub struct TextArgument<const N: usize> {
    user: *mut c_char,
    text: [c_char; N],
}

impl<const N: usize> TextArgument<N> {
    pub fn out(user: *mut c_char) -> TextArgument<N> {
        TextArgument { user, text: [0; N] }
    }

    /// Returns the address for the library.
    pub fn pass(&mut self) -> *mut c_char {
        if self.user.is_null() { null_mut() } else { self.text.as_mut_ptr() }
    }

    /// Stores the text, cut to `room` bytes with its NUL. Cuts the length, too.
    ///
    /// # Safety
    /// The program's buffer has `room` bytes, `length` is NULL or may be read and written.
    pub unsafe fn finish(self, room: usize, length: *mut c_int) {
        if self.user.is_null() {
            return;
        }
        let len = self.text.iter().position(|&c| c == 0).unwrap_or(N).min(room - 1);
        // SAFETY: the buffer has `room` bytes, which is more than `len`: the caller promises it.
        unsafe {
            std::ptr::copy_nonoverlapping(self.text.as_ptr(), self.user, len);
            self.user.add(len).write(0);
            if !length.is_null() && *length > len as c_int {
                *length = len as c_int;
            }
        }
    }
}
