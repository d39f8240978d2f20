//! Generalized requests: operations of the program under MPI's wait and test (MPI 5.0, section 13.2).

use crate::arguments::room_for_request;
use crate::callback::CallbackPointer;
use crate::chapter_state::ChapterState;
use crate::chapters::requests::bad_request;
use crate::constants::*;
use crate::error::{Error, in_words};
use crate::lock;
use crate::objects::{Belongs, RequestObject, RequestOrigin};
use crate::state::{engine, state};
use crate::status::MpiStatus;
use crate::types::{GrequestCancelFunction, GrequestFreeFunction, GrequestQueryFunction, Request};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::rc::Rc;
use weft_process::{Active, External, OperationOutcome};

/// Generalized requests that have not ended, by handle.
static ACTIVE: ChapterState<RefCell<BTreeMap<usize, Rc<Generalized>>>> =
    ChapterState::new(RefCell::new(BTreeMap::new()));

/// An operation of the program.
pub struct Generalized {
    query: CallbackPointer<GrequestQueryFunction>,
    free: CallbackPointer<GrequestFreeFunction>,
    cancel: CallbackPointer<GrequestCancelFunction>,
    extra: *mut c_void,
    handle: Cell<usize>,
    complete: Cell<bool>,
    /// True if MPI_Request_free came before MPI_Grequest_complete.
    released: Cell<bool>,
}

impl Generalized {
    /// Asks the program for the status of its operation. Returns the status and the return code of `query_fn`.
    fn ask(&self) -> (weft_process::Status, c_int) {
        let mut status = MpiStatus::EMPTY;
        let to = &raw mut status;
        // SAFETY: the program gave this function and its argument to MPI_Grequest_start; `to` points to a local variable.
        let code = lock::unlocked(|| unsafe { self.query.function()(self.extra, to) });
        let flags = match status.cancelled() {
            true => weft_process::StatusFlags::CANCELLED,
            false => weft_process::StatusFlags::NONE,
        };
        let found = weft_process::Status {
            source: status.source,
            tag: status.tag,
            bytes: status.bytes(),
            flags,
            ..Default::default()
        };
        (found, code)
    }

    /// Ends the request. Calls the program's `free_fn`, which frees the program's data.
    fn end(&self) -> c_int {
        ACTIVE.borrow_mut().remove(&self.handle.get());
        // SAFETY: the program gave this function and its argument to MPI_Grequest_start.
        lock::unlocked(|| unsafe { self.free.function()(self.extra) })
    }

    /// Ends the request without a wait or test by the program.
    fn free_it(&self) -> Result<(), weft_process::Error> {
        Generalized::error(self.end(), "free").map_or(Ok(()), Err)
    }

    fn error(code: c_int, which: &str) -> Option<weft_process::Error> {
        (code != MPI_SUCCESS).then(|| {
            let said = in_words(code);
            let text = format!("the {which} function of the generalized request returned {said}");
            weft_process::Error::returned(code, text)
        })
    }
}

impl External for Generalized {
    fn poll(&self) -> Option<OperationOutcome> {
        if !self.complete.get() {
            return None;
        }
        let (status, asked) = self.ask();
        let freed = self.end();
        // The error of the last function is reported (MPI 5.0, section 13.2). If `free_fn` returned no error, the error of
        // `query_fn` is reported.
        let error = Generalized::error(freed, "free");
        let error = error.or_else(|| Generalized::error(asked, "query"));
        Some(OperationOutcome { status, error })
    }

    fn is_over(&self) -> bool {
        self.complete.get()
    }

    fn peek(&self) -> Option<OperationOutcome> {
        let (status, asked) = self.complete.get().then(|| self.ask())?;
        Some(OperationOutcome { status, error: Generalized::error(asked, "query") })
    }

    fn cancel(&self) -> Result<(), weft_process::Error> {
        let complete = c_int::from(self.complete.get());
        // SAFETY: the program gave this function and its argument to MPI_Grequest_start.
        let code = lock::unlocked(|| unsafe { self.cancel.function()(self.extra, complete) });
        Generalized::error(code, "cancel").map_or(Ok(()), Err)
    }

    fn release(&self) -> Result<(), weft_process::Error> {
        self.released.set(true);
        if self.complete.get() { self.free_it() } else { Ok(()) }
    }
}

/// MPI_Grequest_start.
pub(crate) unsafe fn grequest_start(
    query: CallbackPointer<GrequestQueryFunction>,
    free: CallbackPointer<GrequestFreeFunction>,
    cancel: CallbackPointer<GrequestCancelFunction>,
    extra: *mut c_void,
    request: *mut Request,
) -> Result<(), Error> {
    engine()?;
    room_for_request(request)?;
    let functions = [
        (query.address(), "query_fn"),
        (free.address(), "free_fn"),
        (cancel.address(), "cancel_fn"),
    ];
    if let Some((_, missing)) = functions.iter().find(|f| f.0 == 0) {
        return Err(Error::null(missing));
    }
    let made = Rc::new(Generalized {
        query,
        free,
        cancel,
        extra,
        handle: Cell::new(0),
        complete: Cell::new(false),
        released: Cell::new(false),
    });
    let active = Active::External(made.clone());
    let object = RequestObject::new(active, Belongs::Nobody, RequestOrigin::Generalized);
    let handle = state().requests.borrow_mut().insert(object);
    made.handle.set(handle);
    ACTIVE.borrow_mut().insert(handle, made);
    // SAFETY: `request` is not NULL, so it points to room for the result, as MPI requires of the program.
    unsafe { request.write(Request(handle)) };
    Ok(())
}

/// MPI_Grequest_complete.
pub(crate) unsafe fn grequest_complete(request: Request) -> Result<(), Error> {
    let engine = engine()?;
    // The request may have been freed already. The program's copy of the handle still names the request in this table.
    let found = ACTIVE.borrow().get(&request.0).cloned();
    let Some(found) = found else {
        if state().requests.borrow().get(request.0).is_some() {
            let text = "argument request is not a generalized request";
            return Err(Error::new(MPI_ERR_REQUEST, text));
        }
        return Err(bad_request(request));
    };
    if found.complete.replace(true) {
        return Err(Error::new(MPI_ERR_REQUEST, "the generalized request is complete already"));
    }
    if found.released.get() {
        return Ok(found.free_it()?);
    }
    // A thread that waits for the request may be asleep, so it is woken.
    engine.wake_siblings();
    Ok(())
}
