//! The reason why a simulation has no result.

/// Reason why there is no table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SimFailure {
    /// The request is impossible: the text names the value and the allowed values.
    Request(String),
    /// The run, or the writing of a file, failed.
    Run(String),
}

impl SimFailure {
    /// Returns the exit code of the process: 2 for a wrong request, as in clap.
    pub fn code(&self) -> u8 {
        match self {
            SimFailure::Request(_) => 2,
            SimFailure::Run(_) => 1,
        }
    }
}

impl std::fmt::Display for SimFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (SimFailure::Request(why) | SimFailure::Run(why)) = self;
        f.write_str(why)
    }
}
