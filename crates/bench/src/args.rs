//! Options of `cargo xtask bench`.

use std::path::PathBuf;

/// The command line.
#[derive(clap::Args)]
pub struct BenchArgs {
    /// Benchmarks to run (all if none is named): latency, bandwidth, bidirectional, message_rate, latency_multiple, latency_fresh,
    /// barrier, bcast, reduce, allreduce, gather, scatter, scatterv, allgather, alltoall, alltoallv, reduce_scatter_block, scan,
    /// put_flush, put_lock, put_pscw, put_fence, get_flush, get_lock, get_pscw, get_fence, accumulate_char, accumulate_double,
    /// put_window, get_window, put_bidirectional, put_get_interleaved, overlap_put, overlap_receiver, overlap_sender, fence_empty,
    /// fence_put, fence_neighbors, halo_onesided, halo_twosided, halo_threads, stencil_overlap, cannon, cannon_threads, cg, sweeps,
    /// hash_onesided, hash_twosided, idle, pack_vector, pack_nested, pack_indexed, pack_struct, reduce_local.
    pub(super) benchmarks: Vec<String>,
    /// Only collective operations, at many sizes on 2, 4 and 8 ranks, and a table of ratios.
    #[arg(long)]
    pub(super) matrix: bool,
    /// The figures that decide whether Weft is at least as fast as its best peer, one line per figure: message rate, both
    /// directions, accumulate, windows of puts and gets, small collectives, MPI_THREAD_MULTIPLE. 9 rounds by default.
    #[arg(long, conflicts_with_all = ["matrix", "progress", "cable"])]
    pub(super) rows: bool,
    /// The cost of the checking mode (mpiexec -check): latency at 8 bytes and bandwidth at 1 MiB, without peers.
    #[arg(long, conflicts_with_all = ["benchmarks", "matrix", "rows", "files", "cold", "cliffs", "progress", "variant", "cable", "hosts", "no_weft", "peer", "make_peers"])]
    pub(super) check: bool,
    /// Measured times beside the times that `weft sim run` predicts: latency, allreduce, alltoall, halo_twosided and cg on 2 ranks,
    /// or the named benchmarks. A machine file is fitted first (`weft sim fit`) to this host, or with --hosts 2 to two hosts. 5 rounds
    /// by default. The file has the quickest times of its measurements, so a machine that is not quiet needs --quickest.
    #[arg(long, conflicts_with_all = ["matrix", "rows", "check", "files", "cold", "cliffs", "progress", "variant", "cable", "no_weft", "peer", "make_peers"])]
    pub(super) prediction: bool,
    /// Files compared with ROMIO and OMPIO, on tmpfs (/dev/shm) and on disk (/var/tmp): contiguous blocks, strided pieces
    /// collectively and by each rank independently, many small accesses, the shared pointer, opening and closing. Prints a table of
    /// ratios, and writes all measurements to table.txt and bench.svg. With all programs and 7 rounds or more, also writes
    /// bench/results/files.md and files.svg.
    #[arg(long, conflicts_with_all = ["matrix", "progress", "cable", "rows", "hosts"])]
    pub(super) files: bool,
    /// The first 1, 10 and 100 calls of an operation, after MPI_Init and after each change of size: ping-pong (latency), windows of
    /// 64 messages (bandwidth), bcast, reduce, allreduce, allgather, alltoall, put. Prints a table of ratios. 9 rounds by default.
    #[arg(long, conflicts_with_all = ["matrix", "progress", "cable", "rows", "files", "hosts"])]
    pub(super) cold: bool,
    /// Sizes at which Weft takes more than 1.15 of the time of the next larger size, from 1 B to 4 MiB and at each protocol's
    /// limits: ping-pong, windows of messages, puts and gets, accumulate, bcast, allreduce, alltoall. A size that is found is
    /// measured again before it counts. The exit code tells whether there is any. 9 rounds by default.
    #[arg(long, conflicts_with_all = ["matrix", "progress", "cable", "rows", "files", "cold", "no_weft", "variant", "no_busy", "sizes"])]
    pub(super) cliffs: bool,
    /// With --cliffs: 10 calls, and then 100 measured calls, of each size, as OSU's benchmarks make them. Sizes are powers of two, and
    /// a size that is found is measured again together with all other sizes.
    #[arg(long, requires = "cliffs")]
    pub(super) few_calls: bool,
    /// Progress while the program computes: Weft with WEFT_PROGRESS=none, locked, signal and handover, each peer with its defaults
    /// and with its own asynchronous progress (MPICH: MPIR_CVAR_ASYNC_PROGRESS=1; Intel MPI: I_MPI_ASYNC_PROGRESS=1; Open MPI has
    /// none), each in a column. Without names: latency, bandwidth, overlap_receiver, overlap_sender, stencil_overlap, cannon,
    /// cannon_threads, sweeps.
    #[arg(long, conflicts_with = "matrix")]
    pub(super) progress: bool,
    /// A further column, of a library with its own settings. With "weft helper WEFT_PROGRESS=handover" its name is `weft helper`.
    /// Repeatable.
    #[arg(long, value_name = "LIBRARY LABEL KEY=VALUE ...", value_parser = super::variants::parse)]
    pub(super) variant: Vec<super::variants::BenchVariant>,
    /// Only cases on these numbers of ranks. With --cliffs: numbers of ranks to measure on (default: 2).
    #[arg(long, value_name = "N,M", value_delimiter = ',')]
    pub(super) ranks: Vec<usize>,
    /// No cases with busy loops in the background.
    #[arg(long)]
    pub(super) no_busy: bool,
    /// A library to compare with: NAME=PREFIX, where PREFIX/bin has mpicc and mpiexec. Repeatable. Without it: the libraries in
    /// target/peers, or else the library on the PATH.
    #[arg(long, value_name = "NAME=PREFIX", value_parser = named)]
    pub(super) peer: Vec<(String, PathBuf)>,
    /// Make virtual environments with MPICH, Open MPI and Intel MPI in DIR (kept for next time), and compare with them.
    /// Environments in target/peers are found without this option.
    #[arg(long, value_name = "DIR")]
    pub(super) make_peers: Option<PathBuf>,
    /// Weft as installed in PREFIX (default: build and install it in target/weft first).
    #[arg(long, value_name = "PREFIX")]
    pub(super) weft: Option<PathBuf>,
    /// Compare only the peers.
    #[arg(long, conflicts_with = "weft")]
    pub(super) no_weft: bool,
    /// Number of runs of each library for each case, taken in turn (default: 7).
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) rounds: Option<u32>,
    /// Time for each size, in seconds. More if ranks share processors.
    #[arg(long, default_value_t = 0.1)]
    pub(super) seconds: f64,
    /// Sizes of messages in every case, as in 64K,1M.
    #[arg(long, value_name = "N,M")]
    pub(super) sizes: Option<String>,
    /// Two ranks at the ends of a cable with the rate RATE (as in 5mbit), in the virtual machine. Weft uses the cable by soft-RoCE,
    /// the peers by TCP. Without names: overlap_receiver, overlap_sender.
    #[arg(long, value_name = "RATE", conflicts_with = "matrix")]
    pub(super) cable: Option<String>,
    /// With --cable: this is the run in the machine, and DIR has the built programs.
    #[arg(long = "in-the-machine", value_name = "DIR", requires = "cable", hide = true)]
    pub(super) inside: Option<PathBuf>,
    /// Ranks on N hosts, made of network namespaces (`cargo xtask net`), with all libraries by TCP over the same cables. Without
    /// names: with 2 hosts one rank on each, for latency, bandwidth, bidirectional, message_rate, overlap_receiver and idle. With
    /// more hosts 16 ranks on each, for barrier, allreduce and alltoall. 9 rounds by default.
    #[arg(long, value_name = "N", conflicts_with_all = ["matrix", "rows", "cliffs", "cable"], value_parser = clap::value_parser!(u8).range(2..=8))]
    pub(super) hosts: Option<u8>,
    /// With --hosts: rate of a cable in each direction, as tc(8) writes it: 1gbit.
    #[arg(long, value_name = "RATE", requires = "hosts")]
    pub(super) rate: Option<String>,
    /// With --hosts: this is the run on the first host.
    #[arg(long = "on-the-first-host", requires = "hosts", hide = true)]
    pub(super) on_hosts: bool,
    /// Figures of the fastest batch of all runs, not medians: a first impression if the machine is not quiet.
    #[arg(long)]
    pub(super) quickest: bool,
    /// Three short rounds: a first impression, not a measurement.
    #[arg(long)]
    pub(super) quick: bool,
    /// Maximum time of one run, in seconds.
    #[arg(long, default_value_t = 90)]
    pub(super) timeout: u64,
    /// Directory for programs, table, plot and raw results (default: target/bench).
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
}

impl BenchArgs {
    /// Returns the number of rounds, and the maximum time of a run.
    pub(super) fn repetition(&self) -> super::machine_run::Repetition {
        super::machine_run::Repetition { rounds: self.rounds(), timeout: self.timeout }
    }

    pub(super) fn rounds(&self) -> usize {
        let long = self.rows || self.cold || self.cliffs || self.hosts.is_some();
        let usual = if long { 9 } else { 7 };
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
