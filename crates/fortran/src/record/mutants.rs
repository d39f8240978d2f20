//! Entries that are wrong in one place each: what the record of their calls must tell.

use super::arguments::HANDLES;

/// What is done to an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutation {
    /// Two arguments of C's function change places.
    Swapped,
    /// An argument of C's function is 0.
    Lost,
    /// A statement behind the call is left out.
    Forgotten,
    /// A conversion is left out, or is that of another handle.
    Unconverted,
}

impl Mutation {
    /// All of them.
    pub const ALL: [Mutation; 4] =
        [Mutation::Swapped, Mutation::Lost, Mutation::Forgotten, Mutation::Unconverted];
}

/// Text before the name of C's function.
const CALL: &str = "rc = WEFT_C(";

/// Numbers from a seed (SplitMix64).
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

/// A source of entries with one mistake in each, and the entries that have one.
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
            // Such as `rc = WEFT_C(MPI_Send)(buf_at, *count);`.
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

/// Whether a statement behind the call gives something to Fortran.
fn sets(line: &str) -> bool {
    let line = line.trim();
    let starts = ["*", "if (rc == MPI_SUCCESS", "weft_ierror", "weft_from_one"];
    starts.iter().any(|start| line.starts_with(start))
        && !line.contains("weft_begin")
        && !line.contains("weft_completed")
        && !line.contains("weft_arrived")
        || line.contains("_unlist(")
}

/// Arguments between commas that stand in no brackets.
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
    // Two that C alone has are the same by any order.
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
                // What is asked of a communicator is no argument.
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
