//! Reasons why simulated rows disagree with the text: `reasons.csv`, one row a line.

use super::listing::{Line, lines};
use super::published::Row;

/// The list that comes with the project.
const LIST: &str = include_str!("../../../figures/reasons.csv");
const LIST_NAME: &str = "figures/reasons.csv";

const COLUMNS: [&str; 3] = ["paper", "row", "reason"];

/// The reason why a row disagrees, from an examination of its runs.
#[derive(Debug, Clone)]
pub struct Reason {
    pub paper: String,
    /// Name of the row, as in machine files: see [`Row::is`].
    pub row: String,
    pub reason: String,
}

impl Reason {
    pub fn is_of(&self, row: &Row) -> bool {
        self.paper == row.paper() && row.is(&self.row)
    }
}

/// Loads all reasons, in order.
pub fn load() -> Result<Vec<Reason>, String> {
    let mut reasons = Vec::new();
    for Line { number, fields } in lines(LIST_NAME, LIST, &COLUMNS)? {
        let [paper, row, reason] = fields
            .try_into()
            .map_err(|_| format!("{LIST_NAME}:{number}: {} fields are needed", COLUMNS.len()))?;
        reasons.push(Reason { paper, row, reason });
    }
    Ok(reasons)
}

#[cfg(test)]
mod tests {
    use super::load;
    use crate::published::Published;

    #[test]
    fn each_line_is_a_sentence_about_one_row() {
        let published = Published::load(None).unwrap();
        let reasons = load().unwrap();
        for (at, reason) in reasons.iter().enumerate() {
            published.find(&reason.paper, &reason.row).unwrap();
            assert!(reason.reason.ends_with('.'), "{}: a sentence", reason.row);
            let again =
                reasons[..at].iter().any(|r| r.paper == reason.paper && r.row == reason.row);
            assert!(!again, "{}: one reason a row", reason.row);
        }
    }
}
