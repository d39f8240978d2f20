//! Performance variables: their properties, and the functions that read them. The layers below always count, with or without tools.

use crate::constants::*;
use crate::engine::{CommObject, Engine, JobFabric};
use crate::lanes::{self, MessageCarriers};
use crate::settings::Audience::{self, Developer, Tuner, User};
use crate::settings::SettingPart::{self, Collective, Fabric, Ofi, P2p, Shm, Verbs, Waiting};
use crate::state::state;
use std::ffi::c_int;
use std::sync::OnceLock;
use weft_fabric::{CopyModel, Fabric as _, Unit};

/// A performance variable.
pub struct Gauge {
    /// Name that MPI_T_pvar_get_info returns.
    pub name: String,
    /// Part of the library. It determines the category of the variable.
    pub part: SettingPart,
    /// Audience of the variable. It determines the verbosity of the variable.
    pub audience: Audience,
    /// Class of the variable.
    pub class: PvarClass,
    /// Source of the value.
    pub source: PvarSource,
    /// Description in a line, with the unit.
    pub doc: String,
}

/// Class of a performance variable (MPI 5.0, section 15.3.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PvarClass {
    State,
    Level,
    HighWatermark,
    Counter,
    /// A counter of bytes.
    Aggregate,
}

/// Source of a variable's value.
#[derive(Clone, Copy)]
pub enum PvarSource {
    /// Value of the process; 0 before MPI_Init.
    Process(fn(&Engine) -> u64),
    /// Present level, and the highest level since the marks were reset.
    Mark(fn(&Engine) -> u64, fn(&Engine) -> u64),
    /// Value of a communicator.
    Comm(fn(&CommObject) -> u64),
    /// Number of collective operations of a kind that were started.
    Started(usize),
}

impl PvarClass {
    pub fn constant(self) -> c_int {
        match self {
            PvarClass::State => MPI_T_PVAR_CLASS_STATE,
            PvarClass::Level => MPI_T_PVAR_CLASS_LEVEL,
            PvarClass::HighWatermark => MPI_T_PVAR_CLASS_HIGHWATERMARK,
            PvarClass::Counter => MPI_T_PVAR_CLASS_COUNTER,
            PvarClass::Aggregate => MPI_T_PVAR_CLASS_AGGREGATE,
        }
    }

    /// Returns true if the variable shows the present value, and cannot be started, stopped, reset or written.
    pub fn shows(self) -> bool {
        matches!(self, PvarClass::State | PvarClass::Level)
    }

    /// Returns the name of the class, for lists.
    pub fn word(self) -> &'static str {
        match self {
            PvarClass::State => "state",
            PvarClass::Level => "level",
            PvarClass::HighWatermark => "high mark",
            PvarClass::Counter => "counter",
            PvarClass::Aggregate => "bytes",
        }
    }
}

/// Returns all variables. The position of a variable in the list is its index in MPI_T.
pub fn gauges() -> &'static [Gauge] {
    static ALL: OnceLock<Vec<Gauge>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut all = Vec::new();
        messages(&mut all);
        queues(&mut all);
        collectives(&mut all);
        multicasts(&mut all);
        streams(&mut all);
        waiting(&mut all);
        fabrics(&mut all);
        all
    })
}

/// Adds variables of a part of the library: name, audience, class, source, description.
fn add<const N: usize>(
    all: &mut Vec<Gauge>,
    part: SettingPart,
    list: [(&str, Audience, PvarClass, PvarSource, &str); N],
) {
    all.extend(list.map(|(name, audience, class, source, doc)| {
        let name = format!("{}.{name}", super::category_tree::name_of(part));
        Gauge { name, part, audience, class, source, doc: doc.to_owned() }
    }));
}

/// Source of a variable that a layer below counts.
macro_rules! read {
    ($engine:ident => $value:expr) => {
        PvarSource::Process(|$engine| $value as u64)
    };
}

fn messages(all: &mut Vec<Gauge>) {
    use PvarClass::{Aggregate, Counter};
    #[rustfmt::skip]
    add(all, P2p, [
        ("sent_eager", User, Counter, read!(e => e.endpoint().counts().often.eager),
         "messages sent at once, those of collective operations among them"),
        ("sent_eager_bytes", User, Aggregate, read!(e => e.endpoint().counts().often.bytes_eager),
         "payload of messages sent at once, in bytes"),
        ("sent_rendezvous", User, Counter, read!(e => e.endpoint().counts().seldom.rendezvous),
         "messages that were offered to their receivers, because they were large or without credit"),
        ("sent_rendezvous_bytes", User, Aggregate,
         read!(e => e.endpoint().counts().seldom.bytes_rendezvous),
         "payload of messages that were offered, in bytes"),
        ("out_of_credit", Tuner, Counter, read!(e => e.endpoint().counts().seldom.out_of_credit),
         "messages that were offered because the credit of their receiver was used up"),
        ("shelved", Tuner, Counter, read!(e => e.endpoint().counts().seldom.staged),
         "offered messages whose payload was staged: copied into memory that their receiver sees"),
        ("sent_in_pieces", Tuner, Counter, read!(e => e.endpoint().counts().seldom.sent_pieces),
         "offered messages that their receiver could not read, so that they were sent in pieces"),
        ("received", User, Counter, read!(e => e.endpoint().counts().often.received),
         "messages received, counted when their operation ends"),
        ("received_bytes", User, Aggregate, read!(e => e.endpoint().counts().often.bytes_received),
         "payload received, in bytes"),
        ("received_by_read", Tuner, Counter, read!(e => e.endpoint().counts().seldom.read),
         "offered messages that were read from the memory of their senders"),
        ("received_shared", Tuner, Counter, read!(e => e.endpoint().counts().seldom.shared),
         "offered messages that sender and receiver could copy together"),
        ("received_in_pieces", Tuner, Counter, read!(e => e.endpoint().counts().seldom.pieces),
         "offered messages that were asked for in pieces"),
        ("received_written", Tuner, Counter, read!(e => e.endpoint().counts().seldom.written),
         "messages whose sender wrote them to their receive"),
        ("started_by_handler", Tuner, Counter, read!(e => e.endpoint().counts().seldom.interrupted),
         "reads and writes of messages that a signal handler started"),
        ("peers", Tuner, PvarClass::Level, read!(e => e.endpoint().peers()),
         "processes with which payload was exchanged"),
    ]);
}

fn queues(all: &mut Vec<Gauge>) {
    use PvarClass::{Counter, HighWatermark, Level};
    #[rustfmt::skip]
    add(all, P2p, [
        ("unexpected", User, Counter,
         PvarSource::Process(|e| e.endpoint().fabric().counters().value(e.endpoint().arrivals())),
         "messages that came before a receive that takes them"),
        ("unexpected_now", User, Level, read!(e => e.endpoint().unexpected().0),
         "messages in the queue of those that came before their receive"),
        ("unexpected_most", User, HighWatermark,
         PvarSource::Mark(|e| e.endpoint().unexpected().0 as u64, |e| e.endpoint().unexpected().1 as u64),
         "most messages that were in the queue of those that came before their receive"),
        ("unexpected_bytes_now", User, Level, read!(e => e.endpoint().unexpected().2),
         "payload in the queue of messages that came before their receive, in bytes"),
        ("unexpected_bytes_most", User, HighWatermark,
         PvarSource::Mark(|e| e.endpoint().unexpected().2, |e| e.endpoint().unexpected().3),
         "most payload that was in the queue of messages that came before their receive, in bytes"),
        ("posted_now", User, Level, read!(e => e.endpoint().posted().0),
         "receives that wait for their message"),
        ("posted_most", User, HighWatermark,
         PvarSource::Mark(|e| e.endpoint().posted().0 as u64, |e| e.endpoint().posted().1 as u64),
         "most receives that waited for their message"),
        ("queue_passed", Tuner, Counter, read!(e => e.endpoint().passed()),
         "entries of the queues of receives and messages that were looked at and did not match"),
        ("comm_unexpected_now", User, Level,
         PvarSource::Comm(|c| c.engine().endpoint().load_of(|context| c.owns(context)).1 as u64),
         "messages of a communicator that came before their receive"),
        ("comm_posted_now", User, Level,
         PvarSource::Comm(|c| c.engine().endpoint().load_of(|context| c.owns(context)).0 as u64),
         "receives of a communicator that wait for their message"),
    ]);
}

fn collectives(all: &mut Vec<Gauge>) {
    add(
        all,
        Collective,
        [(
            "comm_operations",
            User,
            PvarClass::Counter,
            PvarSource::Comm(|c| c.started.get()),
            "collective operations started on a communicator",
        )],
    );
    all.extend(super::collective_counts::KINDS.iter().enumerate().map(|(kind, name)| {
        let short = name.strip_prefix("MPI_").unwrap_or(name).to_lowercase();
        let doc = match short.as_str() {
            "other" => "collective operations started, of all other kinds".to_owned(),
            _ => format!("{name} started, blocking, nonblocking or persistent"),
        };
        Gauge {
            name: format!("{}.{short}", super::category_tree::name_of(Collective)),
            part: Collective,
            audience: User,
            class: PvarClass::Counter,
            source: PvarSource::Started(kind),
            doc,
        }
    }));
}

fn multicasts(all: &mut Vec<Gauge>) {
    use PvarClass::Counter;
    /// Source of a count of the multicast groups of the process.
    macro_rules! count {
        ($field:ident) => {
            PvarSource::Process(|e| e.endpoint().multicasts().counts().$field)
        };
    }
    #[rustfmt::skip]
    add(all, Collective, [
        ("multicasts", User, Counter, count!(sent),
         "multicasts of collective operations that this process was the root of"),
        ("multicast_datagrams", Tuner, Counter, count!(datagrams),
         "multicast datagrams that came, whatever became of them; repairs by message are not among them"),
        ("multicast_naks", Tuner, Counter, count!(naks_sent),
         "times that a root was asked for datagrams that had not come in time: lost, or not sent yet"),
        ("multicast_naks_heard", Tuner, Counter, count!(naks_heard),
         "times that this process was asked for datagrams of its multicasts"),
        ("multicast_repairs", User, Counter, count!(repairs),
         "multicast datagrams that came as messages, or by multicast again, because they were asked for"),
        ("multicast_repairs_sent", User, Counter, count!(repairs_sent),
         "multicast datagrams that were sent again as messages, because somebody asked for them"),
        ("multicast_recasts_sent", User, Counter, count!(recasts_sent),
         "multicast datagrams that were multicast again, because somebody asked for them"),
        ("multicast_naks_joined", Developer, Counter, count!(naks_joined),
         "times that this process was asked for what it had multicast again a moment before"),
        ("multicast_duplicates", Developer, Counter, count!(duplicates),
         "multicast datagrams that were here already"),
        ("multicast_foreign", Developer, Counter, count!(foreign),
         "multicast datagrams and questions of nobody's group, or that cannot be"),
        ("multicast_dropped", Tuner, Counter, count!(dropped),
         "multicast datagrams that came too early, when there was no room to keep them"),
        ("multicast_acks", Developer, Counter, count!(acks_sent),
         "messages that told the root of broadcasts how far this process is"),
    ]);
}

fn streams(all: &mut Vec<Gauge>) {
    use PvarClass::{Aggregate, Counter};
    /// Source of a count of the streams of the process.
    macro_rules! count {
        ($field:ident) => {
            PvarSource::Process(|e| e.endpoint().streams().counts().$field)
        };
    }
    #[rustfmt::skip]
    add(all, Collective, [
        ("stream_small", User, Counter, count!(small),
         "messages of collective operations that streams sent at once"),
        ("stream_segmented", User, Counter, count!(segmented),
         "messages of collective operations that streams sent in segments"),
        ("stream_blocks", User, Counter, count!(blocks),
         "messages of collective operations that streams sent in blocks of registered memory"),
        ("stream_pieces", Tuner, Counter, count!(pieces),
         "segments and blocks of those messages that were written"),
        ("stream_grants", Developer, Counter, count!(grants),
         "times that a sender was given places for segments"),
        ("stream_received", User, Counter, count!(received),
         "messages of collective operations that came over streams"),
        ("stream_forwarded", Tuner, Counter, count!(forwarded),
         "messages and segments of streams that were passed on from where they were received"),
        ("stream_stalls", Tuner, Counter, count!(stalls),
         "messages of streams that had to stop after they had begun, until they were given room"),
        ("stream_saved_bytes", Tuner, Aggregate, count!(saved_bytes),
         "payload of messages of streams that came before anybody asked for them, in bytes"),
    ]);
}

fn waiting(all: &mut Vec<Gauge>) {
    use PvarClass::Counter;
    #[rustfmt::skip]
    add(all, Waiting, [
        ("polls", Developer, Counter, read!(e => e.endpoint().counts().often.polls),
         "times that the library looked for anything that could move on"),
        ("request_looks", Developer, Counter, PvarSource::Process(|_| state().looked.get()),
         "requests of arrays that were looked at, to find those that are over"),
        ("tasks", Tuner, Counter, read!(e => e.task_counts().started),
         "operations that were started to go on beside the program: nonblocking collective ones and such"),
        ("task_polls", Developer, Counter, read!(e => e.task_counts().polled),
         "times that one of those was moved on"),
        ("task_looks", Developer, Counter, read!(e => e.task_counts().looked),
         "times that the library looked at what one of those waits for"),
        ("yields", Tuner, Counter, read!(e => e.policy().yielded()),
         "times that a wait gave its processor away"),
        ("sleeps", User, Counter, read!(e => e.policy().slept()),
         "times that a wait was about to sleep"),
        ("went_home", Tuner, Counter, read!(e => e.policy().went_home()),
         "times that a rank which shares processors went to its own (WEFT_PLACES)"),
        ("helper_rounds", Tuner, Counter, PvarSource::Process(|_| crate::hand_over::counts().rounds),
         "times that the helper thread worked"),
        ("helper_refusals", Developer, Counter, PvarSource::Process(|_| crate::hand_over::counts().refusals),
         "times that the helper thread found the program inside the library, or nothing outstanding"),
        ("helper_signals", Tuner, Counter, PvarSource::Process(|_| crate::hand_over::counts().signals),
         "times that the helper thread signalled the program's"),
    ]);
}

fn node(engine: &Engine) -> &JobFabric {
    engine.endpoint().fabric()
}

/// Returns the fabrics that connect the ranks, as a value of the enumeration.
fn kind(engine: &Engine) -> u64 {
    let node = node(engine);
    match (node.shm().is_some(), node.verbs().is_some(), node.ofi().is_some()) {
        (false, false, false) => 0,
        (true, false, false) => 1,
        (true, true, _) => 2,
        (false, true, _) => 3,
        (true, false, true) => 4,
        (false, false, true) => 5,
    }
}

/// Adds the costs by which copy methods are selected: times in picoseconds, rates in MB/s, sizes in bytes.
fn copy_costs(all: &mut Vec<Gauge>) {
    fn cost<const AT: usize>(engine: &Engine) -> u64 {
        let field = CopyModel::FIELDS[AT];
        let shown = field.shown(node(engine).copies().model());
        let most = if field.unit == Unit::Time { shown * 1e6 } else { shown };
        most.round() as u64
    }
    macro_rules! costs {
        ($($at:literal)*) => { [$(cost::<$at>),*] };
    }
    let costs: [fn(&Engine) -> u64; CopyModel::FIELDS.len()] = costs!(
        0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16
        17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35
    );
    for (field, cost) in CopyModel::FIELDS.iter().zip(costs) {
        let unit = if field.unit == Unit::Time { "picoseconds" } else { field.unit.name() };
        let name = format!("copy_{}", field.name.replace('.', "_"));
        let doc = format!("what copies are chosen by, in {unit}: {}", field.meaning);
        add(all, Shm, [(&name, Tuner, PvarClass::Level, PvarSource::Process(cost), &doc)]);
    }
}

fn fabrics(all: &mut Vec<Gauge>) {
    use PvarClass::{Counter, Level};
    #[rustfmt::skip]
    add(all, Fabric, [
        ("kind", User, PvarClass::State, PvarSource::Process(kind), "what connects the ranks"),
    ]);
    #[rustfmt::skip]
    add(all, Shm, [
        ("allocated", Tuner, Level, read!(e => node(e).shm().map_or(0, |shm| shm.allocated())),
         "shared memory that was allocated for peers to reach, in bytes"),
        ("past_caches", Tuner, Counter, read!(e => node(e).copies().counted_past()),
         "copies for other ranks that went past the caches"),
    ]);
    copy_costs(all);
    /// Source of a number of the verbs fabric; 0 if there is none.
    macro_rules! verbs {
        ($verbs:ident => $value:expr) => {
            PvarSource::Process(|e| node(e).verbs().map_or(0, |$verbs| $value as u64))
        };
    }
    #[rustfmt::skip]
    add(all, Verbs, [
        ("connections", User, Level, verbs!(v => v.connections()),
         "processes with which there is a connection"),
        ("registered", User, Level, verbs!(v => v.registrations().registered),
         "memory that is registered with the adapters, in bytes"),
        ("registrations", Tuner, Level, verbs!(v => v.registrations().entries),
         "pieces of memory that are registered with the adapters"),
        ("registrations_made", Tuner, Counter, verbs!(v => v.registrations().made),
         "pieces of memory that were registered with the adapters"),
        ("registrations_found", Tuner, Counter, verbs!(v => v.registrations().found),
         "uses of memory that found it registered"),
        ("datagrams_lost", Tuner, Counter, verbs!(v => v.datagrams_lost()),
         "multicast datagrams that found no room here, to be sent or to be kept"),
    ]);
    /// Source of a number of the libfabric network; 0 if there is none.
    macro_rules! ofi {
        ($use:ident) => {
            PvarSource::Process(|e| node(e).ofi().map_or(0, |ofi| ofi.usage().$use as u64))
        };
    }
    #[rustfmt::skip]
    add(all, Ofi, [
        ("peers", User, Level, ofi!(peers),
         "processes with which something was exchanged: connections, where the provider makes some"),
        ("buffers", User, Level, ofi!(buffers), "memory of the library's own buffers, in bytes"),
        ("registered", User, Level, ofi!(registered),
         "memory that is registered with the provider, in bytes"),
        ("registrations", Tuner, Level, ofi!(registrations),
         "pieces of memory that are registered with the provider"),
        ("registrations_made", Tuner, Counter, ofi!(registrations_made),
         "pieces of memory that were registered with the provider"),
        ("registrations_found", Tuner, Counter, ofi!(registrations_found),
         "uses of memory that found it registered"),
        ("repeated", User, Counter, ofi!(repeated),
         "writes and reads that were repeated over another rail, because theirs had failed"),
        ("strangers", User, Counter, ofi!(strangers),
         "messages of processes that do not belong to the job, dropped"),
    ]);
}

impl Gauge {
    /// Reads a value of the process; 0 before MPI_Init. Values of messages are sums over all lanes.
    pub fn of_process(&self, read: fn(&Engine) -> u64) -> u64 {
        let own = state().engine.get().map_or(0, |engine| read(engine));
        match (self.part, self.class) {
            (SettingPart::P2p, PvarClass::State) => own,
            (SettingPart::P2p, _) => own + lanes::sum(read),
            _ => own,
        }
    }
}

/// Reads a value of a communicator: the sum over all communicators that carry its messages.
pub fn of_comm(read: fn(&CommObject) -> u64, comm: &CommObject) -> u64 {
    match MessageCarriers::of(comm) {
        None => read(comm),
        Some(carriers) => {
            carriers.all().iter().map(|carrier| carrier.hold(|_, comm| read(comm))).sum()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_say_the_category_and_are_unique() {
        let mut seen = HashSet::new();
        for gauge in gauges() {
            let category = crate::chapters::tools::category_tree::name_of(gauge.part);
            assert!(gauge.name.starts_with(&format!("{category}.")), "{}", gauge.name);
            assert!(seen.insert(&gauge.name), "{} twice", gauge.name);
            assert!(!gauge.doc.is_empty() && !gauge.doc.contains('\t'), "{}", gauge.name);
        }
    }

    #[test]
    fn high_marks_have_a_source_that_marks_and_nothing_else_does() {
        for gauge in gauges() {
            let marks = matches!(gauge.source, PvarSource::Mark(..));
            assert_eq!(gauge.class == PvarClass::HighWatermark, marks, "{}", gauge.name);
        }
    }
}
