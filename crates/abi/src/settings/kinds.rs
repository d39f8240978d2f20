//! Types of a setting's declaration.

use weft_collective::CollectiveKind;

/// Kind of a setting's values.
#[derive(Clone, Copy)]
pub enum SettingKind {
    /// A whole number in this range.
    Number { least: u64, most: u64 },
    /// 0 or 1.
    Switch,
    /// One of these words, in upper or lower case.
    Choice(&'static [&'static str]),
    /// A whole number in this range, or no value.
    Maybe { least: u64, most: u64 },
    /// Source of the costs of copies ([`weft_intranode::ModelSource`]).
    Copies,
    /// Any text, or no value. The code that uses the setting parses the text.
    Words,
    /// An algorithm for a collective operation, with its parameter, or `auto`.
    Algorithm(CollectiveKind),
    /// A [`weft_fabric_fault::FaultPlan`] of faults, or no value.
    Faults,
    /// Division of ranks into nodes, or no value. `weft_bootstrap` reads the setting.
    Nodes,
    /// Name of a file, or no value. `weft_bootstrap` reads the setting.
    File,
}

/// Part of the library to which a variable belongs. The part gives the category of the variable in the tool interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SettingPart {
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

/// Audience of a variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Audience {
    User,
    Tuner,
    Developer,
}

/// Agreement on a value between the processes of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SettingAgreement {
    Each,
    /// All processes have the same value, including processes of jobs that connect. MPI_Init and each connection compare the values
    /// ([`super::agreement`]).
    All,
    /// All processes of one job have the same value. Jobs that connect may have different values. The text gives the reason.
    Job(&'static str),
}

impl SettingAgreement {
    /// Returns true if all processes of one job must have the same value.
    pub fn is_of_job(self) -> bool {
        !matches!(self, SettingAgreement::Each)
    }
}

/// Attributes of a setting for the tool interface.
#[derive(Clone, Copy)]
pub struct SettingText(pub SettingPart, pub Audience, pub SettingAgreement);

/// A setting.
#[derive(Clone, Copy)]
pub struct SettingSpec {
    /// The environment variable.
    pub name: &'static str,
    /// Part, audience, and agreement between processes.
    pub about: SettingText,
    /// Kind of the setting's values.
    pub kind: SettingKind,
    /// Value if the setting is not given, as text.
    pub default: &'static str,
    /// One sentence of at most 100 characters, with the unit. The book (`book/src/settings.md`) has a longer text.
    pub doc: &'static str,
}
