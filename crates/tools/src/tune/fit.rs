//! Fit of a machine file to a network: `weft tune --fit FILE --hosts A,B`.
//!
//! The same measurements ([`super::real::fit_rank`]) run twice: between the two hosts, and between two ranks of this host.
//!
//! ```text
//!   send.overhead, receive.matching    the processors' parts of a message of 8 bytes
//!   send.latency                       the rest of such a message
//!   write, read, atomic                as a message; MPI_Get and MPI_Fetch_and_op of 8 bytes
//!   bandwidth                          a window of messages of 512 KiB
//!   host.copy                          the rest of a message of 16 KiB, which is copied at both ends
//!   host.interrupt                     the receiver sleeps
//!   local                              a message of 8 bytes within a host
//! ```

use super::real::fit_rank::{LONG_ROUNDS, MEDIUM, NetworkFigures, PASSES, ROUNDS};
use super::real::{Here, SentData};
use super::unwritten;
use crate::machine::MachineInfo;
use crate::sim::SimFailure;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use weft_fabric::{CopyModel, Unit};
use weft_fabric_sim::Machine;
use weft_intranode::{ModelLoader, ModelSource};

/// Part of the time of a message within a host that the sender's processor takes.
const LOCAL_OVERHEAD: f64 = 0.3;

/// Numbers of the file that are not measured.
const ASSUMED: &[&str] = &[
    "nodes",
    "host.call",
    "host.entry",
    "rail.mtu",
    "rail.round_trip",
    "rail.write.overhead",
    "rail.write.latency",
    "rail.read.overhead",
    "rail.atomic.overhead",
    "local.bandwidth",
];

/// Measures the network between `hosts`, and writes the machine file. Returns the text to print.
pub fn run(path: &Path, hosts: &str, about: Option<&str>) -> Result<String, SimFailure> {
    let hosts: Vec<String> = hosts.split(',').map(str::to_owned).collect();
    if hosts.len() != 2 {
        return Err(SimFailure::Request("--hosts: two hosts, as in node0,node1".to_owned()));
    }
    let name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into());
    let measure = |hosts: &[String]| Here::new(0, hosts, SentData::Written)?.network();
    let far = measure(&hosts).map_err(SimFailure::Run)?;
    let near = measure(&[]).map_err(SimFailure::Run)?;
    let loaded = ModelLoader::start(&ModelSource::parse("").map_err(SimFailure::Run)?, 2);
    let model = loaded.map_err(SimFailure::Run)?.wait().model;
    let text = head(about) + &file(&name, &far, &near, &model);
    // The numbers are checked as a reader of the file checks them.
    let written = path.display().to_string();
    Machine::parse(&written, &text).map_err(|e| SimFailure::Run(e.to_string()))?;
    std::fs::write(path, &text).map_err(|e| unwritten(path, &e))?;
    Ok(format!("{far:#?}\nwithin a host: {near:#?}\nmachine file: {written}\n"))
}

/// Returns the comment at the head of the file: how, when and on what the numbers were measured.
fn head(about: Option<&str>) -> String {
    let info = MachineInfo::look();
    let processor = info.processor.unwrap_or_else(|| "an unknown processor".to_owned());
    let kernel = info.kernel.unwrap_or_else(|| "an unknown release".to_owned());
    let about = about.map_or(String::new(), |about| format!("# {about}\n"));
    format!(
        "# A network of hosts, fitted by measurements. Times in us, rates in MB/s, sizes in bytes; README.md here has the keys.\n\
         #\n\
         # Written by `weft tune --fit FILE --hosts A,B` on {}, on {processor}, {} processors, Linux {kernel}.\n\
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
/// rate of a copy by the processor.
fn copy_rate(far: &NetworkFigures) -> f64 {
    let copies = far.medium - far.short - MEDIUM as f64 / far.rate;
    let rate = 2.0 * MEDIUM as f64 / copies;
    if copies > 0.0 { rate.min(far.copy) } else { far.copy }
}

/// Returns the tables of the file.
fn file(name: &str, far: &NetworkFigures, near: &NetworkFigures, model: &CopyModel) -> String {
    let latency = digits(far.short - far.send - far.receive);
    let [send, receive] = [far.send, far.receive].map(digits);
    let local = digits(LOCAL_OVERHEAD * near.short);
    let rest = |whole: f64, part: f64| digits(whole - part);
    let mut text = format!(
        "name = {name:?}
about = \"TCP between hosts, one connection a pair; fitted between two hosts\"
nodes = 64                  # assumed: as many as the map of this name is made for

[host]
copy = {copy}                 # fitted: a message of 16 KiB, {medium:.1} us; a copy by the processor has {memory:.0}
reduce = {reduce}               # fitted: MPI_Reduce_local of 64 KiB
call = 0.02                 # assumed
entry = 0.1                 # assumed
interrupt = {interrupt}             # fitted: a round trip to a receiver that sleeps, less one to a receiver that polls

[[rail]]                    # one TCP connection
bandwidth = {rate}            # fitted: a window of 4 messages of 512 KiB
mtu = 1500                  # assumed; without effect, because a flag follows each payload
round_trip = 20             # assumed, as the library does: the kernel carries messages
send = {{ overhead = {send}, latency = {latency} }}      # fitted: 16 sends in a row; half of a round trip of 8 bytes, {short:.2} us
receive = {{ matching = {receive} }}                     # fitted: 16 receives in a row of messages that have arrived
write = {{ overhead = {send}, latency = {written} }}     # assumed: a frame, as a message, for which nobody waits
second = {{ overhead = 0.0, latency = 0.0 }}     # data and flag are one frame
read = {{ overhead = {send}, latency = {read} }}      # fitted: MPI_Get of 8 bytes and a flush, {get:.2} us
atomic = {{ overhead = {send}, latency = {atomic} }}    # fitted: MPI_Fetch_and_op and a flush, {fetch:.2} us

[local]
overhead = {local}              # fitted: half of a round trip of 8 bytes within a host, {within:.2} us; its division is assumed
latency = {beyond}
bandwidth = {memory:.0}            # assumed: one copy
shared = true

[copies]                    # measured by the library, as `weft info` shows them
",
        copy = digits(copy_rate(far)),
        medium = far.medium,
        memory = far.copy,
        reduce = digits(far.reduce),
        interrupt = digits(far.wake),
        rate = digits(far.rate),
        short = far.short,
        written = rest(far.short, send),
        read = rest(far.get, send),
        get = far.get,
        atomic = rest(far.atomic, send),
        fetch = far.atomic,
        within = near.short,
        beyond = rest(near.short, local),
    );
    for field in CopyModel::FIELDS {
        let value = field.shown(model);
        let value = if field.unit == Unit::Size { value } else { digits(value) };
        writeln!(text, "{} = {value}", field.name).expect("a string grows");
    }
    let assumed: Vec<String> = ASSUMED.iter().map(|path| format!("    \"{path}\",\n")).collect();
    text + &format!("\n[evidence]\nassumed = [\n{}]\n", assumed.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        }
    }

    #[test]
    fn a_file_of_figures_is_a_machine_that_meets_them() {
        let near = NetworkFigures { short: 0.5, ..figures() };
        let text = head(Some("two hosts")) + &file("mine", &figures(), &near, &CopyModel::GENERIC);
        let machine = Machine::parse("mine.toml", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let rail = &machine.rail[0];
        let message = rail.send.overhead.us() + rail.send.latency.us() + rail.receive.matching.us();
        assert!((message - 10.0).abs() < 0.05, "{message}");
        assert!((rail.read.overhead.us() + rail.read.latency.us() - 22.0).abs() < 0.05);
        // 2 x 16384 / (20 - 10 - 16384 / 4000) = 5550
        assert_eq!(copy_rate(&figures()).round(), 5550.0);
        assert_eq!(copy_rate(&NetworkFigures { medium: 14.0, ..figures() }), 9000.0);
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        let day = 86_400;
        for (days, text) in [(0, "1970-01-01"), (59, "1970-03-01"), (19_782, "2024-02-29")] {
            assert_eq!(date(days * day), text);
        }
    }
}
