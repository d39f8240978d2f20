use super::*;

fn all() -> (ManualData, Vec<(String, String)>) {
    let data = ManualData::read().unwrap();
    let not_built = HashSet::from(["MPI_File_open".to_owned()]);
    let pages = pages(&data, &not_built).unwrap();
    (data, pages)
}

/// Returns the text of the page of `name`, or of the page to which it links.
fn page<'a>(pages: &'a [(String, String)], name: &str) -> &'a str {
    let find = |name: &str| {
        let file = format!("{name}.3");
        let found = pages.iter().find(|(other, _)| *other == file);
        found.unwrap_or_else(|| panic!("no page {file}")).1.as_str()
    };
    let text = find(name);
    match text.strip_prefix(".so man3/") {
        Some(other) => find(other.trim_end().trim_end_matches(".3")),
        None => text,
    }
}

#[test]
fn every_function_has_a_page_with_all_its_arguments() {
    let (data, pages) = all();
    assert_eq!(pages.len(), data.functions.len());
    assert!(pages.len() > 600, "{}", pages.len());
    for function in &data.functions {
        let text = page(&pages, &function.name);
        let (name, purpose) = text.split_once(" \\- ").expect("a name and a purpose");
        assert!(name.contains(&function.name), "{name}");
        assert!(purpose.lines().next().is_some_and(|line| line.len() > 5), "{purpose}");
        assert!(text.contains(&format!("{} {}(", function.returns, function.name)), "{text}");
        for argument in &function.arguments {
            let entry = format!(".TP\n\\fB{}\\fR (", argument.name);
            let (_, rest) = text.split_once(&entry).unwrap_or_else(|| {
                panic!("{}: no {}: {text}", function.name, argument.name);
            });
            // The direction and the shape are followed by a sentence that says more than the kind of the argument.
            let meaning = rest.lines().nth(1).unwrap_or_default();
            let words = meaning.split_whitespace().count();
            assert!(words >= 4 && meaning.ends_with('.'), "{}: {meaning}", function.name);
        }
    }
}

#[test]
fn a_page_says_what_the_data_say() {
    let (_, pages) = all();
    let expect = |name: &str, texts: &[&str]| {
        let page = page(&pages, name);
        for text in texts {
            assert!(page.contains(text), "{name} has no '{text}': {page}");
        }
    };
    let send = "\\fBint MPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest,\\fR\n\
                \\fB             int tag, MPI_Comm comm);\\fR";
    expect("MPI_Send", &["send a message\n", send, "\\fBMPI_ERR_TAG\\fR\ninvalid tag: tag\n"]);
    expect(
        "MPI_Send",
        &["Rank of the receiver in comm", "receives on the same communicator match."],
    );
    expect("MPI_Irecv", &[".SH BUFFERS\n", "must neither read nor change buf"]);
    expect("MPI_Isend", &[".SH EXAMPLE\n", "MPI_Isend(&out, 1, MPI_INT, other, 0"]);
    expect("MPI_Type_get_contents", &["Only MPI_Type_get_contents_c has this argument."]);
    expect("MPI_Send", &["handler of the communicator \\fBcomm\\fR", "\\fBMPI_Isend\\fR(3)"]);
    expect("MPI_Send_c", &["int MPI_Send_c(const void *buf, MPI_Count count"]);
    expect("MPI_Iallreduce", &["; nonblocking\n", "nonblocking form of MPI_Allreduce"]);
    expect(
        "MPI_Bcast",
        &["\\fBMPI_ERR_ROOT\\fR\ninvalid root: root\n", "\\fBMPI_Bcast_init\\fR(3)"],
    );
    expect(
        "MPI_Waitall",
        &["array of count)\nRequests that are all completed", "what the request belongs to"],
    );
    expect("MPI_Win_lock", &["\\fBMPI_ERR_LOCKTYPE\\fR", "\\fBMPI_Win_unlock\\fR(3)"]);
    expect("MPI_Iprobe", &["\\fBMPI_Probe\\fR(3)"]);
    expect("MPI_Probe", &["\\fBMPI_Iprobe\\fR(3)"]);
    expect("MPI_Attr_get", &["Deprecated since MPI\\-2.0."]);
    expect("MPI_File_open", &["\\fBMPI_ERR_UNSUPPORTED_OPERATION\\fR\nalways"]);
    assert!(!page(&pages, "MPI_Wait").contains("UNSUPPORTED"));
    expect("MPI_Wtime", &["returns its result, double, and no error code"]);
    expect("MPI_T_cvar_read", &["No error handler is called", "MPI_T_ERR_NOT_INITIALIZED"]);
}

#[test]
fn pages_are_set_without_a_warning() {
    let (_, pages) = all();
    for name in ["MPI_Allreduce", "MPI_Wtime", "MPI_Dist_graph_create_adjacent", "MPI_File_open"] {
        let Some(said) = complaints(page(&pages, name), &crate::root()) else {
            eprintln!("NOT RUN: there is no groff");
            return;
        };
        assert_eq!(said, "", "{name}");
    }
}
