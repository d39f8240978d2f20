//! The bootstrap service: the processes that have joined, and the key-value space, which opens at fences.
//!
//! Each rank has a seat. A process takes its rank's seat when it connects with the job's token, and leaves the seat when its
//! connection ends. If the rank is a script, the next program of the script may take the seat again. Each time that the seat is
//! taken is a generation. Each generation has a separate key-value space.
//!
//! A service has the seats of the ranks of one host. When all these ranks have reached a fence, the service reports
//! [`SupervisorEvent::Fence`]. Then [`Service::fenced`] opens the fence with the values of the complete job.

use std::collections::{HashMap, VecDeque};
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::rc::Rc;

use nix::sys::socket::{ControlMessage, MsgFlags, getsockopt, sendmsg, sockopt};
use serde::{Deserialize, Serialize};
use weft_bootstrap::is_same_secret;
use weft_bootstrap::report::{Board, Phase, RankStatus};
use weft_bootstrap::wire::{Frame, MAX_REQUEST, PublishedEntry};

use crate::processes;

/// Maximum number of connections that have not named a rank, in addition to one for each seat. If there are more, the oldest of
/// these connections is closed.
const SPARE_STRANGERS: usize = 32;

/// Event that the supervisor must handle.
#[derive(Debug, PartialEq, Eq)]
pub enum SupervisorEvent {
    /// The rank has called MPI_Abort.
    Abort { rank: usize, code: i32, message: String },
    /// The process that had the rank's seat has closed its connection without MPI_Finalize.
    Left { rank: usize, pid: i32 },
    /// The rank has sent an invalid message.
    Broken { rank: usize, error: String },
    /// All seats have reached the fence of this generation, with these values.
    Fence { generation: u32, entries: Vec<PublishedEntry> },
}

/// State of a seat. From the states of all seats, `mpiexec` finds ranks that wait in vain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct View {
    /// Number of times that the seat was taken.
    pub taken: u32,
    /// True if a process has the seat, and has not finalized MPI.
    pub inside: bool,
    /// True if the process that has the seat waits at a fence.
    pub fencing: bool,
}

/// Finds a rank that waits in vain: the rank is in MPI, and needs another rank that has ended successfully. Returns the rank that
/// has ended, and the rank that waits.
pub fn stranded(seats: &[View], ended: impl Fn(usize) -> bool) -> Option<(usize, usize)> {
    let ended: Vec<usize> = (0..seats.len()).filter(|&rank| ended(rank)).collect();
    for (rank, seat) in seats.iter().enumerate().filter(|(_, seat)| seat.inside) {
        let missing = ended.iter().find(|&&other| {
            let other = &seats[other];
            other.taken < seat.taken || (other.taken == seat.taken && seat.fencing)
        });
        if let Some(&missing) = missing {
            return Some((missing, rank));
        }
    }
    None
}

struct Connection {
    stream: UnixStream,
    pid: i32,
    inbox: Vec<u8>,
    outbox: VecDeque<Rc<[u8]>>,
    /// Number of bytes of `outbox`'s first frame that were sent.
    sent: usize,
    ended: bool,
}

impl Connection {
    fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let pid = getsockopt(&stream, sockopt::PeerCredentials)?.pid();
        let (inbox, outbox) = (Vec::new(), VecDeque::new());
        Ok(Connection { stream, pid, inbox, outbox, sent: 0, ended: false })
    }

    /// Reads available bytes, and records the end of the connection.
    fn fill(&mut self) {
        let mut piece = [0; 16 * 1024];
        while !self.ended && self.inbox.len() < MAX_REQUEST + 4 {
            match self.stream.read(&mut piece) {
                Ok(0) => self.ended = true,
                Ok(length) => self.inbox.extend(&piece[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.ended = true,
            }
        }
    }

    fn send(&mut self, frame: Rc<[u8]>) {
        self.outbox.push_back(frame);
        self.flush();
    }

    fn flush(&mut self) {
        while let Some(front) = self.outbox.front() {
            match self.stream.write(&front[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // A later read reports the end of the connection.
                Err(_) => return self.outbox.clear(),
            }
            if self.sent == front.len() {
                self.outbox.pop_front();
                self.sent = 0;
            }
        }
    }
}

#[derive(Default)]
struct Seat {
    connection: Option<Connection>,
    /// Number of times that the seat was taken.
    taken: u32,
    finalized: bool,
    /// True if a process has left the seat without MPI_Finalize.
    abandoned: bool,
    /// True if the process that has the seat waits at a fence.
    fencing: bool,
}

/// State of the fence of a generation, until it opens.
#[derive(Default)]
struct FenceState {
    arrived: usize,
    entries: Vec<PublishedEntry>,
}

/// Owner of a descriptor that polls as ready.
#[derive(Debug, Clone, Copy)]
pub enum Door {
    /// New connections.
    Listener,
    /// A connection that has not named its rank.
    Stranger(usize),
    /// A rank.
    Seat(usize),
}

/// Ranks and nodes of a service.
#[derive(Debug, Clone)]
pub struct Seating {
    /// Numbers of the ranks that have a seat here.
    pub numbers: Vec<u32>,
    /// Number of ranks of the job.
    pub size: usize,
    /// Nodes in the order of the ranks, each with the number of consecutive ranks on it.
    pub nodes: Vec<(u32, u32)>,
}

/// The service of the ranks of one host. Its methods name a rank by its index in [`Seating::numbers`].
pub struct Service {
    listener: UnixListener,
    token: u128,
    seating: Seating,
    board: Board,
    seats: Vec<Seat>,
    strangers: Vec<Connection>,
    /// Maximum number of connections that have not named a rank, in addition to one for each seat.
    spare: usize,
    fences: HashMap<u32, FenceState>,
    events: Vec<SupervisorEvent>,
}

impl Service {
    /// Opens the abstract socket `socket`. `files` is the number of files that may be open in addition to the files for the ranks.
    pub fn new(socket: &str, token: u128, seating: Seating, files: usize) -> io::Result<Self> {
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(socket)?)?;
        listener.set_nonblocking(true)?;
        Ok(Service {
            listener,
            token,
            board: Board::new(socket, seating.size)?,
            seats: seating.numbers.iter().map(|_| Seat::default()).collect(),
            seating,
            strangers: Vec::new(),
            spare: SPARE_STRANGERS.min(files),
            fences: HashMap::new(),
            events: Vec::new(),
        })
    }

    /// Returns true if a rank sleeps in MPI, or has just changed its status.
    pub fn may_sleep(&self, rank: usize) -> bool {
        self.board.may_sleep(self.seating.numbers[rank] as usize)
    }

    /// Returns the status that a rank publishes.
    pub fn status(&self, rank: usize) -> Option<RankStatus> {
        self.board.read(self.seating.numbers[rank] as usize)
    }

    /// Returns the process that has the seat of `rank` now, if there is such a process.
    pub fn member(&self, rank: usize) -> Option<i32> {
        self.seats[rank].connection.as_ref().map(|connection| connection.pid)
    }

    /// Returns true if the present or an earlier process of `rank` has joined but has not finalized.
    pub fn is_unfinished(&self, rank: usize) -> bool {
        let seat = &self.seats[rank];
        seat.abandoned || (seat.taken > 0 && !seat.finalized)
    }

    /// Returns true if the present or former process of `rank` has called MPI_Finalize.
    pub fn has_called_finalize(&self, rank: usize) -> bool {
        let phase = self.status(rank).map(|status| status.phase);
        matches!(phase, Some(Phase::Finalizing | Phase::Finalized))
    }

    /// Returns the states of the seats, for [`stranded`].
    pub fn views(&self) -> Vec<View> {
        let view = |seat: &Seat| View {
            taken: seat.taken,
            inside: seat.connection.is_some() && !seat.finalized,
            fencing: seat.fencing,
        };
        self.seats.iter().map(view).collect()
    }

    /// Returns all descriptors to poll for reading. The flag is true if a descriptor must also be polled for writing.
    pub fn doors(&self) -> impl Iterator<Item = (Door, BorrowedFd<'_>, bool)> {
        let connections =
            self.strangers.iter().enumerate().map(|(i, c)| (Door::Stranger(i), c)).chain(
                self.seats
                    .iter()
                    .enumerate()
                    .filter_map(|(rank, seat)| Some((Door::Seat(rank), seat.connection.as_ref()?))),
            );
        [(Door::Listener, self.listener.as_fd(), false)]
            .into_iter()
            .chain(connections.map(|(door, c)| (door, c.stream.as_fd(), !c.outbox.is_empty())))
    }

    /// Serves the requests on these descriptors, and returns the resulting events.
    pub fn serve(&mut self, doors: &[Door]) -> Vec<SupervisorEvent> {
        for door in doors {
            match *door {
                Door::Seat(rank) => self.serve_seat(rank),
                Door::Stranger(index) => {
                    self.strangers.get_mut(index).into_iter().for_each(Connection::fill)
                }
                Door::Listener => {}
            }
        }
        if doors.iter().any(|door| !matches!(door, Door::Seat(_))) {
            self.serve_strangers();
        }
        std::mem::take(&mut self.events)
    }

    /// Serves all requests of a rank that has ended.
    pub fn drain(&mut self, rank: usize) -> Vec<SupervisorEvent> {
        self.serve(&[Door::Listener, Door::Seat(rank)])
    }

    fn serve_strangers(&mut self) {
        for connection in std::mem::take(&mut self.strangers) {
            self.greet(connection);
        }
        // Seats each connection before it accepts the next connection. So connections of ranks never exceed the maximum, even if
        // all ranks connect at the same time.
        while let Ok((stream, _)) = self.listener.accept() {
            if let Ok(mut connection) = Connection::new(stream) {
                connection.fill();
                self.greet(connection);
            }
            if self.strangers.len() > self.seats.len() + self.spare {
                self.strangers.remove(0);
            }
        }
    }

    /// Seats a connection that has proved to be from a rank. Keeps a connection that has not sent a complete message yet.
    fn greet(&mut self, mut connection: Connection) {
        match Frame::take(&mut connection.inbox, 64) {
            Ok(Some(Frame::Hello { token, rank }))
                if is_same_secret(&token.to_ne_bytes(), &self.token.to_ne_bytes()) =>
            {
                let seat = self.seating.numbers.iter().position(|&number| number == rank);
                if let Some(rank) = seat {
                    self.welcome(rank, connection);
                }
            }
            Ok(None) if !connection.ended => self.strangers.push(connection),
            // A connection that belongs to no rank is closed without an answer.
            _ => {}
        }
    }

    /// Seats a process that has proved to belong to the job.
    fn welcome(&mut self, rank: usize, mut connection: Connection) {
        self.serve_seat(rank);
        if let Some(holder) = self.member(rank) {
            let answer = if processes::is_ancestor(holder, connection.pid) {
                Frame::Alone
            } else if processes::is_alive(holder) {
                let reason = format!(
                    "process {} cannot be rank {}: process {holder} is. Only one MPI program at a \
                     time can be a rank",
                    connection.pid, self.seating.numbers[rank]
                );
                Frame::Refused { reason }
            } else {
                // The process that had the seat is dead, but its child keeps the connection open.
                self.leave(rank);
                return self.welcome(rank, connection);
            };
            return connection.send(answer.encode().into());
        }
        let seat = &mut self.seats[rank];
        let nodes = self.seating.nodes.clone();
        let frame = Frame::Welcome { generation: seat.taken, nodes }.encode();
        let memory = [self.board.memory().as_raw_fd()];
        let sent = sendmsg::<()>(
            connection.stream.as_raw_fd(),
            &[IoSlice::new(&frame)],
            &[ControlMessage::ScmRights(&memory)],
            MsgFlags::MSG_NOSIGNAL,
            None,
        );
        // Remaining bytes are sent later, without the descriptor. If nothing was sent, the process is gone.
        if let Ok(sent @ 1..) = sent {
            seat.taken += 1;
            seat.finalized = false;
            if sent < frame.len() {
                connection.outbox.push_back(frame.into());
                connection.sent = sent;
            }
            seat.connection = Some(connection);
            self.serve_seat(rank);
        }
    }

    fn leave(&mut self, rank: usize) {
        let seat = &mut self.seats[rank];
        let Some(connection) = seat.connection.take() else { return };
        seat.fencing = false;
        if !seat.finalized {
            seat.abandoned = true;
            self.events.push(SupervisorEvent::Left { rank, pid: connection.pid });
        }
    }

    fn serve_seat(&mut self, rank: usize) {
        let Some(connection) = &mut self.seats[rank].connection else { return };
        connection.fill();
        connection.flush();
        loop {
            let Some(connection) = &mut self.seats[rank].connection else { return };
            match Frame::take(&mut connection.inbox, MAX_REQUEST) {
                Ok(None) if connection.ended => return self.leave(rank),
                Ok(None) => return,
                Ok(Some(Frame::Fence { entries })) if !self.seats[rank].fencing => {
                    self.fence(rank, entries);
                }
                Ok(Some(Frame::Finalized)) => self.seats[rank].finalized = true,
                Ok(Some(Frame::Abort { code, message })) => {
                    // The call of MPI_Abort is the reason for the failure, so the end of the process must not be reported as
                    // another failure.
                    self.seats[rank].finalized = true;
                    self.events.push(SupervisorEvent::Abort { rank, code, message });
                }
                Ok(Some(frame)) => {
                    return self.drop_broken(rank, format!("unexpected frame {frame:?}"));
                }
                Err(error) => return self.drop_broken(rank, error.to_string()),
            }
        }
    }

    fn drop_broken(&mut self, rank: usize, error: String) {
        self.seats[rank].connection = None;
        self.events.push(SupervisorEvent::Broken { rank, error });
    }

    fn fence(&mut self, rank: usize, entries: Vec<PublishedEntry>) {
        let generation = self.seats[rank].taken;
        self.seats[rank].fencing = true;
        let fence = self.fences.entry(generation).or_default();
        fence.arrived += 1;
        // A process publishes values only for its own rank, even if the message names another rank.
        let number = self.seating.numbers[rank];
        fence.entries.extend(entries.into_iter().map(|(_, key, value)| (number, key, value)));
        if fence.arrived == self.seats.len() {
            let entries = self.fences.remove(&generation).unwrap_or_default().entries;
            self.events.push(SupervisorEvent::Fence { generation, entries });
        }
    }

    /// Opens the fence of a generation, with the values of all ranks of the job.
    pub fn fenced(&mut self, generation: u32, entries: Vec<PublishedEntry>) {
        let frame: Rc<[u8]> = Frame::Fenced { entries }.encode().into();
        for seat in self.seats.iter_mut().filter(|seat| seat.taken == generation) {
            seat.fencing = false;
            if let Some(connection) = &mut seat.connection {
                connection.send(frame.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests a large job whose ranks all connect at the same time, as when the launcher is still starting them.
    #[test]
    fn ranks_that_come_all_at_once_are_all_seated() {
        let ranks = 300;
        let numbers: Vec<u32> = (0..ranks).collect();
        let seating = Seating { numbers, size: ranks as usize, nodes: vec![(0, ranks)] };
        let name = format!("weft-test-{}", std::process::id());
        let mut service = Service::new(&name, 7, seating, 1000).unwrap();
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let come = |frame: Option<Frame>| {
            let mut stream = UnixStream::connect_addr(&address).unwrap();
            frame.iter().for_each(|frame| stream.write_all(&frame.encode()).unwrap());
            stream
        };
        // Connections that send nothing or a wrong token take no seat.
        let silent: Vec<UnixStream> = (0..2 * SPARE_STRANGERS).map(|_| come(None)).collect();
        let wrong = come(Some(Frame::Hello { token: 8, rank: 3 }));
        let all: Vec<UnixStream> =
            (0..ranks).map(|rank| come(Some(Frame::Hello { token: 7, rank }))).collect();
        service.serve(&[Door::Listener]);
        assert!((0..all.len()).all(|rank| service.member(rank).is_some()));
        assert_eq!(service.strangers.len(), silent.len());
        drop(wrong);
    }
}
