//! libfabric does what every fabric must do: over TCP, and over datagrams that it makes reliable itself.
//!
//! Without the library the tests say NOT RUN and pass; where `WEFT_TEST_OFI` is set they fail.

use std::io::Write;
use std::sync::OnceLock;
use weft_bootstrap::threads;
use weft_fabric_conformance::{Maker, tests};
use weft_fabric_ofi::{Ofi, Options};

/// Why there is no such provider here, found out once.
fn missing(provider: &'static str, cell: &OnceLock<Option<String>>) -> bool {
    let error = cell.get_or_init(|| {
        let options = Options { provider: Some(provider.to_owned()), ..Options::default() };
        let error = Ofi::connect(&mut threads(1)[0], options).err().map(|error| error.to_string());
        if let Some(error) = &error {
            // Around the test harness, which hides what passing tests print.
            let _ =
                writeln!(std::io::stderr(), "\nNOT RUN: tests of libfabric's {provider}: {error}");
            // Later versions of the library have `net` under the name of `tcp`.
            assert!(provider == "net" || std::env::var_os("WEFT_TEST_OFI").is_none(), "{error}");
        }
        error
    });
    error.is_some()
}

fn makers(n: usize, provider: &'static str, credits: usize) -> Option<Vec<Maker<Ofi>>> {
    static TCP: OnceLock<Option<String>> = OnceLock::new();
    static NET: OnceLock<Option<String>> = OnceLock::new();
    static UDP: OnceLock<Option<String>> = OnceLock::new();
    let cell = match provider {
        "tcp" => &TCP,
        "net" => &NET,
        _ => &UDP,
    };
    if missing(provider, cell) {
        return None;
    }
    let make = |mut world: weft_bootstrap::ThreadBootstrap| {
        let provider = Some(provider.to_owned());
        let options = Options { provider, credits, ..Options::default() };
        Box::new(move || Ofi::connect(&mut world, options).unwrap_or_else(|e| panic!("{e}")))
            as Maker<Ofi>
    };
    Some(threads(n).into_iter().map(make).collect())
}

mod tcp_one_rank {
    super::tests!(|| super::makers(1, "tcp", 64));
}

mod tcp_two_ranks {
    super::tests!(|| super::makers(2, "tcp", 64));
}

/// The fewest credits: overflow is the rule.
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
