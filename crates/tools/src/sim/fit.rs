//! `weft sim fit FILE`: a machine file of this host, or of two hosts and their network, fitted to measurements.
//!
//! Two ranks of this host measure ([`rank`]). With `--hosts A,B`, the same measurements run between the two hosts, too.
//!
//! ```text
//!   send.overhead, receive.matching    the processors' parts of a message of 8 bytes between the hosts
//!   send.latency                       the rest of such a message
//!   write, read, atomic                as a message; MPI_Get and MPI_Fetch_and_op of 8 bytes
//!   bandwidth                          a window of messages of 512 KiB; with a bucket, streams that empty it
//!   bucket                             messages and streams after rests ([`bucket`]), if there is a bucket
//!   local                              the same within a host; `transfers` are the rest of messages of 64 bytes to 4 MiB, found by
//!                                      simulation ([`transfers`]), and `bandwidth` is the rate between the two longest
//!   local.unaided                      the same while both ranks send, so that neither helps the other
//!   local.reads, local.writes          MPI_Get of 512 bytes to 256 KiB that the other rank has just written; copies into memory that the
//!                                      other rank has read
//!   host.copy                          between hosts, the rest of a message of 16 KiB, which is copied at both ends; within a host, a
//!                                      copy by the processor, of 64 KiB to 4 MiB
//!   host.entry                         a reduction on MPI_COMM_SELF
//!   host.turn                          time that a message of 8 bytes takes longer under `weft sim run`
//!   host.interrupt                     the receiver sleeps
//! ```

mod bucket;
pub mod rank;
pub mod transfers;

use super::failure::SimFailure;
use super::output_file::unwritten;
use crate::machine::MachineInfo;
use crate::tune::real::{Here, SentData};
use bucket::RailRates;
use clap::Parser;
use rank::{COPIES, LENGTHS, LONG_ROUNDS, MEDIUM, NetworkFigures, PASSES, READS, ROUNDS};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use transfers::TransferTimes;
use weft_fabric::{CopyModel, Unit};
use weft_fabric_sim::Machine;
use weft_intranode::{ModelLoader, ModelSource};

/// Arguments of `weft sim fit`.
#[derive(Parser, Debug)]
pub struct FitArgs {
    /// Machine file to write.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Two hosts, as mpiexec takes them: measures the network between them, too. Without this option the machine is this host.
    #[arg(long, value_name = "A,B")]
    pub hosts: Option<String>,
    /// Line in the file about the hosts and their network.
    #[arg(long, value_name = "TEXT")]
    pub about: Option<String>,
}

/// Figures of two ranks that a machine file must meet.
struct FittedFigures<'a> {
    /// Figures within a host.
    near: &'a NetworkFigures,
    /// Figures between the hosts; `None` for a machine of a single host.
    far: Option<&'a NetworkFigures>,
    model: &'a CopyModel,
    /// Number of processors that ranks of a host may use.
    processors: usize,
}

/// Time of a copy of a few bytes, in microseconds: `host.call`. A short message is copied at both ends.
const CALL: f64 = 0.02;

/// Numbers of the file that are not measured.
const ASSUMED: &[&str] = &["host.call"];

/// Numbers of a network that are not measured.
const ASSUMED_NETWORK: &[&str] = &[
    "nodes",
    "rail.mtu",
    "rail.round_trip",
    "rail.write.overhead",
    "rail.write.latency",
    "rail.read.overhead",
    "rail.atomic.overhead",
];

/// Measures, and writes the machine file. Returns the text to print.
pub fn run(args: &FitArgs) -> Result<String, SimFailure> {
    let hosts = args.hosts.as_ref().map(|list| list.split(',').map(str::to_owned).collect());
    let hosts: Option<Vec<String>> = hosts;
    if hosts.as_ref().is_some_and(|hosts| hosts.len() != 2) {
        return Err(SimFailure::Request("--hosts: two hosts, as in node0,node1".to_owned()));
    }
    let name = args.file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into());
    let measure = |hosts: &[String]| Here::new(0, hosts, SentData::Written)?.network();
    let far = hosts.as_deref().map(measure).transpose().map_err(SimFailure::Run)?;
    let near = measure(&[]).map_err(SimFailure::Run)?;
    let loaded = ModelLoader::start(&ModelSource::parse("").map_err(SimFailure::Run)?, 2);
    let model = loaded.map_err(SimFailure::Run)?.wait().model;
    let info = MachineInfo::look();
    let figures =
        FittedFigures { near: &near, far: far.as_ref(), model: &model, processors: info.allowed };
    let times = transfers::fitted(&near.messages, |times| figures.file(&name, times, None))?;
    let written = args.file.display().to_string();
    let write = |file: &Path, turn: Option<f64>| {
        let text = head(args, &info) + &figures.file(&name, &times, turn);
        // The numbers are checked as a reader of the file checks them.
        Machine::parse(&written, &text).map_err(|e| SimFailure::Run(e.to_string()))?;
        std::fs::write(file, &text).map_err(|e| unwritten(file, &e))
    };
    let turn = match far {
        Some(_) => None,
        None => {
            let draft = tempfile::Builder::new().suffix(".toml").tempfile();
            let draft = draft.map_err(|e| SimFailure::Run(format!("a temporary file: {e}")))?;
            write(draft.path(), None)?;
            let here = Here::new(0, &[], SentData::Written).map_err(SimFailure::Run)?;
            let message = here.message_in_turns(draft.path()).map_err(SimFailure::Run)?;
            Some((message - near.short).max(0.0))
        }
    };
    write(&args.file, turn)?;
    let between = far.map_or(String::new(), |far| format!("between the hosts:\n{far}"));
    Ok(format!("{between}within a host:\n{near}machine file: {written}\n"))
}

/// Returns the comment at the head of the file: how, when and on what the numbers were measured.
fn head(args: &FitArgs, info: &MachineInfo) -> String {
    let processor = info.processor.as_deref().unwrap_or("an unknown processor");
    let kernel = info.kernel.as_deref().unwrap_or("an unknown release");
    let about = args.about.as_ref().map_or(String::new(), |about| format!("# {about}\n"));
    let hosts = if args.hosts.is_some() { " --hosts A,B" } else { "" };
    let what = if args.hosts.is_some() { "A network of hosts" } else { "A host" };
    format!(
        "# {what}, fitted by measurements. Times in us, rates in MB/s, sizes in bytes; machines/README.md has the keys.\n\
         #\n\
         # Written by `weft sim fit FILE{hosts}` on {}, on {processor}, {} processors, Linux {kernel}.\n\
         {about}\
         # \"fitted\" marks a number that was chosen to meet a measurement: the quickest of {} short rounds, in {PASSES} passes, because\n\
         # other work on the machine makes rounds only longer. A round that is long was repeated {} times.\n\n",
        date(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())),
        info.allowed,
        PASSES * ROUNDS,
        PASSES * LONG_ROUNDS,
    )
}

/// Returns the date of a time in seconds since 1970, by Hinnant's algorithm `civil_from_days`.
fn date(seconds: u64) -> String {
    // Years begin in March, so that a leap day is the last day of a year.
    let days = seconds / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        0..10 => (era * 400 + year, month + 3),
        _ => (era * 400 + year + 1, month - 9),
    };
    format!("{year}-{month:02}-{day:02}")
}

/// Rounds to three digits, because the measurements are not more precise.
fn digits(value: f64) -> f64 {
    format!("{:.2e}", value.max(0.0)).parse().unwrap_or(value)
}

/// Returns the rate of the copies at both ends by which a message of [`MEDIUM`] bytes takes as long as measured. It is at most the
/// rate of a copy by the processor. `bandwidth`: rate of the transfer itself, in MB/s.
fn copy_rate(figures: &NetworkFigures, bandwidth: f64) -> f64 {
    let copies = figures.medium - figures.short - MEDIUM as f64 / bandwidth;
    let rate = 2.0 * MEDIUM as f64 / copies;
    if copies > 0.0 { rate.min(figures.copy) } else { figures.copy }
}

/// Returns the rate of the bytes between the two longest messages, in MB/s.
fn far_rate(messages: &TransferTimes) -> f64 {
    let [.., shorter, longest] = messages;
    let bytes = LENGTHS[LENGTHS.len() - 1] - LENGTHS[LENGTHS.len() - 2];
    bytes as f64 / (longest - shorter).max(f64::MIN_POSITIVE)
}

/// Returns the text of a list of a machine file. `what` is measured, and each time is chosen to meet the measurement of its length. No
/// time is shorter than the time before it, although a measurement may be.
fn listed(what: &str, entries: impl IntoIterator<Item = FittedEntry>) -> String {
    let mut text = String::new();
    let mut least: f64 = 0.0;
    for FittedEntry { bytes, time, measured } in entries {
        least = least.max(digits(time));
        writeln!(text, "    {{ bytes = {bytes}, time = {least} }},  # {what}: {measured:.2} us")
            .expect("a string grows");
    }
    text
}

/// A time of a list of a machine file, and the measurement that the time meets. Times in microseconds.
struct FittedEntry {
    bytes: usize,
    time: f64,
    measured: f64,
}

/// Returns the entries of `local.transfers`. The longest message has no entry: its time is in `bandwidth`.
fn transfer_entries(times: &TransferTimes, messages: &TransferTimes) -> Vec<FittedEntry> {
    let entry =
        |at: usize| FittedEntry { bytes: LENGTHS[at], time: times[at], measured: messages[at] };
    (0..times.len() - 1).map(entry).collect()
}

/// Returns the entries of `local.unaided`: a transfer, and the time by which an exchange takes longer than a message. Shorter messages
/// are copied at both ends, so that no rank helps another.
fn unaided_entries(times: &TransferTimes, figures: &NetworkFigures) -> Vec<FittedEntry> {
    let entry = |at: usize| {
        let longer = figures.exchanges[at] - figures.messages[at];
        FittedEntry {
            bytes: LENGTHS[at],
            time: times[at] + longer,
            measured: figures.exchanges[at],
        }
    };
    (0..times.len()).filter(|&at| LENGTHS[at] > MEDIUM).map(entry).collect()
}

/// Returns the entries of `local.reads`. Each time is that of a read minus that of a read of 8 bytes, because the
/// simulation charges the calls and the latency of the first line separately.
fn read_entries(figures: &NetworkFigures) -> Vec<FittedEntry> {
    let entry = |(&measured, bytes): (&f64, usize)| FittedEntry {
        bytes,
        time: measured - figures.short_read,
        measured,
    };
    figures.reads.iter().zip(READS).map(entry).collect()
}

/// Returns the entries of `local.writes`.
fn write_entries(figures: &NetworkFigures) -> Vec<FittedEntry> {
    let entry =
        |(&measured, bytes): (&f64, usize)| FittedEntry { bytes, time: measured - CALL, measured };
    figures.writes.iter().zip(READS).map(entry).collect()
}

/// Returns the entries of `host.copies`. The longest copy has no entry: its time is in `copy`.
fn copy_entries(figures: &NetworkFigures) -> Vec<FittedEntry> {
    let entry =
        |(&measured, bytes): (&f64, usize)| FittedEntry { bytes, time: measured - CALL, measured };
    figures.copies.iter().zip(COPIES).take(COPIES.len() - 1).map(entry).collect()
}

/// Returns the rate of the bytes between the two longest copies, in MB/s: at most the rate of copies in the processor's caches.
fn far_copy_rate(figures: &NetworkFigures) -> f64 {
    let [.., shorter, longest] = figures.copies;
    let bytes = COPIES[COPIES.len() - 1] - COPIES[COPIES.len() - 2];
    let rate = bytes as f64 / (longest - shorter).max(f64::MIN_POSITIVE);
    rate.min(figures.copy)
}

impl FittedFigures<'_> {
    /// Returns the tables of the file. `turn` is the value of `host.turn` in microseconds, if it has been measured.
    fn file(&self, name: &str, times: &TransferTimes, turn: Option<f64>) -> String {
        let (about, nodes) = match self.far {
            Some(_) => ("TCP between hosts, one connection a pair; fitted between two hosts", 64),
            None => ("a host; fitted between two of its ranks", 1),
        };
        let each = if self.far.is_some() { 1 } else { self.processors };
        let mut text = format!(
            "name = {name:?}\nabout = {about:?}\nnodes = {nodes}\nranks_per_node = {each}\n\n"
        );
        text += &self.host(turn);
        text += &self.far.map_or_else(|| unused_rail(self.near), rail);
        text += &self.local(times);
        for field in CopyModel::FIELDS {
            let value = field.shown(self.model);
            let value = if field.unit == Unit::Size { value } else { digits(value) };
            writeln!(text, "{} = {value}", field.name).expect("a string grows");
        }
        let network = if self.far.is_some() { ASSUMED_NETWORK } else { &[] };
        let assumed = ASSUMED.iter().chain(network);
        let assumed: Vec<String> = assumed.map(|path| format!("    \"{path}\",\n")).collect();
        text + &format!("\n[evidence]\nassumed = [\n{}]\n", assumed.concat())
    }

    fn host(&self, turn: Option<f64>) -> String {
        let figures = self.far.unwrap_or(self.near);
        let (copy, how, copies) = match self.far {
            Some(far) => {
                let how = format!(
                    "a message of 16 KiB, {:.1} us; a copy by the processor has {:.0}",
                    far.medium, far.copy
                );
                (copy_rate(far, RailRates::of(far).line()), how, String::new())
            }
            None => {
                let list = listed("a copy", copy_entries(self.near));
                let list = format!(
                    "copies = [                  # fitted: copies by a processor\n{list}]\n"
                );
                (far_copy_rate(self.near), "copies of 2 MiB and 4 MiB".to_owned(), list)
            }
        };
        format!(
            "[host]
copy = {copy}                 # fitted: {how}
{copies}reduce = {reduce}               # fitted: MPI_Reduce_local of 64 KiB
call = {CALL}                 # assumed
entry = {entry}                 # fitted: MPI_Allreduce of 8 bytes on MPI_COMM_SELF
{turn}interrupt = {interrupt}             # fitted: a round trip to a receiver that sleeps, less one to a receiver that polls

",
            copy = digits(copy),
            reduce = digits(figures.reduce),
            entry = digits(figures.entry),
            turn = turn.map_or_else(String::new, |turn| format!(
                "turn = {}                 # fitted: a message of 8 bytes takes so much longer under `weft sim run` than measured, {:.3} us\n",
                digits(turn),
                self.near.short
            )),
            interrupt = digits(figures.wake),
        )
    }

    /// Returns the table `local`, and the head of the table `copies`.
    fn local(&self, times: &TransferTimes) -> String {
        let near = self.near;
        // All messages are matched in the same time.
        let matching = self.far.unwrap_or(near).receive;
        format!(
            "[local]
overhead = {overhead}              # fitted: 16 sends in a row within a host
latency = {latency}             # fitted: half of a round trip of 8 bytes within a host, {short:.3} us
bandwidth = {rate}            # fitted: messages of 2 MiB and 4 MiB
shared = true
busy = true                 # processors carry payloads
transfers = [               # fitted: with them, simulated messages of these lengths take as long as measured
{transfers}]
unaided = [                 # fitted: messages to each other at the same time, of which no rank helps with the other's
{unaided}]
reads = [                   # fitted: MPI_Get with a flush of what the other rank has just written
{reads}]
writes = [                  # fitted: copies into memory that the other rank has read
{writes}]

[copies]                    # measured by the library, as `weft info` shows them
",
            overhead = digits(near.send.min(near.short)),
            latency = digits(near.short - near.send - matching - 2.0 * CALL),
            short = near.short,
            rate = digits(far_rate(&near.messages)),
            transfers = listed("a message", transfer_entries(times, &near.messages)),
            unaided = listed("an exchange", unaided_entries(times, near)),
            reads = listed("a read", read_entries(near)),
            writes = listed("a copy", write_entries(near)),
        )
    }
}

/// Returns the rail of a machine of one host. No message goes over the rail, but all messages are matched in its time.
fn unused_rail(near: &NetworkFigures) -> String {
    format!(
        "[[rail]]                    # no message goes this way: all ranks are on one host
bandwidth = 1000
mtu = 1500
write = {{ overhead = 1, latency = 1 }}
second = {{ overhead = 0, latency = 0 }}
read = {{ overhead = 1, latency = 1 }}
atomic = {{ overhead = 1, latency = 1 }}
send = {{ overhead = 1, latency = 1 }}
receive = {{ matching = {} }}                     # fitted: 16 receives in a row of messages that have arrived

",
        digits(near.receive)
    )
}

/// Returns the table of the rail between the hosts.
fn rail(far: &NetworkFigures) -> String {
    let latency = digits(far.short - far.send - far.receive - 2.0 * CALL);
    let [send, receive] = [far.send, far.receive].map(digits);
    let rest = |whole: f64, part: f64| digits(whole - part);
    let rates = RailRates::of(far);
    let how = match rates.bucket {
        Some(_) => "streams after a rest, which empty the bucket",
        None => "a window of 4 messages of 512 KiB",
    };
    let bucket = rates.bucket.map_or_else(String::new, |bucket| {
        format!(
            "bucket = {{ bytes = {}, line = {} }}     # fitted: streams, and messages of 16 KiB and 64 KiB, after a rest\n",
            digits(bucket.bytes),
            digits(bucket.line)
        )
    });
    format!(
        "[[rail]]                    # one TCP connection
bandwidth = {rate}            # fitted: {how}
{bucket}mtu = 1500                  # assumed; without effect, because a flag follows each payload
round_trip = 20             # assumed, as the library does: the kernel carries messages
send = {{ overhead = {send}, latency = {latency} }}      # fitted: 16 sends in a row; half of a round trip of 8 bytes, {short:.2} us
receive = {{ matching = {receive} }}                     # fitted: 16 receives in a row of messages that have arrived
write = {{ overhead = {send}, latency = {written} }}     # assumed: a frame, as a message, for which nobody waits
second = {{ overhead = 0.0, latency = 0.0 }}     # data and flag are one frame
read = {{ overhead = {send}, latency = {read} }}      # fitted: MPI_Get of 8 bytes and a flush, {get:.2} us
atomic = {{ overhead = {send}, latency = {atomic} }}    # fitted: MPI_Fetch_and_op and a flush, {fetch:.2} us

",
        rate = digits(rates.bandwidth),
        short = far.short,
        written = rest(far.short, send),
        read = rest(far.get, send),
        get = far.get,
        atomic = rest(far.atomic, send),
        fetch = far.atomic,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_fabric_sim::units::Time;

    fn figures() -> NetworkFigures {
        NetworkFigures {
            short: 10.0,
            medium: 20.0,
            send: 4.0,
            receive: 1.0,
            wake: 30.0,
            rate: 4000.0,
            put: 21.0,
            get: 22.0,
            atomic: 24.0,
            copy: 9000.0,
            reduce: 8000.0,
            entry: 0.1,
            messages: [1.0, 1.2, 3.0, 5.0, 7.0, 20.0, 70.0, 200.0, 300.0, 600.0, 1000.0],
            exchanges: [1.1, 1.3, 3.2, 5.4, 6.0, 22.0, 130.0, 390.0, 580.0, 1100.0, 1900.0],
            reads: [22.2, 22.5, 23.0, 24.0, 23.5, 50.0],
            short_read: 22.0,
            writes: [0.1, 0.4, 0.8, 1.5, 4.0, 15.0],
            copies: [7.0, 28.0, 130.0, 300.0, 700.0],
            after_rest: rank::StreamFigures::default(),
        }
    }

    fn parsed(figures: &FittedFigures<'_>) -> Machine {
        let turn = figures.far.is_none().then_some(0.05);
        let text = figures.file("mine", &figures.near.messages, turn);
        Machine::parse("mine.toml", &text).unwrap_or_else(|e| panic!("{e}\n{text}"))
    }

    #[test]
    fn a_file_of_figures_is_a_machine_that_meets_them() {
        let near =
            NetworkFigures { short: 0.5, send: 0.1, receive: 0.05, rate: 9000.0, ..figures() };
        let (model, far) = (&CopyModel::GENERIC, figures());
        let two = parsed(&FittedFigures { near: &near, far: Some(&far), model, processors: 4 });
        let rail = &two.rail[0];
        let message = rail.send.overhead.us() + rail.send.latency.us() + rail.receive.matching.us();
        assert!((message + 2.0 * CALL - 10.0).abs() < 0.05, "{message}");
        assert!((rail.read.overhead.us() + rail.read.latency.us() - 22.0).abs() < 0.05);
        assert_eq!((two.nodes.0, two.ranks_per_node.0), (64, 1));
        assert_eq!(two.host.turn, Time(0), "not measured between hosts");
        assert!(rail.bucket.is_none());
        // 2 x 16384 / (20 - 10 - 16384 / 4000) = 5550
        assert_eq!(copy_rate(&figures(), 4000.0).round(), 5550.0);
        assert_eq!(copy_rate(&NetworkFigures { medium: 14.0, ..figures() }, 4000.0), 9000.0);
    }

    #[test]
    fn a_host_is_a_machine_of_one_node() {
        let near = NetworkFigures { short: 0.5, send: 0.1, receive: 0.05, ..figures() };
        let (model, far) = (&CopyModel::GENERIC, None);
        let host = parsed(&FittedFigures { near: &near, far, model, processors: 4 });
        let (local, matching) = (&host.local, host.rail[0].receive.matching.us());
        let message = local.overhead.us() + local.latency.us() + matching + 2.0 * CALL;
        assert!((message - 0.5).abs() < 0.005, "{message}");
        assert_eq!((host.nodes.0, host.ranks_per_node.0), (1, 4));
        assert_eq!(host.host.turn, Time::from_us(0.05));
        // A message of 256 KiB takes 70 us, and an exchange 60 us more. A read of a word takes 22 us of 24 us.
        assert_eq!(local.unaided_time(256 << 10), local.time(256 << 10) + 60_000_000);
        assert_eq!(local.unaided_time(512), local.time(512));
        assert_eq!(local.read_time(16 << 10), 2_000_000);
        assert_eq!(local.read_time(64 << 10), 2_000_000, "no less than a shorter read");
        assert_eq!(host.stage_time(8 << 10), 780_000, "without the time before each copy");
        // A copy of 4 MiB takes 400 us more than a copy of 2 MiB.
        let [shorter, longest] = [2, 4].map(|mib| host.host.copy_time(mib << 20));
        assert!((longest - shorter).abs_diff(400_000_000) < 1_000_000, "{shorter}, {longest}");
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        let day = 86_400;
        for (days, text) in [(0, "1970-01-01"), (59, "1970-03-01"), (19_782, "2024-02-29")] {
            assert_eq!(date(days * day), text);
        }
    }
}
