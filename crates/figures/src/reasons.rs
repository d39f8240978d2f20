//! Reasons why simulated rows disagree with the text: `reasons.csv`, one row a line.

use super::listing::{Listing, RowName};

/// The list `reasons.csv` of the repository.
const LIST: Listing<3> = Listing {
    file: "figures/reasons.csv",
    text: include_str!("../../../figures/reasons.csv"),
    columns: ["paper", "row", "reason"],
};

/// The reason why a row disagrees, from an examination of its runs.
#[derive(Debug, Clone)]
pub struct RowReason {
    pub name: RowName,
    pub reason: String,
}

/// Loads all reasons, in order.
pub fn load() -> Result<Vec<RowReason>, String> {
    LIST.read(|_, [paper, row, reason]| RowReason { name: RowName { paper, row }, reason })
}

#[cfg(test)]
mod tests {
    use super::load;
    use crate::published::PublishedList;

    #[test]
    fn each_line_is_a_sentence_about_one_row() {
        let published = PublishedList::load(None).unwrap();
        let reasons = load().unwrap();
        for (at, reason) in reasons.iter().enumerate() {
            let name = &reason.name;
            published.find(&name.paper, &name.row).unwrap();
            assert!(reason.reason.ends_with('.'), "{}: a sentence", name.row);
            let again = reasons[..at].iter().any(|other| other.name == *name);
            assert!(!again, "{}: one reason a row", name.row);
        }
    }
}
