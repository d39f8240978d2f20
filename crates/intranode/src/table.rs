//! A model in the format of files: the keys of `[copies]`, both in a machine file of the simulator and in the store.
//!
//! ```toml
//! [copies]
//! line = { shared = 0.06, apart = 0.2 }   # times in microseconds; also by level: core, numa, socket, node
//! cached = 30000                          # rates in MB/s
//! private = 1048576                       # sizes in bytes
//! ```
//! Missing values are taken from [`CopyModel::GENERIC`].

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use std::fmt;
use weft_fabric::{CopyModel, Unit};

/// The numbers of a model, in the units of files and in the order of [`CopyModel::FIELDS`].
#[derive(Debug, Clone, PartialEq)]
pub struct CostTable([f64; CopyModel::FIELDS.len()]);

/// A value for each distance, and for each level if the model has them. A model file has a field for each of these values: of the
/// value `x` the fields `x.shared` and `x.apart` ([`weft_fabric::ByDistance`]), then `x.core` to `x.node`
/// ([`weft_fabric::copies::ByLevel`]).
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Distances {
    shared: f64,
    apart: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    core: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    numa: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    socket: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<f64>,
}

/// Returns true if the fields of distances at `at` are followed by fields of levels.
fn has_levels(at: usize) -> bool {
    CopyModel::FIELDS.get(at + 2).is_some_and(|field| field.name.ends_with(".core"))
}

impl Serialize for CostTable {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        let mut at = 0;
        while let Some(field) = CopyModel::FIELDS.get(at) {
            match field.name.strip_suffix(".shared") {
                None => {
                    map.serialize_entry(field.name, &self.0[at])?;
                    at += 1;
                }
                Some(name) => {
                    let levels = has_levels(at);
                    let level = |offset: usize| levels.then(|| self.0[at + offset]);
                    let (shared, apart) = (self.0[at], self.0[at + 1]);
                    let [core, numa, socket, node] = [2, 3, 4, 5].map(level);
                    map.serialize_entry(
                        name,
                        &Distances { shared, apart, core, numa, socket, node },
                    )?;
                    at += if levels { 6 } else { 2 };
                }
            }
        }
        map.end()
    }
}

/// Reader of a field's value, or of the values of a field and of the next one. Its errors have the line of the value.
struct FieldSeed<'t> {
    table: &'t mut CostTable,
    at: usize,
}

impl<'de> DeserializeSeed<'de> for FieldSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        let FieldSeed { table, at } = self;
        if !CopyModel::FIELDS[at].name.ends_with(".shared") {
            return table.put(at, f64::deserialize(from)?);
        }
        let Distances { shared, apart, core, numa, socket, node } = Distances::deserialize(from)?;
        table.put(at, shared)?;
        table.put(at + 1, apart)?;
        let levels = [core, numa, socket, node];
        if !has_levels(at) {
            return match levels.into_iter().flatten().next() {
                Some(_) => Err(D::Error::custom("only `line` and `fetch` have levels")),
                None => Ok(()),
            };
        }
        // A level that a file does not name costs as much as the nearest level before it.
        let numa = numa.unwrap_or(apart);
        let socket = socket.unwrap_or(numa);
        let levels = [core.unwrap_or(shared), numa, socket, node.unwrap_or(socket)];
        (at + 2..).zip(levels).try_for_each(|(at, value)| table.put(at, value))
    }
}

/// Reader of a table.
struct TableVisitor;

impl<'de> Deserialize<'de> for CostTable {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<CostTable, D::Error> {
        from.deserialize_map(TableVisitor)
    }
}

impl<'de> Visitor<'de> for TableVisitor {
    type Value = CostTable;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table of costs")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<CostTable, A::Error> {
        let place = |name: &str| CopyModel::FIELDS.iter().position(|field| field.name == name);
        let mut table = CostTable::default();
        while let Some(name) = map.next_key::<String>()? {
            let at = place(&name).or_else(|| place(&format!("{name}.shared")));
            let unknown = || A::Error::custom(format_args!("unknown field `{name}`"));
            map.next_value_seed(FieldSeed { table: &mut table, at: at.ok_or_else(unknown)? })?;
        }
        Ok(table)
    }
}

impl Default for CostTable {
    fn default() -> CostTable {
        CostTable::of(&CopyModel::GENERIC)
    }
}

impl CostTable {
    /// Stores a number, if it is within the range of its unit.
    fn put<E: Error>(&mut self, at: usize, value: f64) -> Result<(), E> {
        let field = &CopyModel::FIELDS[at];
        let expected = match field.unit {
            Unit::Time => "a time in microseconds from 1e-6 to 1e6",
            Unit::Rate => "a rate in MB/s from 1 to 1e7",
            Unit::Size => "a size in bytes from 1024 to 1e12",
        };
        if !field.allows(value) {
            return Err(E::custom(format_args!("{} = {value}: expected {expected}", field.name)));
        }
        self.0[at] = value;
        Ok(())
    }

    /// Returns the table of a model, with four digits of each number.
    pub fn of(model: &CopyModel) -> CostTable {
        CostTable(CopyModel::FIELDS.map(|field| match field.unit {
            Unit::Size => field.shown(model),
            _ => digits(field.shown(model)),
        }))
    }

    /// Returns the costs of this table, in nanoseconds and bytes.
    pub fn model(&self) -> CopyModel {
        let mut model = CopyModel::GENERIC;
        CopyModel::FIELDS
            .iter()
            .zip(self.0)
            .for_each(|(field, value)| field.put(&mut model, value));
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
    use weft_fabric::copies::ByLevel;

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
        let levels = ByLevel { core: 1000.0, numa: 2500.0, socket: 2500.0, node: 2500.0 };
        assert_eq!(model.line_by_level, levels);
        let text = "line = { shared = 1, apart = 2, core = 0.5, socket = 3 }";
        let model = toml::from_str::<CostTable>(text).unwrap().model();
        let levels = ByLevel { core: 500.0, numa: 2000.0, socket: 3000.0, node: 3000.0 };
        assert_eq!(model.line_by_level, levels);
        for (text, expected) in [
            ("lines = 1", "unknown field `lines`"),
            ("line = { shared = 1, apart = 2, far = 3 }", "unknown field `far`"),
            ("line = { shared = 1 }", "missing field `apart`"),
            ("rewrite = { shared = 1, apart = 2, node = 3 }", "only `line` and `fetch`"),
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
