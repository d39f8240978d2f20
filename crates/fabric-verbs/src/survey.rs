//! Selection of the ports that become rails, with the reasons why other ports do not become rails.

use crate::adapter::device::{self, DeviceContext, DeviceList, DevicePort};
use crate::adapter::path;
use crate::adapter::subnets;
use crate::memlock::Memlock;
use crate::sizes::{BUFFER, QueueDepths};
use crate::{VerbsConnectError, VerbsOptions};
use std::sync::Arc;

/// The hardware of this machine that [`crate::Verbs`] can use, examined before a process connects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    /// Ports that become rails, in their order.
    pub rails: Vec<DevicePort>,
    /// Ports that do not become rails, each with the reason.
    pub unused: Vec<(DevicePort, String)>,
    /// Reasons why adapters cannot be used at all, each with the adapter's name and a remedy.
    pub unusable: Vec<String>,
    /// Limits of a process and costs of a peer, as sentences.
    pub bounds: Vec<String>,
}

/// Sizes of the jobs for which limits are shown, in ranks: the smallest job that needs a network, and a large job.
const SIZES: [usize; 2] = [2, 4096];

impl Survey {
    /// Examines the adapters of this machine. An error is the reason why there is no rail.
    pub fn look(options: &VerbsOptions) -> Result<Survey, VerbsConnectError> {
        let memlock = Memlock::get();
        let mut chosen = choose(options)?;
        chosen.fit(options, SIZES[0], &memlock)?;
        let room = memlock.buffers(chosen.rails.len());
        let mut bounds: Vec<String> = SIZES
            .into_iter()
            .map(|size| {
                let it = QueueDepths::new(options, size, &chosen.rails, room);
                format!(
                    "{size} ranks: up to {} connections (queue pairs) a process, made when first \
                     needed; a peer costs {} KiB of locked memory and may have {} messages unreceived",
                    it.connections,
                    (it.buffers() * BUFFER) >> 10,
                    it.messages
                )
            })
            .collect();
        bounds.push(format!("locked memory: {}", memlock.describe()));
        let ChosenPorts { rails, unused, unusable, .. } = chosen;
        let rails = rails.into_iter().map(|(_, port)| port).collect();
        Ok(Survey { rails, unused, unusable, bounds })
    }
}

/// The ports that become rails, with their adapters, and the ports and adapters that do not.
#[derive(Default)]
pub struct ChosenPorts {
    pub rails: Vec<(Arc<DeviceContext>, DevicePort)>,
    unused: Vec<(DevicePort, String)>,
    unusable: Vec<String>,
    /// Notes for the user about ports that could be rails if a problem were solved.
    pub notes: Vec<String>,
    /// The networks of the rails. All processes of the job use the same names. Empty until the processes have agreed.
    pub networks: Vec<String>,
}

impl ChosenPorts {
    /// Reduces the number of rails until this process may lock the memory for the rails and for a job of `size` processes. Returns
    /// an error if the limit is too small even for one rail.
    pub fn fit(
        &mut self,
        options: &VerbsOptions,
        size: usize,
        memlock: &Memlock,
    ) -> Result<QueueDepths, VerbsConnectError> {
        loop {
            let rails = self.rails.len();
            let bounds = QueueDepths::new(options, size, &self.rails, memlock.buffers(rails));
            let enough = memlock.check(rails, bounds.buffers());
            let wanted = QueueDepths::new(options, size, &self.rails, usize::MAX).connections;
            if enough.is_ok() && (rails == 1 || bounds.connections == wanted) {
                if bounds.connections < wanted {
                    self.notes.push(format!(
                        "the limit on locked memory has room for {} connections, not for {wanted}; \
                         raise it (`ulimit -l unlimited`)",
                        bounds.connections
                    ));
                }
                return Ok(bounds);
            }
            if rails == 1 {
                return enough.map(|()| bounds);
            }
            let (_, port) = self.rails.pop().expect("more than one");
            let why =
                "the limit on locked memory has no room for it; raise it (`ulimit -l unlimited`)";
            self.notes.push(format!("{} is not used: {why}", port.name()));
            self.unused.push((port, why.to_owned()));
        }
    }
}

/// Chooses the rails. If the options name ports, they become rails in the order of the options. Otherwise all usable ports become
/// rails, in the order of their names. A broken port does not prevent the use of other ports.
pub fn choose(options: &VerbsOptions) -> Result<ChosenPorts, VerbsConnectError> {
    select(device::look(options)?, options)
}

fn select(look: DeviceList, options: &VerbsOptions) -> Result<ChosenPorts, VerbsConnectError> {
    let DeviceList { ports, refused } = look;
    let mut refused = together(refused);
    let is = |port: &DevicePort, name: &String| port.device == *name || port.name() == *name;
    for name in &options.devices {
        if ports.iter().any(|(_, port)| is(port, name)) {
            continue;
        }
        // The options name this adapter, so the answer is the reason why it cannot be used.
        let device = name.split(':').next().unwrap_or(name);
        if let Some(at) = refused.iter().position(|(names, _)| names.iter().any(|n| n == device)) {
            return Err(refused.swap_remove(at).1);
        }
        let found = ports.iter().map(|(_, port)| port.name()).collect();
        return Err(VerbsConnectError::NoSuchDevice { wanted: name.clone(), found });
    }
    let place = |port: &DevicePort| options.devices.iter().position(|name| is(port, name));
    let (mut wanted, mut others): (Vec<_>, Vec<_>) = ports
        .into_iter()
        .partition(|(_, port)| options.devices.is_empty() || place(port).is_some());
    wanted.sort_by_key(|(_, port)| place(port));
    let (wanted, left) = subnets::only(path::spread(wanted, options.paths), &options.networks);
    others.extend(left);
    let (mut rails, mut unused, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    let most = options.rails.clamp(1, crate::RAILS_MAX);
    for (context, port) in wanted {
        match port.trouble() {
            Some(why) if port.path == 0 => {
                notes.push(format!("{} is not used: {why}", port.name()));
                unused.push((port, why));
            }
            Some(_) => {}
            None if rails.len() == most => {
                unused.push((port, format!("{most} rails are the most")));
            }
            None => rails.push((context, port)),
        }
    }
    let unusable: Vec<String> = refused.iter().map(|(_, error)| error.to_string()).collect();
    if !rails.is_empty() {
        unused.extend(others.drain(..).map(|(_, port)| (port, "others were named".to_owned())));
        notes.extend(unusable.iter().map(|why| format!("an adapter is not used: {why}")));
        return Ok(ChosenPorts { rails, unused, unusable, notes, networks: Vec::new() });
    }
    if unused.is_empty() && refused.len() == 1 {
        return Err(refused.swap_remove(0).1);
    }
    let reasons = unused.into_iter().map(|(_, why)| why).chain(unusable).collect();
    Err(VerbsConnectError::NoActivePort { reasons })
}

/// Merges the errors of all adapters that this process has no permission to open into one error with one remedy.
fn together(refused: Vec<(String, VerbsConnectError)>) -> Vec<(Vec<String>, VerbsConnectError)> {
    let mut result = Vec::new();
    let (mut names, mut all) = (Vec::new(), Vec::new());
    for (name, error) in refused {
        if let VerbsConnectError::NoPermission { denied } = error {
            names.push(name);
            all.extend(denied);
        } else {
            result.push((vec![name], error));
        }
    }
    if !all.is_empty() {
        result.insert(0, (names, VerbsConnectError::NoPermission { denied: all }));
    }
    result
}
