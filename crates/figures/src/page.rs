//! `index.html`: a page with all results. The page needs no other file.

use super::digits::digits;
use super::figure::{Document, Figure};
use super::published::FigureValue;
use super::ranges::Range;
use super::sensitivity::{Study, change};
use super::summary::{APART, Finding, Role};
use super::unsimulated::UnsimulatedClaim;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use std::rc::Rc;
use weft_fabric_sim::{Machine, machine};

const STYLE: &str =
    "body { font: 16px/1.45 sans-serif; max-width: 62rem; margin: 1rem auto; padding: 0 1rem; }
h2 { border-bottom: 1px solid #999; margin-top: 3rem; } h3 { margin-top: 2rem; }
table { border-collapse: collapse; font-size: 0.85rem; margin: 0.5rem 0; }
td, th { border: 1px solid #bbb; padding: 0.15rem 0.5rem; text-align: left; vertical-align: top; }
td.n, th.n { text-align: right; } svg { max-width: 100%; height: auto; }
.wide { overflow-x: auto; } tr.informed td { background: #fff3d6; } td.apart { background: #f9dcdc; }
li.informed { border-left: 4px solid #e69f00; padding-left: 0.4rem; }
figure { margin: 0.5rem 0; } li { margin: 0.1rem 0; }";

/// Names of the roles, each with its meaning.
const MEANING: [(&str, &str); 6] = [
    ("fitted", "parameters were chosen to meet it: meeting it proves nothing"),
    (
        "entailed",
        "it follows by arithmetic from fitted rows, whatever the assumed parameters are: meeting it proves no more than \
         they do",
    ),
    (
        "by construction",
        "a formula of the algorithm, or a value that is passed in: no run could give another",
    ),
    (
        "informed",
        "a model or a measure was chosen with it in sight: below, by how much that moved it, and what was changed",
    ),
    (
        "held-out",
        "no choice was made with it in sight: a prediction; of rows that were written down late, the machine file is older",
    ),
    ("assumed", "it repeats a parameter that the machine file assumes"),
];

/// A document with its findings.
pub struct Chapter<'p> {
    pub document: &'p Document,
    pub machines: Vec<Rc<Machine>>,
    /// Pictures, one for each figure.
    pub pictures: Vec<Picture>,
    /// Maps as SVG, one for each map.
    pub maps: Vec<String>,
    pub findings: Vec<&'p Finding<'p>>,
    pub studies: Vec<Study>,
}

/// A figure, measured and drawn.
pub struct Picture {
    pub svg: String,
    /// For each mark, its row, and a sentence that compares the published number with the curve.
    pub beside: Vec<(&'static str, String)>,
}

impl Chapter<'_> {
    fn finding(&self, row: &str) -> Option<&Finding<'_>> {
        self.findings.iter().copied().find(|finding| finding.row.is(row))
    }
}

/// Renders the page.
pub fn html(chapters: &[Chapter], unsimulated: &[UnsimulatedClaim]) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { "Weft: figures of the documents, from simulation" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "Figures of the documents, from simulation" }
                p {
                    "Weft's own algorithms, run in virtual time on models of the documents' clusters. "
                    "Curves are simulated; crosses are numbers that the documents' text states. Numbers: "
                    code { "summary.csv" } ", and one " code { ".csv" } " beside each " code { ".svg" } "."
                }
                p { "What a number of a text is to the model:" }
                ul { @for (role, meaning) in MEANING { li { b { (role) } ": " (meaning) "." } } }
                (counts(chapters))
                (disagreements(chapters))
                (self::unsimulated(chapters, unsimulated))
                @for chapter in chapters { (self::chapter(chapter)) }
            }
        }
    };
    page.into_string()
}

/// Renders the number of rows of each role, and the number of rows that agree.
fn counts(chapters: &[Chapter]) -> Markup {
    let head = |role: Role| match role {
        Role::Missing => "not built yet".to_owned(),
        role => format!("simulated, {role}"),
    };
    let of = |chapter: &Chapter, role| chapter.findings.iter().filter(|f| f.role == role).count();
    let all = |role| chapters.iter().map(|chapter| of(chapter, role)).sum::<usize>();
    let held_out = Role::Of(machine::EvidenceRole::HeldOut);
    let findings = || chapters.iter().flat_map(|chapter| &chapter.findings);
    let agree = findings().filter(|f| f.role == held_out && !f.disagrees()).count();
    let roles = Role::ALL;
    let apart = |chapter: &Chapter| chapter.findings.iter().filter(|f| f.disagrees()).count();
    html! {
        table {
            tr {
                th { "document" } th { "machines" }
                @for role in roles { th.n { (head(role)) } }
                th.n { "disagree" }
            }
            @for chapter in chapters {
                tr {
                    td { a href={ "#" (chapter.document.id) } { (chapter.document.paper) } }
                    td { (chapter.document.machines.join(", ")) }
                    @for role in roles { td.n { (of(chapter, role)) } }
                    td.n { (apart(chapter)) }
                }
            }
            tr {
                th { "all" } th {}
                @for role in roles { th.n { (all(role)) } }
                th.n { (chapters.iter().map(apart).sum::<usize>()) }
            }
        }
        p {
            "Predictions are the " (all(held_out)) " held-out rows of " (findings().count()) " alone, and the simulation \
             agrees with " (agree) " of them. What the other rows show was put in, or was in sight."
        }
        p {
            "\"Holds\" is how often a row agrees while all assumed parameters of all machines vary together, each by up to \
             30 % either way, from fixed seeds: what is far from all samples depends on what no document says."
        }
    }
}

/// Renders all rows that the simulation does not confirm.
fn disagreements(chapters: &[Chapter]) -> Markup {
    html! {
        h2 id="disagreements" { "Where the simulation and the documents disagree" }
        p {
            "Rows whose word or count is another one, and numbers that are more than " (APART) " % or percentage \
             points off, each with the reason that a look into its runs found."
        }
        @for chapter in chapters {
            @let apart: Vec<_> = chapter.findings.iter().copied().filter(|f| f.disagrees()).collect();
            @if !apart.is_empty() {
                h3 { a href={ "#" (chapter.document.id) } { (chapter.document.paper) } }
                (table(&apart, ReasonColumn::Shown))
            }
        }
    }
}

/// Renders the claims of `chapters` that have no row.
fn unsimulated(chapters: &[Chapter], claims: &[UnsimulatedClaim]) -> Markup {
    let shown =
        |claim: &&UnsimulatedClaim| chapters.iter().any(|c| c.document.paper == claim.paper);
    html! {
        h2 id="unsimulated" { "Claims without a row" }
        p { "Claims of the texts that no honest run of the model can show, each with the reason." }
        div.wide { table {
            tr { th { "document" } th { "where" } th { "claim" } th { "reason" } }
            @for claim in claims.iter().filter(shown) {
                tr { td { (claim.paper) } td { (claim.place) } td { (claim.claim) } td { (claim.reason) } }
            }
        } }
    }
}

/// Renders rows whose simulated values changed by a choice that was made while the published number was known.
fn informed(findings: &[&Finding]) -> Markup {
    let moved: Vec<_> = findings.iter().filter(|finding| !finding.moves.is_empty()).collect();
    html! {
        @if !moved.is_empty() {
            h3 { "What was chosen in sight of the text" }
            p {
                "Before and after: the row without the change and with it, all else as it is now where that can \
                 still be run. Now: with everything."
            }
            div.wide { table {
                tr {
                    th { "quantity" } th { "configuration" } th.n { "published" } th.n { "before" }
                    th.n { "after" } th.n { "now" } th { "change" } th { "what it was" }
                }
                @for finding in moved {
                    @for (at, moved) in finding.moves.iter().enumerate() {
                        tr.informed {
                            @if at == 0 {
                                td rowspan=(finding.moves.len()) { (finding.row.quantity()) }
                                td rowspan=(finding.moves.len()) { (finding.row.configuration()) }
                                td.n rowspan=(finding.moves.len()) { (finding.row.value) " " (measure(finding)) }
                            }
                            td.n { (moved.before) }
                            td.n { (moved.after) }
                            @if at == 0 {
                                td.n rowspan=(finding.moves.len()) {
                                    (finding.simulated.as_ref().map(FigureValue::to_string).unwrap_or_default())
                                }
                            }
                            td { code { (moved.commit) } }
                            td { (moved.change) }
                        }
                    }
                }
            } }
        }
    }
}

/// Returns the style class of a cell. Numbers are aligned to the right.
fn number(value: &FigureValue) -> Option<&'static str> {
    value.number().map(|_| "n")
}

/// Returns the unit of a number.
fn measure<'f>(finding: &Finding<'f>) -> &'f str {
    if finding.row.value.number().is_some() { finding.row.unit() } else { "" }
}

fn chapter(chapter: &Chapter) -> Markup {
    let document = chapter.document;
    let figures = document.figures.iter().zip(&chapter.pictures);
    html! {
        h2 id=(document.id) { (document.title) }
        p { (document.about) }
        @for machine in &chapter.machines { (self::machine(machine)) }
        @for (figure, picture) in figures { (self::figure(chapter, figure, picture)) }
        @for (map, svg) in document.maps.iter().zip(&chapter.maps) {
            h3 id=(map.id) { (map.title) }
            p { (document.paper) ", " (map.place) ". " (map.note) }
            figure { (PreEscaped(svg)) }
            ul { @for row in &map.rows { @if let Some(finding) = chapter.finding(row) { (item(finding)) } } }
            p { a href={ (map.id) ".csv" } { (map.id) ".csv" } }
        }
        h3 { "Every number of the text" }
        (table(&chapter.findings, ReasonColumn::Hidden))
        (informed(&chapter.findings))
        @if !chapter.studies.is_empty() {
            h3 { "What the assumed parameters move" }
            p {
                "Each parameter that no document gives, less 30 % and more 30 %: the change of each result "
                "in percent, or in percentage points of a result that is a percentage."
            }
            @for study in &chapter.studies { (self::study(study)) }
        }
    }
}

fn machine(machine: &Machine) -> Markup {
    let evidence = &machine.evidence;
    let list = |name: &str, rows: &[String], open: bool| {
        html! {
            details open[open] {
                summary { (name) ": " (rows.len()) }
                ul { @for row in rows { li { (row) } } }
            }
        }
    };
    html! {
        h3 { "Machine " code { (machine.name) } }
        p { (machine.about) "." }
        (list("Fitted to", &evidence.fitted, true))
        (list("Informed", &evidence.informed, true))
        (list("Entailed", &evidence.entailed, false))
        (list("By construction", &evidence.by_construction, false))
        (list("Held out", &evidence.held_out, false))
        details {
            summary { "Assumed parameters: " (evidence.assumed.len()) }
            p { code { (evidence.assumed.join(", ")) } }
        }
    }
}

fn figure(chapter: &Chapter, figure: &Figure, picture: &Picture) -> Markup {
    let rows = figure.marks.iter().map(|mark| mark.row).chain(figure.rows.iter().copied());
    let findings: Vec<_> = rows.filter_map(|row| chapter.finding(row)).collect();
    let (built, missing): (Vec<_>, Vec<_>) =
        findings.into_iter().partition(|f| f.role != Role::Missing);
    // If a mark's row has no simulation of its own, the mark is compared with the curve.
    let missing_row = |row| chapter.finding(row).is_some_and(|f| f.role == Role::Missing);
    let beside: Vec<_> =
        picture.beside.iter().filter(|(row, _)| missing_row(row)).map(|(_, text)| text).collect();
    html! {
        h3 id=(figure.id) { (figure.title) }
        p { (chapter.document.paper) ", " (figure.place) ". " (figure.note) }
        figure { (PreEscaped(&picture.svg)) }
        @if built.is_empty() && beside.is_empty() {
            p { "The text states no number for what is drawn here." }
        }
        ul {
            @for sentence in beside { li { (sentence) } }
            @for finding in built { (item(finding)) }
            @for finding in missing { li { (finding.sentence()) } }
        }
        p { a href={ (figure.id) ".csv" } { (figure.id) ".csv" } }
    }
}

/// Renders a line below a figure.
fn item(finding: &Finding) -> Markup {
    html! {
        li class=[(!finding.moves.is_empty()).then_some("informed")] {
            (finding.sentence())
            @for moved in &finding.moves { " " (moved.sentence()) }
        }
    }
}

/// Column of a table with the reason why each row disagrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReasonColumn {
    Shown,
    Hidden,
}

/// Renders a table of rows.
fn table(findings: &[&Finding], reasons: ReasonColumn) -> Markup {
    let heads = ["where", "quantity", "configuration"];
    html! {
        div.wide { table {
            tr {
                @for head in heads { th { (head) } }
                th.n { "published" } th.n { "simulated" } th { "unit" } th { "role" }
                th.n { "difference, %, or agrees" } th.n { "holds" }
                @if reasons == ReasonColumn::Shown { th { "reason" } }
            }
            @for finding in findings {
                @let informed = (!finding.moves.is_empty()).then_some("informed");
                @let apart = finding.disagrees().then_some("apart");
                tr class=[informed.or(apart)] {
                    td { (finding.row.place()) }
                    td { (finding.row.quantity()) }
                    td { (finding.row.configuration()) (reading(finding)) }
                    td class=[number(&finding.row.value)] { (finding.row.value) }
                    td class=[finding.simulated.as_ref().and_then(number)] {
                        (finding.simulated.as_ref().map(FigureValue::to_string).unwrap_or_default())
                    }
                    td { (finding.row.unit()) }
                    td { (finding.role) }
                    td class=(if apart.is_some() { "n apart" } else { "n" }) { (finding.difference()) }
                    td.n { (finding.range.map(Range::to_string).unwrap_or_default()) }
                    @if reasons == ReasonColumn::Shown {
                        td { (finding.reason.map(|reason| reason.reason.as_str()).unwrap_or_default()) }
                    }
                }
            }
        } }
    }
}

/// Renders the number that stands for a word in the row, and the reason for this number.
fn reading(finding: &Finding) -> Markup {
    html! {
        @if let Some(threshold) = finding.row.threshold {
            br; small { (threshold) ": " (finding.row.why) }
        }
    }
}

fn study(study: &Study) -> Markup {
    html! {
        div.wide { table {
            tr {
                th { (study.machine) }
                @for (name, base, unit) in &study.results {
                    th.n { (name) br; (digits(*base)) " " (unit) }
                }
            }
            @for row in &study.rows {
                tr {
                    td { code { (row.parameter) } }
                    @for [less, more] in &row.changes { td.n { (change(*less)) " / " (change(*more)) } }
                }
            }
        } }
        @if !study.still.is_empty() {
            p { "Without effect on any of these: " code { (study.still.join(", ")) } "." }
        }
    }
}
