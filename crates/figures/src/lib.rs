//! `cargo figures`: the documents' figures from simulation, compared with the published numbers.
//!
//! ```text
//!   published.csv ──┐
//!   machine files ──┼── lab: runs workloads in virtual time ──┬── FIGURE.csv, FIGURE.svg
//!   descriptions  ──┘     (measure/)                          ├── summary.csv, sensitivity.csv, ranges.csv
//!   (kini.rs, ...)                                            └── index.html: with informed.csv, reasons.csv, ranges.csv,
//!                                                                             unsimulated.csv
//! ```
//! Each document has one source file. Each figure is one description in this file, and each curve is one line of the description.
//! Everything that is drawn is measured, except the crosses, which come from the list of published numbers.
//!
//! Dependencies point one way: documents, checks ──▶ figure, lab ──▶ run ──▶ measure ──▶ workload.

#![warn(missing_docs)]

mod acoll;
mod atlas;
mod collgm;
mod digits;
mod draw;
mod fence;
mod figure;
mod informed;
mod kini;
mod lab;
mod listing;
mod measure;
mod multirail;
mod orders;
mod page;
mod point;
mod published;
mod ranges;
mod reasons;
mod rendezvous;
mod run;
mod sensitivity;
mod series;
mod summary;
mod survey;
mod unsimulated;
mod workload;
mod xhc;

use draw::Points;
use figure::{AlgorithmMap, Document, Figure};
use lab::Lab;
use page::{Chapter, Picture};
pub use point::points;
use published::PublishedList;
use std::fs;
use std::path::{Path, PathBuf};
use summary::Remarks;

/// Names of the documents, for `--only`.
pub const DOCUMENTS: [&str; 7] =
    ["kini", "collgm", "multirail", "fence", "rendezvous", "acoll", "xhc"];

fn documents() -> [Document; 7] {
    [
        kini::document(),
        collgm::document(),
        multirail::document(),
        fence::document(),
        rendezvous::document(),
        acoll::document(),
        xhc::document(),
    ]
}

/// Parameters of one call of [`run()`].
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Directory of the files; created if it does not exist.
    pub out: PathBuf,
    /// Documents; all if empty.
    pub only: Vec<String>,
    /// True for fewer iterations.
    pub quick: bool,
    /// File with published numbers, instead of the list that comes with the project.
    pub published: Option<PathBuf>,
    /// Number of samples of the assumed parameters. If given, only `ranges.csv` is written.
    pub ranges: Option<usize>,
}

/// Simulates all results and writes all files. Returns a list of the written files.
pub fn run(request: &Request) -> Result<String, String> {
    let published = PublishedList::load(request.published.as_deref())?;
    let remarks = Remarks::load()?;
    let unsimulated = unsimulated::load()?;
    let wanted = |document: &Document| {
        request.only.is_empty() || request.only.iter().any(|id| id == document.id)
    };
    if let Some(unknown) = request.only.iter().find(|id| !DOCUMENTS.contains(&id.as_str())) {
        return Err(format!("no document is called {unknown}; known: {}", DOCUMENTS.join(", ")));
    }
    let documents: Vec<_> = documents().into_iter().filter(wanted).collect();
    if request.only.is_empty()
        && let Some(row) =
            published.rows.iter().find(|r| documents.iter().all(|d| d.paper != r.paper()))
    {
        let known: Vec<_> = documents.iter().map(|d| d.paper).collect();
        let (file, line, paper) = (&published.file, row.line, row.paper());
        return Err(format!("{file}:{line}: no document {paper}; known: {}", known.join(", ")));
    }
    if let Some(samples) = request.ranges {
        return vary(request, &published, wanted, samples);
    }
    writable(&request.out, "index.html")?;

    let mut lab = match request.quick {
        true => Lab::quick(&published),
        false => Lab::full(&published),
    };
    let mut findings = summary::rows(&lab, &documents, &published, &remarks)?;
    lab.show_progress(total(&lab, &documents)?);
    let mut drawn = Vec::new();
    for document in &documents {
        let mut pictures = Vec::new();
        for figure in &document.figures {
            lab.announce(figure.id);
            pictures.push(write(&lab, &published, document, figure, &request.out)?);
        }
        let mut maps = Vec::new();
        for map in &document.maps {
            lab.announce(map.id);
            maps.push(write_map(&lab, map, &request.out)?);
        }
        drawn.push((pictures, maps));
    }
    // Rows are compared after the figures are drawn, because rows can reuse measured points of the figures.
    summary::answer(&lab, &documents, &mut findings)?;
    let mut chapters = Vec::new();
    for (document, (pictures, maps)) in documents.iter().zip(drawn) {
        chapters.push(Chapter {
            document,
            machines: document.machines.iter().map(|m| lab.machine(m)).collect::<Result<_, _>>()?,
            pictures,
            maps,
            findings: findings.iter().filter(|f| f.row.paper() == document.paper).collect(),
            studies: sensitivity::studies(&lab, document)?,
        });
    }
    lab.end_progress();
    let studies: Vec<_> = chapters.iter().flat_map(|chapter| &chapter.studies).collect();
    sensitivity::write(&request.out.join("sensitivity.csv"), &studies)?;
    summary::write(&request.out.join("summary.csv"), &findings)?;
    save(&request.out.join("index.html"), &page::html(&chapters, &unsimulated))?;
    let (figures, rows) =
        (chapters.iter().map(|c| c.pictures.len() + c.maps.len()).sum::<usize>(), findings.len());
    let missing = findings.iter().filter(|f| f.role == summary::Role::Missing).count();
    Ok(format!(
        "{figures} figures; {} of {rows} published numbers simulated, {missing} not built yet: {}\n",
        rows - missing,
        request.out.join("index.html").display()
    ))
}

/// Writes `ranges.csv`, and reports progress on standard error.
fn vary(
    request: &Request,
    published: &PublishedList,
    wanted: impl Fn(&Document) -> bool,
    samples: usize,
) -> Result<String, String> {
    writable(&request.out, "ranges.csv")?;
    let file = request.out.join("ranges.csv");
    survey::run(published, wanted, samples, &file, |how_far| eprintln!("{how_far}"))?;
    Ok(format!("{samples} samples: {}\n", file.display()))
}

/// Returns the number of measurements of a complete run.
fn total(lab: &Lab, documents: &[Document]) -> Result<u64, String> {
    let mut total = 0;
    for document in documents {
        let series = document.figures.iter().flat_map(|figure| &figure.series);
        total += series.map(|series| series.x.len() as u64).sum::<u64>();
        let places = |map: &AlgorithmMap| map.names.len() * map.processes.len() * map.bytes.len();
        total += document.maps.iter().map(|map| places(map) as u64).sum::<u64>();
        total += sensitivity::count(lab, document)?;
    }
    Ok(total)
}

/// Checks that results can be written, before the measurements take an hour.
fn writable(out: &Path, first: &str) -> Result<(), String> {
    let advice = "choose a directory that you may write with --out";
    fs::create_dir_all(out).map_err(|e| format!("cannot make {}: {e}; {advice}", out.display()))?;
    save(&out.join(first), "").map_err(|e| format!("{e}; {advice}"))
}

fn save(file: &Path, text: &str) -> Result<(), String> {
    fs::write(file, text).map_err(|e| format!("cannot write {}: {e}", file.display()))
}

/// Measures a figure and writes its files. Returns the drawing and the comparisons for the page.
fn write(
    lab: &Lab,
    published: &PublishedList,
    document: &Document,
    figure: &Figure,
    out: &Path,
) -> Result<Picture, String> {
    let mut curves: Vec<Points> = Vec::new();
    for series in &figure.series {
        let point = |&x: &usize| Ok((x as f64, lab.of(series, x)?));
        curves.push(series.x.iter().map(point).collect::<Result<_, String>>()?);
    }
    let (mut marks, mut beside) = (Points::new(), Vec::new());
    for mark in &figure.marks {
        let row = published.find(document.paper, mark.row)?;
        let number = row.value.number().ok_or_else(|| {
            let (file, line, value) = (&published.file, row.line, &row.value);
            format!("{file}:{line}: {value} is no number, and {} draws it", figure.id)
        })?;
        marks.push((mark.x as f64, number));
        let series = figure.series.iter().position(|series| series.name == mark.series);
        let curve = series.and_then(|at| curves[at].iter().find(|p| p.0 == mark.x as f64));
        let (id, name, x) = (figure.id, mark.series, mark.x);
        let (_, y) = curve.ok_or_else(|| format!("{id}: no {name} at {x} beside its mark"))?;
        beside.push((mark.row, summary::beside(figure, mark, *y, row)));
    }
    for row in &figure.rows {
        published.find(document.paper, row)?;
    }
    let svg = draw::svg(figure, &curves, &marks)?;
    save(&out.join(format!("{}.svg", figure.id)), &svg)?;
    table(&out.join(format!("{}.csv", figure.id)), figure, &curves, &marks)?;
    Ok(Picture { svg, beside })
}

/// Measures a map and writes its files. Returns the drawing as SVG.
fn write_map(lab: &Lab, map: &AlgorithmMap, out: &Path) -> Result<String, String> {
    let cells = atlas::survey(lab, map)?;
    let svg = atlas::svg(map, &cells)?;
    save(&out.join(format!("{}.svg", map.id)), &svg)?;
    let file = out.join(format!("{}.csv", map.id));
    let failed = |e: csv::Error| format!("cannot write {}: {e}", file.display());
    let mut writer = csv::Writer::from_path(&file).map_err(failed)?;
    let head = ["series", "machine", "Message, bytes", "Processes"].map(str::to_owned);
    let names = map.names.iter().map(|(name, _)| format!("{name}, us"));
    writer.write_record(head.into_iter().chain(names)).map_err(failed)?;
    for cell in &cells {
        let place = [cell.bytes.to_string(), cell.processes.to_string()];
        let what = [map.names[cell.best].0.to_owned(), map.machine.to_owned()];
        let times = cell.times.iter().map(|&time| exact(time));
        writer.write_record(what.into_iter().chain(place).chain(times)).map_err(failed)?;
    }
    writer.flush().map_err(|e| format!("cannot write {}: {e}", file.display()))?;
    Ok(svg)
}

/// Formats a number with six decimal places. Times in microseconds are then exact to a picosecond.
fn exact(number: f64) -> String {
    let text = format!("{number:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Writes the numbers of a figure: a row for each point and for each mark.
fn table(file: &Path, figure: &Figure, curves: &[Points], marks: &Points) -> Result<(), String> {
    let failed = |e: csv::Error| format!("cannot write {}: {e}", file.display());
    let mut writer = csv::Writer::from_path(file).map_err(failed)?;
    let (x, y) = (figure.x.name(), figure.y.name());
    writer.write_record(["series", "machine", &x, &y]).map_err(failed)?;
    for (series, points) in figure.series.iter().zip(curves) {
        for (x, y) in points {
            let record = [series.name, series.machine, &exact(*x), &exact(*y)];
            writer.write_record(record).map_err(failed)?;
        }
    }
    for (x, y) in marks {
        writer.write_record(["published", "", &exact(*x), &exact(*y)]).map_err(failed)?;
    }
    writer.flush().map_err(|e| format!("cannot write {}: {e}", file.display()))
}
