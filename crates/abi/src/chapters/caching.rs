use crate::error::Error;
use crate::types::Comm;
use std::cell::RefCell;
use weft_process::Attributes;
pub fn copy_attributes(
    _: Comm,
    _: &RefCell<Attributes>,
    _: &RefCell<Attributes>,
) -> Result<(), Error> {
    Ok(())
}
pub fn delete_attributes(_: usize, _: &RefCell<Attributes>) -> Result<(), Error> {
    Ok(())
}
