//! Handles as integers, for other languages (MPI 5.0, section 20.4): predefined handles keep their
//! value.

use crate::state::state;
use crate::types::*;
use std::ffi::c_int;

/// Conversions of a class whose handles are places in a table of the state.
macro_rules! in_table {
    ($to:ident $from:ident $handle:ident $table:ident) => {
        pub(crate) unsafe fn $to(handle: $handle) -> c_int {
            state().$table.borrow().to_int(handle.0)
        }

        pub(crate) unsafe fn $from(int: c_int) -> $handle {
            $handle(state().$table.borrow().from_int(int))
        }
    };
}

// implements: comm_toint comm_fromint
in_table!(comm_toint comm_fromint Comm comms);
// implements: errhandler_toint errhandler_fromint
in_table!(errhandler_toint errhandler_fromint Errhandler errhandlers);
// implements: group_toint group_fromint
in_table!(group_toint group_fromint Group groups);
// implements: info_toint info_fromint
in_table!(info_toint info_fromint Info infos);
// implements: message_toint message_fromint
in_table!(message_toint message_fromint Message messages);
// implements: op_toint op_fromint
in_table!(op_toint op_fromint Op ops);
// implements: request_toint request_fromint
in_table!(request_toint request_fromint Request requests);
// implements: session_toint session_fromint
in_table!(session_toint session_fromint Session sessions);
// implements: type_toint type_fromint
in_table!(type_toint type_fromint Datatype types);
// implements: win_toint win_fromint
in_table!(win_toint win_fromint Win wins);

/// Conversions of a class of which there are only predefined handles.
macro_rules! predefined {
    ($to:ident $from:ident $handle:ident) => {
        pub(crate) unsafe fn $to(handle: $handle) -> c_int {
            handle.0 as c_int
        }

        pub(crate) unsafe fn $from(int: c_int) -> $handle {
            $handle(int as u32 as usize)
        }
    };
}

// implements: file_toint file_fromint
predefined!(file_toint file_fromint File);
