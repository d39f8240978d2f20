//! Functions for categories (MPI 5.0, section 15.3.9).

use super::category_tree::{CATEGORIES, VariableCategory};
use super::pvars::gauges;
use super::{index, not_null, ready, strings};
use crate::error::Error;
use crate::settings::SETTINGS;
use std::ffi::{c_char, c_int};

fn at(cat_index: c_int) -> Result<usize, Error> {
    index(cat_index, CATEGORIES.len(), "cat_index", "categories")
}

/// Returns the indices of the elements of a list for which `is_ours` returns true.
fn places<T>(list: &[T], is_ours: impl Fn(&T) -> bool) -> Vec<c_int> {
    (0..list.len()).filter(|&i| is_ours(&list[i])).map(|i| i as c_int).collect()
}

fn controls(of: usize) -> Vec<c_int> {
    places(SETTINGS, |setting| Some(setting.about.0) == CATEGORIES[of].part)
}

fn measures(of: usize) -> Vec<c_int> {
    places(gauges(), |gauge| Some(gauge.part) == CATEGORIES[of].part)
}

fn children(of: usize) -> Vec<c_int> {
    places(CATEGORIES, |category| category.parent == Some(of))
}

/// MPI_T_category_get_num.
pub(crate) unsafe fn t_category_get_num(num_cat: *mut c_int) -> Result<(), Error> {
    ready()?;
    // SAFETY: `num_cat` is NULL or points to room for the result, as MPI requires of the program.
    unsafe { strings::store(num_cat, CATEGORIES.len() as c_int, "num_cat") }
}

/// MPI_T_category_get_info.
pub(crate) unsafe fn t_category_get_info(
    cat_index: c_int,
    name: *mut c_char,
    name_len: *mut c_int,
    desc: *mut c_char,
    desc_len: *mut c_int,
    num_cvars: *mut c_int,
    num_pvars: *mut c_int,
    num_categories: *mut c_int,
) -> Result<(), Error> {
    ready()?;
    let place = at(cat_index)?;
    let VariableCategory { name: own, doc, .. } = CATEGORIES[place];
    // SAFETY: each pointer is NULL or may be written, and each string has room for the length given with it, as MPI requires.
    unsafe {
        strings::give_text(own, name, name_len);
        strings::give_text(doc, desc, desc_len);
        strings::give(num_cvars, controls(place).len() as c_int);
        strings::give(num_pvars, measures(place).len() as c_int);
        strings::give(num_categories, children(place).len() as c_int);
    }
    Ok(())
}

/// MPI_T_category_get_num_events.
pub(crate) unsafe fn t_category_get_num_events(
    cat_index: c_int,
    num_events: *mut c_int,
) -> Result<(), Error> {
    ready()?;
    at(cat_index)?;
    // SAFETY: `num_events` is NULL or points to room for the result, as MPI requires of the program.
    unsafe { strings::store(num_events, 0, "num_events") }
}

/// MPI_T_category_get_index.
pub(crate) unsafe fn t_category_get_index(
    name: *const c_char,
    cat_index: *mut c_int,
) -> Result<(), Error> {
    let find = |name: &str| CATEGORIES.iter().position(|c| c.name == name);
    // SAFETY: `name` is NULL or a C string, and `cat_index` is NULL or may be written, as MPI requires of the program.
    unsafe { strings::store_index(name, cat_index, "cat_index", "category", find) }
}

/// Stores the first `len` numbers of a category's list.
///
/// # Safety
/// `indices` is NULL or has room for `len`.
unsafe fn give_list(
    cat_index: c_int,
    len: c_int,
    indices: *mut c_int,
    list: fn(usize) -> Vec<c_int>,
) -> Result<(), Error> {
    ready()?;
    let list = list(at(cat_index)?);
    let len = usize::try_from(len)
        .map_err(|_| super::invalid(format_args!("argument len = {len} is negative")))?;
    if len > 0 {
        not_null(indices, "indices")?;
    }
    for (i, number) in list.into_iter().take(len).enumerate() {
        // SAFETY: `i` is less than `len`, and `indices` is not NULL and has room for `len` numbers (contract of this function).
        unsafe { indices.add(i).write(number) };
    }
    Ok(())
}

/// MPI_T_category_get_cvars.
pub(crate) unsafe fn t_category_get_cvars(
    cat_index: c_int,
    len: c_int,
    indices: *mut c_int,
) -> Result<(), Error> {
    // SAFETY: `give_list` needs an array as long as MPI requires of the program.
    unsafe { give_list(cat_index, len, indices, controls) }
}

/// MPI_T_category_get_pvars.
pub(crate) unsafe fn t_category_get_pvars(
    cat_index: c_int,
    len: c_int,
    indices: *mut c_int,
) -> Result<(), Error> {
    // SAFETY: `give_list` needs an array as long as MPI requires of the program.
    unsafe { give_list(cat_index, len, indices, measures) }
}

/// MPI_T_category_get_categories.
pub(crate) unsafe fn t_category_get_categories(
    cat_index: c_int,
    len: c_int,
    indices: *mut c_int,
) -> Result<(), Error> {
    // SAFETY: `give_list` needs an array as long as MPI requires of the program.
    unsafe { give_list(cat_index, len, indices, children) }
}

/// MPI_T_category_get_events.
pub(crate) unsafe fn t_category_get_events(
    cat_index: c_int,
    len: c_int,
    indices: *mut c_int,
) -> Result<(), Error> {
    // SAFETY: `give_list` needs an array as long as MPI requires of the program.
    unsafe { give_list(cat_index, len, indices, |_| Vec::new()) }
}

/// MPI_T_category_changed.
pub(crate) unsafe fn t_category_changed(update_number: *mut c_int) -> Result<(), Error> {
    ready()?;
    // SAFETY: `update_number` is NULL or points to room for the result, as MPI requires of the program.
    unsafe { strings::store(update_number, 0, "update_number") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that every variable is in exactly one category, and that every category is in the tree below the first category.
    #[test]
    fn the_tree_has_everything_once() {
        let all = 0..CATEGORIES.len();
        let total = |list: fn(usize) -> Vec<c_int>| {
            let mut found: Vec<_> = all.clone().flat_map(list).collect();
            found.sort_unstable();
            found
        };
        let numbers = |n: usize| (0..n as c_int).collect::<Vec<_>>();
        assert_eq!(total(controls), numbers(SETTINGS.len()));
        assert_eq!(total(measures), numbers(gauges().len()));
        assert_eq!(total(children), numbers(CATEGORIES.len())[1..]);
        for category in &CATEGORIES[1..] {
            let parent = CATEGORIES[category.parent.unwrap()].name;
            assert!(category.name.starts_with(parent), "{}", category.name);
        }
    }
}
