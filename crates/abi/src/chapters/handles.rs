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

in_table!(comm_toint comm_fromint Comm comms);
in_table!(errhandler_toint errhandler_fromint Errhandler errhandlers);
in_table!(group_toint group_fromint Group groups);
in_table!(info_toint info_fromint Info infos);
in_table!(message_toint message_fromint Message messages);
in_table!(op_toint op_fromint Op ops);
in_table!(request_toint request_fromint Request requests);
in_table!(session_toint session_fromint Session sessions);
in_table!(type_toint type_fromint Datatype types);
in_table!(file_toint file_fromint File files);
in_table!(win_toint win_fromint Win wins);
