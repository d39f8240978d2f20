//! The last arrival at each rank, for reports on waits: the rank that a wait was for, and the time of the transfer.

use crate::arrival_record::Arrival;
use crate::in_flight::{FlightAction, SimFlight};
use crate::sim::Sim;
use crate::trace::{Arrow, Travel};
use crate::units::Picoseconds;
use crate::world::WorldState;
use weft_fabric::Fabric;

impl WorldState {
    /// Records the arrival of a flight at its receiver.
    pub(crate) fn note_arrival(&mut self, flight: u32) {
        if self.arrivals.is_none() {
            return;
        }
        let SimFlight { ref action, from, to, .. } = self.flights[flight];
        let poster = match action {
            FlightAction::Message { .. }
            | FlightAction::Write { .. }
            | FlightAction::Packets { .. }
            | FlightAction::AtomicRequest { .. } => from,
            FlightAction::ReadReply { .. }
            | FlightAction::AtomicReply { .. }
            | FlightAction::Complete { .. } => to,
            _ => return,
        };
        let SimFlight { begun, bytes, .. } = self.flights[flight];
        let (posted, arrived) = (begun, self.now);
        let arrival = Arrival { from, poster, posted, arrived, wire: 0, bytes };
        self.set_arrival(to as usize, arrival);
    }

    /// Records an arrival at `rank`, and adds its time on the wire.
    pub(crate) fn set_arrival(&mut self, rank: usize, arrival: Arrival) {
        if self.arrivals.is_none() {
            return;
        }
        let Arrival { from, posted, arrived, bytes, .. } = arrival;
        let whole = match self.is_local(from as usize, rank) {
            true => self.machine.local.time(bytes),
            false => self.prices.bandwidth.time(bytes),
        };
        let wire = whole.min(arrived.saturating_sub(posted));
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.last[rank] = Some(Arrival { wire, ..arrival });
        }
    }
}

impl Sim {
    /// Returns the last arrival at this rank; `None` before the first, and if no rank is a process of its own.
    pub fn last_arrival(&self) -> Option<Arrival> {
        self.state().arrivals.as_ref()?.last[self.rank()]
    }

    /// Asks for the first `most` transfers of all ranks. Has no effect unless the ranks are processes of their own.
    pub fn record_arrows(&self, most: usize) {
        if let Some(arrivals) = &mut self.state().arrivals {
            arrivals.most_arrows = most;
        }
    }

    /// Takes the transfers that [`Sim::record_arrows`] asked for.
    pub fn take_arrows(&self) -> Vec<Arrow> {
        self.state().arrivals.as_mut().map_or_else(Vec::new, |a| std::mem::take(&mut a.arrows))
    }
}

impl WorldState {
    /// Records a transfer for pictures.
    pub(crate) fn arrow(
        &mut self,
        from: usize,
        to: usize,
        what: Travel,
        bytes: usize,
        sent: Picoseconds,
    ) {
        let (from, to, arrived) = (from as u32, to as u32, self.now);
        let arrow = Arrow { from, to, what, bytes, sent, arrived };
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.arrow(arrow);
        }
        if let Some(trace) = &mut self.trace {
            trace.arrows.push(arrow);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cluster, Machine, RankCounter, RankMemory, RankProcesses, SimOptions};
    use std::rc::Rc;
    use weft_fabric::{Fault, Head, PostOutcome, RemoteRead, Sge};

    /// Ranks whose memory is this process's own.
    struct OwnProcess;

    impl RankProcesses for OwnProcess {
        fn copy(&self, to: RankMemory, from: RankMemory) -> Result<(), Fault> {
            to.memory.copy_from(from.memory);
            Ok(())
        }

        fn read(&self, from: RankMemory, out: &mut [u8]) -> Result<(), Fault> {
            from.memory.read(out);
            Ok(())
        }

        fn write(&self, to: RankMemory, bytes: &[u8]) -> Result<(), Fault> {
            to.memory.fill(bytes);
            Ok(())
        }

        fn advance(&self, _rank: usize, _counter: RankCounter) {}
    }

    fn settle(cluster: &Cluster) {
        while cluster.advance() {
            while let Some(rank) = cluster.due() {
                cluster.rest(rank);
            }
        }
    }

    #[test]
    fn an_arrival_names_sender_poster_and_time_of_the_post() {
        let changes = [("ranks_per_node", "1")];
        let machine = Rc::new(Machine::load_with("ndr", &changes).unwrap());
        let cluster = Cluster::new(&machine, SimOptions::new(2)).unwrap();
        let sims = [cluster.rank(0), cluster.rank(1)];
        assert_eq!(sims[1].last_arrival(), None);
        sims.iter().for_each(|sim| sim.set_processes(Rc::new(OwnProcess)));
        sims[0].record_arrows(1);
        assert_eq!(sims[0].send(1, Head([0; 3]), Sge::EMPTY, None), PostOutcome::Done);
        let posted = sims[0].clock();
        settle(&cluster);
        let Arrival { from, poster, arrived, .. } = sims[1].last_arrival().unwrap();
        assert_eq!((from, poster), (0, 0));
        assert_eq!(sims[1].last_arrival().unwrap().posted, posted);
        assert!(arrived > posted);
        assert_eq!(sims[0].last_arrival(), None);

        // The answer to a read comes from the owner of the memory, but the reader has posted the operation.
        let len = 4096;
        let (owned, own) = (sims[0].allocate(len).unwrap(), sims[1].allocate(len).unwrap());
        sims[1].read(0, &RemoteRead::new(own.local, owned.remote, None)).unwrap();
        let posted = sims[1].clock();
        settle(&cluster);
        let read = sims[1].last_arrival().unwrap();
        assert_eq!((read.from, read.poster, read.posted), (0, 1, posted));
        assert!(read.wire > 0 && read.wire < read.arrived - posted);
        assert_eq!(sims[0].take_arrows().len(), 1);
    }
}
