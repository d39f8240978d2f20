//! Functions of the standard that the library implements.

use std::fmt::Write;

/// Functions of the standard, in alphabetical order, and whether the library implements them.
pub struct Coverage {
    /// Name of each function; true if it is implemented.
    pub functions: Vec<(String, bool)>,
}

impl Coverage {
    /// Reads the text of `weft_coverage`: a line with the version, then lines `MPI_X yes` or
    /// `MPI_X no`.
    pub fn parse(text: &str) -> Result<Coverage, String> {
        let functions = text.lines().skip(1).map(|line| match line.split_once(' ') {
            Some((name, "yes")) => Ok((name.to_owned(), true)),
            Some((name, "no")) => Ok((name.to_owned(), false)),
            _ => Err(format!("coverage of the library: unknown line `{line}`")),
        });
        let mut functions = functions.collect::<Result<Vec<_>, _>>()?;
        functions.sort();
        Ok(Coverage { functions })
    }

    /// Returns the number of implemented functions.
    pub fn implemented(&self) -> usize {
        self.functions.iter().filter(|(_, yes)| *yes).count()
    }

    /// Returns a summary, as in `438 of 664 functions (66 %)`.
    pub fn summary(&self) -> String {
        let (some, all) = (self.implemented(), self.functions.len());
        format!("{some} of {all} functions ({} %)", some * 100 / all.max(1))
    }

    /// Returns the list of all functions, with `+` before implemented functions and `-` before the other functions.
    pub fn list(&self) -> String {
        let mut out = String::new();
        for (name, yes) in &self.functions {
            writeln!(out, "{} {name}", if *yes { '+' } else { '-' }).unwrap();
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_library_says() {
        let coverage = Coverage::parse("weft 1.2\nMPI_Accumulate no\nMPI_Abort yes\n").unwrap();
        assert_eq!(coverage.summary(), "1 of 2 functions (50 %)");
        assert_eq!(coverage.list(), "+ MPI_Abort\n- MPI_Accumulate\n");
        assert!(Coverage::parse("weft 1.2\nMPI_Abort perhaps\n").is_err());
    }
}
