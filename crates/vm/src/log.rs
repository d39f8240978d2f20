//! Messages of a run on standard error, and the log of all events.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Minimum duration of a step that is reported on standard error. Shorter steps are only in the log.
const WORTH_SAYING: Duration = Duration::from_secs(2);

pub struct Log {
    began: Instant,
    file: Mutex<File>,
}

impl Log {
    /// Begins a new log.
    pub fn begin(path: &Path) -> Result<Log, String> {
        let file =
            File::create(path).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        Ok(Log { began: Instant::now(), file: Mutex::new(file) })
    }

    /// Writes only to the log, with the seconds since it began.
    pub fn note(&self, text: &str) {
        let line = format!("[{:8.2}] {text}\n", self.began.elapsed().as_secs_f64());
        self.raw(line.as_bytes());
    }

    /// Writes bytes only to the log, unchanged. Errors are ignored, because a failed write must not stop a test.
    pub fn raw(&self, bytes: &[u8]) {
        let _ = self.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(bytes);
    }

    /// Prints a line, and logs it.
    pub fn say(&self, text: &str) {
        eprintln!("vm: {text}");
        self.note(text);
    }

    /// Runs a step, and prints its duration if it was long.
    pub fn step<T>(
        &self,
        name: &str,
        work: impl FnOnce() -> Result<T, String>,
    ) -> Result<T, String> {
        self.note(&format!("{name} ..."));
        let began = Instant::now();
        let result = work();
        let took = began.elapsed();
        let text = format!("{name}: {:.1} s", took.as_secs_f64());
        match &result {
            Err(error) => self.note(&format!("{name}: failed: {error}")),
            Ok(_) if took > WORTH_SAYING => self.say(&text),
            Ok(_) => self.note(&text),
        }
        result
    }
}
