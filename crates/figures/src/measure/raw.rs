//! Measurements of the bare fabric, which the documents make at the level of verbs.

use super::{Measured, WARM_UP, each, first, text};
use std::cell::RefCell;
use std::rc::Rc;
use std::task::Poll;
use weft_fabric::{
    ArrivedMessage, Counter, Fabric, FabricExt, FlagKind, GroupId, Head, Region, RemoteAddr,
    RemoteFlag, RemoteWrite, Sge, until,
};
use weft_fabric_sim::units::Chance;
use weft_fabric_sim::{Machine, Sim, SimOptions, run};

/// Number of bytes of a flag.
const WORD: usize = 8;

/// Memory of every rank, which all ranks know. It holds data, and then a flag.
type Regions = Rc<RefCell<Vec<Region>>>;

/// Runs `program` on two ranks, each with a region of `len` bytes.
fn pair<P>(
    machine: &Rc<Machine>,
    len: usize,
    mut program: impl FnMut(Sim, Regions) -> P,
) -> Measured
where
    P: Future<Output = Measured> + 'static,
{
    let regions = Regions::default();
    let mut failed = None;
    let outcome = run(machine, SimOptions::new(2), |sim| {
        // All ranks allocate their regions before any rank begins.
        match sim.allocate(len) {
            Ok(region) => regions.borrow_mut().push(region),
            Err(fault) => failed = Some(text(fault)),
        }
        program(sim, regions.clone())
    })
    .map_err(|e| e.to_string())?;
    failed.map_or_else(|| first(&outcome), Err)
}

/// State of a ping-pong of writes. The receiver polls its memory to notice a write.
struct Ping {
    sim: Sim,
    source: Region,
    from: Sge,
    to: RemoteAddr,
    there: RemoteFlag,
    here: Counter,
    /// True if the last word of the payload is the flag, so that no second write is needed.
    one: bool,
}

impl Ping {
    fn new(sim: Sim, regions: &[Region], bytes: usize) -> Result<Ping, String> {
        let (mine, theirs) = (regions[sim.rank()], regions[1 - sim.rank()]);
        let one = bytes <= sim.capabilities(1 - sim.rank()).mtu;
        let place = if one { bytes - WORD } else { bytes };
        let source = sim.allocate(bytes).map_err(text)?;
        let here = sim.flag(&mine, place, FlagKind::Silent).local;
        let there = RemoteFlag { at: theirs.at(place), waking: false };
        let from = source.local.part(0, bytes);
        Ok(Ping { sim, source, from, to: theirs.at(0), there, here, one })
    }

    fn send(&self, number: u64) -> Result<(), String> {
        let peer = 1 - self.sim.rank();
        if self.one {
            let at = self.from.len() - WORD;
            self.source.local.part(at, WORD).fill(&number.to_ne_bytes());
            self.sim.write(peer, &RemoteWrite::new(self.from, self.to, None)).map_err(text)
        } else {
            let written = self.sim.write_flag(
                peer,
                &RemoteWrite::new(self.from, self.to, None),
                &self.there.with(number),
            );
            written.map_err(text)
        }
    }

    async fn wait(&self, number: u64) -> Result<(), String> {
        until(&self.sim, self.here, number).await.map_err(text)
    }
}

/// Returns half the round trip time of a write of `bytes` bytes, a multiple of 8. Up to the MTU, the receiver polls the last word
/// of the payload. Above the MTU, it polls a flag that is written after the payload (Kini, section 5.3.2).
pub fn write_latency(machine: &Rc<Machine>, bytes: usize, iterations: usize) -> Measured {
    pair(machine, bytes + WORD, |sim, regions| async move {
        let ping = Ping::new(sim, &regions.borrow(), bytes)?;
        let mut start = 0;
        for i in 0..WARM_UP + iterations {
            if i == WARM_UP {
                start = ping.sim.clock();
            }
            let number = i as u64 + 1;
            if ping.sim.rank() == 0 {
                ping.send(number)?;
                ping.wait(number).await?;
            } else {
                ping.wait(number).await?;
                ping.send(number)?;
            }
        }
        Ok(each(start, ping.sim.clock(), 2 * iterations))
    })
}

/// Takes the next message from `peer` out of the adapter.
async fn arrival(sim: &Sim, peer: usize) -> ArrivedMessage {
    std::future::poll_fn(|_| match sim.receive(Some(peer)) {
        Some(message) => Poll::Ready(message),
        None => Poll::Pending,
    })
    .await
}

/// Returns half the round trip time of a message of `bytes`.
pub fn send_latency(machine: &Rc<Machine>, bytes: usize, iterations: usize) -> Measured {
    pair(machine, bytes, |sim, regions| async move {
        let peer = 1 - sim.rank();
        let data = regions.borrow()[sim.rank()].local;
        let mut start = 0;
        for i in 0..WARM_UP + iterations {
            if i == WARM_UP {
                start = sim.clock();
            }
            if sim.rank() == 0 {
                sim.send(peer, Head::default(), data, None);
            }
            sim.release(arrival(&sim, peer).await);
            if sim.rank() == 1 {
                sim.send(peer, Head::default(), data, None);
            }
        }
        Ok(each(start, sim.clock(), 2 * iterations))
    })
}

/// Returns the time from rank 0's call until all `receivers` ranks have the datagram. The machine loses no datagrams here, because
/// a lost datagram has no latency.
pub fn multicast_latency(
    machine: &Rc<Machine>,
    receivers: usize,
    bytes: usize,
    iterations: usize,
) -> Measured {
    const GROUP: GroupId = GroupId(1);
    let mut reliable = Machine::clone(machine);
    match &mut reliable.multicast {
        Some(multicast) => multicast.loss = Chance(0.0),
        None => return Err("the machine has no multicast".to_owned()),
    }
    // For each iteration, the time at which the datagram was sent, and the time at which the last receiver got it.
    let times = Rc::new(RefCell::new(vec![(0u64, 0u64); iterations]));
    let outcome = run(&Rc::new(reliable), SimOptions::new(receivers + 1), |sim| {
        sim.join(GROUP);
        let times = times.clone();
        async move {
            let data = sim.allocate(bytes).map_err(text)?.local;
            for i in 0..iterations {
                if sim.rank() == 0 {
                    times.borrow_mut()[i].0 = sim.clock();
                    sim.multicast(GROUP, data).map_err(text)?;
                    for peer in 1..=receivers {
                        sim.release(arrival(&sim, peer).await);
                    }
                    continue;
                }
                std::future::poll_fn(|_| match sim.receive_multicast(data) {
                    Some(_) => Poll::Ready(()),
                    None => Poll::Pending,
                })
                .await;
                let last = &mut times.borrow_mut()[i].1;
                *last = sim.clock().max(*last);
                // Tells rank 0 when to send the next datagram.
                sim.send(0, Head::default(), Sge::EMPTY, None);
            }
            Ok(0.0)
        }
    })
    .map_err(|e| e.to_string())?;
    first(&outcome)?;
    let times = times.borrow();
    Ok(times.iter().map(|(sent, last)| each(*sent, *last, iterations)).sum())
}
