use super::*;

fn key(bytes: usize) -> TrialKey {
    let near = Near::UNKNOWN;
    TrialKey { operation: CollectiveKind::Bcast, asked: CallKey::of(bytes), near }
}

fn candidates(names: &[&str]) -> TrialCandidates {
    names.iter().map(|name| AlgorithmChoice::parse(CollectiveKind::Bcast, name).unwrap()).collect()
}

const NAMES: [&str; 3] = ["MPI-BINOMIAL", "MPI-FLAT", "MPI-PIPELINE"];

/// Number of the call in which the ranks agree.
fn agreement(candidates: usize) -> u32 {
    BEFORE + RUNS * RUN * candidates as u32
}

#[test]
fn each_candidate_is_timed_equally_often_and_then_the_ranks_agree() {
    for count in 2..=CANDIDATES {
        let mut places = vec![[0; TIMED]; count];
        let mut touched = vec![0; count];
        for number in 0..agreement(count) {
            match TrialStep::of(number, count) {
                TrialStep::Timed { candidate, place } => places[candidate][place] += 1,
                TrialStep::Untimed { candidate } => {
                    touched[candidate] += u32::from(number < BEFORE)
                }
                TrialStep::Agreement => panic!("call {number} of {count} candidates"),
            }
        }
        assert!(places.iter().flatten().all(|&times| times == 1), "{places:?}");
        assert!(touched.iter().zip(TOUCHING).all(|(&calls, least)| calls >= least), "{touched:?}");
        assert_eq!(TrialStep::of(agreement(count), count), TrialStep::Agreement);
    }
}

#[test]
fn another_algorithm_must_be_clearly_faster() {
    assert_eq!(quickest(&[100, 95, 91]), 0);
    assert_eq!(quickest(&[100, 95, 89]), 2);
    assert_eq!(quickest(&[100, 80, 70]), 2);
    assert_eq!(quickest(&[0, 0]), 0);
    assert_eq!(quickest(&[u64::MAX, u64::MAX / 2]), 0);
}

/// Ranks of a communicator without a network. Each rank makes its calls at its own pace. The sums exist only once all ranks have
/// reached the agreement.
struct Ranks {
    trials: Vec<AlgorithmTrials>,
    called: Vec<Vec<AlgorithmChoice>>,
    /// Number of the call in which the rank waits for the agreement, with the record.
    waiting: Vec<Option<usize>>,
}

impl Ranks {
    fn new(size: usize) -> Ranks {
        Ranks {
            trials: (0..size).map(|_| AlgorithmTrials::default()).collect(),
            called: vec![Vec::new(); size],
            waiting: vec![None; size],
        }
    }

    /// Begins the next call of a rank. `time`: the time that the rank measures.
    fn call(&mut self, rank: usize, key: TrialKey, time: u32) {
        let trials = &self.trials[rank];
        let choice = match trials.next(key) {
            Some(TriedAlgorithm::Now(choice) | TriedAlgorithm::Learned(choice)) => choice,
            None => {
                trials.open(key, candidates(&NAMES));
                candidates(&NAMES)[0]
            }
        };
        self.called[rank].push(choice);
        match trials.due(choice) {
            Some(DueTrial::Timed(watch)) => {
                let (record, candidate, place) = (watch.record, watch.candidate, watch.place);
                drop(watch);
                trials.records.borrow_mut()[record].times[candidate][place] = time;
            }
            Some(DueTrial::Agreement(agreement)) => self.waiting[rank] = Some(agreement.record),
            None => {}
        }
        if let [Some(record), rest @ ..] = &self.waiting[..]
            && rest.iter().all(|other| *other == Some(*record))
        {
            self.agree(*record);
        }
    }

    fn agree(&mut self, record: usize) {
        let mut sums = [0; CANDIDATES];
        for trials in &self.trials {
            let medians = trials.records.borrow()[record].medians();
            (0..CANDIDATES).for_each(|i| sums[i] += medians[i]);
        }
        for trials in &self.trials {
            trials.records.borrow_mut()[record].learned = Some((quickest(&sums), sums));
        }
        self.waiting.fill(None);
    }
}

/// Ranks that measure different times, and that run ahead of each other at random, use the same algorithm in each call.
#[test]
fn ranks_decide_alike_in_every_interleaving() {
    for seed in 0..200 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (size, keys) = (random.usize(2..6), random.usize(1..2 * RECORDS));
        let sequence: Vec<usize> = (0..600).map(|_| 8 * random.usize(0..keys)).collect();
        let mut ranks = Ranks::new(size);
        let mut done = vec![0; size];
        while done.iter().any(|&calls| calls < sequence.len()) {
            let rank = random.usize(0..size);
            if done[rank] < sequence.len() && ranks.waiting[rank].is_none() {
                ranks.call(rank, key(sequence[done[rank]]), random.u32(0..1000));
                done[rank] += 1;
            }
        }
        for rank in 1..size {
            assert!(ranks.called[rank] == ranks.called[0], "seed {seed}, rank {rank}");
        }
    }
}

#[test]
fn the_quickest_is_used_after_the_trials_and_reported() {
    let mut ranks = Ranks::new(1);
    let of = |choice: &AlgorithmChoice| NAMES.iter().position(|name| *name == choice.to_string());
    for _ in 0..agreement(3) + 5 {
        let next = ranks.called[0].len() as u32;
        let time = match TrialStep::of(next, 3) {
            TrialStep::Timed { candidate, .. } => [3000, 1000, 2000][candidate],
            _ => 0,
        };
        ranks.call(0, key(64), time);
    }
    let last = &ranks.called[0][agreement(3) as usize + 1..];
    assert!(last.iter().all(|choice| of(choice) == Some(1)), "{last:?}");
    let report = "bcast of 64 bytes: MPI-FLAT by trials (MPI-BINOMIAL 3.00 us, MPI-FLAT 1.00 us, MPI-PIPELINE 2.00 us)";
    assert_eq!(ranks.trials[0].report(), [report]);
}

/// If a new key replaces an old key, the trials of the old key start again when the old key comes again.
#[test]
fn old_keys_give_way_to_new_keys() {
    let trials = AlgorithmTrials::default();
    for bytes in 0..RECORDS + 1 {
        assert_eq!(trials.next(key(bytes)), None);
        trials.open(key(bytes), candidates(&NAMES));
    }
    assert_eq!(trials.next(key(0)), None);
    assert!(trials.next(key(1)).is_some() && trials.next(key(RECORDS)).is_some());
    trials.forget();
    assert_eq!(trials.next(key(1)), None);
}
