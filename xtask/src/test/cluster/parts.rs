//! Reports of each test and each part. The host counts the tests in these reports. The reports also show times to a reader.

use std::time::Instant;

/// Text before the name of a test that passed.
const OK: &str = "ok   ";

/// Tests in parts. If a test fails, this is reported immediately and the other tests continue, so one boot shows all failures.
pub struct TestParts {
    /// Text that the name of a part must contain. Other parts are left out.
    only: String,
    began: Instant,
    passed: usize,
    failed: Vec<String>,
}

impl TestParts {
    pub fn new(only: &str) -> TestParts {
        TestParts { only: only.to_owned(), began: Instant::now(), passed: 0, failed: Vec::new() }
    }

    /// Runs a group of tests, and then prints the time of the group.
    pub fn part(
        &mut self,
        name: &str,
        tests: impl FnOnce(&mut TestParts) -> Result<(), String>,
    ) -> Result<(), String> {
        if !name.contains(&self.only) {
            return Ok(());
        }
        let began = Instant::now();
        println!("-- {name}");
        let result = tests(self);
        println!("-- {name}: {:.1} s", began.elapsed().as_secs_f64());
        result
    }

    /// Runs a test. Its result is shown after its name.
    pub fn test(&mut self, name: &str, test: impl FnOnce() -> Result<String, String>) {
        let began = Instant::now();
        let result = test();
        let seconds = began.elapsed().as_secs_f64();
        match result {
            Ok(more) if more.is_empty() => println!("{OK}{name} ({seconds:.1} s)"),
            Ok(more) => println!("{OK}{name} ({seconds:.1} s, {more})"),
            Err(error) => {
                println!("FAILED {name} ({seconds:.1} s): {error}");
                return self.failed.push(name.to_owned());
            }
        }
        self.passed += 1;
    }

    /// Ends the tests. Returns an error if a test failed, or if no test ran.
    pub fn end(self) -> Result<(), String> {
        println!("-- all: {:.1} s", self.began.elapsed().as_secs_f64());
        match (self.passed, &self.failed[..]) {
            (0, []) => Err("no test ran".to_owned()),
            (_, []) => Ok(()),
            (passed, failed) => {
                Err(format!("{passed} passed, {} failed: {}", failed.len(), failed.join("; ")))
            }
        }
    }
}

/// Counts the tests that passed, in the output of a single machine or of the first of two machines.
pub fn count(output: &str) -> Result<usize, String> {
    let passed = |line: &&str| line.strip_prefix("vm0| ").unwrap_or(line).starts_with(OK);
    match output.lines().filter(passed).count() {
        0 => Err("no test ran".to_owned()),
        n => Ok(n),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_passed_are_counted_and_none_is_an_error() {
        assert_eq!(count("ok   a (1 s)\nvm0| ok   b (2 s)\nFAILED c\nlook ok   d\n"), Ok(2));
        assert!(count("FAILED ok   a\n").is_err());
    }

    #[test]
    fn a_failure_ends_nothing_but_the_whole_fails() {
        let mut parts = TestParts::new("");
        let mut ran = 0;
        for result in [Ok(String::new()), Err("no".to_owned()), Ok("more".to_owned())] {
            parts.test("x", || {
                ran += 1;
                result
            });
        }
        assert_eq!(ran, 3);
        assert_eq!(parts.end().unwrap_err(), "2 passed, 1 failed: x");
        assert!(TestParts::new("").end().is_err());
    }
}
