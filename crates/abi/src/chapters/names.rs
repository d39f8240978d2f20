//! Services by name (MPI 5.0, section 11.9.4): a file for each in a folder of the user, so that no server is needed.
//!
//! ```text
//!   $XDG_RUNTIME_DIR or /tmp/weft-UID, mode 700 / names / hexadecimal of the service's name:
//!   process of the publisher, when it started, the name of the port
//! ```
//! A service ends with its publisher: what a process that has ended left behind does not count, and is removed by who meets it.

use crate::arguments::{not_null, optional_info, store_text, text};
use crate::constants::*;
use crate::error::Error;
use crate::state::running;
use crate::types::Info;
use std::ffi::c_char;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The folder, which nobody else may write to.
fn folder() -> io::Result<PathBuf> {
    let user = nix::unistd::geteuid().as_raw();
    let base = match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
        Some(base) if owned(&base, user) => base.join("weft"),
        _ => std::env::temp_dir().join(format!("weft-{user}")),
    };
    for folder in [base.clone(), base.join("names")] {
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ if owned(&folder, user) => {}
            _ => {
                let text = format!("{} is not this user's alone", folder.display());
                return Err(io::Error::new(ErrorKind::PermissionDenied, text));
            }
        }
    }
    Ok(base.join("names"))
}

/// Whether a folder is the user's, and nobody else writes there.
fn owned(folder: &Path, user: u32) -> bool {
    fs::symlink_metadata(folder)
        .is_ok_and(|found| found.is_dir() && found.uid() == user && found.mode() & 0o022 == 0)
}

fn place(service: &str) -> Result<PathBuf, Error> {
    if service.is_empty() || service.len() > 100 {
        let len = service.len();
        let text = format!("argument service_name has {len} bytes: names have 1 to 100");
        return Err(Error::new(MPI_ERR_SERVICE, text));
    }
    let name: String = service.bytes().map(|byte| format!("{byte:02x}")).collect();
    let folder = folder().map_err(|error| {
        Error::new(MPI_ERR_SERVICE, format_args!("the folder of published names: {error}"))
    })?;
    Ok(folder.join(name))
}

/// When a process started, as the system counts; `None`: it is gone.
fn started(pid: u32) -> Option<u64> {
    weft_bootstrap::process_status(pid as i32)?.get(19)?.parse().ok()
}

/// Publisher and port in a file; `None` if nobody has published the name who still lives.
fn published(at: &Path) -> Option<(u32, String)> {
    let text = fs::read_to_string(at).ok()?;
    let mut lines = text.lines();
    let (pid, start) = (lines.next()?.parse().ok()?, lines.next()?.parse().ok()?);
    let port = lines.next()?.to_owned();
    if started(pid) == Some(start) {
        return Some((pid, port));
    }
    let _ = fs::remove_file(at);
    None
}

/// A service, the place of its name, and a port.
struct Named {
    service: String,
    at: PathBuf,
    port: String,
}

/// The arguments of a call that names both.
///
/// # Safety
/// `service` and `port` are NULL or C strings.
unsafe fn named(service: *const c_char, info: Info, port: *const c_char) -> Result<Named, Error> {
    running()?;
    optional_info(info)?;
    // SAFETY: by contract.
    let (service, port) = unsafe { (text(service, "service_name")?, text(port, "port_name")?) };
    Ok(Named { at: place(&service)?, service, port })
}

pub(crate) unsafe fn publish_name(
    service_name: *const c_char,
    info: Info,
    port_name: *const c_char,
) -> Result<(), Error> {
    // SAFETY: the caller's strings.
    let Named { service: name, at, port } = unsafe { named(service_name, info, port_name) }?;
    let failed = |error: io::Error| {
        Error::new(MPI_ERR_SERVICE, format_args!("publishing {name:?}: {error}"))
    };
    if published(&at).is_some() {
        let text = format!("argument service_name: {name:?} is published already");
        return Err(Error::new(MPI_ERR_SERVICE, text));
    }
    let pid = std::process::id();
    let text = format!("{pid}\n{}\n{port}\n", started(pid).unwrap_or(0));
    // Whole or not at all, and of two who publish at once one only.
    let fresh = at.with_extension(pid.to_string());
    let written = File::create(&fresh).and_then(|mut file| file.write_all(text.as_bytes()));
    let linked = written.and_then(|()| fs::hard_link(&fresh, &at));
    let _ = fs::remove_file(&fresh);
    linked.map_err(failed)
}

pub(crate) unsafe fn unpublish_name(
    service_name: *const c_char,
    info: Info,
    port_name: *const c_char,
) -> Result<(), Error> {
    // SAFETY: the caller's strings.
    let Named { service: name, at, port } = unsafe { named(service_name, info, port_name) }?;
    match published(&at) {
        Some((_, found)) if found == port => fs::remove_file(&at).map_err(|error| {
            Error::new(MPI_ERR_SERVICE, format_args!("removing {name:?}: {error}"))
        }),
        _ => {
            let text = format!("argument service_name: {name:?} is not published with this port");
            Err(Error::new(MPI_ERR_SERVICE, text))
        }
    }
}

pub(crate) unsafe fn lookup_name(
    service_name: *const c_char,
    info: Info,
    port_name: *mut c_char,
) -> Result<(), Error> {
    running()?;
    not_null(port_name, "port_name")?;
    optional_info(info)?;
    // SAFETY: the caller's string.
    let name = unsafe { text(service_name, "service_name") }?;
    let Some((_, port)) = published(&place(&name)?) else {
        let text = format!("argument service_name: nobody has published {name:?} on this machine");
        return Err(Error::new(MPI_ERR_NAME, text));
    };
    // SAFETY: the caller's buffer has MPI_MAX_PORT_NAME characters.
    unsafe { store_text(&port, port_name, MPI_MAX_PORT_NAME as usize, "port_name") }?;
    Ok(())
}
