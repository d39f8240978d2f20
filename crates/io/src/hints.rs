//! Hints: what a program says of how it uses a file, by the standard's names and ROMIO's (MPI 5.0, section 14.2.8).

use crate::transfer::Sieving;
use weft_process::Info;

/// Whether the collective functions exchange data first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Buffering {
    /// Where ranks' pieces lie between each other's.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never: each rank reads and writes its own.
    Off,
}

/// The hints that change what is done, as they are in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints {
    /// Bytes of an aggregator's buffer.
    pub cb_buffer_size: usize,
    /// Aggregators; 0: one a node.
    pub cb_nodes: usize,
    /// Of collective reads.
    pub cb_read: Buffering,
    /// Of collective writes.
    pub cb_write: Buffering,
    /// Of independent reads.
    pub ds_read: Sieving,
    /// Of independent writes.
    pub ds_write: Sieving,
    /// Bytes that an independent read moves in one go, gaps included.
    pub ind_rd_buffer_size: usize,
    /// The same of a write.
    pub ind_wr_buffer_size: usize,
    /// File domains begin at multiples of it; 0: of the file system's block.
    pub striping_unit: u64,
}

impl Default for Hints {
    fn default() -> Hints {
        Hints {
            cb_buffer_size: 16 << 20,
            cb_nodes: 0,
            cb_read: Buffering::Auto,
            cb_write: Buffering::Auto,
            ds_read: Sieving::Auto,
            ds_write: Sieving::Auto,
            ind_rd_buffer_size: 4 << 20,
            ind_wr_buffer_size: 512 << 10,
            striping_unit: 0,
        }
    }
}

/// Known hints without an effect here, which are kept and told as they were given: they are for layouts of file systems that the
/// system's own tools set, or describe the program.
const KEPT: [&str; 12] = [
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

const NUMBERS: [&str; 5] =
    ["cb_buffer_size", "cb_nodes", "ind_rd_buffer_size", "ind_wr_buffer_size", "striping_unit"];
const BUFFERING: [&str; 2] = ["romio_cb_read", "romio_cb_write"];
const SIEVING: [&str; 2] = ["romio_ds_read", "romio_ds_write"];

/// "enable", "disable" and "automatic", in their order in the enumerations.
const WORDS: [&str; 3] = ["automatic", "enable", "disable"];

fn word(text: &str) -> Option<usize> {
    WORDS.iter().position(|word| *word == text.trim())
}

impl Hints {
    /// Takes over what `info` says that makes sense; the rest is ignored. `kept` gets what is only told again.
    pub fn take(&mut self, info: &Info, kept: &mut Info) {
        let number = |key: &str| info.get(key)?.trim().parse::<u64>().ok();
        let positive = |key| number(key).filter(|&n| n > 0).and_then(|n| usize::try_from(n).ok());
        self.cb_buffer_size = positive(NUMBERS[0]).unwrap_or(self.cb_buffer_size);
        self.cb_nodes = positive(NUMBERS[1]).unwrap_or(self.cb_nodes);
        self.ind_rd_buffer_size = positive(NUMBERS[2]).unwrap_or(self.ind_rd_buffer_size);
        self.ind_wr_buffer_size = positive(NUMBERS[3]).unwrap_or(self.ind_wr_buffer_size);
        self.striping_unit = number(NUMBERS[4]).filter(|&n| n > 0).unwrap_or(self.striping_unit);
        let chosen = |key: &str| info.get(key).and_then(word);
        const BY: [Buffering; 3] = [Buffering::Auto, Buffering::On, Buffering::Off];
        const SO: [Sieving; 3] = [Sieving::Auto, Sieving::On, Sieving::Off];
        if info.get("collective_buffering") == Some("false") {
            (self.cb_read, self.cb_write) = (Buffering::Off, Buffering::Off);
        }
        self.cb_read = chosen(BUFFERING[0]).map_or(self.cb_read, |i| BY[i]);
        self.cb_write = chosen(BUFFERING[1]).map_or(self.cb_write, |i| BY[i]);
        self.ds_read = chosen(SIEVING[0]).map_or(self.ds_read, |i| SO[i]);
        self.ds_write = chosen(SIEVING[1]).map_or(self.ds_write, |i| SO[i]);
        for key in KEPT {
            if let Some(value) = info.get(key) {
                kept.set(key, value);
            }
        }
    }

    /// Says them as they are in force; `aggregators` and `unit` are what 0 stands for.
    pub fn tell(&self, aggregators: usize, unit: u64, kept: &Info) -> Info {
        let mut info = Info::default();
        let unit = if self.striping_unit == 0 { unit } else { self.striping_unit };
        let numbers = [
            self.cb_buffer_size as u64,
            aggregators as u64,
            self.ind_rd_buffer_size as u64,
            self.ind_wr_buffer_size as u64,
            unit,
        ];
        NUMBERS.iter().zip(numbers).for_each(|(key, n)| info.set(key, &n.to_string()));
        let cb = [self.cb_read, self.cb_write].map(|b| WORDS[b as usize]);
        let ds = [self.ds_read, self.ds_write].map(|s| WORDS[s as usize]);
        BUFFERING.iter().zip(cb).for_each(|(key, word)| info.set(key, word));
        SIEVING.iter().zip(ds).for_each(|(key, word)| info.set(key, word));
        for key in KEPT {
            if let Some(value) = kept.get(key) {
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
    fn hints_are_kept_and_told() {
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
        let (mut hints, mut kept) = (Hints::default(), Info::default());
        hints.take(&info, &mut kept);
        assert_eq!((hints.cb_buffer_size, hints.cb_nodes), (4096, 0));
        assert_eq!((hints.ds_write, hints.cb_read), (Sieving::Off, Buffering::Auto));
        let told = hints.tell(2, 512, &kept);
        let of = |key| told.get(key);
        assert_eq!((of("cb_buffer_size"), of("cb_nodes")), (Some("4096"), Some("2")));
        assert_eq!((of("romio_ds_write"), of("striping_unit")), (Some("disable"), Some("512")));
        assert_eq!((of("striping_factor"), of("unknown")), (Some("7"), None));
        let mut again = Hints::default();
        again.take(&told, &mut kept);
        assert_eq!(again.ds_write, Sieving::Off);
    }
}
