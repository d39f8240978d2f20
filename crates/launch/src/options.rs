//! The command line. It accepts the options of other MPI launchers: long options with one dash or two, `--option=value`, and
//! programs separated by `:`.

mod allocated;
mod names;
mod placement;
mod room;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weft_bootstrap::host_names::is_local;
use weft_bootstrap::slot_table::Limit;

use crate::allocation::Allocation;
use crate::checks;
use crate::deadlock::DeadlockPolicy;
use crate::hosts::{self, Host, MAX_RANKS, SlotOrder};
use crate::placement::Placement;
use crate::signs::{self, AliveTimes};
use names::{Meaning, NAMES};
use room::room;

/// The variable that names the command which reaches hosts.
pub const LAUNCH_AGENT: &str = "WEFT_RSH";

/// Default of the maximum time until a host must have answered.
const LAUNCH_TIMEOUT: Duration = Duration::from_secs(30);

/// One program of the job.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct App {
    /// Number of processes. 0 while the command line is read, if the user has given no number.
    pub count: usize,
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// Variables to set.
    pub environment: Vec<(OsString, OsString)>,
    /// Working directory of the processes.
    pub directory: Option<OsString>,
}

/// Options of a job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// The programs, in the order of their ranks.
    pub apps: Vec<App>,
    /// Processors of the ranks.
    pub placement: Placement,
    /// Print the processors of each rank.
    pub report_bindings: bool,
    /// Print `[rank] ` before each line of output.
    pub tag_output: bool,
    /// Time after which the hang report is printed and the job ends.
    pub timeout: Option<Duration>,
    /// Treatment of a deadlock.
    pub deadlock: DeadlockPolicy,
    /// Time between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// Hosts of the ranks. If empty, all ranks run on this host.
    pub hosts: Vec<Host>,
    /// Hosts that a batch system has given to this job, if a process may run on another host.
    pub allocation: Option<Allocation>,
    /// Order in which ranks take the slots of the hosts.
    pub map: SlotOrder,
    /// Command with arguments that is used instead of ssh. The host and a command line are appended.
    pub launch_agent: Option<Vec<String>>,
    /// Maximum time until a host must have answered.
    pub launch_timeout: Duration,
    /// Maximum number of processes of this job and of the jobs that it spawns.
    pub universe: Option<Limit>,
    /// Times of the signs of life between hosts.
    pub alive: AliveTimes,
}

impl Options {
    /// Returns the number of processes of the job.
    pub fn size(&self) -> usize {
        self.apps.iter().map(|app| app.count).sum()
    }

    /// Returns the index of each rank's program.
    pub fn programs(&self) -> impl Iterator<Item = usize> {
        let apps = self.apps.iter().enumerate();
        apps.flat_map(|(number, app)| std::iter::repeat_n(number, app.count))
    }
}

/// The outcome of reading a command line.
#[derive(Debug, PartialEq, Eq)]
pub enum CommandLine {
    /// Run a job.
    Run(Box<Options>),
    /// `--agent`: run the ranks of one host for another `mpiexec`.
    Agent,
    /// `--show-allocation`: print the hosts that a batch system has given to this job.
    ShowAllocation(Box<Options>),
    /// `--help`.
    Help,
    /// `--version`.
    Version,
}

fn text(value: &OsStr) -> String {
    value.to_string_lossy().into_owned()
}

fn seconds(option: &str, value: &OsStr) -> Result<Duration, String> {
    text(value)
        .parse()
        .ok()
        .filter(|seconds: &f64| *seconds >= 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| format!("{option}: {value:?} is not a number of seconds"))
}

fn deadlock_policy(option: &str, value: &OsStr) -> Result<DeadlockPolicy, String> {
    let given = text(value);
    let policy = DeadlockPolicy::NAMES.iter().find(|(name, _)| *name == given);
    policy
        .map(|&(_, policy)| policy)
        .ok_or_else(|| format!("{option}: {value:?} is not end, report or off"))
}

/// Splits `NAME=VALUE`. If there is only a name, the value comes from `mpiexec`'s own environment.
fn export(
    value: &OsStr,
    get: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Option<(OsString, OsString)>, String> {
    let bytes = value.as_bytes();
    let (name, value) = match bytes.iter().position(|&b| b == b'=') {
        Some(at) => (&bytes[..at], Some(OsStr::from_bytes(&bytes[at + 1..]).to_os_string())),
        None => (bytes, get(&text(value))),
    };
    if name.is_empty() || name.contains(&0) {
        return Err(format!("-x: {:?} names no variable", OsStr::from_bytes(name)));
    }
    // Variables that are not set in this process are not passed on.
    Ok(value.map(|value| (OsStr::from_bytes(name).to_os_string(), value)))
}

/// Splits a command into words.
fn words(option: &str, value: &OsStr) -> Result<Option<Vec<String>>, String> {
    let words: Vec<String> = text(value).split_whitespace().map(str::to_owned).collect();
    if words.is_empty() {
        return Err(format!("{option}: {value:?} names no command"));
    }
    Ok(Some(words))
}

/// Reads a number of processes, which may be at most `most`.
fn count(option: &str, value: &OsStr, most: usize, what: &str) -> Result<usize, String> {
    let count = text(value).parse().ok().filter(|count| (1..=most).contains(count));
    count.ok_or_else(|| format!("{option}: {value:?} is not a number of processes {what}"))
}

/// Parser of a command line, with the options that have been read so far.
struct Parser<'g> {
    options: Options,
    /// Variables for all programs.
    global: Vec<(OsString, OsString)>,
    /// Number of processes on each host, if the user has given it.
    each: Option<usize>,
    /// Looks up a variable of the environment.
    get: &'g dyn Fn(&str) -> Option<OsString>,
}

impl Parser<'_> {
    /// Handles an option for `app` or for all programs. `given` is the option in the user's spelling, and `value` returns the next
    /// argument. Returns a command if the option requests something other than a job, such as help.
    fn take(
        &mut self,
        given: &str,
        option: Meaning,
        app: &mut App,
        mut value: impl FnMut() -> Result<OsString, String>,
    ) -> Result<Option<CommandLine>, String> {
        let options = &mut self.options;
        match option {
            Meaning::Count => {
                let range = format!("from 1 to {MAX_RANKS}");
                app.count = count(given, &value()?, MAX_RANKS, &range)?;
            }
            Meaning::Export => app.environment.extend(export(&value()?, self.get)?),
            Meaning::Env => app.environment.push((value()?, value()?)),
            Meaning::GlobalEnv => self.global.push((value()?, value()?)),
            Meaning::Directory => app.directory = Some(value()?),
            Meaning::Bind => self.bind_to(given, &text(&value()?))?,
            Meaning::ReportBindings => options.report_bindings = true,
            Meaning::Tag => options.tag_output = true,
            Meaning::Timeout => options.timeout = Some(seconds(given, &value()?)?),
            Meaning::Check => self.global.push((checks::SWITCH.into(), "1".into())),
            Meaning::CheckPoison => self.global.extend(checks::poison()),
            Meaning::CheckSlow => self.global.extend(checks::slow()),
            Meaning::CheckSuppress => self.global.extend(checks::suppress(given, &value()?)?),
            Meaning::Deadlock => options.deadlock = deadlock_policy(given, &value()?)?,
            Meaning::Grace => options.grace = seconds(given, &value()?)?,
            Meaning::Hosts => {
                let list = text(&value()?);
                hosts::list(&list, &mut options.hosts)
                    .map_err(|error| format!("{given} {list}: {error}"))?;
            }
            Meaning::HostFile => {
                let value = value()?;
                let path = text(&value);
                let lines = hosts::read(value.as_ref())
                    .map_err(|error| format!("{given} {path}: {error}"))?;
                hosts::file(&path, &lines, &mut options.hosts)?;
            }
            Meaning::PerHost => self.each = Some(count(given, &value()?, usize::MAX, "a host")?),
            Meaning::MapBy => self.map_by(given, &text(&value()?))?,
            Meaning::RankBy => self.rank_by(given, &text(&value()?))?,
            Meaning::LaunchAgent => options.launch_agent = words(given, &value()?)?,
            Meaning::LaunchTimeout => options.launch_timeout = seconds(given, &value()?)?,
            Meaning::AliveInterval => options.alive.interval = seconds(given, &value()?)?,
            Meaning::AliveTimeout => options.alive.timeout = seconds(given, &value()?)?,
            Meaning::Universe => {
                let value = value()?;
                options.universe = Some(Limit::parse(&text(&value)).ok_or_else(|| {
                    format!("{given}: {value:?} is not SYSTEM, INFINITE or a number of processes")
                })?);
            }
            Meaning::Agent => return Ok(Some(CommandLine::Agent)),
            Meaning::ShowAllocation => {
                let mut options = std::mem::take(options);
                self.allocate(&mut options)?;
                return Ok(Some(CommandLine::ShowAllocation(options.into())));
            }
            Meaning::Ignored(values) => {
                for _ in 0..values {
                    value()?;
                }
            }
            Meaning::Help => return Ok(Some(CommandLine::Help)),
            Meaning::Version => return Ok(Some(CommandLine::Version)),
        }
        Ok(None)
    }

    /// Checks the options. Applies options for all programs or hosts to each program or host.
    fn finish(mut self) -> Result<Options, String> {
        let mut options = std::mem::take(&mut self.options);
        self.allocate(&mut options)?;
        let Parser { mut global, get, .. } = self;
        global.extend(room(&options, get));
        if options.size() > MAX_RANKS {
            let size = options.size();
            return Err(format!("{size} processes, limit {MAX_RANKS}; -n sets another number"));
        }
        options.alive.check()?;
        for app in &mut options.apps {
            app.environment.splice(0..0, global.iter().cloned());
            for (name, value) in &app.environment {
                let bytes = name.as_bytes();
                if bytes.is_empty() || bytes.contains(&b'=') {
                    return Err(format!(
                        "-env: {name:?} (value {value:?}) is not the name of a variable"
                    ));
                }
            }
        }
        if options.launch_agent.is_none() && options.hosts.iter().all(|host| is_local(&host.name)) {
            options.hosts.clear();
        }
        for app in &options.apps {
            let own = app.environment.iter().rev().find(|(name, _)| name == checks::SWITCH);
            let setting = own.map(|(_, value)| value.clone()).or_else(|| get(checks::SWITCH));
            checks::missing(setting.as_deref()).map_or(Ok(()), Err)?;
        }
        // A time-out of 0 means no time-out, so that the option can override WEFT_TIMEOUT.
        options.timeout = options.timeout.filter(|timeout| !timeout.is_zero());
        Ok(options)
    }
}

/// Removes a backslash from an argument such as `\:` or `\\:`. `\:` stands for a colon that does not end a program.
fn unquoted(argument: OsString) -> OsString {
    match argument.as_bytes() {
        [b'\\', rest @ .., b':'] if rest.iter().all(|&byte| byte == b'\\') => {
            OsStr::from_bytes(&argument.as_bytes()[1..]).to_os_string()
        }
        _ => argument,
    }
}

/// Reads a command line, without the name of `mpiexec`. `get` looks up a variable of the environment.
pub fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    get: &dyn Fn(&str) -> Option<OsString>,
) -> Result<CommandLine, String> {
    let mut arguments = arguments.into_iter().peekable();
    let options = Options {
        grace: Duration::from_secs(1),
        launch_timeout: LAUNCH_TIMEOUT,
        ..Options::default()
    };
    let mut parser = Parser { options, global: Vec::new(), each: None, get };
    if let Some(value) = get(LAUNCH_AGENT).filter(|value| !value.is_empty()) {
        parser.options.launch_agent = words(LAUNCH_AGENT, &value)?;
    }
    let time = |name: &str| {
        let value = get(name).filter(|value| !value.is_empty());
        value.map(|value| seconds(name, &value)).transpose()
    };
    parser.options.timeout = time("WEFT_TIMEOUT")?;
    if let Some(value) = get("WEFT_DEADLOCK").filter(|value| !value.is_empty()) {
        parser.options.deadlock = deadlock_policy("WEFT_DEADLOCK", &value)?;
    }
    let alive = &mut parser.options.alive;
    alive.interval = time(signs::INTERVAL)?.unwrap_or(alive.interval);
    alive.timeout = time(signs::TIMEOUT)?.unwrap_or(alive.timeout);
    loop {
        let mut app = App::default();
        while let Some(argument) = arguments.next_if(|a| a.as_bytes().starts_with(b"-")) {
            if argument == "--" {
                break;
            }
            let given = text(&argument);
            let bare = given.trim_start_matches('-');
            let (name, mut inline) = match bare.split_once('=') {
                Some((name, value)) => (name, Some(OsString::from(value))),
                None => (bare, None),
            };
            let Some(&(_, option)) = NAMES.iter().find(|(n, _)| *n == name) else {
                return Err(format!("unknown option {given:?}; mpiexec --help lists them"));
            };
            let value = || {
                let value = inline.take().or_else(|| arguments.next());
                value.ok_or_else(|| format!("option {given} needs a value"))
            };
            if let Some(command) = parser.take(&given, option, &mut app, value)? {
                return Ok(command);
            }
        }
        let mut more = false;
        for argument in arguments.by_ref() {
            if argument == ":" {
                more = true;
                break;
            }
            app.command.push(unquoted(argument));
        }
        if app.command.is_empty() {
            return Err("no program to run; mpiexec --help lists the options".into());
        }
        parser.options.apps.push(app);
        if !more {
            return Ok(CommandLine::Run(parser.finish()?.into()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::BindPolicy;
    use weft_topology::TopologyLevel;

    fn read(line: &str) -> Result<CommandLine, String> {
        let get = |name: &str| (name == "HERE").then(|| "seen".into());
        parse(line.split_whitespace().map(OsString::from), &get)
    }

    fn run(line: &str) -> Options {
        match read(line) {
            Ok(CommandLine::Run(options)) => *options,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn pair(name: &str, value: &str) -> (OsString, OsString) {
        (name.into(), value.into())
    }

    #[test]
    fn one_dash_two_dashes_and_equals_are_the_same() {
        for line in
            ["-n 4 a -n 5", "-np 4 a -n 5", "--np=4 a -n 5", "--n 4 a -n 5", "-n 4 -- a -n 5"]
        {
            let options = run(line);
            assert_eq!(options.apps[0].count, 4, "{line}");
            assert_eq!(options.apps[0].command, ["a", "-n", "5"], "{line}");
        }
        assert_eq!(run("a").size(), 1);
    }

    #[test]
    fn programs_have_their_own_options() {
        let options =
            run("-genv G 1 -n 2 -env A 1 a x : -n 3 -wdir /tmp -x B=2 -x HERE -x NOT b : c");
        assert_eq!(options.size(), 6);
        assert_eq!(options.apps[0].environment, [pair("G", "1"), pair("A", "1")]);
        assert_eq!(options.apps[1].directory, Some("/tmp".into()));
        assert_eq!(
            options.apps[1].environment,
            [pair("G", "1"), pair("B", "2"), pair("HERE", "seen")]
        );
        assert_eq!(options.apps[2].command, ["c"]);
    }

    #[test]
    fn settings_of_the_job() {
        let options = run("--bind-to core -l --timeout 1.5 -n 2 a");
        let core = Some(BindPolicy::Level(TopologyLevel::Core));
        assert_eq!((options.placement.bind, options.tag_output), (core, true));
        assert_eq!(options.timeout, Some(Duration::from_millis(1500)));
        assert_eq!(run("a").grace, Duration::from_secs(1));
        let alive = run("--alive-interval 0.5 --alive-timeout 0 a").alive;
        assert_eq!((alive.interval, alive.timeout), (Duration::from_millis(500), Duration::ZERO));
    }

    #[test]
    fn a_quoted_colon_is_an_argument() {
        let options = run(r"a \: \\: x: \x : b :x \:\");
        assert_eq!(options.apps[0].command, ["a", ":", r"\:", "x:", r"\x"]);
        assert_eq!(options.apps[1].command, ["b", ":x", r"\:\"]);
    }

    #[test]
    fn common_options_without_effect_are_taken() {
        let line = "--oversubscribe --allow-run-as-root --mca btl self -launcher fork -ppn 4 \
                    -host localhost:4 --map-by :OVERSUBSCRIBE -n 2 a";
        assert_eq!(run(line).size(), 2);
    }

    #[test]
    fn hosts_are_those_that_are_not_this_one_alone() {
        let names = |line: &str| {
            let hosts = run(line).hosts.into_iter().map(|host| (host.name, host.slots));
            hosts.collect::<Vec<_>>()
        };
        let pair = |name: &str, slots: usize| (name.to_owned(), slots);
        assert_eq!(names("--hosts localhost:2,127.0.0.1 a"), []);
        assert_eq!(names("--hosts localhost,b:3 a"), [pair("localhost", 1), pair("b", 3)]);
        assert_eq!(names("--hosts b,c -ppn 2 a"), [pair("b", 2), pair("c", 2)]);
        // A command that the user names is used for all hosts, even for this host.
        assert_eq!(names("--launch-agent rsh -H localhost a"), [pair("localhost", 1)]);
        assert_eq!(words("-", OsStr::new(" rsh  -l me")).unwrap().unwrap(), ["rsh", "-l", "me"]);
        let options = run("--map-by node:PE=2 a");
        assert_eq!(options.map, SlotOrder::Node);
        assert_eq!(read("--agent").unwrap(), CommandLine::Agent);
    }

    #[test]
    fn wrong_lines_name_the_argument() {
        for (line, words) in [
            ("-n 0 a", "\"0\""),
            ("-n x a", "\"x\""),
            ("-n", "-n needs a value"),
            ("-n 2", "no program"),
            ("a : : b", "no program"),
            ("--frobnicate a", "--frobnicate"),
            ("-host other:0 a", "other:0"),
            ("-f /no/hosts a", "/no/hosts"),
            ("-ppn x a", "\"x\""),
            ("-usize 0 a", "\"0\" is not SYSTEM"),
            ("--launch-timeout soon a", "soon"),
            ("--alive-timeout soon a", "soon"),
            ("--alive-interval 2 --alive-timeout 3 a", "at most half"),
            ("--bind-to moon a", "moon"),
            ("--timeout -1 a", "-1"),
            ("--timeout NaN a", "NaN"),
            ("-x =1 a", "no variable"),
            ("-env A=B 1 a", "A=B"),
            ("-n 65536 a : b", "limit"),
        ] {
            let error = read(line).unwrap_err();
            assert!(error.contains(words), "{line}: {error}");
        }
    }

    /// Options that the help leaves out: `mpiexec` itself starts agents, and the other names are single letters for the help.
    const UNTOLD: [&str; 4] = ["agent", "h", "?", "V"];

    #[test]
    fn the_help_names_each_option_in_lines_of_at_most_100_columns() {
        let help = include_str!("help.txt");
        let names = |name: &str| {
            let bounds = [' ', ',', '\n', '.', ')', ']'];
            help.match_indices(&format!("-{name}")).any(|(at, text)| {
                let end = help[at + text.len()..].chars().next();
                end.is_some_and(|end| bounds.contains(&end))
            })
        };
        for (name, _) in NAMES.iter().filter(|(name, _)| !UNTOLD.contains(name)) {
            assert!(names(name), "-{name} is not in the help");
        }
        assert_eq!(help.lines().find(|line| line.len() > 100), None);
    }

    #[test]
    fn help_and_version() {
        assert_eq!(read("--help").unwrap(), CommandLine::Help);
        assert_eq!(read("-V").unwrap(), CommandLine::Version);
    }
}
