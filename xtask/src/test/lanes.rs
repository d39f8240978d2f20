//! Parallel work on two processors.

use std::sync::Mutex;

/// Calls `run` for each of `pieces`, two at a time. The results are in the order of the pieces.
pub fn two_at_a_time<P: Sync, R: Send>(pieces: &[P], run: impl Fn(&P) -> R + Sync) -> Vec<R> {
    let queue = Mutex::new(pieces.iter().enumerate());
    let lane = || {
        let next = || queue.lock().ok()?.next();
        std::iter::from_fn(next).map(|(place, piece)| (place, run(piece))).collect::<Vec<_>>()
    };
    let mut results = std::thread::scope(|scope| {
        let other = scope.spawn(lane);
        let mut results = lane();
        results.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        results
    });
    results.sort_by_key(|(place, _)| *place);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::two_at_a_time;
    use std::sync::Barrier;

    #[test]
    fn two_pieces_are_under_way_and_results_keep_their_order() {
        let barrier = Barrier::new(2);
        let squares = two_at_a_time(&[1, 2, 3, 4, 5, 6], |number| {
            barrier.wait();
            number * number
        });
        assert_eq!(squares, [1, 4, 9, 16, 25, 36]);
        assert!(two_at_a_time(&[0; 0], |number| *number).is_empty());
    }
}
