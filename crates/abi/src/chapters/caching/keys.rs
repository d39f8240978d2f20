//! Keys of attributes (MPI 5.0, section 7.7.2). A freed key stays until no object has an attribute with it, so that these
//! attributes can still be read and deleted.

use crate::arguments::{not_null, store};
use crate::chapter_state::ChapterState;
use crate::chapters::caching::predefined::{bad_key, predefined_name};
use crate::constants::MPI_KEYVAL_INVALID;
use crate::error::Error;
use crate::objects::{AttributeKey, KeyKind};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::c_int;

/// First key of the program. Predefined keys are smaller.
const FIRST: c_int = 1000;

struct Kept {
    key: AttributeKey,
    /// True if the program has freed the key.
    freed: bool,
    /// Number of attributes with this key, on all objects.
    attributes: usize,
}

static KEYS: ChapterState<RefCell<Keys>> = ChapterState::new(RefCell::new(Keys::NONE));

/// Keys that the program made, by number.
struct Keys {
    kept: BTreeMap<c_int, Kept>,
    /// Next number to use, unless a key still has the number.
    next: c_int,
    /// True if every number has been used once, so that numbering has started again.
    again: bool,
}

impl Keys {
    const NONE: Keys = Keys { kept: BTreeMap::new(), next: FIRST, again: false };

    fn insert(&mut self, key: AttributeKey) -> c_int {
        // A number is reused as late as possible, so that a stale key is detected.
        loop {
            let number = self.next;
            self.again |= number == c_int::MAX;
            self.next = if number == c_int::MAX { FIRST } else { number + 1 };
            if let std::collections::btree_map::Entry::Vacant(place) = self.kept.entry(number) {
                place.insert(Kept { key, freed: false, attributes: 0 });
                return number;
            }
        }
    }

    fn free(&mut self, number: c_int) {
        if let Some(kept) = self.kept.get_mut(&number) {
            kept.freed = true;
        }
        self.forget_unused(number);
    }

    fn hold(&mut self, number: c_int) {
        if let Some(kept) = self.kept.get_mut(&number) {
            kept.attributes += 1;
        }
    }

    fn let_go(&mut self, number: c_int) {
        if let Some(kept) = self.kept.get_mut(&number) {
            kept.attributes -= 1;
        }
        self.forget_unused(number);
    }

    fn forget_unused(&mut self, number: c_int) {
        if self.kept.get(&number).is_some_and(|kept| kept.freed && kept.attributes == 0) {
            self.kept.remove(&number);
        }
    }

    fn was_given(&self, number: c_int) -> bool {
        number >= FIRST && (self.again || number < self.next)
    }
}

/// # Safety
/// `to` is NULL or may be written.
pub(super) unsafe fn create_key(
    key: AttributeKey,
    to: *mut c_int,
    argument: &str,
) -> Result<(), Error> {
    not_null(to, argument)?;
    let number = KEYS.borrow_mut().insert(key);
    // SAFETY: `to` points to room for the result, as MPI requires of the program.
    unsafe { store(to, number, argument) }
}

/// # Safety
/// `from` is NULL or may be read and written.
pub(super) unsafe fn free_key(
    kind: KeyKind,
    from: *mut c_int,
    argument: &str,
) -> Result<(), Error> {
    not_null(from, argument)?;
    // SAFETY: `from` is not NULL, so it points to a value, as MPI requires of the program.
    let number = unsafe { *from };
    usable(kind, number, argument, true)?;
    KEYS.borrow_mut().free(number);
    // SAFETY: `from` points to room for the result, as MPI requires of the program.
    unsafe { store(from, MPI_KEYVAL_INVALID, argument) }
}

/// Returns the key with a number that some attribute has.
pub(super) fn found(number: c_int) -> Option<AttributeKey> {
    KEYS.borrow().kept.get(&number).map(|kept| kept.key)
}

/// Counts a new attribute with this key.
pub(super) fn hold(number: c_int) {
    KEYS.borrow_mut().hold(number);
}

/// Counts an attribute with this key as deleted. Removes the key if it was freed and has no other attribute.
pub(super) fn let_go(number: c_int) {
    KEYS.borrow_mut().let_go(number);
}

/// Checks that the program made the key for this kind of object. If `anew` is true, the key is for a new attribute, so it must not
/// have been freed.
pub(super) fn usable(
    kind: KeyKind,
    number: c_int,
    argument: &str,
    anew: bool,
) -> Result<(), Error> {
    let keys = KEYS.borrow();
    match keys.kept.get(&number) {
        Some(kept) if kept.key.kind == kind && !(kept.freed && anew) => Ok(()),
        _ => Err(unusable(kind, number, argument, &keys)),
    }
}

#[cold]
fn unusable(kind: KeyKind, number: c_int, argument: &str, keys: &Keys) -> Error {
    let text = if number == MPI_KEYVAL_INVALID {
        format!("argument {argument} is MPI_KEYVAL_INVALID")
    } else if predefined_name(number).is_some() {
        let what = "is a predefined attribute, which programs only read";
        format!("argument {argument} = {number} {what}")
    } else if let Some(kept) = keys.kept.get(&number).filter(|kept| kept.key.kind != kind) {
        let (is, wanted) = (kind_name(kept.key.kind), kind_name(kind));
        format!("argument {argument} = {number} is a key for {is}, not for {wanted}")
    } else if keys.was_given(number) {
        format!("argument {argument} = {number} is a freed key")
    } else {
        format!("argument {argument} = {number} was never a key")
    };
    bad_key(text)
}

fn kind_name(kind: KeyKind) -> &'static str {
    match kind {
        KeyKind::Comm => "communicators",
        KeyKind::Type => "datatypes",
        KeyKind::Win => "windows",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::callback::CallbackPointer;

    fn key() -> AttributeKey {
        let (copy, delete) = (CallbackPointer::null(), CallbackPointer::null());
        AttributeKey { kind: KeyKind::Comm, copy, delete, extra: std::ptr::null_mut() }
    }

    #[test]
    fn a_freed_key_stays_while_it_is_used_and_no_longer() {
        let mut keys = Keys::NONE;
        let (a, b) = (keys.insert(key()), keys.insert(key()));
        keys.hold(a);
        keys.hold(a);
        keys.free(a);
        keys.free(b);
        assert!(keys.kept.contains_key(&a) && !keys.kept.contains_key(&b));
        keys.let_go(a);
        assert!(keys.kept.contains_key(&a));
        keys.let_go(a);
        assert!(keys.kept.is_empty());
        for _ in 0..10_000 {
            let number = keys.insert(key());
            assert!(number != a && number != b && keys.was_given(number));
            keys.free(number);
        }
        assert!(keys.kept.is_empty() && !keys.was_given(keys.next));
    }

    #[test]
    fn numbers_that_begin_again_leave_out_those_in_use() {
        let mut keys = Keys::NONE;
        let first = keys.insert(key());
        keys.hold(first);
        keys.free(first);
        keys.next = c_int::MAX;
        assert_eq!(keys.insert(key()), c_int::MAX);
        assert_eq!(keys.insert(key()), first + 1);
        assert!(keys.was_given(c_int::MAX - 1));
    }
}
