//! Evidence for the numbers of a machine file.

use serde::Deserialize;

/// The role of each published value for the parameters of a machine file, for its models and for its measures; and the parameters
/// that are assumed. A value is in one list.
///
/// A published value is written as its row of `published.csv` has it, `quantity; configuration`. If two rows of a document agree
/// in both: `where; quantity; configuration`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Evidence {
    /// Name of the document in `published.csv`.
    pub paper: String,
    /// Published values to which parameters were fitted, or that parameters take over.
    pub fitted: Vec<String>,
    /// Published values that were known when something other than a parameter was chosen: an algorithm's rule, a model of the
    /// simulator, a method of measurement. `figures/informed.csv` names the choice, and by how much it moved them.
    pub informed: Vec<String>,
    /// Published values that follow from fitted values by arithmetic, for any values of the assumed parameters.
    pub entailed: Vec<String>,
    /// Formulas of an algorithm, and values that are passed in: every run gives the same.
    pub by_construction: Vec<String>,
    /// Published values that no choice has looked at.
    pub held_out: Vec<String>,
    /// Parameters that no document gives, as paths (`rail.gap_in`); varied by 30 % in studies.
    pub assumed: Vec<String>,
}

/// Role of a published value for a machine file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EvidenceRole {
    /// A match is a prediction.
    HeldOut,
    /// A model or a measure was chosen with the value in sight, so a match proves little.
    Informed,
    /// The value follows from fitted values by arithmetic, so a match proves no more than a match of the fitted values.
    Entailed,
    /// The value follows from values that are passed in.
    ByConstruction,
    /// Parameters were chosen to match the value, so a match proves nothing.
    Fitted,
}

impl EvidenceRole {
    /// All roles, from the one that proves most to the one that proves least.
    pub const ALL: [EvidenceRole; 5] = [
        EvidenceRole::HeldOut,
        EvidenceRole::Informed,
        EvidenceRole::Entailed,
        EvidenceRole::ByConstruction,
        EvidenceRole::Fitted,
    ];

    /// Returns the name of the role on pages and in lists.
    pub fn name(self) -> &'static str {
        match self {
            EvidenceRole::HeldOut => "held-out",
            EvidenceRole::Informed => "informed",
            EvidenceRole::Entailed => "entailed",
            EvidenceRole::ByConstruction => "by construction",
            EvidenceRole::Fitted => "fitted",
        }
    }

    /// Returns true if a value of this role may be given the role `other`: a value that has been looked at is never held out
    /// again.
    pub fn may_become(self, other: EvidenceRole) -> bool {
        match (self, other) {
            (EvidenceRole::HeldOut, _) => true,
            (EvidenceRole::Informed, other) => other != EvidenceRole::HeldOut,
            (
                EvidenceRole::Entailed | EvidenceRole::ByConstruction | EvidenceRole::Fitted,
                other,
            ) => other > EvidenceRole::Informed,
        }
    }
}

impl Evidence {
    /// Returns each role with the values that have it.
    pub fn lists(&self) -> [(EvidenceRole, &[String]); 5] {
        EvidenceRole::ALL.map(|role| {
            let list = match role {
                EvidenceRole::HeldOut => &self.held_out,
                EvidenceRole::Informed => &self.informed,
                EvidenceRole::Entailed => &self.entailed,
                EvidenceRole::ByConstruction => &self.by_construction,
                EvidenceRole::Fitted => &self.fitted,
            };
            (role, list.as_slice())
        })
    }

    /// Returns the role of a row of `published.csv`, if this file names the row.
    pub fn role(
        &self,
        paper: &str,
        place: &str,
        quantity: &str,
        configuration: &str,
    ) -> Option<EvidenceRole> {
        if self.paper != paper {
            return None;
        }
        let short = format!("{quantity}; {configuration}");
        let long = format!("{place}; {short}");
        let named = |name: &str| {
            let has = |(_, list): &(EvidenceRole, &[String])| list.iter().any(|row| row == name);
            self.lists().into_iter().find(has).map(|(role, _)| role)
        };
        // Looks for the long form first: if it is used, the short form names another row.
        named(&long).or_else(|| named(&short))
    }
}
