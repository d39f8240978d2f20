//! What all ranks do to all of a file together: its length, its view, whether it is on the device (MPI 5.0, sections 14.2 to 14.6).

use super::{File, GivenView, Representation};
use crate::exclusion::Exclusion;
use crate::failure::{Act, Failure, class};
use crate::representation::in_file;
use crate::storage::Storage;
use crate::storage::disk::Kind;
use crate::view::View;
use std::io;
use std::rc::Rc;
use weft_datatype::Type;
use weft_fabric::Fabric;
use weft_process::Error;

impl<F: Fabric> File<F> {
    /// The first rank does it, once all are there, and all learn what became of it.
    async fn by_first(
        &self,
        said: u64,
        work: impl FnOnce(&dyn Storage) -> io::Result<()>,
    ) -> Result<(), Error> {
        let core = &self.core;
        let handed = core.kind().hand_over(&*core.storage);
        let mut failure = handed.err().map(|error| Failure::new(Act::Resize, &error, said, 0));
        // Everybody's earlier writes are over then.
        let [act, errno, ..] = Failure::words(failure);
        let words = [said, act, errno];
        let all = match core.comm.size() {
            1 => vec![words],
            _ => weft_rma::gather(&core.comm, words).await?,
        };
        let earlier = |&[_, act, errno]: &[u64; 3]| Failure::from_words([act, errno, said, 0]);
        if let Some(failure) = all.iter().find_map(earlier) {
            return Err(failure.error(&core.name(), ""));
        }
        if all.iter().any(|other| other[0] != said) {
            let text = format!("argument size = {said}, but other ranks gave another one");
            return Err(Error::new(class::NOT_SAME, text));
        }
        if core.comm.rank() == 0 {
            let done = work(&*core.storage);
            failure = done.err().map(|error| Failure::new(Act::Resize, &error, said, 0));
        }
        if core.comm.size() > 1 {
            let told = weft_rma::gather(&core.comm, Failure::words(failure)).await?;
            failure = Failure::from_words(told[0]);
        }
        core.kind().look_anew(&*core.storage);
        failure.map_or(Ok(()), |failure| Err(failure.error(&core.name(), "")))
    }

    /// Makes the file so long: cuts off, or adds zeros. Errors: NOT_SAME, or the system's.
    pub async fn set_length(&self, length: u64) -> Result<(), Error> {
        self.is_writable()?;
        self.by_first(length, |storage| storage.set_length(length)).await
    }

    /// Takes the space for so many bytes from the beginning; a longer file stays as it is.
    pub async fn preallocate(&self, length: u64) -> Result<(), Error> {
        self.is_writable()?;
        self.by_first(length, |storage| match length {
            0 => Ok(()),
            _ => storage.allocate(length),
        })
        .await
    }

    fn is_writable(&self) -> Result<(), Error> {
        crate::operation::may(&self.core, crate::core::Direction::Write)
    }

    /// Brings what this rank wrote to the device, and what others wrote for it: what returns without an error is there. What other
    /// hosts have synced before is seen afterwards.
    pub async fn sync(&self) -> Result<(), Error> {
        let (storage, kind) = (self.core.storage.clone(), self.core.kind());
        let synced = self.core.pool.run(false, move || {
            storage.sync().map_err(|error| Failure::new(Act::Sync, &error, 0, 0))?;
            kind.look_anew(&*storage);
            Ok(())
        });
        self.heard(synced.await?).await
    }

    /// What several ranks did for each other, all hear of: where a file system has several hosts, a rank that wrote for another one is
    /// told by its own host only. Once this returns, all have come so far.
    pub(super) async fn heard(&self, own: Result<(), Failure>) -> Result<(), Error> {
        let core = &self.core;
        // The server of a file system may be one of the hosts, and see a local one: of several hosts all ask.
        let alone = core.leaders.len() == 1 && core.kind() == Kind::Local;
        if core.comm.size() == 1 || alone {
            return own.map_err(|failure| core.error(&failure));
        }
        let all = weft_rma::gather(&core.comm, Failure::words(own.err())).await?;
        own.map_err(|failure| core.error(&failure))?;
        let failed = all.into_iter().map(Failure::from_words).enumerate();
        match failed.filter_map(|(rank, failure)| Some((rank, failure?))).next() {
            None => Ok(()),
            Some((rank, failure)) => Err(failure.error(&core.name(), &format!("rank {rank} "))),
        }
    }

    /// Says whether accesses of several ranks are whole. Errors: NOT_SAME.
    pub async fn set_atomicity(&self, atomic: bool) -> Result<(), Error> {
        let core = &self.core;
        let fits = core.comm.engine().policy().fits();
        let said = [atomic, fits].map(u64::from);
        let all = weft_rma::gather(&core.comm, said).await?;
        if all.iter().any(|other| other[0] != said[0]) {
            return Err(Error::new(class::NOT_SAME, "argument flag: ranks gave different ones"));
        }
        if atomic && core.exclusion.get().is_none() {
            let all_fit = all.iter().all(|words| words[1] == 1);
            let made = if all_fit { Exclusion::new(&core.comm).await? } else { None };
            let _ = core.exclusion.set(made);
        }
        core.atomic.set(atomic);
        Ok(())
    }

    /// Gives the file a new view; both pointers are at its beginning afterwards. `displacement`: `None` for the shared pointer's
    /// place. Errors: ARG, NOT_SAME.
    pub async fn set_view(
        &self,
        displacement: Option<u64>,
        (etype, filetype): (&Type, &Type),
        representation: Representation,
    ) -> Result<(), Error> {
        let displacement = match displacement {
            Some(given) => given,
            None => self.byte_of(self.pointer.get().await?)?,
        };
        let made = self.make_view(displacement, (etype, filetype), representation);
        // What is wrong on one rank, all are told: else some would wait.
        let unit = made.as_ref().map_or(0, |given| given.view.unit());
        let plain = made.as_ref().is_ok_and(|given| given.view.is_plain());
        let said = [unit, u64::from(plain)];
        let all = match self.comm().size() {
            1 => vec![said],
            _ => weft_rma::gather(self.comm(), said).await?,
        };
        let given = made?;
        if let Some(other) = all.iter().position(|words| words[0] != unit) {
            let text = match all[other] {
                [0, _] => format!("rank {other} gave arguments that make no view"),
                [theirs, _] => format!(
                    "argument etype: it has {unit} bytes in the file, on rank {other} {theirs}"
                ),
            };
            return Err(Error::new(class::NOT_SAME, text));
        }
        self.core.gapless.set(all.iter().all(|words| words[1] == 1));
        *self.given.borrow_mut() = given;
        self.position.set(0);
        if self.comm().rank() == 0 {
            self.pointer.swap(0).await?;
        }
        if self.comm().size() > 1 {
            self.comm().barrier().await?;
        }
        Ok(())
    }

    fn make_view(
        &self,
        displacement: u64,
        (etype, filetype): (&Type, &Type),
        representation: Representation,
    ) -> Result<GivenView, Error> {
        let byte = &self.core.byte;
        let [unit, file] = match &representation.sizes {
            None => [etype.clone(), filetype.clone()],
            Some(sizes) => [in_file(etype, &**sizes, byte)?, in_file(filetype, &**sizes, byte)?],
        };
        let view = View::new(displacement, unit.size() as u64, &file, self.core.amode.writes())?;
        let (etype, filetype) = (etype.clone(), filetype.clone());
        Ok(GivenView { displacement, etype, filetype, representation, view: Rc::new(view) })
    }
}
