//! One host and its cables.

use super::{BEYOND, FOLDER, NetArgs};
use std::io::Read;
use std::process::{Child, Command, Stdio};

/// Runs a command that must succeed. An error has the command's own message.
pub fn done(words: &[&str]) -> Result<(), String> {
    let output = Command::new(words[0]).args(&words[1..]).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{}: {error}", words[0]))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("`{}`: {}", words.join(" "), said.trim()))
}

/// Returns the name of the switch to which cable `cable` of each host leads.
pub fn switch(cable: u8) -> String {
    format!("switch{cable}")
}

/// Returns the name of the switch's end of a cable.
pub fn port(host: u8, cable: u8) -> String {
    format!("node{host}-{cable}")
}

/// Returns the addresses of a host on a cable, as ip(8) writes them.
pub fn addresses(host: u8, cable: u8, args: &NetArgs) -> Vec<String> {
    let (four, six) =
        (format!("10.77.{cable}.{}/24", host + 1), format!("fd77:{cable}::{}/64", host + 1));
    if args.ipv6 { vec![six] } else { vec![four, six] }
}

/// A host. The host exists as long as the process that holds its namespaces.
pub struct NetHost {
    pub holder: Child,
}

impl NetHost {
    /// Makes the namespaces of a host. Host 0 has no process and mount namespaces of its own, so this process can start programs on
    /// host 0.
    pub fn start(number: u8) -> Result<NetHost, String> {
        let mut command = Command::new("unshare");
        command.args(["--net", "--uts", "--ipc"]);
        let mut script = format!("hostname node{number}; ");
        if number > 0 {
            command.args(["--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]);
            script += "mount -t tmpfs tmpfs /dev/shm; ";
            script += &format!("mount --bind {FOLDER}/{BEYOND} {FOLDER}/net-run; ");
        }
        script += "ip link set lo up; echo ready; exec sleep infinity";
        command.args(["--", "sh", "-c", &script]).stdin(Stdio::null()).stdout(Stdio::piped());
        // The error output is read only if the process does not start.
        command.stderr(Stdio::piped());
        let mut holder = command.spawn().map_err(|error| format!("unshare: {error}"))?;
        let mut said = [0; 6];
        let stdout = holder.stdout.as_mut().expect("asked for");
        if stdout.read_exact(&mut said).is_err() {
            let mut why = String::new();
            let _ = holder.stderr.take().expect("asked for").read_to_string(&mut why);
            return Err(format!("node{number} did not start: {}", why.trim()));
        }
        Ok(NetHost { holder })
    }

    /// Returns the number of the process that holds the namespaces. If the host has a process namespace, this is the first process
    /// of the namespace.
    pub fn pid(&self) -> Result<String, String> {
        let own = self.holder.id();
        let children =
            std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
        Ok(children.split_whitespace().next().map_or_else(|| own.to_string(), str::to_owned))
    }

    /// Connects cable `cable` to the host.
    pub fn plug(&self, number: u8, cable: u8, args: &NetArgs) -> Result<(), String> {
        let (pid, port, switch, end) =
            (self.pid()?, port(number, cable), switch(cable), format!("eth{cable}"));
        done(&["ip", "link", "add", &port, "type", "veth", "peer", "name", &end, "netns", &pid])?;
        done(&["ip", "link", "set", &port, "master", &switch, "up"])?;
        let there = ["nsenter", "-t", &pid, "-n"];
        let on_host = |words: &[&str]| done(&[&there[..], words].concat());
        for address in addresses(number, cable, args) {
            // The kernel need not look for duplicates of the address, because no other host has this address.
            let nodad: &[&str] = if address.contains("::") { &["nodad"] } else { &[] };
            on_host(&[&["ip", "address", "add", &address, "dev", &end], nodad].concat())?;
        }
        on_host(&["ip", "link", "set", &end, "up"])?;
        let Some(shape) = shape(args) else { return Ok(()) };
        let add = |dev: &str| -> Vec<String> {
            let words = format!("tc qdisc add dev {dev} root {shape}");
            words.split(' ').map(str::to_owned).collect()
        };
        let (out, back) = (add(&end), add(&port));
        on_host(&out.iter().map(String::as_str).collect::<Vec<_>>())?;
        done(&back.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

/// Returns the words for tc(8) that shape a cable. Delay and loss need the kernel's netem, but a rate does not.
fn shape(args: &NetArgs) -> Option<String> {
    let word = |name: &str, value: &Option<String>| {
        value.as_ref().map(|value| format!(" {name} {value}")).unwrap_or_default()
    };
    match (&args.rate, &args.delay, &args.loss) {
        (None, None, None) => None,
        (Some(rate), None, None) => Some(format!("tbf rate {rate} burst 256kb latency 20ms")),
        (rate, delay, loss) => {
            let all = [word("rate", rate), word("delay", delay), word("loss", loss)].concat();
            Some(format!("netem limit 10000{all}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_alone_needs_no_netem() {
        let mut args = NetArgs {
            hosts: 2,
            cables: 1,
            rate: None,
            delay: None,
            loss: None,
            ipv6: false,
            timeout: 1,
            command: Vec::new(),
        };
        assert_eq!(shape(&args), None);
        args.rate = Some("1gbit".to_owned());
        assert!(shape(&args).unwrap().starts_with("tbf rate 1gbit "));
        args.loss = Some("1%".to_owned());
        assert_eq!(shape(&args).unwrap(), "netem limit 10000 rate 1gbit loss 1%");
    }
}
