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

/// Count and datatype of a buffer. Some procedures have none for a buffer, or a count for each process.
#[derive(Clone, Copy)]
pub struct BufferElements {
    pub count: *const c_int,
    pub datatype: *const c_int,
}

/// A buffer as C gets it.
pub struct SectionView {
    at: *mut c_void,
    given: Option<BufferElements>,
    /// The datatype of a section with gaps, and the number 1.
    made: Option<(c_int, c_int)>,
    functions: &'static DatatypeFunctions,
}

impl SectionView {
    /// Describes a buffer. Returns `None` if the section has gaps that the C function cannot be told of.
    ///
    /// # Safety
    /// The descriptor is gfortran's; the elements may be read.
    pub unsafe fn of(
        descriptor: *const ArrayDescriptor,
        given: Option<BufferElements>,
        functions: &'static DatatypeFunctions,
    ) -> Option<SectionView> {
        // SAFETY: the caller promises it. As many dimensions follow as the rank says.
        unsafe {
            let array = &*descriptor;
            let first = (&raw const (*descriptor).dimensions).cast::<ArrayDimension>();
            let dimensions: Vec<_> =
                (0..array.rank.max(0) as usize).map(|i| *first.add(i)).collect();
            let span = if array.span == 0 { array.element_bytes as isize } else { array.span };
            let mut view = SectionView { at: array.base, given, made: None, functions };
            if !has_gaps(&dimensions, array.element_bytes as isize, span) {
                return Some(view);
            }
            let BufferElements { count, datatype } = given?;
            let shape = SectionShape { dimensions, span, element_bytes: array.element_bytes };
            view.made = Some((make(functions, &shape, *count, *datatype)?, 1));
            Some(view)
        }
    }

    /// Returns the address of the first element.
    pub fn at(&self) -> *mut c_void {
        self.at
    }

    /// Returns the address of the count.
    pub fn count(&self) -> *const c_int {
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

impl Drop for SectionView {
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

/// Makes the datatype of `count` elements of `datatype` in a section.
unsafe fn make(
    functions: &DatatypeFunctions,
    shape: &SectionShape,
    count: c_int,
    datatype: c_int,
) -> Option<c_int> {
    let mut temporary = Vec::new();
    // SAFETY: the functions are the C library's, and the pointers are of this function.
    let made = unsafe {
        let mut size = 0;
        if (functions.size)(datatype, &raw mut size) != 0 || size <= 0 || count < 0 {
            return None;
        }
        // Several elements of the datatype may be one of the array, as two numbers are a complex number.
        let (size, bytes) = (size as usize, shape.element_bytes);
        if !bytes.is_multiple_of(size) || !(count as usize * size).is_multiple_of(bytes) {
            return None;
        }
        let mut push = |code: c_int, new: c_int| {
            (code == 0).then(|| temporary.push(new))?;
            Some(new)
        };
        let mut new = 0;
        let code = (functions.contiguous)((bytes / size) as c_int, datatype, &raw mut new);
        let element = push(code, new)?;
        let wanted = count as usize * size / bytes;
        let all: isize = shape.dimensions.iter().map(ArrayDimension::extent).product();
        if wanted as isize == all {
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
    fn offsets_follow_the_dimensions() {
        let shape = SectionShape {
            dimensions: vec![dimension(2, 2), dimension(10, 3)],
            span: 4,
            element_bytes: 4,
        };
        assert_eq!(offsets(&shape, 5), [0, 8, 40, 48, 80]);
    }
}
