//! The files of the layer that names calls: names of functions, and numbers of calls.

use crate::account::JobAccount;
use std::path::Path;

/// Returns the names of the MPI functions; none if the layer was not loaded.
pub fn read_names(directory: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(directory.join("calls")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Enters the numbers of calls into the account. Does nothing if the layer was not loaded.
pub fn enter_counts(directory: &Path, columns: usize, account: &mut JobAccount) {
    let bytes = std::fs::read(directory.join("counts")).unwrap_or_default();
    if columns == 0 || bytes.len() != account.ranks.len() * columns * size_of::<u64>() {
        return;
    }
    let rows = bytes.chunks_exact(columns * size_of::<u64>());
    for (rank, row) in account.ranks.iter_mut().zip(rows) {
        for (index, word) in row.chunks_exact(size_of::<u64>()).enumerate() {
            let count = u64::from_ne_bytes(word.try_into().expect("8 bytes"));
            if count > 0 {
                rank.calls.entry(index as u64 + 1).or_default().calls = count;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::CallTime;

    #[test]
    fn counts_replace_those_of_requests() {
        let directory = tempfile::tempdir().unwrap();
        let mut account = JobAccount::new(2);
        account.ranks[1].calls.insert(2, CallTime { calls: 9, time: 5, waiting: 1 });
        enter_counts(directory.path(), 3, &mut account);
        assert_eq!(account.ranks[1].calls[&2].calls, 9);
        let words = [0u64, 0, 1, 4, 2, 0];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        std::fs::write(directory.path().join("counts"), bytes).unwrap();
        enter_counts(directory.path(), 3, &mut account);
        assert_eq!(account.ranks[0].calls[&3].calls, 1);
        assert_eq!(account.ranks[1].calls[&2], CallTime { calls: 2, time: 5, waiting: 1 });
        assert_eq!(account.ranks[1].calls[&1].calls, 4);
    }
}
