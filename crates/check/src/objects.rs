//! Objects that the program makes and frees: communicators, datatypes, groups, operators and others.

use crate::call_site::CallSite;
use crate::function::{ArgumentDirection, CheckedCall, Form};
use std::collections::HashMap;

/// Highest handle of a predefined object.
const LAST_PREDEFINED: usize = 0xfff;

/// Kinds of objects in the standard's tables, each with a noun for reports. Info objects hold no resources of the network, and programs
/// often leave them.
const KINDS: &[(&str, &str)] = &[
    ("COMMUNICATOR", "communicator"),
    ("DATATYPE", "datatype"),
    ("GROUP", "group"),
    ("OPERATION", "operator"),
    ("WINDOW", "window"),
    ("FILE", "file"),
    ("ERRHANDLER", "error handler"),
    ("SESSION", "session"),
];

/// Functions whose result is not freed by the program.
const LENDERS: &[&str] = &[
    "Comm_get_parent",
    "Type_match_size",
    "Type_create_f90_complex",
    "Type_create_f90_integer",
    "Type_create_f90_real",
];

/// Functions that free an object, other than those whose name ends in `_free`.
const ENDERS: &[&str] = &["Comm_disconnect", "File_close", "Session_finalize"];

/// Kind of an object in the standard's tables, and its handle.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ObjectHandle {
    pub kind: &'static str,
    pub handle: usize,
}

/// Origin of an object.
#[derive(Clone)]
pub struct ObjectOrigin {
    pub noun: &'static str,
    pub function: &'static str,
    pub site: CallSite,
}

/// Objects that exist, by kind and handle. Some objects are counted by their handle, so a handle may occur several times.
#[derive(Default)]
pub struct ObjectRegistry(HashMap<ObjectHandle, Vec<ObjectOrigin>>);

impl ObjectRegistry {
    /// Adds the objects that a call has made.
    ///
    /// # Safety
    /// The call has succeeded.
    pub unsafe fn add(&mut self, call: &CheckedCall<'_>) {
        if LENDERS.contains(&call.function.stem()) {
            return;
        }
        for (place, parameter) in call.function.parameters.iter().enumerate() {
            let known = KINDS.iter().find(|(kind, _)| *kind == parameter.kind);
            let makes = parameter.direction == ArgumentDirection::Out && !parameter.is_array;
            let (Some(&(kind, noun)), true, Form::Pointer) = (known, makes, parameter.form) else {
                continue;
            };
            let pointer = call.arguments[place] as *const usize;
            // SAFETY: the call has succeeded, so the parameter points to a handle.
            let handle = if pointer.is_null() { 0 } else { unsafe { *pointer } };
            if handle > LAST_PREDEFINED {
                let origin = ObjectOrigin { noun, function: call.function.name(), site: call.site };
                self.insert(ObjectHandle { kind, handle }, origin);
            }
        }
    }

    /// Adds an object.
    pub fn insert(&mut self, object: ObjectHandle, origin: ObjectOrigin) {
        self.0.entry(object).or_default().push(origin);
    }

    /// Returns kind and handle of the object that a call would free.
    ///
    /// # Safety
    /// The program keeps MPI's rules for the arguments.
    pub unsafe fn freed(call: &CheckedCall<'_>) -> Option<ObjectHandle> {
        let stem = call.function.stem();
        if !stem.ends_with("_free") && !ENDERS.contains(&stem) {
            return None;
        }
        let parameter = call.function.parameters.first()?;
        let &(kind, _) = KINDS.iter().find(|(kind, _)| *kind == parameter.kind)?;
        let pointer = call.arguments[0] as *const usize;
        // SAFETY: the parameter points to a handle, as MPI requires of the program.
        (!pointer.is_null()).then(|| ObjectHandle { kind, handle: unsafe { *pointer } })
    }

    /// Removes an object.
    pub fn remove(&mut self, object: ObjectHandle) {
        if let Some(all) = self.0.get_mut(&object) {
            all.pop();
            if all.is_empty() {
                self.0.remove(&object);
            }
        }
    }

    /// Takes the origins of all objects, each with the number of objects of that origin.
    pub fn take_origins(&mut self) -> Vec<(ObjectOrigin, usize)> {
        let mut counts: HashMap<(&str, &str, CallSite), (ObjectOrigin, usize)> = HashMap::new();
        for origin in std::mem::take(&mut self.0).into_values().flatten() {
            let key = (origin.noun, origin.function, origin.site);
            counts.entry(key).or_insert((origin, 0)).1 += 1;
        }
        let mut all: Vec<_> = counts.into_values().collect();
        all.sort_by_key(|(origin, _)| (origin.noun, origin.site));
        all
    }
}
