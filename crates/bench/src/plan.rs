//! Programs to run, with their numbers of ranks and their sizes.

/// Available benchmarks, in the order of the table.
pub const NAMES: [&str; 54] = [
    "latency",
    "bandwidth",
    "bidirectional",
    "message_rate",
    "latency_multiple",
    "latency_fresh",
    "barrier",
    "bcast",
    "reduce",
    "allreduce",
    "gather",
    "scatter",
    "scatterv",
    "allgather",
    "alltoall",
    "alltoallv",
    "reduce_scatter_block",
    "scan",
    "put_flush",
    "put_lock",
    "put_pscw",
    "put_fence",
    "get_flush",
    "get_lock",
    "get_pscw",
    "get_fence",
    "accumulate_char",
    "accumulate_double",
    "put_window",
    "get_window",
    "put_bidirectional",
    "put_get_interleaved",
    "overlap_put",
    "overlap_receiver",
    "overlap_sender",
    "fence_empty",
    "fence_put",
    "fence_neighbors",
    "halo_onesided",
    "halo_twosided",
    "halo_threads",
    "stencil_overlap",
    "cannon",
    "cannon_threads",
    "cg",
    "sweeps",
    "hash_onesided",
    "hash_twosided",
    "idle",
    "pack_vector",
    "pack_nested",
    "pack_indexed",
    "pack_struct",
    "reduce_local",
];

/// Benchmarks of collective operations.
pub const COLLECTIVES: [&str; 10] = [
    "barrier",
    "bcast",
    "reduce",
    "allreduce",
    "gather",
    "scatter",
    "allgather",
    "alltoall",
    "reduce_scatter_block",
    "scan",
];

/// Benchmarks that show the gain and the cost of progress while a program computes.
pub const PROGRESS: [&str; 8] = [
    "latency",
    "bandwidth",
    "overlap_receiver",
    "overlap_sender",
    "stencil_overlap",
    "cannon",
    "cannon_threads",
    "sweeps",
];

/// A program under one condition.
#[derive(Clone, Debug)]
pub struct BenchCase {
    pub program: &'static str,
    pub ranks: usize,
    /// True if a foreign busy loop runs on each processor at the same time.
    pub loaded: bool,
    /// Difference from other cases of the program, in words, and the options that make it.
    pub about: &'static str,
    pub options: &'static [&'static str],
    /// Numbers of calls, as options. Without them, the program runs until its times are steady.
    pub calls: &'static [&'static str],
    pub sizes: String,
    /// Time for each size, in seconds.
    pub seconds: f64,
}

impl BenchCase {
    /// Returns a case of the program without options, whose ranks have processors of their own.
    pub fn new(program: &'static str, ranks: usize, sizes: String, seconds: f64) -> BenchCase {
        let (options, calls) = (&[], &[]);
        BenchCase { program, ranks, loaded: false, about: "", options, calls, sizes, seconds }
    }

    pub fn title(&self) -> String {
        let load = if self.loaded { ", busy loops" } else { "" };
        let about = if self.about.is_empty() { "" } else { ", " };
        format!("{}, {} ranks{load}{about}{}", self.program, self.ranks, self.about)
    }

    /// Returns the options of the C program.
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments: Vec<String> =
            ["--sizes", &self.sizes, "--seconds"].map(str::to_owned).to_vec();
        arguments.push(self.seconds.to_string());
        if self.loaded {
            arguments.push("--mean".to_owned());
        }
        let options = self.options.iter().chain(self.calls);
        arguments.extend(options.map(|option| (*option).to_owned()));
        arguments
    }
}

/// Returns the cases of the requested benchmarks (all if `asked` is empty). `seconds` is the time for each size if a rank has a
/// processor of its own.
pub fn cases(asked: &[String], seconds: f64) -> Result<Vec<BenchCase>, String> {
    if let Some(unknown) = asked.iter().find(|a| !NAMES.contains(&a.as_str())) {
        return Err(format!("no benchmark '{unknown}'; there are {}", NAMES.join(", ")));
    }
    let mut cases = Vec::new();
    for program in NAMES {
        if !asked.is_empty() && !asked.iter().any(|a| a == program) {
            continue;
        }
        let case = |&(ranks, loaded, sizes, factor): &Run| {
            let (seconds, sizes) = (seconds * factor, String::from(sizes));
            BenchCase { loaded, ..BenchCase::new(program, ranks, sizes, seconds) }
        };
        cases.extend(runs(program).iter().map(case));
        if program == "bandwidth" {
            let sizes = "64K,256K,1M".to_owned();
            cases.push(BenchCase {
                about: "64 receives with buffers of their own",
                options: &["--separate", "--window", "64"],
                ..BenchCase::new(program, 2, sizes, seconds)
            });
        }
    }
    Ok(cases)
}

/// Number of ranks, true if busy loops run at the same time, sizes, and factor on the usual time of each size.
type Run = (usize, bool, &'static str, f64);

/// Returns the runs of a benchmark.
fn runs(program: &str) -> &'static [Run] {
    match program {
        "latency" | "latency_multiple" | "latency_fresh" => {
            &[(2, false, "8,64,512,4K,32K,256K,2M", 1.0)]
        }
        "bandwidth" | "bidirectional" => &[(2, false, "4K,16K,64K,256K,1M,4M", 1.0)],
        "message_rate" => &[(2, false, "8,64,512", 1.0)],
        "pack_vector" | "pack_nested" | "pack_indexed" | "pack_struct" => {
            &[(1, false, "4K,64K,1M,16M", 1.0)]
        }
        "reduce_local" => &[(1, false, "64,4K,64K,1M,16M", 1.0)],
        "put_bidirectional" | "put_get_interleaved" => &[(2, false, "4K,64K,1M", 1.0)],
        "accumulate_char" | "accumulate_double" => &[(2, false, "8,1K,64K,1M", 1.0)],
        "overlap_put" => &[(2, false, "8,4K,64K,1M", 3.0)],
        "overlap_receiver" | "overlap_sender" => &[(2, false, "8K,64K,256K,1M,4M", 2.0)],
        "fence_empty" => &[(2, false, "0", 1.0), (4, false, "0", 2.5)],
        "fence_put" | "fence_neighbors" => &[(2, false, "8,1K,64K", 1.0), (4, false, "8,1K", 2.5)],
        // The sizes are those of an edge, or of one rank's part of the table.
        "halo_onesided" | "halo_twosided" => {
            &[(2, false, "64,512,4K", 1.0), (4, false, "64,512,4K", 2.5)]
        }
        "halo_threads" => &[(2, false, "8,4K,64K", 2.5)],
        "stencil_overlap" => &[(2, false, "512,4K,16K", 2.0), (4, false, "512,4K", 5.0)],
        // The sizes are the dimension of a matrix, or the number of points on an edge of a cell. The number of ranks is a square.
        "cannon" | "cannon_threads" => &[(4, false, "128,256,512", 2.5)],
        "cg" => &[(2, false, "64,256,512", 2.0), (4, false, "64,256", 2.5)],
        "sweeps" => &[(4, false, "16,32,64", 2.5)],
        "hash_onesided" | "hash_twosided" => &[(2, false, "64K,1M", 1.0), (4, false, "64K", 2.5)],
        rma if rma.starts_with("put_") || rma.starts_with("get_") => {
            &[(2, false, "8,1K,64K,1M", 1.0)]
        }
        "idle" => &[(2, false, "0", 10.0)],
        // With more ranks than processors, stalls of whole time slices are measured, which takes longer.
        "barrier" => &[
            (2, false, "0", 1.0),
            (4, false, "0", 5.0),
            (8, false, "0", 5.0),
            (8, true, "0", 10.0),
        ],
        "allreduce" => &[
            (2, false, "8,512,4K,64K,1M", 1.0),
            (4, false, "8", 5.0),
            (8, false, "8", 5.0),
            (8, true, "8", 10.0),
        ],
        _ => {
            &[(2, false, "8,512,4K,64K,1M", 1.0), (4, false, "8,4K", 2.5), (8, false, "8,4K", 2.5)]
        }
    }
}

/// Returns the requested collective operations (all if `asked` is empty) on 2, 4 and 8 ranks at sizes from 8 bytes to 4 MiB, and on
/// 8 ranks with busy loops in the background.
pub fn matrix(asked: &[String], seconds: f64) -> Result<Vec<BenchCase>, String> {
    const SIZES: &str = "8,64,512,4K,16K,64K,256K,1M,4M";
    if let Some(unknown) = asked.iter().find(|a| !COLLECTIVES.contains(&a.as_str())) {
        let all = COLLECTIVES.join(", ");
        return Err(format!("no collective benchmark '{unknown}'; there are {all}"));
    }
    let asked = |name: &&str| asked.is_empty() || asked.iter().any(|a| a == name);
    let mut cases = Vec::new();
    for program in COLLECTIVES.into_iter().filter(asked) {
        let (sizes, few) = if program == "barrier" { ("0", "0") } else { (SIZES, "8,512") };
        for (ranks, loaded, sizes, factor) in [
            (2, false, sizes, 1.0),
            (4, false, sizes, 2.0),
            (8, false, sizes, 2.0),
            (8, true, few, 10.0),
        ] {
            let (seconds, sizes) = (seconds * factor, sizes.to_owned());
            cases.push(BenchCase { loaded, ..BenchCase::new(program, ranks, sizes, seconds) });
        }
    }
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_asked_for() {
        let some = cases(&["latency".to_owned()], 0.1).unwrap();
        assert_eq!(some.len(), 1);
        assert!(cases(&["latecy".to_owned()], 0.1).unwrap_err().contains("latecy"));
    }

    #[test]
    fn the_matrix_has_each_collective_on_each_number_of_ranks() {
        let all = matrix(&[], 0.1).unwrap();
        assert_eq!(all.len(), 4 * COLLECTIVES.len());
        assert_eq!(matrix(&["scan".to_owned()], 0.1).unwrap().len(), 4);
        assert!(matrix(&["latency".to_owned()], 0.1).unwrap_err().contains("latency"));
    }

    #[test]
    fn receives_with_buffers_of_their_own_are_a_case_of_bandwidth() {
        let both = cases(&["bandwidth".to_owned()], 0.1).unwrap();
        let separate: Vec<_> = both.iter().filter(|c| !c.about.is_empty()).collect();
        assert_eq!((both.len(), separate.len()), (2, 1));
        assert!(separate[0].arguments().join(" ").ends_with("--separate --window 64"));
        assert_ne!(both[0].title(), both[1].title());
    }

    #[test]
    fn programs_of_progress_are_benchmarks() {
        assert!(PROGRESS.iter().all(|name| NAMES.contains(name)));
    }

    #[test]
    fn every_benchmark_has_a_source() {
        for name in NAMES {
            let source = crate::root().join("bench").join(name).with_extension("c");
            assert!(source.exists(), "{}", source.display());
        }
    }
}
