//! Claims of the texts that have no row, because no simulation can show whether they are true: `unsimulated.csv`, one claim in each
//! line.

use super::listing::Listing;

/// The list `unsimulated.csv` of the repository.
const LIST: Listing<4> = Listing {
    file: "figures/unsimulated.csv",
    text: include_str!("../../../figures/unsimulated.csv"),
    columns: ["paper", "where", "claim", "reason"],
};

/// A claim without a row.
#[derive(Debug, Clone)]
pub struct UnsimulatedClaim {
    /// Short name of the document.
    pub paper: String,
    /// Section or slide.
    pub place: String,
    /// The claim as a sentence.
    pub claim: String,
    /// The reason why no simulation shows whether the claim is true.
    pub reason: String,
}

/// Loads all claims, in order.
pub fn load() -> Result<Vec<UnsimulatedClaim>, String> {
    LIST.read(|_, [paper, place, claim, reason]| UnsimulatedClaim { paper, place, claim, reason })
}

#[cfg(test)]
mod tests {
    use super::load;
    use crate::published::PublishedList;

    #[test]
    fn each_claim_and_each_reason_is_a_sentence_about_a_known_document() {
        let published = PublishedList::load(None).unwrap();
        for claim in load().unwrap() {
            assert!(published.rows.iter().any(|row| row.paper() == claim.paper), "{claim:?}");
            assert!(claim.claim.ends_with('.') && claim.reason.ends_with('.'), "{claim:?}");
        }
    }
}
