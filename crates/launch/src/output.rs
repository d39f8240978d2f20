//! Output of the ranks: complete lines, in the order in which they arrive. If the user wants it, each line begins with the rank's
//! number.
//!
//! A rank's pipe is read without waiting. Complete lines go to the queue of their [`Sink`] (standard output or error). An
//! unfinished line, such as a prompt or a progress bar, goes to the queue after the rank has written nothing for a short time. This
//! time counts only while the pipe is read and is empty, and not while the sink waits for its reader. A line that is longer than
//! the limit is written in pieces, and no other rank's pipe is read meanwhile. On a remote host, the sink is `mpiexec` on the
//! user's host, which reports how many bytes its reader has read.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

use weft_bootstrap::limits::explain;

use crate::frames::Up;
use crate::last_words::LastWords;
use crate::message_dedup::MessageDedup;
use crate::standard_streams::StandardStream;
use crate::uplink::Uplink;

/// Pause after which an unfinished line is written.
const PAUSE: Duration = Duration::from_millis(100);
/// Maximum number of times that another [`PAUSE`] follows before an unfinished line of a running process is written. Such a process
/// may only be waiting for a processor.
const BUSY: u32 = 9;
/// Maximum length of an unfinished line that is kept, in bytes.
const LONGEST: usize = 64 * 1024;
/// Maximum number of bytes in a sink's queue up to which the pipes of ranks are read. Above this number, the ranks must wait.
const FULL: usize = 1 << 20;
/// Maximum number of bytes that are read from a rank that has ended, before the reason why it ended is printed.
const LAST: usize = 1 << 20;
/// Number of bytes that can be written without waiting to a pipe that polls as writable (PIPE_BUF).
const ATOMIC: usize = 4096;

/// Rank that has written a text. `None` stands for `mpiexec` itself.
type Speaker = Option<usize>;

/// Destination of text.
enum Target {
    Descriptor(BorrowedFd<'static>),
    /// A stream of `mpiexec` on another host. `numbers` contains, for each rank of this host, its number in the job.
    Remote {
        uplink: Uplink,
        stream: StandardStream,
        numbers: Rc<[u32]>,
        /// Number of bytes that were sent to `mpiexec`, but have not been read by its reader.
        under_way: usize,
    },
}

/// Standard output or standard error of `mpiexec`.
pub struct Sink {
    target: Target,
    queue: Vec<u8>,
    written: usize,
    /// Speaker whose unfinished line was written. The next text of this speaker continues the line.
    unfinished: Option<Speaker>,
    /// Rank whose line is being written in pieces. The other ranks wait until the line is complete.
    owner: Option<usize>,
    /// True if the reader is gone.
    broken: bool,
    /// Error of a write, such as a full disk or a limit on files. It is kept until it is reported.
    failed: Option<std::io::Error>,
    lost: bool,
    tag: bool,
    /// Filter for messages that the library prints on many ranks. Only standard error has a filter.
    dedup: Option<MessageDedup>,
    /// Last bytes that each rank has written, for the parents of a spawned job. They are kept only for standard error.
    last_words: Option<LastWords>,
}

impl Sink {
    /// Creates a sink that writes to `target`.
    pub fn new(target: BorrowedFd<'static>, tag: bool) -> Self {
        Sink { tag, ..Self::of(Target::Descriptor(target)) }
    }

    /// Creates a sink that sends to `mpiexec` on another host.
    pub fn remote(uplink: Uplink, stream: StandardStream, numbers: Rc<[u32]>) -> Self {
        Self::of(Target::Remote { uplink, stream, numbers, under_way: 0 })
    }

    fn of(target: Target) -> Self {
        Sink {
            target,
            queue: Vec::new(),
            written: 0,
            unfinished: None,
            owner: None,
            broken: false,
            failed: None,
            lost: false,
            tag: false,
            dedup: None,
            last_words: None,
        }
    }

    /// Returns the sink with a filter for messages of the library. Each message is printed once for each cause. At the end, the
    /// number of other ranks with the same message is printed.
    pub fn once_a_cause(mut self) -> Self {
        self.dedup = Some(MessageDedup::default());
        self
    }

    /// Returns the sink with a store for the last bytes that each rank writes.
    pub fn with_last_words(mut self) -> Self {
        self.last_words = Some(LastWords::default());
        self
    }

    /// Returns the last bytes that `rank` has written. For `None`, returns the last bytes of the lowest rank that has written any
    /// text.
    pub fn last_words(&self, rank: Option<usize>) -> &[u8] {
        let Some(words) = &self.last_words else { return &[] };
        rank.map_or_else(|| words.of_lowest(), |rank| words.of(rank))
    }

    /// Queues a line for each message that was left out. The line names the number of ranks.
    pub fn sum_up(&mut self) {
        for line in self.dedup.as_mut().map(MessageDedup::summary).unwrap_or_default() {
            self.say(&line);
        }
    }

    /// Queues text. The text need not end with a complete line.
    pub fn push(&mut self, speaker: Speaker, text: &[u8]) {
        if let (Some(rank), Some(words)) = (speaker, &mut self.last_words) {
            words.add(rank, text);
        }
        if self.broken || self.lost || text.is_empty() {
            return;
        }
        let mut rest = Vec::new();
        let text = match (speaker, &mut self.dedup) {
            // Only complete lines can be compared.
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
        if let Target::Remote { uplink, stream, numbers, under_way } = &mut self.target {
            return match speaker {
                None => uplink.send(&Up::Say(String::from_utf8_lossy(text).into_owned())),
                Some(rank) => {
                    *under_way += text.len();
                    let (rank, text) = (numbers[rank], text.to_vec());
                    let error = *stream == StandardStream::Error;
                    uplink.send(&Up::Output { rank, error, text });
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

    /// Records that the reader has read `bytes` bytes of the text that was sent to another host.
    pub fn arrived(&mut self, bytes: usize) {
        if let Target::Remote { under_way, .. } = &mut self.target {
            *under_way = under_way.saturating_sub(bytes);
        }
    }

    /// Records that the reader on the other host is gone.
    pub fn close(&mut self) {
        self.broken = true;
    }

    /// Returns true if text waits to be written.
    pub fn is_waiting(&self) -> bool {
        self.written < self.queue.len()
    }

    /// Returns true if the reader is gone.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Returns the error that caused a loss of text, and forgets the error.
    pub fn take_failure(&mut self) -> Option<std::io::Error> {
        self.failed.take()
    }

    /// Returns true if the queue is full.
    pub fn is_full(&self) -> bool {
        let under_way = match self.target {
            Target::Descriptor(_) => 0,
            Target::Remote { under_way, .. } => under_way,
        };
        self.queue.len() - self.written + under_way > FULL
    }

    /// Returns the descriptor to poll for writing; `None` if the sink is remote.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self.target {
            Target::Descriptor(target) => Some(target),
            Target::Remote { .. } => None,
        }
    }

    /// Writes a piece of the queue. The target must poll as writable.
    pub fn write(&mut self) {
        let Target::Descriptor(target) = self.target else { return };
        let rest = &self.queue[self.written..];
        let mut length = rest.len().min(ATOMIC);
        // Each call writes complete lines, so that other writers to the same target do not split lines.
        if let Some(end) = rest[..length].iter().rposition(|&byte| byte == b'\n') {
            length = end + 1;
        }
        match nix::unistd::write(target, &rest[..length]) {
            Ok(count) => self.written += count,
            Err(nix::Error::EINTR | nix::Error::EAGAIN) => {}
            Err(error) => {
                // If the reader is gone, this is not reported. Any other error is reported, because it loses text that the user
                // expects.
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

/// Returns a line for the user if text for a sink was lost. `number` is 0 for standard output and 1 for standard error.
pub fn unwritten(sink: &mut Sink, number: usize) -> Option<String> {
    let error = sink.take_failure()?;
    let name = ["standard output", "standard error"][number];
    Some(format!(
        "mpiexec: {name} cannot be written, and the rest of it is lost: {}",
        explain(&error)
    ))
}

/// Standard output or error of one rank.
pub struct RankStream {
    pipe: File,
    /// Index of the rank.
    pub rank: usize,
    /// Index of the sink to which the output goes.
    pub sink: usize,
    line: Vec<u8>,
    /// Start of the present pause, in which the rank has an unfinished line and writes nothing.
    since: Option<Instant>,
    /// Number of consecutive pauses at the end of which the rank's process was running.
    busy: u32,
    /// True if no more output comes.
    pub ended: bool,
}

impl RankStream {
    /// Creates a stream that reads from a pipe in nonblocking mode.
    pub fn new(pipe: File, rank: usize, sink: usize) -> Self {
        RankStream { pipe, rank, sink, line: Vec::new(), since: None, busy: 0, ended: false }
    }

    /// Returns the descriptor to poll for reading.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Returns true if the pipe should be read now.
    pub fn is_wanted(&self, sink: &Sink) -> bool {
        let is_free = sink.broken || sink.owner.is_none_or(|owner| owner == self.rank);
        !self.ended && !sink.is_full() && is_free
    }

    /// Returns the time at which the unfinished line must be written.
    pub fn deadline(&self) -> Option<Instant> {
        Some(self.since? + PAUSE)
    }

    /// Writes the unfinished line if the rank has paused. `state` returns the state letter of the rank's process. A stopped process
    /// may continue its line later. A running process may have waited for a processor. So both get more time.
    pub fn check_pause(
        &mut self,
        sink: &mut Sink,
        now: Instant,
        state: impl FnOnce(usize) -> char,
    ) {
        let is_owner = sink.owner == Some(self.rank);
        if !self.is_wanted(sink) || (self.line.is_empty() && !is_owner) {
            self.since = None;
        } else if self.since.is_none() {
            self.since = Some(now);
        } else if self.is_due(now) {
            // More text may have arrived since the last read.
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

    /// Reads available output, up to the sink's limit.
    pub fn read(&mut self, sink: &mut Sink, now: Instant) {
        self.read_some(sink, now, usize::MAX);
    }

    /// Reads available output of a rank that has ended, even if the sink is full.
    pub fn read_last(&mut self, sink: &mut Sink, now: Instant) {
        self.read_some(sink, now, LAST);
    }

    /// Reads until the sink is full. If `regardless` is not `usize::MAX`, reads up to `regardless` bytes even if the sink is full.
    fn read_some(&mut self, sink: &mut Sink, now: Instant, regardless: usize) {
        let mut piece = [0; 16 * 1024];
        let mut left = regardless;
        while (self.is_wanted(sink) || left < usize::MAX) && left > 0 && !self.ended {
            if sink.is_broken() {
                // The pipe is closed, so that the rank gets SIGPIPE, as it would without mpiexec.
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

    /// Writes the unfinished line.
    pub fn flush(&mut self, sink: &mut Sink) {
        sink.push(Some(self.rank), &self.line);
        self.line.clear();
        self.since = None;
        self.busy = 0;
        sink.owner.take_if(|owner| *owner == self.rank);
    }

    /// Writes the remaining text at the end of the output.
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

    fn stream(rank: usize) -> RankStream {
        RankStream::new(File::open("/dev/null").unwrap(), rank, 0)
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
        let mut a = RankStream::new(File::from(std::os::fd::OwnedFd::from(empty)), 0, 0);
        let mut turns = |a: &mut RankStream, sink: &mut Sink, count: u32, state: char| {
            for _ in 0..count {
                now += PAUSE;
                a.check_pause(sink, now, |_| state);
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
