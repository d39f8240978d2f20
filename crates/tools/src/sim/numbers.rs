//! Lists of numbers in the form of a command line.

use std::str::FromStr;

/// A list: `2,4,8`, `2..16` (with both ends), `2..1024x2` (each number is twice the previous number), or several of these forms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberList(pub Vec<usize>);

/// Maximum length of a list. More numbers would not fit on a page.
const MOST: usize = 1000;

const FORMS: &str = "numbers and ranges, as in 2,4,8 or 2..16 or 2..1024x2";

impl FromStr for NumberList {
    type Err = String;

    fn from_str(text: &str) -> Result<NumberList, String> {
        let mut numbers = Vec::new();
        for part in text.split(',') {
            range(part.trim(), &mut numbers)?;
        }
        Ok(NumberList(numbers))
    }
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| match text {
        "" => format!("a number is missing; allowed are {FORMS}"),
        _ => format!("{text:?} is no whole number; allowed are {FORMS}"),
    })
}

fn range(text: &str, numbers: &mut Vec<usize>) -> Result<(), String> {
    let mut push = |n: usize| {
        numbers.push(n);
        match numbers.len() {
            ..=MOST => Ok(()),
            _ => Err(format!("more than {MOST} numbers; use a factor, as in 2..1024x2")),
        }
    };
    let Some((first, rest)) = text.split_once("..") else { return push(number(text)?) };
    let (last, factor) = match rest.split_once('x') {
        Some((last, factor)) => (last, Some(number(factor)?)),
        None => (rest, None),
    };
    let (first, last) = (number(first)?, number(last)?);
    if first > last {
        return Err(format!("{first}..{last} goes down; write {last}..{first}"));
    }
    let Some(factor) = factor else {
        return (first..=last).try_for_each(push);
    };
    if factor < 2 || first == 0 {
        return Err(format!("{text}: from 1 on, and with a factor of 2 or more"));
    }
    let mut next = Some(first);
    while let Some(n) = next.filter(|&n| n <= last) {
        push(n)?;
        next = n.checked_mul(factor);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges_are_read() {
        let read = |text: &str| text.parse::<NumberList>().unwrap().0;
        assert_eq!(read("2,4,8"), [2, 4, 8]);
        assert_eq!(read("2..5"), [2, 3, 4, 5]);
        assert_eq!(read("7..7"), [7]);
        assert_eq!(read("2..1024x4"), [2, 8, 32, 128, 512]);
        assert_eq!(read("1, 3..4, 10..100x10"), [1, 3, 4, 10, 100]);
        assert_eq!(read("0"), [0]);
        assert_eq!(read(&format!("{0}..{0}x2", usize::MAX)), [usize::MAX]);
    }

    #[test]
    fn what_is_malformed_is_named() {
        let why = |text: &str| text.parse::<NumberList>().unwrap_err();
        for text in ["", "2,", "..5", "2..", "2..8x"] {
            assert_eq!(why(text), format!("a number is missing; allowed are {FORMS}"), "{text}");
        }
        for (text, part) in [("two", "two"), ("-1", "-1"), ("2-16", "2-16"), ("2..x2", "")] {
            assert!(part.is_empty() || why(text).contains(&format!("{part:?}")), "{text}");
            assert!(why(text).contains(FORMS), "{text}");
        }
        assert_eq!(why("16..2"), "16..2 goes down; write 2..16");
        for text in ["0..8x2", "2..8x1", "2..8x0"] {
            assert_eq!(why(text), format!("{text}: from 1 on, and with a factor of 2 or more"));
        }
        assert!(why("1..1000000").contains("more than 1000 numbers"));
    }
}
