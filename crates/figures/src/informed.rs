//! Changes of the model that were made while a published number was known, and that changed the simulated value of this number:
//! `informed.csv`. Each line is a change of one row.

use super::listing::{Listing, RowName};

/// The list `informed.csv` of the repository.
const LIST: Listing<6> = Listing {
    file: "figures/informed.csv",
    text: include_str!("../../../figures/informed.csv"),
    columns: ["paper", "row", "before", "after", "commit", "change"],
};

/// A change of a model or a measure, and its effect on a row.
#[derive(Debug, Clone)]
pub struct Move {
    /// Line in the file, from 1.
    pub line: usize,
    pub name: RowName,
    /// Simulated values before and after the change. Each has the form of the row's value, or is a sentence.
    pub before: String,
    pub after: String,
    /// Commit in the project's history.
    pub commit: String,
    /// The change, and its reason.
    pub change: String,
}

impl Move {
    /// Returns a sentence for the list below a figure.
    pub fn sentence(&self) -> String {
        let Move { before, after, commit, change, .. } = self;
        format!("Moved from {before} to {after} by {commit}: {change}")
    }
}

/// Loads all changes, in order.
pub fn load() -> Result<Vec<Move>, String> {
    LIST.read(|line, [paper, row, before, after, commit, change]| Move {
        line,
        name: RowName { paper, row },
        before,
        after,
        commit,
        change,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_says_what_moved_from_where_to_where_by_what() {
        for moved in load().unwrap() {
            assert!(moved.commit.len() == 7, "line {}: {}", moved.line, moved.commit);
            assert_ne!(moved.before, moved.after, "line {}", moved.line);
            assert!(moved.change.ends_with('.'), "line {}: a sentence", moved.line);
        }
    }
}
