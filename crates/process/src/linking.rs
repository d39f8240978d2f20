//! Communicators between jobs (MPI 5.0, section 11.9). The jobs have met by other means, and each process has a number for each
//! process of the other job.

use crate::resources::CommResources;
use crate::{Comm, Engine, Error, Group};
use std::rc::Rc;
use weft_collective::{bcast, words};
use weft_fabric::Fabric;

impl<F: Fabric> Comm<F> {
    /// Returns `bytes` of rank `root` at all ranks. The bytes that other ranks pass are ignored. Collective over one group.
    pub fn tell_all(
        &self,
        root: usize,
        bytes: Vec<u8>,
    ) -> impl Future<Output = Result<Vec<u8>, Error>> + use<F> {
        let (first, second) = (self.link(), self.link());
        async move {
            let len = first.stage(8);
            words::write([bytes.len() as u64], len.sge());
            bcast::binomial(&first, root, len.sge()).await?;
            let all = second.stage(words::read(len.sge(), 0) as usize);
            if second.rank == root {
                all.sge().fill(&bytes);
            }
            bcast::binomial(&second, root, all.sge()).await?;
            let mut told = vec![0; all.len()];
            all.sge().read(&mut told);
            Ok(told)
        }
    }

    /// Makes the intercommunicator of `group` and the processes `remote` of another job. All agree on `id`, which
    /// [`Engine::new_shared_context`] returned on one process.
    pub fn between_jobs(
        engine: &Rc<Engine<F>>,
        id: u64,
        group: &Group,
        remote: Group,
    ) -> Rc<Comm<F>> {
        // Only ranks of one group could share memory in this communicator, and no operation needs such memory.
        Comm::agreed(engine, CommResources { id, lean: true }, group.clone(), Some(remote))
    }
}
