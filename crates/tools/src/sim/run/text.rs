//! The report as text.

use super::report::{PathReport, RankRow, RunReport, percent};

/// Maximum number of rows of a table.
const MOST_ROWS: usize = 20;

/// Maximum number of pairs.
const MOST_PAIRS: usize = 8;

/// Writes the report.
pub fn text(report: &RunReport) -> String {
    if report.requests == 0 {
        return "no process has joined the simulation, so there are no times\n".to_owned();
    }
    let RunReport { machine, map, nodes, end_us, turns, requests, .. } = report;
    let ranks = report.ranks.len();
    let total = report.computing_us + report.mpi_us;
    let share = |part: f64| percent(part, total);
    let mut text = format!(
        "{ranks} ranks on {nodes} nodes of {machine}: {end_us:.3} us of virtual time, {turns} turns, {requests} requests\n"
    );
    text += &format!("collective algorithms by the map {map}\n");
    text += &format!(
        "computing {:.1} %, in MPI {:.1} %, of it waiting {:.1} % of all time\n",
        share(report.computing_us),
        share(report.mpi_us),
        share(report.waiting_us)
    );
    if report.wrong_turns > 0 {
        text += &format!(
            "WRONG TIMES: in {} turns a rank did not do the work that was charged for its wait; please report this\n",
            report.wrong_turns
        );
    }
    for part in [functions, rank_table, traffic, sizes, waits, path] {
        text += &part(report);
    }
    text
}

/// A table whose last column is aligned to the left, and all others to the right.
pub struct TextTable {
    lines: Vec<Vec<String>>,
}

impl TextTable {
    /// Makes a table with these heads of columns.
    pub fn new(heads: &[&str]) -> TextTable {
        TextTable { lines: vec![heads.iter().map(|&head| head.to_owned()).collect()] }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.lines.push(cells.into_iter().collect());
    }

    /// Returns the text with a title, indented by two blanks; nothing if there are no rows.
    pub fn text(&self, title: &str) -> String {
        if self.lines.len() < 2 {
            return String::new();
        }
        let columns = self.lines[0].len();
        let width = |column: usize| self.lines.iter().map(|line| line[column].len()).max();
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        let mut text = format!("\n{title}\n");
        for line in &self.lines {
            let (last, cells) = line.split_last().expect("a table has columns");
            for (cell, width) in cells.iter().zip(&widths) {
                text += &format!("  {cell:>width$}");
            }
            text += &format!("  {last}\n");
        }
        text
    }
}

fn fixed(us: f64) -> String {
    format!("{us:.3}")
}

fn functions(report: &RunReport) -> String {
    let mut table = TextTable::new(&["calls", "total us", "max us", "rank", "waiting", "function"]);
    for row in report.functions.iter().take(MOST_ROWS) {
        let waiting = percent(row.waiting_us, row.total_us);
        table.row([
            row.calls.to_string(),
            fixed(row.total_us),
            fixed(row.max_us),
            row.max_rank.to_string(),
            format!("{waiting:.0} %"),
            row.function.clone(),
        ]);
    }
    table.text("MPI functions: time of all ranks, maximum of a rank, share of waiting")
}

/// Returns the rows to print: all, or those with the lowest and highest figures of each column.
fn shown_ranks(rows: &[RankRow]) -> Vec<RankRow> {
    if rows.len() <= MOST_ROWS {
        return rows.to_vec();
    }
    let columns: [fn(&RankRow) -> f64; 4] =
        [|r| r.computing_us, |r| r.mpi_us, |r| r.waiting_us, |r| r.end_us];
    let mut shown: Vec<RankRow> = Vec::new();
    for column in columns {
        let mut sorted: Vec<&RankRow> = rows.iter().collect();
        sorted.sort_by(|a, b| column(a).total_cmp(&column(b)));
        let ends = sorted.iter().take(2).chain(sorted.iter().rev().take(2));
        shown.extend(ends.map(|&&row| row));
    }
    shown.sort_by_key(|row| row.rank);
    shown.dedup_by_key(|row| row.rank);
    shown
}

fn rank_table(report: &RunReport) -> String {
    let heads = ["rank", "computing us", "in MPI us", "waiting us", "end us"];
    let mut table = TextTable::new(&heads);
    for row in shown_ranks(&report.ranks) {
        let times = [row.computing_us, row.mpi_us, row.waiting_us, row.end_us].map(fixed);
        table.row([row.rank.to_string()].into_iter().chain(times));
    }
    let title = match report.ranks.len() > MOST_ROWS {
        true => "ranks with the lowest and highest times",
        false => "ranks",
    };
    table.text(title)
}

fn traffic(report: &RunReport) -> String {
    let mut table = TextTable::new(&["from", "to", "operations", "bytes"]);
    for row in report.pairs.iter().take(MOST_PAIRS) {
        let numbers = [row.from as u64, row.to as u64, row.operations, row.bytes];
        table.row(numbers.map(|number| number.to_string()));
    }
    let (operations, bytes) = (report.operations, report.bytes);
    let phantom = match report.phantom_bytes {
        0 => String::new(),
        spared => format!(", {spared} of them not copied"),
    };
    table.text(&format!("traffic: {operations} operations, {bytes} bytes{phantom}; busiest pairs"))
}

fn sizes(report: &RunReport) -> String {
    let mut table = TextTable::new(&["up to bytes", "operations", "bytes", "kind"]);
    for row in &report.sizes {
        let numbers = [row.up_to_bytes, row.operations, row.bytes].map(|n| n.to_string());
        table.row(numbers.into_iter().chain([row.kind.to_owned()]));
    }
    table.text("sizes")
}

fn waits(report: &RunReport) -> String {
    let mut table =
        TextTable::new(&["rank", "waits for", "waits", "waiting us", "share", "function"]);
    for row in report.waits.iter().take(MOST_PAIRS) {
        let peer = row.waits_for.map_or("timer".to_owned(), |peer| peer.to_string());
        table.row([
            row.rank.to_string(),
            peer,
            row.waits.to_string(),
            fixed(row.waiting_us),
            format!("{:.1} %", percent(row.waiting_us, report.waiting_us)),
            row.function.clone(),
        ]);
    }
    table.text("longest waits: a rank, and the rank whose arrival ended its waits")
}

fn path(report: &RunReport) -> String {
    let Some(PathReport { transfers, all, functions }) = &report.critical_path else {
        return "\nno critical path: the run was too long for a record of all waits\n".to_owned();
    };
    let total = all.total_us();
    let share = |part: f64| format!("{:.1} %", percent(part, total));
    let heads =
        ["computing", "library", "latency", "bandwidth", "timers", "all", "all us", "function"];
    let mut table = TextTable::new(&heads);
    for row in functions.iter().take(MOST_PAIRS) {
        let shares = row.parts().map(share).into_iter().chain([share(row.total_us())]);
        table.row(shares.chain([fixed(row.total_us()), row.function.clone()]));
    }
    let shares = all.parts().map(share).into_iter().chain([share(total)]);
    table.row(shares.chain([fixed(total), "all".to_owned()]));
    table.text(&format!("critical path over {transfers} transfers between ranks: shares"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = TextTable::new(&["n", "name"]);
        assert_eq!(table.text("none"), "");
        table.row(["100".to_owned(), "long name".to_owned()]);
        assert_eq!(table.text("t"), "\nt\n    n  name\n  100  long name\n");
    }

    #[test]
    fn many_ranks_are_shown_by_their_extremes() {
        let row = |rank: usize| RankRow {
            rank,
            computing_us: rank as f64,
            mpi_us: 1000.0 - rank as f64,
            waiting_us: if rank == 50 { 9.0 } else { 5.0 },
            end_us: if rank == 60 { 1.0 } else { 2.0 },
        };
        let rows: Vec<RankRow> = (0..100).map(row).collect();
        let shown: Vec<usize> = shown_ranks(&rows).iter().map(|row| row.rank).collect();
        for rank in [0, 1, 50, 60, 98, 99] {
            assert!(shown.contains(&rank), "{rank} in {shown:?}");
        }
        assert!(shown.len() <= 16);
        assert_eq!(shown_ranks(&rows[..20]).len(), 20);
    }
}
