//! Settings that may change while MPI runs, and the actions that a change needs. All other settings are read once, when the engine is
//! built.

use super::{SettingSpec, algorithm};
use crate::engine::Engine;
use crate::selection;
use crate::settings;
use crate::state::state;
use std::rc::Rc;
use std::time::Duration;
use weft_channel::rails::Thresholds;
use weft_collective::CollectiveKind;
use weft_fabric::Fabric;
use weft_fabric::copies::{Caches, PastCaches};
use weft_fabric::wait::WaitPolicy;
use weft_p2p::stream::StreamSizes;
use weft_p2p::{ProtocolChange, Rendezvous};

/// Reason why a value was not accepted.
pub enum ChangeRefusal {
    /// The value is invalid, for this reason.
    Wrong(String),
    /// The value can no longer be changed, for this reason.
    Late(&'static str),
}

impl From<String> for ChangeRefusal {
    fn from(text: String) -> ChangeRefusal {
        ChangeRefusal::Wrong(text)
    }
}

/// Effect of writing a setting while MPI runs.
pub struct RuntimeChange {
    /// Description of the first use of the new value, such as `the next send`.
    pub from: &'static str,
    /// Passes the present value to the engine.
    pub take: fn(&Rc<Engine>) -> Result<(), ChangeRefusal>,
}

/// Returns the effect of writing a setting while MPI runs; `None` if the setting must not change.
pub fn runtime_change(setting: &SettingSpec) -> Option<RuntimeChange> {
    let (from, take): (_, fn(&Rc<Engine>) -> _) = match setting.name {
        "WEFT_EAGER" | "WEFT_RENDEZVOUS" => ("the next send", |engine| Ok(messages(engine)?)),
        "WEFT_SPIN_US" => ("the next wait", |engine| Ok(spin(engine.policy())?)),
        "WEFT_RAIL_WRITE" | "WEFT_RAIL_READ" | "WEFT_RAIL_RENDEZVOUS" => {
            ("the next transfer", |engine| Ok(rails(engine)?))
        }
        "WEFT_CACHES" => ("the next copy", |engine| Ok(caches(engine)?)),
        // Windows read these settings when they are made.
        "WEFT_FENCE" | "WEFT_RMA_ORDER" | "WEFT_RMA_ATOMICS" => {
            ("the next window that is made", |_| Ok(()))
        }
        "WEFT_STREAM_SEGMENT"
        | "WEFT_STREAM_WINDOW"
        | "WEFT_STREAM_RENDEZVOUS"
        | "WEFT_STREAM_BLOCK" => {
            ("the first use of a stream, and not after that", |engine| match streams(engine)? {
                true => Ok(()),
                false => Err(ChangeRefusal::Late("streams are in use")),
            })
        }
        name if name == selection::MAP
            || CollectiveKind::ALL.iter().any(|&o| algorithm(o) == name) =>
        {
            ("the next collective operation, on all communicators", |engine| Ok(choose(engine)?))
        }
        _ => return None,
    };
    Some(RuntimeChange { from, take })
}

/// Passes the settings that concern messages to the engine of a lane. They were checked before.
pub fn for_lane(engine: &Engine) -> Result<(), String> {
    messages(engine)?;
    spin(engine.policy())?;
    rails(engine)?;
    caches(engine)
}

fn messages(engine: &Engine) -> Result<(), String> {
    let rendezvous = match settings::choice("WEFT_RENDEZVOUS")? {
        0 => Rendezvous::Read,
        _ => Rendezvous::Write,
    };
    let eager = settings::number("WEFT_EAGER")? as usize;
    let eager_fixed = settings::is_given("WEFT_EAGER");
    engine.endpoint().change(ProtocolChange { eager, eager_fixed, rendezvous });
    Ok(())
}

pub fn spin(policy: &WaitPolicy) -> Result<(), String> {
    policy.set_spin(Duration::from_micros(settings::number("WEFT_SPIN_US")?));
    Ok(())
}

pub fn rails(engine: &Engine) -> Result<(), String> {
    engine.endpoint().rails().set_thresholds(Thresholds {
        write: settings::number("WEFT_RAIL_WRITE")? as usize,
        read: settings::number("WEFT_RAIL_READ")? as usize,
        rendezvous: settings::number("WEFT_RAIL_RENDEZVOUS")? as usize,
    });
    Ok(())
}

/// Sets the sizes of streams. Returns false if streams are in use.
pub fn streams(engine: &Engine) -> Result<bool, String> {
    Ok(engine.endpoint().streams().set_sizes(StreamSizes {
        segment: settings::number("WEFT_STREAM_SEGMENT")? as usize,
        window: settings::number("WEFT_STREAM_WINDOW")? as usize,
        rendezvous: settings::number("WEFT_STREAM_RENDEZVOUS")? as usize,
        block: settings::number("WEFT_STREAM_BLOCK")? as usize,
        ..StreamSizes::default()
    }))
}

pub fn caches(engine: &Engine) -> Result<(), String> {
    let copies = engine.endpoint().fabric().copies();
    copies.past_caches(PastCaches::AsFound);
    let caches = [Caches::AsFound, Caches::Near, Caches::Far];
    copies.assume(caches[settings::choice("WEFT_CACHES")?], engine.policy().fits());
    Ok(())
}

/// Makes all communicators choose algorithms again. The hints of communicators stay in force.
fn choose(engine: &Rc<Engine>) -> Result<(), String> {
    let node = engine.endpoint().fabric();
    let all: Vec<u32> = (0..node.size() as u32).collect();
    let mut selection = selection::selection()?;
    let together = weft_collective::share_memory(node, &all);
    selection::usual_maps(&mut selection, node, together)?;
    let (state, selection) = (state(), Rc::new(selection));
    *state.selection.borrow_mut() = selection.clone();
    for comm in state.all_comms() {
        comm.select(selection.clone());
        crate::chapters::hints::select(&comm);
    }
    Ok(())
}
