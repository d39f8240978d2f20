//! Flights: writes, and messages that the fabric has queued, under way.

use weft_fabric::{Counter, Counters, Region};

/// Memory from which a write under way reads.
#[derive(Debug, Clone, Copy)]
pub enum From {
    /// The program's own memory, for as long as the request lasts.
    Program,
    Token(u16),
    /// A place where the segment was received.
    SegmentSlot(u16),
    Block(Region),
}

/// A write (or a message that the fabric has queued) under way.
pub struct StreamFlight {
    pub counter: Counter,
    pub target: u64,
    pub from: From,
    pub send: u32,
}

/// Invariant: a counter that was taken belongs to one flight until the flight is complete, or did not begin; then it is used again.
#[derive(Default)]
pub struct StreamFlights {
    under_way: Vec<StreamFlight>,
    idle: Vec<Counter>,
}

impl StreamFlights {
    pub fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Returns a counter for a flight, and the value at which the flight is complete.
    pub fn counter(&mut self, counters: &Counters) -> (Counter, u64) {
        let counter = self.idle.pop().unwrap_or_else(|| counters.allocate());
        (counter, counters.value(counter) + 1)
    }

    /// Returns a counter to the pool: its flight did not begin, or is complete.
    pub fn give_back(&mut self, counter: Counter) {
        self.idle.push(counter);
    }

    /// Begins a flight. Returns the flight if it is already complete.
    pub fn begin(&mut self, counters: &Counters, flight: StreamFlight) -> Option<StreamFlight> {
        if counters.value(flight.counter) >= flight.target {
            self.idle.push(flight.counter);
            return Some(flight);
        }
        self.under_way.push(flight);
        None
    }

    /// Returns the next flight that is complete, from `at` on. The next call continues there.
    pub fn next_over(&mut self, counters: &Counters, at: &mut usize) -> Option<StreamFlight> {
        while let Some(flight) = self.under_way.get(*at) {
            if counters.value(flight.counter) >= flight.target {
                let flight = self.under_way.swap_remove(*at);
                self.idle.push(flight.counter);
                return Some(flight);
            }
            *at += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_serves_one_flight_at_a_time() {
        let counters = Counters::new();
        let mut flights = StreamFlights::default();
        let fly = |flights: &mut StreamFlights, send| {
            let (counter, target) = flights.counter(&counters);
            let flight = StreamFlight { counter, target, from: From::Program, send };
            assert!(flights.begin(&counters, flight).is_none());
            counter
        };
        let [first, second, third] = [0, 1, 2].map(|send| fly(&mut flights, send));
        assert!(first != second && second != third && first != third);
        counters.add(third, 1);
        counters.add(first, 1);
        let mut over = Vec::new();
        let mut at = 0;
        while let Some(flight) = flights.next_over(&counters, &mut at) {
            over.push(flight.send);
        }
        over.sort_unstable();
        assert_eq!((over, flights.is_empty()), (vec![0, 2], false));
        assert!([first, third].contains(&fly(&mut flights, 3)));
        let (counter, target) = flights.counter(&counters);
        counters.add(counter, 1);
        let flight = StreamFlight { counter, target, from: From::Program, send: 4 };
        assert_eq!(flights.begin(&counters, flight).map(|flight| flight.send), Some(4));
    }
}
