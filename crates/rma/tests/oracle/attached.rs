//! Data in several attached regions, on every kind of path to them: fences of all designs, puts and gets by turns.

use crate::common::*;
use std::rc::Rc;
use weft_datatype::PredefinedOp;
use weft_fabric::Fabric;
use weft_process::{Comm, class};
use weft_rma::{
    FenceDesign, IssueOrder, LockKind, TargetChange, TargetLocation, Window, WindowOffer,
    WindowOptions,
};

const NOTHING: i32 = 0;
const LEN: usize = 12;

#[derive(Clone, Copy)]
struct Across(WindowOptions);

impl Program for Across {
    async fn run<F: Fabric>(self, comm: Rc<Comm<F>>) {
        let (me, size) = (comm.rank(), comm.size());
        let (right, left) = ((me + 1) % size, (me + size - 1) % size);
        let word = ty(AINT);
        let window = Window::create(&comm, WindowOffer::Nothing, 1, self.0).await.unwrap();
        let memory = Numbers::new(&comm, &[0; LEN]);
        let value = |rank: usize, i: usize| (rank * 100 + i) as i64;
        let of = |rank: usize| (0..LEN).map(|i| value(rank, i)).collect::<Vec<_>>();
        let places = Numbers::new(&comm, &vec![0; size]);
        let blocks = || (0..size as i64).map(|r| places.buffer().block(r, 1)).collect::<Vec<_>>();
        let base = memory.sge().ptr().expose_provenance();
        let mine = Numbers::new(&comm, &[base as i64]);
        comm.allgather(Some(mine.buffer()), blocks().into()).await.unwrap();
        let location =
            |rank: usize| TargetLocation { rank, disp: places.get()[rank], count: LEN, ty: &word };
        // The second border lies within an element.
        let regions = [(40, 96 - 40), (0, 12), (12, 28)];
        for (at, len) in regions {
            window.attach(memory.sge().part(at, len)).await.unwrap();
        }
        comm.barrier().await.unwrap();
        let (data, got) = (Numbers::new(&comm, &of(me)), Numbers::new(&comm, &[0; LEN]));
        window.fence(NOTHING).await.unwrap();
        window.put(&data.buffer(), &location(right)).await.unwrap();
        window.fence(NOTHING).await.unwrap();
        assert_eq!(memory.get(), of(left));
        comm.barrier().await.unwrap();
        window.get(&got.buffer(), &location(right)).await.unwrap();
        window.fence(NOTHING).await.unwrap();
        assert_eq!(got.get(), of(me));
        comm.barrier().await.unwrap();
        let one = Numbers::new(&comm, &[1; LEN]);
        let ones = one.buffer();
        let change = || TargetChange::Reduce { op: PredefinedOp::Sum, origin: Some(&ones) };
        window.lock_all(NOTHING).await.unwrap();
        for _ in 0..3 {
            window.accumulate(change(), None, &location(0)).await.unwrap();
        }
        let was = got.buffer();
        window.accumulate(change(), Some(&was), &location(0)).await.unwrap();
        window.unlock_all().await.unwrap();
        let before = got.get()[0] - value(size - 1, 0);
        assert!((3..4 * size as i64).contains(&before), "{before}");
        comm.barrier().await.unwrap();
        if me == 0 {
            let sums: Vec<i64> = of(left).iter().map(|v| v + 4 * size as i64).collect();
            assert_eq!(memory.get(), sums);
        }
        comm.barrier().await.unwrap();
        window.detach(base + 12).await.unwrap();
        let before = memory.get();
        comm.barrier().await.unwrap();
        window.lock(LockKind::Shared, right, NOTHING).await.unwrap();
        let refused = [
            window.put(&data.buffer(), &location(right)).await,
            window.get(&got.buffer(), &location(right)).await,
            window.accumulate(change(), None, &location(right)).await,
        ];
        for error in refused.map(Result::unwrap_err) {
            assert_eq!(error.class(), class::RMA_RANGE, "{}", error.text());
        }
        window.unlock(right).await.unwrap();
        comm.barrier().await.unwrap();
        assert_eq!(memory.get(), before);
        window.free().await.unwrap();
    }
}

#[test]
fn data_across_regions_arrive() {
    for fence in FenceDesign::ALL {
        for order in [IssueOrder::Called, IssueOrder::Turns] {
            let options = WindowOptions { fence, order, ..WindowOptions::default() };
            for place in ALL {
                for ranks in [1, 2, 3] {
                    run_at(place, ranks, Across(options));
                }
            }
        }
    }
}
