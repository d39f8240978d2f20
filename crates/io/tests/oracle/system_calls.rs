//! Number of system calls: a contiguous access is one call, and an open makes only the calls that it needs.

use crate::world;
use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::{Duration, Instant};
use weft_datatype::{Basic, Datatype, Type, Width};
use weft_fabric::Staging;
use weft_fabric_shm::Shm;
use weft_io::storage::disk::{Disk, FileSystemKind};
use weft_io::storage::{LockMode, OpenState, Storage};
use weft_io::{
    AccessData, AccessDirection, AccessSpec, Amode, File, IoPool, OpenArguments, Positioning,
    Representation, Synchronism,
};
use weft_process::{Buffer, Comm, Info, Single};

const RDWR_CREATE: i32 = 32 | 2;

/// Calls of one rank.
#[derive(Default)]
struct Calls {
    /// If this is not 0, calls on bytes before this byte wait until a call on bytes behind this byte has begun.
    border: AtomicU64,
    behind: AtomicU64,
    /// Threads that move bytes. A thread that waits for its turn has not called the system yet, but is counted.
    threads: Mutex<HashSet<ThreadId>>,
    reads: AtomicU64,
    writes: AtomicU64,
    locks: AtomicU64,
    others: AtomicU64,
}

impl Calls {
    /// Returns the numbers of reads, writes, locks and unlocks, and other calls, and resets them.
    fn take(&self) -> [u64; 4] {
        [&self.reads, &self.writes, &self.locks, &self.others]
            .map(|calls| calls.swap(0, Ordering::SeqCst))
    }
}

/// A file whose calls are counted.
struct CountingStorage {
    disk: Disk,
    calls: Arc<Calls>,
}

impl Calls {
    fn at(&self, offset: u64) {
        let border = self.border.load(Ordering::SeqCst);
        if offset >= border {
            one(&self.behind);
        }
        let until = Instant::now() + Duration::from_secs(60);
        while !self.others_came() {
            if Instant::now() >= until {
                eprintln!("no other call goes on meanwhile");
                std::process::abort();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns true if a call behind the border has begun, or if another thread has come to move bytes.
    fn others_came(&self) -> bool {
        let this = std::thread::current().id();
        self.behind.load(Ordering::SeqCst) > 0
            || self.threads.lock().unwrap().iter().any(|&thread| thread != this)
    }

    /// Makes calls on bytes before `border` wait until other calls have begun.
    fn wait_before(&self, border: u64) {
        self.behind.store(0, Ordering::SeqCst);
        self.threads.lock().unwrap().clear();
        self.border.store(border, Ordering::SeqCst);
    }
}

fn one(calls: &AtomicU64) {
    calls.fetch_add(1, Ordering::SeqCst);
}

impl Storage for CountingStorage {
    fn read_at(&self, offset: u64, to: &mut [u8]) -> io::Result<usize> {
        one(&self.calls.reads);
        self.calls.at(offset);
        self.disk.read_at(offset, to)
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> io::Result<usize> {
        one(&self.calls.writes);
        self.calls.at(offset);
        self.disk.write_at(offset, from)
    }

    fn length(&self) -> io::Result<u64> {
        one(&self.calls.others);
        self.disk.length()
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        one(&self.calls.others);
        self.disk.set_length(length)
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        one(&self.calls.others);
        self.disk.allocate(length)
    }

    fn sync(&self) -> io::Result<()> {
        one(&self.calls.others);
        self.disk.sync()
    }

    fn lock(&self, offset: u64, len: u64, mode: LockMode) -> io::Result<()> {
        one(&self.calls.locks);
        self.disk.lock(offset, len, mode)
    }

    fn unlock(&self, offset: u64, len: u64) -> io::Result<()> {
        one(&self.calls.locks);
        self.disk.unlock(offset, len)
    }

    fn is_locked(&self, offset: u64, len: u64) -> io::Result<bool> {
        one(&self.calls.others);
        self.disk.is_locked(offset, len)
    }

    fn drop_cached_pages(&self) {
        one(&self.calls.others);
        self.disk.drop_cached_pages();
    }

    fn kind(&self) -> FileSystemKind {
        one(&self.calls.others);
        self.disk.kind()
    }

    fn preferred_size(&self) -> u64 {
        one(&self.calls.others);
        self.disk.preferred_size()
    }

    fn state(&self) -> &OpenState {
        self.calls.threads.lock().unwrap().insert(std::thread::current().id());
        self.disk.state()
    }
}

/// An open file and its counts.
struct CountedFile {
    file: Rc<File<Shm>>,
    calls: Arc<Calls>,
    pool: Rc<IoPool<Shm>>,
}

async fn open(comm: &Rc<Comm<Shm>>, name: &Path) -> CountedFile {
    open_with(comm, name, &[]).await
}

async fn open_with(comm: &Rc<Comm<Shm>>, name: &Path, hints: &[(&str, &str)]) -> CountedFile {
    let mut info = Info::default();
    hints.iter().for_each(|(key, value)| info.set(key, value));
    let calls = Arc::new(Calls::default());
    let counted = calls.clone();
    let opener = move |path: &Path, options: &OpenOptions| {
        let disk = Disk::new(options.open(path)?);
        Ok(Arc::new(CountingStorage { disk, calls: counted.clone() }) as Arc<dyn Storage>)
    };
    let pool = IoPool::new(comm.engine());
    let amode = Amode::new(RDWR_CREATE).unwrap();
    let arguments = OpenArguments { name: name.as_os_str(), amode, info: &info };
    let file = File::open(comm, arguments, &pool, &opener).await.unwrap();
    CountedFile { file, calls, pool }
}

impl CountedFile {
    /// Runs an independent access by the slow path. Returns its calls.
    fn slow_path(&self, spec: AccessSpec, data: &Staging) -> [u64; 4] {
        let access_data = AccessData::from(Buffer::over(data.sge(), byte()));
        let access = self.file.independent(spec, &access_data).expect("not shared").unwrap();
        assert_eq!(self.file.run_blocking(&access, &Single).unwrap(), data.len() as u64);
        self.calls.take()
    }

    /// Runs an independent access by the fast path. Returns its calls.
    fn fast_path(&self, spec: AccessSpec, data: &Staging) -> [u64; 4] {
        let moved = self.file.fast_path(spec, data.sge(), &Single).expect("as usual").unwrap();
        assert_eq!(moved, data.len() as u64);
        self.calls.take()
    }
}

fn byte() -> Type {
    weft_rma::named(Basic::BYTE)
}

fn filled(comm: &Comm<Shm>, len: usize, with: u8) -> Staging {
    let memory = comm.engine().endpoint().staging().take(len);
    memory.sge().fill(&vec![with; len]);
    memory
}

fn holds(memory: &Staging, with: u8) -> bool {
    let mut found = vec![0; memory.len()];
    memory.sge().read(&mut found);
    found.iter().all(|&byte| byte == with)
}

const WRITE: [u64; 4] = [0, 1, 0, 0];
const READ: [u64; 4] = [1, 0, 0, 0];

#[test]
fn a_contiguous_access_is_one_call() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("file");
    world::run((2, false), async |comm| {
        let opened = open(&comm, &name).await;
        let asked = opened.calls.take();
        // Every rank asks for the file system's kind. The first rank also asks for the block, leaves a mark, and looks at the
        // gate.
        assert_eq!(asked, if comm.rank() == 0 { [0, 0, 1, 3] } else { [0, 0, 0, 1] });
        let rank = comm.rank() as i64;
        let (data, back) = (filled(&comm, 4096, 1 + rank as u8), filled(&comm, 4096, 0));
        for place in [Positioning::Explicit(8192 * rank), Positioning::Individual] {
            if place == Positioning::Individual {
                opened.file.seek(8192 * rank + 4096, weft_io::Whence::Set).unwrap();
            }
            assert_eq!(opened.fast_path(AccessSpec::write(place), &data), WRITE);
        }
        assert_eq!(opened.file.position(), 8192 * rank + 8192);
        for at in [8192 * rank, 8192 * rank + 4096] {
            back.sge().fill(&[0; 4096]);
            assert_eq!(opened.fast_path(AccessSpec::read(Positioning::Explicit(at)), &back), READ);
            assert!(holds(&back, 1 + rank as u8));
        }
        // The slow path makes no more calls.
        let at = Positioning::Explicit(8192 * rank);
        assert_eq!(opened.slow_path(AccessSpec::write(at), &data), WRITE);
        assert_eq!(opened.slow_path(AccessSpec::read(at), &back), READ);
        // Nonblocking calls move short data on the calling thread.
        let is_short = |bytes| opened.file.is_short(AccessDirection::Write, bytes);
        assert!(is_short(4096) && !is_short(1 << 30) && is_short(8));
        assert_eq!(opened.calls.take(), [0; 4], "no calls");
        assert_eq!(opened.pool.threads(), 0, "no thread was needed");
        opened.file.close().await.unwrap();
        assert_eq!(opened.calls.take(), [0; 4], "of a close");
    });
}

#[test]
fn uncommon_accesses_are_left_to_the_slow_path() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("file");
    world::run((2, false), async |comm| {
        let opened = open(&comm, &name).await;
        let data = filled(&comm, 6, 1);
        let not_usual =
            |place| opened.file.fast_path(AccessSpec::write(place), data.sge(), &Single);
        assert!(
            not_usual(Positioning::Shared).is_none()
                && not_usual(Positioning::Explicit(-1)).is_none()
        );
        let four = Datatype::vector(Width::Int, 1, 4, 4, &byte()).unwrap();
        four.commit();
        let native = || Representation::native("native");
        opened.file.set_view(Some(0), &four, &four, native()).await.unwrap();
        assert!(not_usual(Positioning::Explicit(0)).is_none(), "no whole elements");
        opened.file.set_view(Some(0), &byte(), &byte(), native()).await.unwrap();
        opened.file.set_atomicity(true).await.unwrap();
        assert!(not_usual(Positioning::Explicit(0)).is_none(), "atomic");
        opened.file.set_atomicity(false).await.unwrap();
        // Gaps of one rank matter to all ranks.
        let two = Datatype::resized(Width::Int, &byte(), 0, 2).unwrap();
        let filetype = if comm.rank() == 0 { two } else { byte() };
        opened.file.set_view(Some(0), &byte(), &filetype, native()).await.unwrap();
        assert!(not_usual(Positioning::Explicit(0)).is_none(), "gaps");
        assert_eq!(opened.calls.take()[..2], [0; 2], "nothing was moved");
        opened.file.close().await.unwrap();
    });
}

#[test]
fn in_atomic_mode_ranks_of_one_node_need_no_lock_of_the_file() {
    // Ranks that share a processor use the file's own locks.
    for fits in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("file");
        world::run((2, fits), async |comm| atomic(&open(&comm, &name).await, &comm, fits).await);
    }
}

async fn atomic(opened: &CountedFile, comm: &Rc<Comm<Shm>>, fits: bool) {
    let (data, back) = (filled(comm, 4096, 7), filled(comm, 4096, 0));
    assert!(!opened.file.uses_atomic_lock());
    opened.file.set_atomicity(true).await.unwrap();
    assert_eq!(opened.file.uses_atomic_lock(), fits);
    opened.calls.take();
    let locks = if fits { 0 } else { 2 };
    for (direction, memory, [reads, writes, ..]) in
        [(AccessDirection::Write, &data, WRITE), (AccessDirection::Read, &back, READ)]
    {
        let data = AccessData::from(Buffer::over(memory.sge(), byte()));
        let spec = AccessSpec { direction, positioning: Positioning::Explicit(0) };
        let access = opened.file.independent(spec, &data).expect("not shared").unwrap();
        let moved = match fits {
            true => opened.file.run_with_atomic_lock(&access).await,
            false => opened.file.run_blocking(&access, &Single),
        };
        assert_eq!(moved.unwrap(), 4096);
        assert_eq!(opened.calls.take(), [reads, writes, locks, 0], "{direction:?}");
    }
    assert!(holds(&back, 7));
    assert_eq!(opened.pool.threads(), 0, "no thread was needed");
    opened.file.set_atomicity(false).await.unwrap();
    assert!(!opened.file.uses_atomic_lock());
    opened.file.close().await.unwrap();
}

/// Ranks take turns with pieces of `piece` bytes.
async fn take_turns(opened: &CountedFile, comm: &Comm<Shm>, piece: usize) {
    let ranks = comm.size() as i64;
    let places = [comm.rank() as i64 * piece as i64];
    let ty = Datatype::indexed(Width::Large, &[piece as i64], &places, &byte()).unwrap();
    let ty = Datatype::resized(Width::Large, &ty, 0, ranks * piece as i64).unwrap();
    ty.commit();
    let native = Representation::native("native");
    opened.file.set_view(Some(0), &byte(), &ty, native).await.unwrap();
}

#[test]
fn gaps_are_written_back_while_no_other_opening_is_there() {
    const PIECES: usize = 64;
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("file");
    world::run((2, false), async |comm| {
        let opened = open_with(&comm, &name, &[("romio_ds_write", "enable")]).await;
        // The file is as long as both ranks' ranges: a read that meets the end of the file is followed by a second read.
        if comm.rank() == 0 {
            let bytes = filled(&comm, 2 * 8 * PIECES, 0);
            opened.slow_path(AccessSpec::write(Positioning::Explicit(0)), &bytes);
        }
        comm.barrier().await.unwrap();
        take_turns(&opened, &comm, 8).await;
        let data = filled(&comm, 8 * PIECES, 1 + comm.rank() as u8);
        let spec = AccessSpec::write(Positioning::Explicit(0));
        opened.calls.take();
        for _ in 0..2 {
            // The gate and the range are locked. Other marks are looked for on both sides of this opening's mark.
            assert_eq!(opened.slow_path(spec, &data), [1, 1, 4, 2]);
            comm.barrier().await.unwrap();
            let another = open(&comm, &name).await;
            // After another opening is seen, the gate is not locked again. Then there is only a shared lock of the range.
            for gate in [2, 0] {
                let [reads, writes, locks, looks] = opened.slow_path(spec, &data);
                assert_eq!((reads, writes, locks), (0, PIECES as u64, gate + 2));
                assert!([1, 2].contains(&looks), "{looks}: its mark lies on either side");
            }
            comm.barrier().await.unwrap();
            another.file.close().await.unwrap();
            drop(another);
            comm.barrier().await.unwrap();
            // The first look finds no mark, the gate is locked, and the second look finds no mark either.
            assert_eq!(opened.slow_path(spec, &data), [1, 1, 4, 4]);
        }
        opened.file.close().await.unwrap();
    });
}

async fn collective(opened: &CountedFile, spec: AccessSpec, data: &Staging) {
    let access_data = AccessData::from(Buffer::over(data.sge(), byte()));
    let access = opened.file.collective(spec, Synchronism::Blocking, access_data);
    let moved = access.unwrap().await.unwrap();
    assert_eq!(moved, data.len() as u64);
}

/// Bytes of a rank: the data of both ranks are four windows of one aggregator.
const SHARE: usize = 2 << 20;
const WINDOW: (&str, &str) = ("cb_buffer_size", "1048576");
const TWO_PHASE_HINTS: [(&str, &str); 3] =
    [("romio_cb_read", "enable"), ("romio_cb_write", "enable"), WINDOW];

#[test]
fn in_two_phases_a_window_is_one_call_and_overlaps_the_next_exchange() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("file");
    world::run((2, false), async |comm| {
        let opened = open_with(&comm, &name, &TWO_PHASE_HINTS).await;
        take_turns(&opened, &comm, 4096).await;
        let (data, back) = (filled(&comm, SHARE, 1 + comm.rank() as u8), filled(&comm, SHARE, 0));
        opened.calls.take();
        let aggregator = comm.rank() == 0;
        for (direction, memory) in [(AccessDirection::Write, &data), (AccessDirection::Read, &back)]
        {
            // The first window is not read or written before the next one has been exchanged. Writes wait for each other's
            // locks.
            opened.calls.wait_before(1 << 20);
            let spec = AccessSpec { direction, positioning: Positioning::Explicit(0) };
            collective(&opened, spec, memory).await;
            let [reads, writes, locks, _] = opened.calls.take();
            let (found, windows) = ([reads, writes], if aggregator { 4 } else { 0 });
            match direction {
                AccessDirection::Read => assert_eq!((found, locks), ([windows, 0], 0)),
                // A shared lock prevents that other ranks write back gaps around a window.
                AccessDirection::Write => assert_eq!((found, locks), ([0, windows], 2 * windows)),
            }
        }
        assert!(holds(&back, 1 + comm.rank() as u8));
        opened.file.close().await.unwrap();
    });
}

#[test]
fn measuring_ranks_choose_the_same_method() {
    const PIECE: usize = 4096;
    const PIECES: usize = 64;
    for fits in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("file");
        let taken = Mutex::new([Vec::new(), Vec::new()]);
        world::run((2, fits), async |comm| {
            let opened = open(&comm, &name).await;
            take_turns(&opened, &comm, PIECE).await;
            opened.calls.take();
            for access in 0..40 {
                let with = 1 + access + 50 * comm.rank() as u8;
                let (data, back) =
                    (filled(&comm, PIECES * PIECE, with), filled(&comm, PIECES * PIECE, 0));
                collective(&opened, AccessSpec::write(Positioning::Explicit(0)), &data).await;
                let [_, writes, ..] = opened.calls.take();
                taken.lock().unwrap()[comm.rank()].push(writes as usize);
                collective(&opened, AccessSpec::read(Positioning::Explicit(0)), &back).await;
                assert!(holds(&back, with), "access {access}");
                opened.calls.take();
            }
            opened.file.close().await.unwrap();
        });
        let [first, second] = taken.into_inner().unwrap();
        // In two phases the first rank writes everything by one call.
        let methods: Vec<_> = first.into_iter().zip(second).collect();
        let [two_phase, independent] = [(1, 0), (PIECES, PIECES)];
        assert!(
            methods.iter().all(|method| [two_phase, independent].contains(method)),
            "not alike: {methods:?}"
        );
        // Ranks that measure may try the other method at any time.
        assert!(
            fits || methods.iter().all(|&method| method == independent),
            "by the model: {methods:?}"
        );
    }
}
