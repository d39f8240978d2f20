//! Texts of the page on rows that were in sight, and on rows that disagree.

use super::{drawn, records, table};
use std::fs;

const INFORMED: &str = include_str!("../../../../figures/informed.csv");
const REASONS: &str = include_str!("../../../../figures/reasons.csv");
const UNSIMULATED: &str = include_str!("../../../../figures/unsimulated.csv");

/// Returns the page's text between two of its headings.
fn section(from: &str, to: &str) -> String {
    let page = fs::read_to_string(drawn().join("index.html")).unwrap();
    let begin = page.find(from).unwrap_or_else(|| panic!("no {from}"));
    let end = page[begin..].find(to).map_or(page.len(), |at| begin + at);
    page[begin..end].to_owned()
}

/// Escapes a text as the page does.
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
    let apart = section("id=\"disagreements\"", "id=\"unsimulated\"");
    let mut count = 0;
    for row in &table(drawn(), "summary")[1..] {
        let counted = ["children", "steps", "levels", "KiB", "count"].contains(&row[5].as_str());
        let disagrees = match row[8].parse::<f64>() {
            Ok(percent) => percent.abs() > if counted { 0.05 } else { 10.05 },
            Err(_) => row[8] == "no",
        };
        let close = row[8].parse::<f64>().is_ok_and(|p| (p.abs() - 10.0).abs() <= 0.05);
        count += usize::from(disagrees);
        let name = format!("<td>{}</td><td>{}", escaped(&row[2]), escaped(&row[3]));
        let said = apart.match_indices(&name).any(|(at, _)| {
            let line = apart[at..].split("</tr>").next().unwrap();
            line.contains(&format!(">{}</td>", escaped(&row[4])))
                && line.contains(&format!("<td>{}</td>", escaped(&row[10])))
        });
        // Exactly the rows that disagree have a reason.
        assert!(close || disagrees != row[10].is_empty(), "{row:?}: figures/reasons.csv");
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
fn reasons_are_of_rows_that_disagree() {
    let given = table(drawn(), "summary")[1..].iter().filter(|row| !row[10].is_empty()).count();
    assert_eq!(records(REASONS).len() - 1, given, "a reason of a row that agrees now");
}

#[test]
fn claims_without_a_row_are_on_the_page_with_their_reason() {
    let page = section("id=\"unsimulated\"", "<h2");
    for line in &records(UNSIMULATED)[1..] {
        assert!(page.contains(&escaped(&line[2])) && page.contains(&escaped(&line[3])), "{line:?}");
    }
}

/// Checks that the page gives the number of predictions, and shows how far each prediction holds.
#[test]
fn predictions_are_counted_and_ranges_shown() {
    let page = fs::read_to_string(drawn().join("index.html")).unwrap();
    let rows = table(drawn(), "summary");
    let held_out: Vec<_> = rows[1..].iter().filter(|row| row[7] == "held-out").collect();
    let agree = held_out.iter().filter(|row| row[10].is_empty()).count();
    let said = format!(
        "Predictions are the {} held-out rows of {} alone, and the simulation agrees with {agree} of them",
        held_out.len(),
        rows.len() - 1
    );
    assert!(page.contains(&said), "{said}");
    for row in &rows[1..] {
        // A document whose samples have not been run yet has no ranges.
        let Some((holds, of)) = row[9].split_once(" of ") else {
            assert_eq!(row[9], "", "{row:?}");
            continue;
        };
        let (holds, of): (usize, usize) = (holds.parse().unwrap(), of.parse().unwrap());
        assert!(holds <= of && of >= 32, "{row:?}");
        assert!(page.contains(&format!("<td class=\"n\">{}</td>", row[9])), "{row:?}");
    }
}

/// Checks that a word of degree has a number that it stands for, and that the page gives the reason.
#[test]
fn words_of_degree_have_a_threshold() {
    let page = fs::read_to_string(drawn().join("index.html")).unwrap();
    let degrees = [
        "similar",
        "close",
        "gradual",
        "almost",
        "none",
        "nearly",
        "very small",
        "much",
        "most",
        "unaffected",
        "well",
        "identical",
        "considerably",
        "uneven",
        "the same",
        "rises",
        "equal",
    ];
    for row in &super::records(super::PUBLISHED)[1..] {
        let word = degrees.iter().any(|degree| row[4].contains(degree));
        assert!(!word || !row[6].is_empty(), "{row:?}: a threshold");
        assert!(row[7].is_empty() || page.contains(&escaped(&row[7])), "{row:?}");
    }
}

#[test]
fn sentences_of_the_page_are_not_stale() {
    let page = fs::read_to_string(drawn().join("index.html")).unwrap();
    for stale in ["parameter of the machine but", "flag synchronizes"] {
        assert!(!page.contains(stale), "{stale}");
    }
}
