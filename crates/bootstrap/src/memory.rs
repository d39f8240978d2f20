//! Memory files without a path, which processes pass to each other.

use std::ffi::CStr;
use std::io;
use std::os::fd::OwnedFd;

use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::limits::explain;

/// Creates an empty memory file that can be sealed. /proc shows `name`. An error names the obstacle and its remedy.
pub fn file(name: &CStr) -> io::Result<OwnedFd> {
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    // Kernels before 6.3 do not know NOEXEC_SEAL; later kernels may require it.
    let unexecutable = flags | MFdFlags::from_bits_retain(libc::MFD_NOEXEC_SEAL);
    let made = memfd_create(name, unexecutable).or_else(|_| memfd_create(name, flags));
    made.map_err(|errno| {
        let error = io::Error::from(errno);
        let why = match errno {
            nix::Error::EPERM | nix::Error::EACCES | nix::Error::ENOSYS => format!(
                "{}: a filter of system calls (seccomp, of the container or the service manager) forbids this call, which \
                 memory between processes needs; allow memfd_create there",
                errno.desc()
            ),
            _ => explain(&error),
        };
        io::Error::new(error.kind(), format!("memfd_create: {why}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::start_thread;
    use std::thread;

    /// Makes the given system calls of this thread fail with `errno`.
    fn forbid(calls: &[i64], errno: i32) {
        let op = |code: u32, jump: u8, k: u32| libc::sock_filter {
            code: code as u16,
            jt: 0,
            jf: jump,
            k,
        };
        let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
        let mut filter = vec![op(load, 0, 0)];
        for &call in calls {
            // If the call has another number, the filter skips the next line.
            filter.push(op(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, call as u32));
            filter.push(op(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO | errno as u32));
        }
        filter.push(op(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW));
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        // SAFETY: prctl(2) reads the program, which is alive; both calls affect only this thread.
        let done = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) == 0
        };
        assert!(done, "{}", io::Error::last_os_error());
    }

    #[test]
    fn what_forbids_memory_is_named() {
        for errno in [libc::EPERM, libc::EACCES, libc::ENOSYS] {
            let said = thread::spawn(move || {
                forbid(&[libc::SYS_memfd_create], errno);
                file(c"x").unwrap_err().to_string()
            });
            let said = said.join().unwrap();
            assert!(said.contains("memfd_create") && said.contains("seccomp"), "{said}");
        }
        let said = thread::spawn(|| {
            forbid(&[libc::SYS_memfd_create], libc::EMFILE);
            file(c"x").unwrap_err().to_string()
        });
        assert!(said.join().unwrap().contains("ulimit -n"));
        assert!(file(c"x").is_ok());
    }

    #[test]
    fn what_forbids_threads_is_named() {
        let said = thread::spawn(|| {
            forbid(&[libc::SYS_clone, libc::SYS_clone3], libc::EAGAIN);
            start_thread("none", || ()).unwrap_err().to_string()
        });
        let said = said.join().unwrap();
        assert!(said.contains("ulimit -u") && said.contains("thread"), "{said}");
    }
}
