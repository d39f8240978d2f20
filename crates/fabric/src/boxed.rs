//! Boxed fabrics: a `Box<dyn Fabric>` is a fabric, too. Code that is generic over the fabric is compiled once for all boxed fabrics.
//! Tests use boxed fabrics, because the collective operations take about a minute to compile for each type of fabric.

use crate::{Fabric, Facets};

/// Boxes a fabric, so that its type is not known any more.
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
