//! Selection maps: tables that name the algorithm for a number of processes and a number of bytes (Hoefler et al. 2007, section 4
//! and figures 7, 9 and 11).
//!
//! ```text
//!   operation   ranks   bytes   algorithm   us      others
//!   allreduce       4       0   CENTRAL     0.9     RPE 1.4, MPI-PE 2.0
//!   allreduce       4     128   RPE         1.7     MPI-PE 2.2
//!   allreduce       8       0   ...
//! ```
//! A call with n ranks and b bytes takes the line with the largest number of ranks that is at most n, and of these lines the line
//! with the largest number of bytes that is at most b. `us` is the time of the algorithm on the machine of the map, in microseconds
//! (`-`: not measured). `others` are the next best algorithms with their times. These algorithms are used if the first algorithm is
//! not eligible, and `weft explain` shows them.

use crate::algorithm::AlgorithmChoice;
use crate::operation::CollectiveKind;
use crate::selection_key::SelectionKey;
use std::cell::OnceCell;
use std::collections::HashSet;
use std::fmt;

/// Number of operations that a map may have lines for.
const OPERATIONS: usize = CollectiveKind::ALL.len();

/// A map and its origin.
#[derive(Debug, Clone, Default)]
pub struct SelectionMap {
    /// The machine on which the map was measured: the name of a machine file, or `shm`.
    pub machine: String,
    /// Lines of each operation, in the order of [`CollectiveKind::ALL`].
    operations: [OperationLines; OPERATIONS],
}

/// Lines of a map for one operation. The lines of a shipped map are found when the operation is first called: a process uses few
/// operations, and parsing all lines would take many times as long as the rest of its start.
#[derive(Debug, Clone, Default)]
struct OperationLines {
    /// Lines of a shipped map; empty if `lines` was filled from the beginning.
    text: &'static str,
    /// Lines, by ranks, then bytes.
    lines: OnceCell<Vec<MapLine>>,
}

impl OperationLines {
    fn lines(&self) -> &[MapLine] {
        self.lines.get_or_init(|| self.text.lines().filter_map(MapLine::shipped).collect())
    }
}

/// Line of a map. The algorithms of a shipped line are parsed when the line is first chosen.
#[derive(Debug, Clone)]
struct MapLine {
    ranks: usize,
    bytes: usize,
    /// The line in a shipped map; empty if `cell` was filled from the beginning.
    text: &'static str,
    cell: OnceCell<SelectionCell>,
}

impl MapLine {
    fn parsed(cell: SelectionCell) -> MapLine {
        MapLine { ranks: cell.ranks, bytes: cell.bytes, text: "", cell: cell.into() }
    }

    /// Reads the numbers of ranks and bytes in a line of a shipped map. Returns `None` if they are malformed.
    fn shipped(text: &'static str) -> Option<MapLine> {
        let mut words = text.split_ascii_whitespace().skip(1);
        let mut number = || words.next()?.parse().ok();
        Some(MapLine { ranks: number()?, bytes: number()?, text, cell: OnceCell::new() })
    }

    fn cell(&self) -> &SelectionCell {
        // A unit test parses each line of the shipped maps.
        let parse = || SelectionCell::parse(self.text).expect("shipped lines are well-formed");
        self.cell.get_or_init(parse)
    }
}

/// Line of a map.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectionCell {
    /// The operation whose calls the line serves.
    pub operation: CollectiveKind,
    /// Minimum number of ranks.
    pub ranks: usize,
    /// Minimum number of bytes, in the measure of [`CollectiveKind::measure`].
    pub bytes: usize,
    /// Algorithms, the best first.
    pub choices: Vec<Timed>,
}

/// An algorithm and its measured time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timed {
    /// The algorithm, with its parameter.
    pub choice: AlgorithmChoice,
    /// Time in microseconds, if it was measured.
    pub us: Option<f64>,
}

/// An error in a map, with its line number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapError {
    /// Line number from 1 on, as in editors; 0 if the error concerns the map as a whole.
    pub line: usize,
    /// Message for the user, without the line number.
    pub what: String,
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.what),
            line => write!(f, "line {line}: {}", self.what),
        }
    }
}

impl std::error::Error for MapError {}

impl SelectionMap {
    /// Makes a map of `lines`, in any order.
    pub fn new(machine: &str, mut lines: Vec<SelectionCell>) -> SelectionMap {
        lines.sort_by_key(|line| (line.ranks, line.bytes));
        let mut operations = [const { Vec::new() }; OPERATIONS];
        for cell in lines {
            operations[cell.operation as usize].push(MapLine::parsed(cell));
        }
        let operations = operations.map(|lines| OperationLines { text: "", lines: lines.into() });
        SelectionMap { machine: machine.to_owned(), operations }
    }

    /// Makes a map of a shipped text, which is as [`SelectionMap`] is displayed: the lines of each operation stand together, by ranks,
    /// then bytes. Parses no line.
    pub(crate) fn shipped(machine: &str, text: &'static str) -> SelectionMap {
        let mut map = SelectionMap { machine: machine.to_owned(), ..SelectionMap::default() };
        let mut rest = text;
        while !rest.is_empty() {
            let word = first_word(rest);
            let same = |line: &&str| first_word(line) == word;
            let length = rest.split_inclusive('\n').take_while(same).map(str::len).sum();
            let (lines, after) = rest.split_at(length);
            if let Ok(operation) = CollectiveKind::named(word) {
                map.operations[operation as usize].text = lines;
            }
            rest = after;
        }
        map
    }

    /// Returns the lines of an operation, by ranks, then bytes.
    pub fn lines(&self, operation: CollectiveKind) -> impl Iterator<Item = &SelectionCell> {
        self.operations[operation as usize].lines().iter().map(MapLine::cell)
    }

    /// Returns the line of the map that serves a call.
    pub fn find(
        &self,
        operation: CollectiveKind,
        ranks: usize,
        bytes: usize,
    ) -> Option<&SelectionCell> {
        let lines = self.operations[operation as usize].lines();
        let end = lines.partition_point(|l| l.ranks <= ranks);
        let last = lines[..end].last()?;
        let start = lines.partition_point(|l| l.ranks < last.ranks);
        let found = lines[start..end].iter().rev().find(|l| l.bytes <= bytes);
        Some(found.unwrap_or(&lines[start]).cell())
    }

    /// Returns the first of the line's algorithms that is eligible for `case`.
    pub fn choose(
        &self,
        operation: CollectiveKind,
        case: &SelectionKey,
    ) -> Option<AlgorithmChoice> {
        let line = self.find(operation, case.ranks, case.bytes)?;
        let eligible = |timed: &&Timed| timed.choice.algorithm.eligible(case).is_ok();
        line.choices.iter().find(eligible).map(|timed| timed.choice)
    }

    /// Parses a map in the format in which [`SelectionMap`] is displayed. Empty lines and lines that begin with `#` are
    /// comments, except `# machine: NAME`.
    ///
    /// # Errors
    /// If a name is unknown, a number is malformed, two lines are for the same operation, ranks and bytes, or the machine is
    /// missing.
    pub fn parse(text: &str) -> Result<SelectionMap, MapError> {
        let mut machine = None;
        let mut lines: Vec<SelectionCell> = Vec::new();
        let mut places = HashSet::new();
        for (at, row) in text.lines().enumerate().map(|(i, row)| (i + 1, row.trim())) {
            if let Some(comment) = row.strip_prefix('#') {
                if let Some(name) = comment.trim().strip_prefix("machine:") {
                    machine = Some(name.trim().to_owned());
                }
                continue;
            }
            if row.is_empty() {
                continue;
            }
            let line = SelectionCell::parse(row).map_err(|what| MapError { line: at, what })?;
            let SelectionCell { operation, ranks, bytes, .. } = line;
            if !places.insert((operation, ranks, bytes)) {
                let what = format!("{operation} for {ranks} ranks and {bytes} bytes a second time");
                return Err(MapError { line: at, what });
            }
            lines.push(line);
        }
        let nameless = || MapError { line: 0, what: "no line `# machine: NAME`".to_owned() };
        Ok(SelectionMap::new(&machine.ok_or_else(nameless)?, lines))
    }
}

impl SelectionCell {
    fn parse(row: &str) -> Result<SelectionCell, String> {
        // Several blanks may align the columns.
        let mut rest = row;
        let mut next = |what: &str| {
            let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            rest = after.trim_start();
            if word.is_empty() { Err(format!("no {what}")) } else { Ok(word) }
        };
        let operation = CollectiveKind::named(next("operation")?)?;
        let number = |word: &str| {
            word.parse::<usize>().map_err(|_| format!("{word:?} is not a whole number"))
        };
        let ranks = number(next("number of ranks")?)?;
        let bytes = number(next("number of bytes")?)?;
        let mut choices = vec![Timed {
            choice: AlgorithmChoice::parse(operation, next("algorithm")?)?,
            us: match next("time in us, or -")? {
                "-" => None,
                word => Some(time(word)?),
            },
        }];
        for other in rest.split(',').map(str::trim).filter(|other| !other.is_empty()) {
            let (name, us) = other.split_once(char::is_whitespace).unwrap_or((other, "-"));
            let us = if us == "-" { None } else { Some(time(us.trim())?) };
            choices.push(Timed { choice: AlgorithmChoice::parse(operation, name)?, us });
        }
        Ok(SelectionCell { operation, ranks, bytes, choices })
    }
}

/// Returns the first word of the first line, or an empty text if the line is blank.
fn first_word(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    line.split_whitespace().next().unwrap_or_default()
}

fn time(word: &str) -> Result<f64, String> {
    let time = word.parse::<f64>().ok().filter(|us| us.is_finite() && *us >= 0.0);
    time.ok_or_else(|| format!("{word:?} is not a time in microseconds"))
}

impl fmt::Display for SelectionMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# machine: {}", self.machine)?;
        writeln!(f, "# operation ranks bytes algorithm us others")?;
        let us = |us: Option<f64>| us.map_or("-".to_owned(), |us| format!("{us:.3}"));
        for SelectionCell { operation, ranks, bytes, choices } in
            CollectiveKind::ALL.iter().flat_map(|&o| self.lines(o))
        {
            let best = choices[0];
            write!(f, "{operation:14} {ranks:6} {bytes:9} ")?;
            write!(f, "{:24} {:>12}", best.choice.to_string(), us(best.us))?;
            let others: Vec<_> =
                choices[1..].iter().map(|o| format!("{} {}", o.choice, us(o.us))).collect();
            writeln!(f, "  {}", others.join(", "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection_key::RankPlacement;

    const TEXT: &str = "# machine: here\n\
        allreduce 4 0    CENTRAL 0.9   RPE 1.4, MPI-PE 2\n\
        # a remark\n\
        allreduce 4 128  MPI-PE  2.5\n\
        \n\
        allreduce 16 0   MPI-GB  -     MPI-PE\n\
        barrier 2 0      MPI-DS  1\n";

    fn case(ranks: usize, bytes: usize, same_node: bool) -> SelectionKey {
        let site = RankPlacement { same_node, ..RankPlacement::apart(1) };
        SelectionKey { ranks, bytes, element: 4, commutes: true, equal: true, site }
    }

    #[test]
    fn a_call_takes_the_line_at_or_below_it() {
        let map = SelectionMap::parse(TEXT).unwrap();
        let name = |ranks, bytes, same_node| {
            let choice = map.choose(CollectiveKind::Allreduce, &case(ranks, bytes, same_node));
            choice.map(|choice| choice.to_string())
        };
        assert_eq!(name(4, 8, true).as_deref(), Some("CENTRAL"));
        assert_eq!(name(4, 8, false).as_deref(), Some("RPE"), "the first that is eligible");
        assert_eq!(name(15, 127, true).as_deref(), Some("RPE"), "CENTRAL carries 64 bytes");
        assert_eq!(name(15, 1 << 30, true).as_deref(), Some("MPI-PE"));
        assert_eq!(name(1000, 8, true).as_deref(), Some("MPI-GB"));
        assert_eq!(name(2, 8, true), None, "below the first line");
        assert_eq!(map.choose(CollectiveKind::Bcast, &case(4, 8, true)), None);
    }

    #[test]
    fn what_is_written_is_read() {
        let map = SelectionMap::parse(TEXT).unwrap();
        let again = SelectionMap::parse(&map.to_string()).unwrap();
        assert_eq!(again.machine, "here");
        for operation in CollectiveKind::ALL {
            assert!(again.lines(operation).eq(map.lines(operation)), "{operation}");
        }
    }

    #[test]
    fn shipped_lines_are_parsed_when_asked_for() {
        let text = SelectionMap::parse(TEXT).unwrap().to_string().leak();
        let map = SelectionMap::shipped("here", text);
        let lines = |o: CollectiveKind| map.operations[o as usize].lines.get();
        assert!(CollectiveKind::ALL.into_iter().all(|o| lines(o).is_none()), "a line was read");
        assert!(map.find(CollectiveKind::Allreduce, 4, 8).is_some());
        let allreduce = lines(CollectiveKind::Allreduce).unwrap();
        assert!(allreduce.len() > 1 && lines(CollectiveKind::Barrier).is_none());
        assert_eq!(allreduce.iter().filter(|line| line.cell.get().is_some()).count(), 1);
    }

    #[test]
    fn errors_name_line_and_cause() {
        let error = |row: &str| {
            SelectionMap::parse(&format!("# machine: m\n{row}\n")).unwrap_err().to_string()
        };
        assert!(error("allreduc 2 0 RPE 1").starts_with("line 2: no collective operation"));
        assert!(error("allreduce 2 0 FAST 1").contains("no algorithm \"FAST\" for allreduce"));
        assert_eq!(error("allreduce x 0 RPE 1"), "line 2: \"x\" is not a whole number");
        assert_eq!(error("allreduce 2 0 RPE"), "line 2: no time in us, or -");
        assert_eq!(
            error("allreduce 2 0 RPE soon"),
            "line 2: \"soon\" is not a time in microseconds"
        );
        let twice = error("barrier 2 0 RPE 1\nbarrier 2 0 RDS 1");
        assert_eq!(twice, "line 3: barrier for 2 ranks and 0 bytes a second time");
        assert_eq!(SelectionMap::parse("").unwrap_err().to_string(), "no line `# machine: NAME`");
    }
}
