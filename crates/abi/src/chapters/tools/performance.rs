//! Performance variables (MPI 5.0, section 15.3.7): sessions, and handles that measure.
//!
//! Counters and high-water marks can be started, stopped, reset and written by each handle. Levels and states show the present
//! value. A handle to a variable of a communicator becomes invalid when the communicator is freed.

use super::cvars::verbosity;
use super::pvar_handle::{CounterShare, HighMark};
use super::pvars::{Gauge, PvarClass, PvarSource, gauges, of_comm};
use super::{Tools, bad_handle, enumerations, index, not_null, ready, strings};
use crate::arguments::comm;
use crate::constants::*;
use crate::engine::CommObject;
use crate::error::Error;
use crate::lanes::MessageLane;
use crate::state::state;
use crate::types::{Comm, Datatype, TEnum, TPvarHandle, TPvarSession};
use std::ffi::{c_char, c_int, c_void};
use std::rc::Weak;

/// Handle of a performance variable.
pub struct Reading {
    session: usize,
    gauge: &'static Gauge,
    comm: Option<Weak<CommObject>>,
    meter: Meter,
}

enum Meter {
    /// The handle measures nothing, and shows the present value.
    None,
    Counter(CounterShare),
    Mark(HighMark),
}

impl Reading {
    /// Returns the library's present value. For a high mark, returns the highest level since the library's mark was reset.
    fn now(&self) -> Result<u64, Error> {
        Ok(match self.gauge.source {
            PvarSource::Process(read) | PvarSource::Mark(_, read) => self.gauge.of_process(read),
            PvarSource::Started(kind) => super::collective_counts::STARTED[kind].get(),
            PvarSource::Comm(read) => {
                let comm = self.comm.as_ref().and_then(Weak::upgrade).ok_or_else(|| {
                    let name = &self.gauge.name;
                    let text = format!("the communicator of this handle to {name} was freed");
                    Error::new(MPI_T_ERR_INVALID_HANDLE, text)
                })?;
                of_comm(read, &comm)
            }
        })
    }

    fn value(&self) -> Result<u64, Error> {
        let now = self.now()?;
        Ok(match &self.meter {
            Meter::None => now,
            Meter::Counter(counter) => counter.read(now),
            Meter::Mark(mark) => mark.read(now),
        })
    }

    /// Returns the present level of a variable with a high mark, and 0 for any other variable.
    fn level(&self) -> u64 {
        match self.gauge.source {
            PvarSource::Mark(level, _) => self.gauge.of_process(level),
            _ => 0,
        }
    }

    /// Starts the handle. The caller has reset the library's high marks.
    fn start(&mut self) -> Result<(), Error> {
        let (now, level) = (self.now()?, self.level());
        match &mut self.meter {
            Meter::None => return Err(self.always_on()),
            Meter::Counter(counter) => counter.start(now),
            Meter::Mark(mark) => mark.start(level),
        }
        Ok(())
    }

    fn stop(&mut self) -> Result<(), Error> {
        let now = self.now()?;
        match &mut self.meter {
            Meter::None => return Err(self.always_on()),
            Meter::Counter(counter) => counter.stop(now),
            Meter::Mark(mark) => mark.stop(now),
        }
        Ok(())
    }

    /// Sets the value of the handle. `None` stands for its initial value. The caller has reset the library's high marks.
    fn set(&mut self, value: Option<u64>) -> Result<(), Error> {
        let (now, level) = (self.now()?, self.level());
        match &mut self.meter {
            Meter::None => {
                let Gauge { name, class, .. } = self.gauge;
                let text = format!("{name} is a {}: it is only read", class.word());
                return Err(Error::new(MPI_T_ERR_PVAR_NO_WRITE, text));
            }
            Meter::Counter(counter) => counter.set(value.unwrap_or(0), now),
            Meter::Mark(mark) => mark.set(value.unwrap_or(level)),
        }
        Ok(())
    }

    fn always_on(&self) -> Error {
        let Gauge { name, class, .. } = self.gauge;
        let text = format!("{name} is a {}: it is always on", class.word());
        Error::new(MPI_T_ERR_PVAR_NO_STARTSTOP, text)
    }
}

/// Resets the library's high marks, after all handles have recorded them.
fn restart_marks(tools: &Tools) -> Result<(), Error> {
    let Some(engine) = state().engine.get() else { return Ok(()) };
    let mut readings = tools.readings.borrow_mut();
    for reading in readings.values_mut() {
        let Meter::Mark(mut mark) = reading.meter else { continue };
        mark.note(reading.now()?);
        reading.meter = Meter::Mark(mark);
    }
    engine.endpoint().restart_most();
    MessageLane::open().for_each(|lane| lane.hold(|state| state.engine.endpoint().restart_most()));
    Ok(())
}

/// MPI_T_pvar_get_num.
pub(crate) unsafe fn t_pvar_get_num(num_pvar: *mut c_int) -> Result<(), Error> {
    ready()?;
    // SAFETY: `num_pvar` is NULL or points to room for the result, as MPI requires of the program.
    unsafe { strings::store(num_pvar, gauges().len() as c_int, "num_pvar") }
}

fn gauge(pvar_index: c_int) -> Result<&'static Gauge, Error> {
    Ok(&gauges()[index(pvar_index, gauges().len(), "pvar_index", "performance variables")?])
}

/// MPI_T_pvar_get_info.
pub(crate) unsafe fn t_pvar_get_info(
    pvar_index: c_int,
    name: *mut c_char,
    name_len: *mut c_int,
    verbosity_: *mut c_int,
    var_class: *mut c_int,
    datatype: *mut Datatype,
    enumtype: *mut TEnum,
    desc: *mut c_char,
    desc_len: *mut c_int,
    bind: *mut c_int,
    readonly: *mut c_int,
    continuous: *mut c_int,
    atomic: *mut c_int,
) -> Result<(), Error> {
    ready()?;
    let gauge = gauge(pvar_index)?;
    let (type_, words) = match gauge.class {
        PvarClass::State => (MPI_INT, enumerations::of_fabric()),
        _ => (MPI_UNSIGNED_LONG_LONG, MPI_T_ENUM_NULL),
    };
    let bound = match gauge.source {
        PvarSource::Comm(_) => MPI_T_BIND_MPI_COMM,
        _ => MPI_T_BIND_NO_OBJECT,
    };
    let shows = c_int::from(gauge.class.shows());
    // SAFETY: each pointer is NULL or may be written, and each string has room for the length given with it, as MPI requires.
    unsafe {
        strings::give_text(&gauge.name, name, name_len);
        strings::give(verbosity_, verbosity(gauge.audience));
        strings::give(var_class, gauge.class.constant());
        strings::give(datatype, type_);
        strings::give(enumtype, words);
        strings::give_text(&gauge.doc, desc, desc_len);
        strings::give(bind, bound);
        strings::give(readonly, shows);
        strings::give(continuous, shows);
        strings::give(atomic, 1 - shows);
    }
    Ok(())
}

/// MPI_T_pvar_get_index.
pub(crate) unsafe fn t_pvar_get_index(
    name: *const c_char,
    var_class: c_int,
    pvar_index: *mut c_int,
) -> Result<(), Error> {
    let of = format!("performance variable of class {var_class}");
    let fits = |g: &Gauge, name: &str| g.name == name && g.class.constant() == var_class;
    let find = |name: &str| gauges().iter().position(|g| fits(g, name));
    // SAFETY: `name` is NULL or a C string, and `pvar_index` is NULL or may be written, as MPI requires of the program.
    unsafe { strings::store_index(name, pvar_index, "pvar_index", &of, find) }
}

/// MPI_T_pvar_session_create.
pub(crate) unsafe fn t_pvar_session_create(session: *mut TPvarSession) -> Result<(), Error> {
    let tools = ready()?;
    not_null(session, "session")?;
    let made = tools.sessions.borrow_mut().insert(());
    // SAFETY: `session` is not NULL, so it points to room for the result, as MPI requires of the program.
    unsafe { strings::store(session, TPvarSession(made), "session") }
}

fn bad_session(session: TPvarSession) -> Error {
    let text =
        format!("argument session = {:#x} is null, freed, or never was a session", session.0);
    Error::new(MPI_T_ERR_INVALID_SESSION, text)
}

/// MPI_T_pvar_session_free.
pub(crate) unsafe fn t_pvar_session_free(session: *mut TPvarSession) -> Result<(), Error> {
    let tools = ready()?;
    not_null(session, "session")?;
    // SAFETY: `session` is not NULL, so it points to a value, as MPI requires of the program.
    let old = unsafe { *session };
    tools.sessions.borrow_mut().remove(old.0).ok_or_else(|| bad_session(old))?;
    let mut readings = tools.readings.borrow_mut();
    for handle in readings.handles() {
        if readings.get(handle).is_some_and(|r| r.session == old.0) {
            readings.remove(handle);
        }
    }
    // SAFETY: `session` points to room for the result, as MPI requires of the program.
    unsafe { session.write(MPI_T_PVAR_SESSION_NULL) };
    Ok(())
}

/// Returns the tools' state, if the session exists.
fn within(session: TPvarSession) -> Result<&'static Tools, Error> {
    let tools = ready()?;
    let known = tools.sessions.borrow().get(session.0).is_some();
    if known { Ok(tools) } else { Err(bad_session(session)) }
}

/// Returns the communicator to which a handle is to be bound.
///
/// # Safety
/// `object` is NULL or points to the handle of a communicator.
unsafe fn bound(object: *mut c_void) -> Result<Weak<CommObject>, Error> {
    not_null(object, "obj_handle")?;
    // SAFETY: `object` is not NULL, so it points to the handle of a communicator; the contract of this function says so.
    let handle = unsafe { object.cast::<Comm>().read_unaligned() };
    let found = comm(handle).map_err(|error| {
        Error::new(MPI_T_ERR_INVALID_HANDLE, format_args!("argument obj_handle: {}", error.text()))
    })?;
    Ok(std::rc::Rc::downgrade(&found))
}

/// MPI_T_pvar_handle_alloc.
pub(crate) unsafe fn t_pvar_handle_alloc(
    session: TPvarSession,
    pvar_index: c_int,
    obj_handle: *mut c_void,
    handle: *mut TPvarHandle,
    count: *mut c_int,
) -> Result<(), Error> {
    let tools = within(session)?;
    let gauge = gauge(pvar_index)?;
    not_null(handle, "handle")?;
    not_null(count, "count")?;
    let comm = match gauge.source {
        // SAFETY: `obj_handle` is NULL or points to the handle of a communicator, as MPI requires of the program.
        PvarSource::Comm(_) => Some(unsafe { bound(obj_handle) }?),
        _ => None,
    };
    let mut reading = Reading { session: session.0, gauge, comm, meter: Meter::None };
    reading.meter = match gauge.class {
        PvarClass::State | PvarClass::Level => Meter::None,
        PvarClass::Counter | PvarClass::Aggregate => Meter::Counter(CounterShare::default()),
        PvarClass::HighWatermark => Meter::Mark(HighMark::new(reading.level())),
    };
    let made = tools.readings.borrow_mut().insert(reading);
    // SAFETY: `handle` and `count` are not NULL, so they may be written, as MPI requires of the program.
    unsafe {
        handle.write(TPvarHandle(made));
        count.write(1);
    }
    Ok(())
}

/// Calls `f` with a handle of the session.
fn with<R>(
    session: TPvarSession,
    handle: TPvarHandle,
    f: impl FnOnce(&mut Reading) -> Result<R, Error>,
) -> Result<R, Error> {
    let mut readings = within(session)?.readings.borrow_mut();
    match readings.get_mut(handle.0) {
        Some(reading) if reading.session == session.0 => f(reading),
        Some(_) => {
            let text = format!("argument handle = {:#x} belongs to another session", handle.0);
            Err(Error::new(MPI_T_ERR_INVALID_HANDLE, text))
        }
        None => Err(bad_handle("handle", handle.0, "handle of a performance variable")),
    }
}

/// Calls `f` with a handle. For `MPI_T_PVAR_ALL_HANDLES`, calls `f` with all handles of the session, except handles of levels and
/// states. Continues after an error, and returns the first error.
fn with_some(
    session: TPvarSession,
    handle: TPvarHandle,
    f: impl Fn(&mut Reading) -> Result<(), Error>,
) -> Result<(), Error> {
    if handle != MPI_T_PVAR_ALL_HANDLES {
        return with(session, handle, f);
    }
    let mut readings = within(session)?.readings.borrow_mut();
    let mut result = Ok(());
    for reading in readings.values_mut() {
        if reading.session == session.0 && !reading.gauge.class.shows() {
            result = result.and(f(reading));
        }
    }
    result
}

/// MPI_T_pvar_handle_free.
pub(crate) unsafe fn t_pvar_handle_free(
    session: TPvarSession,
    handle: *mut TPvarHandle,
) -> Result<(), Error> {
    let tools = within(session)?;
    not_null(handle, "handle")?;
    // SAFETY: `handle` is not NULL, so it points to a value, as MPI requires of the program.
    let old = unsafe { *handle };
    with(session, old, |_| Ok(()))?;
    tools.readings.borrow_mut().remove(old.0);
    // SAFETY: `handle` points to room for the result, as MPI requires of the program.
    unsafe { handle.write(MPI_T_PVAR_HANDLE_NULL) };
    Ok(())
}

/// MPI_T_pvar_start.
pub(crate) unsafe fn t_pvar_start(session: TPvarSession, handle: TPvarHandle) -> Result<(), Error> {
    restart_marks(within(session)?)?;
    with_some(session, handle, Reading::start)
}

/// MPI_T_pvar_stop.
pub(crate) unsafe fn t_pvar_stop(session: TPvarSession, handle: TPvarHandle) -> Result<(), Error> {
    with_some(session, handle, Reading::stop)
}

/// Stores a value in a buffer of the variable's type.
///
/// # Safety
/// `buf` has room for one element.
unsafe fn put(reading: &Reading, value: u64, buf: *mut c_void) {
    // SAFETY: `buf` has room for an element of the variable's type; the contract of this function says so.
    unsafe {
        match reading.gauge.class {
            PvarClass::State => buf.cast::<c_int>().write_unaligned(value as c_int),
            _ => buf.cast::<u64>().write_unaligned(value),
        }
    }
}

/// MPI_T_pvar_read.
pub(crate) unsafe fn t_pvar_read(
    session: TPvarSession,
    handle: TPvarHandle,
    buf: *mut c_void,
) -> Result<(), Error> {
    with(session, handle, |reading| {
        not_null(buf, "buf")?;
        // SAFETY: `put` needs a buffer as long as MPI requires of the program.
        unsafe { put(reading, reading.value()?, buf) };
        Ok(())
    })
}

/// MPI_T_pvar_write.
pub(crate) unsafe fn t_pvar_write(
    session: TPvarSession,
    handle: TPvarHandle,
    buf: *const c_void,
) -> Result<(), Error> {
    restart_marks(within(session)?)?;
    with(session, handle, |reading| {
        not_null(buf, "buf")?;
        if reading.gauge.class.shows() {
            return reading.set(None);
        }
        // SAFETY: `buf` is not NULL, so it has an element. All variables that can be written are unsigned 64-bit integers.
        reading.set(Some(unsafe { buf.cast::<u64>().read_unaligned() }))
    })
}

/// MPI_T_pvar_reset.
pub(crate) unsafe fn t_pvar_reset(session: TPvarSession, handle: TPvarHandle) -> Result<(), Error> {
    restart_marks(within(session)?)?;
    with_some(session, handle, |reading| reading.set(None))
}

/// MPI_T_pvar_readreset.
pub(crate) unsafe fn t_pvar_readreset(
    session: TPvarSession,
    handle: TPvarHandle,
    buf: *mut c_void,
) -> Result<(), Error> {
    restart_marks(within(session)?)?;
    with(session, handle, |reading| {
        not_null(buf, "buf")?;
        let value = reading.value()?;
        reading.set(None)?;
        // SAFETY: `put` needs a buffer as long as MPI requires of the program.
        unsafe { put(reading, value, buf) };
        Ok(())
    })
}
