//! The signal of the signal design: the helper sends it to the program's thread, which starts transfers in its handler.
//!
//! Contract. The handler runs on the program's thread alone, between two of its instructions outside of the library, and
//! does what [`Endpoint::interrupted`] does: no lock, no allocation, no future. If it finds the thread inside of the
//! library, it takes the helper's announcement back, so that the thread looks when it leaves. It saves errno; system
//! calls that it interrupts are restarted, as far as the system does that (signal(7): not sleeps and polls).
//!
//! The signal is the program's, too. One that has a handler already when the design starts, or gets one later, or that
//! the program's thread blocks, is no use: a line says so, and the helper goes by handover from then on.
//!
//! [`Endpoint::interrupted`]: weft_p2p::Endpoint::interrupted

use crate::helper;
use crate::state::state;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

/// The program's thread, which was inside the library when it was noted.
static THREAD: AtomicU64 = AtomicU64::new(0);
static THREAD_ID: AtomicI32 = AtomicI32::new(0);
/// Signals whose handler has begun.
static HANDLED: AtomicU64 = AtomicU64::new(0);

/// How long a signal may go unanswered before somebody looks why.
pub const PATIENCE: Duration = Duration::from_millis(10);

/// Why the signal cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalRefusal {
    /// It has a handler that is not ours.
    Taken,
    /// The program's thread blocks it.
    Blocked,
    /// The system refuses a handler for it, with this number.
    Refused(i32),
}

impl SignalRefusal {
    /// What it is, and what may be done, in words.
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

/// Begins on the calling thread, the program's. Errors: why the signal cannot be used.
pub fn begin(signal: i32) -> Result<(), SignalRefusal> {
    // SAFETY: no arguments.
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
    // SAFETY: all fields are numbers, or options.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handle as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: `action` is complete: an empty mask, and a function of the right type.
    if unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) } != 0 {
        return Err(SignalRefusal::Refused(
            std::io::Error::last_os_error().raw_os_error().unwrap_or(0),
        ));
    }
    Ok(())
}

/// Ends: the handler goes, if it is still ours. One that is pending does no harm: the default is to ignore it, or
/// it comes before this returns.
pub fn end(signal: i32) {
    if !is_taken(signal) {
        // A pending signal of another default must not end the process.
        // SAFETY: sets a disposition of the system's.
        unsafe {
            libc::signal(signal, if signal == libc::SIGURG { libc::SIG_DFL } else { libc::SIG_IGN })
        };
    }
}

/// Interrupts the program's thread.
pub fn send(signal: i32) {
    // SAFETY: the thread that initialised MPI; where it has ended, so has the process, or this reports an error.
    unsafe { libc::pthread_kill(THREAD.load(Ordering::Relaxed), signal) };
}

/// Signals whose handler has begun.
pub fn handled() -> u64 {
    HANDLED.load(Ordering::Acquire)
}

/// Whether somebody has taken the handler away: from any thread.
pub fn is_taken(signal: i32) -> bool {
    disposition(signal) != handle as *const () as libc::sighandler_t
}

fn disposition(signal: i32) -> libc::sighandler_t {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: writes `action`, which zeroes are valid for.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr());
        action.assume_init().sa_sigaction
    }
}

/// Whether the calling thread blocks it.
fn is_blocked(signal: i32) -> bool {
    let mut set = MaybeUninit::zeroed();
    // SAFETY: writes `set`.
    unsafe {
        libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), set.as_mut_ptr());
        libc::sigismember(set.as_ptr(), signal) == 1
    }
}

/// Whether the program's thread blocks it, as the system tells anybody.
pub fn is_blocked_there(signal: i32) -> bool {
    let path = format!("/proc/self/task/{}/status", THREAD_ID.load(Ordering::Relaxed));
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("SigBlk:"));
    let mask = line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

extern "C" fn handle(_signal: i32) {
    // SAFETY: the thread's own errno.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: no arguments.
    let here = unsafe { libc::pthread_self() };
    // Whoever else sends this signal to another thread of the program is none of ours.
    if here == THREAD.load(Ordering::Relaxed) {
        HANDLED.fetch_add(1, Ordering::Release);
        helper::interrupted(|| {
            if let Some(engine) = state().engine.get() {
                engine.endpoint().interrupted();
                return engine.endpoint().is_behind();
            }
            false
        });
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}
