//! Rendezvous: asynchronous progress by an auxiliary thread and signals.

use super::figure::{Axis, Check, Document, Figure, Headline, Mark, Quotient, Series, Simulate};
use super::lab::Lab;
use super::published::Value;
use super::workload::{Memory, Side, Workload};

const MACHINE: &str = "rendezvous";
/// The largest message that is drawn.
const LARGEST: usize = 4 << 20;
/// What the document has 100 % overlap above.
const LARGE: usize = 1 << 20;

/// The document's name for its baseline.
const BASE: &str = "no-async";
const BYTES: Axis = Axis { label: "Message", unit: "bytes", doubling: true };
const AVAILABILITY: Axis = Axis { label: "Availability", unit: "%", doubling: false };
const SENDER: &str = "sender-side overlap of both designs; large messages";
const RECEIVER: &str = "receiver-side overlap without asynchronous progress; large messages";

fn sizes(from: usize) -> Vec<usize> {
    std::iter::successors(Some(from), |size| Some(size * 2)).take_while(|s| *s <= LARGEST).collect()
}

/// The baseline, and the same with what our library still does at each message.
fn series(workload: fn(Memory) -> Workload, from: usize) -> Vec<Series> {
    let curve = |name, memory| Series {
        name,
        machine: MACHINE,
        workload: workload(memory),
        over: None,
        x: sizes(from),
    };
    vec![curve(BASE, Memory::Once), curve("no-async, registering each time", Memory::Each)]
}

fn at_receiver(memory: Memory) -> Workload {
    Workload::Availability(Side::Receiver, memory)
}

fn at_sender(memory: Memory) -> Workload {
    Workload::Availability(Side::Sender, memory)
}

/// The smallest power of two in KiB whose message is a rendezvous.
fn least_rendezvous(lab: &Lab) -> Result<Value, String> {
    for size in sizes(1 << 10) {
        if lab.measure(MACHINE, Workload::IsRendezvous, size)? > 0.0 {
            return Ok(Value::Number(size as f64 / 1024.0));
        }
    }
    Ok(Value::Word("none".to_owned()))
}

pub fn document() -> Document {
    let overlap = "Sandia Micro-Benchmark: a message is started, the program computes, then waits; \
                   without asynchronous progress.";
    Document {
        id: "rendezvous",
        paper: "Rendezvous",
        title: "Kumar et al. 2008, lock-free asynchronous rendezvous",
        machines: &[MACHINE],
        about: "The baseline exists: rendezvous by RDMA read, no progress while the program computes. \
                The existing and the proposed design of asynchronous progress are not built yet. MVAPICH, \
                which it measured, keeps memory registered between messages; ours registers it \
                for each rendezvous, on the sender's processor. Both are drawn, and the numbers of \
                the text are compared with memory registered once.",
        figures: vec![
            Figure {
                id: "rendezvous-3",
                title: "Bandwidth for large messages",
                place: "figure 3, its curve no-async",
                x: BYTES,
                y: Axis { label: "Bandwidth", unit: "MB/s", doubling: false },
                series: series(Workload::Bandwidth, 8 << 10),
                marks: Vec::new(),
                rows: vec![
                    "bandwidth of the proposed design against no asynchronous progress; large messages",
                    "bandwidth of the existing design against no asynchronous progress; large messages",
                ],
                note: "Windows of 64 messages, each window answered by an empty message, as in the OSU \
                       benchmarks.",
            },
            Figure {
                id: "rendezvous-5",
                title: "Application availability at the receiver",
                place: "figure 5, its baseline",
                x: BYTES,
                y: AVAILABILITY,
                series: series(at_receiver, 1 << 10),
                marks: vec![Mark { row: RECEIVER, series: BASE, x: LARGE }],
                rows: vec!["receiver-side overlap of the proposed design; above 1 MB"],
                note: overlap,
            },
            Figure {
                id: "rendezvous-6",
                title: "Application availability at the sender",
                place: "figure 6, its baseline",
                x: BYTES,
                y: AVAILABILITY,
                series: series(at_sender, 1 << 10),
                marks: vec![Mark { row: SENDER, series: BASE, x: LARGE }],
                rows: Vec::new(),
                note: "As figure 5. The text's number is that of both designs; simulated is the baseline.",
            },
        ],
        maps: Vec::new(),
        checks: vec![
            Check {
                row: RECEIVER,
                simulate: Simulate::Run(MACHINE, at_receiver(Memory::Once), LARGE),
            },
            Check { row: SENDER, simulate: Simulate::Run(MACHINE, at_sender(Memory::Once), LARGE) },
            Check {
                row: "smallest message that uses rendezvous; MVAPICH as measured",
                simulate: Simulate::Runs(least_rendezvous),
            },
        ],
        headlines: vec![
            Headline {
                name: "bandwidth, 4 MiB",
                machine: MACHINE,
                of: Quotient::One(Workload::Bandwidth(Memory::Once), LARGEST),
            },
            Headline {
                name: "availability at the receiver, 1 MiB",
                machine: MACHINE,
                of: Quotient::One(at_receiver(Memory::Once), LARGE),
            },
            Headline {
                name: "availability at the sender, 1 MiB",
                machine: MACHINE,
                of: Quotient::One(at_sender(Memory::Once), LARGE),
            },
        ],
    }
}
