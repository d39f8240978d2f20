//! How far the numbers of a machine file can be trusted.

use serde::Deserialize;

/// What published values were to the parameters of a machine file and to the models and measures beside it, and
/// which parameters are assumed. A value is in one list.
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
    /// Published values in whose sight something other than a parameter was chosen: an algorithm's rule, a model of
    /// the simulator, how a thing is measured. `figures/informed.csv` says what, and by how much it moved them.
    pub informed: Vec<String>,
    /// Published values that follow by arithmetic from fitted ones, for any values of the assumed parameters.
    pub entailed: Vec<String>,
    /// Formulas of an algorithm, and values that are passed in: no run could give another.
    pub by_construction: Vec<String>,
    /// Published values that were not looked at in any choice.
    pub held_out: Vec<String>,
    /// Parameters that no document gives, as paths (`rail.gap_in`); varied by 30 % in studies.
    pub assumed: Vec<String>,
}

/// What a published value was to a machine file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EvidenceRole {
    /// Meeting it is a prediction.
    HeldOut,
    /// A model or a measure was chosen with it in sight, so meeting it proves little.
    Informed,
    /// It follows by arithmetic from fitted values, so that meeting it proves no more than meeting the fitted values.
    Entailed,
    /// It follows from what is passed in.
    ByConstruction,
    /// Parameters were chosen to meet it, so meeting it proves nothing.
    Fitted,
}

impl EvidenceRole {
    /// All roles, from what proves most to what proves least.
    pub const ALL: [EvidenceRole; 5] = [
        EvidenceRole::HeldOut,
        EvidenceRole::Informed,
        EvidenceRole::Entailed,
        EvidenceRole::ByConstruction,
        EvidenceRole::Fitted,
    ];

    /// As pages and lists call it.
    pub fn name(self) -> &'static str {
        match self {
            EvidenceRole::HeldOut => "held-out",
            EvidenceRole::Informed => "informed",
            EvidenceRole::Entailed => "entailed",
            EvidenceRole::ByConstruction => "by construction",
            EvidenceRole::Fitted => "fitted",
        }
    }

    /// Whether a value of this role may be given `other`: what has been looked at is not unseen again.
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
    /// Each role with the values that have it.
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

    /// The role of a row of `published.csv`, if this file names it.
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
        // The long form first: where it is used, another row has the short one.
        named(&long).or_else(|| named(&short))
    }
}
