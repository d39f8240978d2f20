//! Waits for messages that may be lost: the time after which a member asks, and a root repeats.

use std::time::{Duration, Instant};

/// A wait for a peer, which is reminded when the wait takes too long.
pub struct Awaited {
    since: Instant,
    /// Time of the next reminder.
    pub deadline: Instant,
    patience: Duration,
    reminders: u32,
}

impl Awaited {
    /// Begins a wait at `now`. The first reminder is due after `patience`.
    pub fn new(now: Instant, patience: Duration) -> Awaited {
        Awaited { since: now, deadline: now + patience, patience, reminders: 0 }
    }

    /// Notes a reminder at `now`. The next reminder is due after twice the time, at most `most`.
    pub fn reminded(&mut self, now: Instant, most: Duration) {
        self.reminders += 1;
        self.patience = (2 * self.patience).min(most);
        self.deadline = now + self.patience;
    }
}

/// The longest recent wait that ended without a reminder.
#[derive(Default)]
pub struct LongestWait(Duration);

impl LongestWait {
    /// Returns the time after which a peer is reminded: four times the longest wait, within bounds.
    pub fn patience(&self, least: Duration, most: Duration) -> Duration {
        match self.0 {
            Duration::ZERO => (4 * least).min(most),
            longest => (4 * longest).clamp(least, most),
        }
    }

    /// Updates the longest recent wait after a wait that has ended at `now`.
    pub fn learn(&mut self, awaited: &Awaited, now: Instant) {
        let faded = self.0 - self.0 / 8;
        let span = now.saturating_duration_since(awaited.since);
        self.0 = if awaited.reminders == 0 { faded.max(span) } else { faded };
    }
}
