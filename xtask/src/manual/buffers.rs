//! Rules of each function about the program's buffers: the time during which the program must not change them.

use super::data::{Argument, ManualData, ManualFunction};
use super::siblings;

/// Categories of procedures. Each category has its own rule about buffers.
enum Category {
    /// The program may use the buffers again when the function returns.
    Blocking,
    /// The program must not change the buffers from the call until the completion of the request.
    Nonblocking,
    /// The program must not change the buffers from each start until the completion.
    Persistent,
    /// The function starts operations, each of which has its own buffers.
    Start,
    /// The program must not change the buffers after each start. Each partition has its own rule.
    PartitionedSend,
    PartitionedReceive,
    /// The program must not change the buffers until the epoch at the target ends, or until a flush.
    OneSided,
    /// The program must not change the buffers until the request is complete, until the epoch at the target ends, or until a flush.
    OneSidedRequest,
    /// The program must not change the buffers until the second half of the access returns.
    Begin,
    End,
}

/// Returns the rule of a function in sentences, or `None` if the function transfers no buffer of the program.
pub fn promise(data: &ManualData, function: &ManualFunction) -> Option<String> {
    let name = function.name.as_str();
    let buffers = Buffers::of(function);
    let category = category(data, function)?;
    let rule = buffers.forbidden();
    Some(match category {
        Category::Blocking => {
            let all = names(&buffers.all());
            let more = blocking(function);
            format!("When {name} returns, the program may use {all} again. {more}").trim().to_owned()
        }
        Category::Nonblocking => format!(
            "{name} only starts the operation. Until MPI_Wait, MPI_Test or one of their forms for several requests has completed \
             request, the program {rule}. {}",
            completed(function, &buffers)
        ),
        Category::Persistent => format!(
            "{name} only stores the arguments, and neither reads nor writes a buffer. From each MPI_Start until MPI_Wait or MPI_Test \
             has completed the operation, the program {rule}. Between a completion and the next start the program may use its \
             buffers, for instance to put new data there. The memory must stay valid until MPI_Request_free."
        ),
        Category::Start => format!(
            "From {name} until MPI_Wait or MPI_Test has completed an operation, the program must not change a buffer that the operation \
             reads, and must neither read nor change a buffer that it writes. The pages of MPI_Psend_init and MPI_Precv_init have the \
             rules for partitions."
        ),
        Category::PartitionedSend => "MPI_Psend_init only stores the arguments. After MPI_Start the program may fill a partition \
             until it calls MPI_Pready for it. From then on it must not change that partition until MPI_Wait or MPI_Test has completed \
             the operation. The memory must stay valid until MPI_Request_free."
            .to_owned(),
        Category::PartitionedReceive => "MPI_Precv_init only stores the arguments. After MPI_Start the program must neither read nor \
             change a partition until MPI_Parrived has reported its arrival, or MPI_Wait or MPI_Test has completed the operation. The \
             memory must stay valid until MPI_Request_free."
            .to_owned(),
        Category::OneSided => format!(
            "{name} may return before anything is transferred. Until the operation is complete at the origin, the program {rule}. It \
             is complete after MPI_Win_fence, MPI_Win_complete, MPI_Win_unlock, MPI_Win_flush or MPI_Win_flush_local."
        ),
        Category::OneSidedRequest => format!(
            "{name} may return before anything is transferred. Until MPI_Wait or MPI_Test has completed request, or an \
             MPI_Win_flush_local, MPI_Win_flush or MPI_Win_unlock has returned, the program {rule}.{}",
            if buffers.read.is_empty() {
                ""
            } else {
                " Completion of the request says nothing of the target: its memory has changed after MPI_Win_flush or MPI_Win_unlock."
            }
        ),
        Category::Begin => {
            let end = name.replace("_begin", "_end");
            format!("{name} only starts the access. Until {end} returns, the program {rule}.")
        }
        Category::End => {
            let begin = name.replace("_end", "_begin");
            format!("When {name} returns, the program may use buf again, the buffer that {begin} was given.")
        }
    })
}

fn category(data: &ManualData, function: &ManualFunction) -> Option<Category> {
    let name = function.name.as_str();
    let has = |kind: &str| function.arguments.iter().any(|a| a.meaning.kind == kind);
    if name.starts_with("MPI_File_") && name.ends_with("_end") {
        return Some(Category::End);
    }
    if ["MPI_Start", "MPI_Startall"].contains(&name) {
        return Some(Category::Start);
    }
    // Local functions on memory, such as MPI_Pack, need no rule.
    let transfers = ["COMMUNICATOR", "WINDOW", "FILE", "MESSAGE"].iter().any(|kind| has(kind));
    let packs = ["MPI_Pack", "MPI_Unpack"].iter().any(|begin| name.starts_with(begin));
    if !has("BUFFER") || !has("DATATYPE") || !transfers || packs {
        return None;
    }
    let returns_request = function
        .arguments
        .iter()
        .any(|a| a.meaning.kind == "REQUEST" && a.meaning.direction == "out");
    Some(match (name, siblings::base(data, name)) {
        ("MPI_Psend_init", _) => Category::PartitionedSend,
        ("MPI_Precv_init", _) => Category::PartitionedReceive,
        _ if has("WINDOW") && returns_request => Category::OneSidedRequest,
        _ if has("WINDOW") => Category::OneSided,
        _ if name.ends_with("_begin") => Category::Begin,
        _ if name.ends_with("_init") => Category::Persistent,
        _ if returns_request => Category::Nonblocking,
        _ => Category::Blocking,
    })
}

/// The buffers of a function, and the arrays that describe them.
struct Buffers<'f> {
    /// Buffers that the library only reads.
    read: Vec<&'f str>,
    /// Buffers that the library writes.
    written: Vec<&'f str>,
    /// Arrays of counts, displacements and datatypes.
    arrays: Vec<&'f str>,
}

impl<'f> Buffers<'f> {
    fn of(function: &'f ManualFunction) -> Buffers<'f> {
        let is_buffer = |a: &&Argument| a.meaning.kind == "BUFFER";
        let named = |wanted: &dyn Fn(&Argument) -> bool| {
            let wanted = function.arguments.iter().filter(|a| wanted(a));
            wanted.map(|a| a.name.as_str()).collect()
        };
        Buffers {
            read: named(&|a| is_buffer(&a) && a.meaning.direction == "in"),
            written: named(&|a| is_buffer(&a) && a.meaning.direction != "in"),
            arrays: named(&|a| a.declaration.contains('[') && a.meaning.direction == "in"),
        }
    }

    fn all(&self) -> Vec<&'f str> {
        self.read.iter().chain(&self.written).copied().collect()
    }

    /// Lists the accesses that are forbidden while the operation is under way.
    fn forbidden(&self) -> String {
        let mut rules = Vec::new();
        let unchanged: Vec<_> = self.read.iter().chain(&self.arrays).copied().collect();
        if !unchanged.is_empty() {
            rules.push(format!("must not change {}", names(&unchanged)));
        }
        if !self.written.is_empty() {
            rules.push(format!("must neither read nor change {}", names(&self.written)));
        }
        rules.join(", and ")
    }
}

/// Joins names: `a`, `a and b`, `a, b and c`.
fn names(all: &[&str]) -> String {
    match all {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Explains what the return of a blocking function guarantees.
fn blocking(function: &ManualFunction) -> &'static str {
    match function.name.as_str() {
        "MPI_Send" => {
            "This does not say that the message was received: a short message may wait in the library. A long one may keep MPI_Send \
             waiting for its receive, so a program must not rely on either."
        }
        "MPI_Ssend" => "It returns only after the matching receive has begun.",
        "MPI_Rsend" => {
            "The matching receive must be posted before the call. Like that of MPI_Send, the return does not say that the message \
             was received."
        }
        "MPI_Bsend" => {
            "The message is sent, or copied to the attached buffer, without waiting for its receive. Too little room there raises an \
             error."
        }
        name if name.starts_with("MPI_File_") && name.contains("write") => {
            "The data may still be in memory of the system: MPI_File_sync brings it to the device."
        }
        _ if is_collective(function) => {
            "Other ranks may still be in the operation: its end at this rank says nothing of them."
        }
        _ => "",
    }
}

fn is_collective(function: &ManualFunction) -> bool {
    let kinds = ["RANK", "RANK_NNI", "MESSAGE", "FILE"];
    // An argument `root` belongs to a collective operation, not to point-to-point communication.
    !function.arguments.iter().any(|a| kinds.contains(&a.meaning.kind.as_str()) && a.name != "root")
}

/// Explains what the completion of a nonblocking operation guarantees.
fn completed(function: &ManualFunction, buffers: &Buffers) -> String {
    let reads = names(&buffers.read);
    match function.name.as_str() {
        "MPI_Isend" | "MPI_Irsend" => format!(
            "Completion says that {reads} may be changed again, not that the message was received. Reading {reads} is allowed at any time."
        ),
        "MPI_Issend" => format!(
            "Completion says that {reads} may be changed again, and that the matching receive has begun."
        ),
        "MPI_Ibsend" => format!(
            "Completion says that {reads} may be changed again: it does not wait for the receive, since the message may stand in the \
             attached buffer."
        ),
        _ if buffers.written.is_empty() => {
            format!("Completion says that {reads} may be changed again.")
        }
        _ => format!("Only completion says that {} has the data.", names(&buffers.written)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: &str) -> String {
        let data = ManualData::read().unwrap();
        promise(&data, data.function(name).unwrap()).unwrap_or_default()
    }

    #[test]
    fn each_category_has_its_rule() {
        for (name, words) in [
            ("MPI_Send", "When MPI_Send returns, the program may use buf again."),
            ("MPI_Ssend", "only after the matching receive has begun"),
            (
                "MPI_Isend",
                "has completed request, the program must not change buf. Completion says",
            ),
            ("MPI_Irecv", "the program must neither read nor change buf. Only completion"),
            (
                "MPI_Ialltoallv",
                "must not change sendbuf, sendcounts, sdispls, recvcounts and rdispls, and must neither read nor change recvbuf.",
            ),
            ("MPI_Send_init", "From each MPI_Start until"),
            ("MPI_Startall", "From MPI_Startall until MPI_Wait"),
            ("MPI_Bcast", "Other ranks may still be in the operation"),
            ("MPI_Psend_init", "MPI_Pready"),
            ("MPI_Put", "MPI_Win_flush_local."),
            ("MPI_Rput", "says nothing of the target"),
            ("MPI_File_write_at", "MPI_File_sync"),
            (
                "MPI_File_iwrite_at",
                "must not change buf. Completion says that buf may be changed again.",
            ),
            (
                "MPI_File_read_all_begin",
                "Until MPI_File_read_all_end returns, the program must neither read nor change buf.",
            ),
            ("MPI_File_read_all_end", "the buffer that MPI_File_read_all_begin was given"),
        ] {
            assert!(text(name).contains(words), "{name}: {}", text(name));
        }
        for name in ["MPI_Pack", "MPI_Win_create", "MPI_Comm_attach_buffer", "MPI_Wait"] {
            assert_eq!(text(name), "", "{name}");
        }
    }

    #[test]
    fn every_function_that_returns_a_request_for_a_buffer_has_a_rule() {
        let data = ManualData::read().unwrap();
        let moves = |f: &&ManualFunction| {
            let kinds = f.arguments.iter().map(|a| a.meaning.kind.as_str()).collect::<Vec<_>>();
            ["BUFFER", "DATATYPE", "REQUEST"].iter().all(|kind| kinds.contains(kind))
        };
        let all: Vec<_> = data.functions.iter().filter(moves).collect();
        assert!(all.len() > 100, "{}", all.len());
        let missing = all.iter().filter(|f| promise(&data, f).is_none());
        assert_eq!(missing.map(|f| f.name.as_str()).collect::<Vec<_>>(), [""; 0]);
    }
}
