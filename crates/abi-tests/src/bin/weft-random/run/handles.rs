//! Datatypes in use: they are made when they are first needed, and freed together.

use super::Outcome;
use crate::construct;
use crate::mpi::Mpi;
use crate::types::{SharedType, TypeModel};
use std::collections::BTreeMap;

#[derive(Default)]
pub struct Handles(BTreeMap<*const TypeModel, (SharedType, usize)>);

impl Handles {
    pub fn get(&mut self, mpi: &Mpi, ty: &SharedType) -> Outcome<usize> {
        let key = std::rc::Rc::as_ptr(ty);
        if let Some((_, handle)) = self.0.get(&key) {
            return Ok(*handle);
        }
        let handle = construct::construct(mpi, ty)?;
        self.0.insert(key, (ty.clone(), handle));
        Ok(handle)
    }

    pub fn free(&mut self, mpi: &Mpi) -> Outcome {
        for (_, (ty, handle)) in std::mem::take(&mut self.0) {
            construct::release(mpi, &ty, handle)?;
        }
        Ok(())
    }
}
