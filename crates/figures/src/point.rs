//! Single points of curves, for comparisons with programs that run in virtual time.

use super::lab::Lab;
use super::published::PublishedList;
use super::series::Series;

/// Place on a curve.
#[derive(Debug, PartialEq, Eq)]
struct CurvePoint<'t> {
    figure: &'t str,
    curve: &'t str,
    x: usize,
}

impl CurvePoint<'_> {
    /// Parses `FIGURE;CURVE;X`.
    fn parse(text: &str) -> Result<CurvePoint<'_>, String> {
        let wrong = || format!("'{text}' is not FIGURE;CURVE;X, as in fence-halo;Fence-RI;16");
        let (figure, rest) = text.split_once(';').ok_or_else(wrong)?;
        let (curve, x) = rest.rsplit_once(';').ok_or_else(wrong)?;
        Ok(CurvePoint { figure, curve, x: x.parse().map_err(|_| wrong())? })
    }

    fn series(&self) -> Result<Series, String> {
        let mut figures = super::documents().into_iter().flat_map(|document| document.figures);
        let figure = figures.find(|figure| figure.id == self.figure);
        let figure = figure.ok_or_else(|| format!("no figure is called {}", self.figure))?;
        let names: Vec<_> = figure.series.iter().map(|series| series.name).collect();
        let found = figure.series.iter().find(|series| series.name == self.curve);
        found.cloned().ok_or_else(|| {
            format!("{} has no curve '{}'; it has: {}", self.figure, self.curve, names.join("; "))
        })
    }
}

/// Simulates points of curves, each given as `FIGURE;CURVE;X`. Returns a line for each: the point and its value.
pub fn points(all: &[String]) -> Result<String, String> {
    let lab = Lab::quick(&PublishedList::load(None)?);
    let mut text = String::new();
    for given in all {
        let point = CurvePoint::parse(given)?;
        text += &format!("{given};{}\n", lab.of(&point.series()?, point.x)?);
    }
    Ok(text)
}

#[cfg(test)]
mod direct;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_name_curves() {
        let point = CurvePoint::parse("rendezvous-11a;MPI_Wait, no-async;512").unwrap();
        assert_eq!((point.curve, point.x), ("MPI_Wait, no-async", 512));
        assert_eq!(point.series().unwrap().machine, "rendezvous");
        assert!(CurvePoint::parse("rendezvous-11a;512").is_err());
        let unknown = CurvePoint::parse("fence-halo;x;16").unwrap().series();
        assert!(unknown.is_err_and(|why| why.contains("Fence-RI")));
    }
}
