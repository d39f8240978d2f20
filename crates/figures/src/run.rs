//! Runs a workload on a machine, in virtual time.

use crate::measure::cannon::Multiplication;
use crate::measure::collectives::IntegerSum;
use crate::measure::messages::WindowedTransfer;
use crate::measure::osu::OsuCollective;
use crate::measure::streams::StreamCollective;
use crate::measure::{
    cannon, collectives, conjugate, fences, halos, messages, onesided, osu, raw, streams, sweeps,
    tuned, twosided,
};
use crate::workload::{Effort, Fence, Overlap, RegistrationPolicy, Workload};
use std::rc::Rc;
use weft_fabric_sim::Machine;
use weft_p2p::ProtocolLimits;
use weft_rma::FenceDesign;

/// Number of rounds of a collective operation over streams. Few are enough, because all rounds take the same time.
const FEW: usize = 3;

impl Workload {
    /// Returns the workloads that compete at `x`, if the value is the shortest of their times.
    pub fn contenders(self, x: usize) -> Option<Vec<Workload>> {
        match self {
            Workload::Fastest(who, operation, ranks) => {
                Some(streams::contenders(who, operation, ranks, x))
            }
            _ => None,
        }
    }

    /// Runs the algorithm that Open MPI's component tuned takes.
    fn tuned(self, machine: &Rc<Machine>, x: usize, effort: Effort) -> Result<f64, String> {
        let Workload::Tuned(operation, ranks) = self else { return Err("no such choice".into()) };
        let name = tuned::choice(operation, ranks, x)?;
        Workload::Osu(operation, Some(name), ranks).run(machine, x, effort)
    }

    /// Runs all contenders. Returns the time of the fastest.
    fn fastest(self, machine: &Rc<Machine>, x: usize, effort: Effort) -> Result<f64, String> {
        let all = self.contenders(x).unwrap_or_default();
        let times = all.into_iter().map(|workload| workload.run(machine, x, effort));
        let times = times.collect::<Result<Vec<_>, _>>()?;
        Ok(times.into_iter().fold(f64::INFINITY, f64::min))
    }

    /// Runs the workload on `machine`.
    pub fn run(self, machine: &Rc<Machine>, x: usize, effort: Effort) -> Result<f64, String> {
        let Effort { iterations, few } = effort;
        let allreduce = |sum| collectives::allreduce(machine, x, sum, iterations);
        let bandwidth = |transfer| messages::bandwidth(machine, x, transfer, few);
        let collective = |what| streams::collective(machine, what, x, few.min(FEW));
        match self {
            Workload::Barrier(name) => collectives::barrier(machine, x, name, iterations),
            Workload::Allreduce(name, integers) => {
                allreduce(IntegerSum { name, integers, registered: None })
            }
            Workload::RegisteringAllreduce(name, integers, when) => {
                allreduce(IntegerSum { name, integers, registered: Some(when) })
            }
            Workload::Equations(name) => conjugate::solve(machine, x, name),
            Workload::Collective(operation, name, ranks) => {
                let limits = ProtocolLimits::default();
                collective(StreamCollective { ranks, operation, name, limits })
            }
            Workload::CollectiveAtOnce(operation, name, ranks) => {
                let limits = ProtocolLimits { eager: 64 << 10, ..ProtocolLimits::default() };
                collective(StreamCollective { ranks, operation, name, limits })
            }
            Workload::Osu(operation, name, ranks) => {
                osu::latency(machine, OsuCollective { operation, name, ranks }, x, few.min(FEW))
            }
            Workload::Tuned(..) => self.tuned(machine, x, effort),
            Workload::Fastest(..) => self.fastest(machine, x, effort),
            Workload::Segments => streams::segments(machine, x),
            Workload::Blocks => streams::blocks(machine, x),
            Workload::Steps(operation, name) => collectives::steps(machine, x, operation, name),
            Workload::SendDescriptors(name) => collectives::send_descriptors(machine, x, name),
            Workload::Acknowledgements(name) => collectives::acknowledgements(machine, x, name),
            Workload::Stream(bound) => streams::stream(machine, x, bound),
            Workload::Chain(passing) => streams::chain(machine, x, passing),
            Workload::PieceRatio(test) => onesided::piece_ratio(machine, x, test),
            Workload::OfMessages(test) => twosided::measure(machine, x, test, few),
            Workload::WriteLatency => raw::write_latency(machine, x, iterations),
            Workload::SendLatency => raw::send_latency(machine, x, iterations),
            Workload::MulticastLatency(bytes) => {
                raw::multicast_latency(machine, x, bytes, iterations)
            }
            Workload::Fence(fence, design) => fence_time(machine, x, fence, design, few),
            Workload::OneSided(what) => onesided::measure(machine, x, what, few),
            Workload::Bandwidth(memory, progress) => {
                bandwidth(WindowedTransfer { memory, progress, policy: None })
            }
            Workload::BandwidthUnder(policy, progress) => {
                let memory = RegistrationPolicy::Once;
                bandwidth(WindowedTransfer { memory, progress, policy: Some(policy) })
            }
            Workload::Availability(overlap) => messages::availability(machine, x, overlap, few),
            Workload::AvailabilityOver(bytes, overlap) => {
                let overlap = Overlap { rounds: Some(x), ..overlap };
                messages::availability(machine, bytes, overlap, few)
            }
            Workload::Interrupts(progress) => messages::interrupts(machine, x, progress),
            Workload::CannonOnNodes(size, what) => {
                cannon::multiply(machine, Multiplication { nodes: x, size, what })
            }
            Workload::CannonOfSize(nodes, what) => {
                cannon::multiply(machine, Multiplication { nodes, size: x, what })
            }
            Workload::Sweeps(progress, part) => sweeps::step(machine, x, progress, part),
            Workload::Halos(progress) => halos::step(machine, x, progress),
            Workload::IsRendezvous => messages::is_rendezvous(machine, x),
        }
        .map_err(|e| format!("{self:?} at {x} on {}: {e}", machine.name))
    }
}

/// Runs a pattern of fences.
fn fence_time(
    machine: &Rc<Machine>,
    x: usize,
    fence: Fence,
    design: FenceDesign,
    few: usize,
) -> Result<f64, String> {
    let puts = match fence {
        Fence::Alone => 0,
        Fence::Put => 1,
        Fence::Puts => 8,
        Fence::Halo => return fences::halo(machine, x, design, few),
        Fence::Overlap => return fences::overlap(machine, x, design, few),
    };
    let puts = fences::Puts { targets: puts, bytes: 64 };
    fences::after_puts(machine, x, design, puts, 0, few)
}
