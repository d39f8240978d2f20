//! Selection of collective algorithms on a machine file, as the library makes it. `weft explain`, `weft sim` and `weft sim run` share
//! it, so that all name and use the same algorithms.
//!
//! ```text
//!   WEFT_MAP names a map  ->  this map, for all ranks
//!   WEFT_MAP=none         ->  no map
//!   a shipped map has the machine's name  ->  this map, for all ranks
//!   otherwise             ->  the usual maps: one for ranks that share memory, one for the network
//! ```

use std::rc::Rc;
use weft_collective::{Selection, SelectionMap, installed_maps};
use weft_fabric_sim::Machine;

/// Maps by which the library chooses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MapChoice {
    /// A map for all ranks, by its name or file.
    Named(String),
    /// No map.
    Absent,
    /// The usual maps; the name is that of the map for the network, if there is a network.
    Usual(Option<&'static str>),
}

impl MapChoice {
    /// Returns the choice that the value of `WEFT_MAP` makes on `machine`.
    pub fn by(setting: Option<&str>, machine: Option<&Machine>) -> MapChoice {
        let setting = setting.map(str::trim).unwrap_or_default();
        match setting.to_ascii_lowercase().as_str() {
            "" | "auto" => match machine {
                None => MapChoice::Usual(None),
                Some(machine) => {
                    let network = if machine.rail[0].round_trip.0 > 0 {
                        installed_maps::BY_KERNEL
                    } else {
                        installed_maps::APART
                    };
                    let shipped = installed_maps::of_machine(&machine.name);
                    shipped.map_or(MapChoice::Usual(Some(network)), |name| {
                        MapChoice::Named(name.to_owned())
                    })
                }
            },
            "none" => MapChoice::Absent,
            _ => MapChoice::Named(setting.to_owned()),
        }
    }

    /// Returns the choice that the setting of this process makes on `machine`.
    pub fn by_environment(machine: Option<&Machine>) -> MapChoice {
        MapChoice::by(std::env::var("WEFT_MAP").ok().as_deref(), machine)
    }

    /// Returns the selection.
    ///
    /// # Errors
    /// There is no such map, or it has an error.
    pub fn selection(&self) -> Result<Selection, String> {
        let load = |name: &str| {
            let map = installed_maps::load(name).map(Rc::new);
            map.map_err(|error: installed_maps::LoadError| error.to_string())
        };
        match self {
            MapChoice::Named(name) => load(name).map(Selection::by),
            MapChoice::Absent => Ok(Selection::default()),
            MapChoice::Usual(network) => {
                let together = load(installed_maps::TOGETHER)?;
                let mut selection = Selection::default();
                selection.use_maps(Some(together), network.map(load).transpose()?);
                Ok(selection)
            }
        }
    }

    /// Returns the map that has times of calls among ranks that `share_memory`, or among other ranks.
    ///
    /// # Errors
    /// There is no such map, or it has an error.
    pub fn times(&self, ranks: RankPlaces) -> Result<SelectionMap, String> {
        let name = match (self, ranks) {
            (MapChoice::Named(name), _) => name.as_str(),
            (MapChoice::Usual(Some(network)), RankPlaces::Apart) => network,
            _ => installed_maps::TOGETHER,
        };
        installed_maps::load(name).map_err(|error| error.to_string())
    }

    /// Describes the choice in a few words.
    pub fn describe(&self) -> String {
        match self {
            MapChoice::Named(name) => name.clone(),
            MapChoice::Absent => "none".to_owned(),
            MapChoice::Usual(network) => {
                let network = network.unwrap_or(installed_maps::APART);
                format!("{network}, and {} within a node", installed_maps::TOGETHER)
            }
        }
    }
}

/// Places of the ranks of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankPlaces {
    /// All ranks share memory.
    Together,
    /// Some ranks are on different nodes.
    Apart,
}

impl RankPlaces {
    /// Returns the places of the first `ranks` ranks of `machine`; without a machine, of ranks of this machine.
    pub fn of(machine: Option<&Machine>, ranks: usize) -> RankPlaces {
        match machine {
            Some(m) if !m.local.shared || ranks > m.ranks_per_node.0 => RankPlaces::Apart,
            _ => RankPlaces::Together,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_comes_from_the_setting_or_else_from_the_machine() {
        let by = |setting, name: &str| {
            let machine = Machine::load(name).unwrap();
            MapChoice::by(setting, Some(&machine))
        };
        let named = |name: &str| MapChoice::Named(name.to_owned());
        for unset in [None, Some(""), Some("auto"), Some(" AUTO ")] {
            assert_eq!(by(unset, "collgm"), named("collgm"));
            assert_eq!(by(unset, "ethernet"), MapChoice::Usual(Some("ethernet")));
            assert_eq!(by(unset, "ndr"), MapChoice::Usual(Some("ndr")));
            assert_eq!(by(unset, "rome"), MapChoice::Usual(Some("ndr")));
        }
        assert_eq!(by(Some("ndr"), "collgm"), named("ndr"));
        assert_eq!(by(Some("none"), "collgm"), MapChoice::Absent);
        assert_eq!(MapChoice::by(None, None), MapChoice::Usual(None));
        assert!(named("shn").selection().unwrap_err().starts_with("shn: no map of this name"));
    }

    #[test]
    fn times_of_ranks_that_share_memory_are_in_a_map_of_their_own() {
        let rome = Machine::load("rome").unwrap();
        let times = |ranks| {
            let places = RankPlaces::of(Some(&rome), ranks);
            MapChoice::by(None, Some(&rome)).times(places).unwrap().machine
        };
        assert_eq!((times(128), times(129)), ("shm".to_owned(), "ndr".to_owned()));
    }
}
