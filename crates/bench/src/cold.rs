//! `--cold`: the first calls of an operation, after MPI_Init and after a change of size. Other benchmarks warm up, and so do not
//! see the time that a library takes to make its buffers, or to touch them for the first time.

use super::plan::BenchCase;

/// Programs of the first calls: bench/cold.h.
const PROGRAMS: [&str; 8] = [
    "cold_latency",
    "cold_bandwidth",
    "cold_bcast",
    "cold_reduce",
    "cold_allreduce",
    "cold_allgather",
    "cold_alltoall",
    "cold_put",
];

/// Numbers of calls whose mean time is measured: words for the table, and the option of the programs.
const CALLS: [(&str, &[&str]); 3] = [
    ("first call", &["--iterations", "1"]),
    ("first 10 calls", &["--iterations", "10"]),
    ("first 100 calls", &["--iterations", "100"]),
];

/// Sizes in the order in which a program uses them. The first size follows MPI_Init.
const SIZES: &str = "4K,16K,32K,64K,256K,1M";

/// Returns the cases of the requested operations (all if `asked` is empty), which are named with or without `cold_`.
pub fn cases(asked: &[String], seconds: f64) -> Result<Vec<BenchCase>, String> {
    let short = |program: &'static str| program.trim_start_matches("cold_");
    let named = |program: &'static str, name: &str| name == program || name == short(program);
    let unknown = asked.iter().find(|name| !PROGRAMS.iter().any(|program| named(program, name)));
    if let Some(unknown) = unknown {
        let all: Vec<_> = PROGRAMS.into_iter().map(short).collect();
        return Err(format!(
            "no first calls of '{unknown}'; there are those of {}",
            all.join(", ")
        ));
    }
    let asked =
        |program: &&'static str| asked.is_empty() || asked.iter().any(|name| named(program, name));
    let of = |program| {
        CALLS.into_iter().map(move |(about, options)| BenchCase {
            about,
            options,
            ..BenchCase::new(program, 2, SIZES.to_owned(), seconds)
        })
    };
    Ok(PROGRAMS.into_iter().filter(asked).flat_map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_has_a_source_and_a_case_for_each_number_of_calls() {
        for program in PROGRAMS {
            let source = crate::root().join("bench").join(program).with_extension("c");
            assert!(source.exists(), "{}", source.display());
        }
        assert_eq!(cases(&[], 0.1).unwrap().len(), PROGRAMS.len() * CALLS.len());
        let one = cases(&["allreduce".to_owned()], 0.1).unwrap();
        assert!(one.iter().all(|case| case.program == "cold_allreduce") && one.len() == 3);
        assert!(cases(&["barier".to_owned()], 0.1).unwrap_err().contains("barier"));
    }
}
