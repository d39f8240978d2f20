//! Clocks and sleeps of the system in virtual time, if `WEFT_SIM_CLOCKS` is 1.
//!
//! A clock shows the real time at which the process first looked, plus the rank's virtual time, plus the computing that the simulation
//! has not been told yet. A sleep is computing of its length. If computing takes no time, a reading takes the time of a reading by
//! MPI_Wtime. Before the process has joined the job, and for clocks of processor time, the system answers.

use crate::library::find_next;
use crate::slot;
use crate::system_clock::system_clock;
use std::cell::Cell;
use std::ffi::{c_int, c_uint};
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use weft_client::ClientFunction;
use weft_fabric_sim_client::{ClockReadings, RankSlot};

static GETTIMEOFDAY: ClientFunction = ClientFunction::new(c"gettimeofday");
static NANOSLEEP: ClientFunction = ClientFunction::new(c"nanosleep");

const SECOND: u64 = 1_000_000_000;

/// Returns the real time of a clock in nanoseconds.
fn real(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a local variable.
    unsafe { libc::syscall(libc::SYS_clock_gettime, clock, &raw mut now) };
    now.tv_sec as u64 * SECOND + now.tv_nsec as u64
}

/// Returns virtual time for a clock that follows it, in nanoseconds.
fn virtual_time(clock: libc::clockid_t) -> Option<u64> {
    let follows = matches!(
        clock,
        libc::CLOCK_REALTIME
            | libc::CLOCK_MONOTONIC
            | libc::CLOCK_MONOTONIC_RAW
            | libc::CLOCK_BOOTTIME
            | libc::CLOCK_REALTIME_COARSE
            | libc::CLOCK_MONOTONIC_COARSE
    );
    // Inside of a call the library measures real time.
    if !follows || !slot::follows_clocks() || slot::is_in_call() {
        return None;
    }
    let slot = slot::own_slot()?;
    slot::settle(slot);
    slot::add_computing(slot);
    static ORIGINS: OnceLock<[u64; 2]> = OnceLock::new();
    let origins = ORIGINS.get_or_init(|| {
        let since = slot.clock.load(Relaxed) / 1000;
        [libc::CLOCK_REALTIME, libc::CLOCK_MONOTONIC].map(|clock| real(clock).saturating_sub(since))
    });
    let of_day = matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE);
    let origin = origins[usize::from(!of_day)];
    if slot::compute_factor() == 0.0 {
        take_time(slot);
    }
    // The simulation does not know of this time yet.
    let computed = slot.compute.load(Relaxed) as f64 * slot::compute_factor();
    Some(origin + slot.clock.load(Relaxed) / 1000 + slot.slept.load(Relaxed) + computed as u64)
}

/// Lets the time of a reading pass.
fn take_time(slot: &RankSlot) {
    thread_local! {
        static READINGS: Cell<ClockReadings> = const { Cell::new(ClockReadings::new()) };
    }
    let now =
        || slot.clock.load(Relaxed).saturating_add(slot.slept.load(Relaxed).saturating_mul(1000));
    let mut readings = READINGS.get();
    slot.slept.fetch_add(readings.begin(now()) / 1000, Relaxed);
    readings.end(now());
    READINGS.set(readings);
}

/// Replaces clock_gettime(2).
///
/// # Safety
/// `time` points to a timespec.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: libc::clockid_t, time: *mut libc::timespec) -> c_int {
    match virtual_time(clock) {
        Some(nanos) => {
            let now = libc::timespec {
                tv_sec: (nanos / SECOND) as libc::time_t,
                tv_nsec: (nanos % SECOND) as libc::c_long,
            };
            // SAFETY: the caller promises that `time` points to a timespec.
            unsafe { time.write(now) };
            0
        }
        None => {
            // SAFETY: the caller promises that `time` points to a timespec.
            unsafe { system_clock(clock, time) }
        }
    }
}

/// Replaces gettimeofday(2).
///
/// # Safety
/// `time` is NULL or points to a timeval, and `zone` is as gettimeofday(2) requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(time: *mut libc::timeval, zone: *mut libc::c_void) -> c_int {
    match virtual_time(libc::CLOCK_REALTIME) {
        Some(nanos) if !time.is_null() => {
            let now = libc::timeval {
                tv_sec: (nanos / SECOND) as libc::time_t,
                tv_usec: (nanos % SECOND / 1000) as libc::suseconds_t,
            };
            // SAFETY: the caller promises that `time` points to a timeval.
            unsafe { time.write(now) };
            0
        }
        _ => {
            let next = GETTIMEOFDAY.address(find_next);
            // SAFETY: the address is that of the C library's function of this type.
            unsafe {
                let next: unsafe extern "C" fn(*mut libc::timeval, *mut libc::c_void) -> c_int =
                    std::mem::transmute(next);
                next(time, zone)
            }
        }
    }
}

/// Lets virtual time pass instead of a sleep. Returns false if the system is to sleep.
fn sleeps_virtually(nanos: u64) -> bool {
    if !slot::follows_clocks() {
        return false;
    }
    let Some(slot) = slot::own_slot() else { return false };
    slot::add_computing(slot);
    slot.slept.fetch_add(nanos, Relaxed);
    true
}

/// Replaces nanosleep(2).
///
/// # Safety
/// `time` points to a timespec, and `left` is NULL or points to a timespec.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nanosleep(
    time: *const libc::timespec,
    left: *mut libc::timespec,
) -> c_int {
    // SAFETY: the caller promises that `time` points to a timespec.
    let asked = unsafe { time.read() };
    let nanos = asked.tv_sec.max(0) as u64 * SECOND + asked.tv_nsec.max(0) as u64;
    if sleeps_virtually(nanos) {
        return 0;
    }
    let next = NANOSLEEP.address(find_next);
    // SAFETY: the address is that of the C library's function of this type.
    unsafe {
        let next: unsafe extern "C" fn(*const libc::timespec, *mut libc::timespec) -> c_int =
            std::mem::transmute(next);
        next(time, left)
    }
}

/// Replaces usleep(3).
#[unsafe(no_mangle)]
pub extern "C" fn usleep(micros: c_uint) -> c_int {
    let time = libc::timespec {
        tv_sec: (micros / 1_000_000) as libc::time_t,
        tv_nsec: (micros % 1_000_000) as libc::c_long * 1000,
    };
    // SAFETY: `time` is a local variable.
    unsafe { nanosleep(&time, std::ptr::null_mut()) }
}

/// Replaces sleep(3).
#[unsafe(no_mangle)]
pub extern "C" fn sleep(seconds: c_uint) -> c_uint {
    let time = libc::timespec { tv_sec: seconds as libc::time_t, tv_nsec: 0 };
    let mut left = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both are local variables.
    match unsafe { nanosleep(&time, &mut left) } {
        0 => 0,
        _ => left.tv_sec as c_uint,
    }
}
