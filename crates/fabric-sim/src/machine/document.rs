//! A machine file as TOML with the place of each value. So errors in changed values, and errors of checks after reading, can name
//! the line of the file.

use super::MachineError;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

/// Keys whose values are rounded to whole numbers when they are scaled.
const WHOLE: &[&str] = &[
    "nodes",
    "ranks_per_node",
    "fragment",
    "rail.mtu",
    "rail.inline",
    "rail.burst.messages",
    "rail.bucket.bytes",
    "level.processors",
    "local.transfers.bytes",
    "local.reads.bytes",
    "local.writes.bytes",
    "local.unaided.bytes",
    "host.copies.bytes",
    "multicast.largest",
    "multicast.queue",
    "copies.private",
    "copies.last",
];

/// Required form of a value, for keys at which a check by types would give a poor error message or would accept wrong forms.
#[derive(Clone, Copy)]
pub(super) enum ValueForm {
    /// A table. The text is an example that error messages show.
    Table(&'static str),
    /// An array of tables.
    Tables,
}

pub(super) struct MachineDocument<'t> {
    file: String,
    text: &'t str,
    root: Spanned<DeValue<'t>>,
}

impl<'t> MachineDocument<'t> {
    pub fn parse(file: &str, text: &'t str) -> Result<MachineDocument<'t>, MachineError> {
        match DeTable::parse(text) {
            Ok(root) => {
                let span = root.span();
                let root = Spanned::new(span, DeValue::Table(root.into_inner()));
                Ok(MachineDocument { file: file.to_owned(), text, root })
            }
            Err(e) => Err(error(file, text, e.span(), format!("not TOML: {}", e.message()))),
        }
    }

    /// Reads the whole document as a `T`.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, MachineError> {
        let DeValue::Table(root) = self.root.get_ref().clone() else {
            unreachable!("a document is a table")
        };
        T::deserialize(Deserializer::from(Spanned::new(self.root.span(), root))).map_err(|e| {
            let mut problem = e.message().to_owned();
            if problem.starts_with("missing field") {
                problem += " in this table; machines/README.md has each key with its unit";
            } else if problem.starts_with("invalid") {
                // The parser's error message has the value and the allowed form, but not the key.
                let at = e.span().and_then(|span| path_of(self.root.get_ref(), &span));
                problem = at.map_or(problem.clone(), |path| format!("`{path}`: {problem}"));
            }
            error(&self.file, self.text, e.span(), problem)
        })
    }

    /// Checks that the values at `path`, which passes through arrays, have this form.
    pub fn expect(&self, path: &str, form: ValueForm) -> Result<(), MachineError> {
        let steps: Vec<&str> = path.split('.').collect();
        let Some(span) = misfit(&self.root, &steps, form) else { return Ok(()) };
        let say = match form {
            ValueForm::Table(keys) => format!("`{path}` is a table: {keys}"),
            ValueForm::Tables => format!("`{path}` is a list of tables: [[{path}]] before each"),
        };
        Err(error(&self.file, self.text, Some(span), say))
    }

    /// Returns an error that names the line of the value at `path` (`rail.0.bus`), or of the last part of the path that exists.
    pub fn error_at(&self, path: &str, problem: String) -> MachineError {
        let mut value = &self.root;
        for step in path.split('.') {
            match child(value.get_ref(), step) {
                Some(found) => value = found,
                None => break,
            }
        }
        error(&self.file, self.text, Some(value.span()), problem)
    }

    /// Returns an error without a line of the file.
    fn error(&self, problem: String) -> MachineError {
        error(&self.file, self.text, None, problem)
    }

    /// Returns the paths of all numbers, without repetition: the same number of several rails has only one path.
    pub fn numbers(&self) -> Vec<String> {
        let mut found = Vec::new();
        numbers(self.root.get_ref(), "", "", &mut found);
        let mut paths: Vec<String> = found.into_iter().map(|number| number.path).collect();
        paths.sort();
        paths.dedup();
        paths
    }

    /// Returns the changes for [`set`](Self::set) that multiply the number at `path` by `factor`, in all rails (`rail.gap_in`) or
    /// in one rail (`rail.0.gap_in`).
    pub fn scaled(&self, path: &str, factor: f64) -> Result<Vec<(String, String)>, MachineError> {
        if !(factor.is_finite() && factor > 0.0) {
            return Err(self.error(format!("cannot vary {path} by {factor}: not above 0")));
        }
        let mut found = Vec::new();
        numbers(self.root.get_ref(), "", "", &mut found);
        let scaled = found.into_iter().filter(|at| at.path == path || at.exact == path).map(|at| {
            let value = at.value * factor;
            let value = if WHOLE.contains(&at.path.as_str()) { value.round() } else { value };
            // The number is written with an exponent, so that TOML reads a float with the same bits.
            (at.exact, format!("{value:e}"))
        });
        let scaled: Vec<_> = scaled.collect();
        if scaled.is_empty() {
            let known = self.numbers().join(", ");
            return Err(self.error(format!("no number `{path}` to vary; there are: {known}")));
        }
        Ok(scaled)
    }

    /// Sets the value at `path` to a TOML value or a word, in all rails (`rail.gap_in`) or in one rail (`rail.0.gap_in`). The value
    /// need not exist before. In errors, the new value has the line of the value that it replaces, or else of its table.
    pub fn set(&mut self, path: &str, value: &'t str) -> Result<(), MachineError> {
        let steps: Vec<&str> = path.split('.').collect();
        if steps[0] == "evidence" || steps.contains(&"") {
            let known = self.numbers().join(", ");
            return Err(self.error(format!("cannot set `{path}`; there are: {known}")));
        }
        let value = match DeValue::parse(value) {
            Ok(parsed) => parsed.into_inner(),
            Err(_) => DeValue::String(Cow::Borrowed(value)),
        };
        if put(&mut self.root, &steps, &value) {
            return Ok(());
        }
        let known = self.numbers().join(", ");
        Err(self.error(format!("cannot set `{path}`: no such table; there are: {known}")))
    }
}

fn error(file: &str, text: &str, span: Option<Range<usize>>, problem: String) -> MachineError {
    let line = span.map(|span| {
        let before = &text.as_bytes()[..span.start.min(text.len())];
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    });
    MachineError { file: file.to_owned(), line, problem }
}

fn child<'v, 't>(value: &'v DeValue<'t>, step: &str) -> Option<&'v Spanned<DeValue<'t>>> {
    match value {
        DeValue::Table(table) => table.get(step),
        DeValue::Array(array) => array.get(step.parse::<usize>().ok()?),
        _ => None,
    }
}

/// Returns the place of the first value at path `steps` that does not have this form.
fn misfit(value: &Spanned<DeValue>, steps: &[&str], form: ValueForm) -> Option<Range<usize>> {
    match (value.get_ref(), steps) {
        (DeValue::Table(_), []) if matches!(form, ValueForm::Table(_)) => None,
        (DeValue::Array(list), []) if matches!(form, ValueForm::Tables) => {
            list.iter().find(|value| !value.get_ref().is_table()).map(Spanned::span)
        }
        (_, []) => Some(value.span()),
        (DeValue::Table(table), [step, rest @ ..]) => misfit(table.get(*step)?, rest, form),
        (DeValue::Array(list), _) => list.iter().find_map(|value| misfit(value, steps, form)),
        _ => None,
    }
}

/// Returns the path of the value at `span`, without indices.
fn path_of(value: &DeValue, span: &Range<usize>) -> Option<String> {
    match value {
        DeValue::Table(table) => table.iter().find_map(|(key, value)| {
            let key = key.get_ref();
            if let Some(path) = path_of(value.get_ref(), span) {
                return Some(if path.is_empty() {
                    key.to_string()
                } else {
                    format!("{key}.{path}")
                });
            }
            (value.span() == *span).then(|| key.to_string())
        }),
        DeValue::Array(list) => list.iter().find_map(|value| {
            let here = (value.span() == *span).then(String::new);
            path_of(value.get_ref(), span).or(here)
        }),
        _ => None,
    }
}

struct Found {
    /// Path with indices in arrays of tables: `rail.0.gap_in`.
    exact: String,
    /// Path without indices: `rail.gap_in`.
    path: String,
    value: f64,
}

fn numbers(value: &DeValue, exact: &str, path: &str, found: &mut Vec<Found>) {
    let join = |path: &str, step: &str| match path {
        "" => step.to_owned(),
        _ => format!("{path}.{step}"),
    };
    let number = match value {
        DeValue::Table(table) => {
            for (key, value) in table {
                let key = key.get_ref();
                numbers(value.get_ref(), &join(exact, key), &join(path, key), found);
            }
            return;
        }
        DeValue::Array(array) => {
            for (index, value) in array.iter().enumerate() {
                numbers(value.get_ref(), &join(exact, &index.to_string()), path, found);
            }
            return;
        }
        DeValue::Float(number) => number.as_str().parse().ok(),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).ok().map(|whole| whole as f64)
        }
        _ => None,
    };
    if let Some(value) = number {
        found.push(Found { exact: exact.to_owned(), path: path.to_owned(), value });
    }
}

/// Inserts `new` at path `steps` below `into`, and creates missing tables. Returns false if a part of the path is not a table.
fn put<'t>(into: &mut Spanned<DeValue<'t>>, steps: &[&str], new: &DeValue<'t>) -> bool {
    let Some((step, rest)) = steps.split_first() else {
        *into.get_mut() = new.clone();
        return true;
    };
    let span = into.span();
    match into.get_mut() {
        DeValue::Table(table) => {
            if table.get_mut(*step).is_none() {
                let key = Spanned::new(span.clone(), Cow::Owned((*step).to_owned()));
                table.insert(key, Spanned::new(span, DeValue::Table(DeTable::new())));
            }
            table.get_mut(*step).is_some_and(|value| put(value, rest, new))
        }
        DeValue::Array(array) => match step.parse::<usize>() {
            Ok(index) => array.get_mut(index).is_some_and(|value| put(value, rest, new)),
            Err(_) => array.iter_mut().all(|value| put(value, steps, new)),
        },
        _ => false,
    }
}
