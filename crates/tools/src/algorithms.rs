//! The catalogue of collective algorithms as text.

use weft_collective::CollectiveKind;
use weft_collective::algorithm::{AlgorithmParameter, Carrier, Only, Requirement};

/// Returns the text of `weft info --algorithms`: for each operation its algorithms, with needs, parameter, cost and source.
pub fn list() -> String {
    let mut text = String::from(
        "NAME or NAME:PARAMETER, for the setting of the operation, for `weft explain --algorithm`, and for\n\
         an info hint of a communicator (weft_allreduce = RGM:7). * serves where no map says anything.\n",
    );
    for operation in CollectiveKind::ALL {
        let setting = format!("WEFT_{}", operation.name().to_ascii_uppercase());
        text += &format!("\n{operation} ({setting}; bytes: {})\n", operation.measure());
        for a in operation.algorithms() {
            let star = if a.usual { "*" } else { " " };
            text += &format!("{star} {:23} {}\n", a.name, a.about);
            let mut more = vec![a.cost.to_owned(), carrier(a.carrier).to_owned()];
            more.extend(a.parameter.map(parameter));
            if !a.needs.is_empty() {
                let needs: Vec<_> = a.needs.iter().map(|&n| need(n)).collect();
                more.push(format!("needs {}", needs.join(", ")));
            }
            text += &format!("  {:23}   {}\n", "", more.join("; "));
        }
    }
    text
}

fn carrier(carrier: Carrier) -> &'static str {
    match carrier {
        Carrier::Messages => "MPI messages",
        Carrier::Streams => "streams",
        Carrier::Writes => "RDMA writes, multicast",
        Carrier::Immediates => "RDMA writes with immediate, multicast",
        Carrier::Atomics => "atomics of the adapters, RDMA writes",
        Carrier::Reads => "RDMA reads",
        Carrier::Memory => "shared memory",
        Carrier::Hierarchy => "levels",
    }
}

fn parameter(parameter: AlgorithmParameter) -> String {
    let AlgorithmParameter { what, default, least, most, only } = parameter;
    let powers = if only == Only::All { "" } else { ", one less than a power of two" };
    format!("parameter: {what}, {least} to {most}{powers}, usually {default}")
}

fn need(need: Requirement) -> String {
    match need {
        Requirement::Commutes => "an operator that commutes".to_owned(),
        Requirement::Together(most) => format!("ranks that share memory, at most {most}"),
        Requirement::Two => "2 ranks".to_owned(),
        Requirement::Many => "more than 2 ranks".to_owned(),
        Requirement::Direct => "ranks that may read each other's own memory".to_owned(),
        Requirement::AtMost(most) => format!("at most {most} bytes"),
        Requirement::BlocksAtMost(most) => format!("blocks of at most {most} bytes together"),
        Requirement::ElementAtMost(most) => format!("elements of at most {most} bytes"),
        Requirement::ElementEach => "an element for each rank".to_owned(),
        Requirement::EqualBlocks => "blocks of one length".to_owned(),
        Requirement::PowerOfTwo => "a power of two of ranks".to_owned(),
        Requirement::Even => "an even number of ranks".to_owned(),
        Requirement::Multicast => "multicast".to_owned(),
        Requirement::SameArithmetic => "ranks of the same arithmetic".to_owned(),
        Requirement::SameArithmeticOfTwo => "of 2 ranks: the same arithmetic".to_owned(),
        Requirement::Atomics => "adapters with atomics".to_owned(),
        Requirement::Nodes => "several nodes, one of them with several ranks".to_owned(),
        Requirement::EvenLevels => "as many ranks in each of them".to_owned(),
        Requirement::Levels => {
            "ranks bound to several caches, NUMA domains or sockets, one of them with several ranks"
                .to_owned()
        }
    }
}
