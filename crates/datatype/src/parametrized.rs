//! Fortran types by precision and range (MPI 5.0, section 19.1.9).

use crate::datatype::shape::TypeConstructor;
use crate::{Combiner, Contents, Datatype, DatatypeError, Type};

impl Datatype {
    /// Makes the type of `MPI_Type_create_f90_real` or a similar function. The data are the data of the predefined type `basic`,
    /// and the contents report the arguments (decimal digits, decimal exponent). The type is committed.
    pub fn parametrized(
        combiner: Combiner,
        arguments: &[i64],
        basic: &Type,
    ) -> Result<Type, DatatypeError> {
        let contents = Contents { integers: arguments.to_vec(), ..Contents::default() };
        let recipe = TypeConstructor::Same(basic.clone());
        let made = Datatype::make(combiner, contents, recipe, *basic.shape())?;
        made.commit();
        Ok(made)
    }
}
