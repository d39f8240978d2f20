//! Limits on a process, in words: the limit behind an error of the system, its value, and advice.

use std::io;
use std::path::PathBuf;

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

/// Returns the soft and the hard value of a limit; `None` means unlimited.
fn limit(of: Resource) -> [Option<u64>; 2] {
    let (soft, hard) = getrlimit(of).unwrap_or((RLIM_INFINITY, RLIM_INFINITY));
    [soft, hard].map(|limit| (limit != RLIM_INFINITY).then_some(limit))
}

fn number(limit: Option<u64>) -> String {
    limit.map_or("unlimited".to_owned(), |limit| limit.to_string())
}

/// Formats a limit on bytes in the units of the shell's `ulimit`.
fn kibibytes(limit: Option<u64>) -> String {
    limit.map_or("unlimited".to_owned(), |limit| format!("{} KiB", limit / 1024))
}

/// Returns the lowest value of `file` in this process's control group and the groups above it.
fn of_control_group(file: &str) -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let controller = file.split('.').next().unwrap_or_default();
    // In version 1 of control groups, each controller has its own tree.
    let old = groups.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(":/")?;
        let is_it = controllers.split(',').any(|name| name == controller);
        is_it.then(|| (format!("/sys/fs/cgroup/{controller}"), path))
    });
    let new = || {
        Some(("/sys/fs/cgroup".to_owned(), groups.lines().find_map(|l| l.strip_prefix("0::/"))?))
    };
    let (root, own) = old.or_else(new)?;
    let root = PathBuf::from(root);
    let own = root.join(own);
    let all = own.ancestors().take_while(|folder| folder.starts_with(&root));
    all.filter_map(|folder| std::fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok())
        .min()
}

/// Describes the limits on memory that processes share.
pub fn of_shared_memory() -> String {
    let [space, file] =
        [Resource::RLIMIT_AS, Resource::RLIMIT_FSIZE].map(|of| kibibytes(limit(of)[0]));
    format!(
        "the limit on address space, of which half is the program's, is {space} (ulimit -v), that on \
         files, which holds for shared memory, too, is {file} (ulimit -f); raise it"
    )
}

/// Returns the system's text for an error, without its number.
pub fn words(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(code) => nix::Error::from_raw(code).desc().to_string(),
        None => error.to_string(),
    }
}

/// Describes an error. If a limit causes it, names the limit, its value, and advice.
pub fn explain(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EAGAIN) => {
            let [user, _] = limit(Resource::RLIMIT_NPROC);
            let group = of_control_group("pids.max")
                .map(|limit| format!(", and its control group {limit} (pids.max)"))
                .unwrap_or_default();
            format!(
                "no more processes or threads can be made: this user may have {} (ulimit -u){group}; raise the \
                 limit, or start fewer processes",
                number(user)
            )
        }
        Some(libc::EMFILE) => {
            let [soft, hard] = limit(Resource::RLIMIT_NOFILE).map(number);
            format!(
                "no more files can be opened: the limit is {soft} (ulimit -n), which can be raised \
                 to {hard} (ulimit -Hn)"
            )
        }
        Some(libc::ENOMEM) => format!(
            "out of memory: the limit on address space is {} (ulimit -v); raise it, or the memory \
             of the container or the machine",
            kibibytes(limit(Resource::RLIMIT_AS)[0])
        ),
        Some(libc::EFBIG) => format!(
            "no file can be larger than {} (ulimit -f), and memory that processes share counts as \
             one; raise the limit",
            kibibytes(limit(Resource::RLIMIT_FSIZE)[0])
        ),
        Some(libc::E2BIG) => format!(
            "the arguments and the environment are too long: all together have room in a quarter of \
             the stack's limit, {} (ulimit -s), and each in 128 KiB",
            kibibytes(limit(Resource::RLIMIT_STACK)[0])
        ),
        _ => words(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_name_value_and_remedy() {
        let text = |code| explain(&io::Error::from_raw_os_error(code));
        let files = number(limit(Resource::RLIMIT_NOFILE)[0]);
        for (code, word, value) in [
            (libc::EAGAIN, "ulimit -u", number(limit(Resource::RLIMIT_NPROC)[0])),
            (libc::EMFILE, "ulimit -n", files),
            (libc::ENOMEM, "ulimit -v", kibibytes(limit(Resource::RLIMIT_AS)[0])),
            (libc::EFBIG, "ulimit -f", kibibytes(limit(Resource::RLIMIT_FSIZE)[0])),
            (libc::E2BIG, "ulimit -s", kibibytes(limit(Resource::RLIMIT_STACK)[0])),
        ] {
            let text = text(code);
            assert!(text.contains(word) && text.contains(&value), "{text}");
        }
        assert_eq!(text(libc::ENOENT), "No such file or directory");
        assert_eq!(explain(&io::Error::other("mine")), "mine");
    }
}
