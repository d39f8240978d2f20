//! The announced wait of a slot, as words. The rank writes it before it rests, and the simulation reads it at the rest.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use weft_fabric::{AnnouncedWait, AwaitedCounter, AwaitedMessage, Counter, Head, HeadPattern};

/// Number of words of a wait. Longer waits are not announced.
const WORDS: usize = 512;

/// Words of a pattern, of a posted receive, and of an awaited counter.
const PATTERN: usize = 6;
const MESSAGE: usize = PATTERN + 3;
const COUNTER: usize = 4;

/// Words before the lists: `acts`, lengths of both lists, and the pattern of kept messages.
const FIRST: usize = 3 + PATTERN;

/// The announced wait of a rank. It belongs to the side that runs.
#[repr(C)]
pub struct SlotWait {
    /// Number of words; 0 if no wait is announced.
    used: AtomicU32,
    words: [AtomicU64; WORDS],
}

/// An announced wait that was read from a slot. The fields are those of [`AnnouncedWait`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of `AnnouncedWait`")]
pub struct RestingWait {
    pub messages: Vec<AwaitedMessage>,
    pub kept: HeadPattern,
    pub counters: Vec<AwaitedCounter>,
    pub acts: bool,
}

/// Returns the word of an optional number.
fn optional(number: Option<u64>) -> u64 {
    number.map_or(0, |number| number + 1)
}

fn pattern_words(pattern: &HeadPattern) -> [u64; PATTERN] {
    let ([a, b, c], [d, e, f]) = (pattern.head.0, pattern.mask.0);
    [a, b, c, d, e, f]
}

fn message_words(message: &AwaitedMessage) -> [u64; MESSAGE] {
    let [a, b, c, d, e, f] = pattern_words(&message.pattern);
    let from = optional(message.from.map(|from| from as u64));
    let quiet = optional(message.quiet.map(|len| len as u64));
    [from, a, b, c, d, e, f, quiet, u64::from(message.counter.0)]
}

fn counter_words(awaited: &AwaitedCounter) -> [u64; COUNTER] {
    let immediate = optional(awaited.immediate.map(u64::from));
    [u64::from(awaited.counter.0), immediate, awaited.missing, u64::from(awaited.matches)]
}

impl SlotWait {
    /// Announces a wait, unless it is too long.
    pub fn announce(&self, wait: &AnnouncedWait<'_>) {
        self.clear();
        let (messages, counters) = (wait.messages.len(), wait.counters.len());
        if FIRST + messages * MESSAGE + counters * COUNTER > WORDS {
            return;
        }
        let first = [u64::from(wait.acts), messages as u64, counters as u64].into_iter();
        let all = first
            .chain(pattern_words(&wait.kept))
            .chain(wait.messages.iter().flat_map(message_words))
            .chain(wait.counters.iter().flat_map(counter_words));
        let mut used = 0;
        for (place, word) in self.words.iter().zip(all) {
            place.store(word, Ordering::Relaxed);
            used += 1;
        }
        self.used.store(used, Ordering::Relaxed);
    }

    /// Withdraws the announcement.
    pub fn clear(&self) {
        self.used.store(0, Ordering::Relaxed);
    }

    /// Takes the announced wait. Returns `None` if there is none, or if the program has overwritten it.
    pub fn take(&self) -> Option<RestingWait> {
        let used = (self.used.swap(0, Ordering::Relaxed) as usize).min(WORDS);
        let mut words = self.words[..used].iter().map(|word| word.load(Ordering::Relaxed));
        let mut next = || words.next();
        let (acts, messages, counters) = (next()?, next()? as usize, next()? as usize);
        if messages > WORDS || counters > WORDS {
            return None;
        }
        let mut wait = RestingWait {
            kept: take_pattern(&mut next)?,
            acts: acts != 0,
            ..RestingWait::default()
        };
        for _ in 0..messages {
            wait.messages.push(take_message(&mut next)?);
        }
        for _ in 0..counters {
            wait.counters.push(take_counter(&mut next)?);
        }
        Some(wait)
    }
}

fn take_pattern(next: &mut impl FnMut() -> Option<u64>) -> Option<HeadPattern> {
    let head = Head([next()?, next()?, next()?]);
    Some(HeadPattern { head, mask: Head([next()?, next()?, next()?]) })
}

fn take_message(next: &mut impl FnMut() -> Option<u64>) -> Option<AwaitedMessage> {
    let from = next()?.checked_sub(1).map(|from| from as usize);
    let pattern = take_pattern(next)?;
    let quiet = next()?.checked_sub(1).map(|len| len as usize);
    Some(AwaitedMessage { from, pattern, quiet, counter: Counter(next()? as u32) })
}

fn take_counter(next: &mut impl FnMut() -> Option<u64>) -> Option<AwaitedCounter> {
    Some(AwaitedCounter {
        counter: Counter(next()? as u32),
        immediate: next()?.checked_sub(1).map(|immediate| immediate as u32),
        missing: next()?,
        matches: next()? != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> Box<SlotWait> {
        // SAFETY: zeros are valid for atomics.
        unsafe { Box::new_zeroed().assume_init() }
    }

    fn resting(messages: usize) -> RestingWait {
        let pattern = HeadPattern { head: Head([1, 2, 3]), mask: Head([4, 5, u64::MAX]) };
        let message = |i| AwaitedMessage {
            from: (i > 0).then_some(i),
            pattern,
            quiet: (i % 2 == 0).then_some(i),
            counter: Counter(i as u32),
        };
        let counter = |i| AwaitedCounter {
            counter: Counter(i),
            immediate: (i == 1).then_some(0),
            missing: u64::from(i),
            matches: i == 2,
        };
        RestingWait {
            messages: (0..messages).map(message).collect(),
            kept: HeadPattern { head: Head([7, 8, 9]), mask: Head::default() },
            counters: (0..3).map(counter).collect(),
            acts: messages > 0,
        }
    }

    fn announce(slot: &SlotWait, wait: &RestingWait) {
        let RestingWait { messages, kept, counters, acts } = wait;
        slot.announce(&AnnouncedWait { messages, kept: *kept, counters, acts: *acts });
    }

    #[test]
    fn a_wait_is_taken_once_as_it_was_announced() {
        let slot = empty();
        assert_eq!(slot.take(), None);
        for messages in [0, 1, 40] {
            announce(&slot, &resting(messages));
            assert_eq!(slot.take(), Some(resting(messages)));
            assert_eq!(slot.take(), None);
        }
        announce(&slot, &resting(1));
        slot.clear();
        assert_eq!(slot.take(), None);
    }

    #[test]
    fn waits_that_are_too_long_or_overwritten_are_none() {
        let slot = empty();
        announce(&slot, &resting(WORDS / MESSAGE));
        assert_eq!(slot.take(), None);
        announce(&slot, &resting(2));
        slot.words[1].store(u64::MAX, Ordering::Relaxed);
        assert_eq!(slot.take(), None);
        announce(&slot, &resting(2));
        slot.words[2].store(50, Ordering::Relaxed);
        assert_eq!(slot.take(), None);
    }
}
