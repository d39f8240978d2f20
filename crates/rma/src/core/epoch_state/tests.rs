//! Tests of the transitions, and of the calls that they refuse.

use super::*;

/// Returns true if each of the calls is refused.
fn are_refused<const N: usize>(calls: [Result<(), WrongCall>; N]) -> bool {
    calls.iter().all(Result::is_err)
}

#[test]
fn an_operation_needs_an_epoch() {
    let epochs = EpochState::new(2);
    assert_eq!((epochs.enter(0), epochs.in_words()), (Entering::Closed, None));
    epochs.start().unwrap();
    epochs.started([1].into());
    assert_eq!((epochs.enter(0), epochs.enter(1)), (Entering::Closed, Entering::Open));
    assert!(epochs.outside(0).0.contains("an access epoch to 1 others"));
    assert!(are_refused([epochs.start(), epochs.lock_all(0), epochs.free()]));
    assert!(epochs.lock(1).is_err() && epochs.lock(0).is_ok() && epochs.fence(0).is_err());
    assert_eq!(*epochs.complete().unwrap(), [1]);
    assert_eq!(epochs.enter(1), Entering::Open, "until the operations are over");
    epochs.completed(1);
    assert!(epochs.complete().is_err() && epochs.free().is_ok());
}

#[test]
fn a_fence_opens_an_epoch_if_an_operation_follows() {
    let epochs = EpochState::new(2);
    assert_eq!(epochs.fence(assert::NOPRECEDE | assert::NOSUCCEED).unwrap(), None);
    assert_eq!(epochs.fence(0).unwrap(), Some(FenceWork::Begin));
    epochs.fenced(0);
    assert_eq!(epochs.in_words(), None, "a fence alone is no epoch");
    assert_eq!(epochs.fence(assert::NOPRECEDE).unwrap(), Some(FenceWork::Begin));
    assert_eq!(epochs.fence(0).unwrap(), Some(FenceWork::End));
    assert_eq!((epochs.enter(0), epochs.fence.get()), (Entering::Open, FenceEpoch::Used));
    assert!(epochs.is_of_fence(0) && epochs.in_words().unwrap().contains("MPI_Win_fence"));
    assert!(are_refused([epochs.post(), epochs.start(), epochs.lock_all(0)]));
    assert!(epochs.lock(0).is_err() && epochs.lockable(0).is_none());
    assert!(epochs.fence(assert::NOPRECEDE).is_err() && epochs.may_fence());
    assert_eq!(epochs.fence(assert::NOSUCCEED).unwrap(), Some(FenceWork::End));
    epochs.fenced(assert::NOSUCCEED);
    assert_eq!(epochs.enter(0), Entering::Closed);
}

#[test]
fn an_exposure_ends_once() {
    let epochs = EpochState::new(3);
    assert!(epochs.wait().is_err() && epochs.test(|_| true).is_err());
    epochs.post().unwrap();
    epochs.posted([0, 2].into());
    assert!(epochs.post().is_err() && epochs.fence(0).is_err() && epochs.start().is_ok());
    assert!(!epochs.test(|_| false).unwrap() && epochs.test(|ranks| ranks == [0, 2]).unwrap());
    epochs.posted([1].into());
    assert_eq!(*epochs.wait().unwrap(), [1]);
    assert!(epochs.wait().is_err() && epochs.free().is_ok());
}

#[test]
fn lock_all_takes_a_lock_at_the_first_operation() {
    let epochs = EpochState::new(2);
    assert!(are_refused([epochs.unlock_all(), epochs.flush_all(), epochs.flush(1)]));
    epochs.lock_all(0).unwrap();
    assert_eq!(epochs.enter(1), Entering::Join);
    epochs.join(1);
    assert_eq!((epochs.enter(1), epochs.enter(0)), (Entering::Open, Entering::Join));
    assert!(are_refused([epochs.start(), epochs.lock_all(0)]) && epochs.lock(0).is_err());
    assert!(epochs.flush(0).is_ok() && epochs.flush_all().is_ok());
    assert_eq!(epochs.first_joined(), Some(1));
    epochs.left(1);
    assert_eq!(epochs.first_joined(), None);
    assert!(!epochs.is_joined(1));
    epochs.unlocked_all();
    epochs.lock_all(assert::NOCHECK).unwrap();
    assert_eq!(epochs.enter(0), Entering::Open, "nobody else is promised to lock");
    assert!(epochs.is_passive(0) && !epochs.is_of_fence(0));
}

#[test]
fn locks_are_counted_and_named() {
    let epochs = EpochState::new(3);
    epochs.locked(epochs.lock(2).unwrap(), AccessEpoch::Exclusive);
    assert!(epochs.is_alone(2) && epochs.is_passive(2) && !epochs.is_passive(1));
    assert!(epochs.in_words().unwrap().contains("rank 2 is locked"));
    assert!(epochs.outside(0).0.contains("1 other ranks are locked"));
    assert!(epochs.lock(2).is_err() && epochs.lockable(2).is_none());
    assert!(are_refused([epochs.start(), epochs.lock_all(0)]) && epochs.unlock(1).is_err());
    epochs.unlocked(epochs.unlock(2).unwrap());
    assert_eq!((epochs.locks.get(), epochs.in_words()), (0, None));
}
