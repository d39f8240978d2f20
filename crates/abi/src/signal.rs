//! Signal of the progress design `signal`. The helper sends the signal to the program's thread, and the signal handler starts
//! transfers.
//!
//! Contract. The handler runs on the program's thread only. Outside of the library, it may run between any two instructions of the
//! thread, and does only the work of [`Endpoint::interrupted`]: it takes no lock, allocates nothing and polls no future. If the
//! thread is inside of the library, the handler withdraws the helper's announcement, so that the thread handles messages when it
//! leaves. The handler saves errno. Interrupted system calls are restarted, except sleeps and polls (signal(7)).
//!
//! The signal belongs to the program, too. It cannot be used if it has a handler already when the design starts, or gets a handler
//! later, or if the program's thread blocks it. Then the helper reports this on standard error and uses handover from then on.
//!
//! [`Endpoint::interrupted`]: weft_p2p::Endpoint::interrupted

use crate::hand_over;
use crate::state::state;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

/// The program's thread, which is the thread that called [`begin`].
static THREAD: AtomicU64 = AtomicU64::new(0);
static THREAD_ID: AtomicI32 = AtomicI32::new(0);
/// Number of signals whose handler has begun.
static HANDLED: AtomicU64 = AtomicU64::new(0);

/// Time for which a signal may stay unhandled before the helper looks for the reason.
pub const PATIENCE: Duration = Duration::from_millis(10);

/// Reason why the signal cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalRefusal {
    /// The signal has a handler that is not the library's.
    Taken,
    /// The program's thread blocks the signal.
    Blocked,
    /// The system refuses a handler for the signal, with this errno.
    Refused(i32),
}

impl SignalRefusal {
    /// Describes the reason, and the remedies for the user.
    pub fn text(self, signal: i32) -> String {
        let why = match self {
            SignalRefusal::Taken => "the program has a handler of its own for it".to_owned(),
            SignalRefusal::Blocked => "the program blocks it".to_owned(),
            SignalRefusal::Refused(errno) => {
                format!("a handler for it is refused: {}", std::io::Error::from_raw_os_error(errno))
            }
        };
        format!(
            "WEFT_PROGRESS=signal: signal {signal} ({}) cannot be used, {why}: the helper thread hands \
             over instead; choose another with WEFT_PROGRESS_SIGNAL",
            name(signal)
        )
    }
}

fn name(signal: i32) -> String {
    let known = [
        (libc::SIGURG, "SIGURG"),
        (libc::SIGUSR1, "SIGUSR1"),
        (libc::SIGUSR2, "SIGUSR2"),
        (libc::SIGIO, "SIGIO"),
        (libc::SIGALRM, "SIGALRM"),
        (libc::SIGPROF, "SIGPROF"),
        (libc::SIGVTALRM, "SIGVTALRM"),
    ];
    match known.iter().find(|&&(number, _)| number == signal) {
        Some(&(_, name)) => name.to_owned(),
        None if signal >= libc::SIGRTMIN() => format!("SIGRTMIN+{}", signal - libc::SIGRTMIN()),
        None => "of that number".to_owned(),
    }
}

/// Begins to use the signal on the calling thread, which is the program's. Errors: the reason why the signal cannot be used.
pub fn begin(signal: i32) -> Result<(), SignalRefusal> {
    // SAFETY: both calls take no pointers.
    let (thread, id) = unsafe { (libc::pthread_self(), libc::syscall(libc::SYS_gettid)) };
    THREAD.store(thread, Ordering::Relaxed);
    THREAD_ID.store(id as i32, Ordering::Relaxed);
    match disposition(signal) {
        libc::SIG_DFL | libc::SIG_IGN => {}
        _ => return Err(SignalRefusal::Taken),
    }
    if is_blocked(signal) {
        return Err(SignalRefusal::Blocked);
    }
    // SAFETY: zeros are a valid `sigaction`: all fields are numbers, or options.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handle as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: `action` is valid for reads: an empty mask, and a handler of the type that is called without SA_SIGINFO.
    if unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) } != 0 {
        return Err(SignalRefusal::Refused(
            std::io::Error::last_os_error().raw_os_error().unwrap_or(0),
        ));
    }
    Ok(())
}

/// Removes the handler, if it is still the library's. If a signal is still pending, it is ignored, or handled before this function
/// returns.
pub fn end(signal: i32) {
    if !is_taken(signal) {
        // Signals other than SIGURG are ignored from now on, because their default action may end the process, and a signal may
        // still be pending.
        // SAFETY: the new disposition is one of the system's, not a function.
        unsafe {
            libc::signal(signal, if signal == libc::SIGURG { libc::SIG_DFL } else { libc::SIG_IGN })
        };
    }
}

/// Interrupts the program's thread.
pub fn send(signal: i32) {
    // SAFETY: `THREAD` is the thread that initialised MPI. If it has ended, the process has ended, too, or `pthread_kill` reports
    // an error.
    unsafe { libc::pthread_kill(THREAD.load(Ordering::Relaxed), signal) };
}

/// Returns the number of signals whose handler has begun.
pub fn handled() -> u64 {
    HANDLED.load(Ordering::Acquire)
}

/// Returns true if the signal no longer has the library's handler. Any thread may call this function.
pub fn is_taken(signal: i32) -> bool {
    disposition(signal) != handle as *const () as libc::sighandler_t
}

fn disposition(signal: i32) -> libc::sighandler_t {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: `action` is valid for writes of a `sigaction`. It is zeroed, and zeros are a valid `sigaction`.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr());
        action.assume_init().sa_sigaction
    }
}

/// Returns true if the calling thread blocks the signal.
fn is_blocked(signal: i32) -> bool {
    let mut set = MaybeUninit::zeroed();
    // SAFETY: `set` is valid for writes of a `sigset_t`, and written before it is read.
    unsafe {
        libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), set.as_mut_ptr());
        libc::sigismember(set.as_ptr(), signal) == 1
    }
}

/// Returns true if the program's thread blocks the signal, by its status in /proc. Any thread may call this function.
pub fn is_blocked_there(signal: i32) -> bool {
    let path = format!("/proc/self/task/{}/status", THREAD_ID.load(Ordering::Relaxed));
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("SigBlk:"));
    let mask = line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

extern "C" fn handle(_signal: i32) {
    // SAFETY: `__errno_location` returns a valid pointer to the thread's own errno.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: `pthread_self` takes no arguments.
    let here = unsafe { libc::pthread_self() };
    // The helper sends the signal only to the program's thread. If another thread gets the signal, it comes from another sender,
    // and is ignored.
    if here == THREAD.load(Ordering::Relaxed) {
        HANDLED.fetch_add(1, Ordering::Release);
        hand_over::interrupted(|| {
            if let Some(engine) = state().engine.get() {
                engine.endpoint().interrupted();
                return engine.endpoint().is_behind();
            }
            false
        });
    }
    // SAFETY: `__errno_location` returns a valid pointer to the thread's own errno.
    unsafe { *libc::__errno_location() = errno };
}
