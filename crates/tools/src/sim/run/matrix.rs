//! The traffic of each pair of ranks, as CSV and as a heat map.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use svg::node::element::{Group, Rectangle, Text, Title};
use svg::{Document, Node as _};
use weft_sim_job::{JobAccount, PairTraffic};

/// Maximum number of cells in a row of the heat map. More ranks share cells.
const MOST_CELLS: usize = 128;

/// Width of all cells together in pixels, and margins.
const WIDTH: f64 = 640.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 60.0;

/// Writes the matrix in the format of the file's ending.
pub fn write(path: &Path, file: &File, account: &JobAccount) -> std::io::Result<()> {
    let mut file = BufWriter::new(file);
    match path.extension().is_some_and(|ending| ending == "svg") {
        true => write!(file, "{}", picture(account))?,
        false => write_csv(&mut file, account)?,
    }
    file.flush()
}

fn write_csv(file: &mut impl Write, account: &JobAccount) -> std::io::Result<()> {
    let mut csv = csv::Writer::from_writer(file);
    csv.write_record(["from", "to", "operations", "bytes"])?;
    for (&(from, to), pair) in &account.pairs {
        csv.serialize((from, to, pair.operations, pair.bytes))?;
    }
    csv.flush()
}

/// Sums of pairs of ranks, each of `each` ranks in a row.
struct Cells {
    each: usize,
    count: usize,
    sums: Vec<PairTraffic>,
}

impl Cells {
    fn of(account: &JobAccount) -> Cells {
        let ranks = account.ranks.len();
        let each = ranks.div_ceil(MOST_CELLS);
        let count = ranks.div_ceil(each);
        let mut sums = vec![PairTraffic::default(); count * count];
        for (&(from, to), pair) in &account.pairs {
            // A peer out of range comes from memory that the program has overwritten.
            if to < ranks {
                let sum = &mut sums[from / each * count + to / each];
                sum.operations += pair.operations;
                sum.bytes += pair.bytes;
            }
        }
        Cells { each, count, sums }
    }

    /// Returns the name of the ranks of a row.
    fn name(&self, row: usize) -> String {
        match self.each {
            1 => row.to_string(),
            each => format!("{} to {}", row * each, (row + 1) * each - 1),
        }
    }
}

/// Returns the colour of a number of bytes: a shade by the logarithm.
fn shade(bytes: u64, most: u64) -> String {
    let strength = (bytes as f64 + 1.0).ln() / (most as f64 + 1.0).ln().max(1e-9);
    let blend = |from: f64, to: f64| (from + (to - from) * strength).round() as u8;
    format!("#{:02x}{:02x}{:02x}", blend(224.0, 8.0), blend(236.0, 48.0), blend(244.0, 107.0))
}

/// Draws the heat map: senders down, receivers across.
fn picture(account: &JobAccount) -> Document {
    let cells = Cells::of(account);
    let side = WIDTH / cells.count.max(1) as f64;
    let most = cells.sums.iter().map(|sum| sum.bytes).max().unwrap_or(0);
    let hundredths = |x: f64| (x * 100.0).round() / 100.0;
    let mut squares = Group::new();
    let places = cells.sums.iter().enumerate().filter(|(_, sum)| sum.operations > 0);
    for (place, sum) in places {
        let (from, to) = (place / cells.count, place % cells.count);
        let text = format!(
            "{} to {}: {} operations, {} bytes",
            cells.name(from),
            cells.name(to),
            sum.operations,
            sum.bytes
        );
        let square = Rectangle::new()
            .set("x", hundredths(LEFT + to as f64 * side))
            .set("y", hundredths(TOP + from as f64 * side))
            .set("width", hundredths(side))
            .set("height", hundredths(side))
            .set("fill", shade(sum.bytes, most));
        squares.append(square.add(Title::new(text)));
    }
    let words = |text: String, x: f64, y: f64| Text::new(text).set("x", x).set("y", y);
    let mut names = Group::new().set("text-anchor", "end");
    let every = (13.0 / side).ceil() as usize;
    for row in (0..cells.count).step_by(every.max(1)) {
        let y = TOP + (row as f64 + 0.5) * side + 4.0;
        names.append(words((row * cells.each).to_string(), LEFT - 8.0, hundredths(y)));
    }
    let frame = Rectangle::new().set("x", LEFT).set("y", TOP).set("width", WIDTH);
    let frame = frame.set("height", WIDTH).set("fill", "none").set("stroke", "#666666");
    let (width, height) = (LEFT + WIDTH + 20.0, TOP + WIDTH + 30.0);
    let title = format!("bytes by sender (down) and receiver (across), up to {most} bytes");
    Document::new()
        .set("viewBox", (0, 0, width, height))
        .set("width", width)
        .set("height", height)
        .set("font-family", "sans-serif")
        .set("font-size", 12)
        .add(Title::new("traffic"))
        .add(Rectangle::new().set("width", "100%").set("height", "100%").set("fill", "white"))
        .add(words(title, LEFT, 30.0).set("font-size", 15))
        .add(names)
        .add(squares)
        .add(frame)
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::account;
    use super::*;

    #[test]
    fn csv_has_a_line_for_each_pair() {
        let mut bytes = Vec::new();
        write_csv(&mut bytes, &account()).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text, "from,to,operations,bytes\n0,1,1,100\n1,0,1,5000\n");
    }

    #[test]
    fn many_ranks_share_cells() {
        let mut account = JobAccount::new(300);
        account.operation(weft_sim_job::TrafficKind::Read, 299, 0, 10);
        account.operation(weft_sim_job::TrafficKind::Read, 298, 2, 10);
        let cells = Cells::of(&account);
        assert_eq!((cells.each, cells.count), (3, 100));
        assert_eq!(cells.sums[99 * 100], PairTraffic { operations: 2, bytes: 20 });
        assert_eq!(cells.name(99), "297 to 299");
    }

    #[test]
    fn the_picture_is_xml_with_a_square_for_each_pair() {
        let text = picture(&account()).to_string();
        let xml = roxmltree::Document::parse(&text).unwrap();
        let titles = xml.descendants().filter(|node| node.has_tag_name("title"));
        assert_eq!(titles.filter(|t| t.text().unwrap().contains("operations")).count(), 2);
        assert_ne!(shade(1, 5000), shade(5000, 5000));
        assert_eq!(shade(0, 5000), "#e0ecf4");
    }
}
