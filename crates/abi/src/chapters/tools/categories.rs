//! Categories (MPI 5.0, section 15.3.9): a tree by part of the library, which never changes.

use super::pvars::gauges;
use super::{index, not_null, ready, strings};
use crate::constants::MPI_T_ERR_INVALID_NAME;
use crate::error::Error;
use crate::settings::{SETTINGS, SettingPart, SettingText};
use std::ffi::{c_char, c_int};

struct Category {
    name: &'static str,
    doc: &'static str,
    /// Place of the parent category.
    parent: Option<usize>,
    /// Part of the library whose variables belong to the category.
    part: Option<SettingPart>,
}

const fn category(
    name: &'static str,
    parent: usize,
    part: SettingPart,
    doc: &'static str,
) -> Category {
    Category { name, doc, parent: Some(parent), part: Some(part) }
}

const CATEGORIES: &[Category] = &[
    Category { name: "weft", doc: "everything", parent: None, part: None },
    category("weft.p2p", 0, SettingPart::P2p, "messages: protocols, queues, credit"),
    category("weft.collective", 0, SettingPart::Collective, "collective operations"),
    category("weft.rma", 0, SettingPart::Rma, "one-sided communication"),
    category("weft.waiting", 0, SettingPart::Waiting, "how processes wait, and the helper thread"),
    category("weft.fabric", 0, SettingPart::Fabric, "what connects the ranks"),
    category("weft.fabric.shm", 5, SettingPart::Shm, "shared memory"),
    category("weft.fabric.verbs", 5, SettingPart::Verbs, "InfiniBand and RoCE"),
    category("weft.fabric.ofi", 5, SettingPart::Ofi, "libfabric: Ethernet and other networks"),
    category("weft.launch", 0, SettingPart::Launch, "how the job starts"),
    category("weft.files", 0, SettingPart::Files, "parallel files"),
];

/// Returns the name of the category of a part.
pub fn name_of(part: SettingPart) -> &'static str {
    let found = CATEGORIES.iter().find(|c| c.part == Some(part));
    found.map(|c| c.name).expect("every part has a category")
}

fn at(cat_index: c_int) -> Result<usize, Error> {
    index(cat_index, CATEGORIES.len(), "cat_index", "categories")
}

fn controls(of: usize) -> Vec<c_int> {
    let part = CATEGORIES[of].part;
    let ours = SETTINGS.iter().enumerate().filter(|(_, s)| {
        let SettingText(of, ..) = s.about;
        Some(of) == part
    });
    ours.map(|(i, _)| i as c_int).collect()
}

fn measures(of: usize) -> Vec<c_int> {
    let part = CATEGORIES[of].part;
    let ours = gauges().iter().enumerate().filter(|(_, gauge)| Some(gauge.part) == part);
    ours.map(|(i, _)| i as c_int).collect()
}

fn children(of: usize) -> Vec<c_int> {
    let ours = CATEGORIES.iter().enumerate().filter(|(_, c)| c.parent == Some(of));
    ours.map(|(i, _)| i as c_int).collect()
}

/// MPI_T_category_get_num.
pub(crate) unsafe fn t_category_get_num(num_cat: *mut c_int) -> Result<(), Error> {
    ready()?;
    not_null(num_cat, "num_cat")?;
    // SAFETY: `num_cat` is not NULL, so it points to room for the result, as MPI requires of the program.
    unsafe { num_cat.write(CATEGORIES.len() as c_int) };
    Ok(())
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
    let Category { name: own, doc, .. } = CATEGORIES[place];
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
    not_null(num_events, "num_events")?;
    // SAFETY: `num_events` is not NULL, so it points to room for the result, as MPI requires of the program.
    unsafe { num_events.write(0) };
    Ok(())
}

/// MPI_T_category_get_index.
pub(crate) unsafe fn t_category_get_index(
    name: *const c_char,
    cat_index: *mut c_int,
) -> Result<(), Error> {
    ready()?;
    not_null(cat_index, "cat_index")?;
    // SAFETY: `name` needs a string that ends with a NUL, which the program passes as MPI requires.
    let name = unsafe { strings::name(name) }?;
    let found = CATEGORIES.iter().position(|c| c.name == name).ok_or_else(|| {
        let text = format!("argument name = {name}: no such category");
        Error::new(MPI_T_ERR_INVALID_NAME, text)
    })?;
    // SAFETY: `cat_index` is not NULL, so it points to room for the result, as MPI requires of the program.
    unsafe { cat_index.write(found as c_int) };
    Ok(())
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
    not_null(update_number, "update_number")?;
    // SAFETY: `update_number` is not NULL, so it points to room for the result, as MPI requires of the program.
    unsafe { update_number.write(0) };
    Ok(())
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
