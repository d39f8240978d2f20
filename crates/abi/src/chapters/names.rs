//! Published services (MPI 5.0, section 11.9.4): a file for each service in folders of the user, so that no server is needed.
//!
//! ```text
//!   $XDG_RUNTIME_DIR/weft, /run/user/UID/weft, /tmp/weft-UID: the folders that exist, mode 700
//!      / names / hexadecimal of the service's name: process of the publisher, its start time, the name of the port
//! ```
//! A name is published in all these folders, and looked up in all of them. So two processes that share a folder find each other,
//! even if their environments differ. A service ends with its publisher. The file of a process that has ended does not count, and a
//! process that finds such a file removes it.

use crate::arguments::{not_null, optional_info, store_text, string};
use crate::constants::*;
use crate::error::Error;
use crate::state::running;
use crate::types::Info;
use std::ffi::{OsStr, OsString, c_char};
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use weft_bootstrap::limits::explain;
use weft_bootstrap::privileged::path_of;

/// Lists the folders that may belong to the user, without repetition. Each contains the folder of names, which is created if
/// necessary.
fn bases(user: u32) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let of_session = path_of("XDG_RUNTIME_DIR").map(PathBuf::from);
    for base in of_session.into_iter().chain([format!("/run/user/{user}").into()]) {
        if owned(&base, user) {
            all.push(base.join("weft"));
        }
    }
    // TMPDIR is not used, because its value differs between shells and jobs.
    all.push(format!("/tmp/weft-{user}").into());
    all.dedup();
    all
}

/// Returns the usable folders of names, to which no other user may write. Fails if there is none.
fn folders() -> io::Result<Vec<PathBuf>> {
    let user = nix::unistd::geteuid().as_raw();
    let (mut all, mut failed) = (Vec::new(), None);
    for base in bases(user) {
        match prepared(&base, user) {
            Ok(folder) => all.push(folder),
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        Some(error) if all.is_empty() => Err(error),
        _ => Ok(all),
    }
}

/// Returns the folder of names under `base`, and creates it if necessary.
fn prepared(base: &Path, user: u32) -> io::Result<PathBuf> {
    let names = base.join("names");
    for folder in [base, &names] {
        let told = |text: String| io::Error::new(ErrorKind::PermissionDenied, text);
        match DirBuilder::new().mode(0o700).create(folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(told(format!("{}: {}", folder.display(), explain(&error))));
            }
            _ if owned(folder, user) => {}
            _ => return Err(told(format!("{} is not this user's alone", folder.display()))),
        }
    }
    Ok(names)
}

/// Returns true if a folder belongs to the user and no other user may write to it.
fn owned(folder: &Path, user: u32) -> bool {
    fs::symlink_metadata(folder)
        .is_ok_and(|found| found.is_dir() && found.uid() == user && found.mode() & 0o022 == 0)
}

/// Lists the files in which the name of a service may be published.
fn places(service: &OsStr) -> Result<Vec<PathBuf>, Error> {
    if service.is_empty() || service.len() > 100 {
        let len = service.len();
        let text = format!("argument service_name has {len} bytes: names have 1 to 100");
        return Err(Error::new(MPI_ERR_SERVICE, text));
    }
    let name: String = service.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let folders = folders().map_err(|error| {
        Error::new(
            MPI_ERR_SERVICE,
            format_args!("the folder of published names: {}", explain(&error)),
        )
    })?;
    Ok(folders.into_iter().map(|folder| folder.join(&name)).collect())
}

/// Returns the time at which a process started, in clock ticks since boot, or `None` if the process has ended.
fn started(pid: u32) -> Option<u64> {
    weft_bootstrap::process_status(pid as i32)?.get(19)?.parse().ok()
}

/// Returns the port in a file, or `None` if no living process has published the name there.
fn published(at: &Path) -> Option<OsString> {
    let said = fs::read(at).ok()?;
    let mut parts = said.splitn(3, |&byte| byte == b'\n');
    let mut number = || std::str::from_utf8(parts.next()?).ok()?.parse::<u64>().ok();
    let (pid, start) = (number()?, number()?);
    let port = OsStr::from_bytes(parts.next()?).to_owned();
    if started(u32::try_from(pid).ok()?) == Some(start) {
        return Some(port);
    }
    let _ = fs::remove_file(at);
    None
}

/// A published service: its name, its files, and its port.
struct Named {
    service: OsString,
    places: Vec<PathBuf>,
    port: OsString,
}

/// Checks the arguments of a call that names both a service and a port.
///
/// # Safety
/// `service` and `port` are NULL or C strings.
unsafe fn named(service: *const c_char, info: Info, port: *const c_char) -> Result<Named, Error> {
    running()?;
    optional_info(info)?;
    // SAFETY: `service` and `port` are NULL or C strings; the contract of this function says so.
    let (service, port) = unsafe { (string(service, "service_name")?, string(port, "port_name")?) };
    if port.len() >= MPI_MAX_PORT_NAME as usize {
        let len = port.len();
        let most = MPI_MAX_PORT_NAME - 1;
        let text =
            format!("argument port_name has {len} bytes: at most {most} (MPI_MAX_PORT_NAME - 1)");
        return Err(Error::new(MPI_ERR_PORT, text));
    }
    Ok(Named { places: places(&service)?, service, port })
}

/// Writes a name completely or not at all. If two processes publish the same name at the same time, only one of them succeeds.
fn write(at: &Path, said: &[u8]) -> io::Result<()> {
    let fresh = at.with_extension(std::process::id().to_string());
    let written = File::create(&fresh).and_then(|mut file| file.write_all(said));
    let linked = written.and_then(|()| fs::hard_link(&fresh, at));
    let _ = fs::remove_file(&fresh);
    linked
}

/// MPI_Publish_name.
pub(crate) unsafe fn publish_name(
    service_name: *const c_char,
    info: Info,
    port_name: *const c_char,
) -> Result<(), Error> {
    // SAFETY: `service_name` and `port_name` are NULL or C strings, as MPI requires of the program.
    let Named { service: name, places, port } = unsafe { named(service_name, info, port_name) }?;
    let twice = || {
        let text = format!("argument service_name: {name:?} is published already");
        Error::new(MPI_ERR_SERVICE, text)
    };
    if places.iter().any(|at| published(at).is_some()) {
        return Err(twice());
    }
    let pid = std::process::id();
    let mut said = format!("{pid}\n{}\n", started(pid).unwrap_or(0)).into_bytes();
    said.extend(port.as_bytes());
    let (mut written, mut failed) = (Vec::new(), None);
    for at in &places {
        match write(at, &said) {
            Ok(()) => written.push(at),
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        // A folder that is full or read-only is no error if the name was written to another folder.
        Some(error) if written.is_empty() || error.kind() == ErrorKind::AlreadyExists => {
            written.into_iter().for_each(|at| drop(fs::remove_file(at)));
            Err(match error.kind() {
                ErrorKind::AlreadyExists => twice(),
                _ => Error::new(
                    MPI_ERR_SERVICE,
                    format_args!("publishing {name:?}: {}", explain(&error)),
                ),
            })
        }
        _ => Ok(()),
    }
}

/// MPI_Unpublish_name.
pub(crate) unsafe fn unpublish_name(
    service_name: *const c_char,
    info: Info,
    port_name: *const c_char,
) -> Result<(), Error> {
    // SAFETY: `service_name` and `port_name` are NULL or C strings, as MPI requires of the program.
    let Named { service: name, places, port } = unsafe { named(service_name, info, port_name) }?;
    let there: Vec<_> =
        places.iter().filter(|at| published(at).is_some_and(|found| found == port)).collect();
    if there.is_empty() {
        let text = format!("argument service_name: {name:?} is not published with this port");
        return Err(Error::new(MPI_ERR_SERVICE, text));
    }
    there.into_iter().try_for_each(fs::remove_file).map_err(|error| {
        Error::new(MPI_ERR_SERVICE, format_args!("removing {name:?}: {}", explain(&error)))
    })
}

/// MPI_Lookup_name.
pub(crate) unsafe fn lookup_name(
    service_name: *const c_char,
    info: Info,
    port_name: *mut c_char,
) -> Result<(), Error> {
    running()?;
    not_null(port_name, "port_name")?;
    optional_info(info)?;
    // SAFETY: `string` needs a string that ends with a NUL, which the program passes as MPI requires.
    let name = unsafe { string(service_name, "service_name") }?;
    let Some(port) = places(&name)?.iter().find_map(|at| published(at)) else {
        let text = format!("argument service_name: nobody has published {name:?} on this machine");
        return Err(Error::new(MPI_ERR_NAME, text));
    };
    // SAFETY: `port_name` is not NULL, so it has MPI_MAX_PORT_NAME characters, as MPI requires of the program.
    unsafe { store_text(port.as_bytes(), port_name, MPI_MAX_PORT_NAME as usize, "port_name") }?;
    Ok(())
}
