//! Names of operations, as a user of `weft explain` writes them: in the library's words, or as MPI names its functions.

use super::{ExplainSubject, file, message};
use weft_collective::CollectiveKind;

impl ExplainSubject {
    /// Returns the subject of a name.
    ///
    /// # Errors
    /// The name is unknown, or is that of a nonblocking collective function. The error lists the known names, or says which name helps.
    pub fn named(name: &str) -> Result<ExplainSubject, String> {
        let lower = name.to_ascii_lowercase();
        let short = lower.strip_prefix("mpi_").unwrap_or(&lower);
        let short = short.strip_suffix("_c").unwrap_or(short);
        if let Some(call) = message::MessageCall::named(short) {
            return Ok(ExplainSubject::Message(call));
        }
        if let Some(call) = file::FileCall::named(short) {
            return Ok(ExplainSubject::File(call));
        }
        let unknown = match collective(short) {
            Ok(operation) => return Ok(ExplainSubject::Collective(operation)),
            Err(unknown) => unknown,
        };
        let blocking = short.strip_suffix("_init").or_else(|| short.strip_prefix('i'));
        match blocking.filter(|blocking| collective(blocking).is_ok()) {
            Some(blocking) => Err(format!(
                "{name} goes on in the background, where no algorithm is taken in which ranks wait for each other; explain {blocking}, \
                 and look for the first algorithm over messages"
            )),
            None => Err(unknown),
        }
    }
}

/// Returns the operation by whose algorithms the collective function `name` is served.
fn collective(name: &str) -> Result<CollectiveKind, String> {
    match name {
        "reduce_scatter_block" => Ok(CollectiveKind::ReduceScatter),
        "allgatherv" => Ok(CollectiveKind::Allgather),
        "alltoallw" => Ok(CollectiveKind::Alltoallv),
        _ => CollectiveKind::named(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_functions_are_names_of_operations() {
        let named = ExplainSubject::named;
        let collective = |operation| Ok(ExplainSubject::Collective(operation));
        for name in ["allreduce", "MPI_Allreduce", "mpi_allreduce", "MPI_Allreduce_c"] {
            assert_eq!(named(name), collective(CollectiveKind::Allreduce));
        }
        assert_eq!(named("MPI_Reduce_scatter_block"), collective(CollectiveKind::ReduceScatter));
        assert_eq!(named("allgatherv"), collective(CollectiveKind::Allgather));
        assert_eq!(named("alltoallw"), collective(CollectiveKind::Alltoallv));
        assert_eq!(named("MPI_Send"), named("send"));
        assert_eq!(named("MPI_File_write_all"), named("file_write_all"));
        for name in ["iallreduce", "MPI_Iallreduce", "MPI_Allreduce_init"] {
            assert!(named(name).unwrap_err().contains("explain allreduce"), "{name}");
        }
        assert!(named("all").unwrap_err().contains("known: "));
    }
}
