//! Flights: writes under way, and messages that the fabric has queued.

use weft_fabric::{Counter, CounterTarget, Counters, Region};

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
    pub end: CounterTarget,
    pub from: From,
    pub send: u32,
}

/// Invariant: a counter that was taken belongs to one flight. The counter is used again once the flight is complete, or if the
/// flight did not begin.
#[derive(Default)]
pub struct StreamFlights {
    under_way: Vec<StreamFlight>,
    idle: Vec<Counter>,
}

impl StreamFlights {
    pub fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Prepares a flight. Takes a counter from the pool, and returns it with its value at the end of the flight.
    pub fn prepare(&mut self, counters: &Counters) -> CounterTarget {
        let counter = self.idle.pop().unwrap_or_else(|| counters.allocate());
        CounterTarget::new(counters, counter)
    }

    /// Returns to the pool a counter whose flight did not begin or is complete.
    pub fn give_back(&mut self, counter: Counter) {
        self.idle.push(counter);
    }

    /// Begins a flight. Returns the flight if it is already complete.
    pub fn begin(&mut self, counters: &Counters, flight: StreamFlight) -> Option<StreamFlight> {
        if flight.end.has_come(counters) {
            self.idle.push(flight.end.counter);
            return Some(flight);
        }
        self.under_way.push(flight);
        None
    }

    /// Returns the next complete flight at or after position `at`. Moves `at` to the position from which the next call continues.
    pub fn next_over(&mut self, counters: &Counters, at: &mut usize) -> Option<StreamFlight> {
        while let Some(flight) = self.under_way.get(*at) {
            if flight.end.has_come(counters) {
                let flight = self.under_way.swap_remove(*at);
                self.idle.push(flight.end.counter);
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
            let mut end = flights.prepare(&counters);
            end.one_more();
            assert!(
                flights.begin(&counters, StreamFlight { end, from: From::Program, send }).is_none()
            );
            end.counter
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
        let mut end = flights.prepare(&counters);
        end.one_more();
        counters.add(end.counter, 1);
        let flight = StreamFlight { end, from: From::Program, send: 4 };
        assert_eq!(flights.begin(&counters, flight).map(|flight| flight.send), Some(4));
    }
}
