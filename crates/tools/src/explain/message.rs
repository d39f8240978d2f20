//! Explanation of a message, a put, a get or an accumulate. It uses the functions by which the library chooses, and the model of
//! the machine.

use crate::machine;
use crate::sim::SimFailure;
use crate::tune::workload;
use clap::ValueEnum;
use std::fmt::Write as _;
use std::rc::Rc;
use weft_fabric::{CacheDistance, CopyModel};
use weft_fabric_sim::Machine;
use weft_intranode::{ModelLoader, ModelOrigin, ModelSource};
use weft_p2p::protocol::{self as message, Locality, TransferPattern};
use weft_p2p::{ProtocolLimits, Rendezvous};
use weft_rma::accumulate_protocol::{self, AccumulateKey, AccumulateProtocol, Sight};
use weft_rma::{AtomicityDomain, protocol as window};

/// Further arguments about messages.
#[derive(clap::Args, Debug)]
#[group(id = "Message")]
pub struct MessageArgs {
    /// The other end of a message, whose sender or origin is rank 0.
    #[arg(long, value_name = "RANK", default_value_t = 1)]
    peer: usize,
    /// Other communication of the two ends of a message.
    #[arg(long, value_parser = pattern, default_value = "plain",
          long_help = "Other communication of the two ends of a message: plain, synchronous, one-to-many, many-to-one, forwarded, exchange")]
    pattern: TransferPattern,
    /// Number of threads of each rank that send and receive.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = threads)]
    threads: usize,
    /// Distance between the caches of the two ends.
    #[arg(long, value_enum, default_value_t = CacheSetting::Near)]
    caches: CacheSetting,
    /// Microseconds of a round trip between nodes: 20 through the kernel's TCP, else too few to decide anything. Default: the
    /// machine file's.
    #[arg(long, value_name = "US")]
    round_trip: Option<u32>,
    /// Assume that no process can read the memory of another.
    #[arg(long)]
    no_cma: bool,
}

/// A cache distance, by its name in the setting.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum CacheSetting {
    Near,
    Far,
}

fn pattern(name: &str) -> Result<TransferPattern, String> {
    let found = TransferPattern::ALL.into_iter().find(|pattern| pattern.name() == name);
    found.ok_or_else(|| {
        format!("one of {}", TransferPattern::ALL.map(TransferPattern::name).join(", "))
    })
}

/// A transfer from one rank to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageCall {
    Send,
    Put,
    Get,
    Accumulate,
}

impl MessageCall {
    pub fn named(name: &str) -> Option<MessageCall> {
        let all = [MessageCall::Send, MessageCall::Put, MessageCall::Get, MessageCall::Accumulate];
        all.into_iter().find(|kind| kind.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            MessageCall::Send => "send",
            MessageCall::Put => "put",
            MessageCall::Get => "get",
            MessageCall::Accumulate => "accumulate",
        }
    }
}

/// Placement of the two ranks.
struct Site {
    same_node: bool,
    same_rank: bool,
    threads_each: u32,
    distance: CacheDistance,
    /// True if processes or adapters can read each other's memory.
    direct: bool,
    /// Round trip between nodes, in nanoseconds.
    round_trip: u32,
}

/// Parses a number of threads.
fn threads(text: &str) -> Result<usize, String> {
    let threads = text.parse().ok().filter(|&threads| threads > 0);
    threads.ok_or_else(|| "a number of threads, at least 1".to_owned())
}

/// Returns the explanation.
pub fn run(kind: MessageCall, args: &super::ExplainArgs) -> Result<String, SimFailure> {
    let request = |text: String| SimFailure::Request(text);
    let (ranks, about) = (args.ranks.unwrap_or(2.max(args.message.peer + 1)), &args.message);
    if about.peer >= ranks {
        return Err(request(format!(
            "--peer {}: of {ranks} ranks the last is {}",
            about.peer,
            ranks - 1
        )));
    }
    if about.threads != 1 && !matches!(kind, MessageCall::Send) {
        let reason = "only messages choose by the number of threads; puts and gets do not";
        return Err(request(format!("--threads {}: {reason}", about.threads)));
    }
    let bytes = args.one_size()?;
    let machine = super::machine(args, ranks)?.map(Rc::new);
    let each = machine.as_ref().map_or(ranks, |m| m.ranks_per_node.0).max(1);
    let processors =
        machine.as_ref().map_or_else(|| machine::MachineInfo::look().cores_for_ranks(), |_| each);
    let same_node = about.peer / each == 0;
    let on_node = ranks.min(each);
    let site = Site {
        same_node,
        same_rank: about.peer == 0,
        threads_each: (on_node * about.threads.max(1)).div_ceil(processors.max(1)).max(1) as u32,
        distance: match about.caches {
            CacheSetting::Near => CacheDistance::Shared,
            CacheSetting::Far => CacheDistance::Apart,
        },
        direct: !(same_node && (about.no_cma || is_set("WEFT_CMA", "0"))),
        round_trip: match about.round_trip {
            Some(us) => us.saturating_mul(1000),
            None => machine.as_deref().map_or(0, round_trip),
        },
    };
    let (model, whence) = model(machine.as_deref())?;
    let mut text = format!(
        "{} of {} bytes between rank 0 and rank {}, of {ranks}",
        kind.name(),
        bytes,
        about.peer
    );
    if kind == MessageCall::Send && about.pattern != TransferPattern::Plain {
        text += &format!(", {}", about.pattern.name());
    }
    text += "\n";
    line(&mut text, "ranks", &describe(&site, machine.as_deref()));
    line(&mut text, "model", &whence);
    match kind {
        MessageCall::Send => {
            let case = message_case(&model, &site, bytes, about.pattern)?;
            let far = machine.as_ref().filter(|_| !site.same_node);
            let simulated = |protocol| far.and_then(|m| simulated(m, about.peer, bytes, protocol));
            send(&mut text, &model, &case, &simulated);
        }
        MessageCall::Put => one_sided(&mut text, &model, &site, bytes, window::RmaDirection::Put),
        MessageCall::Get => one_sided(&mut text, &model, &site, bytes, window::RmaDirection::Get),
        MessageCall::Accumulate => accumulate(&mut text, &model, &site, bytes),
    }
    Ok(text)
}

/// Returns the model of copies on the machine, and a description of its source.
pub(super) fn model(machine: Option<&Machine>) -> Result<(CopyModel, String), SimFailure> {
    if let Some(machine) = machine {
        return Ok((machine.copies.model(), "of the machine file".to_owned()));
    }
    let wanted = std::env::var("WEFT_COPY_MODEL").unwrap_or_default();
    let loader = ModelSource::parse(&wanted).and_then(|wanted| ModelLoader::start(&wanted, 2));
    let found =
        loader.map_err(|why| SimFailure::Request(format!("WEFT_COPY_MODEL: {why}")))?.wait();
    let whence = match found.origin {
        ModelOrigin::Generic(why) => format!("of a processor that nobody has measured: {why}"),
        ModelOrigin::Measured(_) => "measured just now".to_owned(),
        ModelOrigin::Kept(path, _) => {
            format!("measured on this machine, kept in {}", path.display())
        }
        ModelOrigin::Given(path, _) => format!("of {}", path.display()),
    };
    Ok((found.model, whence))
}

fn line(text: &mut String, name: &str, value: &str) {
    writeln!(text, "  {name:<10} {value}").expect("a string grows");
}

fn describe(site: &Site, machine: Option<&Machine>) -> String {
    let name = machine.map_or(String::new(), |m| format!("{}: ", m.name));
    let place = match site {
        Site { same_rank: true, .. } => "they are one",
        Site { same_node: false, .. } => "on two nodes",
        Site { distance: CacheDistance::Shared, .. } => "on one node, with a cache in common",
        Site { distance: CacheDistance::Apart, .. } => "on one node, with no cache in common",
    };
    let turns = match site.threads_each {
        1 => String::new(),
        each => format!("; {each} take turns on a processor"),
    };
    format!("{name}{place}{turns}")
}

/// Returns true if the environment variable has this value.
fn is_set(name: &str, value: &str) -> bool {
    std::env::var(name).is_ok_and(|text| text.trim() == value)
}

/// Returns the number in an environment variable, or the default.
fn number(name: &str, usual: usize) -> Result<usize, SimFailure> {
    match std::env::var(name) {
        Ok(text) if !text.trim().is_empty() => text
            .trim()
            .parse()
            .map_err(|_| SimFailure::Request(format!("{name}={text}: not a number"))),
        _ => Ok(usual),
    }
}

/// Formats a predicted time in microseconds.
fn us(cost: Option<f64>) -> String {
    match cost {
        Some(ns) => format!("{:.2} us", ns / 1000.0),
        None => "no time: the model is of copies, not of a network (weft sim)".to_owned(),
    }
}

/// Returns the case of a message between the two ranks of `site`, with the limits that the settings give.
fn message_case(
    model: &CopyModel,
    site: &Site,
    bytes: usize,
    pattern: TransferPattern,
) -> Result<message::MessageCase, SimFailure> {
    let usual = ProtocolLimits::USUAL;
    let asked = std::env::var("WEFT_PROTOCOL").ok();
    let protocols = message::MessageProtocol::ALL;
    let limits = ProtocolLimits {
        eager: number("WEFT_EAGER", usual.eager)?,
        eager_fixed: std::env::var_os("WEFT_EAGER").is_some(),
        staging: number("WEFT_STAGING", usual.staging)?,
        ranks_each: site.threads_each,
        rendezvous: match is_set("WEFT_RENDEZVOUS", "write") {
            true => Rendezvous::Write,
            false => Rendezvous::Read,
        },
        protocol: asked.and_then(|name| protocols.into_iter().find(|p| p.name() == name.trim())),
        ..usual
    };
    let place = match site {
        Site { same_rank: true, .. } => Locality::Here,
        Site { same_node: true, .. } => Locality::SameNode,
        _ => Locality::Elsewhere,
    };
    let path = message::PeerPath::at(place, usize::MAX, &limits);
    let path = path.with_round_trip(site.round_trip, &limits, model);
    let path = message::PeerPath {
        direct: site.direct,
        distance: site.distance,
        send_max: path.eager,
        ..path
    };
    Ok(message::MessageCase { bytes, pattern, path })
}

/// Returns the case of a message to another rank of this machine. Each of the two ranks has a processor if there are two.
pub(super) fn neighbour_case(
    model: &CopyModel,
    bytes: usize,
) -> Result<message::MessageCase, SimFailure> {
    let processors = machine::MachineInfo::look().cores_for_ranks().max(1);
    let site = Site {
        same_node: true,
        same_rank: false,
        threads_each: 2u32.div_ceil(processors as u32),
        distance: CacheDistance::Shared,
        direct: !is_set("WEFT_CMA", "0"),
        round_trip: 0,
    };
    message_case(model, &site, bytes, TransferPattern::Plain)
}

/// Returns the round trip on a machine, in nanoseconds.
fn round_trip(machine: &Machine) -> u32 {
    (machine.rail[0].round_trip.us() * 1e3) as u32
}

/// Returns the case of a message to a rank of another node of a machine.
pub(super) fn case_between(
    machine: &Machine,
    bytes: usize,
) -> Result<message::MessageCase, SimFailure> {
    let site = Site {
        same_node: false,
        same_rank: false,
        threads_each: 1,
        distance: CacheDistance::Shared,
        direct: true,
        round_trip: round_trip(machine),
    };
    message_case(&machine.copies.model(), &site, bytes, TransferPattern::Plain)
}

/// Returns the microseconds of a message from rank 0 to rank `peer` of a simulated machine.
pub(super) fn simulated(
    machine: &Rc<Machine>,
    peer: usize,
    bytes: usize,
    protocol: message::MessageProtocol,
) -> Option<f64> {
    let limits = ProtocolLimits { protocol: Some(protocol), ..ProtocolLimits::default() };
    workload::message(machine, peer, bytes, limits).ok()
}

/// Explains a message. `simulated` returns the microseconds by a protocol between nodes, if there is a machine file.
fn send(
    text: &mut String,
    model: &CopyModel,
    case: &message::MessageCase,
    simulated: &dyn Fn(message::MessageProtocol) -> Option<f64>,
) {
    let &message::MessageCase { path, pattern, .. } = case;
    let protocols = message::MessageProtocol::ALL;
    let cost = |p: message::MessageProtocol| match path.place {
        Locality::Elsewhere => p.eligible(case).map(|()| simulated(p).map(|us| us * 1e3)),
        _ => p.cost(model, case).map(Some),
    };
    let chosen = message::choose(model, case);
    line(text, "protocol", &format!("{}: {}", chosen.name(), chosen.about()));
    line(text, "predicted", &us(cost(chosen).ok().flatten()));
    let others = protocols.into_iter().filter(|&p| p != chosen);
    let able = others.clone().filter(|&p| cost(p).is_ok()).count();
    line(
        text,
        "because",
        match (path.asked == Some(chosen), able) {
            (true, _) => "it is asked for: WEFT_PROTOCOL",
            (_, 0) => "it is the only one that is eligible",
            _ => "it is the cheapest",
        },
    );
    let steps = message::limits(model, path, pattern).into_iter().map(|(most, p)| match most {
        usize::MAX => format!("{} beyond", p.name()),
        most => format!("{} to {most}", p.name()),
    });
    line(text, "by size", &steps.collect::<Vec<_>>().join(", "));
    let all = others.map(|p| (p.name(), cost(p)));
    list(text, all);
}

fn one_sided(
    text: &mut String,
    model: &CopyModel,
    site: &Site,
    bytes: usize,
    direction: window::RmaDirection,
) {
    let near = site.same_node;
    let path = window::TargetPath {
        // The window is mapped into the memory of ranks on the same node, as a window from MPI_Win_allocate.
        mapped: near,
        within: true,
        direct: site.direct,
        synchronous: near,
        distance: site.distance,
        ranks_each: site.threads_each,
    };
    let case = window::AccessTransfer { direction, bytes, path };
    let chosen = window::choose(&path);
    line(text, "window", "of MPI_Win_allocate");
    line(text, "protocol", &format!("{}: {}", chosen.name(), chosen.about()));
    line(text, "predicted", &us(chosen.cost(model, &case)));
    let others = window::AccessProtocol::ALL.into_iter().filter(|&p| p != chosen);
    list(text, others.map(|p| (p.name(), p.eligible(&path).map(|()| p.cost(model, &case)))));
}

/// Explains an accumulate of elements of 8 bytes if possible, else of single bytes.
fn accumulate(text: &mut String, model: &CopyModel, site: &Site, bytes: usize) {
    let (near, size) = (site.same_node, if bytes.is_multiple_of(8) { 8 } else { 1 });
    let case = AccumulateKey {
        elements: bytes / size,
        solid: true,
        word: true,
        adapter: !near && size == 8,
        sight: if near { Sight::Mapped } else { Sight::Direct },
        domain: if near { AtomicityDomain::Processors } else { AtomicityDomain::Adapters },
        alone: false,
    };
    let cost =
        |way: AccumulateProtocol| if near { way.cost(model, bytes, site.distance) } else { None };
    let chosen = accumulate_protocol::choose(&case);
    line(text, "window", "of MPI_Win_allocate, shared locks or fences");
    line(text, "elements", &format!("{} of {size} bytes", case.elements));
    line(text, "protocol", &format!("{}: {}", chosen.name(), chosen.why()));
    line(text, "predicted", &us(cost(chosen)));
    let others = AccumulateProtocol::ALL.into_iter().filter(|&way| way != chosen);
    list(text, others.map(|way| (way.name(), way.eligible(&case).map(|()| cost(way)))));
}

/// Lists the other protocols: first protocols with a time, in ascending order of time, then protocols that are not eligible.
fn list<'a>(
    text: &mut String,
    others: impl Iterator<Item = (&'a str, Result<Option<f64>, &'static str>)>,
) {
    let mut others: Vec<_> = others.collect();
    let order = |cost: &Result<Option<f64>, _>| match cost {
        Ok(ns) => ns.unwrap_or(f64::MAX),
        Err(_) => f64::INFINITY,
    };
    others.sort_by(|a, b| order(&a.1).total_cmp(&order(&b.1)));
    text.push_str("others\n");
    for (name, cost) in others {
        match cost {
            Ok(ns) => line(text, name, &us(ns)),
            Err(why) => line(text, name, &format!("not eligible: {why}")),
        }
    }
}
