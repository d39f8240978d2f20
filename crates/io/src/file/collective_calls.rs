//! Collective calls that change the whole file: length, synchronisation, atomic mode and view (MPI 5.0, sections 14.2 to 14.6).

use super::{File, Representation, ViewArguments};
use crate::access_direction::AccessDirection;
use crate::atomic_mode::LockPlace;
use crate::failure::{FileAction, FileFailure, class};
use crate::file_access::check_direction;
use crate::representation::in_file;
use crate::storage::Storage;
use crate::storage::disk::FileSystemKind;
use crate::view::FileView;
use std::io;
use std::rc::Rc;
use weft_datatype::Type;
use weft_fabric::Fabric;
use weft_process::Error;

impl<F: Fabric> File<F> {
    /// Runs `work` on the first rank, once all ranks have called this function. All ranks return the result of `work`. Errors:
    /// NOT_SAME if ranks gave different lengths.
    async fn run_on_first_rank(
        &self,
        length: u64,
        work: impl FnOnce(&dyn Storage) -> io::Result<()>,
    ) -> Result<(), Error> {
        let open = &self.open;
        let resize = |error: io::Error| FileFailure::new(FileAction::Resize, &error, length, 0);
        let published = open.kind().publish(&*open.storage);
        // After this exchange the earlier writes of all ranks are complete.
        let [act, errno, ..] = FileFailure::words(published.err().map(resize));
        let own = [length, act, errno];
        let all = open.gather(own).await?;
        let failed = |&[_, act, errno]: &[u64; 3]| FileFailure::from_words([act, errno, length, 0]);
        if let Some(failure) = all.iter().find_map(failed) {
            return Err(open.error(&failure));
        }
        if all.iter().any(|other| other[0] != length) {
            let text = format!("argument size = {length}, but other ranks gave another one");
            return Err(Error::new(class::NOT_SAME, text));
        }
        let failure = match open.comm.rank() {
            0 => work(&*open.storage).err().map(resize),
            _ => None,
        };
        let results = open.gather(FileFailure::words(failure)).await?;
        open.kind().revalidate(&*open.storage);
        FileFailure::from_words(results[0]).map_or(Ok(()), |failure| Err(open.error(&failure)))
    }

    /// Sets the length of the file: truncates it, or adds zeros. Errors: NOT_SAME, or the system's.
    pub async fn set_length(&self, length: u64) -> Result<(), Error> {
        check_direction(&self.open, AccessDirection::Write)?;
        self.run_on_first_rank(length, |storage| storage.set_length(length)).await
    }

    /// Allocates space for the first `length` bytes. A longer file keeps its length.
    pub async fn preallocate(&self, length: u64) -> Result<(), Error> {
        check_direction(&self.open, AccessDirection::Write)?;
        self.run_on_first_rank(length, |storage| match length {
            0 => Ok(()),
            _ => storage.allocate(length),
        })
        .await
    }

    /// Brings this rank's data to the device, including data that aggregators wrote for this rank. Afterwards this rank sees all
    /// data that other hosts have synchronised.
    pub async fn sync(&self) -> Result<(), Error> {
        let (storage, kind) = (self.open.storage.clone(), self.open.kind());
        let synced = self.open.pool.run(move || {
            storage.sync().map_err(|error| FileFailure::new(FileAction::Sync, &error, 0, 0))?;
            kind.revalidate(&*storage);
            Ok(())
        });
        self.share_failure(synced.await?).await
    }

    /// Reports a failure of any rank on all ranks. If several hosts use the file system, only the host that wrote data learns that
    /// these data were lost. This host may have written the data for ranks on other hosts. This function returns once all ranks
    /// have called it.
    pub(super) async fn share_failure(&self, own: Result<(), FileFailure>) -> Result<(), Error> {
        let open = &self.open;
        // On the host of a file server, the file system seems to be local. Therefore ranks always exchange failures if there are
        // several hosts.
        let local = !open.collective.spans_hosts() && open.kind() == FileSystemKind::Local;
        if local || open.comm.size() == 1 {
            return own.map_err(|failure| open.error(&failure));
        }
        let all = open.gather(FileFailure::words(own.err())).await?;
        own.map_err(|failure| open.error(&failure))?;
        let mut failed = all.into_iter().map(FileFailure::from_words).enumerate();
        match failed.find_map(|(rank, failure)| Some((rank, failure?))) {
            None => Ok(()),
            Some((rank, failure)) => Err(failure.error(&open.name(), &format!("rank {rank} "))),
        }
    }

    /// Enables or disables atomic mode. Errors: NOT_SAME.
    pub async fn set_atomicity(&self, atomic: bool) -> Result<(), Error> {
        let open = &self.open;
        let own = [atomic, open.comm.engine().policy().fits()].map(u64::from);
        let all = open.gather(own).await?;
        if all.iter().any(|other| other[0] != own[0]) {
            return Err(Error::new(class::NOT_SAME, "argument flag: ranks gave different values"));
        }
        if !atomic {
            open.atomic.disable();
            return Ok(());
        }
        let have_processors = all.iter().all(|words| words[1] == 1);
        let place = if have_processors { LockPlace::Memory } else { LockPlace::File };
        open.atomic.enable(&open.comm, place).await
    }

    /// Sets a new view, and moves both pointers to the beginning of the view. Displacement `None` stands for the shared pointer's
    /// position. Errors: ARG, NOT_SAME.
    pub async fn set_view(
        &self,
        displacement: Option<u64>,
        etype: &Type,
        filetype: &Type,
        representation: Representation,
    ) -> Result<(), Error> {
        let displacement = match displacement {
            Some(displacement) => displacement,
            None => self.byte_of(self.pointer.get().await?)?,
        };
        let made = self.make_view(displacement, etype, filetype, representation);
        // A rank with wrong arguments also takes part in the exchange, because all other ranks wait for its part.
        let etype_size = made.as_ref().map_or(0, |view| view.stream.etype_size());
        let contiguous = made.as_ref().is_ok_and(|view| view.stream.is_contiguous());
        let own = [etype_size, u64::from(contiguous)];
        let all = self.open.gather(own).await?;
        let view = made?;
        if let Some(other) = all.iter().position(|words| words[0] != etype_size) {
            let text = match all[other] {
                [0, _] => format!("rank {other} gave arguments that make no view"),
                [theirs, _] => format!(
                    "argument etype: it has {etype_size} bytes in the file, on rank {other} {theirs}"
                ),
            };
            return Err(Error::new(class::NOT_SAME, text));
        }
        self.open.contiguous_views.set(all.iter().all(|words| words[1] == 1));
        *self.view.borrow_mut() = view;
        self.position.set(0);
        if self.comm().rank() == 0 {
            self.pointer.swap(0).await?;
        }
        self.open.barrier().await
    }

    fn make_view(
        &self,
        displacement: u64,
        etype: &Type,
        filetype: &Type,
        representation: Representation,
    ) -> Result<ViewArguments, Error> {
        let byte = &self.open.byte;
        let [etype_in_file, filetype_in_file] = match &representation.sizes {
            None => [etype.clone(), filetype.clone()],
            Some(sizes) => [in_file(etype, &**sizes, byte)?, in_file(filetype, &**sizes, byte)?],
        };
        let etype_size = etype_in_file.size() as u64;
        let overlaps = self.open.amode.overlaps();
        let stream = Rc::new(FileView::new(displacement, etype_size, &filetype_in_file, overlaps)?);
        let (etype, filetype) = (etype.clone(), filetype.clone());
        Ok(ViewArguments { displacement, etype, filetype, representation, stream })
    }
}
