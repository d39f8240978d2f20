//! Conformance of libfabric to the fabric trait: over TCP, and over UDP datagrams that libfabric makes reliable.
//!
//! If the library is missing, the tests print NOT RUN and pass. If `WEFT_TEST_OFI` is set, they fail instead.

use weft_bootstrap::threads;
use weft_fabric_ofi::{Ofi, OfiOptions};
use weft_fabric_testing::conformance::Maker;
use weft_fabric_testing::{libfabric, tests};

fn makers(n: usize, provider: &'static str, credits: usize) -> Option<Vec<Maker<Ofi>>> {
    over_paths(n, provider, credits, 1)
}

/// Makes fabrics whose rails are several connections over the same interface.
fn over_paths(
    n: usize,
    provider: &'static str,
    credits: usize,
    paths: usize,
) -> Option<Vec<Maker<Ofi>>> {
    if libfabric::missing(Some(provider)) {
        return None;
    }
    let make = |mut world: weft_bootstrap::ThreadBootstrap| {
        let provider = Some(provider.to_owned());
        let options = OfiOptions { provider, credits, paths, ..OfiOptions::default() };
        Box::new(move || Ofi::connect(&mut world, options).unwrap_or_else(|e| panic!("{e}")))
            as Maker<Ofi>
    };
    Some(threads(n).into_iter().map(make).collect())
}

mod built_in_one_rank {
    super::tests!(|| super::makers(1, "weft-tcp", 64));
}

mod built_in_two_ranks {
    super::tests!(|| super::makers(2, "weft-tcp", 64));
}

/// Minimum number of credits, so that messages often find no room.
mod built_in_three_ranks_with_few_credits {
    super::tests!(|| super::makers(3, "weft-tcp", 4));
}

mod built_in_two_ranks_on_three_rails {
    super::tests!(|| super::over_paths(2, "weft-tcp", 64, 3));
}

mod tcp_one_rank {
    super::tests!(|| super::makers(1, "tcp", 64));
}

mod tcp_two_ranks {
    super::tests!(|| super::makers(2, "tcp", 64));
}

/// Minimum number of credits, so that messages often find no room.
mod tcp_three_ranks_with_few_credits {
    super::tests!(|| super::makers(3, "tcp", 4));
}

mod net_two_ranks {
    super::tests!(|| super::makers(2, "net", 64));
}

mod net_three_ranks_with_few_credits {
    super::tests!(|| super::makers(3, "net", 4));
}

mod udp_two_ranks {
    super::tests!(|| super::makers(2, "udp;ofi_rxd", 64));
}

mod udp_three_ranks_with_few_credits {
    super::tests!(|| super::makers(3, "udp;ofi_rxd", 4));
}

/// Over RDMA adapters, in the virtual machine with soft-RoCE.
mod verbs_two_ranks {
    super::tests!(|| super::makers(2, "verbs;ofi_rxm", 64));
}

mod verbs_three_ranks_with_few_credits {
    super::tests!(|| super::makers(3, "verbs;ofi_rxm", 4));
}

mod tcp_two_ranks_on_three_rails {
    super::tests!(|| super::over_paths(2, "tcp", 64, 3));
}

mod udp_three_ranks_on_two_rails {
    super::tests!(|| super::over_paths(3, "udp;ofi_rxd", 64, 2));
}
