//! Lists that come with the project: CSV files without empty fields.

/// A line of a list.
pub struct Line {
    /// Number of the line in the file, from 1.
    pub number: usize,
    /// Fields in the order of the columns. None is empty.
    pub fields: Vec<String>,
}

/// Returns the lines of `text`, whose first line must have exactly these columns. Errors name `file` and line.
pub fn lines(file: &str, text: &str, columns: &[&str]) -> Result<Vec<Line>, String> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let head = reader.headers().map_err(|e| format!("{file}: {e}"))?;
    if head.iter().ne(columns.iter().copied()) {
        let (got, want) = (head.iter().collect::<Vec<_>>().join(","), columns.join(","));
        return Err(format!("{file}:1: the columns are {got}; they must be {want}"));
    }
    let mut lines = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|e| format!("{file}: {e}"))?;
        let number = record.position().map_or(0, |p| p.line()) as usize;
        let named = record.iter().zip(columns);
        if let Some((_, column)) = named.into_iter().find(|(field, _)| field.trim().is_empty()) {
            return Err(format!("{file}:{number}: no {column}; each field says something"));
        }
        lines.push(Line { number, fields: record.iter().map(str::to_owned).collect() });
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn a_line_without_a_field_is_named() {
        let read = |text| lines("list.csv", text, &["paper", "reason"]).map(|all| all.len());
        assert_eq!(
            read("paper,reason\nA,\n"),
            Err("list.csv:2: no reason; each field says something".into())
        );
        assert!(read("paper\n").unwrap_err().starts_with("list.csv:1: the columns are paper;"));
        assert_eq!(read("paper,reason\nA,b\nA,c\n"), Ok(2));
    }
}
