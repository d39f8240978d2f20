//! The loop of a job in virtual time.

use crate::account::JobAccount;
use crate::calls;
use crate::compute::{ComputeMeter, ComputeTime};
use crate::files::FileTimes;
use crate::home::JobHome;
use crate::processes::{CopiedBytes, ProcessAccess};
use crate::questions::UserQuestions;
use crate::server::{AfterRequest, RankServer};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::cell::RefCell;
use std::fmt;
use std::io;
use std::process::{Child, Command, ExitStatus};
use std::rc::Rc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::{Duration, Instant};
use weft_fabric::{Fabric, FabricExt};
use weft_fabric_sim::units::Picoseconds;
use weft_fabric_sim::{Arrow, Cluster, Machine, RunCounts, SimOptions, Stopped, Trace};
use weft_fabric_sim_client::{JobHeader, PathHeader, SIMULATION_VARIABLE, SlotsFile, TurnSide};

/// A job to run.
pub struct SimJob<'j> {
    /// The machine.
    pub machine: &'j Rc<Machine>,
    /// Ranks, seed, disturbances and deaths. With `trace`, the outcome has each rank's activities.
    pub options: SimOptions,
    /// Time of the program's computing.
    pub compute: ComputeTime,
    /// Number of bytes above which the payload of a write or read is not copied, so that the program's results are wrong, but not its
    /// times; `None` to copy all.
    pub phantom: Option<usize>,
    /// Maximum number of transfers in the outcome.
    pub arrows: usize,
    /// Called now and then with virtual time in picoseconds.
    pub progress: &'j mut dyn FnMut(Picoseconds),
}

/// Reason why a job did not come to its end.
#[derive(Debug)]
pub enum SimJobFailure {
    /// The machine cannot run the job.
    Impossible(Stopped),
    /// The job could not be started.
    System {
        /// The step that failed.
        what: &'static str,
        /// The refusal of the system.
        error: io::Error,
    },
    /// No rank can go on, or virtual time has reached its limit. The ranks have reported their waits and were ended.
    Stopped(Stopped),
}

impl fmt::Display for SimJobFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SimJobFailure::Impossible(stopped) | SimJobFailure::Stopped(stopped) => {
                write!(f, "{stopped}")
            }
            SimJobFailure::System { what, error } => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for SimJobFailure {}

/// Outcome of a job whose processes have ended.
#[derive(Debug)]
pub struct SimJobOutcome {
    /// Exit status of the launcher.
    pub status: ExitStatus,
    /// Times and traffic.
    pub account: JobAccount,
    /// Numbers of operations and events.
    pub counts: RunCounts,
    /// Activities, if they were asked for.
    pub trace: Option<Trace>,
    /// The first transfers: [`SimJob::arrows`].
    pub arrows: Vec<Arrow>,
    /// Names of the MPI functions, by their number. Empty if the layer that names calls was not loaded.
    pub names: Vec<String>,
    /// Number of turns that ranks had.
    pub turns: u64,
    /// Number of turns that the simulation took for ranks, because only time passed in them.
    pub quiet_turns: u64,
    /// Number of turns in which a rank did not do what the simulation had expected of it. Times are wrong if there are any.
    pub wrong_turns: u64,
    /// Number of requests for which ranks stopped. Requests without a reply do not count.
    pub requests: u64,
    /// Bytes that writes and reads have moved.
    pub copied: CopiedBytes,
}

/// Interval at which the simulation looks for the end of processes while it waits for a rank.
const WATCH: Duration = Duration::from_millis(200);

/// Time for which a rank may run without a request before the user is told.
const PATIENCE: Duration = Duration::from_secs(10);

/// Time after a deadlock in which the ranks publish their waits and the launcher prints them.
const REPORT: Duration = Duration::from_millis(700);

/// Ranks and processes of a running job.
struct RunningJob {
    cluster: Cluster,
    slots: SlotsFile,
    servers: Vec<RankServer>,
    processes: Rc<ProcessAccess>,
    child: Child,
    account: JobAccount,
    spin: Duration,
    home: JobHome,
    questions: UserQuestions,
    turns: u64,
    quiet_turns: u64,
    /// Rank that had the last turn.
    last_turn: Option<usize>,
    requests: u64,
    /// True once the user has been told that a rank does not come back.
    warned: bool,
}

/// State of a turn.
#[derive(PartialEq, Eq)]
enum TurnEnd {
    Rested,
    Ended,
    /// The launcher has ended, and with it all ranks.
    JobEnded,
}

impl SimJob<'_> {
    /// Starts `launcher`, which must start [`SimOptions::ranks`] ranks with this process's variables, and simulates the job until
    /// its end.
    pub fn run(self, launcher: &mut Command) -> Result<SimJobOutcome, SimJobFailure> {
        let SimJob { machine, options, compute, phantom, arrows, progress } = self;
        let ranks = options.ranks;
        let cluster = Cluster::new(machine, options).map_err(SimJobFailure::Impossible)?;
        let system = |what| move |error| SimJobFailure::System { what, error };
        let directory = tempfile::Builder::new().prefix("weft-sim.").tempdir_in(memory_folder());
        let directory = directory.map_err(system("a directory for the simulation"))?;
        let slots =
            SlotsFile::create(&directory.path().join("ranks"), &header(&cluster, machine, compute))
                .map_err(system("a file for the simulation"))?;
        launcher.env(SIMULATION_VARIABLE, directory.path());
        end_with_this_process(launcher);
        let questions = UserQuestions::new().map_err(system("a signal descriptor"))?;
        let child = launcher.spawn().map_err(system("starting mpiexec"))?;
        let processes = Rc::new(ProcessAccess::new(ranks, phantom));
        let each = machine.ranks_per_node.0;
        let files = machine.file.map(|system| FileTimes::new(system, each, ranks));
        let files = Rc::new(RefCell::new(files));
        let server = |rank| {
            let sim = cluster.rank(rank);
            sim.set_processes(processes.clone());
            let meter = ComputeMeter::new(compute, machine);
            RankServer::new(sim, processes.clone(), files.clone(), meter)
        };
        let servers = (0..ranks).map(server).collect();
        cluster.rank(0).record_arrows(arrows);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let mut job = RunningJob {
            cluster,
            slots,
            servers,
            processes,
            child,
            account: JobAccount::new(ranks),
            spin: Duration::from_micros(if processors > 1 { 50 } else { 0 }),
            home: JobHome::new(),
            questions,
            turns: 0,
            quiet_turns: 0,
            last_turn: None,
            requests: 0,
            warned: false,
        };
        let stopped = job.simulate(progress);
        let status = job.child.wait().map_err(system("waiting for mpiexec"))?;
        job.account.finish();
        if let Some(stopped) = stopped {
            return Err(SimJobFailure::Stopped(stopped));
        }
        let names = calls::read_names(directory.path());
        calls::enter_counts(directory.path(), names.len(), &mut job.account);
        Ok(SimJobOutcome {
            status,
            counts: job.cluster.counts(),
            trace: job.cluster.take_trace(),
            arrows: job.cluster.rank(0).take_arrows(),
            names,
            account: job.account,
            turns: job.turns,
            quiet_turns: job.quiet_turns,
            wrong_turns: job.servers.iter().map(|server| server.wrong_turns).sum(),
            requests: job.requests,
            copied: job.processes.copied(),
        })
    }
}

impl RunningJob {
    /// Gives ranks their turns until all have left, or the launcher has ended. Returns the reason if no rank can go on.
    fn simulate(&mut self, progress: &mut dyn FnMut(Picoseconds)) -> Option<Stopped> {
        let mut shown = Instant::now();
        loop {
            while let Some(rank) = self.cluster.due() {
                if self.servers[rank].ended {
                    continue;
                }
                match self.turn(rank) {
                    TurnEnd::JobEnded => return None,
                    TurnEnd::Rested | TurnEnd::Ended => self.cluster.rest(rank),
                }
            }
            if self.servers.iter().all(|server| server.ended) {
                return None;
            }
            if shown.elapsed() >= WATCH {
                shown = Instant::now();
                progress(self.cluster.now());
                self.home.check();
                self.pass_on_questions();
            }
            if !self.cluster.advance() {
                let (at, waiting) = (self.cluster.now(), self.waiting());
                // A rank that has died does not count as waiting.
                if waiting.is_empty() {
                    return None;
                }
                let stopped = match self.cluster.has_events() {
                    true => Stopped::Limit { at, waiting },
                    false => Stopped::Deadlock { at, waiting },
                };
                self.end_stuck();
                return Some(stopped);
            }
        }
    }

    fn waiting(&self) -> Vec<usize> {
        (0..self.servers.len()).filter(|&rank| !self.servers[rank].ended).collect()
    }

    /// Waits until `rank` has made a request. Returns false if the launcher has ended.
    fn await_request(&mut self, rank: usize) -> bool {
        let began = Instant::now();
        loop {
            if !self.warned && began.elapsed() >= PATIENCE {
                self.warned = true;
                self.warn(rank);
            }
            let slot = self.slots.slot(rank);
            let attached = slot.pid.load(Acquire) != 0;
            let spin = if self.home.stays() { Duration::ZERO } else { self.spin };
            if attached && slot.turn.wait(TurnSide::Simulation, spin, WATCH) {
                self.requests += 1;
                return true;
            }
            if matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
                return false;
            }
            self.pass_on_questions();
            if !attached {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// Passes SIGQUIT on to the launcher, which prints what each rank waits for.
    fn pass_on_questions(&self) {
        if self.questions.take() {
            let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGQUIT);
        }
    }

    /// Says why time does not advance, if the rank that runs sleeps outside of MPI.
    fn warn(&self, rank: usize) {
        let pid = self.slots.slot(rank).pid.load(Relaxed);
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let sleeps = state.rsplit(") ").next().is_some_and(|rest| rest.starts_with('S'));
        let us = self.cluster.now() as f64 / 1e6;
        let what = match sleeps {
            true => "sleeps outside of MPI",
            false => "runs outside of MPI",
        };
        eprintln!(
            "weft sim: virtual time stands at {us:.3} us: rank {rank} has had its turn for {} s and {what}; if it waits for another \
             rank by a file, a socket or shared memory, that rank cannot run: wait by MPI",
            PATIENCE.as_secs()
        );
    }

    /// Lets `rank` run until it rests.
    fn turn(&mut self, rank: usize) -> TurnEnd {
        if self.servers[rank].take_quiet_turn(self.slots.slot(rank), &mut self.account) {
            self.quiet_turns += 1;
            return TurnEnd::Rested;
        }
        self.turns += 1;
        if self.processes.pid(rank) == 0 && !self.await_attach(rank) {
            return TurnEnd::JobEnded;
        }
        self.servers[rank].begin(self.slots.slot(rank), &mut self.account);
        if self.last_turn.replace(rank) != Some(rank) {
            self.servers[rank].cool();
        }
        loop {
            // A request stands until it can be carried out.
            if !self.servers[rank].has_standing_request() {
                let slot = self.slots.slot(rank);
                let home = self.home.next_turn().map_or(0, |processor| processor as u32 + 1);
                slot.home.store(home, Relaxed);
                slot.turn.pass(TurnSide::Rank);
                if !self.await_request(rank) {
                    return TurnEnd::JobEnded;
                }
            }
            let slot = self.slots.slot(rank);
            match self.servers[rank].serve(slot, &mut self.account) {
                AfterRequest::Runs => {}
                AfterRequest::Rests => return TurnEnd::Rested,
                AfterRequest::Ended => {
                    slot.turn.pass(TurnSide::Rank);
                    return TurnEnd::Ended;
                }
            }
        }
    }

    /// Waits for a rank that has not run yet. Its first request asks for its first turn.
    fn await_attach(&mut self, rank: usize) -> bool {
        loop {
            let slot = self.slots.slot(rank);
            let pid = slot.pid.load(Acquire);
            if pid != 0 && slot.turn.is(TurnSide::Simulation) {
                self.processes.set_pid(rank, pid);
                return true;
            }
            if matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
                return false;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Lets a rank publish its wait, which it does before the rest that follows a turn without news. Returns false if the launcher has
    /// ended.
    fn let_publish(&mut self, rank: usize) -> bool {
        let mut rests = 0;
        while rests < Self::RESTS && !self.servers[rank].has_standing_request() {
            let slot = self.slots.slot(rank);
            self.servers[rank].resume(slot);
            let after = loop {
                self.slots.slot(rank).turn.pass(TurnSide::Rank);
                if !self.await_request(rank) {
                    return false;
                }
                let slot = self.slots.slot(rank);
                let after = self.servers[rank].serve(slot, &mut self.account);
                if after != AfterRequest::Runs {
                    break after;
                }
            };
            if after == AfterRequest::Ended {
                break;
            }
            rests += 1;
        }
        true
    }

    /// Number of rests in a row after which a rank has published its wait.
    const RESTS: usize = 2;

    /// Lets all ranks publish their waits, has the launcher print them, and ends the job.
    fn end_stuck(&mut self) {
        for rank in self.waiting() {
            if !self.let_publish(rank) {
                return;
            }
        }
        let launcher = Pid::from_raw(self.child.id() as i32);
        let _ = kill(launcher, Signal::SIGQUIT);
        std::thread::sleep(REPORT);
        let _ = kill(launcher, Signal::SIGTERM);
    }
}

/// Lets the launcher end if this process is killed.
fn end_with_this_process(launcher: &mut Command) {
    use std::os::unix::process::CommandExt;
    // SAFETY: the function only makes a system call, which is allowed between fork and exec.
    unsafe {
        launcher
            .pre_exec(|| nix::sys::prctl::set_pdeathsig(Signal::SIGTERM).map_err(io::Error::from));
    }
}

/// Returns a folder in memory for the slots, or the folder for temporary files.
fn memory_folder() -> std::path::PathBuf {
    let memory = std::path::Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}

/// Returns the facts that the ranks need.
fn header(cluster: &Cluster, machine: &Machine, compute: ComputeTime) -> JobHeader {
    let (ranks, each) = (cluster.size(), machine.ranks_per_node.0);
    let sim = cluster.rank(0);
    let path = |peer: usize| {
        let found = sim.capabilities(peer);
        PathHeader {
            send_max: found.send_max as u64,
            inline_max: found.inline_max as u64,
            mtu: found.mtu as u64,
            multicast_max: found.multicast_max as u64,
            rails: found.rails as u64,
            round_trip: u64::from(found.round_trip),
            direct: u64::from(found.direct),
            in_order_placement: u64::from(found.in_order_placement),
            shares_memory: u64::from(found.shares_memory),
            coherent_atomics: u64::from(found.coherent_atomics),
        }
    };
    JobHeader {
        ranks: ranks as u64,
        ranks_per_node: each as u64,
        local: path(0),
        remote: path(if ranks > each { each } else { 0 }),
        fragment_min: sim.fragment_min().map_or(0, |len| len as u64 + 1),
        compute_factor: compute.factor().to_bits(),
        same_arithmetic: u64::from(sim.same_arithmetic()),
        times_files: u64::from(machine.file.is_some()),
        model: sim.copies().model().words(),
        ..JobHeader::new()
    }
}
