//! What moved rows of published numbers that were in sight: `informed.csv`, one change of one row a line.

use super::listing::{Line, lines};
use super::published::Row;

/// The list that comes with the project.
const LIST: &str = include_str!("../../../figures/informed.csv");
const LIST_NAME: &str = "figures/informed.csv";

const COLUMNS: [&str; 6] = ["paper", "row", "before", "after", "commit", "change"];

/// A change of a model or a measure, and what it did to a row.
#[derive(Debug, Clone)]
pub struct Move {
    /// Line in the file, from 1.
    pub line: usize,
    pub paper: String,
    /// As machine files call it: see [`Row::is`].
    pub row: String,
    /// What was simulated before the change, and after it; as the row's value, or in words.
    pub before: String,
    pub after: String,
    /// Of the project's history.
    pub commit: String,
    /// What was changed, and why.
    pub change: String,
}

impl Move {
    pub fn is_of(&self, row: &Row) -> bool {
        self.paper == row.paper() && row.is(&self.row)
    }

    /// A sentence for below a figure.
    pub fn sentence(&self) -> String {
        let Move { before, after, commit, change, .. } = self;
        format!("Moved from {before} to {after} by {commit}: {change}")
    }
}

/// All of them, in order.
pub fn load() -> Result<Vec<Move>, String> {
    parse(LIST_NAME, LIST)
}

fn parse(file: &str, text: &str) -> Result<Vec<Move>, String> {
    let mut moves = Vec::new();
    for Line { number, fields } in lines(file, text, &COLUMNS)? {
        let [paper, row, before, after, commit, change] = fields
            .try_into()
            .map_err(|_| format!("{file}:{number}: {} fields are needed", COLUMNS.len()))?;
        moves.push(Move { line: number, paper, row, before, after, commit, change });
    }
    Ok(moves)
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
