//! An abstract Unix socket that hands two descriptors to processes of the same user.

use crate::segment::Files;
use std::fs::File;
use std::io::{self, Error, ErrorKind};
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;
use weft_bootstrap::calls::{self, Patience, repeat, repeat_c};

/// Four numbers that go with the descriptors.
pub type DescriptorWords = [u64; 4];

pub fn listen(name: &str) -> io::Result<UnixListener> {
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

/// Gives `files` and `words` to `clients` processes of this user. Processes of other users get nothing.
pub fn serve(
    listener: &UnixListener,
    clients: usize,
    files: &Files,
    words: DescriptorWords,
    patience: Duration,
) -> io::Result<()> {
    let mut patience = Patience::new(patience);
    let mut served = 0;
    while served < clients {
        if !readable(listener.as_raw_fd(), &patience)? {
            if !patience.is_over() {
                continue;
            }
            let text = format!("{} of {clients} processes did not come", clients - served);
            return Err(Error::new(ErrorKind::TimedOut, text));
        }
        let (stream, _) = repeat(|| listener.accept())?;
        // SAFETY: geteuid takes no pointers.
        if user(&stream)? == unsafe { libc::geteuid() } && send(&stream, files, words).is_ok() {
            served += 1;
        }
    }
    Ok(())
}

/// Connects to `name`, which must belong to this user, and receives the files and words that [`serve`] sends.
pub fn fetch(name: &str, patience: Duration) -> io::Result<(Files, DescriptorWords)> {
    let stream = calls::connect(&SocketAddr::from_abstract_name(name)?)?;
    // SAFETY: geteuid takes no pointers.
    if user(&stream)? != unsafe { libc::geteuid() } {
        return Err(Error::new(ErrorKind::PermissionDenied, "the socket is another user's"));
    }
    let mut patience = Patience::new(patience);
    while !readable(stream.as_raw_fd(), &patience)? {
        if patience.is_over() {
            return Err(Error::new(ErrorKind::TimedOut, "the lowest rank does not answer"));
        }
    }
    receive(&stream)
}

/// Waits until `fd` is readable, at most until the clock must be read again. Returns true if `fd` is readable.
fn readable(fd: RawFd, patience: &Patience) -> io::Result<bool> {
    let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: `poll` is a single valid pollfd, as the length says.
    match calls::once(|| unsafe { libc::poll(&mut poll, 1, patience.millis()) }) {
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(false),
        other => other.map(|ready| ready > 0),
    }
}

/// Returns the number of the user at the other end.
fn user(stream: &UnixStream) -> io::Result<libc::uid_t> {
    let mut credentials = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the call fills in at most `len` bytes of `credentials`, which is writable for that length.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &mut len,
        )
    };
    if result == 0 { Ok(credentials.uid) } else { Err(Error::last_os_error()) }
}

/// Room for the control message with both descriptors, aligned as its header requires.
#[repr(C)]
struct Control {
    header: libc::cmsghdr,
    fds: [RawFd; 2],
}

/// Makes a message header that names `words` and `control`.
fn message(
    io: &mut libc::iovec,
    words: &mut DescriptorWords,
    control: &mut MaybeUninit<Control>,
) -> libc::msghdr {
    *io =
        libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: size_of::<DescriptorWords>() };
    // SAFETY: all-zero is a valid msghdr (some systems have padding fields).
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = io;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of::<Control>() as _;
    message
}

fn control_len() -> usize {
    // SAFETY: CMSG_LEN only computes a length.
    unsafe { libc::CMSG_LEN(size_of::<[RawFd; 2]>() as u32) as usize }
}

fn send(stream: &UnixStream, files: &Files, mut words: DescriptorWords) -> io::Result<()> {
    let mut io = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
    let header = libc::cmsghdr {
        cmsg_len: control_len() as _,
        cmsg_level: libc::SOL_SOCKET,
        cmsg_type: libc::SCM_RIGHTS,
    };
    let fds = [files.segment.as_raw_fd(), files.arenas.as_raw_fd()];
    let mut control = MaybeUninit::new(Control { header, fds });
    let message = message(&mut io, &mut words, &mut control);
    // SAFETY: `message` names `words`, `io` and `control` with their lengths. All of them live until the call returns.
    let n =
        repeat_c(|| unsafe { libc::sendmsg(stream.as_raw_fd(), &message, libc::MSG_NOSIGNAL) })?;
    if n == size_of::<DescriptorWords>() as isize {
        Ok(())
    } else {
        Err(ErrorKind::WriteZero.into())
    }
}

fn receive(stream: &UnixStream) -> io::Result<(Files, DescriptorWords)> {
    let mut words = [0; 4];
    let mut io = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
    let mut control = MaybeUninit::<Control>::zeroed();
    let mut message = message(&mut io, &mut words, &mut control);
    // SAFETY: `message` names `words`, `io` and `control` with their lengths. All of them live until the call returns.
    let n = repeat_c(|| unsafe {
        libc::recvmsg(stream.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC)
    })?;
    // SAFETY: `control` was zeroed before the call, and any bytes are a valid `Control`.
    let control = unsafe { control.assume_init() };
    if n == 0 {
        return Err(Error::new(ErrorKind::UnexpectedEof, "the lowest rank is gone"));
    }
    let header = &control.header;
    let named = message.msg_controllen as usize >= size_of::<libc::cmsghdr>()
        && header.cmsg_level == libc::SOL_SOCKET
        && header.cmsg_type == libc::SCM_RIGHTS;
    let came = if named { header.cmsg_len } else { 0 };
    // SAFETY: the kernel made these descriptors for this process with SCM_RIGHTS, and nothing else owns them.
    let files = control
        .fds
        .iter()
        .take(came.saturating_sub(size_of::<libc::cmsghdr>()) / size_of::<RawFd>())
        .map(|&fd| unsafe { File::from_raw_fd(fd) });
    let files: Vec<File> = files.collect();
    let Ok([segment, arenas]) = <[File; 2]>::try_from(files) else {
        // The kernel leaves out descriptors that the limit on open files does not allow.
        let full = message.msg_flags & libc::MSG_CTRUNC != 0;
        return Err(match full {
            true => Error::from_raw_os_error(libc::EMFILE),
            false => Error::new(ErrorKind::InvalidData, "no descriptor came with the message"),
        });
    };
    if n as usize != size_of::<DescriptorWords>() {
        return Err(Error::new(ErrorKind::UnexpectedEof, "the lowest rank is gone"));
    }
    Ok((Files { segment, arenas }, words))
}

const _: () = assert!(std::mem::offset_of!(Control, fds) == size_of::<libc::cmsghdr>());
