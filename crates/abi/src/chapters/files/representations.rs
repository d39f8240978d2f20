//! Representations of data in files (MPI 5.0, section 14.5): predefined representations, and representations that the program
//! registers.

use super::properties::check_running;
use crate::arguments::text;
use crate::callback::CallbackPointer;
use crate::chapter_state::ChapterState;
use crate::chapters::contents::give_back;
use crate::constants::*;
use crate::error::{Error, callback_result};
use crate::lock;
use crate::objects::FileOf;
use crate::types::{
    DatarepConversionFunction, DatarepConversionFunctionC, DatarepExtentFunction, Datatype,
};
use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void};
use std::rc::Rc;
use weft_datatype::{Basic, Type};
use weft_fabric::Sge;
use weft_io::{AccessDirection, Convert, External32, Representation, RepresentationSizes};
use weft_process::Buffer;

/// The program's representations, which exist as long as the process.
static CUSTOM: ChapterState<RefCell<Vec<Rc<CustomRepresentation>>>> =
    ChapterState::new(RefCell::new(Vec::new()));

/// Function of the program that converts data.
#[derive(Clone, Copy)]
enum Converter {
    Int(CallbackPointer<DatarepConversionFunction>),
    Count(CallbackPointer<DatarepConversionFunctionC>),
}

impl Converter {
    fn is_null(self) -> bool {
        match self {
            Converter::Int(function) => function.address() == MPI_CONVERSION_FN_NULL,
            Converter::Count(function) => function.address() == MPI_CONVERSION_FN_NULL_C,
        }
    }
}

/// Elements of a predefined datatype in memory.
struct TypedElements {
    address: *mut c_void,
    datatype: Datatype,
    count: usize,
}

/// A representation that the program registered.
struct CustomRepresentation {
    name: String,
    read: Converter,
    write: Converter,
    extent: CallbackPointer<DatarepExtentFunction>,
    extra: *mut c_void,
}

impl CustomRepresentation {
    fn extent(&self, datatype: Datatype) -> Result<i64, Error> {
        let mut extent = 0isize;
        let to = &raw mut extent;
        // SAFETY: the program registered a function of this type with its argument.
        let code = lock::unlocked(|| unsafe { self.extent.function()(datatype, to, self.extra) });
        let name = &self.name;
        callback_result(code, format_args!("the extent function of representation {name:?}"))?;
        if extent < 0 {
            let text =
                format!("the extent function of representation {name:?} returned {extent} bytes");
            return Err(Error::new(MPI_ERR_CONVERSION, text));
        }
        Ok(extent as i64)
    }

    /// Calls the program's function for elements of a predefined datatype. `data` are the bytes of these elements in the file.
    fn convert(&self, with: Converter, elements: TypedElements, data: Sge) -> Result<(), Error> {
        let TypedElements { address, datatype, count } = elements;
        let (file, extra) = (data.ptr().cast(), self.extra);
        // SAFETY: the program registered a function of this type with its argument. The memory holds `count` elements of the
        // datatype, and the file's data are as long as the program's extent function says.
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

    /// Calls the program's function for any number of consecutive items at `address`.
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
            let count = (items.count - done).min(MAX_ELEMENTS);
            let address = address.wrapping_byte_add(done * extent);
            let elements = TypedElements { address, datatype, count };
            self.convert(with, elements, data.part(done * each, count * each))?;
            done += count;
        }
        Ok(())
    }
}

/// Converts an error to the type of the lower layers.
fn to_process_error(error: Error) -> weft_process::Error {
    match error.class() {
        class if class <= MPI_ERR_LASTCODE => weft_process::Error::new(class, error.text()),
        class => weft_process::Error::returned(class, error.text()),
    }
}

impl RepresentationSizes for CustomRepresentation {
    fn of(&self, basic: &Type) -> Result<(usize, i64), weft_process::Error> {
        let extent = self.extent(give_back(basic)).map_err(to_process_error)?;
        Ok((extent as usize, extent))
    }
}

/// Maximum number of elements that one call of the program's function converts. In one form of the function the number is an int.
const MAX_ELEMENTS: usize = 1 << 30;

/// Consecutive elements of one predefined type.
struct Items {
    basic: Basic,
    count: usize,
    /// Number of bytes of one element in the file.
    in_file: usize,
}

/// Conversion of an access by the program's functions. These functions get only predefined types (MPI 5.0, section 14.5.3: the
/// extent function is called only for these types). Each element of such a type has its own place in the file, so that a file may
/// end after any element.
struct CustomConversion {
    by: Rc<CustomRepresentation>,
    /// Address of the program's data.
    address: *mut c_void,
}

impl CustomConversion {
    /// Lists the items of `count` elements of `ty`: items, and the number of times that these items are repeated.
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
                    let bytes = self.by.extent(datatype).map_err(to_process_error)? as usize;
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

    /// Lets the program convert as many items of the buffer as `data` has room for. Returns the number of bytes of the program's
    /// data that were converted.
    fn convert_buffer(
        &self,
        direction: AccessDirection,
        data: Sge,
        buffer: &Buffer,
    ) -> Result<usize, weft_process::Error> {
        let (items, times) = self.items(buffer.ty(), buffer.count())?;
        let (mut here, mut there) = (0, 0);
        for item in (0..times).flat_map(|_| &items) {
            let fit = (data.len() - there).checked_div(item.in_file).unwrap_or(item.count);
            let some = Items { count: fit.min(item.count), ..*item };
            let part = data.part(there, some.count * some.in_file);
            here += self.convert_items(direction, &some, buffer, here, part)?;
            there += part.len();
            if some.count < item.count {
                break;
            }
        }
        Ok(here)
    }

    /// Lets the program convert items that begin after `skip` bytes of the program's data.
    fn convert_items(
        &self,
        direction: AccessDirection,
        items: &Items,
        buffer: &Buffer,
        skip: usize,
        data: Sge,
    ) -> Result<usize, weft_process::Error> {
        let with = self.converter(direction);
        let ty = weft_rma::named(items.basic);
        let bytes = items.count * ty.size();
        if buffer.ty().basic().is_some() {
            self.by.convert_all(with, items, self.address, data).map_err(to_process_error)?;
            return Ok(bytes);
        }
        // The elements are copied to memory in which they lie next to each other and are aligned.
        let mut aligned = vec![0u128; (items.count * ty.extent() as usize).div_ceil(16)];
        let mut packed = vec![0u8; bytes];
        let place = memory_of(&mut aligned);
        let Some(elements) = Buffer::within(place, 0, items.count, ty) else { return Ok(0) };
        if direction == AccessDirection::Write {
            buffer.pack_at(skip, memory_of(&mut packed));
            elements.unpack_from(memory_of(&mut packed));
        }
        self.by.convert_all(with, items, place.ptr().cast(), data).map_err(to_process_error)?;
        if direction == AccessDirection::Read {
            elements.pack_to(memory_of(&mut packed));
            buffer.unpack_at(skip, memory_of(&mut packed));
        }
        Ok(bytes)
    }
}

/// Returns a slice of the library's own memory in the form of a buffer.
fn memory_of<T>(values: &mut [T]) -> Sge {
    // SAFETY: `Sge::new` requires memory that stays valid and unchanged. The caller uses `values` again only after its last use of
    // the result.
    unsafe { Sge::new(values.as_mut_ptr().cast(), std::mem::size_of_val(values)) }
}

impl Convert for CustomConversion {
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
        self.check_converter(AccessDirection::Write)?;
        self.convert_buffer(AccessDirection::Write, to, buffer).map(|_| ())
    }

    fn import(&self, from: Sge, buffer: &Buffer) -> Result<u64, weft_process::Error> {
        if self.by.read.is_null() && self.len(buffer)? == buffer.len() as u64 {
            buffer.unpack_from(from);
            return Ok(from.len() as u64);
        }
        self.check_converter(AccessDirection::Read)?;
        Ok(self.convert_buffer(AccessDirection::Read, from, buffer)? as u64)
    }
}

impl CustomConversion {
    fn converter(&self, direction: AccessDirection) -> Converter {
        match direction {
            AccessDirection::Read => self.by.read,
            AccessDirection::Write => self.by.write,
        }
    }

    /// Checks that there is a function for this direction. Without a function, data must have the same bytes in the file as in
    /// memory.
    fn check_converter(&self, direction: AccessDirection) -> Result<(), weft_process::Error> {
        if !self.converter(direction).is_null() {
            return Ok(());
        }
        let text = format!(
            "representation {:?} has no conversion function for {}, but its extents differ from those in memory",
            self.by.name,
            match direction {
                AccessDirection::Read => "reads",
                AccessDirection::Write => "writes",
            }
        );
        Err(weft_process::Error::new(MPI_ERR_CONVERSION, text))
    }
}

fn custom(name: &str) -> Option<Rc<CustomRepresentation>> {
    CUSTOM.borrow().iter().find(|custom| custom.name == name).cloned()
}

/// Names of the standard's representations.
const PREDEFINED: [&str; 3] = ["native", "internal", "external32"];

/// Returns a representation by its name. Errors: UNSUPPORTED_DATAREP.
pub fn named(name: &str) -> Result<Representation, Error> {
    match name {
        // All machines of a job represent data in memory alike, so "internal" is the same as "native".
        "native" | "internal" => Ok(Representation::native(name)),
        "external32" => Ok(Representation {
            name: name.to_owned(),
            sizes: Some(Rc::new(External32)),
            convert: Some(Rc::new(External32)),
        }),
        _ => match custom(name) {
            Some(own) => {
                Ok(Representation { name: name.to_owned(), sizes: Some(own), convert: None })
            }
            None => {
                let text = format!(
                    "argument datarep = {name:?}: it must be \"native\", \"internal\", \"external32\" or a name that was registered by \
                     MPI_Register_datarep"
                );
                Err(Error::new(MPI_ERR_UNSUPPORTED_DATAREP, text))
            }
        },
    }
}

/// Returns the conversion of an access, or `None` if data have the same bytes in the file as in memory.
pub fn conversion(file: &FileOf, address: *const c_void) -> Option<Rc<dyn Convert>> {
    let view = file.view();
    let representation = &view.representation;
    representation.sizes.as_ref()?;
    if let Some(ours) = &representation.convert {
        return Some(ours.clone());
    }
    let by = custom(&representation.name)?;
    Some(Rc::new(CustomConversion { by, address: address.cast_mut() }))
}

/// # Safety
/// `name` is NULL or a C string.
unsafe fn register(
    name: *const c_char,
    [read, write]: [Converter; 2],
    extent: CallbackPointer<DatarepExtentFunction>,
    extra: *mut c_void,
) -> Result<(), Error> {
    check_running()?;
    // SAFETY: `name` is NULL or a C string; the contract of this function says so.
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
    if PREDEFINED.contains(&name.as_str()) || custom(&name).is_some() {
        let text =
            format!("argument datarep = {name:?}: a representation of this name exists already");
        return Err(Error::new(MPI_ERR_DUP_DATAREP, text));
    }
    CUSTOM.borrow_mut().push(Rc::new(CustomRepresentation { name, read, write, extent, extra }));
    Ok(())
}

/// MPI_Register_datarep.
pub(crate) unsafe fn register_datarep(
    name: *const c_char,
    read: CallbackPointer<DatarepConversionFunction>,
    write: CallbackPointer<DatarepConversionFunction>,
    extent: CallbackPointer<DatarepExtentFunction>,
    extra: *mut c_void,
) -> Result<(), Error> {
    // SAFETY: `register` needs a string that ends with a NUL, which the program passes as MPI requires.
    unsafe { register(name, [read, write].map(Converter::Int), extent, extra) }
}

/// MPI_Register_datarep_c.
pub(crate) unsafe fn register_datarep_c(
    name: *const c_char,
    read: CallbackPointer<DatarepConversionFunctionC>,
    write: CallbackPointer<DatarepConversionFunctionC>,
    extent: CallbackPointer<DatarepExtentFunction>,
    extra: *mut c_void,
) -> Result<(), Error> {
    // SAFETY: `register` needs a string that ends with a NUL, which the program passes as MPI requires.
    unsafe { register(name, [read, write].map(Converter::Count), extent, extra) }
}
