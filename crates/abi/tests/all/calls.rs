//! Calls through the C interface: profiling libraries, functions that need no MPI_Init, and functions that are not implemented.

use crate::common::{compile_and_run, data, library_dir, run, scratch};
use std::process::Command;

/// A profiling library defines MPI_X, calls PMPI_X, and is linked before this library.
#[test]
fn a_profiling_library_sees_each_call_once() {
    let tool = scratch(
        "profiling-tool.c",
        "#include <mpi.h>\n\
         int tool_calls = 0;\n\
         int MPI_Get_version(int *version, int *subversion) {\n\
             tool_calls++;\n\
             return PMPI_Get_version(version, subversion);\n\
         }\n\
         double MPI_Wtime(void) { tool_calls++; return -PMPI_Wtime(); }\n",
    );
    let object = tool.with_file_name("libprofiling-tool.so");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-I"]).arg(library_dir().join("include"));
    run(cc.arg(&tool).arg("-o").arg(&object));
    let directory = object.parent().unwrap().display();
    let printed = compile_and_run(
        "profiling-program",
        &["cc"],
        "#include <mpi.h>\n#include <stdio.h>\n\
         extern int tool_calls;\n\
         int main(void) {\n\
             int version = 0, subversion = 9;\n\
             int code = MPI_Get_version(&version, &subversion);\n\
             printf(\"%d %d.%d %d\", code, version, subversion, MPI_Wtime() < 0);\n\
             printf(\" %d %d\\n\", PMPI_Wtime() > 0, tool_calls);\n\
             return 0;\n\
         }\n",
        &[&format!("-L{directory}"), "-lprofiling-tool", &format!("-Wl,-rpath,{directory}")],
    );
    assert_eq!(printed, "0 5.0 1 1 2\n");
}

#[test]
fn what_needs_no_init_works_without() {
    let printed = compile_and_run(
        "environment",
        &["cc"],
        "#include <mpi.h>\n#include <stdio.h>\n#include <string.h>\n#include <unistd.h>\n\
         int main(void) {\n\
             char library[MPI_MAX_LIBRARY_VERSION_STRING], name[MPI_MAX_PROCESSOR_NAME];\n\
             char host[MPI_MAX_PROCESSOR_NAME] = \"\";\n\
             int length, major, minor;\n\
             MPI_Get_library_version(library, &length);\n\
             printf(\"%d %d\\n\", strncmp(library, \"Weft \", 5), length == (int)strlen(library));\n\
             MPI_Get_processor_name(name, &length);\n\
             gethostname(host, sizeof host - 1);\n\
             printf(\"%d %d\\n\", strcmp(name, host), length == (int)strlen(name));\n\
             MPI_Abi_get_version(&major, &minor);\n\
             printf(\"%d.%d\\n\", major, minor);\n\
             double before = MPI_Wtime();\n\
             usleep(20000);\n\
             double slept = MPI_Wtime() - before;\n\
             printf(\"%d %d\\n\", slept >= 0.02, MPI_Wtick() > 0 && MPI_Wtick() < 1e-3);\n\
             printf(\"%ld\\n\", (long)MPI_Aint_diff(MPI_Aint_add(1000, 24), 1000));\n\
             return 0;\n\
         }\n",
        &[],
    );
    assert_eq!(printed, "0 1\n0 1\n1.0\n1 1\n24\n");
}

#[test]
fn the_coverage_names_every_function_once() {
    let printed = compile_and_run(
        "coverage",
        &["cc"],
        "#include <stdio.h>\n\
         extern const char *weft_coverage(void);\n\
         int main(void) { fputs(weft_coverage(), stdout); return 0; }\n",
        &[],
    );
    let mut lines = printed.lines();
    assert_eq!(lines.next(), Some(concat!("weft ", env!("CARGO_PKG_VERSION"))));
    let names: Vec<_> = lines.map(|line| line.split_once(' ').unwrap()).collect();
    let functions = data("functions.csv");
    assert_eq!(names.len(), functions.len());
    for ((name, word), function) in names.iter().zip(&functions) {
        assert_eq!(*name, function[0]);
        assert!(["yes", "no"].contains(word), "{name} {word}");
    }
    assert!(names.contains(&("MPI_Wtime", "yes")));
}

#[test]
fn the_fields_of_a_status_are_reached_by_functions() {
    let printed = compile_and_run(
        "status",
        &["cc"],
        "#include <mpi.h>\n#include <stdio.h>\n\
         int main(void) {\n\
             MPI_Status status;\n\
             int source, tag, error;\n\
             MPI_Status_set_source(&status, 3);\n\
             MPI_Status_set_tag(&status, 17);\n\
             MPI_Status_set_error(&status, MPI_ERR_TRUNCATE);\n\
             printf(\"%d %d %d\\n\", status.MPI_SOURCE, status.MPI_TAG, status.MPI_ERROR);\n\
             status.MPI_SOURCE = 4;\n\
             status.MPI_TAG = 18;\n\
             status.MPI_ERROR = 0;\n\
             MPI_Status_get_source(&status, &source);\n\
             MPI_Status_get_tag(&status, &tag);\n\
             MPI_Status_get_error(&status, &error);\n\
             printf(\"%d %d %d\\n\", source, tag, error);\n\
             return MPI_Pcontrol(2, \"anything\", 1.5);\n\
         }\n",
        &[],
    );
    assert_eq!(printed, "3 17 15\n4 18 0\n");
}
