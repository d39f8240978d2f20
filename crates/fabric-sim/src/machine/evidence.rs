//! How far the numbers of a machine file can be trusted.

use serde::Deserialize;

/// Which published values the parameters were fitted to, and which are assumed.
///
/// A published value is written as its row of `published.csv` has it, `quantity; configuration`;
/// where two rows of a document agree in both, as `where; quantity; configuration`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Evidence {
    /// Name of the document in `published.csv`.
    pub paper: String,
    /// Published values that the parameters were fitted to or that they take over.
    pub fitted: Vec<String>,
    /// Published values that were not looked at in fitting.
    pub held_out: Vec<String>,
    /// Parameters that no document gives, as paths (`rail.gap_in`); varied by 30 % in studies.
    pub assumed: Vec<String>,
}

/// What a published value was to a machine file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Parameters were chosen to meet it, so meeting it proves nothing.
    Fitted,
    /// Meeting it is a prediction.
    HeldOut,
}

impl Evidence {
    /// The role of a row of `published.csv`, if this file names it.
    pub fn role(
        &self,
        paper: &str,
        place: &str,
        quantity: &str,
        configuration: &str,
    ) -> Option<Role> {
        if self.paper != paper {
            return None;
        }
        let short = format!("{quantity}; {configuration}");
        let long = format!("{place}; {short}");
        let named = |list: &[String]| list.iter().any(|row| *row == short || *row == long);
        // The long form first: where it is used, another row has the short one.
        if self.fitted.contains(&long) {
            Some(Role::Fitted)
        } else if self.held_out.contains(&long) {
            Some(Role::HeldOut)
        } else if named(&self.fitted) {
            Some(Role::Fitted)
        } else if named(&self.held_out) {
            Some(Role::HeldOut)
        } else {
            None
        }
    }
}
