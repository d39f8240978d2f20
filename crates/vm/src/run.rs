//! A run: starts the machines, makes their rails, runs COMMAND, waits.

use super::frame::{self, AgentSetup, RunCommand, VmFrame};
use super::host::VmUnavailable;
use super::image::VmImage;
use super::log::Log;
use super::options::{self, VmArgs};
use super::qemu::{MachineShape, VirtualMachine};
use super::{FAILED, TIMED_OUT};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Time limits of the attempts to boot. A boot takes seconds, even on a busy machine. But an emulated kernel sometimes hangs before
/// its first message, in about one of twenty boots on a machine with much more work than processors.
const BOOT: [Duration; 3] =
    [Duration::from_secs(45), Duration::from_secs(60), Duration::from_secs(90)];
/// Maximum time for a step of the preparation.
const STEP: Duration = Duration::from_secs(90);
/// Interval at which the control file is read.
const GLANCE: Duration = Duration::from_millis(50);
/// Number of cables: two rails, and a control network, which is not under test.
const WIRES: usize = 3;

/// Number of a machine, and a frame of its agent; `None` if the agent is gone.
type Event = (usize, Option<VmFrame>);

/// A machine, and the progress of its command.
struct Guest {
    machine: VirtualMachine,
    state: State,
    out: Lines,
    errors: Lines,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Booting,
    /// Ready for a command.
    Idle,
    Running,
    Ended(i32),
    /// Killed through the control file.
    Killed,
}

/// Runs COMMAND in new machines. Returns its exit code.
pub fn run(args: &VmArgs, image: &VmImage, folder: &Path, log: &Log) -> Result<u8, VmUnavailable> {
    let out = out_folder(folder)?;
    let agent = std::env::current_exe().map_err(|e| format!("our own program: {e}"))?;
    let here = std::env::current_dir().map_err(|e| format!("the working directory: {e}"))?;
    let mut wanted = vec![crate::root(), here.clone()];
    wanted.extend(agent.parent().map(Path::to_owned));
    // Cargo's target directory, if it is not in the project.
    wanted.extend(std::env::var_os("CARGO_TARGET_DIR").map(|d| here.join(d)));
    for folder in &args.show {
        let path = fs::canonicalize(folder);
        wanted.push(path.map_err(|e| format!("--show {}: {e}", folder.display()))?);
    }
    let kept = options::kept(&wanted);
    let words = [
        options::word("agent", std::slice::from_ref(&agent))?,
        options::word("out", std::slice::from_ref(&out))?,
        options::word("keep", &kept)?,
    ];
    let shape = MachineShape {
        image,
        cpus: args.cpus,
        memory: args.memory,
        mtu: args.mtu.0.max(args.mtu.1),
        words: &words,
        out: &out,
        logs: folder,
    };
    let prefix = args.prefix()?;
    let booted = log.step("booted", || {
        let mut session = boot(args.machines(), &shape, &out, log)?;
        for number in 0..args.machines() {
            let environment = options::remote(number, &agent, &out);
            let setup = AgentSetup { environment, prefix: prefix.clone() };
            session.send(number, &VmFrame::Setup(setup))?;
            let script = crate::root().join("crates/vm/guest/rails.sh").display().to_string();
            let words = [vec!["sh".to_owned(), script], args.rails(number)].concat();
            session.run(
                number,
                RunCommand { words, environment: None, folder: None, limited: false },
            )?;
        }
        session.wait(STEP, |s| matches!(s, State::Ended(_)), "make the rails")?;
        for (number, guest) in session.guests.iter().enumerate() {
            if guest.state != State::Ended(0) {
                return Err(format!(
                    "machine {number} could not make its rails: {:?} (what it said stands above)",
                    guest.state
                ));
            }
        }
        Ok(session)
    });
    let mut session = booted?;
    log.note(&format!("running {:?}", args.command));
    let began = Instant::now();
    let chosen = |number: usize| args.only.is_none_or(|only| usize::from(only) == number);
    for number in (0..args.machines()).filter(|&n| chosen(n)) {
        let run = RunCommand {
            words: args.command.clone(),
            environment: Some(options::environment(number, &agent, &out)),
            folder: Some(here.display().to_string()),
            limited: true,
        };
        session.run(number, run)?;
    }
    let limit = Duration::from_secs(args.timeout);
    let done = session.watch(limit, |s| s != State::Running)?;
    session.flush();
    log.note(&format!("COMMAND took {:.2} s", began.elapsed().as_secs_f64()));
    if !done {
        log.say(&format!(
            "{:?} did not end within --timeout {} seconds: killed",
            args.command.join(" "),
            args.timeout
        ));
        return Ok(TIMED_OUT);
    }
    Ok(session.code())
}

/// Boots the machines until they wait for a command.
fn boot<'a>(
    machines: usize,
    shape: &MachineShape,
    out: &Path,
    log: &'a Log,
) -> Result<Session<'a>, String> {
    let mut last = String::new();
    for limit in BOOT {
        if !last.is_empty() {
            log.say(&format!("{last}\nstarting it again"));
        }
        let (sender, events) = channel();
        let out = out.to_owned();
        let mut session = Session { guests: Vec::new(), events, out, obeyed: 0, log };
        session.start(machines, shape, sender)?;
        match session.wait(limit, |s| s == State::Idle, "boot") {
            Ok(()) => return Ok(session),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Makes an empty folder that everybody may write to.
fn out_folder(folder: &Path) -> Result<PathBuf, String> {
    let out = folder.join("out");
    let failed = |e: std::io::Error| format!("{}: {e}", out.display());
    if out.exists() {
        fs::remove_dir_all(&out).map_err(failed)?;
    }
    fs::create_dir_all(&out).map_err(failed)?;
    fs::set_permissions(&out, fs::Permissions::from_mode(0o1777)).map_err(failed)?;
    fs::write(out.join("control"), "").map_err(failed)?;
    let all = fs::Permissions::from_mode(0o666);
    fs::set_permissions(out.join("control"), all).map_err(failed)?;
    Ok(out)
}

struct Session<'a> {
    guests: Vec<Guest>,
    events: Receiver<Event>,
    out: PathBuf,
    /// Number of bytes of the control file that were executed.
    obeyed: usize,
    log: &'a Log,
}

impl Session<'_> {
    fn start(
        &mut self,
        machines: usize,
        shape: &MachineShape,
        sender: Sender<Event>,
    ) -> Result<(), String> {
        let mut ends: Vec<Vec<UnixStream>> = (0..machines).map(|_| Vec::new()).collect();
        if let [left, right] = ends.as_mut_slice() {
            for _ in 0..WIRES {
                let (a, b) = UnixStream::pair().map_err(|e| format!("a cable: {e}"))?;
                left.push(a);
                right.push(b);
            }
        }
        for (number, wires) in ends.iter().enumerate() {
            let machine = VirtualMachine::start(shape, number, wires)?;
            let mut agent = machine.agent.try_clone().map_err(|e| format!("the agent: {e}"))?;
            let sender = sender.clone();
            thread::spawn(move || {
                loop {
                    let frame = frame::read(&mut agent).ok().flatten();
                    let last = frame.is_none();
                    if sender.send((number, frame)).is_err() || last {
                        break;
                    }
                }
            });
            let lines = |standard| Lines {
                label: if machines == 1 { String::new() } else { format!("vm{number}| ") },
                standard,
                part: Vec::new(),
            };
            let (out, errors) = (lines(true), lines(false));
            self.guests.push(Guest { machine, state: State::Booting, out, errors });
        }
        Ok(())
    }

    fn send(&mut self, number: usize, frame: &VmFrame) -> Result<(), String> {
        let agent = &mut self.guests[number].machine.agent;
        frame::write(agent, frame).map_err(|e| format!("machine {number}: its agent is gone: {e}"))
    }

    fn run(&mut self, number: usize, run: RunCommand) -> Result<(), String> {
        self.guests[number].state = State::Running;
        self.send(number, &VmFrame::Run(run))?;
        // COMMAND's standard input is empty on both machines.
        self.send(number, &VmFrame::InputEnd)
    }

    /// Waits for a step that does not belong to COMMAND. It is an error if the step takes longer than `limit`.
    fn wait(
        &mut self,
        limit: Duration,
        done: impl Fn(State) -> bool,
        what: &str,
    ) -> Result<(), String> {
        if self.watch(limit, done)? {
            return Ok(());
        }
        let said: String = self.guests.iter().map(|g| g.machine.last_words()).collect();
        Err(format!("the virtual machine did not {what} within {limit:?}; it said last:{said}"))
    }

    /// Passes on the output of the machines until all machines are `done` or the time limit is reached. Returns true if all
    /// machines are `done`.
    fn watch(&mut self, limit: Duration, done: impl Fn(State) -> bool) -> Result<bool, String> {
        let end = Instant::now() + limit;
        loop {
            if self.guests.iter().all(|g| done(g.state)) {
                return Ok(true);
            }
            if Instant::now() >= end {
                return Ok(false);
            }
            match self.events.recv_timeout(GLANCE) {
                Ok((number, frame)) => self.heard(number, frame)?,
                Err(RecvTimeoutError::Timeout) => self.peek()?,
                Err(RecvTimeoutError::Disconnected) => {}
            }
            self.obey();
        }
    }

    fn heard(&mut self, number: usize, frame: Option<VmFrame>) -> Result<(), String> {
        let guest = &mut self.guests[number];
        match frame {
            Some(VmFrame::Ready) => guest.state = State::Idle,
            Some(VmFrame::Output(bytes)) => guest.out.add(&bytes, self.log),
            Some(VmFrame::Errors(bytes)) => guest.errors.add(&bytes, self.log),
            Some(VmFrame::Ended(code)) => {
                guest.state = State::Ended(code);
                self.log.note(&format!("machine {number}: exit code {code}"));
            }
            Some(_) => {}
            None if guest.state == State::Killed => {}
            None => return Err(self.died(number)),
        }
        Ok(())
    }

    fn peek(&mut self) -> Result<(), String> {
        for number in 0..self.guests.len() {
            let guest = &mut self.guests[number];
            if guest.state != State::Killed && guest.machine.ended() {
                return Err(self.died(number));
            }
        }
        Ok(())
    }

    fn died(&mut self, number: usize) -> String {
        self.flush();
        let said = self.guests[number].machine.last_words();
        format!("virtual machine {number} ended by itself; it said last:{said}")
    }

    /// Executes the new lines of the control file: `kill NUMBER`.
    fn obey(&mut self) {
        let text = fs::read_to_string(self.out.join("control")).unwrap_or_default();
        let new = text.get(self.obeyed..).unwrap_or_default();
        let Some(whole) = new.rfind('\n').map(|at| at + 1) else { return };
        self.obeyed += whole;
        for line in new[..whole].lines() {
            let number = line.strip_prefix("kill ").and_then(|n| n.trim().parse::<usize>().ok());
            match number.filter(|&n| n < self.guests.len()) {
                Some(number) => {
                    let guest = &mut self.guests[number];
                    guest.machine.kill();
                    guest.state = State::Killed;
                    self.log.say(&format!("killed virtual machine {number}, as asked"));
                    let _ = fs::write(self.out.join(format!("killed-{number}")), "");
                }
                None => self.log.say(&format!(
                    "control file: '{line}' is not understood; say 'kill NUMBER', below {}",
                    self.guests.len()
                )),
            }
        }
    }

    fn flush(&mut self) {
        for guest in &mut self.guests {
            guest.out.end(self.log);
            guest.errors.end(self.log);
        }
    }

    /// Returns the first exit code that is not 0. If all machines were killed, returns a failure, because there is no exit code.
    fn code(&self) -> u8 {
        let codes = self.guests.iter().filter_map(|g| match g.state {
            State::Ended(code) => Some(code),
            _ => None,
        });
        match codes.clone().find(|&code| code != 0) {
            Some(code) => code.clamp(1, 255) as u8,
            None if codes.count() == 0 => FAILED,
            None => 0,
        }
    }
}

/// A stream of a machine, which is shown on the same stream of this program. The text is shown as it comes, or, if there are
/// several machines, line by line with a label.
struct Lines {
    label: String,
    standard: bool,
    part: Vec<u8>,
}

impl Lines {
    fn add(&mut self, bytes: &[u8], log: &Log) {
        if self.label.is_empty() {
            return self.show(bytes, log);
        }
        self.part.extend(bytes);
        while let Some(end) = self.part.iter().position(|&b| b == b'\n') {
            let line: Vec<u8> = self.part.drain(..=end).collect();
            self.show(&[self.label.as_bytes(), &line].concat(), log);
        }
    }

    /// Shows an unfinished last line.
    fn end(&mut self, log: &Log) {
        if !self.part.is_empty() {
            self.add(b"\n", log);
        }
    }

    fn show(&self, bytes: &[u8], log: &Log) {
        log.raw(bytes);
        // If the output of this program is closed, the remaining text is discarded.
        if self.standard {
            let mut out = std::io::stdout().lock();
            let _ = out.write_all(bytes).and_then(|()| out.flush());
        } else {
            let _ = std::io::stderr().write_all(bytes);
        }
    }
}
