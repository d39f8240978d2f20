//! The log of dm-log-writes (Linux, drivers/md/dm-log-writes.c). The first sector identifies the log. Then comes, for each write, a
//! sector with the target of the write, and its data. A write is logged as soon as it has been flushed, so the entry of the write
//! comes before the entry of the flush.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

const MAGIC: u64 = 0x006a_7366_7773_6872;
const DISCARD: u64 = 4;
const MARK: u64 = 8;

/// Returns a little-endian word of a sector.
fn word(sector: &[u8], at: usize) -> u64 {
    let bytes = sector.get(at * 8..at * 8 + 8).and_then(|bytes| bytes.try_into().ok());
    u64::from_le_bytes(bytes.unwrap_or_default())
}

/// Applies to `device` the writes of `log` before the mark, and returns the number of writes. Returns an error if `log` has no such
/// mark, or is not a log.
pub fn until(log: &Path, mark: &str, device: &Path) -> Result<usize, String> {
    let failed = |e: io::Error| format!("{}: {e}", log.display());
    let (file, to) = (File::open(log).map_err(failed)?, File::options().write(true).open(device));
    let to = to.map_err(|e| format!("{}: {e}", device.display()))?;
    let mut first = [0; 512];
    file.read_exact_at(&mut first, 0).map_err(failed)?;
    if word(&first, 0) != MAGIC {
        return Err(format!("{}: no log of dm-log-writes", log.display()));
    }
    let (entries, sector) = (word(&first, 2), word(&first, 3) as u32 as usize);
    let (mut at, mut writes, mut head) = (sector as u64, 0, vec![0; sector]);
    for _ in 0..entries {
        file.read_exact_at(&mut head, at).map_err(failed)?;
        let [place, sectors, flags, length] = [0, 1, 2, 3].map(|i| word(&head, i));
        at += sector as u64;
        if flags & MARK != 0 {
            let text = head.get(32..32 + length as usize).unwrap_or_default();
            if text.strip_suffix(b"\0").unwrap_or(text) == mark.as_bytes() {
                return Ok(writes);
            }
        } else if flags & DISCARD == 0 {
            let mut data = vec![0; sectors as usize * sector];
            file.read_exact_at(&mut data, at).map_err(failed)?;
            to.write_all_at(&data, place * sector as u64)
                .map_err(|e| format!("{}: {e}", device.display()))?;
            at += data.len() as u64;
            writes += 1;
        }
    }
    Err(format!("{}: no mark {mark} among {entries} entries", log.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u64], text: &[u8]) -> Vec<u8> {
        let mut sector: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        sector.extend(text);
        sector.resize(512, 0);
        sector
    }

    #[test]
    fn what_lies_before_the_mark_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let (log, device) = (folder.path().join("log"), folder.path().join("device"));
        let parts = [
            words(&[MAGIC, 1, 4, 512], b""),
            words(&[1, 1, 0, 0], b""),
            vec![7; 512],
            words(&[0, 4, DISCARD, 0], b""),
            words(&[0, 0, MARK, 3], b"two"),
            words(&[0, 1, 1, 0], b""),
            vec![9; 512],
        ];
        std::fs::write(&log, parts.concat()).unwrap();
        std::fs::write(&device, [0; 1024]).unwrap();
        assert_eq!(until(&log, "two", &device), Ok(1));
        assert_eq!(std::fs::read(&device).unwrap(), [[0; 512], [7; 512]].concat());
        assert!(until(&log, "three", &device).unwrap_err().contains("no mark"));
        assert!(until(&device, "two", &device).unwrap_err().contains("no log"));
    }
}
