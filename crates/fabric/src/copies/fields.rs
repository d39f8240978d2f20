//! The numbers of a [`CopyModel`] as a list, each with its name, unit and meaning. Files, segments and tables that hold a model
//! all use this list.

use super::CopyModel;

/// The unit of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds in the model, microseconds in files and for people.
    Time,
    /// Nanoseconds a byte in the model, MB/s (10^6 bytes a second) in files and for people.
    Rate,
    /// Bytes.
    Size,
}

impl Unit {
    /// Returns the unit's name in files and for people.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Time => "us",
            Unit::Rate => "MB/s",
            Unit::Size => "bytes",
        }
    }

    /// Converts from the model's unit to the unit of files.
    fn shown(self, value: f64) -> f64 {
        match self {
            Unit::Time => value / 1e3,
            Unit::Rate => 1e3 / value,
            Unit::Size => value,
        }
    }

    /// Converts from the unit of files to the model's unit.
    fn stored(self, value: f64) -> f64 {
        match self {
            Unit::Time => value * 1e3,
            Unit::Rate => 1e3 / value,
            Unit::Size => value,
        }
    }

    /// Returns the minimum and the maximum that a file may contain, in the unit of files.
    pub fn range(self) -> (f64, f64) {
        match self {
            Unit::Time => (1e-6, 1e6),
            Unit::Rate => (1.0, 1e7),
            Unit::Size => (1024.0, 1e12),
        }
    }
}

/// A number of a model.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The name in files, such as `line.shared`.
    pub name: &'static str,
    /// The unit, which decides how [`Field::shown`] and [`Field::put`] convert, and which range is allowed.
    pub unit: Unit,
    /// The meaning of the number in words, for people who read a table of the fields.
    pub meaning: &'static str,
    get: fn(&CopyModel) -> f64,
    set: fn(&mut CopyModel, f64),
}

impl Field {
    /// Returns the number in the model's unit.
    pub fn of(&self, model: &CopyModel) -> f64 {
        (self.get)(model)
    }

    /// Returns the number in the unit of files.
    pub fn shown(&self, model: &CopyModel) -> f64 {
        self.unit.shown(self.of(model))
    }

    /// Stores a number that is in the model's unit.
    pub fn set(&self, model: &mut CopyModel, value: f64) {
        (self.set)(model, value);
    }

    /// Stores a number that is in the unit of files.
    pub fn put(&self, model: &mut CopyModel, value: f64) {
        self.set(model, self.unit.stored(value));
    }

    /// Returns true if `value`, in the unit of files, is within the allowed range.
    pub fn allows(&self, value: f64) -> bool {
        let (least, most) = self.unit.range();
        (least..=most).contains(&value)
    }
}

macro_rules! field {
    ($name:literal, $unit:ident, $($part:ident).+ $(as $kind:ty)?, $meaning:literal) => {
        Field {
            name: $name,
            unit: Unit::$unit,
            meaning: $meaning,
            get: |model| model.$($part).+ as f64,
            set: |model, value| model.$($part).+ = value $(as $kind)?,
        }
    };
}

impl CopyModel {
    /// The list of all numbers.
    #[rustfmt::skip]
    pub const FIELDS: [Field; 36] = [
        field!("line.shared", Time, line.shared,
            "a rank sees a flag that another has just set, whose processor shares a cache with its own"),
        field!("line.apart", Time, line.apart, "the same where the processors share no cache"),
        field!("line.core", Time, line_by_level.core, "the same where the processors are hardware threads of one core"),
        field!("line.numa", Time, line_by_level.numa, "the same within a NUMA domain, without a common cache"),
        field!("line.socket", Time, line_by_level.socket, "the same between NUMA domains of one socket"),
        field!("line.node", Time, line_by_level.node, "the same between sockets"),
        field!("rewrite.shared", Time, rewrite.shared,
            "64 bytes are written again that a rank has read whose processor shares a cache; beyond the copy itself"),
        field!("rewrite.apart", Time, rewrite.apart, "the same where the processors share no cache"),
        field!("rewrite_asked.shared", Time, rewrite_asked.shared,
            "the same if many such are asked for at once, where a cache is shared"),
        field!("rewrite_asked.apart", Time, rewrite_asked.apart, "the same where the processors share no cache"),
        field!("rewrite_returned.shared", Time, rewrite_returned.shared,
            "the same if their reader has given them back, with what that takes, where a cache is shared"),
        field!("rewrite_returned.apart", Time, rewrite_returned.apart,
            "the same where the processors share no cache"),
        field!("fetch.shared", Rate, fetch.shared,
            "copying what another rank has just written, whose processor shares a cache"),
        field!("fetch.apart", Rate, fetch.apart, "the same where the processors share no cache"),
        field!("fetch.core", Rate, fetch_by_level.core, "the same where the processors are hardware threads of one core"),
        field!("fetch.numa", Rate, fetch_by_level.numa, "the same within a NUMA domain, without a common cache"),
        field!("fetch.socket", Rate, fetch_by_level.socket, "the same between NUMA domains of one socket"),
        field!("fetch.node", Rate, fetch_by_level.node, "the same between sockets"),
        field!("fetch_pages.shared", Rate, fetch_pages.shared,
            "the same from many pages in turn, where a cache is shared"),
        field!("fetch_pages.apart", Rate, fetch_pages.apart, "the same where the processors share no cache"),
        field!("cma_fetch.shared", Rate, cma_fetch.shared,
            "the system reads that in another process's memory (CMA), pages apart, where a cache is shared"),
        field!("cma_fetch.apart", Rate, cma_fetch.apart, "the same where the processors share no cache"),
        field!("cached", Rate, cached, "copying within a processor's own caches"),
        field!("memory", Rate, memory, "copying from memory to memory"),
        field!("past", Rate, past, "copying by stores that go past the caches"),
        field!("cma_call", Time, cma_call,
            "a system call that reads another process's memory (CMA), without its pages"),
        field!("cma_page", Time, cma_page, "each page of 4096 bytes of that, beyond the copy itself"),
        field!("switch", Time, switch, "a processor goes from one rank to another that shares it"),
        field!("yielding", Time, yielding, "a rank gives way where nobody else wants the processor"),
        field!("reduce", Rate, reduce, "adding numbers that are in the caches, in bytes of one operand"),
        field!("message", Time, message, "a message at either end, without its bytes: post, match and completion"),
        field!("cache_link", Rate, cache_link, "all transfers together out of the processors of a common cache, or into them"),
        field!("socket_link", Rate, socket_link, "all transfers together out of the processors of a socket, or into them"),
        field!("clock", Time, clock, "the clock is read twice"),
        field!("private", Size, private as usize, "the largest cache that a processor has for itself"),
        field!("last", Size, last as usize, "the last cache before memory, which several processors share"),
    ];

    /// Returns the field with this name.
    pub fn field(name: &str) -> Option<&'static Field> {
        const ALL: &[Field] = &CopyModel::FIELDS;
        ALL.iter().find(|field| field.name == name)
    }

    /// Returns the model as words, for memory that ranks share.
    pub fn words(&self) -> [u64; CopyModel::FIELDS.len()] {
        CopyModel::FIELDS.map(|field| field.of(self).to_bits())
    }

    /// Returns the model that these words encode; `None` if a word is not a positive finite number.
    pub fn from_words(words: [u64; CopyModel::FIELDS.len()]) -> Option<CopyModel> {
        let mut model = CopyModel::GENERIC;
        for (field, word) in CopyModel::FIELDS.iter().zip(words) {
            let value = f64::from_bits(word);
            // NaN fails this test, too.
            if !(value > 0.0 && value.is_finite()) {
                return None;
            }
            field.set(&mut model, value);
        }
        Some(model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_a_field_of_its_own() {
        let mut model = CopyModel::GENERIC;
        for (at, field) in CopyModel::FIELDS.iter().enumerate() {
            field.set(&mut model, 1000.0 + at as f64);
        }
        for (at, field) in CopyModel::FIELDS.iter().enumerate() {
            assert_eq!(field.of(&model), 1000.0 + at as f64, "{}", field.name);
            assert_eq!(CopyModel::field(field.name).unwrap().meaning, field.meaning);
            assert!(field.allows(field.shown(&CopyModel::GENERIC)), "{}", field.name);
        }
        assert_eq!(CopyModel::from_words(model.words()), Some(model));
    }

    #[test]
    fn words_that_are_no_model_are_refused() {
        let words = CopyModel::GENERIC.words();
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let mut bad = words;
            bad[3] = wrong.to_bits();
            assert_eq!(CopyModel::from_words(bad), None, "{wrong}");
        }
        assert_eq!(CopyModel::from_words([0; CopyModel::FIELDS.len()]), None);
    }

    #[test]
    fn files_have_microseconds_and_megabytes_a_second() {
        let mut model = CopyModel::GENERIC;
        CopyModel::field("line.shared").unwrap().put(&mut model, 0.25);
        CopyModel::field("cached").unwrap().put(&mut model, 20_000.0);
        CopyModel::field("private").unwrap().put(&mut model, 65536.0);
        assert_eq!((model.line.shared, model.cached, model.private), (250.0, 0.05, 65536));
    }
}
