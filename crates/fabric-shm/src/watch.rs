//! Looks whether processes of other jobs still live: a thread that sleeps until one of them ends.
//!
//! Contract. The thread touches what it was given under the lock, and of the segments only atomics. It tells of a loss by
//! `lost`, then by this rank's count of immediates, which [`crate::Shm`] looks at in each round, then by the doorbell.

use crate::bell::Bell;
use crate::segment::Segment;
use crate::sync::Ordering;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use weft_bootstrap::calls::{once, repeat_c};
use weft_fabric::wait::Sleep;

/// How often a process is looked for that the system has no descriptor for.
const LOOK: Duration = Duration::from_millis(500);

/// A process to look after.
pub(crate) struct Watched {
    peer: usize,
    pid: i32,
    descriptor: Option<OwnedFd>,
    /// Where it says that it has left.
    word: (Arc<Segment>, usize),
}

impl Watched {
    /// `peer` says that it has left in `word`; its process is that of the rank of its own job.
    pub fn new(peer: usize, word: (Arc<Segment>, usize), home: (&Segment, usize)) -> Watched {
        let pid = home.0.control(home.1).facts.0.pid.load(Ordering::Relaxed) as i32;
        // SAFETY: no pointers. Kernels before 5.3 do not know it.
        let found = once(|| unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) });
        // SAFETY: the descriptor is new and ours.
        let descriptor = found.ok().map(|fd| unsafe { OwnedFd::from_raw_fd(fd as i32) });
        Watched { peer, pid, descriptor, word }
    }

    fn has_left(&self) -> bool {
        let (segment, place) = &self.word;
        segment.control(*place).facts.0.left.load(Ordering::Acquire) != 0
    }

    /// Whether it has ended, where there is no descriptor to ask.
    fn is_gone(&self) -> bool {
        // SAFETY: signal 0 is not sent.
        once(|| unsafe { libc::kill(self.pid, 0) })
            .is_err_and(|error| error.raw_os_error() == Some(libc::ESRCH))
    }
}

/// What the thread and the process share.
struct Shared {
    watched: Mutex<Vec<Watched>>,
    /// One more than the number of a peer that was lost.
    lost: AtomicUsize,
}

impl Shared {
    fn list(&self) -> MutexGuard<'_, Vec<Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread, which ends with this.
pub(crate) struct Watch {
    shared: Arc<Shared>,
    wake: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// For rank `rank` of the job of `segment`.
    pub fn start(segment: Arc<Segment>, rank: usize) -> Watch {
        let shared = Arc::new(Shared { watched: Mutex::default(), lost: AtomicUsize::new(0) });
        let (wake, woken) = UnixStream::pair().expect("a pair of sockets");
        let seen = shared.clone();
        let bell = Bell { segment, rank, helper: false };
        let thread = thread::Builder::new().name("weft-watch".to_owned());
        let thread = thread.spawn(move || run(&seen, woken, &bell)).ok();
        Watch { shared, wake, thread }
    }

    pub fn add(&self, watched: Watched) {
        self.shared.list().push(watched);
        let _ = (&self.wake).write(&[1]);
    }

    pub fn remove(&self, peer: usize) {
        self.shared.list().retain(|watched| watched.peer != peer);
        let _ = (&self.wake).write(&[1]);
    }

    /// A peer that has ended without a word.
    pub fn lost(&self) -> Option<usize> {
        self.shared.lost.load(Ordering::Acquire).checked_sub(1)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.wake.shutdown(std::net::Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(shared: &Shared, woken: UnixStream, bell: &Bell) {
    // The program's signals are not this thread's.
    // SAFETY: a set of the caller's, filled before it is used.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
    }
    let mut woken = File::from(OwnedFd::from(woken));
    loop {
        let pollfd = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let (mut polled, blind) = {
            let list = shared.list();
            let descriptors = list.iter().filter_map(|one| one.descriptor.as_ref());
            let polled: Vec<_> = descriptors.map(|fd| pollfd(fd.as_raw_fd())).collect();
            let blind = polled.len() < list.len();
            (polled, blind)
        };
        polled.push(pollfd(woken.as_raw_fd()));
        let limit = if blind { LOOK.as_millis() as i32 } else { -1 };
        // SAFETY: the list has so many entries. A descriptor that was closed since is an error of its entry.
        let _ = repeat_c(|| unsafe {
            libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, limit)
        });
        if polled.pop().is_some_and(|one| one.revents != 0)
            && !matches!(woken.read(&mut [0; 64]), Ok(1..))
        {
            return;
        }
        let ended: Vec<i32> =
            polled.iter().filter(|one| one.revents != 0).map(|one| one.fd).collect();
        let mut list = shared.list();
        list.retain(|watched| {
            let gone = match &watched.descriptor {
                Some(fd) => ended.contains(&fd.as_raw_fd()),
                None => watched.is_gone(),
            };
            if gone && !watched.has_left() {
                shared.lost.store(watched.peer + 1, Ordering::Release);
                bell.segment.control(bell.rank).immediates.0.fetch_add(1, Ordering::Release);
                bell.ring();
            }
            !gone
        });
    }
}
