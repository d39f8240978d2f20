//! Descriptions of the MPI functions, generated from the standard's tables, and calls with their arguments.

use crate::call_site::CallSite;
use std::ffi::{CStr, c_int};

/// Direction of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArgumentDirection {
    In,
    Out,
    InOut,
}

/// Form of a parameter in C.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    Int,
    Ints,
    Wide,
    Wides,
    Handle,
    Pointer,
}

/// A parameter of a function.
pub struct ParameterDescription {
    pub name: &'static str,
    /// Kind in the standard's tables, such as `RANK`.
    pub kind: &'static str,
    pub direction: ArgumentDirection,
    pub form: Form,
    pub is_array: bool,
}

/// A function of MPI.
pub struct FunctionDescription {
    /// Name of the entry point that the library is called by, with `PMPI_`.
    pub name: &'static CStr,
    pub parameters: &'static [ParameterDescription],
}

impl FunctionDescription {
    /// Returns the name, such as `MPI_Send`.
    pub fn name(&self) -> &'static str {
        // SAFETY: the names of the standard are ASCII.
        unsafe { std::str::from_utf8_unchecked(&self.name.to_bytes()[1..]) }
    }

    /// Returns the name without `MPI_` and without `_c`.
    pub fn stem(&self) -> &'static str {
        let name = &self.name()[4..];
        name.strip_suffix("_c").unwrap_or(name)
    }

    /// Returns the place of the parameter with this name.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.parameters.iter().position(|parameter| parameter.name == name)
    }

    /// Returns the place of the first input parameter of a kind.
    pub fn input(&self, kind: &str) -> Option<usize> {
        let is_input =
            |p: &ParameterDescription| p.kind == kind && p.direction != ArgumentDirection::Out;
        self.parameters.iter().position(is_input)
    }

    /// Returns the place of the first parameter of a kind that the function sets.
    pub fn output(&self, kind: &str) -> Option<usize> {
        let is_output =
            |p: &ParameterDescription| p.kind == kind && p.direction == ArgumentDirection::Out;
        self.parameters.iter().position(is_output)
    }
}

/// A call of a function.
#[derive(Clone, Copy)]
pub struct CheckedCall<'a> {
    pub function: &'static FunctionDescription,
    pub arguments: &'a [usize],
    pub site: CallSite,
}

impl CheckedCall<'_> {
    /// Returns an integer argument.
    pub fn integer(&self, place: usize) -> i64 {
        let argument = self.arguments[place];
        match self.function.parameters[place].form {
            // The upper half of the register of an `int` is undefined.
            Form::Int => i64::from(argument as c_int),
            _ => argument as i64,
        }
    }

    /// Returns the element `index` of an integer array.
    ///
    /// # Safety
    /// The array has this element.
    pub unsafe fn element(&self, place: usize, index: usize) -> i64 {
        let array = self.arguments[place];
        // Arrays that have no meaning at a rank may be NULL.
        if array == 0 {
            return 0;
        }
        // SAFETY: the array has this element: the caller promises it.
        unsafe {
            match self.function.parameters[place].form {
                Form::Ints => i64::from(*(array as *const c_int).add(index)),
                _ => *(array as *const i64).add(index),
            }
        }
    }

    /// Returns the argument with this name, if there is such a parameter.
    pub fn named(&self, name: &str) -> Option<i64> {
        self.function.place(name).map(|place| self.integer(place))
    }

    /// Returns the handle of the first input parameter of a kind.
    pub fn handle(&self, kind: &str) -> Option<usize> {
        self.function.input(kind).map(|place| self.arguments[place])
    }

    /// Returns the handle that the call has set in the first output parameter of a kind.
    ///
    /// # Safety
    /// The call has succeeded, so the parameter points to a handle.
    pub unsafe fn result(&self, kind: &str) -> Option<usize> {
        let place = self.function.output(kind)?;
        let pointer = self.arguments[place] as *const usize;
        // SAFETY: the parameter points to a handle: the caller promises it.
        (!pointer.is_null()).then(|| unsafe { *pointer })
    }
}
