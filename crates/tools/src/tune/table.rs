//! A map as tables, one for each operation. Rows are numbers of bytes, columns are numbers of ranks, and a cell has the best
//! algorithm.

use weft_collective::selection_map::SelectionCell;
use weft_collective::{CollectiveKind, SelectionMap};

/// Maximum number of columns that fit on a page. If there are more, only powers of two are printed.
const COLUMNS: usize = 9;

/// Returns the tables of the operations for which `asked` returns true.
pub fn print(map: &SelectionMap, asked: impl Fn(&CollectiveKind) -> bool) -> String {
    let mut text = format!("machine {}\n", map.machine);
    for operation in CollectiveKind::ALL.into_iter().filter(asked) {
        let lines: Vec<&SelectionCell> = map.lines(operation).collect();
        if lines.is_empty() {
            continue;
        }
        let mut ranks: Vec<usize> = lines.iter().map(|l| l.ranks).collect();
        ranks.dedup();
        let mut left_out = "";
        if ranks.len() > COLUMNS {
            ranks.retain(|n| n.is_power_of_two());
            left_out = "; other numbers of ranks are in the file";
        }
        let mut bytes: Vec<usize> = lines.iter().map(|l| l.bytes).collect();
        bytes.sort_unstable();
        bytes.dedup();
        text += &format!("\n{operation} (bytes: {}{left_out})\n", operation.measure());
        let cell = |&ranks: &usize, &bytes: &usize| {
            let line = lines.iter().find(|l| l.ranks == ranks && l.bytes == bytes);
            line.map_or(String::new(), |l| l.choices[0].choice.to_string())
        };
        let wide = |column: &Vec<String>| column.iter().map(String::len).max().unwrap_or(0);
        let heads = ["bytes".to_owned()].into_iter().chain(bytes.iter().map(usize::to_string));
        let mut columns = vec![heads.collect::<Vec<String>>()];
        for n in &ranks {
            let cells = bytes.iter().map(|b| cell(n, b));
            columns.push([format!("{n} ranks")].into_iter().chain(cells).collect());
        }
        for row in 0..=bytes.len() {
            let mut out = String::new();
            for (at, column) in columns.iter().enumerate() {
                let width = wide(column);
                let word = &column[row];
                out +=
                    &if at == 0 { format!("{word:>width$}") } else { format!("  {word:width$}") };
            }
            text += out.trim_end();
            text.push('\n');
        }
    }
    text
}
