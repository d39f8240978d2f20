//! One-sided communication of two ranks, as Multi-rail measured it: epochs of post and start with 16 operations each, on one rail
//! or on all rails of the machine.

use super::{Measured, SimRank, WARM_UP, each, first, text, world};
use crate::workload::{FragmentLength, OneSidedPattern, OneSidedTest, RailUse};
use std::rc::Rc;
use weft_channel::rails::Thresholds;
use weft_datatype::{Basic, Predefined, Type};
use weft_fabric_sim::{Machine, Sim, SimOptions};
use weft_p2p::ProtocolLimits;
use weft_process::Buffer;
use weft_rma::{TargetLocation, Window, WindowOffer};

/// Number of operations of an epoch, which section 4.2 calls "window size".
pub(super) const OPERATIONS: usize = 16;

/// One side of the pair.
struct Side {
    rank: SimRank,
    window: Rc<Window<Sim>>,
    byte: Type,
    bytes: usize,
}

impl Side {
    async fn new(
        rank: SimRank,
        bytes: usize,
        fragmented: Option<usize>,
        options: weft_rma::WindowOptions,
    ) -> Result<Side, String> {
        let brings = WindowOffer::Allocate { len: bytes, align: 64 };
        if let Some(len) = fragmented {
            let rails = rank.comm.engine().endpoint().rails();
            rails.set_thresholds(Thresholds { write: len, read: len, ..rails.thresholds() });
        }
        let window = Window::create(&rank.comm, brings, 1, options).await.map_err(text)?;
        let byte = Predefined::new().of(Basic::BYTE).clone();
        Ok(Side { rank, window, byte, bytes })
    }

    fn peer(&self) -> usize {
        1 - self.rank.comm.rank()
    }

    /// Returns a buffer that has a size but no bytes, so that nothing is copied.
    fn data(&self) -> Buffer {
        Buffer::phantom(self.bytes, self.byte.clone())
    }

    fn spot(&self) -> TargetLocation<'_> {
        TargetLocation { rank: self.peer(), disp: 0, count: self.bytes, ty: &self.byte }
    }

    async fn operations(&self, puts: usize, gets: usize) -> Result<(), String> {
        for _ in 0..puts {
            self.window.put(&self.data(), &self.spot()).await.map_err(text)?;
        }
        for _ in 0..gets {
            self.window.get(&self.data(), &self.spot()).await.map_err(text)?;
        }
        Ok(())
    }

    /// Runs an epoch of access to the other rank.
    async fn access(&self, puts: usize, gets: usize) -> Result<(), String> {
        self.window.start([self.peer()].into(), 0).await.map_err(text)?;
        self.operations(puts, gets).await?;
        self.window.complete().await.map_err(text)
    }

    /// Runs an epoch of exposure to the other rank.
    async fn expose(&self) -> Result<(), String> {
        self.window.post([self.peer()].into(), 0).map_err(text)?;
        self.window.wait().await.map_err(text)
    }

    /// Runs one round of a test.
    async fn round(&self, test: OneSidedPattern) -> Result<(), String> {
        let (puts, gets) = match test {
            OneSidedPattern::Put | OneSidedPattern::BothPut => (OPERATIONS, 0),
            OneSidedPattern::Get => (0, OPERATIONS),
            OneSidedPattern::PutLatency => (1, 0),
            OneSidedPattern::GetLatency => (0, 1),
            OneSidedPattern::Interleaved => (OPERATIONS, OPERATIONS),
        };
        let first = self.rank.comm.rank() == 0;
        match test {
            // Each rank accesses and exposes at the same time.
            OneSidedPattern::BothPut => {
                self.window.post([self.peer()].into(), 0).map_err(text)?;
                self.access(puts, gets).await?;
                self.window.wait().await.map_err(text)
            }
            // One epoch in each direction.
            OneSidedPattern::PutLatency | OneSidedPattern::GetLatency => {
                if first {
                    self.access(puts, gets).await?;
                    self.expose().await
                } else {
                    self.expose().await?;
                    self.access(puts, gets).await
                }
            }
            _ if first => self.access(puts, gets).await,
            _ => self.expose().await,
        }
    }
}

/// Returns the ratio of the longest piece to the shortest piece that an epoch sends over the network on all rails.
pub fn piece_ratio(machine: &Rc<Machine>, bytes: usize, test: OneSidedPattern) -> Measured {
    let options = weft_rma::WindowOptions::default();
    let traced = SimOptions::new(2).trace();
    let outcome = world(machine, traced, ProtocolLimits::default(), |rank| async move {
        Side::new(rank, bytes, None, options).await?.round(test).await?;
        Ok(0.0)
    })?;
    first(&outcome)?;
    let arrows = outcome.trace.unwrap_or_default().arrows;
    // Messages below this length are flags and messages of the synchronization, not pieces of puts.
    let fragmented = machine.fragment.map_or(Thresholds::default().write, |count| count.0);
    let least = fragmented / machine.rail.len() / 2;
    let pieces: Vec<_> =
        arrows.iter().map(|arrow| arrow.bytes).filter(|len| *len > least).collect();
    match (pieces.iter().max(), pieces.iter().min()) {
        (Some(most), Some(least)) if pieces.len() > OPERATIONS => Ok(*most as f64 / *least as f64),
        _ => Err(format!("{} operations went in {} pieces", OPERATIONS, pieces.len())),
    }
}

/// Returns the time of an epoch in microseconds for latencies. Otherwise returns the bytes per microsecond of all data.
pub fn measure(machine: &Rc<Machine>, bytes: usize, what: OneSidedTest, rounds: usize) -> Measured {
    let mut used = Machine::clone(machine);
    if what.rails == RailUse::First {
        used.rail.truncate(1);
    }
    let fragmented = match what.pieces {
        // The library reads the length from the machine file.
        FragmentLength::Usual => None,
        FragmentLength::From(bytes) => Some(bytes),
    };
    let options =
        weft_rma::WindowOptions { order: what.order, ending: what.ending, ..Default::default() };
    let outcome =
        world(&Rc::new(used), SimOptions::new(2), ProtocolLimits::default(), |rank| async move {
            let side = Side::new(rank, bytes, fragmented, options).await?;
            let sim = side.rank.sim.clone();
            let mut start = 0;
            for round in 0..WARM_UP + rounds {
                if round == WARM_UP {
                    start = sim.clock();
                }
                side.round(what.test).await?;
            }
            let time = each(start, sim.clock(), rounds);
            let data = bytes * OPERATIONS;
            Ok(match what.test {
                OneSidedPattern::PutLatency | OneSidedPattern::GetLatency => time / 2.0,
                OneSidedPattern::Put | OneSidedPattern::Get => data as f64 / time,
                OneSidedPattern::BothPut | OneSidedPattern::Interleaved => 2.0 * data as f64 / time,
            })
        })?;
    first(&outcome)
}
