//! `--check`: the cost of the checking mode, a line for the latency of small messages and a line for the bandwidth of large ones.

use super::library::BenchLibrary;
use super::plan::BenchCase;
use super::results::Results;
use super::table::{align, figure, size};
use super::variants::{self, BenchVariant};

/// Programs, each with the size of its messages, and the share of the speed without checks that the checking mode must reach.
const ROWS: [(&str, &str, f64); 2] = [("latency", "8", 1.0 / 3.0), ("bandwidth", "1M", 0.7)];

/// Option with which each message of a window has memory of its own. Receives into the same memory are an error that the mode names.
const SEPARATE: &[&str] = &["--separate"];

/// Returns a case for each row.
pub fn cases(seconds: f64) -> Vec<BenchCase> {
    let case = |(program, sizes, _): (&'static str, &str, f64)| {
        let options = if program == "bandwidth" { SEPARATE } else { &[] };
        BenchCase { options, ..BenchCase::new(program, 2, sizes.to_owned(), seconds) }
    };
    ROWS.map(case).to_vec()
}

/// Returns the column of Weft in the checking mode.
pub fn variant() -> BenchVariant {
    variants::parse("weft checked WEFT_CHECK=1").expect("the text has the form of a variant")
}

/// Formats the table: medians without and with checks, the share of the speed that is left, and whether the share meets its aim.
pub fn render(cases: &[BenchCase], libraries: &[BenchLibrary], results: &Results) -> String {
    let mut head = ["checking mode", "size", "unit"].map(str::to_owned).to_vec();
    head.extend(libraries.iter().map(|library| library.name.clone()));
    head.extend(["share of speed", "aim", "verdict"].map(str::to_owned));
    let mut grid = vec![head];
    for row in &results.rows {
        let medians: Vec<_> = (0..libraries.len()).map(|library| row.median(library)).collect();
        let mut line = vec![cases[row.case].title(), size(row.size), row.unit.clone()];
        line.extend(medians.iter().map(|median| median.map_or("-".to_owned(), figure)));
        if let [Some(plain), Some(checked)] = medians[..] {
            let share = if row.lower_is_better() { plain / checked } else { checked / plain };
            let aim = ROWS.iter().find(|(program, ..)| *program == cases[row.case].program);
            let aim = aim.map_or(1.0, |(.., aim)| *aim);
            line.extend([format!("{share:.2}"), format!(">= {aim:.2}")]);
            line.push(if share >= aim { "met" } else { "MISSED" }.to_owned());
        }
        grid.push(line);
    }
    let mut text = "\n".to_owned();
    align(&grid, &mut text);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_below_its_aim_is_missed() {
        let cases = cases(0.1);
        let names = ["weft", "weft checked"];
        let libraries =
            names.map(|name| BenchLibrary { name: name.to_owned(), ..BenchLibrary::default() });
        let mut results = Results::default();
        for (case, library, value, unit) in
            [(0, 0, 0.2, "us"), (0, 1, 0.5, "us"), (1, 0, 10.0, "GB/s"), (1, 1, 6.0, "GB/s")]
        {
            let line = format!("{{\"size\":8,\"value\":{value},\"unit\":\"{unit}\"}}");
            results.add(case, library, None, &line).unwrap();
        }
        let text = render(&cases, &libraries, &results);
        let rows: Vec<_> = text.lines().filter(|line| line.contains("2 ranks")).collect();
        assert!(rows[0].ends_with("met") && rows[0].contains("0.40"), "{text}");
        assert!(rows[1].ends_with("MISSED") && rows[1].contains("0.60"), "{text}");
    }
}
