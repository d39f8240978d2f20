//! Source of a job's model: the store, a measurement, a file that the user names, or the generic model.
//!
//! ```text
//!   auto      stored for this machine? ──yes──▶ the stored model
//!                    └─no──▶ measured, and stored if possible
//!   measure   measured, and stored        generic   CopyModel::GENERIC          a path   the model in this file
//! ```
//! A separate thread finds the model, while the ranks of a job connect.

use crate::measure::{self, MachineLoad, MeasuredModel};
use crate::store::{self, CachedModel, MachineKey};
use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::SystemTime;
use weft_fabric::CopyModel;

/// The source of a model that the user requests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ModelSource {
    /// No source: [`CopyModel::GENERIC`].
    #[default]
    Generic,
    /// The stored model; if there is none, a measurement, which is then stored.
    Auto,
    /// A measurement, which is then stored.
    Measure,
    /// A file with a table `[copies]`.
    File(PathBuf),
}

impl ModelSource {
    /// Parses the text of a setting. A text is a path if it contains a `/` or a `.`.
    pub fn parse(text: &str) -> Result<ModelSource, String> {
        match text.trim() {
            "" | "auto" => Ok(ModelSource::Auto),
            "measure" => Ok(ModelSource::Measure),
            "generic" => Ok(ModelSource::Generic),
            path if path.contains(['/', '.']) => Ok(ModelSource::File(path.into())),
            _ => {
                Err("neither auto, measure, generic nor the path of a file (with a / or a . in it)"
                    .to_owned())
            }
        }
    }
}

/// The origin of a model.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelOrigin {
    /// The generic model, with the reason in words.
    Generic(&'static str),
    /// A measurement of this job, with the file in which it was stored, if that was possible.
    Measured(Option<PathBuf>),
    /// An earlier measurement on this machine, with its file and its time.
    Kept(PathBuf, SystemTime),
    /// A file that the user named, with the time that the file gives.
    Given(PathBuf, Option<SystemTime>),
}

/// A model with its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedModel {
    /// The costs by which ranks decide. All values are there: unknown values are taken from [`CopyModel::GENERIC`].
    pub model: CopyModel,
    /// For reports: the source and the age of the costs.
    pub origin: ModelOrigin,
    /// Names of the fields whose values are generic although other values of the model are not.
    pub generic: BTreeSet<String>,
}

impl LoadedModel {
    fn generic(why: &'static str) -> LoadedModel {
        let names = CopyModel::FIELDS.map(|field| field.name.to_owned());
        let generic = BTreeSet::from(names);
        LoadedModel { model: CopyModel::GENERIC, origin: ModelOrigin::Generic(why), generic }
    }

    fn kept(place: &Path, kept: CachedModel) -> LoadedModel {
        LoadedModel::of(kept.measured, ModelOrigin::Kept(place.to_path_buf(), kept.when))
    }

    fn of(measured: MeasuredModel, origin: ModelOrigin) -> LoadedModel {
        let mut generic: BTreeSet<String> =
            measured.absent.union(&measured.late).cloned().collect();
        generic.extend(NOT_MEASURED.map(str::to_owned));
        LoadedModel { model: measured.model, origin, generic }
    }
}

/// Fields that no measurement has. Machine files give them.
const NOT_MEASURED: [&str; 3] = ["message", "cache_link", "socket_link"];

const ASKED: &str = "asked for";
const WATCHED: &str =
    "nothing kept, and a tool watches this process, so that its times mean nothing";
const NO_THREAD: &str = "nothing kept, and the system gives no thread to measure with";
const NOBODY: &str = "nothing kept, and nobody to move bytes to";

/// A model that is being found in the background.
#[derive(Debug)]
pub struct ModelLoader {
    thread: Option<JoinHandle<LoadedModel>>,
    found: LoadedModel,
}

impl ModelLoader {
    /// Starts to find the model for a job of `ranks` ranks on this machine. For a single rank no measurement is made, unless the
    /// user demands it. Returns an error text if the file that the user named is not a model.
    pub fn start(wanted: &ModelSource, ranks: usize) -> Result<ModelLoader, String> {
        let now = |found| Ok(ModelLoader { thread: None, found });
        let force = match wanted {
            ModelSource::Generic => return now(LoadedModel::generic(ASKED)),
            ModelSource::File(path) => {
                let (model, when) = store::given(path)?;
                let origin = ModelOrigin::Given(path.clone(), when);
                return now(LoadedModel { model, origin, generic: BTreeSet::new() });
            }
            ModelSource::Auto => false,
            ModelSource::Measure => true,
        };
        let place = store::path();
        let search = ModelSearch { force, peers: ranks > 1 };
        let work = move || search.run(place.as_deref());
        Ok(ModelLoader { thread: in_background(work), found: LoadedModel::generic(NO_THREAD) })
    }

    /// Waits for the model and returns it.
    pub fn wait(mut self) -> LoadedModel {
        let found = self.thread.take().and_then(|thread| thread.join().ok());
        found.unwrap_or_else(|| self.found.clone())
    }
}

impl Drop for ModelLoader {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Starts a thread that takes no signals, because signals belong to the program.
fn in_background(
    work: impl FnOnce() -> LoadedModel + Send + 'static,
) -> Option<JoinHandle<LoadedModel>> {
    let mut before = SigSet::empty();
    let all = Some(&SigSet::all());
    let blocked = pthread_sigmask(SigmaskHow::SIG_SETMASK, all, Some(&mut before)).is_ok();
    let thread = thread::Builder::new().name("weft-measure".to_owned()).stack_size(256 << 10);
    let thread = thread.spawn(work).ok();
    if blocked {
        let _ = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&before), None);
    }
    thread
}

/// A search for the model.
#[derive(Debug, Clone, Copy)]
struct ModelSearch {
    /// True if the user demands a measurement.
    force: bool,
    /// True if there are other ranks on the machine.
    peers: bool,
}

impl ModelSearch {
    /// Finds the model on this thread. A measurement binds the thread to processors.
    fn run(self, place: Option<&Path>) -> LoadedModel {
        let ModelSearch { force, peers } = self;
        let machine = MachineKey::here();
        let kept = place.and_then(|place| Some((place, store::read(place, &machine)?)));
        let mut places = None;
        if let (Some((place, kept)), false) = (&kept, force) {
            let whole = kept.measured.absent.is_empty() && kept.measured.late.is_empty();
            let mut suffices =
                || whole || !kept.measured.lacks(places.get_or_insert_with(measure::places));
            // Earlier jobs did without the missing values, so this job can as well. No job should spend time on these values while
            // other threads want the processors.
            if !peers || suffices() || !measure::is_quiet() {
                return LoadedModel::kept(place, kept.clone());
            }
        }
        if !peers && !force {
            return LoadedModel::generic(NOBODY);
        }
        let places = places.unwrap_or_else(measure::places);
        let load = if force { MachineLoad::Any } else { MachineLoad::Quiet };
        let Some(mut measured) = measure::on_this_thread(&places, load) else {
            return match kept {
                Some((place, kept)) => LoadedModel::kept(place, kept),
                None => LoadedModel::generic(WATCHED),
            };
        };
        let mut when = SystemTime::now();
        match kept {
            // Values that earlier jobs used do not change. Only missing values are filled in.
            Some((_, mut kept)) if !force => {
                kept.measured.fill(&measured);
                (measured, when) = (kept.measured, kept.when);
            }
            Some((_, kept)) => measured.complete(&kept.measured),
            None => {}
        }
        let kept = CachedModel { measured, when };
        let written = place.filter(|place| store::write(place, &kept, &machine).is_ok());
        LoadedModel::of(kept.measured, ModelOrigin::Measured(written.map(Path::to_owned)))
    }
}

// These tests need files, processors and signals of the system, which Miri does not have.
#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn words_of_the_setting() {
        for (text, wanted) in [
            ("auto", ModelSource::Auto),
            ("", ModelSource::Auto),
            (" measure ", ModelSource::Measure),
            ("generic", ModelSource::Generic),
            ("./x", ModelSource::File("./x".into())),
            ("x.toml", ModelSource::File("x.toml".into())),
        ] {
            assert_eq!(ModelSource::parse(text), Ok(wanted), "{text}");
        }
        assert!(ModelSource::parse("kept").unwrap_err().contains("neither auto"));
    }

    #[test]
    fn fields_that_no_measurement_has_are_fields() {
        assert!(NOT_MEASURED.iter().all(|name| CopyModel::field(name).is_some()));
    }

    #[test]
    fn measured_once_and_kept_then() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("weft/copies-x.toml");
        let find = |force, peers| {
            let place = place.clone();
            let search = ModelSearch { force, peers };
            in_background(move || search.run(Some(&place))).unwrap().join().unwrap()
        };
        assert_eq!(find(false, false).origin, ModelOrigin::Generic(NOBODY));
        assert!(!place.exists());
        let first = find(false, true);
        assert_eq!(first.origin, ModelOrigin::Measured(Some(place.clone())));
        assert!(first.generic.len() < CopyModel::FIELDS.len());
        assert!(NOT_MEASURED.iter().all(|&name| first.generic.contains(name)), "{first:?}");
        let second = find(false, false);
        assert!(matches!(&second.origin, ModelOrigin::Kept(at, _) if *at == place), "{second:?}");
        assert_eq!(second.model, crate::CostTable::of(&first.model).model());
        assert_eq!(find(true, true).origin, ModelOrigin::Measured(Some(place.clone())));
        // A stored model that lacks some values is used, even if the values could not be filled in.
        let text = fs::read_to_string(&place).unwrap();
        let less = text.lines().map(|line| match line.split_once(" = ") {
            Some(("late", _)) => "late = [\"switch\"]",
            _ => line,
        });
        fs::write(&place, less.collect::<Vec<_>>().join("\n") + "\n").unwrap();
        let filled = find(false, true);
        assert_eq!(filled.model.cached, crate::CostTable::of(&filled.model).model().cached);
        assert_ne!(filled.origin, ModelOrigin::Generic(NOBODY));
        // The file of another machine is replaced.
        let text = fs::read_to_string(&place).unwrap();
        fs::write(&place, text.replace("kernel = \"", "kernel = \"x")).unwrap();
        assert_eq!(find(false, true).origin, ModelOrigin::Measured(Some(place.clone())));
        assert!(!fs::read_to_string(&place).unwrap().contains("kernel = \"x"));
    }

    #[test]
    fn where_nothing_can_be_kept_it_is_measured() {
        for place in [None, Some(Path::new("/proc/self/none/copies-x.toml"))] {
            let search = ModelSearch { force: false, peers: true };
            let found = in_background(move || search.run(place)).unwrap().join().unwrap();
            assert_eq!(found.origin, ModelOrigin::Measured(None));
        }
    }

    #[test]
    fn the_callers_signals_stay_as_they_are() {
        let before = SigSet::thread_get_mask().unwrap();
        let inside = in_background(|| {
            let blocked = SigSet::thread_get_mask().unwrap();
            assert!(blocked.contains(nix::sys::signal::SIGALRM));
            LoadedModel::generic(ASKED)
        });
        inside.unwrap().join().unwrap();
        assert_eq!(SigSet::thread_get_mask().unwrap(), before);
    }

    #[test]
    fn a_file_that_is_named_is_read_or_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mine.toml");
        fs::write(&path, "[copies]\nswitch = 3\n").unwrap();
        let found = ModelLoader::start(&ModelSource::File(path.clone()), 2).unwrap().wait();
        assert_eq!((found.model.switch, found.origin), (3000.0, ModelOrigin::Given(path, None)));
        assert!(ModelLoader::start(&ModelSource::File("/none.toml".into()), 2).is_err());
        let generic = ModelLoader::start(&ModelSource::Generic, 2).unwrap().wait();
        assert_eq!(generic.model, CopyModel::GENERIC);
    }
}
