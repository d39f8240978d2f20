//! Every interleaving of three ranks that keep the contract of the lines, within loom's bounds, and of ranks that break it.

use super::OperationPlaces;
use loom::cell::UnsafeCell;
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

const SIZE: usize = 3;
/// Number of operations: the third one uses the places of the first one again.
const OPERATIONS: u64 = 3;

/// A place: its flag, who waits for it, and one word of data. As on a fabric, only a flag that is seen orders accesses to the data.
/// The checker reports a write at the same time as another access to the data.
struct ModelPlace {
    flag: Mutex<u64>,
    bell: Condvar,
    data: UnsafeCell<u64>,
}

impl ModelPlace {
    fn new() -> ModelPlace {
        ModelPlace { flag: Mutex::new(0), bell: Condvar::new(), data: UnsafeCell::new(0) }
    }

    fn put(&self, number: u64, data: u64) {
        // SAFETY: by the contract nobody reads the place now. The model checker verifies this.
        self.data.with_mut(|place| unsafe { *place = data });
        *self.flag.lock().unwrap() = number;
        self.bell.notify_one();
    }

    fn until(&self, number: u64) {
        let mut flag = self.flag.lock().unwrap();
        while *flag < number {
            flag = self.bell.wait(flag).unwrap();
        }
    }

    fn read(&self) -> u64 {
        // SAFETY: by the contract nobody writes to the place now. The model checker verifies this.
        self.data.with(|place| unsafe { *place })
    }
}

/// The places of all ranks.
struct ModelLines {
    at_leader: Vec<ModelPlace>,
    at_others: Vec<Vec<ModelPlace>>,
}

impl ModelLines {
    fn new() -> Arc<ModelLines> {
        let places = |count: usize| (0..count).map(|_| ModelPlace::new()).collect();
        let at_others = (0..SIZE).map(|_| places(2)).collect();
        Arc::new(ModelLines { at_leader: places(2 * SIZE), at_others })
    }

    fn give(&self, rank: usize, number: u64) {
        let place = OperationPlaces { number }.of_data(rank, SIZE);
        self.at_leader[place].put(number, operand(rank, number));
    }

    fn receive(&self, rank: usize, number: u64) -> u64 {
        let place = &self.at_others[rank][OperationPlaces { number }.of_result()];
        place.until(number);
        place.read()
    }

    /// Takes the data of all ranks, which stay while rank 0 combines them, and releases the ranks.
    fn lead(&self, number: u64) {
        let places = OperationPlaces { number };
        let of = |rank: usize| &self.at_leader[places.of_data(rank, SIZE)];
        (1..SIZE).for_each(|rank| of(rank).until(number));
        let sum = operand(0, number) + (1..SIZE).map(|rank| of(rank).read()).sum::<u64>();
        assert_eq!(sum, total(number));
        (1..SIZE).for_each(|rank| self.at_others[rank][places.of_result()].put(number, sum));
    }
}

fn operand(rank: usize, number: u64) -> u64 {
    10 * number + rank as u64
}

fn total(number: u64) -> u64 {
    (0..SIZE).map(|rank| operand(rank, number)).sum()
}

/// Runs `other` on all ranks but rank 0, which leads all operations.
fn check(other: fn(&ModelLines, usize)) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(move || {
        let lines = ModelLines::new();
        let others: Vec<_> = (1..SIZE)
            .map(|rank| {
                let lines = lines.clone();
                thread::spawn(move || other(&lines, rank))
            })
            .collect();
        (1..=OPERATIONS).for_each(|number| lines.lead(number));
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

#[test]
fn loom_no_line_is_overwritten_before_it_is_read() {
    check(|lines, rank| {
        for number in 1..=OPERATIONS {
            lines.give(rank, number);
            assert_eq!(lines.receive(rank, number), total(number));
        }
    });
}

/// Checks that the model finds ranks that give again before they have their results.
#[test]
#[should_panic]
fn loom_ranks_that_do_not_wait_are_found() {
    check(|lines, rank| (1..=OPERATIONS).for_each(|number| lines.give(rank, number)));
}
