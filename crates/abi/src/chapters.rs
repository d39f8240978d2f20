//! Implementations, one file per chapter of the standard.
//!
//! `MPI_Comm_rank` is implemented by `pub(crate) unsafe fn comm_rank`, at the start of a line. The build finds the function there
//! and calls it from the entry point. Functions with and without `_c` share one implementation with wide types, unless the `_c`
//! form has its own. The call of a macro begins with the names that it implements. Helpers are not `pub(crate) unsafe fn`.
//!
//! Functions that differ only in their form (`MPI_Gather`, `MPI_Igather`, `MPI_Gather_init`) share a structure of arguments in
//! [`crate::calls`]. Methods of that structure, most of them of a trait, implement the forms: [`collectives::Collective`],
//! [`messages::Sends`], [`windows::access::OneSided`], [`datatypes::Constructor`].
//!
//! The documentation of a function, an `impl` block or a macro's call begins with the C names that it implements, in lines of their
//! own. The build fails if a name is missing or wrong, and prints the lines as they should be.
//!
//! State that only one chapter needs is a static of that chapter ([`crate::state::ChapterState`]). Dependencies point one way:
//! entry points, chapters, arguments and objects, the state.

pub(crate) mod bridged_callbacks;
pub(crate) mod buffered;
pub(crate) mod caching;
pub(crate) mod collectives;
pub(crate) mod communicators;
pub(crate) mod connecting;
pub(crate) mod contents;
pub(crate) mod datatypes;
pub(crate) mod environment;
pub(crate) mod error_codes;
pub(crate) mod errors;
pub(crate) mod files;
pub(crate) mod fortran;
pub(crate) mod fortran_abi;
pub(crate) mod generalized;
pub(crate) mod graphs;
pub(crate) mod groups;
pub(crate) mod handles;
pub(crate) mod hints;
pub(crate) mod info;
pub(crate) mod init;
pub(crate) mod inquiry;
pub(crate) mod intercomms;
pub(crate) mod memory;
pub(crate) mod messages;
pub(crate) mod names;
pub(crate) mod operators;
pub(crate) mod packing;
pub(crate) mod partitioned;
pub(crate) mod probes;
pub(crate) mod request_control;
pub(crate) mod requests;
pub(crate) mod sessions;
pub(crate) mod spawning;
pub(crate) mod split_type;
pub(crate) mod status;
pub(crate) mod tools;
pub(crate) mod topologies;
pub(crate) mod typeinfo;
pub(crate) mod windows;
