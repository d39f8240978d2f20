//! The values of `-map-by`, `-bind-to` and `-rank-by`, in the spellings of Open MPI and of MPICH's hydra.

use weft_topology::{ProcessorSet, TopologyLevel, parse_list};

use super::Parser;
use crate::hosts::SlotOrder;
use crate::placement::{BindPolicy, MapPolicy, RankOrder};

/// Returns the level with this name in options.
fn level(name: &str) -> Option<TopologyLevel> {
    Some(match name {
        "hwthread" => TopologyLevel::Thread,
        "core" | "l1cache" => TopologyLevel::Core,
        "l2" | "l2cache" => TopologyLevel::L2,
        "l3" | "l3cache" => TopologyLevel::Cache,
        "numa" => TopologyLevel::Numa,
        "socket" | "package" => TopologyLevel::Socket,
        _ => return None,
    })
}

/// Parses a number of cores or ranks.
fn number(text: &str) -> Option<usize> {
    text.parse().ok().filter(|&number| number > 0)
}

impl Parser<'_> {
    /// Reads the value of `-map-by`: where ranks go, on hosts and within a host.
    pub(super) fn map_by(&mut self, option: &str, value: &str) -> Result<(), String> {
        let lower = value.to_lowercase();
        let mut words = lower.split(':');
        let policy = words.next().unwrap_or_default();
        let wrong = |what: &str| {
            format!(
                "{option} {value}: {what:?} is not slot, node, hwthread, core, l2, l3, numa, socket or \
                 ppr:N:PART, with :PE=N or :OVERSUBSCRIBE"
            )
        };
        self.options.map = SlotOrder::Slot;
        let placement = &mut self.options.placement;
        placement.map = match policy {
            "" | "slot" => Some(MapPolicy::Slot),
            "node" => {
                self.options.map = SlotOrder::Node;
                Some(MapPolicy::Slot)
            }
            "ppr" => {
                let ranks = words.next().and_then(number).ok_or_else(|| wrong(value))?;
                match words.next().unwrap_or_default() {
                    "node" => {
                        self.each = Some(ranks);
                        Some(MapPolicy::Slot)
                    }
                    part => {
                        let level = level(part).ok_or_else(|| wrong(part))?;
                        Some(MapPolicy::PerPart { ranks, level })
                    }
                }
            }
            policy => Some(MapPolicy::Level(level(policy).ok_or_else(|| wrong(policy))?)),
        };
        for word in words {
            match word.split_once('=') {
                Some(("pe", cores)) => {
                    placement.cores_each = Some(number(cores).ok_or_else(|| wrong(word))?);
                }
                None if word == "oversubscribe" => placement.overload = true,
                // These are the only behaviour of this launcher, or choose among hosts of a resource manager.
                None if ["nooversubscribe", "nolocal", "span", "inherit", "noinherit"]
                    .contains(&word) => {}
                _ => return Err(wrong(word)),
            }
        }
        Ok(())
    }

    /// Reads the value of `-bind-to`.
    pub(super) fn bind_to(&mut self, option: &str, value: &str) -> Result<(), String> {
        let lower = value.to_lowercase();
        let mut words = lower.split(':');
        let part = words.next().unwrap_or_default();
        let wrong = |what: &str| {
            format!(
                "{option} {value}: {what:?} is not none, hwthread, core, l2, l3, numa, socket, machine, share or \
                 user:LIST"
            )
        };
        let placement = &mut self.options.placement;
        placement.bind = Some(match part {
            "none" => BindPolicy::None,
            "share" => BindPolicy::Share,
            "rr" => BindPolicy::Level(TopologyLevel::Core),
            "machine" | "board" => BindPolicy::Level(TopologyLevel::Node),
            "user" => {
                let sets = words.next().unwrap_or_default().split(',');
                let set = |text: &str| parse_list(&text.replace('+', ","));
                let sets: Option<Vec<ProcessorSet>> = sets.map(set).collect();
                BindPolicy::Sets(sets.ok_or_else(|| wrong(value))?)
            }
            part => BindPolicy::Level(level(part).ok_or_else(|| wrong(part))?),
        });
        let is_unit = |bind: &Option<BindPolicy>| {
            let Some(BindPolicy::Level(level)) = bind else { return false };
            *level <= TopologyLevel::Core
        };
        for word in words {
            match number(word) {
                Some(count) if is_unit(&placement.bind) => placement.cores_each = Some(count),
                None if word == "overload-allowed" => placement.overload = true,
                None if ["no-overload", "if-supported"].contains(&word) => {}
                _ => return Err(wrong(word)),
            }
        }
        Ok(())
    }

    /// Reads the value of `-rank-by`.
    pub(super) fn rank_by(&mut self, option: &str, value: &str) -> Result<(), String> {
        self.options.placement.order = match value.to_lowercase().as_str() {
            "fill" | "core" | "hwthread" => RankOrder::Fill,
            "slot" | "span" | "node" | "l2cache" | "l3cache" | "numa" | "package" | "socket" => {
                RankOrder::Slot
            }
            _ => return Err(format!("{option} {value}: {value:?} is not slot or fill")),
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::hosts::SlotOrder;
    use crate::options::{CommandLine, Options, parse};
    use crate::placement::{BindPolicy, MapPolicy, Placement, RankOrder};
    use std::ffi::OsString;
    use weft_topology::TopologyLevel;

    fn read(line: &str) -> Result<Options, String> {
        let line = format!("{line} a");
        match parse(line.split_whitespace().map(OsString::from), &|_| None)? {
            CommandLine::Run(options) => Ok(*options),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn both_launchers_spellings_are_known() {
        for (line, map, bind) in [
            ("--map-by l3cache", Some(TopologyLevel::Cache), None),
            ("-map-by L3", Some(TopologyLevel::Cache), None),
            (
                "--map-by package --bind-to core",
                Some(TopologyLevel::Socket),
                Some(TopologyLevel::Core),
            ),
            ("-bind-to numa", None, Some(TopologyLevel::Numa)),
            ("-bind-to hwthread:if-supported", None, Some(TopologyLevel::Thread)),
            ("-bind-to machine", None, Some(TopologyLevel::Node)),
            ("-bind-to rr", None, Some(TopologyLevel::Core)),
        ] {
            let placement = read(line).unwrap().placement;
            assert_eq!(placement.map, map.map(MapPolicy::Level), "{line}");
            assert_eq!(placement.bind, bind.map(BindPolicy::Level), "{line}");
        }
        assert_eq!(read("").unwrap().placement, Placement::default());
        assert_eq!(read("-bind-to none").unwrap().placement.bind, Some(BindPolicy::None));
        let sets = vec![[0, 2].into(), [1].into(), [4, 5, 6].into()];
        let user = read("-bind-to user:0+2,1,4-6").unwrap().placement;
        assert_eq!(user.bind, Some(BindPolicy::Sets(sets)));
    }

    #[test]
    fn qualifiers_follow_a_colon() {
        let placement = read("--map-by numa:PE=4:OVERSUBSCRIBE").unwrap().placement;
        assert_eq!((placement.cores_each, placement.overload), (Some(4), true));
        let placement = read("-bind-to core:2").unwrap().placement;
        assert_eq!(
            (placement.bind, placement.cores_each),
            (Some(BindPolicy::Level(TopologyLevel::Core)), Some(2))
        );
        let options = read("--map-by node:PE=2").unwrap();
        assert_eq!((options.map, options.placement.cores_each), (SlotOrder::Node, Some(2)));
        let placement = read("--map-by ppr:2:l3:PE=2").unwrap().placement;
        let two = MapPolicy::PerPart { ranks: 2, level: TopologyLevel::Cache };
        assert_eq!((placement.map, placement.cores_each), (Some(two), Some(2)));
        let hosts = read("-H b,c --map-by ppr:3:node").unwrap().hosts;
        assert!(hosts.iter().all(|host| host.slots == 3));
        assert_eq!(read("--rank-by fill").unwrap().placement.order, RankOrder::Fill);
    }

    #[test]
    fn wrong_values_name_option_word_and_remedy() {
        for (line, words) in [
            ("--map-by moon", ["--map-by moon", "\"moon\" is not slot"]),
            ("--map-by l3:PE=0", ["\"pe=0\"", "with :PE=N"]),
            ("--map-by l3:PE=x", ["\"pe=x\"", "with :PE=N"]),
            ("--map-by l3:fast", ["\"fast\"", "with :PE=N"]),
            ("--map-by ppr:0:l3", ["ppr:0:l3", "ppr:N:PART"]),
            ("--map-by ppr:2", ["\"\" is not", "ppr:N:PART"]),
            ("--bind-to moon", ["\"moon\" is not none", "user:LIST"]),
            ("--bind-to socket:2", ["\"2\" is not", "user:LIST"]),
            ("--bind-to user:0,x", ["user:0,x", "user:LIST"]),
            ("--rank-by moon", ["--rank-by moon", "slot or fill"]),
        ] {
            let error = read(line).unwrap_err();
            assert!(words.iter().all(|word| error.contains(word)), "{line}: {error}");
        }
    }
}
