//! `weft explain send`, `put` and `get` as a user runs them.
#![cfg(not(miri))]

use std::process::{Command, Output};

/// Runs `weft explain` on an unmeasured machine, without the tester's settings.
fn explain(args: &[&str], settings: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    for name in ["WEFT_EAGER", "WEFT_STAGING", "WEFT_CMA", "WEFT_RENDEZVOUS", "WEFT_PROTOCOL"] {
        command.env_remove(name);
    }
    command.env("WEFT_COPY_MODEL", "generic").envs(settings.iter().copied());
    command.arg("explain").args(args).output().unwrap()
}

fn printed(args: &[&str], settings: &[(&str, &str)]) -> String {
    let output = explain(args, settings);
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the text after the name of a line.
fn said<'t>(text: &'t str, name: &str) -> &'t str {
    let mut lines = text.lines().filter_map(|line| line.trim_start().strip_prefix(name));
    lines.next().unwrap_or_else(|| panic!("no {name} in {text}")).trim()
}

#[test]
fn a_message_is_explained_with_what_speaks_against_the_others() {
    let text = printed(&["send", "--bytes", "65536", "--peer", "1"], &[]);
    assert!(text.starts_with("send of 65536 bytes between rank 0 and rank 1, of 2\n"), "{text}");
    assert!(said(&text, "predicted").ends_with("us") && said(&text, "read").ends_with("us"));
    assert_eq!(said(&text, "because"), "it is the cheapest");
    assert_eq!(said(&text, "pieces"), "not eligible: the sender's memory can be read");

    let several = ["send", "--bytes", "65536", "--pattern", "many-to-one"];
    assert!(said(&printed(&several, &[]), "protocol").starts_with("written"));
    for closed in [
        printed(&["send", "--bytes", "65536", "--no-cma"], &[]),
        printed(&["send", "--bytes", "65536"], &[("WEFT_CMA", "0")]),
    ] {
        assert!(said(&closed, "protocol").starts_with("staged"), "{closed}");
        assert_eq!(said(&closed, "read"), "not eligible: the sender's memory cannot be read");
    }
    let asked = printed(&["send", "--bytes", "65536"], &[("WEFT_PROTOCOL", "read")]);
    assert!(said(&asked, "protocol").starts_with("read"), "{asked}");
    assert_eq!(said(&asked, "because"), "it is asked for: WEFT_PROTOCOL");
}

#[test]
fn over_a_network_the_limit_decides() {
    let to = |bytes, settings: &[(&str, &str)]| {
        let on = ["send", "--peer", "3", "-n", "4", "--machine", "kini2", "--bytes", bytes];
        printed(&on, settings)
    };
    assert!(said(&to("16384", &[]), "protocol").starts_with("eager"));
    assert!(said(&to("16385", &[]), "protocol").starts_with("read"));
    let small = [("WEFT_EAGER", "100"), ("WEFT_RENDEZVOUS", "write")];
    assert!(said(&to("101", &small), "protocol").starts_with("written"));
    assert!(said(&to("101", &[]), "predicted").ends_with(" us"));
}

#[test]
fn puts_and_gets_are_explained() {
    for operation in ["put", "get"] {
        let near = printed(&[operation, "--bytes", "4096"], &[]);
        assert!(said(&near, "protocol").starts_with("mapped"), "{near}");
        let far = printed(&[operation, "--bytes", "8", "--machine", "kini2"], &[]);
        assert!(said(&far, "protocol").starts_with("adapter"), "{far}");
        assert_eq!(said(&far, "mapped"), "not eligible: this process does not see the memory");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    for args in [
        &["send", "--peer", "2", "-n", "2"][..],
        &["send", "--pattern", "chaotic"],
        &["sent"],
        &["allreduce"],
    ] {
        let output = explain(args, &[]);
        assert!(!output.status.success() && !output.stderr.is_empty(), "{args:?}: {output:?}");
    }
}
