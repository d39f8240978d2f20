//! Conversion of handles to integers and back, for other languages (MPI 5.0, section 20.4). Predefined handles keep their
//! value.

use crate::lanes;
use crate::state::state;
use crate::table::{HandleTable, LANE_IN_INT, lane_of};
use crate::types::*;
use std::ffi::c_int;

/// Defines the conversions for a class of handles that are indices in a table of the process's state.
macro_rules! in_table {
    ($(#[$names:meta])* $to:ident $from:ident $handle:ident $table:ident) => {
        $(#[$names])*
        pub(crate) unsafe fn $to(handle: $handle) -> c_int {
            state().$table.borrow().to_int(handle.0)
        }

        pub(crate) unsafe fn $from(int: c_int) -> $handle {
            $handle(state().$table.borrow().from_int(int))
        }
    };
}

in_table! {
    /// MPI_Comm_fromint, MPI_Comm_toint.
    comm_toint comm_fromint Comm comms
}
in_table! {
    /// MPI_Errhandler_fromint, MPI_Errhandler_toint.
    errhandler_toint errhandler_fromint Errhandler errhandlers
}
in_table! {
    /// MPI_Group_fromint, MPI_Group_toint.
    group_toint group_fromint Group groups
}
in_table! {
    /// MPI_Info_fromint, MPI_Info_toint.
    info_toint info_fromint Info infos
}
in_table! {
    /// MPI_Message_fromint, MPI_Message_toint.
    message_toint message_fromint Message messages
}
in_table! {
    /// MPI_Op_fromint, MPI_Op_toint.
    op_toint op_fromint Op ops
}
/// MPI_Request_toint.
pub(crate) unsafe fn request_toint(handle: Request) -> c_int {
    let int = |requests: &HandleTable<_>| requests.to_int(handle.0);
    match lane_of(handle.0) {
        0 => int(&state().requests.borrow()),
        lane => lanes::with_requests(lane, int)
            .map_or(handle.0 as c_int, |int| int | (lane as c_int) << LANE_IN_INT),
    }
}

/// MPI_Request_fromint.
pub(crate) unsafe fn request_fromint(int: c_int) -> Request {
    let lane = int as u32 as usize >> LANE_IN_INT;
    let own = int & ((1 << LANE_IN_INT) - 1);
    let handle = match lane {
        0 => state().requests.borrow().from_int(int),
        lane => lanes::with_requests(lane, |requests| requests.from_int(own))
            .unwrap_or(int as u32 as usize),
    };
    Request(handle)
}

in_table! {
    /// MPI_Session_fromint, MPI_Session_toint.
    session_toint session_fromint Session sessions
}
in_table! {
    /// MPI_Type_fromint, MPI_Type_toint.
    type_toint type_fromint Datatype types
}
in_table! {
    /// MPI_File_fromint, MPI_File_toint.
    file_toint file_fromint File files
}
in_table! {
    /// MPI_Win_fromint, MPI_Win_toint.
    win_toint win_fromint Win wins
}
