//! Explanation of a collective access to a file. It uses the same computations by which the library chooses a method.

use crate::sim::SimFailure;
use weft_fabric_sim::Machine;
use weft_io::access_extent::AccessExtent;
use weft_io::adaptive_cost::{AccessMethod, AdaptiveCost, is_worth_trying};
use weft_io::file_costs::{Aggregation, FileCosts};
use weft_io::{AccessDirection, Sieving};

/// Further arguments about files.
#[derive(clap::Args, Debug)]
#[group(id = "File")]
pub struct FileArgs {
    /// Of a file: bytes of a piece of the view. Default: a rank's data are one piece.
    #[arg(long, value_name = "BYTES")]
    piece: Option<u64>,
    /// Of a file: bytes from one piece to the next. Default: pieces of all ranks take turns.
    #[arg(long, value_name = "BYTES")]
    stride: Option<u64>,
    /// Of a file: number of aggregators, the ranks that read and write for all ranks (hint cb_nodes; without the hint, one a
    /// node).
    #[arg(long, value_name = "N", default_value_t = 1)]
    aggregators: u64,
    /// Of a file: bytes of an aggregator's step (hint cb_buffer_size).
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20)]
    step: u64,
}

/// A collective function of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileCall(AccessDirection);

impl FileCall {
    pub fn named(name: &str) -> Option<FileCall> {
        match name {
            "file_read_all" => Some(FileCall(AccessDirection::Read)),
            "file_write_all" => Some(FileCall(AccessDirection::Write)),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self.0 {
            AccessDirection::Read => "file_read_all",
            AccessDirection::Write => "file_write_all",
        }
    }
}

fn ms(nanoseconds: f64) -> String {
    format!("{:.3} ms", nanoseconds / 1e6)
}

/// Access of a rank: pieces at equal distances.
struct AccessPattern {
    pieces: u64,
    /// Number of bytes of a piece.
    piece: u64,
    /// Number of bytes from a piece to the next.
    stride: u64,
}

/// Returns the extent of each rank's part. Pieces of all ranks alternate, or the pieces of a rank are a stride apart.
fn hulls(ranks: u64, pattern: AccessPattern) -> Vec<AccessExtent> {
    let AccessPattern { pieces, piece, stride } = pattern;
    let one = |rank| {
        let first = match pieces {
            1 => rank * piece.max(stride / ranks),
            _ => rank * (stride / ranks),
        };
        AccessExtent {
            first,
            end: first + (pieces - 1) * stride + piece,
            bytes: pieces * piece,
            pieces,
        }
    };
    (0..ranks).map(one).collect()
}

/// Describes how measurements of an open file may change the method, if each rank has a processor. Returns `None` if the model
/// alone decides.
fn learns(direction: AccessDirection, independent: f64, two_phase: f64) -> Option<&'static str> {
    let first = match direction {
        AccessDirection::Read => AdaptiveCost::for_collective_reads(),
        AccessDirection::Write => AdaptiveCost::for_collective_writes(),
    };
    let in_phases = first.choice().method(independent, two_phase) == AccessMethod::Combined;
    match is_worth_trying(independent, two_phase) {
        false => None,
        true if in_phases && independent < two_phase => Some(
            "an opening writes in two phases at first, as file systems keep large steps better, then tries the other way, and keeps \
             to the quicker one",
        ),
        true => Some("an opening tries the other way a few times, and keeps to the quicker one"),
    }
}

/// Returns the explanation.
pub fn run(call: FileCall, args: &super::ExplainArgs) -> Result<String, SimFailure> {
    let request = |text: String| Err(SimFailure::Request(text));
    let Some(ranks) = args.ranks.filter(|&ranks| ranks > 0) else {
        return request(format!("{}: -n says of how many ranks", call.name()));
    };
    let (ranks, bytes, about) = (ranks as u64, args.one_size()? as u64, &args.file);
    if bytes == 0 {
        return request(format!("{}: --bytes says how many each rank has", call.name()));
    }
    let piece = about.piece.unwrap_or(bytes);
    if piece == 0 || piece > bytes || about.aggregators == 0 || about.step == 0 {
        return request(
            "--piece, --aggregators and --step are at least 1, a piece at most --bytes".to_owned(),
        );
    }
    let pieces = bytes.div_ceil(piece);
    let stride = about.stride.unwrap_or(ranks * piece);
    if stride < piece {
        return request(format!("--stride {stride}: pieces of {piece} bytes would overlap"));
    }
    let hulls = hulls(ranks, AccessPattern { pieces, piece, stride });
    let machine = args.machine.as_deref().map(Machine::load).transpose();
    let machine = machine.map_err(|e| SimFailure::Request(e.to_string()))?;
    let (model, whence) = super::message::model(machine.as_ref())?;
    let (costs, direction) = (FileCosts::of(&model), call.0);
    let one_by_one = costs.independent_cost(direction, &hulls, Sieving::Off);
    let alone = costs.independent_cost(direction, &hulls, Sieving::Auto);
    let aggregators = about.aggregators.min(ranks);
    let aggregation = Aggregation { aggregators, step: about.step };
    let phases = costs.two_phase_cost(direction, &hulls, aggregation);
    let sieved = if alone < one_by_one { "in one go with the gaps" } else { "piece by piece" };
    let (way, other) = match phases < alone {
        true => ("in two phases", alone / phases),
        false => ("alone", phases / alone),
    };
    let mut text = format!(
        "{} on {ranks} ranks, {bytes} bytes each: {pieces} pieces of {piece}, every {stride}\n",
        call.name()
    );
    text += &format!("  alone      {}: each rank its own, {sieved}\n", ms(alone));
    if alone < one_by_one {
        text += &format!("             {}: each rank its own, piece by piece\n", ms(one_by_one));
    }
    text += &format!(
        "  phases     {}: by {aggregators} of them, in steps of {} bytes\n",
        ms(phases),
        about.step
    );
    text += &format!("  way        {way}, which takes 1/{other:.1} of the time of the other\n");
    if let Some(learns) = learns(direction, alone, phases) {
        text += &format!("  learns     {learns}\n");
    }
    text += &format!(
        "  model      a page cache: {:.0} ns a call, {:.1} bytes/ns read or written; between ranks {:.0} ns a \
         message, {:.1} bytes/ns\n             {whence}\n",
        costs.call, costs.read, costs.message, costs.exchange
    );
    text +=
        "  hints      romio_cb_read, romio_cb_write: enable or disable; cb_nodes, cb_buffer_size\n";
    Ok(text)
}
