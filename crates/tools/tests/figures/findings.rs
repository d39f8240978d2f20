//! What the figures show: orders, crossovers, switch points, peaks.

use super::{drawn, table, value};

/// A row's simulated value and its difference, or whether it agrees.
fn found(paper: &str, quantity: &str, configuration: &str) -> (String, String) {
    let rows = table(drawn(), "summary");
    let row = rows.iter().find(|r| r[0] == paper && r[2] == quantity && r[3] == configuration);
    let row = row.unwrap_or_else(|| panic!("{quantity}; {configuration}"));
    (row[6].clone(), row[8].clone())
}

#[test]
fn kini_s_orders_and_crossovers_are_those_of_the_document() {
    for (quantity, configuration) in [
        ("RPE and RDS barrier against MPI-PE", "powers of 2, both clusters"),
        ("RPE barrier against RDS barrier", "powers of 2, both clusters"),
        ("RGM barrier against RPE and RDS", "2 and 4 nodes, both clusters"),
        ("fastest of the RPE, RDS and RGM barriers", "cluster 2, 16 nodes"),
        ("RPE allreduce against MPI-PE", "cluster 1, 256 integers, all group sizes"),
        ("MPI-PE allreduce against MPI-GB", "cluster 1, 256 integers"),
        ("RGM allreduce against RPE", "cluster 1, 256 integers, few nodes"),
        ("fastest of MPI-GB, MPI-PE, RPE and RGM allreduce", "cluster 1, 256 integers, 8 nodes"),
    ] {
        let (simulated, agrees) = found("Kini", quantity, configuration);
        assert_eq!(agrees, "yes", "{quantity}: {simulated}");
    }
    assert_eq!(found("Kini", "best fan-in of RGM", "cluster 2").0, "7");
    // A group size that is no power of two costs pairwise exchange two steps more, dissemination none.
    let time = |name, nodes| value(drawn(), "kini-4.6a", name, nodes);
    assert!(time("RPE", 7) > 1.3 * time("RPE", 8));
    assert_eq!(time("RDS", 7), time("RDS", 8));
}

#[test]
fn an_application_ends_sooner_with_the_document_s_allreduces() {
    for (figure, nodes, least) in [("kini-6.1b", 8, 1.8), ("kini-6.1d", 16, 2.0)] {
        let factor = |name, nodes| value(drawn(), figure, name, nodes);
        for nodes in 2..=nodes {
            assert!(factor("RPE", nodes) > factor("MPI-PE", nodes), "{figure}, {nodes} nodes");
        }
        assert!(factor("RGM", nodes) > factor("RPE", nodes), "{figure}");
        assert!(factor("RGM", nodes) > least, "{figure}");
        // A multicast to one other is slower than a message.
        assert!(factor("RGM", 2) < 1.0, "{figure}");
    }
}

#[test]
fn fences_are_in_the_order_of_the_slides_and_ours_is_ahead() {
    for row in &table(drawn(), "summary")[1..] {
        let zero = row[4] == "0" && row[6].parse::<f64>().is_ok_and(|overlap| overlap < 0.1);
        assert!(row[0] != "Fence" || row[8] == "yes" || zero, "{row:?}");
    }
    for figure in ["fence-zero", "fence-put", "fence-puts", "fence-halo"] {
        // Among few a flag to each, or a put with its synchronization, is as quick as a barrier by dissemination.
        for ranks in [32, 64] {
            let time = |name| value(drawn(), figure, name, ranks);
            let theirs = ["Fence-2S", "Fence-1S", "Fence-1S-Barrier", "Fence-RI"].map(time);
            let best = theirs.into_iter().fold(f64::INFINITY, f64::min);
            assert!(time("ACK (ours)") < best, "{figure}, {ranks} ranks: {theirs:?}");
        }
    }
}

#[test]
fn peaks_of_several_rails_are_within_10_percent() {
    let mut peaks = 0;
    for row in &table(drawn(), "summary")[1..] {
        if row[0] == "Multi-rail" {
            peaks += 1;
            // Sizes are on a scale of powers of two: one step is as near as it gets.
            let most = if row[5] == "KiB" { 50.1 } else { 10.0 };
            let apart = row[8].parse().map_or(row[8] == "yes", |apart: f64| apart.abs() < most);
            assert!(apart, "{row:?}");
        }
    }
    assert_eq!(peaks, 29);
}

#[test]
fn kini_s_barriers_are_within_15_percent_but_for_one() {
    for row in &table(drawn(), "summary")[1..] {
        // On 9 nodes the eighth child of RGM's root is no further than the others: one hop, not two.
        let far = row[2].contains("RGM barrier over MPI-DS") && row[3] == "cluster 2";
        if row[0] == "Kini" && row[2].contains("barrier over") && !far {
            let apart: f64 = row[8].parse().unwrap();
            assert!(apart.abs() < 15.0, "{row:?}");
        }
    }
}

#[test]
fn collgm_s_switch_points_are_drawn_from_runs() {
    assert_eq!(found("CollGM", "best eager segment size", "32 MByte transfer").0, "64");
    assert_eq!(found("CollGM", "registration pipeline block", "rendezvous").0, "128");
    for sizes in ["very small messages", "small to standard messages"] {
        assert_eq!(found("CollGM", "best broadcast algorithm", sizes).1, "yes", "{sizes}");
    }
    // Small blocks go down a tree, large ones straight.
    let switch = "switch from binomial tree to flat tree in scatter and gather";
    assert_eq!(found("CollGM", switch, "message size at or above").0, "1");
    let scatter = |name, bytes| value(drawn(), "collgm-10", name, bytes);
    assert!(scatter("BINOMIAL", 16) < scatter("FLAT", 16));
    assert!(scatter("BINOMIAL", 4096) > scatter("FLAT", 4096));
    let map = table(drawn(), "collgm-11");
    assert!(map[1..].iter().any(|r| r[0] == "BINOMIAL" && r[2] == "16"), "{map:?}");
}

#[test]
fn designs_of_progress_do_what_rendezvous_says_of_them() {
    let at = |figure: &str, series: &str, x| value(drawn(), figure, series, x);
    let doubling = |from: usize, to: usize| {
        std::iter::successors(Some(from), |x| Some(x * 2)).take_while(move |x| *x <= to)
    };
    // Signals are ignored in the library, and a helper that spins for the lock keeps everybody out of it.
    for bytes in doubling(8 << 10, 4 << 20) {
        let bandwidth = |series| at("rendezvous-3", series, bytes);
        let base = bandwidth("no-async");
        assert!((bandwidth("new-async") / base - 1.0).abs() < 0.01, "{bytes} bytes");
        assert!(bandwidth("existing-async, spinning lock") < 0.6 * base, "{bytes} bytes");
        assert!(bandwidth("existing-async, spinning lock, two cores") > 0.95 * base);
        assert!(bandwidth("handover (ours)") > 0.99 * base, "{bytes} bytes");
    }
    for ranks in [4, 9, 16] {
        let speed = |series| at("rendezvous-4", series, ranks);
        assert!(speed("existing-async, spinning lock") < 0.8, "{ranks} ranks");
        assert!(speed("new-async") > 1.0 && speed("handover (ours)") > 1.0, "{ranks} ranks");
    }
    // No overlap at the receiver without a helper, nearly all with one; at the sender always.
    for bytes in doubling(1 << 20, 4 << 20) {
        assert!(at("rendezvous-5", "no-async", bytes) < 1.0);
        for series in ["new-async", "handover (ours)"] {
            assert!(at("rendezvous-5", series, bytes) > 98.0, "{series}");
        }
        for series in ["no-async", "new-async", "handover (ours)"] {
            assert!(at("rendezvous-6", series, bytes) > 98.0, "{series}");
        }
    }
    // The default policy hears of a helper after a while, the others at once.
    let late = |iterations| at("rendezvous-8", "default", iterations);
    assert!(late(256) < 1.0 && late(2048) > 10.0 && late(8192) > 80.0);
    for policy in ["fifo", "round robin"] {
        assert_eq!(at("rendezvous-8", policy, 32), at("rendezvous-8", policy, 8192));
    }
    // Who waits less is over earlier.
    for figure in ["rendezvous-9", "rendezvous-11b", "rendezvous-12b"] {
        for nodes in [4, 16, 64] {
            for series in ["new-async", "handover (ours)"] {
                assert!(at(figure, series, nodes) < at(figure, "no-async", nodes), "{figure}");
                let wait = |series: &str| at(figure, &format!("MPI_Wait, {series}"), nodes);
                assert!(wait(series) < wait("no-async"), "{figure}");
            }
        }
    }
    for (quantity, expected) in [
        ("interrupts per rendezvous", "3"),
        ("worst scheduling policy for overlap", "default"),
        ("best scheduling policy for overlap", "fifo and round robin"),
        ("gain of an interrupt at the completion of the read", "none"),
    ] {
        let rows = table(drawn(), "summary");
        let row = rows.iter().find(|row| row[2] == quantity).expect(quantity);
        assert_eq!(row[6], expected, "{quantity}");
    }
    assert_eq!(found("Rendezvous", "interrupts per rendezvous", "proposed design").0, "1");
}
