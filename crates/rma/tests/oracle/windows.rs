//! Operations on windows, on every kind of path to their memory.

use crate::common::*;
use std::rc::Rc;
use weft_datatype::{Datatype, PredefinedOp, Width};
use weft_fabric::{Fabric, FabricExt};
use weft_process::Comm;
use weft_rma::{
    EpochEnding, FenceDesign, IssueOrder, LockKind, TargetChange, TargetLocation, Window,
    WindowOffer, WindowOptions,
};

const NOTHING: i32 = 0;

fn location(rank: usize, disp: i64, count: usize, ty: &weft_datatype::Type) -> TargetLocation<'_> {
    TargetLocation { rank, disp, count, ty }
}

/// Iterates over all designs of fences, in both orders; all endings are among them.
fn all_options() -> impl Iterator<Item = WindowOptions> {
    let orders = [IssueOrder::Called, IssueOrder::Turns];
    let both = move |fence| orders.map(|order| (fence, order));
    let endings = EpochEnding::ALL.into_iter().cycle();
    let all = FenceDesign::ALL.into_iter().flat_map(both).zip(endings);
    all.map(|((fence, order), ending)| WindowOptions {
        fence,
        order,
        ending,
        ..WindowOptions::default()
    })
}

/// Calls `f` with windows of all kinds, of `len` numbers.
async fn each_kind<F: Fabric, R: Future<Output = ()>>(
    comm: &Rc<Comm<F>>,
    len: usize,
    options: WindowOptions,
    mut f: impl FnMut(Rc<Window<F>>) -> R,
) {
    let own = Numbers::new(comm, &vec![0; len]);
    let bytes = 8 * len;
    let mut kinds =
        vec![WindowOffer::Own(own.sge()), WindowOffer::Allocate { len: bytes, align: 8 }];
    let me = comm.engine().rank();
    let fabric = comm.engine().endpoint().fabric();
    let region = fabric.allocate(64).unwrap();
    if fabric.mapped(me, region.remote, 64).is_some() {
        kinds.push(WindowOffer::Share { len: bytes, align: 64, contiguous: true });
        kinds.push(WindowOffer::Share { len: bytes, align: 4096, contiguous: false });
    }
    fabric.withdraw(region);
    for kind in kinds {
        let window = Window::create(comm, kind, 8, options).await.unwrap();
        window.memory().fill(&vec![0; bytes]);
        // No rank writes before all ranks have cleared their memory.
        comm.barrier().await.unwrap();
        f(window.clone()).await;
        window.free().await.unwrap();
    }
}

#[derive(Clone, Copy)]
struct Rings(WindowOptions);

impl Program for Rings {
    async fn run<F: Fabric>(self, comm: Rc<Comm<F>>) {
        let (me, size) = (comm.rank(), comm.size());
        let (right, left) = ((me + 1) % size, (me + size - 1) % size);
        each_kind(&comm, 4, self.0, |window| {
            let comm = comm.clone();
            async move {
                let word = ty(AINT);
                let two = Numbers::new(&comm, &[me as i64 + 1, me as i64 + 101]);
                let got = Numbers::new(&comm, &[0, 0]);
                let column = Datatype::vector(Width::Int, 2, 1, 2, &word).unwrap();
                column.commit();
                // Fences: a put with gaps, and a get without gaps.
                window.fence(NOTHING).await.unwrap();
                window.put(&two.buffer(), &location(right, 1, 1, &column)).await.unwrap();
                window.fence(NOTHING).await.unwrap();
                let from = left as i64;
                assert_eq!(numbers(window.memory()), [0, from + 1, 0, from + 101]);
                window.get(&got.buffer(), &location(right, 1, 1, &column)).await.unwrap();
                window.fence(weft_rma::assert::NOSUCCEED).await.unwrap();
                assert_eq!(got.get(), [me as i64 + 1, me as i64 + 101]);
                // Post and start.
                for round in 0..3 {
                    window.post([left].into(), NOTHING).unwrap();
                    window.start([right].into(), NOTHING).await.unwrap();
                    two.set(&[round, me as i64]);
                    window.put(&two.buffer(), &location(right, 0, 2, &word)).await.unwrap();
                    window.complete().await.unwrap();
                    window.wait().await.unwrap();
                    assert_eq!(numbers(window.memory())[..2], [round, left as i64]);
                }
                comm.barrier().await.unwrap();
                // Locks.
                for kind in [LockKind::Shared, LockKind::Exclusive] {
                    window.lock(kind, right, NOTHING).await.unwrap();
                    let issued =
                        window.get(&got.buffer(), &location(right, 0, 2, &word)).await.unwrap();
                    window.until_over(issued).await.unwrap();
                    assert!(window.is_over(issued));
                    assert_eq!(got.get(), [2, me as i64]);
                    window.unlock(right).await.unwrap();
                }
                comm.barrier().await.unwrap();
                window.lock_all(NOTHING).await.unwrap();
                two.set(&[7, 8]);
                window.put(&two.buffer(), &location(left, 2, 2, &word)).await.unwrap();
                window.flush(left).await.unwrap();
                window.get(&got.buffer(), &location(left, 2, 2, &word)).await.unwrap();
                window.flush_all().await.unwrap();
                assert_eq!(got.get(), [7, 8]);
                window.unlock_all().await.unwrap();
            }
        })
        .await;
    }
}

#[test]
fn puts_and_gets_arrive_in_every_kind_of_epoch() {
    for options in all_options() {
        for place in ALL {
            for ranks in [1, 2, 3] {
                run_at(place, ranks, Rings(options));
            }
        }
    }
}

/// All ranks add to one word of rank 0, with locks and without.
#[derive(Clone, Copy)]
struct Sums(WindowOptions);

impl Program for Sums {
    async fn run<F: Fabric>(self, comm: Rc<Comm<F>>) {
        const TIMES: i64 = 20;
        let size = comm.size() as i64;
        each_kind(&comm, 3, self.0, |window| {
            let comm = comm.clone();
            async move {
                let word = ty(AINT);
                let (one, was) = (Numbers::new(&comm, &[1]), Numbers::new(&comm, &[0]));
                let (one, was_there) = (one.buffer(), was.buffer());
                let add = || TargetChange::Reduce { op: PredefinedOp::Sum, origin: Some(&one) };
                window.lock_all(NOTHING).await.unwrap();
                let mut last = -1;
                for _ in 0..TIMES {
                    let at = location(0, 1, 1, &word);
                    window.accumulate(add(), Some(&was_there), &at).await.unwrap();
                    assert!(was.get()[0] > last, "a word that grows");
                    last = was.get()[0];
                }
                window.unlock_all().await.unwrap();
                comm.barrier().await.unwrap();
                // Read, add, write: only the lock makes the sum exact.
                for _ in 0..TIMES {
                    window.lock(LockKind::Exclusive, 0, NOTHING).await.unwrap();
                    let at = location(0, 2, 1, &word);
                    let issued = window.get(&was_there, &at).await.unwrap();
                    window.until_over(issued).await.unwrap();
                    let more = Numbers::new(&comm, &[was.get()[0] + 1]);
                    window.put(&more.buffer(), &at).await.unwrap();
                    window.unlock(0).await.unwrap();
                }
                // A swap by all ranks: only one rank finds the former value.
                let (compare, new) =
                    (Numbers::new(&comm, &[0]), Numbers::new(&comm, &[comm.rank() as i64 + 1]));
                let (compare, new) = (compare.buffer(), new.buffer());
                window.lock(LockKind::Shared, 0, NOTHING).await.unwrap();
                let swap = TargetChange::Swap { compare: &compare, new: &new };
                let at = location(0, 0, 1, &word);
                window.accumulate(swap, Some(&was_there), &at).await.unwrap();
                let won = i64::from(was.get()[0] == 0);
                let change = TargetChange::Reduce { op: PredefinedOp::NoOp, origin: None };
                window.accumulate(change, Some(&was_there), &at).await.unwrap();
                window.unlock(0).await.unwrap();
                let (mine, all) =
                    (Numbers::new(&comm, &[won]), Numbers::new(&comm, &vec![0; size as usize]));
                let first = mine.buffer();
                let blocks: Vec<_> = (0..size).map(|r| all.buffer().block(r, 1)).collect();
                comm.allgather(Some(first), blocks.into()).await.unwrap();
                assert_eq!(all.get().iter().sum::<i64>(), 1, "one swap finds the first value");
                comm.barrier().await.unwrap();
                if comm.rank() == 0 {
                    let [winner, sum, locked] = numbers(window.memory())[..] else {
                        unreachable!()
                    };
                    assert_eq!((sum, locked), (TIMES * size, TIMES * size));
                    assert_eq!(all.get()[winner as usize - 1], 1);
                }
                comm.barrier().await.unwrap();
            }
        })
        .await;
    }
}

#[test]
fn updates_of_one_word_by_all_are_exact() {
    for place in ALL {
        for ranks in [1, 2, 4] {
            run_at(place, ranks, Sums(WindowOptions::default()));
        }
    }
}

/// Writers keep two words of rank 0 equal, and readers check it. The fast path of locks is tried at random.
#[derive(Clone, Copy)]
struct Readers;

impl Program for Readers {
    async fn run<F: Fabric>(self, comm: Rc<Comm<F>>) {
        const TIMES: i64 = 60;
        let brings = WindowOffer::Allocate { len: 16, align: 8 };
        let window = Window::create(&comm, brings, 8, WindowOptions::default()).await.unwrap();
        window.memory().fill(&[0; 16]);
        comm.barrier().await.unwrap();
        let (word, two) = (ty(AINT), Numbers::new(&comm, &[0, 0]));
        let at = location(0, 0, 2, &word);
        let mut rng = fastrand::Rng::with_seed(comm.rank() as u64);
        for turn in 0..TIMES {
            // The last rank only reads; the other ranks write in two of three turns.
            let writes = comm.rank() + 1 < comm.size() && turn % 3 != 0;
            let kind = if writes { LockKind::Exclusive } else { LockKind::Shared };
            if rng.bool() || !window.try_lock(kind, 0, NOTHING) {
                window.lock(kind, 0, NOTHING).await.unwrap();
            }
            let issued = window.get(&two.buffer(), &at).await.unwrap();
            window.until_over(issued).await.unwrap();
            let [one, other] = two.get()[..] else { unreachable!() };
            assert_eq!(one, other, "a writer beside a reader");
            if writes {
                two.set(&[one + 1, other + 1]);
                window.put(&two.buffer(), &at).await.unwrap();
            }
            if rng.bool() || !window.try_unlock(0) {
                window.unlock(0).await.unwrap();
            }
        }
        comm.barrier().await.unwrap();
        if comm.rank() == 0 {
            let sum = (comm.size() as i64 - 1) * TIMES * 2 / 3;
            assert_eq!(numbers(window.memory()), [sum, sum]);
        }
        comm.barrier().await.unwrap();
        window.free().await.unwrap();
    }
}

#[test]
fn readers_and_writers_exclude_each_other() {
    for place in ALL {
        for ranks in [2, 4] {
            run_at(place, ranks, Readers);
        }
    }
}

/// Memory is attached and detached.
#[derive(Clone, Copy)]
struct Attaching;

impl Program for Attaching {
    async fn run<F: Fabric>(self, comm: Rc<Comm<F>>) {
        let (me, size) = (comm.rank(), comm.size());
        let right = (me + 1) % size;
        let window =
            Window::create(&comm, WindowOffer::Nothing, 1, WindowOptions::default()).await.unwrap();
        let word = ty(AINT);
        let places = Numbers::new(&comm, &vec![0; size]);
        let blocks = || (0..size as i64).map(|r| places.buffer().block(r, 1)).collect::<Vec<_>>();
        let mut pieces = Vec::new();
        for round in 0..40i64 {
            let piece = Numbers::new(&comm, &[-1, -1]);
            window.attach(piece.sge()).await.unwrap();
            let overlap = window.attach(piece.sge().part(8, 8)).await;
            assert_eq!(overlap.unwrap_err().class(), weft_process::class::RMA_ATTACH);
            let mine = Numbers::new(&comm, &[piece.sge().ptr().expose_provenance() as i64]);
            comm.allgather(Some(mine.buffer()), blocks().into()).await.unwrap();
            window.lock(LockKind::Shared, right, NOTHING).await.unwrap();
            let address = places.get()[right];
            let value = Numbers::new(&comm, &[round]);
            window.put(&value.buffer(), &location(right, address + 8, 1, &word)).await.unwrap();
            let outside =
                window.put(&value.buffer(), &location(right, address + 16, 1, &word)).await;
            if pieces.is_empty() {
                assert_eq!(outside.unwrap_err().class(), weft_process::class::RMA_RANGE);
            }
            window.unlock(right).await.unwrap();
            comm.barrier().await.unwrap();
            assert_eq!(piece.get(), [-1, round]);
            pieces.push(piece);
            if round % 3 == 0 {
                let piece = pieces.remove(0);
                let base = piece.sge().ptr().expose_provenance();
                window.detach(base).await.unwrap();
                let twice = window.detach(base).await;
                assert_eq!(twice.unwrap_err().class(), weft_process::class::BASE);
            }
        }
        window.free().await.unwrap();
    }
}

#[test]
fn attached_memory_is_found() {
    for place in ALL {
        for ranks in [1, 3] {
            run_at(place, ranks, Attaching);
        }
    }
}

/// Operations that are longer than a fragment, and operations with gaps.
#[derive(Clone, Copy)]
struct Long(IssueOrder);

impl Program for Long {
    async fn run<F: Fabric>(self, comm: Rc<Comm<F>>) {
        const LEN: usize = 12_345;
        let (me, size) = (comm.rank(), comm.size());
        let (right, left) = ((me + 1) % size, (me + size - 1) % size);
        let word = ty(AINT);
        let options = WindowOptions { order: self.0, ..WindowOptions::default() };
        let value = |rank: usize, i: usize| (rank * 1_000_000 + i) as i64;
        let mine: Vec<i64> = (0..LEN).map(|i| value(me, i)).collect();
        let brings = WindowOffer::Allocate { len: 16 * LEN, align: 8 };
        let window = Window::create(&comm, brings, 8, options).await.unwrap();
        let (data, got) = (Numbers::new(&comm, &mine), Numbers::new(&comm, &vec![0; LEN]));
        // One operation has a type with long and short runs. Each other operation is one long run.
        let runs = [(1000, 0), (1, 1005), (3000, 1010), (8344, 4020)];
        let ragged = {
            let (lens, at): (Vec<i64>, Vec<i64>) = runs.iter().copied().unzip();
            Datatype::indexed(Width::Int, &lens, &at, &word).unwrap()
        };
        ragged.commit();
        window.fence(NOTHING).await.unwrap();
        for _ in 0..3 {
            window.put(&data.buffer(), &location(right, 0, LEN, &word)).await.unwrap();
            window.get(&got.buffer(), &location(me, LEN as i64, LEN, &word)).await.unwrap();
            window.fence(NOTHING).await.unwrap();
            let all = numbers(window.memory());
            assert!((0..LEN).all(|i| all[i] == value(left, i)), "{me} of {size}");
        }
        // No rank writes while another rank still reads.
        comm.barrier().await.unwrap();
        window.lock_all(NOTHING).await.unwrap();
        window.put(&data.buffer(), &location(right, 0, 1, &ragged)).await.unwrap();
        window.flush(right).await.unwrap();
        let issued = window.get(&got.buffer(), &location(right, 0, 1, &ragged)).await.unwrap();
        window.until_over(issued).await.unwrap();
        assert_eq!(got.get(), mine);
        window.unlock_all().await.unwrap();
        window.free().await.unwrap();
    }
}

#[test]
fn long_operations_lose_nothing() {
    for order in [IssueOrder::Called, IssueOrder::Turns] {
        for place in ALL {
            for ranks in [1, 2, 3] {
                run_at(place, ranks, Long(order));
            }
        }
    }
}
