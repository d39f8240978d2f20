//! A fabric of any kind behind a pointer. Layers that are generic over the fabric are then compiled once for all fabrics. Tests use
//! such fabrics, because each further kind of fabric costs minutes of compile time.

use crate::{Fabric, Facets};

/// Hides the kind of a fabric.
pub fn boxed(fabric: impl Fabric) -> Box<dyn Fabric> {
    Box::new(fabric)
}

macro_rules! pass_on {
    ($(fn $name:ident(&self $(, $arg:ident: $ty:ty)*) $(-> $result:ty)?;)*) => {$(
        fn $name(&self $(, $arg: $ty)*) $(-> $result)? {
            (**self).$name($($arg),*)
        }
    )*};
}

impl Fabric for Box<dyn Fabric> {
    crate::methods!(Fabric, pass_on);
    crate::methods!(Memory, pass_on);
    crate::methods!(OneSided, pass_on);
    crate::methods!(Messages, pass_on);

    fn facets(&self) -> Facets<'_> {
        (**self).facets()
    }
}
