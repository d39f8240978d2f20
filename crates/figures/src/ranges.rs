//! The list `ranges.csv`: shows whether each row agrees with its document while all assumed parameters of all machines vary
//! together.

use super::listing::{Listing, RowName};
use std::fmt;

/// The list `ranges.csv` of the repository.
pub const LIST: Listing<3> = Listing {
    file: "figures/ranges.csv",
    text: include_str!("../../../figures/ranges.csv"),
    columns: ["paper", "row", "samples"],
};

/// Results of a row in all samples.
#[derive(Debug, Clone)]
pub struct Range {
    pub name: RowName,
    /// A character for each sample: `+` if the row agrees, `-` if not.
    pub samples: String,
}

impl Range {
    /// Counts the samples in which the row agrees.
    pub fn holds(&self) -> usize {
        self.samples.matches('+').count()
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.holds(), self.samples.len())
    }
}

/// Loads all rows, in order.
pub fn load() -> Result<Vec<Range>, String> {
    LIST.read(|_, [paper, row, samples]| Range { name: RowName { paper, row }, samples })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::PublishedList;

    #[test]
    fn the_list_has_every_row_once_over_the_same_samples() {
        let (published, ranges) = (PublishedList::load(None).unwrap(), load().unwrap());
        for row in &published.rows {
            let lines = ranges.iter().filter(|range| range.name.is_of(row)).count();
            assert_eq!(lines, 1, "{row:?}: remake {}", LIST.file);
        }
        let known = |name: &RowName| published.find(&name.paper, &name.row).is_ok();
        assert!(ranges.iter().all(|range| known(&range.name)));
        let samples = ranges[0].samples.len();
        assert!(samples >= 32 && ranges.iter().all(|range| range.samples.len() == samples));
    }
}
