//! Conversion of the errors of the layers below.

use crate::engine::Engine;
use crate::error::Error;
use crate::state::state;
use weft_fabric::Fabric;

impl From<weft_process::Error> for Error {
    #[cold]
    fn from(error: weft_process::Error) -> Error {
        if error.is_returned() {
            return Error::returned(error.class(), error.text());
        }
        // The cause is added only if the error is the fault of the fabric itself.
        let known = || {
            let engine = state().engine.get()?;
            let fault = engine.endpoint().fault()?;
            let why =
                of_another_job(engine, &fault).or_else(|| engine.endpoint().fabric().trouble());
            (fault.to_string() == error.text()).then(|| why.map(|why| fault.because(&why)))?
        };
        Error::new(error.class(), known().unwrap_or_else(|| error.text().to_owned()))
    }
}

/// Describes a lost peer that belongs to another job.
fn of_another_job(engine: &Engine, fault: &weft_fabric::Fault) -> Option<String> {
    let weft_fabric::FaultCause::PeerLost { rank } = *fault.cause() else { return None };
    (rank >= engine.endpoint().fabric().size()).then(|| {
        let weft_process::Identity { rank, .. } = engine.identity(rank as u32);
        format!(
            "it was rank {rank} of another job, connected to this one, and has ended without MPI_Comm_disconnect or \
             MPI_Finalize, or its host is gone"
        )
    })
}

impl From<weft_datatype::DatatypeError> for Error {
    #[cold]
    fn from(error: weft_datatype::DatatypeError) -> Error {
        weft_process::Error::from(error).into()
    }
}

impl From<weft_fabric::Fault> for Error {
    #[cold]
    fn from(fault: weft_fabric::Fault) -> Error {
        weft_process::Error::from(fault).into()
    }
}
