//! What moved rows of published numbers that were in sight: `informed.csv`, one change of one row a line.

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
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let head = reader.headers().map_err(|e| format!("{file}: {e}"))?;
    if head.iter().ne(COLUMNS) {
        let (got, want) = (head.iter().collect::<Vec<_>>().join(","), COLUMNS.join(","));
        return Err(format!("{file}:1: the columns are {got}; they must be {want}"));
    }
    let mut moves = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|e| format!("{file}: {e}"))?;
        let line = record.position().map_or(0, |p| p.line()) as usize;
        let field = |at: usize| match record.get(at) {
            Some(text) if !text.trim().is_empty() => Ok(text.to_owned()),
            _ => Err(format!("{file}:{line}: no {}; each field says something", COLUMNS[at])),
        };
        moves.push(Move {
            line,
            paper: field(0)?,
            row: field(1)?,
            before: field(2)?,
            after: field(3)?,
            commit: field(4)?,
            change: field(5)?,
        });
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

    #[test]
    fn a_line_without_a_field_is_named() {
        let text = "paper,row,before,after,commit,change\nA,b; c,1,2,0123456,\n";
        assert_eq!(
            parse("list.csv", text).unwrap_err(),
            "list.csv:2: no change; each field says something"
        );
        assert!(
            parse("list.csv", "paper\n")
                .unwrap_err()
                .starts_with("list.csv:1: the columns are paper;")
        );
    }
}
