//! Writes `mpi.h`: C89, C99 and C++11, without warnings.

use crate::older;
use std::fmt::Write;
use weft_abi_data::removed::RemovedFunction;
use weft_abi_data::{Abi, Constant};

const TOP: &str = "\
/* mpi.h of Weft: the MPI 5.0 standard ABI. Generated from crates/abi/data; do not edit. */
#ifndef WEFT_MPI_H
#define WEFT_MPI_H

#include <stdint.h>

#ifdef __cplusplus
extern \"C\" {
#endif

";

/// Types that the data leaves to the platform. The field names are the standard's.
const PLATFORM: &str = "
/* Integers */
typedef intptr_t MPI_Aint;
typedef int64_t MPI_Offset;
typedef int64_t MPI_Count;

typedef struct MPI_Status {
    int MPI_SOURCE;
    int MPI_TAG;
    int MPI_ERROR;
    int MPI_internal[5];
} MPI_Status;

";

const BOTTOM: &str = "
#ifdef __cplusplus
}
#endif

#endif /* WEFT_MPI_H */
";

/// C enumerations of the tool interface: they are types of parameters.
const ENUMERATIONS: [&str; 2] = ["MPI_T_cb_safety", "MPI_T_source_order"];

pub fn mpi_h(abi: &Abi, removed: &[RemovedFunction]) -> String {
    let mut out = TOP.to_owned();
    writeln!(out, "/* Weft's own version */").unwrap();
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    writeln!(out, "#define WEFT_VERSION \"{version}\"").unwrap();
    out.push_str(PLATFORM);

    out.push_str("/* Handles */\n");
    for (name, tag) in &abi.handles {
        writeln!(out, "typedef struct {tag} *{name};").unwrap();
    }
    for name in ENUMERATIONS {
        writeln!(out, "\ntypedef enum {name} {{").unwrap();
        let members: Vec<_> = abi.constants.iter().filter(|c| c.c_type == name).collect();
        for (i, Constant { name, value, .. }) in members.iter().enumerate() {
            let comma = if i + 1 < members.len() { "," } else { "" };
            writeln!(out, "    {name} = {value}{comma}").unwrap();
        }
        writeln!(out, "}} {name};").unwrap();
    }

    out.push_str("\n/* Callbacks */\n");
    for c in &abi.callbacks {
        let note = comment(&c.note);
        writeln!(out, "typedef {} ({})({});{note}", c.returns, c.name, c.c_params).unwrap();
    }
    for (old, new) in &abi.aliases {
        writeln!(out, "typedef {old} {new};").unwrap();
    }

    out.push_str("\n/* Constants */\n");
    for c in &abi.constants {
        if !ENUMERATIONS.contains(&c.c_type.as_str()) {
            writeln!(out, "#define {:<30} {}{}", c.name, value(c), comment(&c.note)).unwrap();
        }
    }

    for (title, prefix) in [("Functions", ""), ("Profiling interface", "P")] {
        writeln!(out, "\n/* {title} */").unwrap();
        for f in &abi.functions {
            let (returns, name, list) = (&f.returns, &f.name, pointers(&f.c_params));
            writeln!(out, "{returns} {prefix}{name}({list});{}", comment(&f.note)).unwrap();
        }
    }
    out.push_str(&older::functions(abi, removed));
    out.push_str(BOTTOM);
    out
}

/// Returns the parameters with arrays written as pointers. GCC believes that constants such as MPI_UNWEIGHTED are too short for an
/// array, and warns.
fn pointers(list: &str) -> String {
    let pointer = |parameter: &str| match parameter.strip_suffix("[]") {
        Some(head) => {
            let name = head.rfind([' ', '*']).map_or(0, |at| at + 1);
            format!("{}*{}", &head[..name], &head[name..])
        }
        None => parameter.to_owned(),
    };
    list.split(", ").map(pointer).collect::<Vec<_>>().join(", ")
}

fn comment(note: &str) -> String {
    if note.starts_with("deprecated") { format!(" /* {note} */") } else { String::new() }
}

fn value(c: &Constant) -> String {
    match c.c_type.as_str() {
        "" | "int" if c.value.starts_with('-') => format!("({})", c.value),
        "" | "int" => c.value.clone(),
        c_type => format!("(({c_type}){})", c.value),
    }
}
