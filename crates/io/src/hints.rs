//! Hints about the use of a file, under the names of the standard and of ROMIO (MPI 5.0, section 14.2.8).

use crate::access_direction::AccessDirection;
use weft_process::Info;

/// Use of data sieving (ROMIO's `romio_ds_read` and `romio_ds_write`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sieving {
    /// Gaps are moved where that is cheaper.
    #[default]
    Auto,
    /// Gaps are moved wherever the buffer is large enough.
    On,
    /// Gaps are never moved.
    Off,
}

/// Use of two phases in collective accesses (ROMIO's `romio_cb_read` and `romio_cb_write`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CollectiveBuffering {
    /// Two phases where that is cheaper, if pieces of ranks lie in gaps of other ranks.
    #[default]
    Auto,
    /// Always two phases.
    On,
    /// Never two phases: each rank reads and writes its own data.
    Off,
}

/// Values in force of all hints that have an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints {
    /// Size of an aggregator's buffer in bytes.
    pub cb_buffer_size: usize,
    /// Number of aggregators; 0: one per node.
    pub cb_nodes: usize,
    /// Two phases in collective reads.
    pub cb_read: CollectiveBuffering,
    /// Two phases in collective writes.
    pub cb_write: CollectiveBuffering,
    /// Data sieving in reads.
    pub ds_read: Sieving,
    /// Data sieving in writes.
    pub ds_write: Sieving,
    /// Maximum number of bytes of a sieved read, gaps included.
    pub ind_rd_buffer_size: usize,
    /// Maximum number of bytes of a sieved write, gaps included.
    pub ind_wr_buffer_size: usize,
    /// Alignment of file domains in bytes; 0: the file system's block.
    pub striping_unit: u64,
}

impl Default for Hints {
    fn default() -> Hints {
        Hints {
            cb_buffer_size: 16 << 20,
            cb_nodes: 0,
            cb_read: CollectiveBuffering::Auto,
            cb_write: CollectiveBuffering::Auto,
            ds_read: Sieving::Auto,
            ds_write: Sieving::Auto,
            ind_rd_buffer_size: 4 << 20,
            ind_wr_buffer_size: 512 << 10,
            striping_unit: 0,
        }
    }
}

/// Known hints without an effect, which are returned as they were given. These hints describe the program, or they ask for file
/// system layouts, which the system's own tools set.
const UNUSED: [&str; 12] = [
    "access_style",
    "collective_buffering",
    "cb_block_size",
    "chunked",
    "chunked_item",
    "chunked_size",
    "cb_config_list",
    "file_perm",
    "io_node_list",
    "nb_proc",
    "num_io_nodes",
    "striping_factor",
];

const NUMBER_KEYS: [&str; 5] =
    ["cb_buffer_size", "cb_nodes", "ind_rd_buffer_size", "ind_wr_buffer_size", "striping_unit"];
const BUFFERING_KEYS: [&str; 2] = ["romio_cb_read", "romio_cb_write"];
const SIEVING_KEYS: [&str; 2] = ["romio_ds_read", "romio_ds_write"];

/// Values of hints in the order of the variants of [`Sieving`] and [`CollectiveBuffering`].
const WORDS: [&str; 3] = ["automatic", "enable", "disable"];

fn word(text: &str) -> Option<usize> {
    WORDS.iter().position(|word| *word == text.trim())
}

impl Hints {
    /// Returns the use of two phases in collective accesses of this direction.
    pub fn collective_buffering(&self, direction: AccessDirection) -> CollectiveBuffering {
        match direction {
            AccessDirection::Read => self.cb_read,
            AccessDirection::Write => self.cb_write,
        }
    }

    /// Applies the valid hints of `info` and ignores invalid hints. Adds hints without an effect to `unused`.
    pub fn apply(&mut self, info: &Info, unused: &mut Info) {
        let number = |key: &str| info.get(key)?.trim().parse::<u64>().ok();
        let positive = |key| number(key).filter(|&n| n > 0).and_then(|n| usize::try_from(n).ok());
        self.cb_buffer_size = positive(NUMBER_KEYS[0]).unwrap_or(self.cb_buffer_size);
        self.cb_nodes = positive(NUMBER_KEYS[1]).unwrap_or(self.cb_nodes);
        self.ind_rd_buffer_size = positive(NUMBER_KEYS[2]).unwrap_or(self.ind_rd_buffer_size);
        self.ind_wr_buffer_size = positive(NUMBER_KEYS[3]).unwrap_or(self.ind_wr_buffer_size);
        self.striping_unit =
            number(NUMBER_KEYS[4]).filter(|&n| n > 0).unwrap_or(self.striping_unit);
        let value = |key: &str| info.get(key).and_then(word);
        const BUFFERING_VALUES: [CollectiveBuffering; 3] =
            [CollectiveBuffering::Auto, CollectiveBuffering::On, CollectiveBuffering::Off];
        const SIEVING_VALUES: [Sieving; 3] = [Sieving::Auto, Sieving::On, Sieving::Off];
        if info.get("collective_buffering") == Some("false") {
            (self.cb_read, self.cb_write) = (CollectiveBuffering::Off, CollectiveBuffering::Off);
        }
        self.cb_read = value(BUFFERING_KEYS[0]).map_or(self.cb_read, |i| BUFFERING_VALUES[i]);
        self.cb_write = value(BUFFERING_KEYS[1]).map_or(self.cb_write, |i| BUFFERING_VALUES[i]);
        self.ds_read = value(SIEVING_KEYS[0]).map_or(self.ds_read, |i| SIEVING_VALUES[i]);
        self.ds_write = value(SIEVING_KEYS[1]).map_or(self.ds_write, |i| SIEVING_VALUES[i]);
        for key in UNUSED {
            if let Some(value) = info.get(key) {
                unused.set(key, value);
            }
        }
    }

    /// Returns the hints in force. `aggregators` is the number of aggregators in use. `unit` is the alignment of file domains if
    /// `striping_unit` is 0.
    pub fn to_info(self, aggregators: usize, unit: u64, unused: &Info) -> Info {
        let mut info = Info::default();
        let unit = if self.striping_unit == 0 { unit } else { self.striping_unit };
        let numbers = [
            self.cb_buffer_size as u64,
            aggregators as u64,
            self.ind_rd_buffer_size as u64,
            self.ind_wr_buffer_size as u64,
            unit,
        ];
        NUMBER_KEYS.iter().zip(numbers).for_each(|(key, n)| info.set(key, &n.to_string()));
        let cb = [self.cb_read, self.cb_write].map(|b| WORDS[b as usize]);
        let ds = [self.ds_read, self.ds_write].map(|s| WORDS[s as usize]);
        BUFFERING_KEYS.iter().zip(cb).for_each(|(key, word)| info.set(key, word));
        SIEVING_KEYS.iter().zip(ds).for_each(|(key, word)| info.set(key, word));
        for key in UNUSED {
            if let Some(value) = unused.get(key) {
                info.set(key, value);
            }
        }
        info
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_applied_and_returned() {
        let mut info = Info::default();
        let pairs = [
            ("cb_buffer_size", "4096"),
            ("cb_nodes", "-3"),
            ("romio_ds_write", "disable"),
            ("romio_cb_read", "hardly"),
            ("striping_factor", "7"),
            ("unknown", "x"),
        ];
        pairs.iter().for_each(|(key, value)| info.set(key, value));
        let (mut hints, mut unused) = (Hints::default(), Info::default());
        hints.apply(&info, &mut unused);
        assert_eq!((hints.cb_buffer_size, hints.cb_nodes), (4096, 0));
        assert_eq!((hints.ds_write, hints.cb_read), (Sieving::Off, CollectiveBuffering::Auto));
        let info = hints.to_info(2, 512, &unused);
        let of = |key| info.get(key);
        assert_eq!((of("cb_buffer_size"), of("cb_nodes")), (Some("4096"), Some("2")));
        assert_eq!((of("romio_ds_write"), of("striping_unit")), (Some("disable"), Some("512")));
        assert_eq!((of("striping_factor"), of("unknown")), (Some("7"), None));
        let mut again = Hints::default();
        again.apply(&info, &mut unused);
        assert_eq!(again.ds_write, Sieving::Off);
    }
}
