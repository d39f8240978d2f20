//! Conversion of measured times to the words of the list of published numbers, such as "faster" or "similar".

use super::published::FigureValue;

/// Maximum ratio of two times that count as similar.
pub const ALIKE: f64 = 1.005;

/// Describes whether `name` is faster or slower than a competitor. Each pair has the time of `name` and then the time of the
/// competitor.
pub fn order(name: &str, pairs: &[(f64, f64)]) -> FigureValue {
    order_beyond(ALIKE, name, pairs)
}

/// Compares as [`order`] does, but two times count as similar if their ratio is at most `alike`.
pub fn order_beyond(alike: f64, name: &str, pairs: &[(f64, f64)]) -> FigureValue {
    let count = |holds: &dyn Fn(f64, f64) -> bool| pairs.iter().filter(|p| holds(p.0, p.1)).count();
    let (slower, faster) = (count(&|a, b| a > b * alike), count(&|a, b| b > a * alike));
    let all = pairs.len();
    FigureValue::Word(match (slower, faster) {
        (s, _) if s == all => format!("{name} slower"),
        (_, f) if f == all => format!("{name} faster"),
        (0, 0) => "similar".to_owned(),
        (s, f) => format!("{name} slower in {s} of {all}, faster in {f}"),
    })
}

/// Returns the name with the shortest time.
pub fn fastest(times: &[(&'static str, f64)]) -> &'static str {
    let least = times.iter().min_by(|a, b| a.1.total_cmp(&b.1));
    least.map_or("nobody", |(name, _)| name)
}

/// Lists the names, each with its sizes: `A at 8 and 16, B at 32`. If there is only one name, returns only the name.
pub fn grouped(all: &[(usize, &str)]) -> String {
    let mut groups: Vec<(&str, Vec<usize>)> = Vec::new();
    for &(at, name) in all {
        match groups.iter_mut().find(|group| group.0 == name) {
            Some(group) => group.1.push(at),
            None => groups.push((name, vec![at])),
        }
    }
    if let [(name, _)] = groups[..] {
        return name.to_owned();
    }
    let list = |places: &[usize]| {
        let places: Vec<_> = places.iter().map(usize::to_string).collect();
        match places.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
            _ => places.concat(),
        }
    };
    let texts: Vec<_> = groups.iter().map(|(name, at)| format!("{name} at {}", list(at))).collect();
    texts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_hold_only_if_they_hold_always() {
        let word = |pairs: &[(f64, f64)]| order("A", pairs).to_string();
        assert_eq!(word(&[(2.0, 1.0), (3.0, 1.0)]), "A slower");
        assert_eq!(word(&[(0.5, 1.0)]), "A faster");
        assert_eq!(word(&[(1.0, 1.001), (1.001, 1.0)]), "similar");
        assert_eq!(word(&[(2.0, 1.0), (1.0, 1.0)]), "A slower in 1 of 2, faster in 0");
        assert_eq!(fastest(&[("A", 2.0), ("B", 1.0)]), "B");
    }

    #[test]
    fn one_name_everywhere_is_one_word() {
        assert_eq!(grouped(&[(8, "A"), (16, "A")]), "A");
        assert_eq!(
            grouped(&[(8, "A"), (16, "B"), (32, "A"), (64, "A")]),
            "A at 8, 32 and 64; B at 16"
        );
    }
}
