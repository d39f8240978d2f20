//! Texts: Fortran's are padded with blanks, C's end with NUL.

use smallvec::SmallVec;
use std::ffi::{CStr, c_char, c_int};
use std::ptr::null_mut;

/// Number of bytes of a text that are converted on the stack.
const INLINE: usize = 256;

/// Treatment of blanks before a text. Blanks behind a text are no part of the text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum LeadingBlanks {
    Keep,
    Trim,
}

/// Returns the bytes of Fortran's text without blanks.
///
/// # Safety
/// `text` has `len` bytes.
unsafe fn stripped<'a>(text: *const c_char, len: usize, leading: LeadingBlanks) -> &'a [u8] {
    if text.is_null() {
        return &[];
    }
    // SAFETY: the text has `len` bytes: the caller promises it.
    let mut bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), len) };
    while let [rest @ .., b' '] = bytes {
        bytes = rest;
    }
    while let (LeadingBlanks::Trim, [b' ', rest @ ..]) = (leading, bytes) {
        bytes = rest;
    }
    bytes
}

/// A text for a C function, or from a C function.
pub struct PaddedText(SmallVec<[u8; INLINE]>);

impl PaddedText {
    /// Converts a text of the program.
    ///
    /// # Safety
    /// `text` has `len` bytes.
    pub unsafe fn read(text: *const c_char, len: usize, leading: LeadingBlanks) -> PaddedText {
        // SAFETY: the caller promises it.
        let mut bytes = SmallVec::from_slice(unsafe { stripped(text, len, leading) });
        bytes.push(0);
        PaddedText(bytes)
    }

    /// Begins a text that the C function writes, of `capacity` bytes with the NUL.
    pub fn room(capacity: usize) -> PaddedText {
        PaddedText(SmallVec::from_elem(0, capacity.max(1)))
    }

    /// Returns the address for the C function.
    pub fn pass(&mut self) -> *mut c_char {
        self.0.as_mut_ptr().cast()
    }

    /// Stores the text, padded with blanks or cut.
    ///
    /// # Safety
    /// `to` has `len` bytes.
    pub unsafe fn store(&self, to: *mut c_char, len: usize) {
        let text = CStr::from_bytes_until_nul(&self.0).map_or(&self.0[..], CStr::to_bytes);
        // SAFETY: the text has `len` bytes: the caller promises it.
        let to = unsafe { std::slice::from_raw_parts_mut(to.cast::<u8>(), len) };
        let used = text.len().min(len);
        to[..used].copy_from_slice(&text[..used]);
        to[used..].fill(b' ');
    }
}

/// An array of texts, such as the arguments of a command.
pub struct TextArray {
    pointers: Vec<*mut c_char>,
    /// Owners of what the pointers point to.
    _texts: Vec<PaddedText>,
}

/// An array of texts in Fortran's memory.
#[derive(Clone, Copy)]
pub struct TextColumn {
    pub first: *const c_char,
    pub len: usize,
    /// Distance of two texts, in texts.
    pub step: usize,
    /// Number of texts. `None` if a blank text ends the array.
    pub count: Option<c_int>,
}

impl TextArray {
    /// Converts an array of the program.
    ///
    /// # Safety
    /// The array has `count` texts, or a blank text at the end.
    pub unsafe fn read(column: TextColumn) -> TextArray {
        let TextColumn { first, len, step, count } = column;
        let mut texts = Vec::new();
        while count.is_none_or(|count| texts.len() < super::length(count)) {
            let text = first.wrapping_add(texts.len() * step * len);
            // SAFETY: the text lies in the array: the caller promises it.
            let text = unsafe { PaddedText::read(text, len, LeadingBlanks::Trim) };
            if count.is_none() && text.0.len() == 1 {
                break;
            }
            texts.push(text);
        }
        // The bytes of a short text lie in `texts`, which does not grow any more.
        let mut pointers: Vec<_> = texts.iter_mut().map(PaddedText::pass).collect();
        pointers.push(null_mut());
        TextArray { pointers, _texts: texts }
    }

    /// Returns the address for the C function.
    pub fn pass(&mut self) -> *mut *mut c_char {
        self.pointers.as_mut_ptr()
    }
}

/// Lists of arguments, a list for each command.
pub struct ArgumentLists {
    pointers: Vec<*mut *mut c_char>,
    _lists: Vec<TextArray>,
}

impl ArgumentLists {
    /// Converts `count` lists. The first index of Fortran's array is that of the command.
    ///
    /// # Safety
    /// `first` is an array of texts of `len` bytes, with `count` rows that each end with a blank text.
    pub unsafe fn read(first: *const c_char, len: usize, count: c_int) -> ArgumentLists {
        let step = super::length(count);
        let column = |i| TextColumn { first: first.wrapping_add(i * len), len, step, count: None };
        // SAFETY: the caller promises it.
        let mut lists: Vec<_> = (0..step).map(|i| unsafe { TextArray::read(column(i)) }).collect();
        let pointers = lists.iter_mut().map(TextArray::pass).collect();
        ArgumentLists { pointers, _lists: lists }
    }

    /// Returns the address for the C function.
    pub fn pass(&mut self) -> *mut *mut *mut c_char {
        self.pointers.as_mut_ptr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_are_no_part_of_a_text() {
        let text = c" ab  ".as_ptr();
        // SAFETY: the text has five bytes before the NUL.
        let both = unsafe {
            [
                PaddedText::read(text, 5, LeadingBlanks::Keep),
                PaddedText::read(text, 5, LeadingBlanks::Trim),
            ]
        };
        assert_eq!(both.map(|text| text.0.to_vec()), [b" ab\0".to_vec(), b"ab\0".to_vec()]);
    }

    #[test]
    fn a_stored_text_is_padded_or_cut() {
        let mut to = [b'x'; 6];
        // SAFETY: `to` has more bytes than each length.
        unsafe {
            let text = PaddedText::read(c"abc".as_ptr(), 3, LeadingBlanks::Keep);
            text.store(to.as_mut_ptr().cast(), 5);
            assert_eq!(&to, b"abc  x");
            text.store(to.as_mut_ptr().cast(), 2);
            assert_eq!(&to, b"abc  x");
        }
    }

    #[test]
    fn argument_lists_are_rows() {
        // Two commands with up to two arguments and the blank that ends them; the first index is the command's.
        let texts = b"a1b1a2          ";
        let mut lists = unsafe {
            // SAFETY: each row ends with a blank text.
            ArgumentLists::read(texts.as_ptr().cast(), 2, 2)
        };
        let of = |list: *mut *mut c_char, i: usize| {
            // SAFETY: the list has more than `i` elements, texts that end with NUL.
            unsafe { CStr::from_ptr(*list.add(i)).to_str().unwrap().to_owned() }
        };
        // SAFETY: there are two lists.
        let [first, second] = unsafe { [*lists.pass(), *lists.pass().add(1)] };
        assert_eq!([of(first, 0), of(first, 1), of(second, 0)], ["a1", "a2", "b1"]);
        // SAFETY: a NULL ends each list.
        assert!(unsafe { (*first.add(2)).is_null() && (*second.add(1)).is_null() });
    }
}
