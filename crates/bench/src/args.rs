//! What `cargo xtask bench` can be asked for.

use std::path::PathBuf;

/// The command line.
#[derive(clap::Args)]
pub struct BenchArgs {
    /// Benchmarks to run (all if none is named): latency, bandwidth, bidirectional, message_rate,
    /// latency_multiple, latency_fresh, barrier, bcast, reduce, allreduce, gather, scatter, scatterv, allgather,
    /// alltoall, alltoallv, reduce_scatter_block, scan, put_flush, put_lock, put_pscw, put_fence,
    /// get_flush, get_lock, get_pscw, get_fence, accumulate_char, accumulate_double, put_window,
    /// get_window, put_bidirectional, put_get_interleaved, overlap_put, overlap_receiver, overlap_sender, fence_empty, fence_put, fence_neighbors, halo_onesided, halo_twosided,
    /// stencil_overlap, cannon, cannon_threads, sweeps, hash_onesided, hash_twosided, idle,
    /// pack_vector, pack_nested, pack_indexed, pack_struct, reduce_local.
    pub(super) benchmarks: Vec<String>,
    /// Collective operations at many sizes on 2, 4 and 8 ranks, and a table of ratios alone.
    #[arg(long)]
    pub(super) matrix: bool,
    /// What decides whether Weft is at least as quick as its best peer, a line a figure: message rate, both ways,
    /// accumulate, windows of puts and gets, small collectives, MPI_THREAD_MULTIPLE. 9 rounds unless told.
    #[arg(long, conflicts_with_all = ["matrix", "progress", "cable"])]
    pub(super) rows: bool,
    /// Files beside ROMIO and OMPIO, on tmpfs (/dev/shm) and on disk (/var/tmp): contiguous blocks, strided pieces together and
    /// each rank alone, many small accesses, the shared pointer, opening and closing. A table of ratios, and all that was
    /// measured in table.txt and bench.svg; of all programs in 7 rounds or more, in bench/results/files.md and files.svg, too.
    #[arg(long, conflicts_with_all = ["matrix", "progress", "cable", "rows", "hosts"])]
    pub(super) files: bool,
    /// Sizes of Weft's that take more than 1.15 of the time of the next larger one, from 1 B to 4 MiB and at each
    /// protocol's limits: ping-pong, windows of messages, puts and gets, accumulate, bcast, allreduce, alltoall. What is
    /// found is measured again before it counts; the exit code says whether there is any. 9 rounds unless told.
    #[arg(long, conflicts_with_all = ["matrix", "progress", "cable", "rows", "files", "no_weft", "variant", "no_busy", "sizes"])]
    pub(super) cliffs: bool,
    /// Progress while the program computes: Weft with WEFT_PROGRESS=none, locked, signal and
    /// handover, each peer as it comes and with its own asynchronous progress (MPICH:
    /// MPIR_CVAR_ASYNC_PROGRESS=1; Intel MPI: I_MPI_ASYNC_PROGRESS=1; Open MPI has none), each a
    /// column. Without names: latency, bandwidth, overlap_receiver, overlap_sender,
    /// stencil_overlap, cannon, cannon_threads, sweeps.
    #[arg(long, conflicts_with = "matrix")]
    pub(super) progress: bool,
    /// A further column, of a library with settings of its own: "weft helper WEFT_PROGRESS=handover" is
    /// called `weft helper`. Repeatable.
    #[arg(long, value_name = "LIBRARY LABEL KEY=VALUE ...", value_parser = super::variants::parse)]
    pub(super) variant: Vec<super::variants::BenchVariant>,
    /// Only cases on so many ranks; with --cliffs: on so many (default: 2).
    #[arg(long, value_name = "N,M", value_delimiter = ',')]
    pub(super) ranks: Vec<usize>,
    /// No cases beside busy loops.
    #[arg(long)]
    pub(super) no_busy: bool,
    /// A library to compare with: NAME=PREFIX, where PREFIX/bin has mpicc and mpiexec. Repeatable.
    /// Without it: those in target/peers, else the one on the PATH.
    #[arg(long, value_name = "NAME=PREFIX", value_parser = named)]
    pub(super) peer: Vec<(String, PathBuf)>,
    /// Make virtual environments with MPICH, Open MPI and Intel MPI in DIR (kept for next time),
    /// and compare with them. Those in target/peers are found without being named.
    #[arg(long, value_name = "DIR")]
    pub(super) make_peers: Option<PathBuf>,
    /// Weft as installed in PREFIX (default: build and install it in target/weft first).
    #[arg(long, value_name = "PREFIX")]
    pub(super) weft: Option<PathBuf>,
    /// Compare the peers only.
    #[arg(long, conflicts_with = "weft")]
    pub(super) no_weft: bool,
    /// Runs of each library for each case, taken in turn (default: 7).
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) rounds: Option<u32>,
    /// Time for each size, in seconds; more where ranks share processors.
    #[arg(long, default_value_t = 0.1)]
    pub(super) seconds: f64,
    /// These sizes of messages in every case, as 64K,1M.
    #[arg(long, value_name = "N,M")]
    pub(super) sizes: Option<String>,
    /// Two ranks at the ends of a cable as slow as RATE (as 5mbit), in the virtual machine: Weft on it by soft-RoCE, the
    /// peers by TCP. Without names: overlap_receiver, overlap_sender.
    #[arg(long, value_name = "RATE", conflicts_with = "matrix")]
    pub(super) cable: Option<String>,
    /// With --cable: this is the run in the machine, and what was built is in DIR.
    #[arg(long = "in-the-machine", value_name = "DIR", requires = "cable", hide = true)]
    pub(super) inside: Option<PathBuf>,
    /// Ranks on N hosts, made of network namespaces (`cargo xtask net`), all libraries by TCP over the same cables. Without names:
    /// with 2 hosts a rank on each, for latency, bandwidth, bidirectional, message_rate, overlap_receiver and idle; with
    /// more 16 ranks on each, for barrier, allreduce and alltoall. 9 rounds unless told.
    #[arg(long, value_name = "N", conflicts_with_all = ["matrix", "rows", "cliffs", "cable"], value_parser = clap::value_parser!(u8).range(2..=8))]
    pub(super) hosts: Option<u8>,
    /// With --hosts: what a cable carries each way, as tc(8) writes it: 1gbit.
    #[arg(long, value_name = "RATE", requires = "hosts")]
    pub(super) rate: Option<String>,
    /// With --hosts: this is the run on the first of them.
    #[arg(long = "on-the-first-host", requires = "hosts", hide = true)]
    pub(super) on_hosts: bool,
    /// Figures of the quickest batch of all runs, not medians: a look where the machine is not quiet.
    #[arg(long)]
    pub(super) quickest: bool,
    /// Three short rounds: a look, not a measurement.
    #[arg(long)]
    pub(super) quick: bool,
    /// The longest that one run may take, in seconds.
    #[arg(long, default_value_t = 90)]
    pub(super) timeout: u64,
    /// Where to put programs, table, plot and raw results (default: target/bench).
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
}

impl BenchArgs {
    pub(super) fn rounds(&self) -> usize {
        let usual = if self.rows || self.cliffs || self.hosts.is_some() { 9 } else { 7 };
        self.rounds.map_or(usual, |rounds| rounds as usize)
    }
}

fn named(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, prefix)) if !name.is_empty() && !prefix.is_empty() => {
            Ok((name.to_owned(), PathBuf::from(prefix)))
        }
        _ => Err("write NAME=PREFIX".to_owned()),
    }
}
