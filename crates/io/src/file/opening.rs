//! How a file is opened and closed (MPI 5.0, section 14.2).

use super::{File, GivenView, Representation};
use crate::amode::Amode;
use crate::core::Core;
use crate::cost::Costs;
use crate::doomed::Doomed;
use crate::failure::{Act, Failure, class};
use crate::found::Found;
use crate::hints::Hints;
use crate::pool::Pool;
use crate::shared_pointer::SharedPointer;
use crate::storage::Storage;
use crate::storage::company::{Mark, Others};
use crate::storage::disk::Disk;
use crate::view::View;
use std::cell::{Cell, OnceCell, RefCell};
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use weft_datatype::Basic;
use weft_fabric::{Fabric, FabricExt};
use weft_process::{Comm, Error, Info};

/// Opens a file of the system.
pub type Opener<'a> = &'a dyn Fn(&Path, &OpenOptions) -> io::Result<Arc<dyn Storage>>;

/// The usual one: a file of the machine's file systems.
pub fn disk(path: &Path, options: &OpenOptions) -> io::Result<Arc<dyn Storage>> {
    let file = options.open(path)?;
    // The standard library opens directories, too, which no read could serve.
    let about = file.metadata()?;
    if about.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::EISDIR));
    }
    Ok(Arc::new(Disk::known(file, &about)))
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
fn shown(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}

/// Takes a file away.
pub fn delete(name: &OsStr) -> Result<(), Error> {
    let removed = std::fs::remove_file(path_of(name));
    removed.map_err(|error| Failure::new(Act::Delete, &error, 0, 0).error(&shown(name), ""))
}

/// A file that this rank has opened.
struct OpenedFile {
    storage: Arc<dyn Storage>,
    /// The file can also be read.
    rereads: bool,
    /// Preferred size of a read or write on the first rank's host, in bytes; only the first rank knows it.
    block: u64,
    /// The first rank's mark, by which other openings notice this one.
    mark: Option<Mark>,
    /// The file that the first rank deletes when it is closed.
    doomed: Option<Doomed>,
}

type Opened = Result<OpenedFile, Failure>;

fn open_here(path: &Path, amode: Amode, first: bool, opener: Opener<'_>) -> Opened {
    let failed = |error: io::Error| Failure::new(Act::Open, &error, 0, 0);
    let (storage, rereads) = match opener(path, &amode.options(first, true)) {
        Ok(storage) => (storage, true),
        Err(_) => (opener(path, &amode.options(first, false)).map_err(failed)?, amode.reads()),
    };
    let marks = first && amode.writes() && !amode.is_unique();
    let mark = if marks { Mark::leave(&*storage) } else { None };
    let doomed = (first && amode.deletes()).then(|| Doomed::of(path));
    let doomed = doomed.transpose().map_err(failed)?;
    let block = if first { storage.block() } else { 0 };
    Ok(OpenedFile { storage, rereads, block, mark, doomed })
}

impl<F: Fabric> File<F> {
    /// Opens a file together. The first rank makes it, if it is to be made. Errors: NOT_SAME, or why some rank could not open it:
    /// then it is open nowhere.
    pub async fn open(
        comm: &Comm<F>,
        (name, amode, info): (&OsStr, Amode, &Info),
        pool: &Rc<Pool<F>>,
        opener: Opener<'_>,
    ) -> Result<Rc<File<F>>, Error> {
        let path = path_of(name);
        let me = comm.rank();
        let (mut opened, mut first) = (None, None);
        // Nobody waits for what nobody makes. Ranks of which some expect to wait learn in the first round that they disagree.
        let made = amode.creates() && comm.size() > 1;
        if me == 0 || !made {
            opened = Some(open_here(path, amode, me == 0, opener));
        }
        if comm.size() > 1 {
            first = Some(together(comm, name, amode, &opened).await?);
        }
        if made {
            if me > 0 {
                opened = Some(open_here(path, amode, false, opener));
            }
            together(comm, name, amode, &opened).await?;
        }
        let opened = opened.unwrap_or(Err(Failure { act: Act::Open, errno: 0, offset: 0, len: 0 }));
        let opened = opened.map_err(|failure| failure.error(&shown(name), ""))?;
        let first = first.unwrap_or_else(|| FirstRank::here(comm, &opened));
        let OpenedFile { storage, rereads, doomed, .. } = opened;
        storage.kept().company.learn(match first.mark {
            _ if amode.is_unique() => Others::Excluded,
            Some(mark) => Others::Marked(mark),
            None => Others::Unknown,
        });
        let byte = weft_rma::named(Basic::BYTE);
        let (pointer, own) = SharedPointer::new(comm).await?;
        let core = Rc::new(Core {
            leaders: leaders(&own),
            comm: own,
            storage,
            about: OnceCell::new(),
            block: first.block,
            path: path.to_owned(),
            doomed,
            amode,
            pool: pool.clone(),
            costs: first.costs,
            hints: Cell::new(Hints::default()),
            kept: RefCell::default(),
            rereads,
            atomic: Cell::new(false),
            exclusion: OnceCell::new(),
            gapless: Cell::new(true),
            byte: byte.clone(),
            found: [Found::of_reads_together(), Found::of_writes_together()],
            begun: Cell::new(0),
        });
        let view = Rc::new(View::new(0, 1, &byte, amode.writes())?);
        let given = GivenView {
            displacement: 0,
            etype: byte.clone(),
            filetype: byte,
            representation: Representation::native("native"),
            view,
        };
        let position = Cell::new(0);
        let file = Rc::new(File { core, pointer, given: RefCell::new(given), position });
        file.set_hints(info);
        let core = &file.core;
        core.kind().begin(&*core.storage, amode.writes() && rereads);
        if amode.appends() {
            let end = file.length()?;
            file.position.set(end);
            if me == 0 {
                file.pointer.swap(end as i64).await?;
            }
            if file.comm().size() > 1 {
                file.comm().barrier().await?;
            }
        }
        Ok(file)
    }

    /// Closes the file, once all ranks do. Errors: why it could not be deleted, if it was to be, or what a server says only now of
    /// earlier writes; it is closed then, too.
    pub async fn close(&self) -> Result<(), Error> {
        let core = &self.core;
        // Whoever opens it next finds what all have written.
        let handed = core.kind().hand_over(&*core.storage);
        let handed = handed.map_err(|error| Failure::new(Act::Sync, &error, 0, 0));
        let handed = self.heard(handed).await;
        let mut deleted = Ok(());
        // The end of the pointer waits for all ranks by itself.
        if core.amode.deletes() {
            if core.comm.size() > 1 {
                core.comm.barrier().await?;
            }
            deleted = core.doomed.as_ref().map_or(Ok(()), Doomed::remove);
        }
        if let Some(Some(exclusion)) = core.exclusion.get() {
            exclusion.free().await?;
        }
        self.pointer.free(&core.comm).await?;
        handed?;
        deleted.map_err(|error| core.error(&Failure::new(Act::Delete, &error, 0, 0)))
    }
}

/// The first rank's properties of an open, which all ranks learn.
struct FirstRank {
    /// Costs on the first rank's machine, by which all ranks choose.
    costs: Costs,
    /// Preferred size of a read or write on the first rank's host, in bytes.
    block: u64,
    /// Mark of the opening.
    mark: Option<Mark>,
}

impl FirstRank {
    /// Returns the properties at this rank.
    fn here<F: Fabric>(comm: &Comm<F>, opened: &OpenedFile) -> FirstRank {
        FirstRank { costs: own_costs(comm), block: opened.block, mark: opened.mark }
    }

    fn words(&self) -> [u64; FirstRank::WORDS] {
        let mut words = [0; FirstRank::WORDS];
        words[..2].copy_from_slice(&[self.block, Mark::word(self.mark)]);
        words[2..].copy_from_slice(&self.costs.words());
        words
    }

    fn from_words(words: &[u64; FirstRank::WORDS]) -> FirstRank {
        let costs = words.last_chunk().map_or_else(Costs::default, |&w| Costs::from_words(w));
        FirstRank { costs, block: words[0], mark: Mark::from_word(words[1]) }
    }

    const WORDS: usize = 2 + Costs::WORDS;
}

/// What things take on this rank's machine.
fn own_costs<F: Fabric>(comm: &Comm<F>) -> Costs {
    Costs::of(comm.engine().endpoint().fabric().copies().model())
}

/// Number of words that ranks exchange at an open: the mode, a failure's first words, and the first rank's properties.
const WORDS: usize = 3 + FirstRank::WORDS;

/// Gathers the results of an open from all ranks and returns the first rank's properties. Fails if some rank has not opened the
/// file, or gave another mode.
async fn together<F: Fabric>(
    comm: &Comm<F>,
    name: &OsStr,
    amode: Amode,
    opened: &Option<Opened>,
) -> Result<FirstRank, Error> {
    let failure = opened.as_ref().and_then(|opened| opened.as_ref().err().copied());
    let [act, errno, ..] = Failure::words(failure);
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
        return Err(failure.error(&shown(name), ""));
    }
    let failed = |&[_, act, errno, ..]: &[u64; WORDS]| Failure::from_words([act, errno, 0, 0]);
    match all.iter().enumerate().find_map(|(rank, words)| Some((rank, failed(words)?))) {
        Some((rank, failure)) => Err(failure.error(&shown(name), &format!("rank {rank} "))),
        None => Ok(FirstRank::from_words(all[0].last_chunk().unwrap_or(&[0; FirstRank::WORDS]))),
    }
}

/// The first rank of each node.
fn leaders<F: Fabric>(comm: &Comm<F>) -> Vec<usize> {
    let fabric = comm.engine().endpoint().fabric();
    let (mut nodes, mut leaders) = (Vec::new(), Vec::new());
    for (rank, &peer) in comm.group().ranks().iter().enumerate() {
        let node = fabric.node(peer as usize);
        if !nodes.contains(&node) {
            nodes.push(node);
            leaders.push(rank);
        }
    }
    leaders
}
