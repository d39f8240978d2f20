//! The lines that the programs print, and comparisons of them.

use super::recipes::LineDifference;
use std::collections::BTreeMap;

/// Lines by rank and function: `r0 MPI_Send` with the rest of the line.
pub type CallLines = BTreeMap<String, String>;

/// Returns the lines about functions in an output.
pub fn lines(output: &str) -> CallLines {
    let line = |line: &str| {
        let (key, rest) = line.split_once(':')?;
        let (rank, function) = key.split_once(' ')?;
        let is_rank = rank.strip_prefix('r').is_some_and(|rank| rank.parse::<u32>().is_ok());
        let is_one = is_rank && !function.contains(' ');
        is_one.then(|| (key.to_owned(), rest.trim().to_owned()))
    };
    output.lines().filter_map(line).collect()
}

fn function(key: &str) -> &str {
    key.split_once(' ').map_or(key, |(_, function)| function)
}

/// Lines of one library.
pub struct LibraryLines {
    /// `standard`, `mpich`, `openmpi`, or with `-own` the library of the project.
    pub library: String,
    pub ranks: usize,
    pub lines: CallLines,
}

impl LibraryLines {
    /// Returns the lines with faults that the table does not have.
    pub fn faults(&self, differences: &[LineDifference]) -> Vec<String> {
        let faulty = self.lines.iter().filter(|(key, line)| {
            line.contains("FAULT(") && !is_known(differences, function(key), &self.library)
        });
        faulty
            .map(|(key, line)| format!("{} on {} ranks: {key}: {line}", self.library, self.ranks))
            .collect()
    }

    /// Returns the functions that both libraries have called and that have other lines, unless the table has the difference.
    pub fn compare(&self, other: &LibraryLines, differences: &[LineDifference]) -> Vec<String> {
        let both =
            self.lines.iter().filter_map(|(key, own)| Some((key, own, other.lines.get(key)?)));
        let differs = both.filter(|(key, own, there)| {
            let known = |library: &str| is_known(differences, function(key), library);
            own != there && !known(&self.library) && !known(&other.library)
        });
        let text = |(key, own, there): (&String, &String, &String)| {
            let ranks = self.ranks;
            format!(
                "{key} of {ranks} ranks:\n    {:<11} {own}\n    {:<11} {there}",
                self.library, other.library
            )
        };
        differs.map(text).collect()
    }
}

fn is_known(differences: &[LineDifference], function: &str, library: &str) -> bool {
    differences.iter().any(|difference| difference.is_of(function, library))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(library: &str, output: &str) -> LibraryLines {
        LibraryLines { library: library.to_owned(), ranks: 1, lines: lines(output) }
    }

    #[test]
    fn other_lines_and_faults_are_reported() {
        let standard = of("standard", "r0 MPI_A: code=MPI_SUCCESS x=1\nnoise: r0\nr1 MPI_A: x=2\n");
        assert_eq!(standard.lines.len(), 2);
        let other = of("mpich", "r0 MPI_A: code=MPI_SUCCESS x=1\nr1 MPI_A: x=3 FAULT(y)\n");
        let differences = standard.compare(&other, &[]);
        assert_eq!(differences.len(), 1);
        assert!(differences[0].starts_with("r1 MPI_A of 1 ranks"), "{}", differences[0]);
        assert_eq!(other.faults(&[]), ["mpich on 1 ranks: r1 MPI_A: x=3 FAULT(y)"]);
        let table = "functions = 'MPI_*'\nlibraries = 'mpich'\nreason = 'a reason of the library'";
        let known = [toml::from_str(table).unwrap()];
        assert!(standard.compare(&other, &known).is_empty() && other.faults(&known).is_empty());
    }
}
