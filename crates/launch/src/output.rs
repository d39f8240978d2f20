//! The ranks' output: whole lines, in the order in which they come, tagged if wished.
//!
//! A rank's pipe is read without waiting; finished lines go to the queue of their [`Sink`]
//! (standard output or error), an unfinished one after a short pause, for prompts and progress bars.
//! The pause is one of the rank: it counts while the pipe is read, and found empty, not while the
//! reader of the sink is waited for. A line too long to be kept is written in pieces, and no other
//! rank's pipe is read meanwhile. On a host of its own, the sink is `mpiexec` on another one, which
//! says when there is room.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

use weft_bootstrap::limits::explain;

use crate::frames::Up;
use crate::message_dedup::MessageDedup;
use crate::uplink::Uplink;

/// Pause after which an unfinished line is written.
const PAUSE: Duration = Duration::from_millis(100);
/// So many pauses more of a rank that is at work all the time.
const BUSY: u32 = 9;
/// Longest unfinished line that is kept, in bytes.
const LONGEST: usize = 64 * 1024;
/// Bytes in a sink's queue above which ranks' pipes are not read, so that they wait.
const FULL: usize = 1 << 20;
/// Most bytes that are read of a rank that has ended, before the reason for the end is told.
const LAST: usize = 1 << 20;
/// A pipe that polls as writable takes this much without waiting (PIPE_BUF).
const ATOMIC: usize = 4096;

/// Whose words these are; `None` for `mpiexec`'s own.
type Speaker = Option<usize>;

/// Where text goes.
enum Target {
    Descriptor(BorrowedFd<'static>),
    /// `mpiexec` on another host; `error`: to its standard error. `numbers`: of the ranks here.
    Remote {
        uplink: Uplink,
        error: bool,
        numbers: Rc<[u32]>,
        /// Bytes that were sent, and have not found their reader.
        under_way: usize,
    },
}

/// Standard output or standard error of `mpiexec`.
pub struct Sink {
    target: Target,
    queue: Vec<u8>,
    written: usize,
    /// Who has written an unfinished line, and is expected to finish it.
    unfinished: Option<Speaker>,
    /// The rank whose line is being written in pieces: the others wait for its end.
    owner: Option<usize>,
    /// Nobody reads.
    broken: bool,
    /// What is written is lost, but for nobody's wish: a full disk, a limit on files.
    failed: Option<std::io::Error>,
    lost: bool,
    tag: bool,
    /// What the library says on many ranks; for standard error.
    dedup: Option<MessageDedup>,
}

impl Sink {
    /// A sink that writes to `target`.
    pub fn new(target: BorrowedFd<'static>, tag: bool) -> Self {
        Self::of(Target::Descriptor(target), tag)
    }

    /// A sink that is `mpiexec` on another host.
    pub fn remote(uplink: Uplink, error: bool, numbers: Rc<[u32]>) -> Self {
        Self::of(Target::Remote { uplink, error, numbers, under_way: 0 }, false)
    }

    fn of(target: Target, tag: bool) -> Self {
        Sink {
            target,
            queue: Vec::new(),
            written: 0,
            unfinished: None,
            owner: None,
            broken: false,
            failed: None,
            lost: false,
            tag,
            dedup: None,
        }
    }

    /// The same, where one cause is one line of the library's, and a count of the other ranks.
    pub fn once_a_cause(mut self) -> Self {
        self.dedup = Some(MessageDedup::default());
        self
    }

    /// Queues how many ranks said what was left out.
    pub fn sum_up(&mut self) {
        for line in self.dedup.as_mut().map(MessageDedup::summary).unwrap_or_default() {
            self.say(&line);
        }
    }

    /// Queues text, which may end within a line.
    pub fn push(&mut self, speaker: Speaker, text: &[u8]) {
        if self.broken || self.lost || text.is_empty() {
            return;
        }
        let mut rest = Vec::new();
        let text = match (speaker, &mut self.dedup) {
            // Only whole lines can be told apart.
            (Some(rank), Some(dedup)) if self.unfinished != Some(speaker) => {
                let lines = text.split_inclusive(|&byte| byte == b'\n');
                rest.extend(lines.filter(|line| dedup.is_new(rank, line)).flatten());
                &rest
            }
            _ => text,
        };
        if text.is_empty() {
            return;
        }
        if let Target::Remote { uplink, error, numbers, under_way } = &mut self.target {
            return match speaker {
                None => uplink.send(&Up::Say(String::from_utf8_lossy(text).into_owned())),
                Some(rank) => {
                    *under_way += text.len();
                    let (rank, text) = (numbers[rank], text.to_vec());
                    uplink.send(&Up::Output { rank, error: *error, text });
                }
            };
        }
        let continues = self.unfinished == Some(speaker);
        if self.unfinished.is_some() && !continues {
            self.queue.push(b'\n');
        }
        match speaker {
            Some(rank) if self.tag => {
                for (n, line) in text.split_inclusive(|&byte| byte == b'\n').enumerate() {
                    if n > 0 || !continues {
                        self.queue.extend(format!("[{rank}] ").as_bytes());
                    }
                    self.queue.extend(line);
                }
            }
            _ => self.queue.extend(text),
        }
        self.unfinished = (text.last() != Some(&b'\n')).then_some(speaker);
    }

    /// Queues a message of `mpiexec` itself.
    pub fn say(&mut self, message: &str) {
        self.push(None, format!("{message}\n").as_bytes());
    }

    /// Text that was sent to another host has found its reader.
    pub fn arrived(&mut self, bytes: usize) {
        if let Target::Remote { under_way, .. } = &mut self.target {
            *under_way = under_way.saturating_sub(bytes);
        }
    }

    /// Nobody reads it, on the host that it was sent to.
    pub fn close(&mut self) {
        self.broken = true;
    }

    /// Whether there is something to write.
    pub fn is_waiting(&self) -> bool {
        self.written < self.queue.len()
    }

    /// Whether nobody reads what is written here.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Why what was written is lost, told once.
    pub fn take_failure(&mut self) -> Option<std::io::Error> {
        self.failed.take()
    }

    /// Whether no more text is wanted now.
    pub fn is_full(&self) -> bool {
        let under_way = match self.target {
            Target::Descriptor(_) => 0,
            Target::Remote { under_way, .. } => under_way,
        };
        self.queue.len() - self.written + under_way > FULL
    }

    /// To poll for writing; `None` if it does not write itself.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self.target {
            Target::Descriptor(target) => Some(target),
            Target::Remote { .. } => None,
        }
    }

    /// Writes a piece. Only to be called when the target polls as writable.
    pub fn write(&mut self) {
        let Target::Descriptor(target) = self.target else { return };
        let rest = &self.queue[self.written..];
        let mut length = rest.len().min(ATOMIC);
        // Whole lines in each call, so that others who write to the same target do not split them.
        if let Some(end) = rest[..length].iter().rposition(|&byte| byte == b'\n') {
            length = end + 1;
        }
        match nix::unistd::write(target, &rest[..length]) {
            Ok(count) => self.written += count,
            Err(nix::Error::EINTR | nix::Error::EAGAIN) => {}
            Err(error) => {
                // Who has gone away wants no more; others do not know what they miss.
                match error {
                    nix::Error::EPIPE => self.broken = true,
                    error => {
                        self.failed = Some(error.into());
                        self.lost = true;
                    }
                }
                self.written = self.queue.len();
            }
        }
        if self.written == self.queue.len() {
            self.queue.clear();
            self.written = 0;
        } else if self.written > FULL {
            self.queue.drain(..self.written);
            self.written = 0;
        }
    }
}

/// A line for the user if what was written to a sink is lost: `number` 0 is standard output, 1 error.
pub fn unwritten(sink: &mut Sink, number: usize) -> Option<String> {
    let error = sink.take_failure()?;
    let name = ["standard output", "standard error"][number];
    Some(format!(
        "mpiexec: {name} cannot be written, and the rest of it is lost: {}",
        explain(&error)
    ))
}

/// Standard output or error of one rank.
pub struct Stream {
    pipe: File,
    /// The rank.
    pub rank: usize,
    /// Index of the sink.
    pub sink: usize,
    line: Vec<u8>,
    /// Since when more of an unfinished line is waited for.
    since: Option<Instant>,
    /// Pauses in a row after which the rank was found at work.
    busy: u32,
    /// Nothing more will come.
    pub ended: bool,
}

impl Stream {
    /// Reads from a pipe, which must not wait.
    pub fn new(pipe: File, rank: usize, sink: usize) -> Self {
        Stream { pipe, rank, sink, line: Vec::new(), since: None, busy: 0, ended: false }
    }

    /// To poll for reading.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Whether to read at all now.
    pub fn is_wanted(&self, sink: &Sink) -> bool {
        let is_free = sink.broken || sink.owner.is_none_or(|owner| owner == self.rank);
        !self.ended && !sink.is_full() && is_free
    }

    /// When the unfinished line is to be written.
    pub fn deadline(&self) -> Option<Instant> {
        Some(self.since? + PAUSE)
    }

    /// Writes the unfinished line if no more of it has come for a while, in which the pipe was read.
    /// `state`: the state letter of the rank's process. One that is stopped will go on with its line;
    /// one that could run may not have had a processor.
    pub fn mind(&mut self, sink: &mut Sink, now: Instant, state: impl FnOnce(usize) -> char) {
        let is_owner = sink.owner == Some(self.rank);
        if !self.is_wanted(sink) || (self.line.is_empty() && !is_owner) {
            self.since = None;
        } else if self.since.is_none() {
            self.since = Some(now);
        } else if self.is_due(now) {
            // More may have come since the pipe was last looked at.
            self.read(sink, now);
            if self.is_due(now) {
                match state(self.rank) {
                    'T' | 't' => self.since = Some(now),
                    'R' | 'D' if self.busy < BUSY => {
                        self.busy += 1;
                        self.since = Some(now);
                    }
                    _ => self.flush(sink),
                }
            }
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        self.deadline().is_some_and(|deadline| deadline <= now)
    }

    /// Reads what is there, up to the sink's bound.
    pub fn read(&mut self, sink: &mut Sink, now: Instant) {
        self.read_some(sink, now, usize::MAX);
    }

    /// Reads what is there, full as the sink may be: of a rank that has ended.
    pub fn read_last(&mut self, sink: &mut Sink, now: Instant) {
        self.read_some(sink, now, LAST);
    }

    /// Reads what the sink wants, or `regardless` bytes if that is a number.
    fn read_some(&mut self, sink: &mut Sink, now: Instant, regardless: usize) {
        let mut piece = [0; 16 * 1024];
        let mut left = regardless;
        while (self.is_wanted(sink) || left < usize::MAX) && left > 0 && !self.ended {
            if sink.is_broken() {
                // Nobody reads: the rank is to see that as it would without us.
                self.ended = true;
                return;
            }
            match self.pipe.read(&mut piece) {
                Ok(0) => self.end(sink),
                Ok(length) => {
                    self.take(&piece[..length], sink, now);
                    left = if left == usize::MAX { left } else { left.saturating_sub(length) };
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.end(sink),
            }
        }
    }

    fn take(&mut self, piece: &[u8], sink: &mut Sink, now: Instant) {
        let end = piece.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        if end > 0 {
            self.line.extend(&piece[..end]);
            self.flush(sink);
        }
        self.line.extend(&piece[end..]);
        self.since = (!self.line.is_empty()).then_some(now);
        self.busy = 0;
        if self.line.len() >= LONGEST {
            self.flush(sink);
            sink.owner = Some(self.rank);
            self.since = Some(now);
        }
    }

    /// Writes what is kept of an unfinished line.
    pub fn flush(&mut self, sink: &mut Sink) {
        sink.push(Some(self.rank), &self.line);
        self.line.clear();
        self.since = None;
        self.busy = 0;
        sink.owner.take_if(|owner| *owner == self.rank);
    }

    /// Writes the rest; nothing more will come.
    pub fn end(&mut self, sink: &mut Sink) {
        self.flush(sink);
        self.ended = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    use std::os::fd::AsFd;

    fn sink(tag: bool) -> Sink {
        let file: &'static File = Box::leak(Box::new(File::create("/dev/null").unwrap()));
        Sink::new(file.as_fd(), tag)
    }

    fn stream(rank: usize) -> Stream {
        Stream::new(File::open("/dev/null").unwrap(), rank, 0)
    }

    #[test]
    fn lines_of_ranks_do_not_mix() {
        let (mut sink, now) = (sink(true), Instant::now());
        let (mut a, mut b) = (stream(0), stream(1));
        a.take(b"one\ntw", &mut sink, now);
        b.take(b"three\n", &mut sink, now);
        a.take(b"o\n", &mut sink, now);
        assert_eq!(sink.queue, b"[0] one\n[1] three\n[0] two\n");
    }

    #[test]
    fn a_flushed_unfinished_line_goes_on_or_is_ended() {
        let (mut sink, now) = (sink(true), Instant::now());
        let (mut a, mut b) = (stream(0), stream(1));
        a.take(b"name? ", &mut sink, now);
        assert!(a.deadline().is_some() && sink.queue.is_empty());
        a.flush(&mut sink);
        a.take(b"yes\n", &mut sink, now);
        a.take(b"50%", &mut sink, now);
        a.end(&mut sink);
        b.take(b"other\n", &mut sink, now);
        sink.say("end");
        assert_eq!(sink.queue, b"[0] name? yes\n[0] 50%\n[1] other\nend\n");
    }

    #[test]
    fn an_unfinished_line_waits_for_readers_stopped_ranks_and_busy_ones() {
        let (mut sink, mut now) = (sink(false), Instant::now());
        let (empty, _writer) = std::io::pipe().unwrap();
        fcntl(&empty, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
        let mut a = Stream::new(File::from(std::os::fd::OwnedFd::from(empty)), 0, 0);
        let mut turns = |a: &mut Stream, sink: &mut Sink, count: u32, state: char| {
            for _ in 0..count {
                now += PAUSE;
                a.mind(sink, now, |_| state);
            }
        };
        a.take(b"half", &mut sink, Instant::now());
        sink.push(Some(1), &[b'\n'; FULL + 1]);
        turns(&mut a, &mut sink, 50, 'S');
        assert_eq!((sink.queue.len(), a.deadline()), (FULL + 1, None), "nobody reads");
        (sink.queue, sink.unfinished) = (Vec::new(), None);
        turns(&mut a, &mut sink, 50, 'T');
        assert_eq!(sink.queue, b"", "it is stopped");
        turns(&mut a, &mut sink, BUSY, 'R');
        assert_eq!(sink.queue, b"", "it is at work");
        turns(&mut a, &mut sink, 1, 'R');
        assert_eq!(sink.queue, b"half");
        a.take(b" of\nit", &mut sink, Instant::now());
        turns(&mut a, &mut sink, 2, 'S');
        assert_eq!(sink.queue, b"half of\nit");
    }

    #[test]
    fn who_writes_a_long_line_is_not_interrupted() {
        let (mut sink, now) = (sink(false), Instant::now());
        let (mut a, b) = (stream(0), stream(1));
        a.take(&[b'x'; LONGEST], &mut sink, now);
        assert!(a.is_wanted(&sink) && !b.is_wanted(&sink));
        a.take(b"\n", &mut sink, now);
        assert!(b.is_wanted(&sink));
    }

    #[test]
    fn untagged_output_of_one_rank_is_unchanged() {
        let (mut sink, now) = (sink(false), Instant::now());
        let mut a = stream(0);
        let text: Vec<u8> = (0..200_000u32).map(|n| (n * 7 % 251) as u8).collect();
        for piece in text.chunks(999) {
            a.take(piece, &mut sink, now);
        }
        a.end(&mut sink);
        assert!(sink.queue == text);
    }
}
