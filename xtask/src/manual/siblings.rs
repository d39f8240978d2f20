//! Relations between functions, by their names: the nonblocking form of another function, its persistent form, and so on.

use super::data::ManualData;

/// Relation of a function to the function from which its name is derived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SiblingForm {
    Nonblocking,
    Persistent,
    /// A one-sided operation with a request.
    WithRequest,
    /// The first half of a collective access to a file.
    Begin,
    End,
}

/// Returns the function from which the function `name` is derived: `MPI_Allreduce` for `MPI_Iallreduce`, `MPI_Send` for
/// `MPI_Send_init`.
pub fn base(data: &ManualData, name: &str) -> Option<(String, SiblingForm)> {
    // A function with its own purpose is not a form of another function: `MPI_Rsend` is not a form of `MPI_Send`.
    if data.purpose(name).is_some() {
        return None;
    }
    let known = |base: String, form| data.purpose(&base).is_some().then_some((base, form));
    let ends = [
        ("_init", SiblingForm::Persistent),
        ("_begin", SiblingForm::Begin),
        ("_end", SiblingForm::End),
    ];
    for (end, form) in ends {
        let stem = name.strip_suffix(end).map(str::to_owned);
        if let Some(found) = stem.and_then(|stem| known(stem, form)) {
            return Some(found);
        }
    }
    let rest = name.strip_prefix("MPI_")?;
    if let Some(rest) = rest.strip_prefix('I')
        && let Some(found) = known(format!("MPI_{}", capital(rest)), SiblingForm::Nonblocking)
    {
        return Some(found);
    }
    if let Some(rest) = rest.strip_prefix('R')
        && let Some(found) = known(format!("MPI_{}", capital(rest)), SiblingForm::WithRequest)
    {
        return Some(found);
    }
    known(name.replacen("_i", "_", 1), SiblingForm::Nonblocking)
}

fn capital(word: &str) -> String {
    word[..1].to_uppercase() + &word[1..]
}

/// Returns a function's purpose in a few words.
pub fn purpose(data: &ManualData, name: &str) -> Result<String, String> {
    if let Some(words) = data.purpose(name) {
        return Ok(words.to_owned());
    }
    if let Some((base, form)) = base(data, name)
        && let Some(words) = data.purpose(&base)
    {
        return Ok(match form {
            SiblingForm::Nonblocking => format!("{words}; nonblocking"),
            SiblingForm::Persistent => format!("{words}; persistent"),
            SiblingForm::WithRequest => format!("{words}; with a request"),
            SiblingForm::Begin => format!("{words}; begin"),
            SiblingForm::End => format!("{words}; end"),
        });
    }
    if let Some(object) = name.strip_suffix("_toint") {
        return Ok(format!("the integer of {}", object_of(object)));
    }
    if let Some(object) = name.strip_suffix("_fromint") {
        return Ok(format!("{} by its integer", object_of(object)));
    }
    Err(format!("purposes.csv has no {name}"))
}

/// Returns the word for `MPI_Win` and similar types.
fn object_of(name: &str) -> &str {
    match name {
        "MPI_Comm" => "a communicator's handle",
        "MPI_Errhandler" => "an error handler's handle",
        "MPI_File" => "a file's handle",
        "MPI_Group" => "a group's handle",
        "MPI_Info" => "an info object's handle",
        "MPI_Message" => "a message's handle",
        "MPI_Op" => "an operator's handle",
        "MPI_Request" => "a request's handle",
        "MPI_Session" => "a session's handle",
        "MPI_Type" => "a datatype's handle",
        "MPI_Win" => "a window's handle",
        _ => "a handle",
    }
}

/// Pairs of words that replace each other in names.
const PAIRS: [(&str, &str); 21] = [
    ("accept", "connect"),
    ("alloc", "free"),
    ("attach", "detach"),
    ("begin", "end"),
    ("create", "free"),
    ("excl", "incl"),
    ("finalize", "init"),
    ("flush", "flush_local"),
    ("get", "set"),
    ("get", "put"),
    ("get_attr", "delete_attr"),
    ("open", "close"),
    ("Open", "Close"),
    ("Pack", "Unpack"),
    ("Publish", "Unpublish"),
    ("read", "write"),
    ("rank", "size"),
    ("start", "complete"),
    ("start", "stop"),
    ("post", "wait"),
    ("toint", "fromint"),
];

/// Pairs of beginnings of names. The other parts of both names are equal, as in `MPI_Win_lock_all` and `MPI_Win_unlock_all`.
const STARTS: [(&str, &str); 8] = [
    ("MPI_Init", "MPI_Finalize"),
    ("MPI_Alloc_mem", "MPI_Free_mem"),
    ("MPI_Win_lock", "MPI_Win_unlock"),
    ("MPI_Wait", "MPI_Test"),
    ("MPI_Send", "MPI_Recv"),
    ("MPI_Mprobe", "MPI_Mrecv"),
    ("MPI_Psend_init", "MPI_Precv_init"),
    ("MPI_Type_create", "MPI_Type_commit"),
];

/// Returns the pages to which the page of `name` refers: other forms of the same operation, and functions that undo the operation.
pub fn see_also(data: &ManualData, name: &str) -> Vec<String> {
    let stem = base(data, name).map_or_else(|| name.to_owned(), |(base, _)| base);
    let other_form = |f: &str| f == stem || base(data, f).is_some_and(|(other, _)| other == stem);
    let swapped = partners(name);
    let word = |f: &str| f.strip_suffix(['v', 'w']).is_some_and(|less| less == name);
    let related = |f: &str| {
        other_form(f) || word(f) || name.strip_suffix(['v', 'w']) == Some(f) || {
            swapped.iter().any(|partner| partner == f)
        }
    };
    let names = data.functions.iter().map(|f| f.name.as_str());
    let names = names.filter(|&f| f != name && data.small(f).is_none() && related(f));
    names.map(str::to_owned).collect()
}

/// Returns names that could be the partners of `name`. Not all of them are functions.
fn partners(name: &str) -> Vec<String> {
    let mut found = Vec::new();
    let both = |pairs: &'static [(&str, &str)]| {
        pairs.iter().flat_map(|&(one, other)| [(one, other), (other, one)])
    };
    let words = format!("{name}_");
    for (one, other) in both(&PAIRS) {
        let part = format!("_{one}_");
        if words.contains(&part) {
            let swapped = words.replacen(&part, &format!("_{other}_"), 1);
            found.push(swapped.trim_end_matches('_').to_owned());
        }
    }
    // For nonblocking forms with their own purpose, such as `MPI_Iprobe`, the blocking form is a partner.
    if let Some(rest) = name.strip_prefix("MPI_I") {
        found.push(format!("MPI_{}", capital(rest)));
    }
    if let Some(rest) = name.strip_prefix("MPI_") {
        found.push(format!("MPI_I{}", rest.to_lowercase()));
    }
    for (one, other) in both(&STARTS) {
        if let Some(rest) = name.strip_prefix(one) {
            found.push(format!("{other}{rest}"));
            if rest.starts_with('_') {
                found.push(other.to_owned());
            }
        }
    }
    found
}
