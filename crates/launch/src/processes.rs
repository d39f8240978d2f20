//! The descendants of this process, found in /proc. The supervisor is a "subreaper": if the parent of a descendant dies, the
//! descendant becomes a child of the supervisor. This also holds for daemons.

use std::collections::HashMap;
use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Returns parent and state letter (`R`, `S`, `D`, `T`, `Z`) of a process; `None` if the process is gone.
pub fn look(pid: i32) -> Option<(i32, char)> {
    let fields = weft_bootstrap::process_status(pid)?;
    let state = fields.first()?.chars().next()?;
    Some((fields.get(1)?.parse().ok()?, state))
}

/// A thread of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessThread {
    /// Name of the thread, of at most 15 bytes.
    pub name: String,
    /// State letter.
    pub state: char,
    /// True for the thread that began the process.
    pub is_main: bool,
}

/// Lists the threads of a process; `None` if the process is gone or another user's.
pub fn threads(pid: i32) -> Option<Vec<ProcessThread>> {
    let task = |entry: std::io::Result<fs::DirEntry>| {
        let folder = entry.ok()?.path();
        let text = fs::read_to_string(folder.join("stat")).ok()?;
        // The name in parentheses may contain any character.
        let (number, rest) = text.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let (name, is_main) = (name.to_owned(), number.parse() == Ok(pid));
        Some(ProcessThread { name, state: rest.chars().next()?, is_main })
    };
    fs::read_dir(format!("/proc/{pid}/task")).ok()?.map(task).collect()
}

/// Returns all live descendants of `root`.
pub fn descendants(root: i32) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<(i32, char)>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Some((parent, state)) = look(pid) {
            children.entry(parent).or_default().push((pid, state));
        }
    }
    let mut found = Vec::new();
    let mut queue = vec![root];
    while let Some(parent) = queue.pop() {
        for (pid, state) in children.remove(&parent).unwrap_or_default() {
            queue.push(pid);
            if state != 'Z' {
                found.push(pid);
            }
        }
    }
    found
}

/// Returns true if ranks of this job have started another job. Then a descendant runs the same program as this process.
pub fn is_job_below() -> bool {
    let program = |pid: i32| fs::read_link(format!("/proc/{pid}/exe")).ok();
    let me = std::process::id() as i32;
    let own = program(me);
    own.is_some() && descendants(me).into_iter().any(|pid| program(pid) == own)
}

/// Returns true if `ancestor` is an ancestor of `pid`, or the same process.
pub fn is_ancestor(ancestor: i32, mut pid: i32) -> bool {
    while pid > 1 {
        if pid == ancestor {
            return true;
        }
        let Some((parent, _)) = look(pid) else { return false };
        pid = parent;
    }
    false
}

/// Returns true if a process exists and has not ended.
pub fn is_alive(pid: i32) -> bool {
    look(pid).is_some_and(|(_, state)| state != 'Z' && state != 'X')
}

/// Sends a signal. Does nothing if the process has ended.
pub fn send(pid: i32, signal: Signal) {
    let _ = kill(Pid::from_raw(pid), signal);
}

/// Sends a signal to all descendants of this process.
pub fn send_all(signal: Signal) {
    for pid in descendants(std::process::id() as i32) {
        send(pid, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_listed_with_name_and_state() {
        let (tell, asked) = std::sync::mpsc::channel::<()>();
        let builder = std::thread::Builder::new().name("a) (b".to_owned());
        let thread = builder.spawn(move || asked.recv()).unwrap();
        let me = std::process::id() as i32;
        let named = || threads(me).unwrap().into_iter().find(|task| task.name == "a) (b");
        while named().is_none_or(|task| task.state != 'S') {
            std::thread::yield_now();
        }
        assert!(!named().unwrap().is_main);
        assert_eq!(threads(me).unwrap().iter().filter(|task| task.is_main).count(), 1);
        drop(tell);
        let _ = thread.join();
        assert_eq!(threads(0), None);
    }

    #[test]
    fn a_child_is_found_and_gone_after_its_end() {
        let me = std::process::id() as i32;
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = child.id() as i32;
        assert!(descendants(me).contains(&pid));
        assert!(is_ancestor(me, pid) && !is_ancestor(pid, me) && is_alive(pid));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_alive(pid) && !descendants(me).contains(&pid));
    }
}
