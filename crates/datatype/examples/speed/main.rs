//! Times packing and reduction against loops written by hand in C (`hand.c`), compiled for this machine. Prints ratios of the
//! minimum times and of the median times (below 1: faster than by hand).
//!
//!     cargo run --release -p weft-datatype --example speed -- [--flags "-O3 -march=native"]
//!         [--seconds 0.02] [--worst 1.3] [WORDS...]
//!
//! WORDS choose the lines whose names contain one of them; `--worst` shows only ratios of at least this value.

mod copies;
mod hand;
mod pages;
mod race;
mod reductions;

use hand::Hand;
use race::Times;

/// Options of the command line.
pub struct Options {
    flags: String,
    seconds: f64,
    worst: f64,
    words: Vec<String>,
}

impl Options {
    fn wanted(&self, name: &str) -> bool {
        self.words.is_empty() || self.words.iter().any(|w| name.contains(w.as_str()))
    }

    fn report(&self, name: &str, bytes: usize, (ours, hand): (Times, Times)) -> f64 {
        let ratio = ours.least / hand.least;
        if ratio >= self.worst {
            println!(
                "{name:<44} {:>8.2} GB/s {:>8.2} by hand   ratio {ratio:.2} (median {:.2})",
                bytes as f64 / ours.least,
                bytes as f64 / hand.least,
                ours.median / hand.median,
            );
        }
        ratio
    }
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        flags: "-O3 -march=native".to_owned(),
        seconds: 0.02,
        worst: 0.0,
        words: Vec::new(),
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        let number = |text: String| text.parse().map_err(|e| format!("{argument} {text}: {e}"));
        match argument.as_str() {
            "--flags" => options.flags = value()?,
            "--seconds" => options.seconds = number(value()?)?,
            "--worst" => options.worst = number(value()?)?,
            _ => options.words.push(argument),
        }
    }
    Ok(options)
}

fn main() -> Result<(), String> {
    let options = options()?;
    let hand = Hand::compile(&options.flags)?;
    println!("by hand: cc {}", options.flags);
    let ratios = [copies::all(&options, &hand), reductions::all(&options, &hand)].concat();
    let worst = ratios.iter().map(|r| r.0).fold(0.0, f64::max);
    let names: Vec<_> = ratios.iter().filter(|r| r.0 == worst).map(|r| r.1.as_str()).collect();
    println!("{} lines; the worst ratio is {worst:.2}: {}", ratios.len(), names.join(", "));
    Ok(())
}
