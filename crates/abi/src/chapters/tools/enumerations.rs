//! Enumerations: the names of the values of a variable (MPI 5.0, section 15.3.5).

use super::{bad_handle, index, ready, strings};
use crate::constants::MPI_T_ENUM_NULL;
use crate::error::Error;
use crate::settings::{SETTINGS, SettingKind, SettingSpec};
use crate::types::TEnum;
use std::ffi::{c_char, c_int};

/// An enumeration. Item `i` has the value `i`.
pub struct Enumeration {
    /// Name that MPI_T_enum_get_info returns.
    pub name: &'static str,
    /// Names of the values, from 0 on.
    pub items: &'static [&'static str],
}

const SWITCH: Enumeration = Enumeration { name: "weft.switch", items: &["off", "on"] };

/// Enumeration of the fabrics that connect the ranks.
const FABRIC: Enumeration = Enumeration {
    name: "weft.fabric.kind",
    items: &[
        "nothing yet",
        "shared memory",
        "shared memory and verbs",
        "verbs",
        "shared memory and libfabric",
        "libfabric",
    ],
};

/// Handle of the first enumeration, above MPI's predefined handles. The handle of enumeration `i` is this number plus `i`.
const FIRST: usize = 0x1000;

/// Lists all enumerations: two enumerations that belong to no single setting, then an enumeration for each setting whose values are
/// words.
fn all() -> impl Iterator<Item = Enumeration> {
    let words = SETTINGS.iter().filter_map(|s| match s.kind {
        SettingKind::Choice(items) => Some(Enumeration { name: s.name, items }),
        _ => None,
    });
    [SWITCH, FABRIC].into_iter().chain(words)
}

fn named(name: &str) -> TEnum {
    let place = all().position(|e| e.name == name).expect("one of the list");
    TEnum(FIRST + place)
}

/// Returns the enumeration of the fabrics.
pub fn of_fabric() -> TEnum {
    named(FABRIC.name)
}

/// Returns the enumeration of a setting's values, or null if the values are not words.
pub fn of_setting(setting: &SettingSpec) -> TEnum {
    match setting.kind {
        SettingKind::Switch => named(SWITCH.name),
        SettingKind::Choice(_) => named(setting.name),
        _ => MPI_T_ENUM_NULL,
    }
}

fn enumeration(handle: TEnum) -> Result<Enumeration, Error> {
    let place = handle.0.checked_sub(FIRST);
    let found = place.and_then(|place| all().nth(place));
    found.ok_or_else(|| bad_handle("enumtype", handle.0, "enumeration"))
}

/// MPI_T_enum_get_info.
pub(crate) unsafe fn t_enum_get_info(
    enumtype: TEnum,
    num: *mut c_int,
    name: *mut c_char,
    name_len: *mut c_int,
) -> Result<(), Error> {
    ready()?;
    let found = enumeration(enumtype)?;
    // SAFETY: each pointer is NULL or may be written, and `name` has room for `*name_len` bytes, as MPI requires of the program.
    unsafe {
        strings::give(num, found.items.len() as c_int);
        strings::give_text(found.name, name, name_len);
    }
    Ok(())
}

/// MPI_T_enum_get_item.
pub(crate) unsafe fn t_enum_get_item(
    enumtype: TEnum,
    indx: c_int,
    value: *mut c_int,
    name: *mut c_char,
    name_len: *mut c_int,
) -> Result<(), Error> {
    ready()?;
    let Enumeration { name: whose, items } = enumeration(enumtype)?;
    let item = index(indx, items.len(), "indx", &format!("items of {whose}"))?;
    // SAFETY: each pointer is NULL or may be written, and `name` has room for `*name_len` bytes, as MPI requires of the program.
    unsafe {
        strings::give(value, item as c_int);
        strings::give_text(items[item], name, name_len);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_with_words_has_its_own() {
        for setting in SETTINGS {
            let handle = of_setting(setting);
            match setting.kind {
                SettingKind::Choice(words) => {
                    let found = enumeration(handle).unwrap();
                    assert_eq!((found.name, found.items), (setting.name, words));
                }
                SettingKind::Switch => assert_eq!(enumeration(handle).unwrap().items.len(), 2),
                _ => assert_eq!(handle, MPI_T_ENUM_NULL),
            }
        }
        let beyond = TEnum(FIRST + all().count());
        for nothing in [MPI_T_ENUM_NULL, beyond, TEnum(usize::MAX)] {
            assert!(enumeration(nothing).is_err());
        }
    }
}
