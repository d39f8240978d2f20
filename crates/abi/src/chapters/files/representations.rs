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
use weft_datatype::{Basic, Type};
use weft_fabric::Sge;
use weft_io::{Convert, Direction, External32, Representation, Sizes};
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

    /// Lets the program convert elements of a predefined datatype at a place, from or to `data`.
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

    /// Lets the program convert any number of items that lie next to each other at `address`.
    fn convert_all(
        &self,
        with: Converter,
        items: &Items,
        address: *mut c_void,
        data: Sge,
    ) -> Result<(), Error> {
        let (each, extent) = (items.in_file, weft_rma::named(items.basic).extent() as usize);
        let datatype = Datatype(items.basic.handle() as usize);
        let mut done = 0;
        while done < items.count {
            let some = (items.count - done).min(AT_ONCE);
            let place = address.wrapping_byte_add(done * extent);
            self.convert(with, (place, datatype, some), data.part(done * each, some * each))?;
            done += some;
        }
        Ok(())
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

/// Maximum number of elements that one call of the program's function converts: one form of the function has an int for the
/// number.
const AT_ONCE: usize = 1 << 30;

/// Consecutive elements of one predefined type.
struct Items {
    basic: Basic,
    count: usize,
    /// Number of bytes of one element in the file.
    in_file: usize,
}

/// One operation's conversion by the program's functions. They get only predefined types. Each element of such a type has its
/// place in the file, so that a file may end after any element (MPI 5.0, section 14.5.3: the extent function is asked only for
/// these types).
struct Own {
    by: Rc<Registered>,
    /// Address of the program's data.
    address: *mut c_void,
}

impl Own {
    /// Lists the items of one element of `ty`, and how many times they are repeated.
    fn items(&self, ty: &Type, count: usize) -> Result<(Vec<Items>, usize), weft_process::Error> {
        let mut runs: Vec<(Basic, usize)> = Vec::new();
        ty.each_basic(1, |basic, times| {
            match runs.last_mut() {
                Some(last) if last.0 == basic => last.1 += times,
                _ => runs.push((basic, times)),
            }
            Ok(())
        })?;
        let mut known: Vec<(Basic, usize)> = Vec::new();
        let mut items = Vec::with_capacity(runs.len());
        for (basic, count) in runs {
            let found = known.iter().find(|(of, _)| *of == basic).map(|&(_, bytes)| bytes);
            let in_file = match found {
                Some(bytes) => bytes,
                None => {
                    let datatype = Datatype(basic.handle() as usize);
                    let bytes = self.by.extent(datatype).map_err(lowered)? as usize;
                    known.push((basic, bytes));
                    bytes
                }
            };
            items.push(Items { basic, count, in_file });
        }
        match &mut items[..] {
            [one] => {
                one.count *= count;
                Ok((items, 1))
            }
            _ => Ok((items, count)),
        }
    }

    /// Lets the program convert as many of the buffer's items as `data` has room for. Returns the number of bytes of the
    /// program's data that this covers.
    fn moved(
        &self,
        (direction, with): (Direction, Converter),
        data: Sge,
        buffer: &Buffer,
    ) -> Result<usize, weft_process::Error> {
        let (items, times) = self.items(buffer.ty(), buffer.count())?;
        let (mut here, mut there) = (0, 0);
        for item in (0..times).flat_map(|_| &items) {
            let fit = (data.len() - there).checked_div(item.in_file).unwrap_or(item.count);
            let some = Items { count: fit.min(item.count), ..*item };
            let part = data.part(there, some.count * some.in_file);
            here += self.move_some((direction, with), &some, (buffer, here), part)?;
            there += part.len();
            if some.count < item.count {
                break;
            }
        }
        Ok(here)
    }

    /// Lets the program convert items that begin after `skip` bytes of its data.
    fn move_some(
        &self,
        (direction, with): (Direction, Converter),
        items: &Items,
        (buffer, skip): (&Buffer, usize),
        data: Sge,
    ) -> Result<usize, weft_process::Error> {
        let ty = weft_rma::named(items.basic);
        let bytes = items.count * ty.size();
        if buffer.ty().basic().is_some() {
            self.by.convert_all(with, items, self.address, data).map_err(lowered)?;
            return Ok(bytes);
        }
        // The elements lie next to each other, each aligned for the machine.
        let mut apart = vec![0u128; (items.count * ty.extent() as usize).div_ceil(16)];
        let mut packed = vec![0u8; bytes];
        let place = memory_of(&mut apart);
        let Some(elements) = Buffer::within(place, 0, items.count, ty) else { return Ok(0) };
        if direction == Direction::Write {
            buffer.pack_at(skip, memory_of(&mut packed));
            elements.unpack_from(memory_of(&mut packed));
        }
        self.by.convert_all(with, items, place.ptr().cast(), data).map_err(lowered)?;
        if direction == Direction::Read {
            elements.pack_to(memory_of(&mut packed));
            buffer.unpack_at(skip, memory_of(&mut packed));
        }
        Ok(bytes)
    }
}

/// Returns a slice of the library's own memory in the form of a buffer.
fn memory_of<T>(values: &mut [T]) -> Sge {
    // SAFETY: the caller is done with the returned buffer before it touches the values again.
    unsafe { Sge::new(values.as_mut_ptr().cast(), std::mem::size_of_val(values)) }
}

impl Convert for Own {
    fn len(&self, buffer: &Buffer) -> Result<u64, weft_process::Error> {
        let (items, times) = self.items(buffer.ty(), buffer.count())?;
        let sum = items.iter().try_fold(0u64, |sum, item| {
            sum.checked_add((item.count as u64).checked_mul(item.in_file as u64)?)
        });
        sum.and_then(|sum| sum.checked_mul(times as u64)).ok_or_else(|| {
            let text = format!(
                "argument count: in representation {:?} the data have 2^64 bytes or more",
                self.by.name
            );
            weft_process::Error::new(MPI_ERR_COUNT, text)
        })
    }

    fn export(&self, buffer: &Buffer, to: Sge) -> Result<(), weft_process::Error> {
        if self.by.write.is_null() && to.len() == buffer.len() {
            buffer.pack_to(to);
            return Ok(());
        }
        self.given(self.by.write)?;
        self.moved((Direction::Write, self.by.write), to, buffer).map(|_| ())
    }

    fn import(&self, from: Sge, buffer: &Buffer) -> Result<u64, weft_process::Error> {
        if self.by.read.is_null() && self.len(buffer)? == buffer.len() as u64 {
            buffer.unpack_from(from);
            return Ok(from.len() as u64);
        }
        self.given(self.by.read)?;
        Ok(self.moved((Direction::Read, self.by.read), from, buffer)? as u64)
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
pub fn conversion(file: &FileOf, address: *const c_void) -> Option<Rc<dyn Convert>> {
    let view = file.view();
    let representation = &view.representation;
    representation.sizes.as_ref()?;
    if let Some(ours) = &representation.convert {
        return Some(ours.clone());
    }
    let by = registered(&representation.name)?;
    Some(Rc::new(Own { by, address: address.cast_mut() }))
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

/// MPI_Register_datarep.
pub(crate) unsafe fn register_datarep(
    name: *const c_char,
    read: Callback<DatarepConversionFunction>,
    write: Callback<DatarepConversionFunction>,
    extent: Callback<DatarepExtentFunction>,
    extra: *mut c_void,
) -> Result<(), Error> {
    // SAFETY: `register` needs a string that ends with a NUL, which the program passes as MPI requires.
    unsafe { register(name, [read, write].map(Converter::Int), extent, extra) }
}

/// MPI_Register_datarep_c.
pub(crate) unsafe fn register_datarep_c(
    name: *const c_char,
    read: Callback<DatarepConversionFunctionC>,
    write: Callback<DatarepConversionFunctionC>,
    extent: Callback<DatarepExtentFunction>,
    extra: *mut c_void,
) -> Result<(), Error> {
    // SAFETY: `register` needs a string that ends with a NUL, which the program passes as MPI requires.
    unsafe { register(name, [read, write].map(Converter::Count), extent, extra) }
}
