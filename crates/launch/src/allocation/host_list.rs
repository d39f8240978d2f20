//! Compressed lists of hosts, as Slurm and Flux write them: `login,rack[0-1]n[08-11,20]`. Sources: Slurm, scontrol(1), "show
//! hostlist"; Flux RFC 29, "Hostlist Format".

use super::MAX_HOSTS;

/// Maximum depth of brackets within brackets.
const MAX_DEPTH: usize = 4;
/// Maximum number of brackets in the name of a host.
const MAX_BRACKETS: usize = 16;

/// Splits at the commas that are outside of brackets. Returns an error if brackets have no partner.
fn split(text: &str) -> Result<Vec<&str>, String> {
    let (mut words, mut depth, mut start) = (Vec::new(), 0usize, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.checked_sub(1).ok_or("there is a ] without [")?,
            ',' if depth == 0 => {
                words.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err("there is a [ without ]".into());
    }
    words.push(&text[start..]);
    Ok(words)
}

fn too_many() -> String {
    format!("it stands for more than {MAX_HOSTS} hosts")
}

/// Expands `08-11` or `7`, or returns `None` if the text is no range of numbers. Numbers keep the width of the first number.
fn range(text: &str) -> Option<Result<Vec<String>, String>> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_number(low) || !is_number(high) {
        return None;
    }
    let (Ok(first), Ok(last)) = (low.parse::<u64>(), high.parse::<u64>()) else {
        return Some(Err(format!("{text:?} has too many digits")));
    };
    if last < first {
        return Some(Err(format!("{text:?} ends before it begins")));
    }
    if last - first >= MAX_HOSTS as u64 {
        return Some(Err(too_many()));
    }
    let width = low.len();
    Some(Ok((first..=last).map(|number| format!("{number:0width$}")).collect()))
}

/// Expands a word of a list: each combination of the values of its brackets.
fn expand_word(word: &str, depth: usize) -> Result<Vec<String>, String> {
    let Some((before, rest)) = word.split_once('[') else { return Ok(vec![word.to_owned()]) };
    let mut open = 1;
    let end = rest.find(|letter| {
        open += i32::from(letter == '[') - i32::from(letter == ']');
        open == 0
    });
    let end = end.ok_or("there is a [ without ]")?;
    let mut values = Vec::new();
    for part in split(&rest[..end])? {
        values.extend(match range(part) {
            Some(range) => range?,
            None if part.contains('[') && depth < MAX_DEPTH => expand_word(part, depth + 1)?,
            None => return Err(format!("{part:?} in brackets is no number and no range")),
        });
        if values.len() > MAX_HOSTS {
            return Err(too_many());
        }
    }
    let tails = expand_word(&rest[end + 1..], depth)?;
    if values.len().saturating_mul(tails.len()) > MAX_HOSTS {
        return Err(too_many());
    }
    let combine = |value: &String| {
        tails.iter().map(|tail| format!("{before}{value}{tail}")).collect::<Vec<_>>()
    };
    Ok(values.iter().flat_map(combine).collect())
}

/// Expands a list to the names of hosts.
pub fn expand(list: &str) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for word in split(list)? {
        if word.is_empty() {
            return Err("a name is empty".into());
        }
        if word.matches('[').count() > MAX_BRACKETS {
            return Err(format!("a name has more than {MAX_BRACKETS} brackets"));
        }
        names.extend(expand_word(word, 0)?);
        if names.len() > MAX_HOSTS {
            return Err(too_many());
        }
    }
    Ok(names)
}

/// Expands a set of numbers, `0-3,8` or `[0-3,8]`.
pub fn numbers(set: &str) -> Result<Vec<u32>, String> {
    let bare = set.strip_prefix('[').and_then(|set| set.strip_suffix(']')).unwrap_or(set);
    let mut all = Vec::new();
    for part in bare.split(',') {
        let wrong = || format!("{part:?} is no number and no range");
        for number in range(part).ok_or_else(wrong)?? {
            all.push(number.parse().map_err(|_| wrong())?);
        }
        if all.len() > MAX_HOSTS {
            return Err(format!("there are more than {MAX_HOSTS} numbers"));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_expanded() {
        for (list, names) in [
            ("n1", "n1"),
            ("n1,n2.org", "n1 n2.org"),
            ("n[1-3]", "n1 n2 n3"),
            ("n[08-11,20],login", "n08 n09 n10 n11 n20 login"),
            ("n[8-11]", "n8 n9 n10 n11"),
            ("n[001,1,03-4]-ib", "n001-ib n1-ib n03-ib n04-ib"),
            ("a[0-1]b[0-1]", "a0b0 a0b1 a1b0 a1b1"),
            ("r[1-2]n[09-10].x.org,gpu7", "r1n09.x.org r1n10.x.org r2n09.x.org r2n10.x.org gpu7"),
            ("a[1[0-1],3]", "a10 a11 a3"),
        ] {
            assert_eq!(expand(list).unwrap().join(" "), names, "{list}");
        }
        assert_eq!(expand("n[0-65535]").unwrap().len(), MAX_HOSTS);
        assert_eq!(numbers("0-2,8").unwrap(), [0, 1, 2, 8]);
        assert_eq!(numbers("[4,6-7]").unwrap(), [4, 6, 7]);
    }

    #[test]
    fn wrong_and_huge_lists_are_refused() {
        for (list, words) in [
            ("", "a name is empty"),
            ("a,,b", "a name is empty"),
            ("n[1-2", "[ without ]"),
            ("n1]", "] without ["),
            ("n]1[", "] without ["),
            ("n[]", "\"\" in brackets"),
            ("n[1-]", "\"1-\" in brackets"),
            ("n[a-b]", "\"a-b\" in brackets"),
            ("n[3-1]", "ends before it begins"),
            ("n[1-99999999999999999999]", "too many digits"),
            ("n[0-999999]", "more than 65536 hosts"),
            ("n[0-18446744073709551615]", "more than 65536 hosts"),
            ("n[0-999]m[0-999]", "more than 65536 hosts"),
            ("a[0-40000],b[0-40000]", "more than 65536 hosts"),
            ("a[1[1[1[1[1[1]]]]]]", "in brackets"),
            (&"[1]".repeat(17), "more than 16 brackets"),
        ] {
            let error = expand(list).unwrap_err();
            assert!(error.contains(words), "{list}: {error}");
        }
        assert!(numbers("0-4294967295").unwrap_err().contains("more than"));
        assert!(numbers("4294967296").unwrap_err().contains("no number"));
        assert!(numbers("x").unwrap_err().contains("no number"));
    }
}
