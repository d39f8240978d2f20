//! Choice of collective algorithms by the settings.

use crate::settings;
use std::rc::Rc;
use weft_collective::{CollectiveKind, Selection, carried_by_kernel, installed_maps};
use weft_fabric::Fabric;
use weft_job_fabric::JobFabric;

/// Returns the algorithms and the map that the settings name.
pub fn selection() -> Result<Selection, String> {
    let named = settings::words(MAP)?;
    let mut selection = match named.to_ascii_lowercase().as_str() {
        "none" | "auto" => Selection::default(),
        _ => Selection::by(Rc::new(
            installed_maps::load(&named).map_err(|e| format!("{MAP}={named}: {e}"))?,
        )),
    };
    for operation in CollectiveKind::ALL {
        let name = settings::algorithm(operation);
        let text = settings::words(name)?;
        selection.ask_for(operation, &text).map_err(|why| format!("{name}={text}: {why}"))?;
    }
    Ok(selection)
}

/// The setting that names the map.
pub const MAP: &str = "WEFT_MAP";

/// Loads the maps that are used if the settings name no map: the map for shared memory and, unless all processes that may ever
/// exist are on the `same_node`, the map for the network of `node`.
pub fn usual_maps(
    selection: &mut Selection,
    node: &JobFabric,
    same_node: bool,
) -> Result<(), String> {
    if !settings::words(MAP)?.eq_ignore_ascii_case("auto") {
        return Ok(());
    }
    let load = |name| installed_maps::load(name).map(Rc::new).map_err(|e| e.to_string());
    // The network decides, and not the places of this job's ranks: connected jobs have the same network, and must choose alike.
    let by_kernel = match node.sim_client() {
        Some(_) => carried_by_kernel(node, &(0..node.size() as u32).collect::<Vec<_>>()),
        None => node.ofi().is_some_and(|ofi| ofi.capabilities(ofi.rank()).round_trip > 0),
    };
    let network = match by_kernel {
        true => installed_maps::BY_KERNEL,
        false => installed_maps::APART,
    };
    let apart = if same_node { None } else { Some(load(network)?) };
    selection.use_maps(Some(load(installed_maps::TOGETHER)?), apart);
    Ok(())
}
