//! Enums that are sent as a code of one byte.

/// Declares an enum whose variants have codes of one byte, with the function `of_code`, which returns the variant of a code.
#[macro_export]
macro_rules! coded_enum {
    ($(#[$about:meta])* $visible:vis enum $name:ident {
        $($(#[$says:meta])* $variant:ident = $code:literal),* $(,)?
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        $visible enum $name {
            $($(#[$says])* $variant = $code),*
        }

        impl $name {
            /// Returns the variant with this code, if there is one.
            #[inline]
            const fn of_code(code: u8) -> Option<$name> {
                match code {
                    $($code => Some($name::$variant),)*
                    _ => None,
                }
            }
        }
    };
}
