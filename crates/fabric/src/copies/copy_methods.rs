//! The fastest methods to copy between caches at a distance. They follow from the model and are computed only once, because each
//! copy needs them.

use super::{CacheDistance, CopyModel, LINE};

/// Factor by which the time of a method must be shorter for the method to be chosen. Measured times vary by a tenth, so a smaller
/// gain is ignored.
pub(super) const GAIN: f64 = 0.9;

/// The fastest methods to copy at a distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ways {
    /// True if lines that another processor has read are best requested together before they are written.
    pub asks_ahead: bool,
    /// True if a copy is best made from many pages at once.
    pub interleaves: bool,
    /// True if the only reader of lines takes them into its own cache for writing, so that the writer gets the lines back
    /// quickly.
    pub gives_back: bool,
    /// Minimum length, in bytes, of a copy for several readers that goes past the caches; `usize::MAX`: no copy does.
    pub past_many: usize,
    /// Minimum length, in bytes, of a copy for one reader, which may give lines back; `usize::MAX`: no copy goes past the
    /// caches.
    pub past_one: usize,
}

impl Ways {
    /// Derives the choices from a model's costs between processors at `distance`.
    pub fn of(model: &CopyModel, distance: CacheDistance) -> Ways {
        let rewrite = model.rewrite_best(distance);
        let one = model.rewrite_one(distance);
        let fetch = model.fetch.at(distance);
        // The cost of a byte through the caches, and of a byte that is written past them and read from memory.
        let through = |rewrite: f64| model.cached + rewrite / LINE as f64 + fetch;
        let past = model.past + model.memory;
        // The fence after such stores waits until the last store has arrived.
        let from = |rewrite: f64| match GAIN * through(rewrite) - past {
            gain if gain > 0.0 => (model.line.apart / gain).ceil() as usize,
            _ => usize::MAX,
        };
        Ways {
            asks_ahead: model.rewrite_asked.at(distance) < GAIN * model.rewrite.at(distance),
            interleaves: model.fetch_pages.at(distance) < GAIN * fetch,
            gives_back: model.rewrite_returned.at(distance) < GAIN * rewrite,
            past_many: from(rewrite),
            past_one: from(one),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copies::ByDistance;

    /// A processor on which it is faster to request many far lines and pages together.
    const ASKING: CopyModel = CopyModel {
        rewrite: ByDistance { shared: 7.0, apart: 27.0 },
        rewrite_asked: ByDistance { shared: 5.0, apart: 15.0 },
        rewrite_returned: ByDistance { shared: 2.2, apart: 5.0 },
        fetch: ByDistance { shared: 0.03, apart: 0.08 },
        fetch_pages: ByDistance { shared: 0.035, apart: 0.055 },
        cma_fetch: ByDistance { shared: 0.03, apart: 0.08 },
        cma_page: 80.0,
        ..CopyModel::GENERIC
    };

    /// A processor that gains nothing by requesting lines together. It writes quickly past the caches, and slowly to lines that
    /// another processor has read. Pages are expensive on it.
    const STREAMING: CopyModel = CopyModel {
        line: ByDistance { shared: 60.0, apart: 260.0 },
        rewrite: ByDistance { shared: 3.0, apart: 36.0 },
        rewrite_asked: ByDistance { shared: 12.0, apart: 60.0 },
        rewrite_returned: ByDistance { shared: 5.0, apart: 36.0 },
        fetch: ByDistance { shared: 0.03, apart: 0.06 },
        fetch_pages: ByDistance { shared: 0.04, apart: 0.12 },
        cma_fetch: ByDistance { shared: 0.03, apart: 0.06 },
        memory: 0.08,
        past: 0.04,
        cma_page: 250.0,
        ..CopyModel::GENERIC
    };

    #[test]
    fn a_processor_that_asks_ahead() {
        let [near, far] =
            [CacheDistance::Shared, CacheDistance::Apart].map(|at| Ways::of(&ASKING, at));
        assert!(far.asks_ahead && far.interleaves && far.gives_back);
        assert!(near.asks_ahead && !near.interleaves && near.gives_back);
        assert_eq!(
            (near.past_one, near.past_many, far.past_one),
            (usize::MAX, usize::MAX, usize::MAX)
        );
        assert!(far.past_many < 4096, "{far:?}");
        assert!(ASKING.fetches(CacheDistance::Apart));
        assert!(!ASKING.pages_are_dear() && !ASKING.writes_anew());
    }

    #[test]
    fn a_processor_that_writes_past_its_caches() {
        let [near, far] =
            [CacheDistance::Shared, CacheDistance::Apart].map(|at| Ways::of(&STREAMING, at));
        assert!(!far.asks_ahead && !far.interleaves && !far.gives_back);
        assert!(far.past_one < 4096 && far.past_many < 4096, "{far:?}");
        assert_eq!((near.past_one, near.past_many), (usize::MAX, usize::MAX));
        assert!(!STREAMING.fetches(CacheDistance::Apart));
        assert!(STREAMING.pages_are_dear() && STREAMING.writes_anew());
    }

    #[test]
    fn a_processor_that_nobody_has_measured() {
        let [near, far] = [CacheDistance::Shared, CacheDistance::Apart]
            .map(|at| Ways::of(&CopyModel::GENERIC, at));
        assert!(!near.asks_ahead && !far.asks_ahead && !near.interleaves && !far.interleaves);
        assert!(near.gives_back && far.gives_back);
        assert_eq!((near.past_one, near.past_many), (usize::MAX, usize::MAX));
        assert!(far.past_many < 4096 && far.past_many < far.past_one, "{far:?}");
        assert!(!CopyModel::GENERIC.pages_are_dear() && !CopyModel::GENERIC.writes_anew());
    }
}
