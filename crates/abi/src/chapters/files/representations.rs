//! Representations of data in files (MPI 5.0, section 14.5): those of the standard, and the program's own.

use super::about::begun;
use crate::arguments::text;
use crate::callback::Callback;
use crate::chapters::contents::give_back;
use crate::constants::*;
use crate::error::{Error, callback_result};
use crate::lock;
use crate::objects::FileOf;
use crate::state::Kept;
use crate::types::{
    DatarepConversionFunction, DatarepConversionFunctionC, DatarepExtentFunction, Datatype,
};
use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void};
use std::rc::Rc;
use weft_datatype::Type;
use weft_fabric::Sge;
use weft_io::{Convert, External32, Representation, Sizes};
use weft_process::Buffer;

/// Those of the program, by name. They stay as long as the process.
static OURS: Kept<RefCell<Vec<Rc<Registered>>>> = Kept::new(RefCell::new(Vec::new()));

/// A function of the program that converts data.
#[derive(Clone, Copy)]
enum Converter {
    Int(Callback<DatarepConversionFunction>),
    Count(Callback<DatarepConversionFunctionC>),
}

impl Converter {
    fn is_null(self) -> bool {
        match self {
            Converter::Int(function) => function.address() == MPI_CONVERSION_FN_NULL,
            Converter::Count(function) => function.address() == MPI_CONVERSION_FN_NULL_C,
        }
    }
}

/// A representation that the program registered.
struct Registered {
    name: String,
    read: Converter,
    write: Converter,
    extent: Callback<DatarepExtentFunction>,
    extra: *mut c_void,
}

impl Registered {
    fn extent(&self, datatype: Datatype) -> Result<i64, Error> {
        let mut extent = 0isize;
        let to = &raw mut extent;
        // SAFETY: the program registered a function of this type with its argument.
        let code = lock::unlocked(|| unsafe { self.extent.function()(datatype, to, self.extra) });
        let name = &self.name;
        callback_result(code, format_args!("the extent function of representation {name:?}"))?;
        if extent < 0 {
            let text =
                format!("the extent function of representation {name:?} says {extent} bytes");
            return Err(Error::new(MPI_ERR_CONVERSION, text));
        }
        Ok(extent as i64)
    }

    /// Has the program convert elements at a place of its own, from or to `data`.
    fn convert(
        &self,
        with: Converter,
        (address, datatype, count): (*mut c_void, Datatype, usize),
        data: Sge,
    ) -> Result<(), Error> {
        let (file, extra) = (data.ptr().cast(), self.extra);
        // SAFETY: the program registered a function of this type with its argument; the places are those of its own elements
        // and of the file's data, which are as long as its extent function says.
        let code = lock::unlocked(|| unsafe {
            match with {
                Converter::Int(function) => {
                    function.function()(address, datatype, count as c_int, file, 0, extra)
                }
                Converter::Count(function) => {
                    function.function()(address, datatype, count as i64, file, 0, extra)
                }
            }
        });
        callback_result(code, format_args!("a conversion of representation {:?}", self.name))
    }
}

/// As the layers below have errors.
fn lowered(error: Error) -> weft_process::Error {
    match error.class() {
        class if class <= MPI_ERR_LASTCODE => weft_process::Error::new(class, error.text()),
        class => weft_process::Error::returned(class, error.text()),
    }
}

impl Sizes for Registered {
    fn of(&self, basic: &Type) -> Result<(usize, i64), weft_process::Error> {
        let extent = self.extent(give_back(basic)).map_err(lowered)?;
        Ok((extent as usize, extent))
    }
}

/// One operation's conversion by the program's functions.
struct Own {
    by: Rc<Registered>,
    address: *mut c_void,
    datatype: Datatype,
}

impl Convert for Own {
    fn len(&self, buffer: &Buffer) -> Result<u64, weft_process::Error> {
        if buffer.count() == 0 {
            return Ok(0);
        }
        Ok(self.by.extent(self.datatype).map_err(lowered)? as u64 * buffer.count() as u64)
    }

    fn export(&self, buffer: &Buffer, to: Sge) -> Result<(), weft_process::Error> {
        if self.by.write.is_null() && to.len() == buffer.len() {
            buffer.pack_to(to);
            return Ok(());
        }
        let elements = (self.address, self.datatype, buffer.count());
        self.given(self.by.write)?;
        self.by.convert(self.by.write, elements, to).map_err(lowered)
    }

    fn import(&self, from: Sge, buffer: &Buffer) -> Result<u64, weft_process::Error> {
        if self.by.read.is_null() && self.len(buffer)? == buffer.len() as u64 {
            buffer.unpack_from(from);
            return Ok(from.len() as u64);
        }
        self.given(self.by.read)?;
        let each = self.by.extent(self.datatype).map_err(lowered)?.max(1) as usize;
        let count = from.len() / each;
        let elements = (self.address, self.datatype, count);
        self.by.convert(self.by.read, elements, from.part(0, count * each)).map_err(lowered)?;
        Ok((count * buffer.ty().size()) as u64)
    }
}

impl Own {
    /// Without a function the file has the same bytes; then the extents must agree.
    fn given(&self, function: Converter) -> Result<(), weft_process::Error> {
        if !function.is_null() {
            return Ok(());
        }
        let text = format!(
            "representation {:?} has no conversion this way, but other extents than the machine",
            self.by.name
        );
        Err(weft_process::Error::new(MPI_ERR_CONVERSION, text))
    }
}

fn registered(name: &str) -> Option<Rc<Registered>> {
    OURS.borrow().iter().find(|one| one.name == name).cloned()
}

/// Names that the standard gives.
const PREDEFINED: [&str; 3] = ["native", "internal", "external32"];

/// A representation by its name. Errors: UNSUPPORTED_DATAREP.
pub fn named(name: &str) -> Result<Representation, Error> {
    match name {
        // The same on all machines of a job.
        "native" | "internal" => Ok(Representation::native(name)),
        "external32" => Ok(Representation {
            name: name.to_owned(),
            sizes: Some(Rc::new(External32)),
            convert: Some(Rc::new(External32)),
        }),
        _ => match registered(name) {
            Some(own) => {
                Ok(Representation { name: name.to_owned(), sizes: Some(own), convert: None })
            }
            None => {
                let text = format!(
                    "argument datarep = {name:?}: it is \"native\", \"internal\", \"external32\" or one that \
                     MPI_Register_datarep was given"
                );
                Err(Error::new(MPI_ERR_UNSUPPORTED_DATAREP, text))
            }
        },
    }
}

/// What converts the data of one operation; `None`: the file has the same bytes.
pub fn conversion(
    file: &FileOf,
    address: *const c_void,
    datatype: Datatype,
) -> Option<Rc<dyn Convert>> {
    let view = file.view();
    let representation = &view.representation;
    representation.sizes.as_ref()?;
    if let Some(ours) = &representation.convert {
        return Some(ours.clone());
    }
    let by = registered(&representation.name)?;
    Some(Rc::new(Own { by, address: address.cast_mut(), datatype }))
}

/// # Safety
/// `name` is NULL or a C string.
unsafe fn register(
    name: *const c_char,
    [read, write]: [Converter; 2],
    extent: Callback<DatarepExtentFunction>,
    extra: *mut c_void,
) -> Result<(), Error> {
    begun()?;
    // SAFETY: by contract.
    let name = unsafe { text(name, "datarep")? };
    if name.is_empty() || name.len() >= MPI_MAX_DATAREP_STRING as usize {
        let text = format!(
            "argument datarep has {} bytes: names have 1 to {}",
            name.len(),
            MPI_MAX_DATAREP_STRING - 1
        );
        return Err(Error::new(MPI_ERR_ARG, text));
    }
    if extent.address() == 0 {
        return Err(Error::null("dtype_file_extent_fn"));
    }
    if PREDEFINED.contains(&name.as_str()) || registered(&name).is_some() {
        let text = format!("argument datarep = {name:?}: there is one of that name");
        return Err(Error::new(MPI_ERR_DUP_DATAREP, text));
    }
    OURS.borrow_mut().push(Rc::new(Registered { name, read, write, extent, extra }));
    Ok(())
}

pub(crate) unsafe fn register_datarep(
    name: *const c_char,
    read: Callback<DatarepConversionFunction>,
    write: Callback<DatarepConversionFunction>,
    extent: Callback<DatarepExtentFunction>,
    extra: *mut c_void,
) -> Result<(), Error> {
    // SAFETY: the caller's string.
    unsafe { register(name, [read, write].map(Converter::Int), extent, extra) }
}

pub(crate) unsafe fn register_datarep_c(
    name: *const c_char,
    read: Callback<DatarepConversionFunctionC>,
    write: Callback<DatarepConversionFunctionC>,
    extent: Callback<DatarepExtentFunction>,
    extra: *mut c_void,
) -> Result<(), Error> {
    // SAFETY: the caller's string.
    unsafe { register(name, [read, write].map(Converter::Count), extent, extra) }
}
