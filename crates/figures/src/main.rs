//! `weft-figures`: simulates the documents' figures.

use clap::Parser;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use weft_figures::{DOCUMENTS, Request, points};

/// Simulate the documents' figures and set the published numbers beside them.
#[derive(Parser)]
#[command(name = "weft-figures", version)]
struct Args {
    /// Directory for the files; begin with index.html.
    #[arg(long, value_name = "DIR", required_unless_present = "point")]
    out: Option<PathBuf>,
    /// Write no files, but print the value of a curve at one place, as in fence-halo;Fence-RI;16, with few
    /// iterations. May be given several times.
    #[arg(long, value_name = "FIGURE;CURVE;X", conflicts_with_all = ["out", "only", "published", "ranges"])]
    point: Vec<String>,
    /// Only these documents.
    #[arg(long, value_delimiter = ',', value_parser = DOCUMENTS)]
    only: Vec<String>,
    /// Fewer iterations: seconds in place of minutes.
    #[arg(long)]
    quick: bool,
    /// Published numbers, in place of the project's own list (figures/published.csv).
    #[arg(long, value_name = "FILE")]
    published: Option<PathBuf>,
    /// Write only ranges.csv: the number of samples in which each row agrees, while all assumed parameters vary
    /// together by up to 30 %. Takes minutes.
    #[arg(long, value_name = "SAMPLES")]
    ranges: Option<usize>,
}

fn main() -> ExitCode {
    let Args { out, point, only, quick, published, ranges } = Args::parse();
    let done = match out {
        Some(out) if point.is_empty() => {
            weft_figures::run(&Request { out, only, quick, published, ranges })
        }
        _ => points(&point),
    };
    let written = done.and_then(|text| match io::stdout().write_all(text.as_bytes()) {
        // A reader that stops reading (a closed pipe) is not a failure.
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(format!("standard output: {e}")),
        _ => Ok(()),
    });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("weft-figures: {why}");
            ExitCode::FAILURE
        }
    }
}
