//! Control variables (MPI 5.0, section 15.3.6): the settings. A value that is written before MPI_Init replaces the value from the
//! environment. Some settings can also be written while MPI runs, because MPI_Init does not fix them
//! (`settings/runtime_change.rs`). Their descriptions say so, and name the effect of a new value.
//!
//! All control variables belong to the process, so none is bound to an object. The scope says which processes must write the
//! same value between the same two operations: this process only (LOCAL) or all processes (ALL_EQ).
//!
//! | a setting that is | is read and written as |
//! |---|---|
//! | a number | MPI_UNSIGNED_LONG_LONG |
//! | a number or nothing | MPI_INT; nothing is -1 |
//! | a word or a switch | MPI_INT, with an enumeration |
//! | a text | MPI_CHAR, with its NUL |

use super::{bad_handle, enumerations, index, invalid, not_null, ready, strings};
use crate::arguments::store_text;
use crate::constants::*;
use crate::error::Error;
use crate::lanes::MessageLane;
use crate::settings::runtime_change::{ChangeRefusal, RuntimeChange, for_lane, runtime_change};
use crate::settings::{
    Audience, SETTINGS, SettingAgreement, SettingKind, SettingSpec, SettingText, SettingValue,
};
use crate::state::{ProcessPhase, state};
use crate::types::{Datatype, TCvarHandle, TEnum};
use std::ffi::{c_char, c_int, c_void};

/// A handle: the setting, and the number of elements of a buffer for its value.
pub struct CvarHandle {
    setting: &'static SettingSpec,
    count: usize,
}

/// Minimum number of bytes of a buffer for a text. If the present text is longer, the buffer is longer.
const TEXT: usize = 4096;

/// Returns the datatype of an element.
fn datatype(kind: SettingKind) -> Datatype {
    match kind {
        SettingKind::Number { .. } => MPI_UNSIGNED_LONG_LONG,
        SettingKind::Maybe { .. } | SettingKind::Switch | SettingKind::Choice(_) => MPI_INT,
        SettingKind::Words
        | SettingKind::Copies
        | SettingKind::Algorithm(_)
        | SettingKind::Faults
        | SettingKind::Nodes
        | SettingKind::File => MPI_CHAR,
    }
}

/// Returns the verbosity of a variable for this audience.
pub fn verbosity(audience: Audience) -> c_int {
    match audience {
        Audience::User => MPI_T_VERBOSITY_USER_BASIC,
        Audience::Tuner => MPI_T_VERBOSITY_TUNER_BASIC,
        Audience::Developer => MPI_T_VERBOSITY_MPIDEV_BASIC,
    }
}

/// Returns the scope of a variable: the processes that must write the same value.
fn scope(agreement: SettingAgreement) -> c_int {
    match agreement {
        SettingAgreement::Each => MPI_T_SCOPE_LOCAL,
        SettingAgreement::All | SettingAgreement::Job(_) => MPI_T_SCOPE_ALL_EQ,
    }
}

/// Describes a setting, and says when it may be written.
fn description(setting: &SettingSpec) -> String {
    match runtime_change(setting) {
        Some(RuntimeChange { from, .. }) => {
            format!("{} May be written while MPI runs: counts from {from}.", setting.doc)
        }
        None => format!("{} Read at MPI_Init.", setting.doc),
    }
}

/// MPI_T_cvar_get_num.
pub(crate) unsafe fn t_cvar_get_num(num_cvar: *mut c_int) -> Result<(), Error> {
    ready()?;
    // SAFETY: `num_cvar` is NULL or points to room for the result, as MPI requires of the program.
    unsafe { strings::store(num_cvar, SETTINGS.len() as c_int, "num_cvar") }
}

fn setting(cvar_index: c_int) -> Result<&'static SettingSpec, Error> {
    Ok(&SETTINGS[index(cvar_index, SETTINGS.len(), "cvar_index", "control variables")?])
}

/// MPI_T_cvar_get_info.
pub(crate) unsafe fn t_cvar_get_info(
    cvar_index: c_int,
    name: *mut c_char,
    name_len: *mut c_int,
    verbosity_: *mut c_int,
    datatype_: *mut Datatype,
    enumtype: *mut TEnum,
    desc: *mut c_char,
    desc_len: *mut c_int,
    bind: *mut c_int,
    scope_: *mut c_int,
) -> Result<(), Error> {
    ready()?;
    let setting = setting(cvar_index)?;
    let SettingText(_, audience, agreement) = setting.about;
    // SAFETY: each pointer is NULL or may be written, and each string has room for the length given with it, as MPI requires.
    unsafe {
        strings::give_text(setting.name, name, name_len);
        strings::give(verbosity_, verbosity(audience));
        strings::give(datatype_, datatype(setting.kind));
        strings::give(enumtype, enumerations::of_setting(setting));
        strings::give_text(&description(setting), desc, desc_len);
        strings::give(bind, MPI_T_BIND_NO_OBJECT);
        strings::give(scope_, scope(agreement));
    }
    Ok(())
}

/// MPI_T_cvar_get_index.
pub(crate) unsafe fn t_cvar_get_index(
    name: *const c_char,
    cvar_index: *mut c_int,
) -> Result<(), Error> {
    let find = |name: &str| SETTINGS.iter().position(|s| s.name == name);
    // SAFETY: `name` is NULL or a C string, and `cvar_index` is NULL or may be written, as MPI requires of the program.
    unsafe { strings::store_index(name, cvar_index, "cvar_index", "control variable", find) }
}

/// MPI_T_cvar_handle_alloc.
pub(crate) unsafe fn t_cvar_handle_alloc(
    cvar_index: c_int,
    _obj_handle: *mut c_void,
    handle: *mut TCvarHandle,
    count: *mut c_int,
) -> Result<(), Error> {
    let tools = ready()?;
    let setting = setting(cvar_index)?;
    not_null(handle, "handle")?;
    not_null(count, "count")?;
    let elements = match datatype(setting.kind) {
        MPI_CHAR => TEXT.max(setting.text().len() + 1),
        _ => 1,
    };
    let made = tools.controls.borrow_mut().insert(CvarHandle { setting, count: elements });
    // SAFETY: `handle` and `count` are not NULL, so they may be written, as MPI requires of the program.
    unsafe {
        handle.write(TCvarHandle(made));
        count.write(elements as c_int);
    }
    Ok(())
}

/// MPI_T_cvar_handle_free.
pub(crate) unsafe fn t_cvar_handle_free(handle: *mut TCvarHandle) -> Result<(), Error> {
    let tools = ready()?;
    not_null(handle, "handle")?;
    // SAFETY: `handle` is not NULL, so it points to a value, as MPI requires of the program.
    let old = unsafe { *handle };
    let freed = tools.controls.borrow_mut().remove(old.0);
    freed.ok_or_else(|| bad_handle("handle", old.0, "handle of a control variable"))?;
    // SAFETY: `handle` points to room for the result, as MPI requires of the program.
    unsafe { handle.write(MPI_T_CVAR_HANDLE_NULL) };
    Ok(())
}

/// Returns the setting behind a handle, and the number of elements of a buffer for its value.
fn control(handle: TCvarHandle) -> Result<(&'static SettingSpec, usize), Error> {
    let controls = ready()?.controls.borrow();
    let found = controls.get(handle.0).map(|c| (c.setting, c.count));
    found.ok_or_else(|| bad_handle("handle", handle.0, "handle of a control variable"))
}

/// MPI_T_cvar_read.
pub(crate) unsafe fn t_cvar_read(handle: TCvarHandle, buf: *mut c_void) -> Result<(), Error> {
    let (setting, count) = control(handle)?;
    not_null(buf, "buf")?;
    let text = setting.text();
    let value = setting.understand(&text).map_err(invalid)?;
    let int = match value {
        // SAFETY: `buf` is not NULL, so it has an element of the variable's type, as MPI requires of the program.
        SettingValue::Number(n) if datatype(setting.kind) == MPI_UNSIGNED_LONG_LONG => unsafe {
            buf.cast::<u64>().write_unaligned(n);
            return Ok(());
        },
        SettingValue::Number(n) => n as c_int,
        SettingValue::Maybe(n) => n.map_or(-1, |n| n as c_int),
        SettingValue::Place(place) => place as c_int,
        SettingValue::Words(_)
        | SettingValue::Copies(_)
        | SettingValue::Faults(_)
        | SettingValue::Elsewhere => {
            // SAFETY: `buf` is not NULL, so it has `count` bytes, the number that the handle gave, as MPI requires of the program.
            return unsafe { store_text(&text, buf.cast(), count, "buf") }.map(drop);
        }
    };
    // SAFETY: `buf` is not NULL, so it has an element of the variable's type, an int here, as MPI requires of the program.
    unsafe { buf.cast::<c_int>().write_unaligned(int) };
    Ok(())
}

/// Converts the value in a buffer to the text of a setting.
///
/// # Safety
/// `buf` has `count` elements of the setting's type.
unsafe fn written(
    setting: &SettingSpec,
    buf: *const c_void,
    count: usize,
) -> Result<String, Error> {
    // SAFETY: `buf` has an element of the setting's type, and the closure is called only for types that are an int; the
    // contract of this function says so.
    let int = || unsafe { buf.cast::<c_int>().read_unaligned() };
    Ok(match setting.kind {
        // SAFETY: the setting's type is an unsigned 64-bit integer, and `buf` has such an element (contract of this function).
        SettingKind::Number { .. } => unsafe { buf.cast::<u64>().read_unaligned() }.to_string(),
        SettingKind::Maybe { .. } if int() == -1 => String::new(),
        SettingKind::Maybe { .. } | SettingKind::Switch => int().to_string(),
        SettingKind::Choice(words) => {
            let place = usize::try_from(int()).ok().and_then(|place| words.get(place));
            let word = place.ok_or_else(|| {
                let last = words.len() - 1;
                invalid(format_args!("{} = {}: its values are 0 to {last}", setting.name, int()))
            })?;
            (*word).to_owned()
        }
        _ => {
            // SAFETY: `buf` has `count` bytes; `strnlen` reads no byte after the NUL. The contract of this function says so.
            let bytes = unsafe {
                let len = libc::strnlen(buf.cast(), count);
                std::slice::from_raw_parts(buf.cast::<u8>(), len)
            };
            if bytes.len() == count {
                let text = format!("{}: no NUL within {count} bytes", setting.name);
                return Err(invalid(text));
            }
            String::from_utf8_lossy(bytes).into_owned()
        }
    })
}

/// MPI_T_cvar_write.
pub(crate) unsafe fn t_cvar_write(handle: TCvarHandle, buf: *const c_void) -> Result<(), Error> {
    let (setting, count) = control(handle)?;
    not_null(buf, "buf")?;
    let (state, late) = (state(), runtime_change(setting));
    let take = match (state.phase.get(), late, state.engine.get()) {
        (ProcessPhase::Before, ..) => None,
        (
            ProcessPhase::Running | ProcessPhase::Resting,
            Some(RuntimeChange { take, .. }),
            Some(engine),
        ) => Some((take, engine)),
        (ProcessPhase::Running | ProcessPhase::Resting, ..) => {
            return Err(never(setting, "it is read at MPI_Init: write it before"));
        }
        _ => return Err(never(setting, "MPI is over")),
    };
    // SAFETY: `buf` is not NULL, so it has the number of elements that the handle gave, as MPI requires of the program.
    let text = unsafe { written(setting, buf, count) }?;
    setting.understand(&text).map_err(invalid)?;
    let before = setting.write(text);
    let Some((take, engine)) = take else { return Ok(()) };
    take(engine).map_err(|refused| {
        setting.unwrite(before);
        match refused {
            ChangeRefusal::Wrong(text) => invalid(text),
            ChangeRefusal::Late(why) => never(setting, why),
        }
    })?;
    // The settings were accepted for lane 0, and all lanes take the same.
    MessageLane::open().for_each(|lane| _ = lane.hold(|state| for_lane(&state.engine)));
    Ok(())
}

#[cold]
fn never(setting: &SettingSpec, why: &str) -> Error {
    Error::new(MPI_T_ERR_CVAR_SET_NEVER, format_args!("{}: {why}", setting.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: &str, value: &impl Sized, count: usize) -> Result<String, Error> {
        let setting = SETTINGS.iter().find(|s| s.name == name).unwrap();
        // SAFETY: each test passes a value of the setting's type.
        unsafe { written(setting, (&raw const *value).cast(), count) }
    }

    #[test]
    fn values_become_the_texts_that_the_environment_would_have() {
        assert_eq!(text("WEFT_EAGER", &100u64, 1).unwrap(), "100");
        assert_eq!(text("WEFT_RAIL", &-1i32, 1).unwrap(), "");
        assert_eq!(text("WEFT_RAIL", &2i32, 1).unwrap(), "2");
        assert_eq!(text("WEFT_CMA", &0i32, 1).unwrap(), "0");
        assert_eq!(text("WEFT_FABRIC", &2i32, 1).unwrap(), "verbs");
        assert_eq!(text("WEFT_BARRIER", b"MPI-DS\0", 7).unwrap(), "MPI-DS");
        assert_eq!(text("WEFT_DEVICES", b"mlx5_0\0", 7).unwrap(), "mlx5_0");
        let wrong = |result: Result<String, Error>| {
            let error = result.unwrap_err();
            assert_eq!(error.class(), MPI_T_ERR_INVALID);
            error.text().to_owned()
        };
        assert!(wrong(text("WEFT_FABRIC", &6i32, 1)).contains("WEFT_FABRIC = 6"));
        assert!(wrong(text("WEFT_FABRIC", &-1i32, 1)).contains("0 to 5"));
        assert!(wrong(text("WEFT_DEVICES", b"mlx5_0", 6)).contains("within 6 bytes"));
    }

    #[test]
    fn every_setting_has_a_type_that_its_bounds_fit() {
        for setting in SETTINGS {
            let SettingKind::Maybe { most, .. } = setting.kind else { continue };
            assert!(c_int::try_from(most).is_ok(), "{}", setting.name);
        }
    }
}
