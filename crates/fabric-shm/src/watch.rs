//! A thread that finds out whether processes of other jobs are still alive. It sleeps until such a process ends.
//!
//! Contract. The thread touches its list of processes under the lock, and in the segments only atomics. The thread reports a
//! loss first by `lost`, then by this rank's count of immediates, which [`crate::Shm`] reads in each round, and then by the
//! doorbell.

use crate::bell::RankBell;
use crate::connect::ShmConnectError;
use crate::control::RankControl;
use crate::segment::Segment;
use crate::sync::Ordering;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use weft_bootstrap::calls::{once, repeat_c, start_thread};
use weft_fabric::wait::Sleep;

/// Time between two checks of a process for which the system has no descriptor.
const LOOK: Duration = Duration::from_millis(500);

/// The control block of a rank.
#[derive(Clone)]
pub(crate) struct ControlPlace {
    pub segment: Arc<Segment>,
    pub rank: usize,
}

impl ControlPlace {
    fn get(&self) -> &RankControl {
        self.segment.control(self.rank)
    }
}

/// A process to watch.
pub(crate) struct WatchedProcess {
    peer: usize,
    pid: i32,
    descriptor: Option<OwnedFd>,
    /// The control block in which the process says that it has left.
    link: ControlPlace,
}

impl WatchedProcess {
    /// Creates the entry for `peer`. `link` is the control block in which the peer says that it has left. `home` is the control
    /// block of the peer in its own job.
    pub fn new(peer: usize, link: ControlPlace, home: &ControlPlace) -> WatchedProcess {
        let pid = home.get().facts.0.pid.load(Ordering::Relaxed) as i32;
        // SAFETY: pidfd_open takes no pointers. Kernels before 5.3 do not have this call and return an error.
        let found = once(|| unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) });
        // SAFETY: the call has just returned this descriptor, and nothing else owns it.
        let descriptor = found.ok().map(|fd| unsafe { OwnedFd::from_raw_fd(fd as i32) });
        WatchedProcess { peer, pid, descriptor, link }
    }

    fn has_left(&self) -> bool {
        self.link.get().facts.0.left.load(Ordering::Acquire) != 0
    }

    /// Returns true if the process has ended.
    fn is_gone(&self) -> bool {
        if let Some(descriptor) = &self.descriptor {
            let mut polled = pollfd(descriptor.as_raw_fd());
            // SAFETY: `polled` is a single valid pollfd, as the length says.
            return repeat_c(|| unsafe { libc::poll(&mut polled, 1, 0) }).is_ok_and(|n| n > 0);
        }
        // SAFETY: kill(2) takes no pointers, and signal 0 is not delivered.
        once(|| unsafe { libc::kill(self.pid, 0) })
            .is_err_and(|error| error.raw_os_error() == Some(libc::ESRCH))
    }
}

/// The state that the thread and the process share.
struct Shared {
    watched: Mutex<Vec<WatchedProcess>>,
    /// The number of a lost peer, plus one; 0: no peer was lost.
    lost: AtomicUsize,
}

impl Shared {
    fn list(&self) -> MutexGuard<'_, Vec<WatchedProcess>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The watching thread. It ends when this value is dropped.
pub(crate) struct WatchThread {
    shared: Arc<Shared>,
    wake: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl WatchThread {
    /// Starts the thread for rank `rank` of the job of `segment`.
    ///
    /// # Errors
    /// If the system has no descriptor or no thread left. Without the thread, the end of a peer would not be noticed.
    pub fn start(segment: Arc<Segment>, rank: usize) -> Result<WatchThread, ShmConnectError> {
        let failed = |what: &'static str| move |error| ShmConnectError::System { what, error };
        let shared = Arc::new(Shared { watched: Mutex::default(), lost: AtomicUsize::new(0) });
        let (wake, woken) =
            UnixStream::pair().map_err(failed("sockets for watching processes of another job"))?;
        let seen = shared.clone();
        let bell = RankBell { segment, rank, helper: false };
        let thread = start_thread("weft-watch", move || run(&seen, woken, &bell))
            .map_err(failed("starting a thread that watches processes of another job"))?;
        Ok(WatchThread { shared, wake, thread: Some(thread) })
    }

    pub fn add(&self, watched: WatchedProcess) {
        self.shared.list().push(watched);
        let _ = (&self.wake).write(&[1]);
    }

    pub fn remove(&self, peer: usize) {
        self.shared.list().retain(|watched| watched.peer != peer);
        let _ = (&self.wake).write(&[1]);
    }

    /// Returns a peer that has ended without notice.
    pub fn lost(&self) -> Option<usize> {
        self.shared.lost.load(Ordering::Acquire).checked_sub(1)
    }
}

impl Drop for WatchThread {
    fn drop(&mut self) {
        let _ = self.wake.shutdown(std::net::Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn pollfd(fd: RawFd) -> libc::pollfd {
    libc::pollfd { fd, events: libc::POLLIN, revents: 0 }
}

fn run(shared: &Shared, woken: UnixStream, bell: &RankBell) {
    let mut woken = File::from(OwnedFd::from(woken));
    loop {
        let (mut polled, blind) = {
            let list = shared.list();
            let descriptors = list.iter().filter_map(|one| one.descriptor.as_ref());
            let polled: Vec<_> = descriptors.map(|fd| pollfd(fd.as_raw_fd())).collect();
            let blind = polled.len() < list.len();
            (polled, blind)
        };
        polled.push(pollfd(woken.as_raw_fd()));
        let limit = if blind { LOOK.as_millis() as i32 } else { -1 };
        // SAFETY: `polled` has as many entries as the length says. A descriptor that was closed since is only an error of its
        // entry.
        let _ = repeat_c(|| unsafe {
            libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, limit)
        });
        if polled.pop().is_some_and(|one| one.revents != 0)
            && !matches!(woken.read(&mut [0; 64]), Ok(1..))
        {
            return;
        }
        // The list may have changed by now, and numbers of descriptors may have been reused. So the thread checks each process
        // again.
        let mut list = shared.list();
        list.retain(|watched| {
            let gone = watched.is_gone();
            if gone && !watched.has_left() {
                shared.lost.store(watched.peer + 1, Ordering::Release);
                bell.segment.control(bell.rank).immediates.0.fetch_add(1, Ordering::Release);
                bell.ring();
            }
            !gone
        });
    }
}

// Skipped under Miri, which has no processes.
#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::connect::found_with;
    use crate::layout::ARENA_MIN;
    use crate::options::ShmOptions;
    use std::process::{Child, Command};
    use std::time::Instant;

    fn found() -> Arc<Segment> {
        Arc::new(found_with(3, &ShmOptions::default(), ARENA_MIN).unwrap())
    }

    /// Starts a process as rank `rank`. The process lives until the test ends it.
    fn alive(segment: &Segment, rank: usize) -> Child {
        let child = Command::new("sleep").arg("100").spawn().unwrap();
        segment.control(rank).facts.0.pid.store(u64::from(child.id()), Ordering::Relaxed);
        child
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn who_ends_without_a_word_is_lost_and_nobody_else() {
        for blind in [false, true] {
            let segment = found();
            let (one, two) = (alive(&segment, 1), alive(&segment, 2));
            let watch = WatchThread::start(segment.clone(), 0).unwrap();
            let watched = |rank: usize| {
                let place = ControlPlace { segment: segment.clone(), rank };
                let made = WatchedProcess::new(10 + rank, place.clone(), &place);
                WatchedProcess { descriptor: made.descriptor.filter(|_| !blind), ..made }
            };
            watch.add(watched(1));
            watch.add(watched(2));
            segment.control(1).facts.0.left.store(1, Ordering::Release);
            end(one);
            std::thread::sleep(2 * LOOK);
            assert_eq!(watch.lost(), None);
            end(two);
            let since = Instant::now();
            while watch.lost().is_none() && since.elapsed() < Duration::from_secs(30) {
                std::thread::sleep(LOOK / 50);
            }
            assert_eq!(watch.lost(), Some(12));
            assert!(segment.control(0).immediates.0.load(Ordering::Acquire) > 0, "its rank looks");
        }
    }

    /// Runs in a process of its own, because the limit holds for all tests of a process.
    #[test]
    fn without_a_descriptor_the_error_names_the_limit() {
        const ALONE: &str = "WEFT_TEST_ALONE";
        if std::env::var_os(ALONE).is_none() {
            let name = "watch::tests::without_a_descriptor_the_error_names_the_limit";
            let own = std::env::current_exe().unwrap();
            let mut alone = Command::new(own);
            let output = alone.args(["--exact", name, "--nocapture"]).env(ALONE, "1").output();
            let output = output.unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            return;
        }
        let segment = found();
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 1024 };
        // SAFETY: `none` is a valid rlimit that lives until the call returns.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &none) }, 0);
        let error =
            WatchThread::start(segment, 0).err().expect("no descriptor is left").to_string();
        assert!(error.contains("ulimit -n") && error.contains("another job"), "{error}");
    }

    #[test]
    fn a_number_that_is_given_again_is_the_new_ones() {
        let segment = found();
        let watch = WatchThread::start(segment.clone(), 0).unwrap();
        let place = |rank: usize| ControlPlace { segment: segment.clone(), rank };
        for _ in 0..50 {
            // The watch of the next process gets the descriptor number of the ended process's watch, before the thread has looked
            // at that descriptor.
            let (old, new) = (alive(&segment, 1), alive(&segment, 2));
            watch.add(WatchedProcess::new(11, place(1), &place(1)));
            segment.control(1).facts.0.left.store(1, Ordering::Release);
            end(old);
            watch.remove(11);
            watch.add(WatchedProcess::new(12, place(2), &place(2)));
            std::thread::sleep(Duration::from_millis(2));
            assert_eq!(watch.lost(), None);
            watch.remove(12);
            end(new);
        }
    }
}
