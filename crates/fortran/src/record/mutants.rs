//! Entries with one mistake each, which the record of their calls must reveal.

use super::arguments::HANDLES;

/// Kind of mistake in an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutation {
    /// Two arguments of the C function are swapped.
    Swapped,
    /// An argument of the C function is 0.
    Lost,
    /// A statement after the call is missing.
    Forgotten,
    /// A conversion is missing, or is the conversion of another handle type.
    Unconverted,
}

impl Mutation {
    /// All kinds of mistakes.
    pub const ALL: [Mutation; 4] =
        [Mutation::Swapped, Mutation::Lost, Mutation::Forgotten, Mutation::Unconverted];
}

/// Text before the name of the C function.
const CALL: &str = "rc = WEFT_C(";

/// Random numbers from a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

/// Returns a source of entries with a mistake in each, and the names of the entries that have a mistake.
pub fn mutated(source: &str, mutation: Mutation, seed: u64) -> (String, Vec<String>) {
    let mut random = Random(seed ^ (mutation as u64) << 32);
    let (mut out, mut names) = (String::new(), Vec::new());
    for (i, entry) in source.split("WEFT_ENTRY(").enumerate() {
        if i == 0 {
            out.push_str(entry);
            continue;
        }
        out.push_str("WEFT_ENTRY(");
        match mutant(entry, mutation, &mut random) {
            Some(text) => {
                let name = entry.split(", ").nth(1).unwrap_or_default();
                names.push(name.to_owned());
                out.push_str(&text);
            }
            None => out.push_str(entry),
        }
    }
    (out, names)
}

fn mutant(entry: &str, mutation: Mutation, random: &mut Random) -> Option<String> {
    match mutation {
        Mutation::Swapped | Mutation::Lost => {
            // The format is `rc = WEFT_C(MPI_Send)(buf_at, *count);`.
            let start = entry.find(CALL).or_else(|| entry.find("return WEFT_C("))?;
            let start = start + entry[start..].find(")(")? + 2;
            let end = start + entry[start..].find(");\n")?;
            let mut all = split(&entry[start..end]);
            if mutation == Mutation::Swapped {
                swap(&mut all, random)?;
            } else {
                let there: Vec<_> = (0..all.len()).filter(|&i| !is_absent(&all[i])).collect();
                let place = *there.get(random.below(there.len().max(1)))?;
                all[place] = "0".to_owned();
            }
            Some(format!("{}{}{}", &entry[..start], all.join(", "), &entry[end..]))
        }
        Mutation::Forgotten => {
            let call = entry.find(CALL)?;
            let lines: Vec<_> = entry[call..].lines().skip(1).filter(|line| sets(line)).collect();
            let line = *lines.get(random.below(lines.len().max(1)))?;
            Some(format!("{}{}", &entry[..call], entry[call..].replacen(line, "    ;", 1)))
        }
        Mutation::Unconverted => unconverted(entry, random),
    }
}

/// Returns true if a statement after the call returns a result to Fortran.
fn sets(line: &str) -> bool {
    let line = line.trim();
    let starts = ["*", "if (rc == MPI_SUCCESS", "weft_ierror", "weft_from_one"];
    starts.iter().any(|start| line.starts_with(start))
        && !line.contains("weft_begin")
        && !line.contains("weft_completed")
        && !line.contains("weft_arrived")
        || line.contains("_unlist(")
}

/// Splits arguments at commas outside of brackets.
fn split(arguments: &str) -> Vec<String> {
    let (mut all, mut depth) = (vec![String::new()], 0);
    for c in arguments.chars() {
        match c {
            '(' | '{' => depth += 1,
            ')' | '}' => depth -= 1,
            _ => {}
        }
        match (c, depth) {
            (',', 0) => all.push(String::new()),
            _ => all.last_mut().expect("at least one").push(c),
        }
    }
    all.iter().map(|one| one.trim().to_owned()).collect()
}

fn is_absent(argument: &str) -> bool {
    ["0", "NULL", ""].contains(&argument)
}

fn swap(all: &mut [String], random: &mut Random) -> Option<()> {
    let pairs = (0..all.len()).flat_map(|a| (a + 1..all.len()).map(move |b| (a, b)));
    // Swapping two arguments that only C has would change nothing.
    let differ = |a: &String, b: &String| a != b && !(is_absent(a) && is_absent(b));
    let pairs: Vec<_> = pairs.filter(|&(a, b)| differ(&all[a], &all[b])).collect();
    let &(a, b) = pairs.get(random.below(pairs.len().max(1)))?;
    all.swap(a, b);
    Some(())
}

fn unconverted(entry: &str, random: &mut Random) -> Option<String> {
    const PLAIN: [&str; 4] = ["weft_status(", "weft_buffer(", "weft_weights(", "weft_error_codes("];
    let mut places: Vec<(usize, String, String)> = Vec::new();
    for (at, _) in entry.match_indices("weft_") {
        let rest = &entry[at..];
        if let Some(plain) = PLAIN.iter().find(|plain| rest.starts_with(**plain)) {
            places.push((at, (*plain).to_owned(), "(".to_owned()));
        }
        for (i, (_, name)) in HANDLES.iter().enumerate() {
            let other = HANDLES[(i + 1) % HANDLES.len()].1;
            for end in ["in(", "out(", "list(", "unlist("] {
                let this = format!("weft_{name}_{end}");
                // The handle in a query about a communicator is not an argument of the C function.
                let asks = ["weft_peers(", "weft_dimensions("];
                if rest.starts_with(&this) && !asks.iter().any(|a| entry[..at].ends_with(a)) {
                    places.push((at, this, format!("weft_{other}_{end}")));
                }
            }
        }
    }
    let (at, this, other) = places.get(random.below(places.len().max(1)))?;
    Some(format!("{}{other}{}", &entry[..*at], &entry[at + this.len()..]))
}
