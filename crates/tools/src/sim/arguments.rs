//! Values of options that several commands have.

/// Maximum of `--jitter`, in microseconds.
const MOST_JITTER: f64 = 1e6;

/// Parses a number of microseconds.
pub fn microseconds(text: &str) -> Result<f64, String> {
    let allowed = 0.0..=MOST_JITTER;
    let value = text.parse().ok().filter(|us| allowed.contains(us));
    value.ok_or_else(|| format!("a number of microseconds from 0 to {MOST_JITTER}"))
}

/// Parses a change of a machine's parameter.
pub fn change(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(key, value)| !key.is_empty() && !value.is_empty());
    let (key, value) = parts.ok_or("KEY=VALUE, as in rail.gap_in=1.5")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}
