//! Evidence for the numbers of a machine file.

use serde::Deserialize;

/// Role of each published value for a machine file: whether its parameters, models or measures were chosen by this value. Also has
/// the parameters that are assumed. A value is in at most one list.
///
/// A published value is named by fields of its row in `published.csv`: `quantity; configuration`. If these fields are equal in two
/// rows of a document: `where; quantity; configuration`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Evidence {
    /// Name of the document in `published.csv`.
    pub paper: String,
    /// Published values to which parameters were fitted, or which are themselves parameters.
    pub fitted: Vec<String>,
    /// Published values that were known and considered when something other than a parameter was chosen: a rule of an algorithm, a
    /// model of the simulator, or a method of measurement. `figures/informed.csv` names the choice, and the change of the simulated
    /// value.
    pub informed: Vec<String>,
    /// Published values that follow from fitted values by arithmetic, for any values of the assumed parameters.
    pub entailed: Vec<String>,
    /// Published values that are formulas of an algorithm or inputs of the simulation, so that every run gives the same value.
    pub by_construction: Vec<String>,
    /// Published values that were not considered in any choice.
    pub held_out: Vec<String>,
    /// Parameters that no document gives, as paths (`rail.gap_in`). Studies vary them by 30 %.
    pub assumed: Vec<String>,
}

/// Role of a published value for a machine file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EvidenceRole {
    /// No choice has considered the value, so an agreement is a successful prediction.
    HeldOut,
    /// A model or a measure was chosen with the value known, so an agreement proves little.
    Informed,
    /// The value follows from fitted values by arithmetic, so its agreement adds no evidence.
    Entailed,
    /// The value follows from formulas or inputs, so every run agrees.
    ByConstruction,
    /// Parameters were fitted to the value, so an agreement proves nothing.
    Fitted,
}

impl EvidenceRole {
    /// All roles, in descending order of the evidence that an agreement gives.
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

    /// Returns true if a value of this role may get the role `other` later. A value that a choice has considered can never be held
    /// out again.
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
        // The long form is looked up first, because if it is used, the short form names another row.
        named(&long).or_else(|| named(&short))
    }
}
