//! Random programs of views, offsets, pointers and collective calls on 1 to 6 ranks, against a model that has the file's bytes.
//!
//! All ranks make the same program from a seed, so that each rank knows the accesses of all. Each byte of a tile belongs to a random
//! rank or to no rank. A rank writes through a view of its own bytes, so that no two ranks write the same byte, and reads through
//! the view of any rank.

use crate::faulty::{FaultPlan, FaultyStorage};
use crate::forms::{FORMS, Form, access, hints};
use crate::world;
use fastrand::Rng;
use std::fs::OpenOptions;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use weft_datatype::{Basic, Datatype, Type, Width};
use weft_fabric::Staging;
use weft_fabric_shm::Shm;
use weft_io::storage::Storage;
use weft_io::{AccessSpec, Amode, File, IoPool, OpenArguments, Positioning, Representation, class};
use weft_process::{Buffer, Comm, Info};

const RDWR_CREATE: i32 = 32 | 2;

fn byte() -> Type {
    weft_rma::named(Basic::BYTE)
}

/// Owner of each byte of a tile. The number of ranks stands for no owner.
#[derive(Clone)]
struct Pattern {
    owners: Vec<usize>,
    displacement: usize,
}

impl Pattern {
    fn random(rng: &mut Rng, ranks: usize) -> Pattern {
        let len = rng.usize(ranks..40 * ranks + 8);
        let (mut owners, mut owner) = (Vec::new(), 0);
        // Sometimes regular, sometimes arbitrary.
        let piece = [1, 4, 1 + rng.usize(..12)][rng.usize(..3)];
        let regular = rng.bool();
        while owners.len() < len {
            owner = if regular {
                (owner + 1) % (ranks + rng.usize(..2).min(1))
            } else {
                rng.usize(..ranks + 1)
            };
            let run = if regular { piece } else { 1 + rng.usize(..2 * piece) };
            owners.extend(std::iter::repeat_n(owner, run.min(len - owners.len())));
        }
        // Every rank owns a byte.
        (0..ranks).for_each(|rank| owners[rank] = rank);
        Pattern { owners, displacement: rng.usize(..50) }
    }

    fn places(&self, rank: usize) -> Vec<usize> {
        (0..self.owners.len()).filter(|&at| self.owners[at] == rank).collect()
    }

    /// Returns the file's byte at a position of a rank's view.
    fn place(&self, rank: usize, at: usize) -> usize {
        let places = self.places(rank);
        self.displacement + at / places.len() * self.owners.len() + places[at % places.len()]
    }

    fn filetype(&self, rank: usize) -> Type {
        let places: Vec<i64> = self.places(rank).iter().map(|&at| at as i64).collect();
        let lengths = vec![1; places.len()];
        let ty = Datatype::indexed(Width::Large, &lengths, &places, &byte()).unwrap();
        let ty = Datatype::resized(Width::Large, &ty, 0, self.owners.len() as i64).unwrap();
        ty.commit();
        ty
    }
}

/// Memory of a rank: contiguous bytes, or with a gap after every two bytes.
struct Data {
    memory: Staging,
    gaps: bool,
    len: usize,
}

impl Data {
    fn new(comm: &Comm<Shm>, bytes: &[u8], gaps: bool) -> Data {
        let len = bytes.len();
        let room = if gaps { 3 * len.div_ceil(2) } else { len };
        let data = Data { memory: comm.engine().endpoint().staging().take(room), gaps, len };
        let mut whole = vec![0xee; room];
        bytes.iter().enumerate().for_each(|(i, &byte)| whole[data.at(i)] = byte);
        data.memory.sge().fill(&whole);
        data
    }

    fn at(&self, i: usize) -> usize {
        if self.gaps { i / 2 * 3 + i % 2 } else { i }
    }

    fn buffer(&self) -> Buffer {
        if !self.gaps {
            return Buffer::over(self.memory.sge(), byte());
        }
        let places: Vec<i64> = (0..self.len).map(|i| self.at(i) as i64).collect();
        let lengths = vec![1; places.len()];
        let ty = Datatype::indexed(Width::Large, &lengths, &places, &byte()).unwrap();
        ty.commit();
        Buffer::within(self.memory.sge(), 0, 1, ty).expect("inside")
    }

    fn bytes(&self) -> Vec<u8> {
        let mut whole = vec![0; self.memory.len()];
        self.memory.sge().read(&mut whole);
        let used: Vec<usize> = (0..self.len).map(|i| self.at(i)).collect();
        let gaps = (0..whole.len()).filter(|at| !used.contains(at));
        assert!(gaps.into_iter().all(|at| whole[at] == 0xee), "gaps are not touched");
        used.into_iter().map(|at| whole[at]).collect()
    }
}

fn opener(plan: FaultPlan) -> impl Fn(&Path, &OpenOptions) -> std::io::Result<Arc<dyn Storage>> {
    move |path, options| {
        let file = options.open(path)?;
        let disk = weft_io::storage::disk::Disk::new(file);
        Ok(Arc::new(FaultyStorage::new(disk, plan.clone())) as Arc<dyn Storage>)
    }
}

/// Runs one program: rounds of a view, a write by all ranks and a read by all ranks.
async fn program(comm: Rc<Comm<Shm>>, seed: u64, path: &Path) {
    let mut rng = Rng::with_seed(seed);
    let (ranks, me) = (comm.size(), comm.rank());
    let plan = match seed % 3 {
        0 => FaultPlan {
            most: 1 + rng.usize(..9),
            interrupt: 2 + rng.u64(..4),
            ..FaultPlan::default()
        },
        1 => FaultPlan { no_locks: true, ..FaultPlan::default() },
        _ => FaultPlan::default(),
    };
    let locks = !plan.no_locks;
    let pool = IoPool::new(comm.engine());
    let name = path.as_os_str();
    let amode = Amode::new(RDWR_CREATE).expect("a mode");
    let info = hints(&mut rng);
    let arguments = OpenArguments { name, amode, info: &info };
    let opening = File::open(&comm, arguments, &pool, &opener(plan)).await;
    let file = opening.expect("opened");
    let mut model: Vec<u8> = Vec::new();
    for round in 0..6 {
        let pattern = Pattern::random(&mut rng, ranks);
        let said = format!("seed {seed}, round {round}");
        if rng.usize(..4) == 0 && locks {
            file.set_atomicity(rng.bool()).await.expect("agreed");
        }
        file.set_hints(&hints(&mut rng));
        if rng.usize(..3) == 0 {
            let length = rng.usize(..model.len() + 100);
            file.set_length(length as u64).await.expect("a length");
            model.resize(length, 0);
        }
        // Each rank writes through a view of its own bytes.
        let view = |of: usize| (pattern.displacement as u64, pattern.filetype(of));
        let (displacement, filetype) = view(me);
        let native = || Representation::native("native");
        file.set_view(Some(displacement), &byte(), &filetype, native()).await.expect("a view");
        let form = FORMS[rng.usize(..FORMS.len())];
        let own_pointer = rng.bool();
        let (mut before, mut mine) = (0, None);
        for rank in 0..ranks {
            let bytes: Vec<u8> = (0..rng.usize(..200)).map(|_| rng.u8(..)).collect();
            let (offset, gaps) = (rng.usize(..60), rng.bool());
            let at = if form.goes_on() { before } else { offset };
            before += bytes.len();
            for (i, &byte) in bytes.iter().enumerate() {
                let place = pattern.place(rank, at + i);
                model.resize(model.len().max(place + 1), 0);
                model[place] = byte;
            }
            if rank == me {
                mine = Some((bytes, offset, gaps));
            }
        }
        let (bytes, offset, gaps) = mine.expect("this rank is one");
        let mut place = Positioning::Explicit(offset as i64);
        if own_pointer && !form.goes_on() {
            file.seek(offset as i64, weft_io::Whence::Set).expect("a place");
            place = Positioning::Individual;
        }
        let data = Data::new(&comm, &bytes, gaps);
        let moved = access(&file, form, AccessSpec::write(place), data.buffer()).await;
        assert_eq!(moved.expect("written"), bytes.len() as u64, "{said}, {form:?}");
        if place == Positioning::Individual {
            assert_eq!(file.position(), (offset + bytes.len()) as i64, "{said}");
        }
        comm.barrier().await.expect("all");
        // Each rank reads through the view of any rank.
        let whose = rng.usize(..ranks);
        let whose = (me + whose) % ranks;
        let (displacement, filetype) = view(whose);
        file.set_view(Some(displacement), &byte(), &filetype, native()).await.expect("a view");
        let form = FORMS[rng.usize(..FORMS.len())];
        let lens: Vec<usize> = (0..ranks).map(|_| rng.usize(..300)).collect();
        let (offset, gaps) = (rng.usize(..60), rng.bool());
        let from = match form {
            Form::Ordered | Form::Shared => lens[..me].iter().sum(),
            _ => offset,
        };
        let data = Data::new(&comm, &vec![0x55; lens[me]], gaps);
        let asked = AccessSpec::read(Positioning::Explicit(offset as i64));
        let bytes_read = access(&file, form, asked, data.buffer()).await.expect("read");
        let there: Vec<u8> = (0..lens[me])
            .map_while(|i| model.get(pattern.place(whose, from + i)).copied())
            .collect();
        assert_eq!(bytes_read, there.len() as u64, "{said}, {form:?}: bytes before the end");
        assert_eq!(data.bytes()[..there.len()], there[..], "{said}, {form:?}");
        comm.barrier().await.expect("all");
    }
    assert_eq!(file.length().expect("a length"), model.len() as u64, "seed {seed}");
    file.sync().await.expect("on the device");
    file.close().await.expect("closed");
    if me == 0 {
        assert!(std::fs::read(path).expect("readable") == model, "seed {seed}: the file");
    }
    comm.barrier().await.expect("all");
}

/// Writes collectively or independently to a file system that becomes full in the middle.
async fn full_file_system(comm: Rc<Comm<Shm>>, seed: u64, path: &Path) {
    let mut rng = Rng::with_seed(seed);
    let (ranks, me) = (comm.size(), comm.rank());
    let pattern = Pattern::random(&mut rng, ranks);
    let bad = rng.usize(..600);
    let bad = bad as u64..bad as u64 + rng.u64(1..200);
    let (writes, most) = (Some((bad.clone(), libc::ENOSPC)), rng.usize(..20));
    let plan = FaultPlan { writes, most, ..FaultPlan::default() };
    let pool = IoPool::new(comm.engine());
    let (name, info) = (path.as_os_str(), hints(&mut rng));
    let amode = Amode::new(RDWR_CREATE).expect("a mode");
    let arguments = OpenArguments { name, amode, info: &info };
    let file = File::open(&comm, arguments, &pool, &opener(plan)).await.expect("opened");
    let filetype = pattern.filetype(me);
    let displacement = Some(pattern.displacement as u64);
    let native = Representation::native("native");
    file.set_view(displacement, &byte(), &filetype, native).await.expect("a view");
    let form = FORMS[rng.usize(..4)];
    let lens: Vec<usize> = (0..ranks).map(|_| rng.usize(..200)).collect();
    let bytes: Vec<u8> = (0..lens[me]).map(|i| 1 + (i % 250) as u8).collect();
    let data = Data::new(&comm, &bytes, false);
    let moved =
        access(&file, form, AccessSpec::write(Positioning::Explicit(0)), data.buffer()).await;
    comm.barrier().await.expect("all");
    let places: Vec<usize> = (0..lens[me]).map(|i| pattern.place(me, i)).collect();
    let touches = places.iter().any(|&place| bad.contains(&(place as u64)));
    match moved {
        Ok(_) => {
            assert!(!touches, "seed {seed}: {form:?} on rank {me} must tell");
            let found = std::fs::read(path).expect("readable");
            let there = places.iter().zip(&bytes);
            assert!(there.clone().all(|(&at, byte)| found.get(at) == Some(byte)), "seed {seed}");
        }
        Err(error) => {
            assert_eq!(error.class(), class::NO_SPACE, "{error:?}");
            assert!(
                error.text().contains(name.to_str().expect("text"))
                    && error.text().contains("byte"),
                "{error:?}"
            );
        }
    }
    comm.barrier().await.expect("all");
    file.close().await.expect("closed");
}

fn cases(first: u64, count: u64, f: impl Fn(usize, u64, &Path)) {
    let folder = tempfile::tempdir().expect("a folder");
    for seed in first..first + count {
        f(1 + seed as usize % 6, seed, &folder.path().join(seed.to_string()));
    }
}

#[test]
fn random_programs_leave_the_bytes_of_the_model() {
    cases(1, 500, |ranks, seed, path| {
        world::run((ranks, seed % 8 == 0), |comm| program(comm, seed, path))
    });
}

#[test]
fn failed_writes_are_reported() {
    cases(1, 200, |ranks, seed, path| {
        world::run((ranks, false), |comm| full_file_system(comm, seed, path))
    });
}

/// Checks that failed reads are reported only to the ranks whose data are missing.
#[test]
fn failed_reads_are_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    for (case, form) in [Form::Blocking, Form::Collective].into_iter().enumerate() {
        let path = folder.path().join(case.to_string());
        std::fs::write(&path, vec![7; 300]).expect("written");
        let path = &path;
        world::run((3, false), async |comm| {
            let plan = FaultPlan { reads: Some((100..200, libc::EIO)), ..FaultPlan::default() };
            let pool = IoPool::new(comm.engine());
            let mut info = Info::default();
            info.set("romio_cb_read", "enable");
            info.set("cb_buffer_size", "100");
            info.set("striping_unit", "100");
            let amode = Amode::new(16).expect("a mode");
            let named = OpenArguments { name: path.as_os_str(), amode, info: &info };
            let file = File::open(&comm, named, &pool, &opener(plan)).await.expect("opened");
            let data = Data::new(&comm, &[0; 100], false);
            let place = Positioning::Explicit(100 * comm.rank() as i64);
            let read = access(&file, form, AccessSpec::read(place), data.buffer()).await;
            match (comm.rank(), read) {
                (1, Err(error)) => assert_eq!(error.class(), class::IO),
                (0 | 2, Ok(100)) => assert_eq!(data.bytes(), vec![7; 100]),
                (rank, other) => panic!("rank {rank}: {other:?}"),
            }
            comm.barrier().await.expect("all");
            file.close().await.expect("closed");
        });
    }
}
