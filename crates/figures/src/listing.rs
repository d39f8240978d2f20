//! Lists in the repository: CSV files without empty fields.

use super::published::PublishedRow;

/// A list that is compiled into the program.
pub struct Listing<const N: usize> {
    /// Name of the file, for errors.
    pub file: &'static str,
    /// Content of the file.
    pub text: &'static str,
    /// Names of the columns. The file has exactly these columns.
    pub columns: [&'static str; N],
}

impl<const N: usize> Listing<N> {
    /// Reads all entries, in order. `entry` makes an entry from its line number, which starts at 1, and its fields.
    pub fn read<T>(&self, entry: impl Fn(usize, [String; N]) -> T) -> Result<Vec<T>, String> {
        let Listing { file, text, columns } = self;
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let head = reader.headers().map_err(|e| format!("{file}: {e}"))?;
        if head.iter().ne(columns.iter().copied()) {
            let (got, want) = (head.iter().collect::<Vec<_>>().join(","), columns.join(","));
            return Err(format!("{file}:1: the columns are {got}; they must be {want}"));
        }
        let mut entries = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|e| format!("{file}: {e}"))?;
            let number = record.position().map_or(0, |p| p.line()) as usize;
            let mut named = record.iter().zip(columns);
            if let Some((_, column)) = named.find(|(field, _)| field.trim().is_empty()) {
                return Err(format!("{file}:{number}: no {column}; each field says something"));
            }
            let fields: Vec<String> = record.iter().map(str::to_owned).collect();
            let fields =
                fields.try_into().map_err(|_| format!("{file}:{number}: {N} fields are needed"))?;
            entries.push(entry(number, fields));
        }
        Ok(entries)
    }
}

/// The name of a published row in a list of remarks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowName {
    /// Short name of the document.
    pub paper: String,
    /// Name of the row, as in machine files: see [`PublishedRow::is`].
    pub row: String,
}

impl RowName {
    /// Returns true if this name means `row`.
    pub fn is_of(&self, row: &PublishedRow) -> bool {
        self.paper == row.paper() && row.is(&self.row)
    }
}

#[cfg(test)]
mod tests {
    use super::Listing;

    #[test]
    fn a_line_without_a_field_is_named() {
        let read = |text| {
            let list = Listing { file: "list.csv", text, columns: ["paper", "reason"] };
            list.read(|number, [paper, _]| (number, paper)).map(|all| all.len())
        };
        assert_eq!(
            read("paper,reason\nA,\n"),
            Err("list.csv:2: no reason; each field says something".into())
        );
        assert!(read("paper\n").unwrap_err().starts_with("list.csv:1: the columns are paper;"));
        assert_eq!(read("paper,reason\nA,b\nA,c\n"), Ok(2));
    }
}
