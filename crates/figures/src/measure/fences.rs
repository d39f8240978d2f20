//! Fences as the slides measured them: without puts, after puts to neighbours, with computation, and in a halo exchange.

use super::{Measured, SimRank, WARM_UP, each, mean, text, world};
use std::rc::Rc;
use weft_datatype::{Basic, Predefined, Type};
use weft_fabric::{FabricExt, Work};
use weft_fabric_sim::units::{MICROSECOND, Picoseconds};
use weft_fabric_sim::{Machine, Sim, SimOptions};
use weft_p2p::ProtocolLimits;
use weft_process::Buffer;
use weft_rma::{FenceDesign, TargetLocation, Window, WindowOffer};

/// Number of bytes that neighbours in a halo exchange put to each other, and time of the computation in a step.
const FACE: usize = 8 << 10;
const STEP: Picoseconds = 60 * MICROSECOND;

/// A rank with a window.
struct Fencing {
    rank: SimRank,
    window: Rc<Window<Sim>>,
    byte: Type,
}

impl Fencing {
    async fn new(rank: SimRank, len: usize, fence: FenceDesign) -> Result<Fencing, String> {
        let options = weft_rma::WindowOptions { fence, ..Default::default() };
        let brings = WindowOffer::Allocate { len, align: 64 };
        let window = Window::create(&rank.comm, brings, 1, options).await.map_err(text)?;
        let byte = Predefined::new().of(Basic::BYTE).clone();
        let fencing = Fencing { rank, window, byte };
        fencing.fence().await?;
        Ok(fencing)
    }

    /// Puts `bytes` bytes into the window of rank `to`, at the place for neighbour number `which`. The data has a size, but no
    /// content.
    async fn put(&self, to: usize, which: usize, bytes: usize) -> Result<(), String> {
        let data = Buffer::phantom(bytes, self.byte.clone());
        let disp = (which * bytes) as i64;
        let spot = TargetLocation { rank: to, disp, count: bytes, ty: &self.byte };
        self.window.put(&data, &spot).await.map(|_| ()).map_err(text)
    }

    async fn fence(&self) -> Result<(), String> {
        self.window.fence(0).await.map_err(text)
    }
}

/// Returns the time of a round in microseconds. The value is the mean over ranks.
fn rounds<P>(
    machine: &Rc<Machine>,
    ranks: usize,
    iterations: usize,
    mut round: impl FnMut(SimRank) -> P,
) -> Measured
where
    P: Future<Output = Result<(Fencing, Round), String>> + 'static,
{
    let outcome = world(machine, SimOptions::new(ranks), ProtocolLimits::default(), |rank| {
        let ready = round(rank);
        async move {
            let (fencing, Round { neighbours, bytes, compute }) = ready.await?;
            let sim = fencing.rank.sim.clone();
            let mut start = 0;
            for i in 0..WARM_UP + iterations {
                if i == WARM_UP {
                    start = sim.clock();
                }
                for (which, &to) in neighbours.iter().enumerate() {
                    fencing.put(to, which, bytes).await?;
                }
                if compute > 0 {
                    sim.charge(Work::Compute(compute));
                }
                fencing.fence().await?;
            }
            Ok(each(start, sim.clock(), iterations))
        }
    })?;
    mean(&outcome)
}

/// Work of a rank between two fences.
struct Round {
    neighbours: Vec<usize>,
    bytes: usize,
    compute: Picoseconds,
}

/// Puts by one rank before a fence.
#[derive(Clone, Copy)]
pub struct Puts {
    /// Number of targets. This rank puts once to each of the next higher ranks.
    pub targets: usize,
    /// Number of bytes of each put.
    pub bytes: usize,
}

/// Measures a fence after a rank's puts.
pub fn after_puts(
    machine: &Rc<Machine>,
    ranks: usize,
    fence: FenceDesign,
    puts: Puts,
    compute: Picoseconds,
    iterations: usize,
) -> Measured {
    rounds(machine, ranks, iterations, |rank| async move {
        let me = rank.comm.rank();
        let neighbours: Vec<usize> = (1..=puts.targets).map(|step| (me + step) % ranks).collect();
        let fencing = Fencing::new(rank, (puts.targets * puts.bytes).max(1), fence).await?;
        Ok((fencing, Round { neighbours, bytes: puts.bytes, compute }))
    })
}

/// Returns the overlap of computation with a put of `bytes` bytes and its fence, between two ranks. The computation takes as long
/// as the put with its fence. The overlap is the percentage of the computation that does not lengthen the round.
pub fn overlap(
    machine: &Rc<Machine>,
    bytes: usize,
    fence: FenceDesign,
    iterations: usize,
) -> Measured {
    let run =
        |compute| after_puts(machine, 2, fence, Puts { targets: 1, bytes }, compute, iterations);
    let alone = run(0)?;
    let beside = run((alone * MICROSECOND as f64) as Picoseconds)?;
    Ok((100.0 * (2.0 * alone - beside) / alone).max(0.0))
}

/// Measures a step of a halo exchange on a torus: faces to four neighbours, while the inner part is computed.
pub fn halo(
    machine: &Rc<Machine>,
    ranks: usize,
    fence: FenceDesign,
    iterations: usize,
) -> Measured {
    let rows =
        (1..=ranks).filter(|r| ranks.is_multiple_of(*r) && r * r <= ranks).max().unwrap_or(1);
    let columns = ranks / rows;
    rounds(machine, ranks, iterations, |rank| async move {
        let me = rank.comm.rank();
        let (row, column) = (me / columns, me % columns);
        let at = |row: usize, column: usize| row % rows * columns + column % columns;
        let neighbours = vec![
            at(row + rows - 1, column),
            at(row + 1, column),
            at(row, column + columns - 1),
            at(row, column + 1),
        ];
        let fencing = Fencing::new(rank, 4 * FACE, fence).await?;
        Ok((fencing, Round { neighbours, bytes: FACE, compute: STEP }))
    })
}
