//! Memory that cannot be given back to the fabric yet, because peers may still read it.

/// A closure that tries to give memory back to the fabric. Returns true if the memory was given back.
type GiveBack<F> = Box<dyn FnMut(&F) -> bool>;

/// Invariant: each closure is called again until it has returned true, and is never called afterwards.
pub struct Parked<F>(Vec<GiveBack<F>>);

impl<F> Default for Parked<F> {
    fn default() -> Self {
        Parked(Vec::new())
    }
}

impl<F> Parked<F> {
    pub fn add(&mut self, give_back: impl FnMut(&F) -> bool + 'static) {
        self.0.push(Box::new(give_back));
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Gives back all memory that no peer may read any more.
    pub fn clear(&mut self, fabric: &F) {
        self.0.retain_mut(|give_back| !give_back(fabric));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn who_is_done_is_not_asked_again() {
        let mut parked: Parked<Cell<u32>> = Parked::default();
        let asked = Cell::new(0);
        for least in [1, 3] {
            parked.add(move |now: &Cell<u32>| {
                now.set(now.get() + 100);
                now.get() % 100 >= least
            });
        }
        parked.clear(&asked);
        assert_eq!((parked.len(), asked.get()), (2, 200));
        asked.set(1);
        parked.clear(&asked);
        assert_eq!((parked.len(), asked.get()), (1, 201));
        asked.set(3);
        parked.clear(&asked);
        assert_eq!((parked.len(), asked.get()), (0, 103));
        parked.clear(&asked);
        assert_eq!(asked.get(), 103);
    }
}
