//! The cases of each kind of table.

use super::plan::BenchCase;
use super::{BenchArgs, checking, cold, files, hosts, plan, prediction, rows};

/// Returns the cases of the requested table and benchmarks. An unknown benchmark is an error.
pub fn requested(args: &BenchArgs) -> Result<Vec<BenchCase>, String> {
    let (asked, seconds) = (&args.benchmarks, args.seconds);
    if args.prediction {
        prediction::cases(args)
    } else if let Some(hosts) = args.hosts {
        hosts::cases(args, hosts.into())
    } else if args.matrix {
        plan::matrix(asked, seconds)
    } else if args.check {
        Ok(checking::cases(seconds))
    } else if args.rows {
        rows::cases(asked, seconds)
    } else if args.files {
        files::cases(asked, seconds)
    } else if args.cold {
        cold::cases(asked, seconds)
    } else {
        plan::cases(asked, seconds)
    }
}
