//! Error codes of the library (MPI 5.0, section 9.4): a code for each recent failure, so that MPI_Error_string describes the
//! failure. The string of a class is always the same.
//!
//! ```text
//!   bit   31  30   29         8   7         0
//!         | 0 | 1 | number (22) | class (8) |
//! ```
//! The code contains the class in its lowest byte. So the class is known even for an old code, and a process that exits with the
//! code exits with the class. Texts are kept for the last [`KEPT`] different failures.

use crate::chapter_state::ChapterState;
use crate::error_texts::of_class;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::c_int;

/// Maximum number of failures whose texts are kept, which take about 50 KiB.
const KEPT: usize = 256;
const OURS: c_int = 1 << 30;
const NUMBER_SHIFT: u32 = 8;
const NUMBERS: c_int = (1 << 22) - 1;
const CLASS: c_int = 0xff;

/// Latest failures of this process.
pub static DETAILS: ChapterState<RefCell<Details>> = ChapterState::new(RefCell::new(Details::NONE));

/// Latest failures of a process.
pub struct Details {
    /// Codes and texts, the latest at the end.
    kept: VecDeque<(c_int, Box<str>)>,
    /// Number in the last code.
    number: c_int,
}

/// Returns the class of a code of the library.
pub fn class(code: c_int) -> Option<c_int> {
    let class = code & CLASS;
    let ours = code & OURS != 0 && code > 0 && class > 0 && (code ^ OURS) >> NUMBER_SHIFT > 0;
    (ours && of_class(class).is_some()).then_some(class)
}

impl Details {
    const NONE: Details = Details { kept: VecDeque::new(), number: 0 };

    /// Returns a code for a failure of this class. A recent failure with the same text has the same code.
    pub fn code(&mut self, class: c_int, words: &str) -> c_int {
        if !(1..=CLASS).contains(&class) {
            return class;
        }
        let same = |(code, kept): &(c_int, Box<str>)| code & CLASS == class && **kept == *words;
        if let Some(at) = self.kept.iter().position(same)
            && let Some(again) = self.kept.remove(at)
        {
            let code = again.0;
            self.kept.push_back(again);
            return code;
        }
        self.number = self.number % NUMBERS + 1;
        let code = OURS | self.number << NUMBER_SHIFT | class;
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back((code, words.into()));
        code
    }

    /// Returns the text of a failure, if it is still kept.
    pub fn words(&self, code: c_int) -> Option<&str> {
        self.kept.iter().find(|kept| kept.0 == code).map(|kept| &*kept.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constants::*;

    #[test]
    fn each_failure_has_its_code_and_its_class_outlives_its_words() {
        let mut details = Details::NONE;
        let first = details.code(MPI_ERR_RANK, "the first");
        assert_eq!(details.words(first), Some("the first"));
        assert_eq!(details.code(MPI_ERR_RANK, "the first"), first);
        assert_ne!(details.code(MPI_ERR_TAG, "the first"), first);
        let codes: Vec<_> =
            (0..KEPT).map(|i| details.code(MPI_ERR_COUNT, &i.to_string())).collect();
        assert_eq!(details.kept.len(), KEPT);
        assert_eq!(details.words(first), None);
        assert_eq!(class(first), Some(MPI_ERR_RANK));
        for (i, &code) in codes.iter().enumerate() {
            assert_eq!(details.words(code), Some(&*i.to_string()));
            assert!(code > MPI_ERR_LASTCODE && class(code) == Some(MPI_ERR_COUNT));
        }
    }

    #[test]
    fn numbers_begin_again() {
        let mut details = Details { number: NUMBERS - 1, ..Details::NONE };
        let codes = ["a", "b", "c"].map(|words| details.code(MPI_ERR_TAG, words));
        assert!(codes.iter().all(|&code| code > 0 && class(code) == Some(MPI_ERR_TAG)));
        assert_eq!(codes.map(|code| details.words(code).unwrap().to_owned()), ["a", "b", "c"]);
    }

    #[test]
    fn other_numbers_are_no_codes_of_ours() {
        let others = [0, -1, MPI_ERR_RANK, MPI_ERR_LASTCODE + 1, OURS, OURS | 6, c_int::MIN, -2];
        for code in others.into_iter().chain([OURS | 1 << NUMBER_SHIFT, OURS | 1 << 8 | 255]) {
            assert_eq!(class(code), None, "{code:#x}");
        }
        assert_eq!({ Details::NONE }.code(MPI_T_ERR_INVALID, "x"), MPI_T_ERR_INVALID);
    }
}
