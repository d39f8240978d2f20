//! Files that are open more than once: no opening may write a byte of another opening, not even with its old value.
//!
//! Each byte of a file belongs to one writer, which is a rank with one of its openings, or to no writer. All writers write their
//! bytes at the same time, in all kinds of accesses. Then the test checks each call of each opening, and each byte of the file.

use crate::faulty::{FaultPlan, FaultyStorage};
use crate::forms::{FORMS, Form, OpenFile, access, hints};
use crate::world;
use fastrand::Rng;
use std::fs::OpenOptions;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use weft_datatype::{Basic, Datatype, Type, Width};
use weft_fabric_shm::Shm;
use weft_io::storage::Storage;
use weft_io::storage::disk::{Disk, FileSystemKind};
use weft_io::{AccessSpec, Amode, File, IoPool, OpenArguments, Positioning, Representation};
use weft_process::{Buffer, Comm};

const RDWR: i32 = 32;

/// Way in which ranks open the file.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Opening {
    /// All together, once.
    Once,
    /// All together, twice.
    Twice,
    /// Each rank by itself.
    Each,
    /// Each rank by itself, two times.
    EachTwice,
    /// The lower half of the ranks together, and the upper half together.
    Halves,
}

const OPENINGS: [Opening; 5] =
    [Opening::Once, Opening::Twice, Opening::Each, Opening::EachTwice, Opening::Halves];

impl Opening {
    /// Counts the openings of each rank.
    fn times(self) -> usize {
        if matches!(self, Opening::Twice | Opening::EachTwice) { 2 } else { 1 }
    }

    /// Returns the group of a rank: ranks with the same number open the file together.
    fn colour(self, rank: usize, ranks: usize) -> usize {
        match self {
            Opening::Once | Opening::Twice => 0,
            Opening::Each | Opening::EachTwice => rank,
            Opening::Halves => usize::from(rank >= ranks.div_ceil(2)),
        }
    }
}

/// Case of the test, which is the same on all ranks.
struct Case {
    seed: u64,
    opening: Opening,
    ranks: usize,
    /// The writer of each byte. A number greater than the last writer's means no writer.
    owners: Vec<usize>,
    /// The form of each opening's accesses, by [`Case::number`].
    forms: Vec<Form>,
    /// Writers that have a view with gaps. Other writers write piece after piece.
    gaps: Vec<bool>,
    /// The storage of each opening.
    plans: Vec<FaultPlan>,
}

/// Returns the first value of a byte.
fn before(at: usize) -> u8 {
    200 + (at % 50) as u8
}

/// Returns the value that the owner of a byte writes.
fn after(at: usize) -> u8 {
    1 + (at * 7 % 190) as u8
}

impl Case {
    fn new(seed: u64, opening: Opening, ranks: usize) -> Case {
        let mut rng = Rng::with_seed(seed);
        let openings = 2 * ranks;
        let forms: Vec<Form> = (0..openings).map(|_| FORMS[rng.usize(..FORMS.len())]).collect();
        let gaps = (0..openings).map(|_| rng.usize(..3) > 0).collect();
        let piece = [1, 4, 8, 17][rng.usize(..4)];
        let (writers, mut owners) = (ranks * opening.times(), Vec::new());
        while owners.len() < 60 * piece {
            let owner = rng.usize(..writers + 1);
            let len = 1 + rng.usize(..piece);
            owners.extend(std::iter::repeat_n(owner, len));
        }
        (0..writers).for_each(|writer| owners[writer] = writer);
        let kinds = [
            None,
            Some(FileSystemKind::Nfs),
            Some(FileSystemKind::Lustre),
            Some(FileSystemKind::Network),
        ];
        let kind = kinds[rng.usize(..8).min(3)].filter(|_| rng.bool());
        let (most, no_locks) = (rng.usize(..3) * 5, rng.usize(..6) == 0);
        let plan = || FaultPlan {
            most,
            no_locks,
            kind,
            written: Some(Arc::default()),
            ..FaultPlan::default()
        };
        let plans = (0..openings).map(|_| plan()).collect();
        Case { seed, opening, ranks, owners, forms, gaps, plans }
    }

    /// Returns the number of a rank's opening.
    fn number(&self, rank: usize, time: usize) -> usize {
        2 * self.opening.colour(rank, self.ranks) + time
    }

    fn writer(&self, rank: usize, time: usize) -> usize {
        rank * self.opening.times() + time
    }

    /// Returns the opening of a writer, or `None` for no writer.
    fn of(&self, writer: usize) -> Option<usize> {
        let (rank, time) = (writer / self.opening.times(), writer % self.opening.times());
        (rank < self.ranks).then(|| self.number(rank, time))
    }

    /// Lists the bytes whose owners satisfy `asked`.
    fn places(&self, asked: impl Fn(usize) -> bool) -> Vec<usize> {
        (0..self.owners.len()).filter(|&at| asked(self.owners[at])).collect()
    }
}

fn byte() -> Type {
    weft_rma::named(Basic::BYTE)
}

/// Sets a view of these places.
async fn see(file: &OpenFile, places: &[usize]) {
    let list: Vec<i64> = places.iter().map(|&at| at as i64).collect();
    let ty = Datatype::indexed(Width::Large, &vec![1; list.len()], &list, &byte()).unwrap();
    ty.commit();
    let native = Representation::native("native");
    file.set_view(Some(0), &byte(), &ty, native).await.expect("a view");
}

/// Writes to these places, which follow each other in the view from `offset` on.
async fn write(file: &OpenFile, form: Form, offset: usize, places: &[usize]) {
    let pool = file.comm().engine().endpoint().staging();
    let memory = pool.take(places.len());
    memory.sge().fill(&places.iter().map(|&at| after(at)).collect::<Vec<_>>());
    let buffer = Buffer::over(memory.sge(), byte());
    let spec = AccessSpec::write(Positioning::Explicit(offset as i64));
    let moved = access(file, form, spec, buffer).await;
    assert_eq!(moved.expect("written"), places.len() as u64);
}

/// Does one rank's writes by one opening.
async fn write_all(case: &Case, file: &OpenFile, (rank, time): (usize, usize)) {
    let (number, writer) = (case.number(rank, time), case.writer(rank, time));
    let form = case.forms[number];
    let mine = case.places(|owner| owner == writer);
    let members: Vec<usize> =
        (0..case.ranks).filter(|&other| case.number(other, time) == number).collect();
    if form.goes_on() {
        // All ranks see the bytes of the opening. Each writes its share, in the order of ranks.
        let all = case.places(|owner| case.of(owner) == Some(number));
        see(file, &all).await;
        let share = all.len().div_ceil(members.len());
        let at = file.comm().rank() * share;
        let own = all.iter().skip(at).take(share).copied().collect::<Vec<_>>();
        return write(file, form, 0, &own).await;
    }
    if case.gaps[writer] {
        see(file, &mine).await;
    } else {
        let plain = (0..case.owners.len()).collect::<Vec<_>>();
        see(file, &plain).await;
    }
    // In a collective form all ranks write the same number of times.
    let pieces = |writer: usize| -> Vec<Vec<usize>> {
        let places = case.places(|owner| owner == writer);
        match case.gaps[writer] {
            true => vec![places],
            false => places.chunk_by(|a, b| a + 1 == *b).map(<[usize]>::to_vec).collect(),
        }
    };
    let mut times = pieces(writer).len();
    if matches!(form, Form::Collective | Form::CollectiveBackground) {
        let of = |&other: &usize| pieces(case.writer(other, time)).len();
        times = members.iter().map(of).max().unwrap_or(0);
    }
    let own = pieces(writer);
    for i in 0..times {
        let piece = own.get(i).map_or(&[][..], |piece| piece);
        let offset = match (case.gaps[writer], piece) {
            (false, [first, ..]) => *first,
            _ => 0,
        };
        write(file, form, offset, piece).await;
    }
}

/// Runs one rank's side of a case.
async fn side(comm: Rc<Comm<Shm>>, case: &Case, path: &Path) {
    let rank = comm.rank();
    let pool = IoPool::new(comm.engine());
    let colour = case.opening.colour(rank, case.ranks) as i32;
    let part = comm.split(Some(colour), 0).await.expect("parts").expect("a part");
    let mut files = Vec::new();
    for time in 0..case.opening.times() {
        let number = case.number(rank, time);
        let mut hints = hints(&mut Rng::with_seed(case.seed + number as u64));
        if !case.seed.is_multiple_of(4) {
            hints.set("romio_ds_write", "enable");
        }
        let plan = case.plans[number].clone();
        let opener = move |path: &Path, options: &OpenOptions| {
            let storage = FaultyStorage::new(Disk::new(options.open(path)?), plan.clone());
            Ok(Arc::new(storage) as Arc<dyn Storage>)
        };
        let amode = Amode::new(RDWR).expect("a mode");
        let arguments = OpenArguments { name: path.as_os_str(), amode, info: &hints };
        let file = File::open(&part, arguments, &pool, &opener).await;
        files.push(file.expect("opened"));
    }
    comm.barrier().await.expect("all");
    for (time, file) in files.iter().enumerate() {
        write_all(case, file, (rank, time)).await;
    }
    comm.barrier().await.expect("all");
    for file in files {
        file.close().await.expect("closed");
    }
}

/// Runs a case. Returns the number of its calls that wrote bytes without an owner.
fn check(case: &Case, path: &Path) -> usize {
    let said = format!("seed {}, {:?}, {} ranks", case.seed, case.opening, case.ranks);
    let first: Vec<u8> = (0..case.owners.len()).map(before).collect();
    std::fs::write(path, first).expect("written");
    world::run((case.ranks, false), |comm| side(comm, case, path));
    let openings: Vec<usize> = (0..case.ranks)
        .flat_map(|rank| (0..case.opening.times()).map(move |time| case.number(rank, time)))
        .collect();
    let single = openings.iter().all(|number| *number == openings[0]);
    let mut with_gaps = 0;
    for (number, plan) in case.plans.iter().enumerate() {
        let written = plan.written.as_ref().expect("noted").lock().unwrap();
        for &(from, len) in written.iter() {
            let mut owners = case.owners[from as usize..(from + len) as usize].iter();
            let foreign = owners.find(|&&owner| case.of(owner) != Some(number));
            with_gaps += usize::from(foreign.is_some());
            assert!(
                single || foreign.is_none(),
                "{said}: opening {number} ({:?}) wrote {len} bytes at {from}, among them writer {foreign:?}'s",
                case.forms[number]
            );
        }
    }
    let found = std::fs::read(path).expect("readable");
    assert_eq!(found.len(), case.owners.len(), "{said}");
    for (at, &byte) in found.iter().enumerate() {
        let expected = if case.of(case.owners[at]).is_some() { after(at) } else { before(at) };
        assert_eq!(byte, expected, "{said}: byte {at} of writer {}", case.owners[at]);
    }
    with_gaps
}

#[test]
fn no_opening_overwrites_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut with_gaps = 0;
    for seed in 0..60 {
        for (i, opening) in OPENINGS.into_iter().enumerate() {
            let case = Case::new(seed, opening, 1 + (seed as usize + i) % 4);
            with_gaps += check(&case, &folder.path().join(format!("{seed}-{i}")));
        }
    }
    assert!(with_gaps > 0, "one opening by itself moves gaps, too");
}
