//! A model in the form of files: the keys of `[copies]`, in a machine file of the simulator and in the store.
//!
//! ```toml
//! [copies]
//! line = { shared = 0.06, apart = 0.2 }   # times in microseconds
//! cached = 30000                          # rates in MB/s
//! private = 1048576                       # sizes in bytes
//! ```
//! Missing values are taken from [`CopyModel::GENERIC`].

use serde::de::{Deserializer, Error, Unexpected};
use serde::{Deserialize, Serialize};
use weft_fabric::{CopyModel, Unit};

/// A number within the range of its unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(transparent)]
struct Number<const UNIT: u8>(f64);

const TIME: u8 = 0;
const RATE: u8 = 1;
const SIZE: u8 = 2;

impl<'de, const UNIT: u8> Deserialize<'de> for Number<UNIT> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Number<UNIT>, D::Error> {
        let value = f64::deserialize(from)?;
        let (unit, expected) = match UNIT {
            TIME => (Unit::Time, "a time in microseconds from 1e-6 to 1e6"),
            RATE => (Unit::Rate, "a rate in MB/s from 1 to 1e7"),
            _ => (Unit::Size, "a size in bytes from 1024 to 1e12"),
        };
        let (least, most) = unit.range();
        if (least..=most).contains(&value) {
            Ok(Number(value))
        } else {
            Err(D::Error::invalid_value(Unexpected::Float(value), &expected))
        }
    }
}

/// A value for each distance; see [`weft_fabric::ByDistance`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pair<T> {
    shared: T,
    apart: T,
}

/// The table. Its names are the names in [`CopyModel::FIELDS`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CostTable {
    line: Pair<Number<TIME>>,
    rewrite: Pair<Number<TIME>>,
    rewrite_asked: Pair<Number<TIME>>,
    rewrite_returned: Pair<Number<TIME>>,
    fetch: Pair<Number<RATE>>,
    fetch_pages: Pair<Number<RATE>>,
    cma_fetch: Pair<Number<RATE>>,
    cached: Number<RATE>,
    memory: Number<RATE>,
    past: Number<RATE>,
    cma_call: Number<TIME>,
    cma_page: Number<TIME>,
    switch: Number<TIME>,
    yielding: Number<TIME>,
    reduce: Number<RATE>,
    clock: Number<TIME>,
    private: Number<SIZE>,
    last: Number<SIZE>,
}

impl Default for CostTable {
    fn default() -> CostTable {
        CostTable::of(&CopyModel::GENERIC)
    }
}

impl CostTable {
    /// Runs `step` for each number, with its name.
    fn each(&mut self, mut step: impl FnMut(&str, &mut f64)) {
        let CostTable {
            line, rewrite, rewrite_asked, rewrite_returned, fetch, fetch_pages, ..
        } = self;
        step("line.shared", &mut line.shared.0);
        step("line.apart", &mut line.apart.0);
        step("rewrite.shared", &mut rewrite.shared.0);
        step("rewrite.apart", &mut rewrite.apart.0);
        step("rewrite_asked.shared", &mut rewrite_asked.shared.0);
        step("rewrite_asked.apart", &mut rewrite_asked.apart.0);
        step("rewrite_returned.shared", &mut rewrite_returned.shared.0);
        step("rewrite_returned.apart", &mut rewrite_returned.apart.0);
        step("fetch.shared", &mut fetch.shared.0);
        step("fetch.apart", &mut fetch.apart.0);
        step("fetch_pages.shared", &mut fetch_pages.shared.0);
        step("fetch_pages.apart", &mut fetch_pages.apart.0);
        step("cma_fetch.shared", &mut self.cma_fetch.shared.0);
        step("cma_fetch.apart", &mut self.cma_fetch.apart.0);
        step("cached", &mut self.cached.0);
        step("memory", &mut self.memory.0);
        step("past", &mut self.past.0);
        step("cma_call", &mut self.cma_call.0);
        step("cma_page", &mut self.cma_page.0);
        step("switch", &mut self.switch.0);
        step("yielding", &mut self.yielding.0);
        step("reduce", &mut self.reduce.0);
        step("clock", &mut self.clock.0);
        step("private", &mut self.private.0);
        step("last", &mut self.last.0);
    }

    /// Returns the table of a model, with four digits of each number.
    pub fn of(model: &CopyModel) -> CostTable {
        let (time, rate, size) = (Number(0.0), Number(0.0), Number(0.0));
        let pair = Pair { shared: time, apart: time };
        let mut table = CostTable {
            line: pair,
            rewrite: pair,
            rewrite_asked: pair,
            rewrite_returned: pair,
            fetch: Pair { shared: rate, apart: rate },
            fetch_pages: Pair { shared: rate, apart: rate },
            cma_fetch: Pair { shared: rate, apart: rate },
            cached: rate,
            memory: rate,
            past: rate,
            cma_call: time,
            cma_page: time,
            switch: time,
            yielding: time,
            reduce: rate,
            clock: time,
            private: size,
            last: size,
        };
        table.each(|name, value| {
            let field = CopyModel::field(name).expect("a field of the model");
            let shown = field.shown(model);
            *value = match field.unit {
                Unit::Size => shown,
                _ => digits(shown),
            };
        });
        table
    }

    /// Returns the costs of this table, in nanoseconds and bytes.
    pub fn model(&self) -> CopyModel {
        let mut model = CopyModel::GENERIC;
        self.clone().each(|name, value| {
            CopyModel::field(name).expect("a field of the model").put(&mut model, *value);
        });
        model
    }
}

/// Rounds to four digits, because measurements are not more precise.
fn digits(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

// These tests need files, processors and signals of the system, which Miri does not have.
#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_a_model_is_in_the_table() {
        let mut names = Vec::new();
        CostTable::default().each(|name, _| names.push(name.to_owned()));
        assert_eq!(names, CopyModel::FIELDS.map(|field| field.name));
    }

    #[test]
    fn a_table_read_again_is_the_same_model() {
        let mut model = CopyModel::GENERIC;
        for (at, field) in CopyModel::FIELDS.iter().enumerate() {
            let value = field.of(&model);
            field.set(&mut model, value * (1.0 + at as f64));
        }
        let table = CostTable::of(&model);
        let text = toml::to_string(&table).unwrap();
        let read: CostTable = toml::from_str(&text).unwrap();
        assert_eq!(read, table);
        assert_eq!(read.model(), table.model());
        for field in CopyModel::FIELDS {
            let ratio = field.of(&read.model()) / field.of(&model);
            assert!((ratio - 1.0).abs() < 1e-3, "{}: {ratio}", field.name);
        }
    }

    #[test]
    fn what_is_not_there_is_generic_and_what_is_unknown_an_error() {
        let table: CostTable = toml::from_str("line = { shared = 1, apart = 2.5 }").unwrap();
        let model = table.model();
        assert_eq!((model.line.shared, model.line.apart), (1000.0, 2500.0));
        assert_eq!(model.cma_call, CopyModel::GENERIC.cma_call);
        for (text, expected) in [
            ("lines = 1", "unknown field `lines`"),
            ("line = { shared = 1, apart = 2, far = 3 }", "unknown field `far`"),
            ("line = { shared = 1 }", "missing field `apart`"),
            ("cached = 0", "a rate in MB/s from 1 to 1e7"),
            ("switch = -1", "a time in microseconds"),
            ("switch = nan", "a time in microseconds"),
            ("last = \"big\"", "invalid type"),
        ] {
            let error = toml::from_str::<CostTable>(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
