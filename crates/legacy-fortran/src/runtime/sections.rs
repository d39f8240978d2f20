//! Buffers of `mpi_f08` in MPICH's ABI: gfortran's descriptors of arrays. A section whose elements are not adjacent is described by a
//! datatype.

use std::ffi::{c_int, c_void};

/// Bounds of a dimension.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct ArrayDimension {
    /// Distance of two elements, in spans.
    stride: isize,
    lower: isize,
    upper: isize,
}

impl ArrayDimension {
    fn extent(&self) -> isize {
        (self.upper - self.lower + 1).max(0)
    }
}

/// A descriptor of gfortran 9 and later, for an array of any rank.
#[repr(C)]
pub struct ArrayDescriptor {
    base: *mut c_void,
    offset: usize,
    element_bytes: usize,
    version: c_int,
    rank: i8,
    kind: i8,
    attribute: i16,
    span: isize,
    dimensions: [ArrayDimension; 0],
}

/// Functions of the C library that make datatypes. Handles are numbers in this ABI.
pub struct DatatypeFunctions {
    pub size: unsafe extern "C" fn(c_int, *mut c_int) -> c_int,
    pub contiguous: unsafe extern "C" fn(c_int, c_int, *mut c_int) -> c_int,
    pub hvector: unsafe extern "C" fn(c_int, c_int, isize, c_int, *mut c_int) -> c_int,
    pub hindexed_block: unsafe extern "C" fn(c_int, c_int, *mut isize, c_int, *mut c_int) -> c_int,
    pub commit: unsafe extern "C" fn(*mut c_int) -> c_int,
    pub free: unsafe extern "C" fn(*mut c_int) -> c_int,
}

/// Type of a count: `int`, or 64 bits in large-count forms.
pub trait SectionCount: Copy {
    const ONE: Self;
    fn wide(self) -> i64;
}

impl SectionCount for c_int {
    const ONE: c_int = 1;
    fn wide(self) -> i64 {
        self.into()
    }
}

impl SectionCount for i64 {
    const ONE: i64 = 1;
    fn wide(self) -> i64 {
        self
    }
}

/// Count and datatype of a buffer.
#[derive(Clone, Copy)]
pub struct BufferElements<C> {
    pub count: *const C,
    pub datatype: *const c_int,
}

/// Directions in which a copy of a section is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SectionCopies {
    /// Before the call.
    In,
    /// Before and after the call, which may leave parts of the buffer as they are.
    Both,
}

/// Treatment of a section with gaps.
#[derive(Clone, Copy)]
pub enum SectionUse<C> {
    /// A datatype stands for count and datatype.
    Datatype(BufferElements<C>),
    /// The call gets a copy without gaps.
    Copy(SectionCopies),
    /// The call uses only the address of the first element.
    Address,
    /// The call cannot have it.
    Refuse,
}

/// A buffer as C gets it.
pub struct SectionView<C> {
    at: *mut c_void,
    given: Option<BufferElements<C>>,
    /// The datatype of a section with gaps, and the number 1.
    made: Option<(c_int, C)>,
    copy: Option<SectionCopy>,
    functions: &'static DatatypeFunctions,
}

/// A copy of a section's elements.
struct SectionCopy {
    shape: SectionShape,
    elements: Vec<u128>,
    base: *mut u8,
    direction: SectionCopies,
}

impl SectionCopy {
    /// Copies the elements of the section.
    ///
    /// # Safety
    /// The elements may be read, and written for [`SectionCopies::Both`] until the copy is dropped.
    unsafe fn new(shape: SectionShape, base: *mut u8, direction: SectionCopies) -> SectionCopy {
        let bytes = shape.len() * shape.element_bytes;
        let elements = vec![0_u128; bytes.div_ceil(size_of::<u128>())];
        let mut copy = SectionCopy { shape, elements, base, direction };
        // SAFETY: the caller promises it.
        unsafe {
            copy.each(|section, copied, bytes| {
                std::ptr::copy_nonoverlapping(section, copied, bytes)
            });
        }
        copy
    }

    /// Runs a function on the addresses of each element in the section and in the copy.
    fn each(&mut self, run: impl Fn(*mut u8, *mut u8, usize)) {
        let (bytes, copied) = (self.shape.element_bytes, self.elements.as_mut_ptr().cast::<u8>());
        for (i, offset) in offsets(&self.shape, self.shape.len()).into_iter().enumerate() {
            run(self.base.wrapping_offset(offset), copied.wrapping_add(i * bytes), bytes);
        }
    }
}

impl Drop for SectionCopy {
    fn drop(&mut self) {
        if self.direction == SectionCopies::Both {
            self.each(|section, copied, bytes| {
                // SAFETY: the elements may be written: the caller of `new` promises it.
                unsafe { std::ptr::copy_nonoverlapping(copied, section, bytes) }
            });
        }
    }
}

impl<C: SectionCount> SectionView<C> {
    /// Describes a buffer. Returns `None` if the call cannot have a section with gaps.
    ///
    /// # Safety
    /// The descriptor is gfortran's; the elements may be read, and written if the call writes its buffer.
    pub unsafe fn of(
        descriptor: *const ArrayDescriptor,
        section: SectionUse<C>,
        functions: &'static DatatypeFunctions,
    ) -> Option<SectionView<C>> {
        // SAFETY: the caller promises it. As many dimensions follow as the rank says.
        unsafe {
            let array = &*descriptor;
            let first = (&raw const (*descriptor).dimensions).cast::<ArrayDimension>();
            let dimensions: Vec<_> =
                (0..array.rank.max(0) as usize).map(|i| *first.add(i)).collect();
            let span = if array.span == 0 { array.element_bytes as isize } else { array.span };
            let given = match section {
                SectionUse::Datatype(elements) => Some(elements),
                _ => None,
            };
            let mut view = SectionView { at: array.base, given, made: None, copy: None, functions };
            if !has_gaps(&dimensions, array.element_bytes as isize, span) {
                return Some(view);
            }
            let shape = SectionShape { dimensions, span, element_bytes: array.element_bytes };
            match section {
                SectionUse::Datatype(BufferElements { count, datatype }) => {
                    let (count, datatype) = ((*count).wide(), *datatype);
                    // The C function itself refuses wrong arguments.
                    if let Some(size) = size_of_datatype(functions, datatype).filter(|_| count >= 0)
                    {
                        let elements = SectionElements { count, datatype, size };
                        view.made = Some((make(functions, &shape, &elements)?, C::ONE));
                    }
                }
                SectionUse::Copy(direction) => {
                    let mut copy = SectionCopy::new(shape, array.base.cast(), direction);
                    view.at = copy.elements.as_mut_ptr().cast();
                    view.copy = Some(copy);
                }
                SectionUse::Address => {}
                SectionUse::Refuse => return None,
            }
            Some(view)
        }
    }

    /// Returns the address of the first element.
    pub fn at(&self) -> *mut c_void {
        self.at
    }

    /// Returns the address of the count.
    pub fn count(&self) -> *const C {
        match (&self.made, self.given) {
            (Some((_, one)), _) => one,
            (None, given) => given.map_or(std::ptr::null(), |given| given.count),
        }
    }

    /// Returns the address of the datatype's number.
    pub fn datatype(&self) -> *const c_int {
        match (&self.made, self.given) {
            (Some((datatype, _)), _) => datatype,
            (None, given) => given.map_or(std::ptr::null(), |given| given.datatype),
        }
    }
}

impl<C> Drop for SectionView<C> {
    fn drop(&mut self) {
        if let Some((datatype, _)) = &mut self.made {
            // SAFETY: the datatype was made for this view. An operation under way keeps it.
            unsafe { (self.functions.free)(&raw mut *datatype) };
        }
    }
}

/// Dimensions of a section with gaps.
struct SectionShape {
    dimensions: Vec<ArrayDimension>,
    span: isize,
    element_bytes: usize,
}

impl SectionShape {
    /// Returns the number of elements.
    fn len(&self) -> usize {
        self.dimensions.iter().map(|d| d.extent() as usize).product()
    }
}

/// Elements of a buffer: their number, their datatype, and its size in bytes.
struct SectionElements {
    count: i64,
    datatype: c_int,
    size: usize,
}

/// Returns the size of a datatype, if it has data.
fn size_of_datatype(functions: &DatatypeFunctions, datatype: c_int) -> Option<usize> {
    let mut size = 0;
    // SAFETY: the function is the C library's, which checks the handle.
    let code = unsafe { (functions.size)(datatype, &raw mut size) };
    usize::try_from(size).ok().filter(|&size| code == 0 && size > 0)
}

/// Returns true if elements that follow each other are not adjacent in memory. The last dimension may have no upper bound.
fn has_gaps(dimensions: &[ArrayDimension], element_bytes: isize, span: isize) -> bool {
    let mut expected = element_bytes;
    for (i, dimension) in dimensions.iter().enumerate() {
        let extent = dimension.extent();
        let last = i + 1 == dimensions.len();
        if extent == 0 && !last {
            return false;
        }
        if extent != 1 && dimension.stride * span != expected {
            return true;
        }
        expected *= extent;
    }
    false
}

/// Returns the offsets of the first `count` elements in bytes.
fn offsets(shape: &SectionShape, count: usize) -> Vec<isize> {
    let offset = |mut index: isize| {
        shape.dimensions.iter().fold(0, |sum, dimension| {
            let extent = dimension.extent().max(1);
            let here = index % extent;
            index /= extent;
            sum + here * dimension.stride * shape.span
        })
    };
    (0..count as isize).map(offset).collect()
}

/// Makes the datatype of elements in a section.
unsafe fn make(
    functions: &DatatypeFunctions,
    shape: &SectionShape,
    elements: &SectionElements,
) -> Option<c_int> {
    let &SectionElements { count, datatype, size } = elements;
    let (count, bytes) = (usize::try_from(count).ok()?, shape.element_bytes);
    // Several elements of the datatype may be one of the array, as two numbers are a complex number.
    if !bytes.is_multiple_of(size) || !(count * size).is_multiple_of(bytes) {
        return None;
    }
    let mut temporary = Vec::new();
    // SAFETY: the functions are the C library's, and the pointers are of this function.
    let made = unsafe {
        let mut push = |code: c_int, new: c_int| {
            (code == 0).then(|| temporary.push(new))?;
            Some(new)
        };
        let mut new = 0;
        let code = (functions.contiguous)((bytes / size) as c_int, datatype, &raw mut new);
        let element = push(code, new)?;
        let wanted = count * size / bytes;
        if wanted == shape.len() {
            shape.dimensions.iter().try_fold(element, |inner, dimension| {
                let mut new = 0;
                let distance = dimension.stride * shape.span;
                let code = (functions.hvector)(
                    dimension.extent() as c_int,
                    1,
                    distance,
                    inner,
                    &raw mut new,
                );
                push(code, new)
            })
        } else {
            let mut places = offsets(shape, wanted);
            let mut new = 0;
            let code = (functions.hindexed_block)(
                wanted as c_int,
                1,
                places.as_mut_ptr(),
                element,
                &raw mut new,
            );
            push(code, new)
        }
    };
    let mut made = made.filter(|_| temporary.pop().is_some());
    // SAFETY: the types were made above; the last one keeps what it consists of.
    unsafe {
        temporary.iter_mut().for_each(|one| _ = (functions.free)(one));
        if let Some(made) = &mut made {
            (functions.commit)(made);
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dimension(stride: isize, upper: isize) -> ArrayDimension {
        ArrayDimension { stride, lower: 1, upper }
    }

    #[test]
    fn sections_have_gaps() {
        assert!(!has_gaps(&[dimension(1, 3), dimension(3, 2)], 8, 8));
        assert!(has_gaps(&[dimension(2, 3)], 8, 8), "each second element");
        assert!(has_gaps(&[dimension(1, 2), dimension(3, 2)], 8, 8), "part of each column");
        assert!(has_gaps(&[dimension(1, 3)], 4, 8), "a component of a type");
        assert!(!has_gaps(&[dimension(1, 3), dimension(3, 0)], 8, 8), "no upper bound");
        assert!(!has_gaps(&[], 8, 8));
    }

    #[test]
    fn a_copy_goes_back_to_its_section() {
        let mut array: Vec<u32> = (0..12).collect();
        let shape = || SectionShape {
            dimensions: vec![dimension(2, 2), dimension(6, 2)],
            span: 4,
            element_bytes: 4,
        };
        for direction in [SectionCopies::In, SectionCopies::Both] {
            let base = array.as_mut_ptr().cast();
            // SAFETY: the section lies in the array.
            let mut copy = unsafe { SectionCopy::new(shape(), base, direction) };
            let elements = copy.elements.as_mut_ptr().cast::<[u32; 4]>();
            // SAFETY: the copy has four elements.
            let elements = unsafe { &mut *elements };
            assert_eq!(elements, &[0, 2, 6, 8]);
            elements.iter_mut().for_each(|element| *element += 100);
        }
        assert_eq!(array, [100, 1, 102, 3, 4, 5, 106, 7, 108, 9, 10, 11]);
    }

    #[test]
    fn offsets_follow_the_dimensions() {
        let shape = SectionShape {
            dimensions: vec![dimension(2, 2), dimension(10, 3)],
            span: 4,
            element_bytes: 4,
        };
        assert_eq!(offsets(&shape, 5), [0, 8, 40, 48, 80]);
    }
}
