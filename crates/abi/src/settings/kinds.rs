//! What is said of a setting where it is declared.

use weft_collective::Operation;

/// What a setting may hold.
#[derive(Clone, Copy)]
pub enum SettingKind {
    /// A whole number in this range.
    Number { least: u64, most: u64 },
    /// 0 or 1.
    Switch,
    /// One of these words, in capitals or not.
    Choice(&'static [&'static str]),
    /// A whole number in this range, or nothing.
    Maybe { least: u64, most: u64 },
    /// Where the costs of copies come from ([`weft_intranode::Wanted`]).
    Copies,
    /// Any words, or nothing; understood where they are used.
    Words,
    /// An algorithm for a collective operation, with its parameter, or `auto`.
    Algorithm(Operation),
    /// A [`weft_fabric_fault::Plan`] of faults, or nothing.
    Faults,
    /// Which ranks share a node, or nothing; read where the job is joined.
    Nodes,
    /// The name of a file, or nothing; read where the job is joined.
    File,
}

/// The part of the library that a variable is about: its category in the tool interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    P2p,
    Collective,
    Rma,
    Files,
    Waiting,
    Fabric,
    Shm,
    Verbs,
    Ofi,
    Launch,
}

/// Who may have a reason to look at a variable, or to change it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Audience {
    User,
    Tuner,
    Developer,
}

/// Agreement on a value between the processes of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Agreement {
    Each,
    /// All processes have the same value, also those of jobs that connect: MPI_Init and each connection compare the values
    /// ([`super::alike`]).
    All,
    /// All processes of one job have the same value. Jobs that connect may have different values, for this reason.
    Job(&'static str),
}

impl Agreement {
    /// Reports whether all processes of one job must have the same value.
    pub fn is_of_job(self) -> bool {
        !matches!(self, Agreement::Each)
    }
}

/// What the tool interface says of a setting.
#[derive(Clone, Copy)]
pub struct About(pub Part, pub Audience, pub Agreement);

/// A setting.
#[derive(Clone, Copy)]
pub struct Setting {
    /// The environment variable.
    pub name: &'static str,
    /// Part, audience, and who must agree on it.
    pub about: About,
    /// What values it takes.
    pub kind: SettingKind,
    /// The value, as text, where nobody sets it.
    pub default: &'static str,
    /// One sentence of at most 100 characters, with the unit. The book (`book/src/settings.md`) has a longer text.
    pub doc: &'static str,
}
