//! Opening and closing of files (MPI 5.0, section 14.2).

use super::{File, Representation, ViewArguments};
use crate::amode::{Amode, OpenRole};
use crate::atomic_mode::AtomicMode;
use crate::collective_access_state::CollectiveAccessState;
use crate::delete_on_close::DeleteOnClose;
use crate::failure::{FileAction, FileFailure, class};
use crate::file_costs::FileCosts;
use crate::hints::Hints;
use crate::open_file::OpenFile;
use crate::shared_pointer::SharedPointer;
use crate::storage::Storage;
use crate::storage::disk::Disk;
use crate::storage::other_openings::{OpeningKnowledge, OpeningMark};
use crate::storage::timed::TimedStorage;
use crate::thread_pool::IoPool;
use crate::view::FileView;
use std::cell::{Cell, OnceCell, RefCell};
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use weft_datatype::Basic;
use weft_fabric::{Fabric, FileClock};
use weft_process::{Comm, Error, Info};

/// Function that opens a file by its path.
pub type Opener<'a> = &'a dyn Fn(&Path, &OpenOptions) -> io::Result<Arc<dyn Storage>>;

/// Opens a file in a file system of this machine.
pub fn disk(path: &Path, options: &OpenOptions) -> io::Result<Arc<dyn Storage>> {
    let file = options.open(path)?;
    // The standard library also opens directories, which cannot be read.
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::EISDIR));
    }
    Ok(Arc::new(Disk::with_metadata(file, &metadata)))
}

/// Returns a name without the prefix by which ROMIO chooses a file system. A name may contain any bytes.
fn path_of(name: &OsStr) -> &Path {
    const PREFIXES: [&str; 7] = ["ufs", "nfs", "lustre", "gpfs", "pvfs2", "xfs", "testfs"];
    let bytes = name.as_bytes();
    let colon = bytes.iter().position(|&byte| byte == b':');
    match colon.map(|at| (&bytes[..at], &bytes[at + 1..])) {
        Some((prefix, rest)) if PREFIXES.iter().any(|known| known.as_bytes() == prefix) => {
            Path::new(OsStr::from_bytes(rest))
        }
        _ => Path::new(name),
    }
}

/// Returns a name for an error's text.
fn display_name(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}

/// Deletes a file.
pub fn delete(name: &OsStr) -> Result<(), Error> {
    let removed = std::fs::remove_file(path_of(name));
    removed.map_err(|error| {
        FileFailure::new(FileAction::Delete, &error, 0, 0).error(&display_name(name), "")
    })
}

/// A file that this rank has opened.
struct LocalOpen {
    storage: Arc<dyn Storage>,
    /// True if the file can be read.
    can_read: bool,
    /// Preferred size of a read or write on the first rank's host, in bytes; only the first rank knows it.
    preferred_size: u64,
    /// The first rank's mark, by which other openings notice this opening.
    mark: Option<OpeningMark>,
    /// The file, if the first rank deletes it when it is closed.
    delete_on_close: Option<DeleteOnClose>,
}

type OpenOutcome = Result<LocalOpen, FileFailure>;

/// Opens the file on this rank. A file to be written is also opened for reading where the system permits it, because data sieving
/// reads before it writes.
fn open_locally(
    path: &Path,
    amode: Amode,
    role: OpenRole,
    opener: Opener<'_>,
    clock: Option<Arc<dyn FileClock>>,
) -> OpenOutcome {
    let failed = |error: io::Error| FileFailure::new(FileAction::Open, &error, 0, 0);
    let (storage, can_read) = match opener(path, amode.options(role).read(true)) {
        Ok(storage) => (storage, true),
        Err(_) => (opener(path, &amode.options(role)).map_err(failed)?, amode.reads()),
    };
    let storage = match clock {
        Some(clock) => Arc::new(TimedStorage::new(storage, clock)),
        None => storage,
    };
    let first = role == OpenRole::First;
    let marks = first && amode.writes() && !amode.is_unique();
    let mark = if marks { OpeningMark::leave(&*storage) } else { None };
    let delete_on_close = (first && amode.deletes()).then(|| DeleteOnClose::of(path));
    let delete_on_close = delete_on_close.transpose().map_err(failed)?;
    let preferred_size = if first { storage.preferred_size() } else { 0 };
    Ok(LocalOpen { storage, can_read, preferred_size, mark, delete_on_close })
}

/// Arguments of an open.
#[derive(Clone, Copy)]
pub struct OpenArguments<'a> {
    /// Name of the file.
    pub name: &'a OsStr,
    /// Access mode.
    pub amode: Amode,
    /// Hints.
    pub info: &'a Info,
}

impl<F: Fabric> File<F> {
    /// Opens a file collectively. The first rank creates the file if necessary. Errors: NOT_SAME, or the failure of any rank. After
    /// an error, no rank has the file open.
    pub async fn open(
        comm: &Comm<F>,
        arguments: OpenArguments<'_>,
        pool: &Rc<IoPool<F>>,
        opener: Opener<'_>,
    ) -> Result<Rc<File<F>>, Error> {
        let OpenArguments { name, amode, info } = arguments;
        let path = path_of(name);
        let me = comm.rank();
        let role = if me == 0 { OpenRole::First } else { OpenRole::Other };
        let simulated = comm.engine().endpoint().fabric().facets().simulated;
        let clock = || simulated.and_then(|simulated| simulated.file_clock());
        let (mut opened, mut first) = (None, None);
        // If the file may have to be created, the other ranks wait until the first rank has opened it. Ranks with different modes
        // notice the difference in the first exchange.
        let creates = amode.creates() && comm.size() > 1;
        if me == 0 || !creates {
            opened = Some(open_locally(path, amode, role, opener, clock()));
        }
        if comm.size() > 1 {
            first = Some(share_results(comm, name, amode, &opened).await?);
        }
        if creates {
            if me > 0 {
                opened = Some(open_locally(path, amode, role, opener, clock()));
            }
            share_results(comm, name, amode, &opened).await?;
        }
        let unknown = FileFailure { act: FileAction::Open, errno: 0, offset: 0, len: 0 };
        let opened = opened.unwrap_or(Err(unknown));
        let opened = opened.map_err(|failure| failure.error(&display_name(name), ""))?;
        let first = first.unwrap_or_else(|| FirstRank::here(comm, &opened));
        let file = File::new(comm, arguments, pool, opened, first).await?;
        file.set_hints(info);
        let open = &file.open;
        match amode.writes() && open.can_sieve_writes {
            true => open.kind().begin_writing(&*open.storage),
            false => open.kind().begin_reading(&*open.storage),
        }
        if amode.appends() {
            let end = file.length()?;
            file.position.set(end);
            if me == 0 {
                file.pointer.swap(end as i64).await?;
            }
            open.barrier().await?;
        }
        Ok(file)
    }

    /// Creates the state of a file that all ranks have opened.
    async fn new(
        comm: &Comm<F>,
        OpenArguments { name, amode, .. }: OpenArguments<'_>,
        pool: &Rc<IoPool<F>>,
        opened: LocalOpen,
        first: FirstRank,
    ) -> Result<Rc<File<F>>, Error> {
        let LocalOpen { storage, can_read, delete_on_close, .. } = opened;
        storage.state().other_openings.set(match first.mark {
            _ if amode.is_unique() => OpeningKnowledge::Unique,
            Some(mark) => OpeningKnowledge::Marked(mark),
            None => OpeningKnowledge::Unknown,
        });
        let byte = weft_rma::named(Basic::BYTE);
        let (pointer, own) = SharedPointer::new(comm).await?;
        let open = Rc::new(OpenFile {
            collective: CollectiveAccessState::new(&own),
            comm: own,
            storage,
            kind_cache: OnceCell::new(),
            preferred_size: first.preferred_size,
            path: path_of(name).to_owned(),
            delete_on_close,
            amode,
            pool: pool.clone(),
            costs: first.costs,
            hints: Cell::new(Hints::default()),
            unused_hints: RefCell::default(),
            can_sieve_writes: can_read,
            atomic: AtomicMode::new(),
            contiguous_views: Cell::new(true),
            byte: byte.clone(),
        });
        let view = ViewArguments {
            displacement: 0,
            etype: byte.clone(),
            stream: Rc::new(FileView::new(0, 1, &byte, amode.overlaps())?),
            filetype: byte,
            representation: Representation::native("native"),
        };
        Ok(Rc::new(File { open, pointer, view: RefCell::new(view), position: Cell::new(0) }))
    }

    /// Closes the file, once all ranks have called this function. Errors: a failed deletion, or a failure of earlier writes that a
    /// server reports late. The file is closed even after an error.
    pub async fn close(&self) -> Result<(), Error> {
        let open = &self.open;
        // After this, the next opening sees the data of all ranks.
        let published = open.kind().publish(&*open.storage);
        let published = published.map_err(|error| FileFailure::new(FileAction::Sync, &error, 0, 0));
        let published = self.share_failure(published).await;
        let mut deleted = Ok(());
        if open.amode.deletes() {
            open.barrier().await?;
            deleted = open.delete_on_close.as_ref().map_or(Ok(()), DeleteOnClose::remove);
        }
        open.atomic.free().await?;
        // Waits for all ranks.
        self.pointer.free(&open.comm).await?;
        published?;
        deleted.map_err(|error| open.error(&FileFailure::new(FileAction::Delete, &error, 0, 0)))
    }
}

/// Properties of an opening on the first rank, which all other ranks receive.
struct FirstRank {
    /// Costs on the first rank's machine, by which all ranks choose a method.
    costs: FileCosts,
    /// Preferred size of a read or write on the first rank's host, in bytes.
    preferred_size: u64,
    /// Mark of the opening.
    mark: Option<OpeningMark>,
}

impl FirstRank {
    /// Returns the properties of the opening on this rank.
    fn here<F: Fabric>(comm: &Comm<F>, opened: &LocalOpen) -> FirstRank {
        FirstRank {
            costs: own_costs(comm),
            preferred_size: opened.preferred_size,
            mark: opened.mark,
        }
    }

    fn words(&self) -> [u64; FirstRank::WORDS] {
        let mut words = [0; FirstRank::WORDS];
        words[..2].copy_from_slice(&[self.preferred_size, OpeningMark::word(self.mark)]);
        words[2..].copy_from_slice(&self.costs.words());
        words
    }

    fn from_words(words: &[u64; FirstRank::WORDS]) -> FirstRank {
        let costs =
            words.last_chunk().map_or_else(FileCosts::default, |&w| FileCosts::from_words(w));
        FirstRank { costs, preferred_size: words[0], mark: OpeningMark::from_word(words[1]) }
    }

    const WORDS: usize = 2 + FileCosts::WORDS;
}

/// Returns the costs on this rank's machine.
fn own_costs<F: Fabric>(comm: &Comm<F>) -> FileCosts {
    FileCosts::of(comm.engine().endpoint().fabric().copies().model())
}

/// Number of words that ranks exchange at an open: the mode, a failure's first words, and the first rank's properties.
const WORDS: usize = 3 + FirstRank::WORDS;

/// Gathers the results of an open from all ranks and returns the first rank's properties. Fails if some rank has not opened the
/// file, or gave another mode.
async fn share_results<F: Fabric>(
    comm: &Comm<F>,
    name: &OsStr,
    amode: Amode,
    opened: &Option<OpenOutcome>,
) -> Result<FirstRank, Error> {
    let failure = opened.as_ref().and_then(|opened| opened.as_ref().err().copied());
    let [act, errno, ..] = FileFailure::words(failure);
    let mut words = [0; WORDS];
    words[..3].copy_from_slice(&[amode.bits() as u64, act, errno]);
    if let Some(Ok(opened)) = opened {
        words[3..].copy_from_slice(&FirstRank::here(comm, opened).words());
    }
    let all = weft_rma::gather(comm, words).await?;
    if let Some(other) = all.iter().position(|words| words[0] != amode.bits() as u64) {
        let text = format!(
            "argument amode = {:#x}, but on rank {other} it is {:#x}: all ranks give the same",
            amode.bits(),
            all[other][0]
        );
        return Err(Error::new(class::NOT_SAME, text));
    }
    if let Some(failure) = failure {
        return Err(failure.error(&display_name(name), ""));
    }
    let failed = |&[_, act, errno, ..]: &[u64; WORDS]| FileFailure::from_words([act, errno, 0, 0]);
    match all.iter().enumerate().find_map(|(rank, words)| Some((rank, failed(words)?))) {
        Some((rank, failure)) => Err(failure.error(&display_name(name), &format!("rank {rank} "))),
        None => Ok(FirstRank::from_words(all[0].last_chunk().unwrap_or(&[0; FirstRank::WORDS]))),
    }
}
