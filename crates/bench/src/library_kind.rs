//! Kinds of libraries.

/// Kinds of libraries. Each kind has its own options and variables for the same setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LibraryKind {
    Weft,
    Mpich,
    OpenMpi,
    Intel,
    /// Started as `mpiexec -n N program`, without options.
    #[default]
    Other,
}
