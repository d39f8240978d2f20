//! What the page says of rows that were in sight, and of those that disagree.

use super::{drawn, records, table};
use std::fs;

const INFORMED: &str = include_str!("../../../../figures/informed.csv");

/// The page's text between two headings of it.
fn section(from: &str, to: &str) -> String {
    let page = fs::read_to_string(drawn().join("index.html")).unwrap();
    let begin = page.find(from).unwrap_or_else(|| panic!("no {from}"));
    let end = page[begin..].find(to).map_or(page.len(), |at| begin + at);
    page[begin..end].to_owned()
}

/// As the page writes it.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[test]
fn each_informed_row_says_what_moved_it_from_where_to_where() {
    let page = fs::read_to_string(drawn().join("index.html")).unwrap();
    let moves = records(INFORMED);
    for moved in &moves[1..] {
        for field in &moved[2..] {
            assert!(page.contains(&escaped(field)), "the page says {field}");
        }
    }
    for row in table(drawn(), "summary")[1..].iter().filter(|row| row[7] == "informed") {
        let short = format!("{}; {}", row[2], row[3]);
        assert!(moves.iter().any(|m| m[0] == row[0] && m[1].ends_with(&short)), "{row:?}");
    }
}

#[test]
fn what_disagrees_stands_together_and_is_computed_from_the_rows() {
    let apart = section("id=\"disagreements\"", "id=\"kini\"");
    let mut count = 0;
    for row in &table(drawn(), "summary")[1..] {
        let counted = ["children", "steps", "levels", "KiB", "count"].contains(&row[5].as_str());
        let disagrees = match row[8].parse::<f64>() {
            Ok(percent) => percent.abs() > if counted { 0.05 } else { 10.05 },
            Err(_) => row[8] == "no",
        };
        let close = row[8].parse::<f64>().is_ok_and(|p| (p.abs() - 10.0).abs() <= 0.05);
        count += usize::from(disagrees);
        let said = apart.contains(&format!(
            "<td>{}</td><td>{}</td><td{}>{}</td>",
            escaped(&row[2]),
            escaped(&row[3]),
            if row[4].parse::<f64>().is_ok() { " class=\"n\"" } else { "" },
            escaped(&row[4])
        ));
        assert!(close || said == disagrees, "{row:?}");
    }
    assert!(count > 10, "{count}");
    for words in
        ["RGM larger", "Fence-1S at 8, 16 and 32", "3 at 14, 15 and 16", "CollGM faster at "]
    {
        assert!(apart.contains(words), "{words}");
    }
}

#[test]
fn sentences_of_the_page_are_not_stale() {
    let page = fs::read_to_string(drawn().join("index.html")).unwrap();
    for stale in ["parameter of the machine but", "flag synchronizes"] {
        assert!(!page.contains(stale), "{stale}");
    }
}
