//! Numbers that the documents publish: `published.csv`, one number in each row.

use std::fmt;
use std::path::Path;

/// The list `published.csv` of the repository.
const LIST: &str = include_str!("../../../figures/published.csv");
const LIST_NAME: &str = "figures/published.csv";

/// The columns that describe a published value, in order.
pub const COLUMNS: [&str; 6] = ["paper", "where", "quantity", "configuration", "value", "unit"];
/// The columns about thresholds: the number that stands for a word of the text, and the reason for the number.
const READING: [&str; 2] = ["threshold", "why"];

/// A published value, or a simulated one.
#[derive(Debug, Clone, PartialEq)]
pub enum FigureValue {
    Number(f64),
    /// A word instead of a number, such as a name or an order.
    Word(String),
}

/// Result of a check: the value, or the reason why there is none.
pub type CheckResult = Result<FigureValue, String>;

impl FigureValue {
    fn parse(text: &str) -> FigureValue {
        match text.parse() {
            Ok(number) => FigureValue::Number(number),
            Err(_) => FigureValue::Word(text.to_owned()),
        }
    }

    pub fn number(&self) -> Option<f64> {
        match self {
            FigureValue::Number(number) => Some(*number),
            FigureValue::Word(_) => None,
        }
    }
}

impl fmt::Display for FigureValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FigureValue::Number(number) => f.write_str(&super::digits::digits(*number)),
            FigureValue::Word(word) => f.write_str(word),
        }
    }
}

/// A row of the list.
#[derive(Debug, Clone)]
pub struct PublishedRow {
    /// Line in the file, from 1.
    pub line: usize,
    /// Fields as in the file, by [`COLUMNS`].
    pub fields: [String; 6],
    pub value: FigureValue,
    /// The number that stands for a word of the text in this row, such as "similar" or "gradual".
    pub threshold: Option<f64>,
    /// A sentence that gives the reason for the threshold; empty without a threshold.
    pub why: String,
}

impl PublishedRow {
    /// Returns the short name of the document.
    pub fn paper(&self) -> &str {
        &self.fields[0]
    }

    /// Returns the section or slide.
    pub fn place(&self) -> &str {
        &self.fields[1]
    }

    pub fn quantity(&self) -> &str {
        &self.fields[2]
    }

    pub fn configuration(&self) -> &str {
        &self.fields[3]
    }

    pub fn unit(&self) -> &str {
        &self.fields[5]
    }

    /// Returns true if `name` means this row: `quantity; configuration`, or `where; quantity; configuration`.
    pub fn is(&self, name: &str) -> bool {
        let short = format!("{}; {}", self.quantity(), self.configuration());
        name == short || name == format!("{}; {short}", self.place())
    }
}

/// All rows, in order.
#[derive(Clone)]
pub struct PublishedList {
    /// Name of the file, for errors.
    pub file: String,
    pub rows: Vec<PublishedRow>,
}

impl PublishedList {
    /// Loads the list in the repository, or the list in `file`, which has the same columns.
    pub fn load(file: Option<&Path>) -> Result<PublishedList, String> {
        let Some(file) = file else { return PublishedList::parse(LIST_NAME, LIST) };
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file).map_err(|e| format!("{name}: {e}"))?;
        PublishedList::parse(&name, &text)
    }

    pub fn parse(file: &str, text: &str) -> Result<PublishedList, String> {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let head = reader.headers().map_err(|e| format!("{file}: {e}"))?;
        let columns = COLUMNS.into_iter().chain(READING);
        if head.iter().ne(columns.clone()) {
            let list = |names: Vec<&str>| names.join(",");
            let (got, want) = (list(head.iter().collect()), list(columns.collect()));
            return Err(format!("{file}:1: the columns are {got}; they must be {want}"));
        }
        let mut rows = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|e| format!("{file}: {e}"))?;
            let line = record.position().map_or(0, |p| p.line()) as usize;
            let fields: Vec<String> = record.iter().map(str::to_owned).collect();
            let count = fields.len();
            let [paper, place, quantity, configuration, value, unit, threshold, why] = fields
                .try_into()
                .map_err(|_| format!("{file}:{line}: {count} fields; a row has 8"))?;
            let threshold = match threshold.as_str() {
                "" => None,
                text => Some(text.parse().map_err(|_| {
                    format!("{file}:{line}: the threshold is {text}; it must be a number")
                })?),
            };
            if threshold.is_some() == why.trim().is_empty() {
                return Err(format!("{file}:{line}: a threshold has a sentence that says why"));
            }
            let fields = [paper, place, quantity, configuration, value, unit];
            let value = FigureValue::parse(&fields[4]);
            rows.push(PublishedRow { line, fields, value, threshold, why });
        }
        Ok(PublishedList { file: file.to_owned(), rows })
    }

    /// Returns the shortest name that stands only for this row: see [`PublishedRow::is`].
    pub fn name(&self, row: &PublishedRow) -> String {
        let short = format!("{}; {}", row.quantity(), row.configuration());
        match self.find(row.paper(), &short) {
            Ok(_) => short,
            Err(_) => format!("{}; {short}", row.place()),
        }
    }

    /// Returns the only row of `paper` that `name` means: see [`PublishedRow::is`].
    pub fn find(&self, paper: &str, name: &str) -> Result<&PublishedRow, String> {
        let mut found = self.rows.iter().filter(|row| row.paper() == paper && row.is(name));
        match (found.next(), found.next()) {
            (Some(row), None) => Ok(row),
            (None, _) => Err(format!("{}: no row of {paper} is \"{name}\"", self.file)),
            (Some(a), Some(b)) => Err(format!(
                "{}: lines {} and {} both are \"{name}\"; put the section before it",
                self.file, a.line, b.line
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_quantity_and_configuration() {
        let text = "paper,where,quantity,configuration,value,unit,threshold,why\n\
            A,1,speed,\"cold, dry\",1.5,x,,\nA,2,winner,wet,one,name,,\nA,3,winner,wet,two,name,,\n";
        let list = PublishedList::parse("list.csv", text).unwrap();
        assert_eq!(list.find("A", "speed; cold, dry").unwrap().value, FigureValue::Number(1.5));
        assert_eq!(
            list.find("A", "3; winner; wet").unwrap().value,
            FigureValue::Word("two".into())
        );
        let twice = list.find("A", "winner; wet").unwrap_err();
        assert!(twice.contains("lines 3 and 4"), "{twice}");
        assert!(list.find("B", "speed; cold, dry").unwrap_err().contains("list.csv: no row of B"));
    }

    #[test]
    fn a_malformed_list_is_named_with_its_line() {
        let error = |text: &str| PublishedList::parse("list.csv", text).err().unwrap();
        assert!(error("paper,value\n").starts_with("list.csv:1: the columns are paper,value"));
        let head = "paper,where,quantity,configuration,value,unit,threshold,why\n";
        let short = error(&format!("{head}A,1,speed\n"));
        assert!(short.contains("list.csv") && short.contains("line: 2"), "{short}");
        let word = error(&format!("{head}A,1,speed,dry,fast,order,some,It is.\n"));
        assert_eq!(word, "list.csv:2: the threshold is some; it must be a number");
        for half in ["1.1,", ",It is."] {
            let half = error(&format!("{head}A,1,speed,dry,fast,order,{half}\n"));
            assert_eq!(half, "list.csv:2: a threshold has a sentence that says why");
        }
    }

    #[test]
    fn the_project_s_list_is_in_order() {
        let list = PublishedList::load(None).unwrap();
        assert!(list.rows.len() > 59, "the list only grows");
        assert!(list.find("Kini", "base RDMA write latency; cluster 1, small").is_ok());
    }
}
