//! The report of a session: table, notes, and the files with all results.

use super::files::{self, FilesReport};
use super::library::BenchLibrary;
use super::library_kind::LibraryKind;
use super::output::save;
use super::{
    QUIET, Session, checking, machine, machine_run, plot, prediction, ratios, rows, table, variants,
};
use serde_json::{Value, json};

impl Session {
    pub(super) fn report(&mut self) -> Result<(), String> {
        let apart = self.results.like_with_like(self.cases.len());
        let mut text = self.heading() + &variants::heading(&self.libraries, self.args.progress);
        let table = table::render(&self.cases, &apart, &self.libraries, &self.results);
        text += &table;
        text += &self.notes();
        let short = if self.args.matrix || self.args.files || self.args.cold {
            Some(ratios::render(&self.cases, &apart, &self.libraries, &self.results))
        } else if self.args.rows {
            Some(rows::render(&self.cases, &self.libraries, &self.results))
        } else if self.args.check {
            Some(checking::render(&self.cases, &self.libraries, &self.results))
        } else if self.args.prediction {
            Some(prediction::render(&self.cases, &self.libraries, &self.results))
        } else {
            None
        };
        if let Some(short) = short {
            text += &short;
            let short = self.heading() + &short;
            println!("{short}");
            if files::is_whole(&self.args) {
                let (all, rounds, results) = (&*table, self.args.rounds(), &self.results);
                let (short, cases, libraries) = (&*short, &*self.cases, &*self.libraries);
                let report = FilesReport { short, all, rounds, cases, libraries, results };
                println!("written to {}", files::publish(&report)?);
            }
        } else {
            println!("{text}");
        }
        let out = if self.cable.is_some() { machine_run::results()? } else { self.out.clone() };
        let file = |name: &str| out.join(name);
        save(&file("table.txt"), &text)?;
        let libraries: Vec<_> = self.libraries.iter().map(describe).collect();
        let limits: Vec<_> = self.results.limits.iter().collect();
        let limits: Vec<_> = limits
            .iter()
            .map(|((name, size), samples)| json!({ "limit": name, "size": size, "samples": samples }))
            .collect();
        let raw = json!({ "machine": machine::describe(), "rounds": self.args.rounds(),
                          "seconds": self.args.seconds, "libraries": libraries,
                          "limits": limits, "runs": self.raw });
        save(&file("results.json"), &format!("{raw:#}\n"))?;
        let drawn = plot::write(&file("bench.svg"), &self.cases, &self.libraries, &self.results)?;
        let plot = if drawn { ", bench.svg" } else { "" };
        if self.cable.is_none() {
            println!("written to {}: table.txt, results.json{plot}", out.display());
        }
        Ok(())
    }

    /// Returns the description of the machine, with warnings about its figures.
    pub(super) fn heading(&self) -> String {
        let mut text = machine::heading();
        if self.loaded_by > QUIET {
            text += &format!("this machine was not quiet: load {:.1} before\n", self.loaded_by);
        }
        if self.args.quickest {
            text += "the quickest batch of all runs, not the median\n";
        }
        text
    }

    /// Returns the explanation of the table, the failures, and the libraries that were not bound as intended.
    fn notes(&self) -> String {
        let mut text = format!(
            "\nmedian (best) of {} runs in turn. weft/best: median over the best peer's median,\n\
             where a library has several columns its best; verdict: ahead, behind, or level\n\
             (within 3 %), less being better for us and %.\n\
             limit: cache-line ping-pong (latency), memcpy (bandwidth), two at once (bidirectional).\n\
             apart: half a round trip of a cache line before and after a run; where it changes, as in a\n\
             virtual machine, a case compares the runs at the distance that most have in common.\n",
            self.args.rounds()
        );
        let mut failures: Vec<(String, usize)> = Vec::new();
        for (case, library, error) in &self.results.failures {
            let (case, library) = (self.cases[*case].title(), &self.libraries[*library].name);
            let line = format!("failed: {library}, {case}: {error}");
            match failures.iter_mut().find(|(known, _)| *known == line) {
                Some((_, times)) => *times += 1,
                None => failures.push((line, 1)),
            }
        }
        for (line, times) in failures {
            text += &format!("{line} ({times} of {} runs)\n", self.args.rounds());
        }
        if let Some((weft, cable)) =
            self.libraries.iter().find(|l| l.kind == LibraryKind::Weft).zip(self.cable.as_ref())
        {
            let told = machine_run::share(weft, &self.program(weft, "latency"), cable);
            text += &told.unwrap_or_else(|error| format!("not measured: {error}\n"));
        }
        for library in self.unbound() {
            text += &format!("note: {library} did not bind 2 ranks to a processor each\n");
        }
        text
    }

    /// Returns the libraries whose ranks could move although there were enough processors.
    fn unbound(&self) -> Vec<&str> {
        if self.hosts.is_some() {
            return Vec::new(); // ranks on several hosts are not bound
        }
        let fits = |run: &&Value| {
            let masks = run["output"][0]["affinity"].as_array();
            // Ranks with threads are left unbound on purpose.
            run["threads"] == 1
                && masks.is_some_and(|m| {
                    m.len() <= machine::processors().len()
                        && m.iter().any(|m| m.as_u64().is_none_or(|m| m.count_ones() != 1))
                })
        };
        let mut names: Vec<_> =
            self.raw.iter().filter(fits).filter_map(|r| r["library"].as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

fn describe(library: &BenchLibrary) -> Value {
    json!({ "name": library.name, "prefix": library.prefix, "version": library.version,
            "settings": library.settings })
}
