//! Enums that are sent as a code of one byte.

/// Declares an enum of kinds with their codes. Code 0 stands for no kind.
macro_rules! coded_kinds {
    ($(#[$about:meta])* $visible:vis enum $name:ident {
        $($(#[$says:meta])* $kind:ident),* $(,)?
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $visible enum $name {
            $($(#[$says])* $kind),*
        }

        impl $name {
            const ALL: &[$name] = &[$($name::$kind),*];

            /// Returns the code of the kind.
            #[inline]
            fn code(self) -> u8 {
                1 + self as u8
            }

            /// Returns the kind with this code, if there is one.
            #[inline]
            fn of_code(code: u8) -> Option<$name> {
                $name::ALL.get(usize::from(code).checked_sub(1)?).copied()
            }
        }
    };
}

pub(crate) use coded_kinds;
