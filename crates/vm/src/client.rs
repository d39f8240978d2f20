//! `weft-vm-run HOST COMMAND...`: runs a command in the other virtual machine, in place of `ssh`. As with ssh, the words are
//! joined by spaces and given to a shell, the exit code is that of the command, and 255 means that the connection failed.

use super::agent::PORT;
use super::frame::{self, RunCommand, VmFrame};
use std::io::{ErrorKind, Read, Write, stderr, stdin, stdout};
use std::net::{TcpStream, ToSocketAddrs};
use std::thread;
use std::time::Duration;

/// Exit code if the connection failed or broke.
const FAILED: u8 = 255;

/// Maximum time until an agent accepts the connection, and maximum silence of an agent, which reports every second that it is
/// alive.
const SILENCE: Duration = Duration::from_secs(25);

/// Options of ssh that take a value; all other options take none. All options are accepted and have no effect.
const VALUED: &str = "bcDEeFIiJLlmOopQRSWw";

/// Splits ssh's arguments into host and command.
fn parse(args: &[String]) -> Result<(String, String), String> {
    let mut args = args.iter();
    let usage = "usage: weft-vm-run HOST COMMAND..., with HOST vm0 or vm1";
    let host = loop {
        let arg = args.next().ok_or(usage)?;
        let Some(option) = arg.strip_prefix('-') else { break arg };
        if option == "-" {
            break args.next().ok_or(usage)?;
        }
        // In `-xo value` the first letter that takes a value ends the word; `-ovalue` contains its value.
        if option.find(|c| VALUED.contains(c)).is_some_and(|at| at + 1 == option.len()) {
            args.next().ok_or(usage)?;
        }
    };
    let host = host.rsplit('@').next().unwrap_or(host).to_owned();
    let words: Vec<&str> = args.map(String::as_str).collect();
    if words.is_empty() {
        return Err(format!("{usage}: no command for '{host}'"));
    }
    Ok((host, words.join(" ")))
}

/// Runs the command. Returns its exit code.
pub fn run(args: &[String]) -> u8 {
    let result = parse(args).and_then(|(host, command)| {
        converse(&host, command).map_err(|e| format!("weft-vm-run: {host}: {e}"))
    });
    result.unwrap_or_else(|text| {
        eprintln!("{text}");
        FAILED
    })
}

fn connect(host: &str) -> Result<TcpStream, String> {
    let addresses = (host, PORT).to_socket_addrs().map_err(|e| {
        format!("unknown host ({e}); the hosts are those of $WEFT_VM_HOSTS, vm0 and vm1")
    })?;
    let mut last = "no address".to_owned();
    for address in addresses {
        match TcpStream::connect_timeout(&address, SILENCE) {
            Ok(stream) => return Ok(stream),
            Err(e) => last = format!("cannot connect to {address}: {e}"),
        }
    }
    Err(last)
}

fn converse(host: &str, command: String) -> Result<u8, String> {
    let mut stream = connect(host)?;
    let _ = stream.set_nodelay(true);
    stream.set_read_timeout(Some(SILENCE)).map_err(|e| e.to_string())?;
    let words = vec!["/bin/sh".to_owned(), "-c".to_owned(), command];
    let run = RunCommand { words, environment: None, folder: None, limited: true };
    let mut writer = stream.try_clone().map_err(|e| e.to_string())?;
    frame::write(&mut writer, &VmFrame::Run(run)).map_err(|e| e.to_string())?;
    thread::spawn(move || {
        let mut piece = vec![0; 1 << 16];
        while let Ok(length @ 1..) = stdin().lock().read(&mut piece) {
            if frame::write(&mut writer, &VmFrame::Input(piece[..length].to_vec())).is_err() {
                return;
            }
        }
        let _ = frame::write(&mut writer, &VmFrame::InputEnd);
    });
    loop {
        match frame::read(&mut stream) {
            Ok(Some(VmFrame::Output(bytes))) => {
                let mut out = stdout().lock();
                // If the output has no reader any more, this program ends like a program that gets SIGPIPE.
                if out.write_all(&bytes).and_then(|()| out.flush()).is_err() {
                    return Ok(141);
                }
            }
            Ok(Some(VmFrame::Errors(bytes))) => {
                let _ = stderr().write_all(&bytes);
            }
            Ok(Some(VmFrame::Ended(code))) => return Ok(code.clamp(0, 255) as u8),
            Ok(Some(_)) => {}
            Ok(None) => return Err("the connection was closed".to_owned()),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(format!("the connection is lost: silent for {SILENCE:?}"));
            }
            Err(e) => return Err(format!("the connection is lost: {e}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<(String, String), String> {
        parse(&text.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_are_those_of_ssh() {
        let is = |text: &str, host: &str, command: &str| {
            assert_eq!(parsed(text), Ok((host.to_owned(), command.to_owned())), "{text}");
        };
        is("vm1 hostname", "vm1", "hostname");
        is("vm1 echo -n x", "vm1", "echo -n x");
        is("-x vm1 env A=1 prog -o y", "vm1", "env A=1 prog -o y");
        is("-o BatchMode=yes -xoPort=1 -qo P=2 root@vm0 true", "vm0", "true");
        is("-- vm1 true", "vm1", "true");
        assert!(parsed("vm1").is_err());
        assert!(parsed("-x").is_err());
        assert!(parsed("-o").is_err());
    }
}
