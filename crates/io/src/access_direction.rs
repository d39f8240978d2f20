//! Direction of a data access.

/// Direction of a data access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessDirection {
    /// From the file to memory.
    Read,
    /// From memory to the file.
    Write,
}
