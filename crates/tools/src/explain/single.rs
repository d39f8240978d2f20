//! Explanation of a collective call of a single rank, which at most copies its own data.

use super::{ExplainArgs, machine, model, size};
use crate::sim::SimFailure;
use weft_collective::CollectiveKind;

/// Returns the explanation.
pub fn explain(
    args: &ExplainArgs,
    operation: CollectiveKind,
    bytes: usize,
) -> Result<String, SimFailure> {
    let machine = machine(args, 1)?;
    let model = model(machine.as_ref()).map_err(SimFailure::Request)?;
    let mut text = format!("{operation} on 1 rank{}", size(operation, bytes));
    text += &format!("  machine    {}\n", machine.as_ref().map_or("shm", |m| &m.name));
    text += "  algorithm  none is needed: ";
    text += &match operation {
        CollectiveKind::Barrier | CollectiveKind::Bcast | CollectiveKind::Exscan => {
            "one rank has nothing to do\n".to_owned()
        }
        CollectiveKind::Gatherv | CollectiveKind::Scatterv | CollectiveKind::Alltoallv => {
            "one rank copies its own data\n".to_owned()
        }
        _ => format!(
            "one rank copies its own data\n  predicted  {:.3} us for the copy (by the model of copies)\n",
            model.copy(bytes) / 1e3
        ),
    };
    Ok(text)
}
