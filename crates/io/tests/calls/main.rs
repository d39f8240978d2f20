//! How often the system is called: an access in one piece is one call, and what opens a file asks nothing that nobody needs.
#![cfg(not(miri))]

#[path = "../oracle/world.rs"]
mod world;

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
use weft_io::storage::disk::{Disk, Kind};
use weft_io::storage::{Kept, Storage};
use weft_io::{Amode, Direction, File, Place, Pool, Representation};
use weft_process::{Buffer, Comm, Info, Single};

const RDWR_CREATE: i32 = 32 | 2;

/// Calls of one rank.
#[derive(Default)]
struct Calls {
    /// If it is not 0: calls on bytes before this one wait until one on bytes behind it has begun, or has had its time.
    border: AtomicU64,
    behind: AtomicU64,
    /// Threads that came to move bytes. A thread that waits for its turn has not called yet, but it has come with bytes behind.
    threads: Mutex<HashSet<ThreadId>>,
    reads: AtomicU64,
    writes: AtomicU64,
    locks: AtomicU64,
    others: AtomicU64,
}

impl Calls {
    /// Reads, writes, locks with their ends, and all others; they are counted anew from here on.
    fn take(&self) -> [u64; 4] {
        [&self.reads, &self.writes, &self.locks, &self.others]
            .map(|calls| calls.swap(0, Ordering::SeqCst))
    }
}

/// A file whose calls are counted.
struct Counted {
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
                eprintln!("nobody goes on meanwhile");
                std::process::abort();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// True if a call behind the border has begun, or another thread came to move bytes.
    fn others_came(&self) -> bool {
        let this = std::thread::current().id();
        self.behind.load(Ordering::SeqCst) > 0
            || self.threads.lock().unwrap().iter().any(|&thread| thread != this)
    }

    /// Lets calls on bytes before `border` wait, from here on, until others came.
    fn wait_before(&self, border: u64) {
        self.behind.store(0, Ordering::SeqCst);
        self.threads.lock().unwrap().clear();
        self.border.store(border, Ordering::SeqCst);
    }
}

fn one(calls: &AtomicU64) {
    calls.fetch_add(1, Ordering::SeqCst);
}

impl Storage for Counted {
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

    fn lock(&self, offset: u64, len: u64, alone: bool) -> io::Result<()> {
        one(&self.calls.locks);
        self.disk.lock(offset, len, alone)
    }

    fn unlock(&self, offset: u64, len: u64) -> io::Result<()> {
        one(&self.calls.locks);
        self.disk.unlock(offset, len)
    }

    fn is_locked(&self, offset: u64, len: u64) -> io::Result<bool> {
        one(&self.calls.others);
        self.disk.is_locked(offset, len)
    }

    fn forget(&self) {
        one(&self.calls.others);
        self.disk.forget();
    }

    fn kind(&self) -> Kind {
        one(&self.calls.others);
        self.disk.kind()
    }

    fn block(&self) -> u64 {
        one(&self.calls.others);
        self.disk.block()
    }

    fn kept(&self) -> &Kept {
        self.calls.threads.lock().unwrap().insert(std::thread::current().id());
        self.disk.kept()
    }
}

/// A file that is open, with what is counted of it.
struct Opened {
    file: Rc<File<Shm>>,
    calls: Arc<Calls>,
    pool: Rc<Pool<Shm>>,
}

async fn open(comm: &Rc<Comm<Shm>>, name: &Path) -> Opened {
    open_with(comm, name, &[]).await
}

async fn open_with(comm: &Rc<Comm<Shm>>, name: &Path, hints: &[(&str, &str)]) -> Opened {
    let mut info = Info::default();
    hints.iter().for_each(|(key, value)| info.set(key, value));
    let calls = Arc::new(Calls::default());
    let counted = calls.clone();
    let opener = move |path: &Path, options: &OpenOptions| {
        let disk = Disk::new(options.open(path)?);
        Ok(Arc::new(Counted { disk, calls: counted.clone() }) as Arc<dyn Storage>)
    };
    let pool = Pool::new(comm.engine());
    let (name, amode) = (name.as_os_str(), Amode::new(RDWR_CREATE).unwrap());
    let file = File::open(comm, (name, amode, &info), &pool, &opener).await.unwrap();
    Opened { file, calls, pool }
}

impl Opened {
    /// An access of this rank alone; the calls that it took.
    fn alone(&self, way: (Direction, Place), data: &Staging) -> [u64; 4] {
        let buffer = Buffer::over(data.sge(), byte());
        let operation = self.file.alone(way, &buffer, &None).expect("not shared").unwrap();
        assert_eq!(self.file.run_here(&operation, &Single).unwrap(), data.len() as u64);
        self.calls.take()
    }

    /// The same in the short way.
    fn at_once(&self, way: (Direction, Place), data: &Staging) -> [u64; 4] {
        let moved = self.file.at_once(way, data.sge(), &Single).expect("as usual").unwrap();
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
fn what_lies_in_one_piece_is_one_call() {
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
        for place in [Place::At(8192 * rank), Place::Own] {
            if place == Place::Own {
                opened.file.seek(8192 * rank + 4096, weft_io::Whence::Set).unwrap();
            }
            assert_eq!(opened.at_once((Direction::Write, place), &data), WRITE);
        }
        assert_eq!(opened.file.position(), 8192 * rank + 8192);
        for at in [8192 * rank, 8192 * rank + 4096] {
            back.sge().fill(&[0; 4096]);
            assert_eq!(opened.at_once((Direction::Read, Place::At(at)), &back), READ);
            assert!(holds(&back, 1 + rank as u8));
        }
        // The way of all accesses asks no more of the system.
        let at = Place::At(8192 * rank);
        assert_eq!(opened.alone((Direction::Write, at), &data), WRITE);
        assert_eq!(opened.alone((Direction::Read, at), &back), READ);
        // Nonblocking calls move what is short by themselves.
        let is_short = |bytes| opened.file.is_short(Direction::Write, bytes);
        assert!(is_short(4096) && !is_short(1 << 30) && is_short(8));
        assert_eq!(opened.calls.take(), [0; 4], "nothing beside");
        assert_eq!(opened.pool.threads(), 0, "no thread was needed");
        opened.file.close().await.unwrap();
        assert_eq!(opened.calls.take(), [0; 4], "of a close");
    });
}

#[test]
fn what_is_not_usual_is_left_to_the_whole_way() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("file");
    world::run((2, false), async |comm| {
        let opened = open(&comm, &name).await;
        let data = filled(&comm, 6, 1);
        let not_usual = |place| opened.file.at_once((Direction::Write, place), data.sge(), &Single);
        assert!(not_usual(Place::Shared).is_none() && not_usual(Place::At(-1)).is_none());
        let four = Datatype::vector(Width::Int, 1, 4, 4, &byte()).unwrap();
        four.commit();
        let native = || Representation::native("native");
        opened.file.set_view(Some(0), (&four, &four), native()).await.unwrap();
        assert!(not_usual(Place::At(0)).is_none(), "no whole elements");
        opened.file.set_view(Some(0), (&byte(), &byte()), native()).await.unwrap();
        opened.file.set_atomicity(true).await.unwrap();
        assert!(not_usual(Place::At(0)).is_none(), "atomic");
        opened.file.set_atomicity(false).await.unwrap();
        // One rank's gaps are what the others must see to.
        let two = Datatype::resized(Width::Int, &byte(), 0, 2).unwrap();
        let filetype = if comm.rank() == 0 { two } else { byte() };
        opened.file.set_view(Some(0), (&byte(), &filetype), native()).await.unwrap();
        assert!(not_usual(Place::At(0)).is_none(), "gaps");
        assert_eq!(opened.calls.take()[..2], [0; 2], "nothing was moved");
        opened.file.close().await.unwrap();
    });
}

#[test]
fn in_atomic_mode_ranks_of_one_node_need_no_lock_of_the_file() {
    // Among ranks that take turns on a processor the file's own locks are better.
    for fits in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("file");
        world::run((2, fits), async |comm| atomic(&open(&comm, &name).await, &comm, fits).await);
    }
}

async fn atomic(opened: &Opened, comm: &Rc<Comm<Shm>>, fits: bool) {
    let (data, back) = (filled(comm, 4096, 7), filled(comm, 4096, 0));
    assert!(!opened.file.waits());
    opened.file.set_atomicity(true).await.unwrap();
    assert_eq!(opened.file.waits(), fits);
    opened.calls.take();
    let locks = if fits { 0 } else { 2 };
    for (direction, memory, [reads, writes, ..]) in
        [(Direction::Write, &data, WRITE), (Direction::Read, &back, READ)]
    {
        let buffer = Buffer::over(memory.sge(), byte());
        let operation = opened.file.alone((direction, Place::At(0)), &buffer, &None);
        let operation = operation.expect("not shared").unwrap();
        let moved = match fits {
            true => opened.file.run_waiting(&operation).await,
            false => opened.file.run_here(&operation, &Single),
        };
        assert_eq!(moved.unwrap(), 4096);
        assert_eq!(opened.calls.take(), [reads, writes, locks, 0], "{direction:?}");
    }
    assert!(holds(&back, 7));
    assert_eq!(opened.pool.threads(), 0, "no thread was needed");
    opened.file.set_atomicity(false).await.unwrap();
    assert!(!opened.file.waits());
    opened.file.close().await.unwrap();
}

/// Ranks take turns with pieces of `piece` bytes.
async fn take_turns(opened: &Opened, comm: &Comm<Shm>, piece: usize) {
    let ranks = comm.size() as i64;
    let places = [comm.rank() as i64 * piece as i64];
    let ty = Datatype::indexed(Width::Large, &[piece as i64], &places, &byte()).unwrap();
    let ty = Datatype::resized(Width::Large, &ty, 0, ranks * piece as i64).unwrap();
    ty.commit();
    let native = Representation::native("native");
    opened.file.set_view(Some(0), (&byte(), &ty), native).await.unwrap();
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
            opened.alone((Direction::Write, Place::At(0)), &filled(&comm, 2 * 8 * PIECES, 0));
        }
        comm.barrier().await.unwrap();
        take_turns(&opened, &comm, 8).await;
        let data = filled(&comm, 8 * PIECES, 1 + comm.rank() as u8);
        let place = (Direction::Write, Place::At(0));
        opened.calls.take();
        for _ in 0..2 {
            // Locks are of the gate and the range. The looks for other marks go to both sides of this opening's mark.
            assert_eq!(opened.alone(place, &data), [1, 1, 4, 2]);
            comm.barrier().await.unwrap();
            let another = open(&comm, &name).await;
            // After another opening is seen, the gate is not locked again. Then there is only a shared lock of the range.
            for gate in [2, 0] {
                let [reads, writes, locks, looks] = opened.alone(place, &data);
                assert_eq!((reads, writes, locks), (0, PIECES as u64, gate + 2));
                assert!([1, 2].contains(&looks), "{looks}: its mark lies on either side");
            }
            comm.barrier().await.unwrap();
            another.file.close().await.unwrap();
            drop(another);
            comm.barrier().await.unwrap();
            // The first look finds no mark, the gate is locked, and the second look finds no mark either.
            assert_eq!(opened.alone(place, &data), [1, 1, 4, 4]);
        }
        opened.file.close().await.unwrap();
    });
}

async fn together(opened: &Opened, direction: Direction, data: &Staging) {
    let (way, buffer) = ((direction, Place::At(0), false), Buffer::over(data.sge(), byte()));
    let moved = opened.file.together(way, buffer, None).unwrap().await.unwrap();
    assert_eq!(moved, data.len() as u64);
}

/// Both ranks' data are four windows of one aggregator.
const SHARE: usize = 2 << 20;
const WINDOW: (&str, &str) = ("cb_buffer_size", "1048576");
const PHASES: [(&str, &str); 3] =
    [("romio_cb_read", "enable"), ("romio_cb_write", "enable"), WINDOW];

#[test]
fn in_phases_each_window_is_one_call_and_the_next_one_is_moved_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("file");
    world::run((2, false), async |comm| {
        let opened = open_with(&comm, &name, &PHASES).await;
        take_turns(&opened, &comm, 4096).await;
        let (data, back) = (filled(&comm, SHARE, 1 + comm.rank() as u8), filled(&comm, SHARE, 0));
        opened.calls.take();
        let aggregator = comm.rank() == 0;
        for (direction, memory) in [(Direction::Write, &data), (Direction::Read, &back)] {
            // The first window is not read or written before the next one has been exchanged, too. Writes take turns, under their
            // locks.
            opened.calls.wait_before(1 << 20);
            together(&opened, direction, memory).await;
            let [reads, writes, locks, _] = opened.calls.take();
            let (found, windows) = ([reads, writes], if aggregator { 4 } else { 0 });
            match direction {
                Direction::Read => assert_eq!((found, locks), ([windows, 0], 0)),
                // Nobody writes back what lies around while a window is written whole.
                Direction::Write => assert_eq!((found, locks), ([0, windows], 2 * windows)),
            }
        }
        assert!(holds(&back, 1 + comm.rank() as u8));
        opened.file.close().await.unwrap();
    });
}

#[test]
fn ranks_choose_alike_what_they_learn() {
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
                together(&opened, Direction::Write, &data).await;
                let [_, writes, ..] = opened.calls.take();
                taken.lock().unwrap()[comm.rank()].push(writes as usize);
                together(&opened, Direction::Read, &back).await;
                assert!(holds(&back, with), "access {access}");
                opened.calls.take();
            }
            opened.file.close().await.unwrap();
        });
        let [first, second] = taken.into_inner().unwrap();
        // In phases the first rank writes all at once.
        let ways: Vec<_> = first.into_iter().zip(second).collect();
        let [phases, alone] = [(1, 0), (PIECES, PIECES)];
        assert!(ways.iter().all(|way| [phases, alone].contains(way)), "not alike: {ways:?}");
        // When ranks that learn try the other way depends on the machine.
        assert!(fits || ways.iter().all(|&way| way == alone), "by the model: {ways:?}");
    }
}
