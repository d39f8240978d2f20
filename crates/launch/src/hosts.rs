//! The hosts of a job, and the host of each rank.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use weft_bootstrap::limits::words;

/// Maximum number of processes of a job.
pub const MAX_RANKS: usize = 1 << 16;
/// Maximum size of a host file, in bytes.
const LONGEST: u64 = 16 << 20;

/// A host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Name as the user wrote it.
    pub name: String,
    /// Number of ranks that are placed on this host before the next host has its turn.
    pub slots: usize,
    /// Maximum number of ranks on the host; `None` if there is no maximum.
    pub most: Option<usize>,
}

/// Order in which the slots are filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SlotOrder {
    /// All slots of a host are filled, then all slots of the next host.
    #[default]
    Slot,
    /// One slot of each host is filled in turn.
    Node,
}

/// Reads a number of ranks, which is not 0.
fn count(text: &str) -> Option<usize> {
    text.parse().ok().filter(|&count| count > 0)
}

/// Reads `name`, `name:slots` or `[::1]:slots`. An address with several colons has no slots.
fn host(text: &str) -> Result<Host, String> {
    let wrong = || format!("{text:?} is not a host, or host:slots with at least one slot");
    let (name, slots) = match text.rsplit_once(':') {
        Some((name, slots)) if !name.contains(':') || name.ends_with(']') => {
            (name, Some(count(slots).ok_or_else(wrong)?))
        }
        _ => (text, None),
    };
    let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    // ssh would take a name that begins with a dash for an option.
    if name.is_empty() || name.starts_with('-') || name.contains(char::is_whitespace) {
        return Err(wrong());
    }
    Ok(Host { name: name.into(), slots: slots.unwrap_or(1), most: None })
}

/// Adds a host. If the list already contains the host, adds the slots to this host.
fn add(hosts: &mut Vec<Host>, more: Host) {
    match hosts.iter_mut().find(|host| host.name == more.name) {
        Some(host) => {
            host.slots += more.slots;
            host.most = host.most.zip(more.most).map(|(a, b)| a + b);
        }
        None => hosts.push(more),
    }
}

/// Reads a list, `a,b:2,c`.
pub fn list(text: &str, hosts: &mut Vec<Host>) -> Result<(), String> {
    for word in text.split(',') {
        add(hosts, host(word)?);
    }
    Ok(())
}

/// Returns the text of a host file, which may be a file or a pipe. The size of the text is limited.
pub fn read(path: &Path) -> Result<String, String> {
    let failed = |error: std::io::Error| words(&error);
    let kind = fs::metadata(path).map_err(failed)?.file_type();
    if !kind.is_file() && !kind.is_fifo() {
        let what = if kind.is_dir() { "a folder" } else { "a device or a socket" };
        return Err(format!("{what} is not a list of hosts; a file or a pipe may be"));
    }
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| file.take(LONGEST + 1).read_to_end(&mut text))
        .map_err(failed)?;
    if text.len() as u64 > LONGEST {
        return Err(format!("more than {LONGEST} bytes are not a list of hosts"));
    }
    String::from_utf8(text).map_err(|error| {
        let line =
            error.as_bytes()[..error.utf8_error().valid_up_to()].split(|&b| b == b'\n').count();
        format!("line {line} is not UTF-8 text")
    })
}

/// Reads the text of a host file. Each line has a host in the form of a list's element, and may have `slots=N` and `max-slots=N`.
/// Text after `#` is a comment. `path` is only for error messages.
pub fn file(path: &str, text: &str, hosts: &mut Vec<Host>) -> Result<(), String> {
    for (number, line) in text.lines().enumerate() {
        let wrong = |what: String| format!("{path}, line {}: {what}", number + 1);
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(name) = words.next() else { continue };
        let mut more = host(name).map_err(wrong)?;
        for word in words {
            let value = word.split_once('=').and_then(|(key, value)| Some((key, count(value)?)));
            match value {
                Some(("slots", slots)) => more.slots = slots,
                Some(("max-slots" | "max_slots", most)) => more.most = Some(most),
                _ => {
                    return Err(wrong(format!(
                        "{word:?} is neither slots=N nor max-slots=N, with N from 1 on"
                    )));
                }
            }
        }
        if more.most.is_some_and(|most| most < more.slots) {
            return Err(wrong(format!("{} slots are more than max-slots", more.slots)));
        }
        add(hosts, more);
    }
    Ok(())
}

/// Returns the index in `hosts` of the host of each of `size` ranks. When all slots are full, fills them again, up to the maximum
/// of each host.
pub fn place(hosts: &[Host], size: usize, map: SlotOrder) -> Result<Vec<usize>, String> {
    let mut used = vec![0; hosts.len()];
    let mut places = Vec::with_capacity(size);
    // Number of times that the slots have been filled, including this time.
    for turn in 1.. {
        let before = places.len();
        let room = |host: &Host, used: usize| {
            host.slots.saturating_mul(turn).min(host.most.unwrap_or(usize::MAX)) - used
        };
        match map {
            SlotOrder::Slot => {
                hosts.iter().zip(&mut used).enumerate().for_each(|(place, (host, used))| {
                    let count = room(host, *used).min(size - places.len());
                    *used += count;
                    places.extend(std::iter::repeat_n(place, count));
                })
            }
            SlotOrder::Node => loop {
                let so_far = places.len();
                for (place, (host, used)) in hosts.iter().zip(&mut used).enumerate() {
                    if places.len() < size && room(host, *used) > 0 {
                        *used += 1;
                        places.push(place);
                    }
                }
                if places.len() == so_far {
                    break;
                }
            },
        }
        if places.len() == size {
            break;
        }
        if places.len() == before {
            let name = |host: &Host| format!("{}: {}", host.name, host.most.unwrap_or_default());
            let names: Vec<String> = hosts.iter().map(name).collect();
            return Err(format!(
                "{size} processes are more than the hosts take by their max-slots ({})",
                names.join(", ")
            ));
        }
    }
    Ok(places)
}

/// Encodes a value for each rank as runs. A run is a value and the number of consecutive ranks that have this value.
pub fn runs(values: &[usize]) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &value in values {
        match runs.last_mut() {
            Some((last, count)) if *last == value as u32 => *count += 1,
            _ => runs.push((value as u32, 1)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(text: &str) -> Vec<Host> {
        let mut hosts = Vec::new();
        list(text, &mut hosts).unwrap();
        hosts
    }

    #[test]
    fn lists_have_slots() {
        let named = |text| hosts(text).into_iter().map(|h| (h.name, h.slots)).collect::<Vec<_>>();
        let expected = |list: &[(&str, usize)]| {
            list.iter().map(|&(name, slots)| (name.to_owned(), slots)).collect::<Vec<_>>()
        };
        assert_eq!(named("a,b:3,a"), expected(&[("a", 2), ("b", 3)]));
        assert_eq!(named("[::1]:2,fe80::1"), expected(&[("::1", 2), ("fe80::1", 1)]));
        for text in ["", "a,,b", "a:0", "a:x", ":2", "-oProxyCommand=x"] {
            let error = list(text, &mut Vec::new()).unwrap_err();
            assert!(error.contains("not a host"), "{text}: {error}");
        }
    }

    #[test]
    fn files_have_comments_slots_and_limits() {
        let mut hosts = Vec::new();
        let text = "# ours\na slots=2 max-slots=3\n\n b:4 # four\nc max_slots=1\n";
        file("f", text, &mut hosts).unwrap();
        let fields: Vec<_> = hosts.iter().map(|h| (h.name.as_str(), h.slots, h.most)).collect();
        assert_eq!(fields, [("a", 2, Some(3)), ("b", 4, None), ("c", 1, Some(1))]);
        for (text, words) in [
            ("a\nb slots=0", "f, line 2: \"slots=0\""),
            ("a cores=3", "f, line 1: \"cores=3\""),
            ("a slots=4 max-slots=2", "line 1: 4 slots"),
        ] {
            let error = file("f", text, &mut Vec::new()).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn only_files_and_pipes_of_bounded_length_are_read() {
        for (path, words) in [
            ("/", "a folder is not a list of hosts"),
            ("/dev/zero", "a device or a socket is not a list"),
            ("/no/hosts", "No such file or directory"),
        ] {
            let error = read(Path::new(path)).unwrap_err();
            assert!(error.contains(words), "{path}: {error}");
        }
        let folder = std::env::temp_dir().join(format!("weft-hosts-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("file");
        fs::write(&file, "a\nb\u{ff}\n").unwrap();
        assert_eq!(read(&file).unwrap(), "a\nb\u{ff}\n");
        fs::write(&file, b"a\nb\xff\n").unwrap();
        assert_eq!(read(&file).unwrap_err(), "line 2 is not UTF-8 text");
        File::create(&file).unwrap().set_len(LONGEST + 1).unwrap();
        assert!(read(&file).unwrap_err().contains("16777216 bytes"));
        // A process writes to this pipe without end.
        let pipe = folder.join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let copy = pipe.clone();
        let writer = std::thread::spawn(move || {
            std::io::copy(
                &mut std::io::repeat(b'a'),
                &mut File::options().write(true).open(copy).unwrap(),
            )
        });
        assert!(read(&pipe).unwrap_err().contains("16777216 bytes"));
        assert!(writer.join().unwrap().is_err());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn slots_are_filled_in_order_or_in_turn() {
        let two = hosts("a:2,b:1");
        assert_eq!(place(&two, 3, SlotOrder::Slot).unwrap(), [0, 0, 1]);
        assert_eq!(place(&two, 3, SlotOrder::Node).unwrap(), [0, 1, 0]);
        // There are more ranks than slots, so the slots are filled twice.
        assert_eq!(place(&two, 7, SlotOrder::Slot).unwrap(), [0, 0, 1, 0, 0, 1, 0]);
        assert_eq!(place(&two, 5, SlotOrder::Node).unwrap(), [0, 1, 0, 0, 1]);
        assert_eq!(place(&two, 1, SlotOrder::Slot).unwrap(), [0]);
    }

    #[test]
    fn hosts_take_no_more_than_they_may() {
        let mut limited = hosts("a:2,b:1");
        limited[0].most = Some(2);
        assert_eq!(place(&limited, 5, SlotOrder::Slot).unwrap(), [0, 0, 1, 1, 1]);
        limited[1].most = Some(2);
        let error = place(&limited, 5, SlotOrder::Node).unwrap_err();
        assert!(error.contains("5 processes") && error.contains("b: 2"), "{error}");
    }

    #[test]
    fn runs_count_what_is_in_a_row() {
        assert_eq!(runs(&[0, 0, 1, 0]), [(0, 2), (1, 1), (0, 1)]);
        assert_eq!(runs(&[]), []);
    }
}
