//! Judgement of predictions by measured times, as a table for each call.

/// Factor between predicted and measured time beyond which a prediction is marked.
const TOLERANCE: f64 = 1.3;

/// Predicted and measured time of an algorithm, in microseconds.
#[derive(Debug, Clone)]
pub struct CheckedChoice {
    pub name: String,
    /// `None` if the model and the map do not cover the algorithm.
    pub predicted: Option<f64>,
    /// Error: the reason why the job failed.
    pub measured: Result<f64, String>,
}

impl CheckedChoice {
    /// Returns the measured time, infinite if the job failed.
    fn us(&self) -> f64 {
        *self.measured.as_ref().unwrap_or(&f64::INFINITY)
    }

    /// Returns the measured time divided by the predicted time, if both exist.
    fn ratio(&self) -> Option<f64> {
        let measured = self.measured.as_ref().ok()?;
        self.predicted.filter(|&us| us > 0.0).map(|us| measured / us)
    }

    /// Tests whether predicted and measured time differ by more than the tolerance.
    fn is_off(&self) -> bool {
        self.ratio().is_some_and(|ratio| !(1.0 / TOLERANCE..=TOLERANCE).contains(&ratio))
    }
}

/// A call with all algorithms that may serve the call.
#[derive(Debug, Clone)]
pub struct CheckedCase {
    pub title: String,
    /// Name of the algorithm that the library chooses.
    pub chosen: String,
    pub choices: Vec<CheckedChoice>,
}

impl CheckedCase {
    /// Returns the algorithms in ascending order of measured time, the failed algorithms last.
    fn in_order(&self) -> Vec<&CheckedChoice> {
        let mut choices: Vec<_> = self.choices.iter().collect();
        choices.sort_by(|a, b| a.us().total_cmp(&b.us()));
        choices
    }

    /// Returns the time of the chosen algorithm divided by the time of the quickest, if the chosen algorithm has a time.
    fn loss(&self) -> Option<f64> {
        let chosen = self.choices.iter().find(|choice| choice.name == self.chosen)?;
        let quickest = self.in_order().first()?.us();
        Some(chosen.us() / quickest).filter(|loss| loss.is_finite())
    }

    /// Returns the table of the call.
    fn print(&self) -> String {
        let mut text = format!(
            "{}\n  {:24} {:>12} {:>12} {:>7}\n",
            self.title, "algorithm", "predicted us", "measured us", "ratio"
        );
        for (place, choice) in self.in_order().into_iter().enumerate() {
            let predicted = choice.predicted.map_or("-".to_owned(), |us| format!("{us:.2}"));
            let measured = match &choice.measured {
                Ok(us) => format!("{us:.2}"),
                Err(_) => "failed".to_owned(),
            };
            let ratio = choice.ratio().map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
            let mark = if choice.is_off() { "*" } else { " " };
            let mut notes = Vec::new();
            if choice.name == self.chosen {
                notes.push("chosen");
            }
            match &choice.measured {
                Ok(_) if place == 0 => notes.push("quickest"),
                Err(why) => notes.push(why),
                Ok(_) => {}
            }
            let line = format!(
                "  {:24} {predicted:>12} {measured:>12} {ratio:>7} {mark} {}",
                choice.name,
                notes.join(", ")
            );
            text += line.trim_end();
            text.push('\n');
        }
        if let Some(loss) = self.loss() {
            text += &format!("  chosen/quickest {loss:.2}\n");
        }
        text
    }
}

/// Returns the tables of all calls, and a summary.
pub fn print(cases: &[CheckedCase]) -> String {
    let mut text = String::new();
    for case in cases {
        text += &case.print();
        text.push('\n');
    }
    text + &summary(cases)
}

/// Returns the number of predictions that are off, and the calls for which the choice costs more than the tolerance.
fn summary(cases: &[CheckedCase]) -> String {
    let ratios = || cases.iter().flat_map(|case| &case.choices).filter(|c| c.ratio().is_some());
    let (all, off) = (ratios().count(), ratios().filter(|choice| choice.is_off()).count());
    let mut text = format!("* measured/predicted above {TOLERANCE} or below 1/{TOLERANCE}: ");
    text += &format!("{off} of {all} predictions\n");
    let failed =
        cases.iter().flat_map(|case| &case.choices).filter(|c| c.measured.is_err()).count();
    if failed > 0 {
        text += &format!("failed: {failed} measurements\n");
    }
    let mut losses: Vec<_> = cases.iter().filter_map(|case| Some((case.loss()?, case))).collect();
    let number = losses.len();
    losses.retain(|(loss, _)| *loss > TOLERANCE);
    losses.sort_by(|a, b| b.0.total_cmp(&a.0));
    text += &format!("chosen/quickest above {TOLERANCE}: {} of {number} calls\n", losses.len());
    for (loss, case) in losses {
        let quickest = &case.in_order()[0].name;
        text += &format!("  {loss:5.2}  {}: {} for {quickest}\n", case.title, case.chosen);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(name: &str, predicted: Option<f64>, measured: f64) -> CheckedChoice {
        CheckedChoice { name: name.to_owned(), predicted, measured: Ok(measured) }
    }

    fn case(chosen: &str) -> CheckedCase {
        let mut choices = vec![
            choice("MPI-BINOMIAL", Some(9.1), 14.3),
            choice("SHM-READ-WHOLE", Some(11.7), 6.0),
            choice("SHM-SLICES", Some(10.0), 13.0),
            choice("MPI-CHAIN", None, 20.0),
            choice("MPI-FLAT", Some(12.0), 0.0),
        ];
        choices[4].measured = Err("no memory".to_owned());
        CheckedCase { title: "reduce".to_owned(), chosen: chosen.to_owned(), choices }
    }

    #[test]
    fn predictions_beyond_the_tolerance_are_marked_in_both_directions() {
        let off: Vec<bool> = case("").choices.iter().map(CheckedChoice::is_off).collect();
        assert_eq!(off, [true, true, false, false, false]);
        let text = case("MPI-BINOMIAL").print();
        let line = |name: &str| text.lines().find(|line| line.contains(name)).unwrap().to_owned();
        assert!(line("MPI-BINOMIAL").ends_with("1.57 * chosen"), "{text}");
        assert!(line("SHM-READ-WHOLE").ends_with("0.51 * quickest"), "{text}");
        assert!(line("SHM-SLICES").ends_with("1.30"), "{text}");
        assert!(line("MPI-CHAIN").ends_with("20.00       -"), "{text}");
        assert!(line("MPI-FLAT").ends_with("failed       -   no memory"), "{text}");
        let order: Vec<_> = case("").in_order().iter().map(|c| c.name.clone()).collect();
        assert_eq!(order[0], "SHM-READ-WHOLE");
        assert_eq!(order[4], "MPI-FLAT");
    }

    #[test]
    fn the_loss_of_a_choice_is_its_time_over_the_quickest() {
        assert_eq!(case("SHM-READ-WHOLE").loss(), Some(1.0));
        assert!((case("MPI-BINOMIAL").loss().unwrap() - 14.3 / 6.0).abs() < 1e-9);
        assert_eq!(case("MPI-FLAT").loss(), None);
        let text = summary(&[case("SHM-READ-WHOLE"), case("MPI-BINOMIAL")]);
        assert!(text.contains("4 of 6 predictions"), "{text}");
        assert!(
            text.contains("1 of 2 calls\n   2.38  reduce: MPI-BINOMIAL for SHM-READ-WHOLE\n"),
            "{text}"
        );
    }
}
