//! Text of numbers.

/// Formats a number with four significant digits, without trailing zeros.
pub fn digits(number: f64) -> String {
    if number == 0.0 || !number.is_finite() {
        return format!("{}", number.abs());
    }
    let before = number.abs().log10().floor() as i32 + 1;
    let places = (4 - before).max(0) as usize;
    let text = format!("{number:.places$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::digits;

    #[test]
    fn numbers_have_four_digits() {
        for (number, text) in
            [(5.80934, "5.809"), (9.6, "9.6"), (2049.0, "2049"), (-0.03217, "-0.03217")]
        {
            assert_eq!(digits(number), text);
        }
        assert_eq!(
            (digits(0.0), digits(-0.0), digits(1234567.0)),
            ("0".into(), "0".into(), "1234567".into())
        );
    }
}
