//! The supervisor of one host in a job on several hosts. It reports events to `mpiexec`, and obeys the messages of `mpiexec`.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::Stdio;
use std::time::Instant;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::PollFlags;
use nix::sys::signal::Signal;
use nix::unistd::{pipe2, read};
use weft_bootstrap::Ticket;
use weft_bootstrap::report::clock_millis;
use weft_bootstrap::wire::PublishedEntry;

use super::{Ending, Source, Supervisor};
use crate::complain;
use crate::failure::Cause;
use crate::frames::{Down, Share, Up, take};
use crate::options::Options;
use crate::processes;
use crate::service::View;
use crate::signs::{AliveTimes, Pulse};
use crate::uplink::Uplink;

/// The ranks of this host.
pub struct HostPart {
    /// For each rank, its number in the job and the index of its program.
    pub ranks: Vec<(usize, usize)>,
    /// Ticket with which ranks join. It does not contain the number of the rank.
    pub ticket: Ticket,
    /// Nodes in the order of the ranks, each with the number of consecutive ranks on this node.
    pub nodes: Vec<(u32, u32)>,
}

impl HostPart {
    /// Returns all ranks of a job on one host.
    pub fn whole(options: &Options) -> io::Result<HostPart> {
        let (job, token) = new_job()?;
        let size = options.size();
        let ranks = options.programs().enumerate().collect();
        let socket = job.clone();
        let ticket = Ticket { rank: 0, size, app: 0, job, socket, token };
        Ok(HostPart { ranks, ticket, nodes: vec![(0, size as u32)] })
    }

    /// Returns the ranks of one host in a job on several hosts.
    pub fn share(share: &Share) -> HostPart {
        let Share { size, job, socket, token, .. } = share.clone();
        let ticket = Ticket { rank: 0, size: size as usize, app: 0, job, socket, token };
        let ranks = share.ranks.iter().map(|&(number, app)| (number as usize, app as usize));
        HostPart { ranks: ranks.collect(), ticket, nodes: share.nodes.clone() }
    }
}

/// Makes the name and the secret of a new job.
pub fn new_job() -> io::Result<(String, u128)> {
    let (mut random, mut token) = ([0; 8], [0; 16]);
    getrandom::fill(&mut random).and_then(|()| getrandom::fill(&mut token))?;
    let job = format!("weft-{}-{:016x}", std::process::id(), u64::from_ne_bytes(random));
    Ok((job, u128::from_ne_bytes(token)))
}

/// The connection with `mpiexec` on another host.
pub struct Upstream {
    pub uplink: Uplink,
    /// Input from `mpiexec`; `None` after `mpiexec` has gone.
    source: Option<BorrowedFd<'static>>,
    inbox: Vec<u8>,
    input: Option<Input>,
    /// States of the seats that were last reported.
    seats: Vec<View>,
    pulse: Pulse,
    /// True after `mpiexec` has requested the end of the job.
    asked: bool,
    /// True after the end of all ranks was reported.
    done: bool,
}

/// Standard input of rank 0.
struct Input {
    pipe: File,
    queue: Vec<u8>,
    /// True after the input has ended.
    ended: bool,
}

impl Upstream {
    /// Creates the connection. `inbox` contains the bytes that were received from `source` after the first message.
    pub fn new(
        uplink: Uplink,
        source: BorrowedFd<'static>,
        inbox: Vec<u8>,
        times: AliveTimes,
    ) -> Self {
        let (seats, asked, done) = Default::default();
        let pulse = Pulse::new(times, Instant::now());
        Upstream { uplink, source: Some(source), inbox, input: None, seats, pulse, asked, done }
    }

    /// Creates a pipe for the standard input of rank 0.
    pub fn open_input(&mut self) -> Stdio {
        let make = || -> io::Result<_> {
            let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
            fcntl(&write, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
            Ok((read, write))
        };
        let Ok((read, write)) = make() else { return Stdio::null() };
        self.input = Some(Input { pipe: write.into(), queue: Vec::new(), ended: false });
        read.into()
    }

    /// Returns the descriptors to poll.
    pub(super) fn sources(&self) -> Vec<(Source, BorrowedFd<'_>, PollFlags)> {
        let mut sources = Vec::new();
        sources.extend(self.source.map(|fd| (Source::Upstream, fd, PollFlags::POLLIN)));
        if self.uplink.is_waiting() {
            sources.push((Source::Uplink, self.uplink.descriptor(), PollFlags::POLLOUT));
        }
        if let Some(input) = self.input.as_ref().filter(|input| !input.queue.is_empty()) {
            sources.push((Source::Input, input.pipe.as_fd(), PollFlags::POLLOUT));
        }
        sources
    }

    /// Writes queued input to rank 0.
    pub(super) fn feed(&mut self) {
        let Some(input) = &mut self.input else { return };
        match input.pipe.write(&input.queue) {
            Ok(count) => {
                input.queue.drain(..count);
                self.uplink.send(&Up::Taken(count));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Rank 0 does not read its input any more.
            Err(_) => self.input = None,
        }
        // Closes the pipe after the last byte.
        self.input.take_if(|input| input.ended && input.queue.is_empty());
    }

    /// Reports the end of all ranks. Returns true if the report was written, or if `mpiexec` is gone.
    pub(super) fn is_done(&mut self) -> bool {
        if !self.done && self.source.is_some() {
            self.done = true;
            self.uplink.send(&Up::Done);
        }
        // If `mpiexec` is gone, nobody reads the output, so the agent does not wait for the end of the output.
        self.source.is_none() || !self.uplink.is_waiting()
    }

    /// Returns the next time at which a sign of life is due or `mpiexec` counts as lost.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.source.and(self.pulse.deadline())
    }

    /// Sends a sign of life if it is due. Bytes that wait to be written count as a sign.
    pub(super) fn give_sign(&mut self, now: Instant) {
        if self.pulse.is_due(now) && !self.uplink.is_waiting() {
            self.uplink.send(&Up::Alive);
        }
    }

    /// Sends signs of life while ranks are being started. Nothing is read during that time, so the silence of `mpiexec` does not
    /// count.
    pub(super) fn send_signs_while_starting(&mut self, now: Instant) {
        self.give_sign(now);
        self.pulse.heard(now);
        self.uplink.write_if_ready();
    }
}

impl Supervisor {
    /// Reads messages of `mpiexec` and obeys them.
    pub(super) fn hear(&mut self) {
        let Some(upstream) = &mut self.upstream else { return };
        let Some(source) = upstream.source else { return };
        let mut piece = [0; 64 * 1024];
        match read(source, &mut piece) {
            Err(nix::Error::EINTR | nix::Error::EAGAIN) => return,
            Ok(count @ 1..) => upstream.inbox.extend(&piece[..count]),
            _ => return self.end_orphans(),
        }
        upstream.pulse.heard(self.clock.now());
        let mut former = None;
        loop {
            let Some(upstream) = &mut self.upstream else { return };
            match take(&mut upstream.inbox) {
                // Equal signals in quick succession count as a single signal, as for any process.
                Ok(Some(Down::Signal(number))) if former == Some(number) => {}
                Ok(Some(message)) => {
                    former = if let Down::Signal(number) = message { Some(number) } else { None };
                    self.obey_upstream(message);
                }
                Ok(None) => return,
                Err(error) => {
                    complain(format_args!("mpiexec --agent: {error}"));
                    return self.end_orphans();
                }
            }
        }
    }

    /// Sends signs of life. Ends the ranks if `mpiexec` has sent no sign of life for too long.
    pub(super) fn check_silence(&mut self, now: Instant) {
        let Some(upstream) = self.upstream.as_mut().filter(|upstream| upstream.source.is_some())
        else {
            return;
        };
        upstream.give_sign(now);
        if upstream.pulse.is_silent(now, 0) {
            upstream.uplink.send(&Up::Deaf);
            upstream.uplink.write_if_ready();
            self.end_orphans();
        }
    }

    /// Ends the ranks because `mpiexec` is gone. Nobody reads the output of these ranks.
    fn end_orphans(&mut self) {
        if let Some(upstream) = &mut self.upstream {
            upstream.source = None;
            upstream.input = None;
        }
        for sink in &mut self.sinks {
            sink.close();
        }
        self.code.get_or_insert(1);
        self.end(Signal::SIGTERM);
    }

    fn obey_upstream(&mut self, message: Down) {
        let Some(upstream) = &mut self.upstream else { return };
        match message {
            Down::Start(_) | Down::Times(_) | Down::Alive => {}
            Down::Fenced { generation, entries } => self.service.fenced(generation, entries),
            Down::Room { error, bytes } => self.sinks[usize::from(error)].arrived(bytes),
            Down::Unread { error } => self.sinks[usize::from(error)].close(),
            Down::Input(bytes) => {
                if let Some(input) = &mut upstream.input {
                    input.ended |= bytes.is_empty();
                    input.queue.extend(bytes);
                }
                upstream.feed();
            }
            Down::Report => {
                let states = self.states().into_iter().zip(&self.ranks);
                let ranks = states.map(|(state, rank)| (rank.number as u32, state)).collect();
                self.send_up(&Up::States { now: clock_millis(), ranks });
            }
            Down::Signal(number) => match Signal::try_from(number) {
                // On a remote host there is no shell that could continue the ranks, so the kernel does not stop them by SIGTSTP.
                // SIGSTOP is used instead.
                Ok(Signal::SIGTSTP) => processes::send_all(Signal::SIGSTOP),
                Ok(Signal::SIGCONT) => processes::send_all(Signal::SIGCONT),
                Ok(signal) => self.pass_on(signal),
                Err(_) => {}
            },
            Down::End(number) => {
                let again = std::mem::replace(&mut upstream.asked, true);
                let signal = Signal::try_from(number).unwrap_or(Signal::SIGTERM);
                match self.ending {
                    Some(Ending::Asked(_)) if again => {
                        self.ending = Some(Ending::Asked(self.clock.now()));
                    }
                    Some(Ending::Asked(_) | Ending::Killed { .. }) => {}
                    _ => {
                        self.code.get_or_insert(1);
                        self.first_suspect();
                        self.end(signal);
                    }
                }
            }
        }
    }

    fn send_up(&self, message: &Up) {
        if let Some(upstream) = &self.upstream {
            upstream.uplink.send(message);
        }
    }

    /// Reports the seats that have changed.
    pub(super) fn report_seats(&mut self) {
        let Some(upstream) = &mut self.upstream else { return };
        let views = self.service.views();
        upstream.seats.resize(views.len(), View::default());
        for (place, view) in views.into_iter().enumerate() {
            if upstream.seats[place] != view {
                upstream.seats[place] = view;
                let rank = self.part.ranks[place].0 as u32;
                upstream.uplink.send(&Up::Seat { rank, view });
            }
        }
    }

    /// Reports to `mpiexec` that all ranks of this host have reached a fence. In a job on one host, opens the fence.
    pub(super) fn fence(&mut self, generation: u32, entries: Vec<PublishedEntry>) {
        // The states of these waiting ranks must be reported first, because the head clears their marks `fencing` when it opens the
        // fence.
        self.report_seats();
        match &self.upstream {
            Some(upstream) => upstream.uplink.send(&Up::Fence { generation, entries }),
            None => self.service.fenced(generation, entries),
        }
    }

    /// Reports that a rank has ended successfully.
    pub(super) fn report_end(&mut self, place: usize) {
        self.report_seats();
        self.send_up(&Up::Ended { rank: self.ranks[place].number as u32 });
    }

    /// Reports the first failure on this host. Returns true if there is an `mpiexec` to which failures are reported.
    pub(super) fn report_failure(&self, place: usize, cause: &Cause) -> bool {
        let rank = self.ranks[place].number as u32;
        let cause = match cause.clone() {
            // The report contains the ranks' numbers in the job, not their indices on this host.
            Cause::Missing { other } => Cause::Missing { other: self.ranks[other].number },
            cause => cause,
        };
        self.send_up(&Up::Failed { rank, cause });
        self.upstream.is_some()
    }
}
