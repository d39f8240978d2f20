//! A connection with one peer: ordered frames in both directions.

use super::frame::{ANSWER, CHALLENGE, FRAME, FrameKind, GreetingWords, TcpFrame};
use super::pace::{PART, Pace};
use super::reader::{BodyEnd, FrameBody, FrameReader};
use super::shared::{ConnectionShared, OperationContext};
use super::tries::Tries;
use super::unsent_frame::{NOTHING, UnsentFrame, send};
use crate::access::{PollingThread, RemoteKey, TransferKind};
use nix::sys::epoll::EpollFlags;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::time::Instant;
use weft_fabric::Sge;

/// Maximum number of bytes of messages that wait for room on a connection. Further messages are refused.
const QUEUE_MOST: usize = 256 << 10;

/// Maximum number of waiting frames that one call sends.
const GATHER: usize = 16;

/// Maximum number of bytes that the kernel collects before it wakes this process.
const COLLECTED: usize = 256 << 10;

/// Maximum number of pieces of one send: gathered frames, the head of a frame, and the parts of its body.
const PARTS: usize = 7;

/// Maximum length of the body of a gathered frame, and maximum number of gathered bytes.
const GATHERED_EACH: usize = 1 << 10;
const GATHERED_MOST: usize = 16 << 10;

/// State of the connection to a peer.
pub enum TcpConnectionState {
    /// No connection was ever needed.
    None,
    /// The system is connecting.
    Connecting(OwnedFd),
    /// Connected. Holds the challenge, and the number of its bytes that have come.
    Connected(OwnedFd, [u8; CHALLENGE], usize),
    /// The hello is sent, and its answer is awaited.
    Asked(OwnedFd, Box<SentHello>),
    /// Connecting has failed, and is tried again after a pause.
    Paused,
    /// The peer connects at the same time, and its connection will be used.
    Awaited,
    Open(OwnedFd),
    /// The connection has ended, for this reason (errno).
    Ended(i32),
}

/// The words of a hello, and the received part of its answer.
pub struct SentHello {
    pub words: GreetingWords,
    pub said: [u8; ANSWER],
    pub have: usize,
}

/// The rest of a read, which has not been requested yet.
struct Later {
    local: Sge,
    at: u64,
    key: u64,
    context: OperationContext,
    asked: usize,
}

/// Answer to a part of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadAnswer {
    Data,
    /// The peer does not have such memory.
    Refused,
}

/// Use of the caller's memory by a frame that cannot be sent at once.
#[derive(Clone, Copy)]
pub enum Lending {
    /// Unsent bytes are copied. The caller may reuse the memory at once.
    Copied,
    /// The memory stays until the peer has answered.
    Answered,
    /// The memory belongs to the registration of this key.
    Registered(u64),
}

/// A peer: the connection to it, and everything under way on it.
pub struct TcpPeer {
    pub name: SocketAddr,
    /// Secret that only this process and the peer know, if the peer belongs to another job.
    pub secret: Option<u128>,
    pub link: TcpConnectionState,
    pub tries: Tries,
    /// Events of the socket for which the endpoint's epoll set waits.
    pub interest: EpollFlags,
    waiting: VecDeque<UnsentFrame>,
    /// True if `waiting` holds only gathered frames, as one entry. They are sent with the next frame that is not gathered, with the
    /// next poll, or when there are many bytes of them. So the requests of an epoch are sent together, and the answers, too.
    gathers: bool,
    /// True if the peer is in the endpoint's list of peers with gathered requests.
    pub listed: bool,
    /// Number of bytes that were copied because there was no room to send them.
    queued: usize,
    /// Writes that are not acknowledged, oldest first.
    pub writes: VecDeque<OperationContext>,
    /// Parts of reads that are not answered, oldest first. The last part of a read has its context. `refused` is true if a part
    /// of the oldest read was refused.
    pub reads: VecDeque<(Sge, Option<OperationContext>)>,
    refused: bool,
    /// Minimum number of bytes at which the kernel reports the socket as readable.
    least: usize,
    /// True if the peer has requested data while reads of its memory are under way.
    serves: bool,
    /// Errno of a failed send. The connection ends at the next poll.
    pub broken: Option<i32>,
    /// Reads that are not completely requested yet, and the limit of bytes under way.
    later: VecDeque<Later>,
    pace: Pace,
    /// Number of completed writes of the peer that are not acknowledged yet.
    pub acks: u32,
    pub reader: FrameReader,
}

impl TcpPeer {
    pub fn new(name: SocketAddr, tries: Tries, secret: Option<u128>) -> TcpPeer {
        TcpPeer {
            name,
            secret,
            link: TcpConnectionState::None,
            tries,
            interest: EpollFlags::empty(),
            waiting: VecDeque::new(),
            gathers: false,
            listed: false,
            queued: 0,
            writes: VecDeque::new(),
            reads: VecDeque::new(),
            refused: false,
            least: 1,
            serves: false,
            broken: None,
            later: VecDeque::new(),
            pace: Pace::new(),
            acks: 0,
            reader: FrameReader::default(),
        }
    }

    /// Returns the events to wait for.
    pub fn wanted(&self) -> EpollFlags {
        match &self.link {
            TcpConnectionState::Connecting(_) => EpollFlags::EPOLLOUT,
            TcpConnectionState::Connected(..) | TcpConnectionState::Asked(..) => {
                EpollFlags::EPOLLIN
            }
            TcpConnectionState::Open(_) => {
                let mut wanted = EpollFlags::empty();
                wanted.set(EpollFlags::EPOLLIN, !self.reader.is_stalled());
                wanted.set(EpollFlags::EPOLLOUT, self.waits_for_room());
                wanted
            }
            _ => EpollFlags::empty(),
        }
    }

    /// Returns the socket, if the connection has a socket.
    pub fn fd(&self) -> Option<&OwnedFd> {
        match &self.link {
            TcpConnectionState::Connecting(fd)
            | TcpConnectionState::Connected(fd, ..)
            | TcpConnectionState::Asked(fd, ..)
            | TcpConnectionState::Open(fd) => Some(fd),
            TcpConnectionState::None
            | TcpConnectionState::Paused
            | TcpConnectionState::Awaited
            | TcpConnectionState::Ended(_) => None,
        }
    }

    /// Lets the kernel collect the data of reads while the helper sleeps, so that the kernel wakes the helper once for many bytes.
    /// Returns false if each byte is reported. If both ends of the connection collected, each end would wait for an answer before
    /// it reads the request of the other end. So an end that the peer has asked for data does not collect, and the sleep has a
    /// limit.
    pub fn begin_collecting(&mut self) -> bool {
        let filled = self.reader.body.map_or(0, |body| body.filled);
        let coming = self.pace.under_way().saturating_sub(filled).min(COLLECTED);
        self.serves &= self.pace.under_way() > 0;
        let collects = coming >= PART && !self.serves;
        self.report_from(if collects { coming } else { 1 });
        collects
    }

    /// Lets the kernel report each byte.
    pub fn end_collecting(&mut self) {
        self.report_from(1);
    }

    /// Sets how many bytes must arrive before the kernel reports the socket as readable.
    fn report_from(&mut self, least: usize) {
        if let TcpConnectionState::Open(fd) = &self.link
            && std::mem::replace(&mut self.least, least) != least
        {
            let value = least as libc::c_int;
            let len = size_of_val(&value) as libc::socklen_t;
            // SAFETY: `SO_RCVLOWAT` takes an `int`, and `value` is one. If the option is refused, the helper is only woken more
            // often.
            unsafe {
                let (level, name) = (libc::SOL_SOCKET, libc::SO_RCVLOWAT);
                libc::setsockopt(fd.as_raw_fd(), level, name, (&raw const value).cast(), len);
            }
        }
    }

    /// Notes that the peer asks for data.
    pub fn serve(&mut self) {
        self.serves = true;
    }

    /// Returns true if a frame waits for room.
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns true if a frame waits because the socket has had no room for it.
    pub fn waits_for_room(&self) -> bool {
        self.has_waiting() && !self.gathers
    }

    /// Returns true if gathered requests wait for the next poll.
    pub fn gathers(&self) -> bool {
        self.gathers
    }

    /// Posts a message of at most five parts. Errors: errno, with `EAGAIN` if there is no room.
    pub fn message(&mut self, shared: &mut ConnectionShared, parts: &[Sge]) -> Result<(), i32> {
        if self.queued >= QUEUE_MOST {
            return Err(libc::EAGAIN);
        }
        let len = parts.iter().map(|part| part.len() as u64).sum();
        let frame = TcpFrame { kind: FrameKind::Message, acks: 0, len, key: 0, at: 0 };
        self.push(shared, frame, parts, Lending::Copied)
    }

    /// Posts a write or a read. Errors: errno.
    pub fn transfer(
        &mut self,
        shared: &mut ConnectionShared,
        access: TransferKind,
        local: Sge,
        remote: RemoteKey,
        context: OperationContext,
    ) -> Result<(), i32> {
        let RemoteKey { at, key } = remote;
        if access == TransferKind::Write {
            let frame =
                TcpFrame { kind: FrameKind::Write, acks: 0, len: local.len() as u64, key, at };
            self.request(shared, frame, &[local])?;
            self.writes.push_back(context);
            return Ok(());
        }
        self.later.push_back(Later { local, at, key, context, asked: 0 });
        if let Err(error) = self.ask(shared) {
            // The read is accepted, and fails with all other operations when the connection ends.
            self.broken = Some(error);
        }
        Ok(())
    }

    /// Requests the data of reads in parts, up to the number of bytes that may be under way.
    pub fn ask(&mut self, shared: &mut ConnectionShared) -> Result<(), i32> {
        while let Some(read) = self.later.front_mut() {
            let part = read.local.part(read.asked, PART.min(read.local.len() - read.asked));
            if shared.poller == PollingThread::Program && !self.pace.may_ask(part.len()) {
                break;
            }
            let is_whole = part.len() == read.local.len();
            let (at, key) = (read.at + read.asked as u64, read.key);
            read.asked += part.len();
            let context = (read.asked == read.local.len()).then_some(read.context);
            let frame =
                TcpFrame { kind: FrameKind::Read, acks: 0, len: part.len() as u64, key, at };
            match is_whole {
                true => self.request(shared, frame, &[])?,
                false => self.push(shared, frame, &[], Lending::Copied)?,
            }
            if context.is_some() {
                self.later.pop_front();
            }
            self.pace.asks(part.len(), Instant::now());
            self.reads.push_back((part, context));
        }
        Ok(())
    }

    /// Handles the answer to the oldest part of a read: the data has come, or the peer has refused the part.
    pub fn has_come(
        &mut self,
        shared: &mut ConnectionShared,
        answer: ReadAnswer,
    ) -> Result<(), i32> {
        let (part, context) = self.reads.pop_front().ok_or(libc::EPROTO)?;
        self.pace.comes(part.len(), Instant::now());
        self.refused |= answer == ReadAnswer::Refused;
        if let Some(context) = context {
            match std::mem::take(&mut self.refused) {
                true => shared.failed.push_back((context, libc::EACCES)),
                false => shared.done.push_back((context, part.len())),
            }
        }
        self.ask(shared)
    }

    /// Sends a write, or the request of a read. Gathers the frame if an earlier request is not answered yet, because the answer
    /// causes a poll, even while the program computes.
    fn request(
        &mut self,
        shared: &mut ConnectionShared,
        frame: TcpFrame,
        body: &[Sge],
    ) -> Result<(), i32> {
        let is_alone = self.writes.is_empty() && self.reads.is_empty();
        if is_alone || frame.len > GATHERED_EACH as u64 {
            return self.push(shared, frame, body, Lending::Answered);
        }
        self.gather(shared, frame, body, Lending::Answered)
    }

    /// Gathers a frame if it is short and could be sent now, else sends it or queues the rest of it. The caller must make sure that
    /// `flush` is called.
    pub fn gather(
        &mut self,
        shared: &mut ConnectionShared,
        mut frame: TcpFrame,
        body: &[Sge],
        lending: Lending,
    ) -> Result<(), i32> {
        let len: usize = body.iter().map(|part| part.len()).sum();
        let is_open = matches!(self.link, TcpConnectionState::Open(_));
        if len > GATHERED_EACH || !is_open || self.waits_for_room() {
            return self.push(shared, frame, body, lending);
        }
        frame.acks = std::mem::take(&mut self.acks);
        if !self.gathers {
            self.gathers = true;
            shared.unsent.fetch_add(1, Ordering::Relaxed);
            let mut own = std::mem::take(&mut shared.gathered);
            own.reserve(GATHERED_MOST);
            self.waiting.push_back(UnsentFrame { own, lent: Sge::EMPTY, sent: 0, key: None });
        }
        let Some(UnsentFrame { own, .. }) = self.waiting.back_mut() else { return Ok(()) };
        let before = own.len();
        own.extend_from_slice(&frame.encode());
        for part in body {
            let at = own.len();
            own.resize(at + part.len(), 0);
            part.read(&mut own[at..]);
        }
        self.queued += own.len() - before;
        if own.len() + FRAME + GATHERED_EACH > GATHERED_MOST {
            self.flush(shared)?;
        }
        Ok(())
    }

    /// Sends a frame behind the gathered requests, or queues the rest of it if there is no room.
    pub fn push(
        &mut self,
        shared: &mut ConnectionShared,
        mut frame: TcpFrame,
        body: &[Sge],
        lending: Lending,
    ) -> Result<(), i32> {
        frame.acks = std::mem::take(&mut self.acks);
        let head = frame.encode();
        let whole = FRAME + body.iter().map(|part| part.len()).sum::<usize>();
        let mut sent = 0;
        if let TcpConnectionState::Open(fd) = &self.link
            && !self.waits_for_room()
        {
            let mut pieces = [NOTHING; PARTS];
            let first = self.waiting.front().map_or(NOTHING, |gathered| gathered.pieces()[0]);
            (pieces[0], self.gathers) = (first, false);
            pieces[1] = libc::iovec { iov_base: head.as_ptr().cast_mut().cast(), iov_len: FRAME };
            for (piece, part) in pieces[2..].iter_mut().zip(body) {
                *piece = libc::iovec { iov_base: part.ptr().cast(), iov_len: part.len() };
            }
            let unused = usize::from(first.iov_len == 0);
            sent = send(fd, &mut pieces[unused..2 + body.len()])?;
            if first.iov_len > 0 {
                self.has_sent(shared, sent.min(first.iov_len));
                sent = sent.saturating_sub(first.iov_len);
            }
        }
        if sent == whole {
            return Ok(());
        }
        let mut key = None;
        let (own, lent) = match lending {
            Lending::Answered if !body.is_empty() => (head.to_vec(), body[0]),
            Lending::Copied | Lending::Answered => {
                let mut own = vec![0; whole];
                own[..FRAME].copy_from_slice(&head);
                let mut at = FRAME;
                for part in body {
                    part.read(&mut own[at..at + part.len()]);
                    at += part.len();
                }
                self.queued += whole;
                (own, Sge::EMPTY)
            }
            Lending::Registered(name) => {
                key = Some(name);
                (head.to_vec(), body[0])
            }
        };
        shared.unsent.fetch_add(1, Ordering::Relaxed);
        self.waiting.push_back(UnsentFrame { own, lent, sent, key });
        Ok(())
    }

    /// Sends the gathered frames.
    pub fn send_gathered(&mut self, shared: &mut ConnectionShared) -> Result<(), i32> {
        if self.gathers { self.flush(shared).map(|_| ()) } else { Ok(()) }
    }

    /// Sends queued frames until there is no room. Returns true if anything moved.
    pub fn flush(&mut self, shared: &mut ConnectionShared) -> Result<bool, i32> {
        let mut moved = false;
        self.gathers = false;
        while !self.waiting.is_empty()
            && let TcpConnectionState::Open(fd) = &self.link
        {
            let mut pieces = [NOTHING; 2 * GATHER];
            let mut count = 0;
            for one in self.waiting.iter().take(GATHER) {
                pieces[count..count + 2].copy_from_slice(&one.pieces());
                count += 2;
            }
            let asked: usize = pieces[..count].iter().map(|piece| piece.iov_len).sum();
            let sent = send(fd, &mut pieces[..count])?;
            moved |= sent > 0;
            self.has_sent(shared, sent);
            if sent < asked {
                break;
            }
        }
        Ok(moved)
    }

    fn has_sent(&mut self, shared: &mut ConnectionShared, mut sent: usize) {
        while let Some(first) = self.waiting.front_mut() {
            let left = first.len() - first.sent;
            if sent < left {
                first.sent += sent;
                return;
            }
            sent -= left;
            if first.lent.is_empty() {
                self.queued = self.queued.saturating_sub(first.own.len());
            }
            shared.unsent.fetch_sub(1, Ordering::Relaxed);
            if (GATHERED_MOST..2 * GATHERED_MOST).contains(&first.own.capacity()) {
                // The memory serves the next gathered frames.
                first.own.clear();
                shared.gathered = std::mem::take(&mut first.own);
            }
            self.waiting.pop_front();
        }
    }

    /// Returns true if memory of the registration `key` is being sent or filled.
    pub fn uses(&self, key: u64) -> bool {
        let filled = self
            .reader
            .body
            .is_some_and(|body| matches!(body.end, BodyEnd::Written(k) if k == key));
        filled || self.waiting.iter().any(|one| one.key == Some(key))
    }

    /// Ends the connection. All operations under way fail.
    pub fn end(&mut self, shared: &mut ConnectionShared, error: i32) {
        self.link = TcpConnectionState::Ended(error);
        if let Some(FrameBody { end: BodyEnd::Message(context), .. }) = self.reader.body {
            shared.failed.push_back((context, error));
        }
        self.reader = FrameReader::default();
        (self.queued, self.gathers) = (0, false);
        shared.unsent.fetch_sub(self.waiting.len(), Ordering::Relaxed);
        self.waiting.clear();
        let writes = self.writes.drain(..);
        let later = self.later.drain(..).map(|read| read.context);
        let reads = self.reads.drain(..).filter_map(|(_, context)| context).chain(later);
        shared.failed.extend(writes.chain(reads).map(|context| (context, error)));
    }
}
