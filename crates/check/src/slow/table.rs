//! Table of the waits of all ranks, which rank 0 writes at MPI_Finalize.

use super::{LateReceive, SlowCall, SlowKey, SlowKind, SlowLedger, SlowSum, THRESHOLD};
use crate::library::mpi;
use crate::report::{append, quoted};
use std::collections::HashMap;
use std::ffi::c_int;
use std::fmt::Write;
use std::io::Write as _;

const MPI_BYTE: usize = 0x247;
const MPI_INT64_T: usize = 0x258;

/// Number of rows that are printed. The file has all.
const PRINTED: usize = 20;

/// Calls of a row in words, so that ranks which do not have a module can print its calls.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct SlowRowName {
    kind: String,
    own: SlowRowCall,
    peer: SlowRowCall,
}

/// A call of a row in words.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct SlowRowCall {
    function: String,
    site: String,
}

/// Row of the table.
#[derive(Default, Debug)]
struct SlowRow {
    sum: SlowSum,
    /// Ranks of the wait with the most time, that of `own` first.
    ranks: [i64; 2],
    most: u64,
}

/// Writes the table. All processes of `comm`, which has those of MPI_COMM_WORLD, call this function.
///
/// # Safety
/// `comm` is a communicator of ours.
pub unsafe fn report(mut ledger: SlowLedger, comm: usize) {
    let (mut rank, mut size) = (0 as c_int, 0 as c_int);
    // SAFETY: the results are local variables.
    unsafe {
        mpi!(MPI_Comm_rank(comm, &raw mut rank));
        mpi!(MPI_Comm_size(comm, &raw mut size));
    }
    let size = size.max(1) as usize;
    // SAFETY: all processes do so.
    let late = unsafe { to_senders(std::mem::take(&mut ledger.late), comm, size) };
    ledger.judge(&late);
    let text = lines(&ledger);
    // SAFETY: all processes do so.
    let all = unsafe { gather(text.as_bytes(), comm, rank, size) };
    if rank == 0 {
        let (rows, dropped) = merge(&String::from_utf8_lossy(&all));
        print(&rows, dropped);
        rows.iter().for_each(|(name, row)| append(&json(name, row)));
    }
}

/// Returns where each of some parts that lie one behind the other begins.
fn displacements(counts: &[i64]) -> Vec<i64> {
    let next = |next: &mut i64, count: &i64| Some(std::mem::replace(next, *next + count));
    counts.iter().scan(0, next).collect()
}

/// Sends each late receive to the rank of its send.
///
/// # Safety
/// All processes of the communicator call this function.
unsafe fn to_senders(mut late: Vec<LateReceive>, comm: usize, size: usize) -> Vec<LateReceive> {
    const RECORD: i64 = size_of::<LateReceive>() as i64;
    // Spawned processes have ranks of another job. Those with a number that this job has, too, are not recognized.
    late.retain(|one| (0..size as i32).contains(&one.send.rank));
    late.sort_by_key(|one| one.send.rank);
    let mut counts = vec![0i64; size];
    late.iter().for_each(|one| counts[one.send.rank as usize] += RECORD);
    let mut from = vec![0i64; size];
    // SAFETY: the arrays have an element for each process, and the buffers the lengths that the counts say.
    unsafe {
        let (own, all) = (counts.as_ptr(), from.as_mut_ptr());
        mpi!(MPI_Alltoall(own, 1usize, MPI_INT64_T, all, 1usize, MPI_INT64_T, comm));
        let n = (from.iter().sum::<i64>() / RECORD).max(0) as usize;
        let mut received = vec![LateReceive::default(); n];
        let (there, here) = (displacements(&counts), displacements(&from));
        let (data, into) = (late.as_ptr(), received.as_mut_ptr());
        let (counts, places) = (counts.as_ptr(), there.as_ptr());
        let (theirs, offsets) = (from.as_ptr(), here.as_ptr());
        mpi!(MPI_Alltoallv_c(
            data, counts, places, MPI_BYTE, into, theirs, offsets, MPI_BYTE, comm
        ));
        received
    }
}

/// Returns the texts of all ranks at rank 0.
///
/// # Safety
/// All processes of the communicator call this function.
unsafe fn gather(text: &[u8], comm: usize, rank: c_int, size: usize) -> Vec<u8> {
    let own = text.len() as i64;
    let mut lengths = vec![0i64; size];
    // SAFETY: the arrays have an element for each process, and the buffers the lengths that the counts say.
    unsafe {
        let (from, to) = (&raw const own, lengths.as_mut_ptr());
        mpi!(MPI_Gather(from, 1usize, MPI_INT64_T, to, 1usize, MPI_INT64_T, 0, comm));
        let places = displacements(&lengths);
        let total = lengths.iter().sum::<i64>() as usize;
        let mut all = vec![0u8; if rank == 0 { total } else { 0 }];
        let (into, counts, offsets) = (all.as_mut_ptr(), lengths.as_ptr(), places.as_ptr());
        mpi!(MPI_Gatherv_c(text.as_ptr(), own, MPI_BYTE, into, counts, offsets, MPI_BYTE, 0, comm));
        all
    }
}

/// Returns the words of a call, as two columns.
fn columns(call: &SlowCall) -> String {
    let function = crate::FUNCTIONS.get(call.function as usize);
    let function = function.map_or("", |function| function.name());
    let site = if function.is_empty() { String::new() } else { call.site.to_string() };
    format!("{function}\t{}", site.replace(['\t', '\n'], " "))
}

/// Returns the rows of a rank, one a line: eight columns of numbers and words.
fn lines(ledger: &SlowLedger) -> String {
    let mut text = format!("{}\n", ledger.dropped);
    for (key, sum) in &ledger.rows {
        let SlowKey { kind, own, peer } = key;
        // A rank that is late in a collective operation is part of the row's name.
        let name = match kind {
            SlowKind::LateInCollective => format!("\t{}", rank_name(peer.rank)),
            _ => columns(peer),
        };
        let SlowSum { count, nanoseconds, bytes } = sum;
        writeln!(
            text,
            "{}\t{count}\t{nanoseconds}\t{bytes}\t{}\t{}\t{}\t{name}",
            kind.name(),
            own.rank,
            peer.rank,
            columns(own)
        )
        .expect("a string grows");
    }
    text
}

/// Returns the words for a rank that was late.
fn rank_name(rank: i32) -> String {
    if rank < 0 { "a rank of another host".to_owned() } else { format!("rank {rank}") }
}

/// Adds up the rows of all ranks. The rows with the most time come first. Also returns the number of waits that were not kept.
fn merge(text: &str) -> (Vec<(SlowRowName, SlowRow)>, u64) {
    let mut rows: HashMap<SlowRowName, SlowRow> = HashMap::new();
    let mut dropped = 0;
    for line in text.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let number = |place: usize| columns.get(place).and_then(|n| n.parse().ok()).unwrap_or(0);
        let &[kind, _, _, _, own, peer, function, site, other, there] = &columns[..] else {
            dropped += columns.first().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
            continue;
        };
        let call = |function: &str, site: &str| SlowRowCall {
            function: function.to_owned(),
            site: site.to_owned(),
        };
        let (own_call, peer_call) = (call(function, site), call(other, there));
        let name = SlowRowName { kind: kind.to_owned(), own: own_call, peer: peer_call };
        let sum = SlowSum { count: number(1), nanoseconds: number(2), bytes: number(3) };
        let row = rows.entry(name).or_default();
        row.sum.add(sum);
        if sum.nanoseconds >= row.most {
            row.most = sum.nanoseconds;
            row.ranks = [own, peer].map(|rank| rank.parse().unwrap_or(-1));
        }
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|(_, row)| std::cmp::Reverse(row.sum.nanoseconds));
    (rows, dropped)
}

/// Returns the sentence of a row for people.
fn sentence(name: &SlowRowName, row: &SlowRow) -> String {
    let [own, peer] = row.ranks;
    let SlowRowName { own: SlowRowCall { function, site }, peer: other, .. } = name;
    let late = SlowKind::LateInCollective.name();
    if name.kind == late {
        return format!(
            "rank {own}, {function} at {site}\n        waited for {}, which came last",
            other.site
        );
    }
    let verb = match SlowKind::ALL.into_iter().find(|kind| kind.name() == name.kind) {
        Some(SlowKind::UnexpectedMessage) => "came too early for",
        _ => "waited for",
    };
    format!(
        "rank {own}, {function} at {site}\n        {verb} rank {peer}, {} at {}",
        other.function, other.site
    )
}

/// Prints the rows with the most time on standard error.
fn print(rows: &[(SlowRowName, SlowRow)], dropped: u64) {
    let mut text = format!("weft check: waits from {} us\n", THRESHOLD / 1000);
    if rows.is_empty() {
        text.push_str("  none\n");
    }
    for (name, row) in rows.iter().take(PRINTED) {
        let SlowSum { count, nanoseconds, bytes } = row.sum;
        let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
        let size = if bytes == 0 { String::new() } else { format!(", {bytes} bytes") };
        let seconds = nanoseconds as f64 * 1e-9;
        let what = sentence(name, row);
        writeln!(text, "  {seconds:.6} s  {}, {times}{size}\n        {what}", name.kind)
            .expect("a string grows");
    }
    if rows.len() > PRINTED {
        let more = rows.len() - PRINTED;
        writeln!(text, "  {more} more with less time").expect("a string grows");
    }
    if dropped > 0 {
        writeln!(text, "  {dropped} waits were not kept").expect("a string grows");
    }
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Returns a row as a line of JSON.
fn json(name: &SlowRowName, row: &SlowRow) -> String {
    let call = |rank: i64, call: &SlowRowCall| {
        let (function, site) = (quoted(&call.function), quoted(&call.site));
        format!("{{\"rank\":{rank},\"function\":{function},\"site\":{site}}}")
    };
    let calls = match name.peer.function.as_str() {
        "" => format!("{},{{\"rank\":{}}}", call(row.ranks[0], &name.own), row.ranks[1]),
        _ => format!("{},{}", call(row.ranks[0], &name.own), call(row.ranks[1], &name.peer)),
    };
    let SlowSum { count, nanoseconds, bytes } = row.sum;
    let (kind, seconds) = (quoted(&name.kind), nanoseconds as f64 * 1e-9);
    format!(
        "{{\"slow\":{kind},\"count\":{count},\"seconds\":{seconds:.9},\"bytes\":{bytes},\"calls\":[{calls}]}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_equal_calls_are_added() {
        let line = |count: u64, nanoseconds: u64, own: i32| {
            let calls = "MPI_Recv\tmain (a.c:3)\tMPI_Send\tmain (a.c:2)";
            format!("late sender\t{count}\t{nanoseconds}\t8\t{own}\t1\t{calls}\n")
        };
        let text = format!("0\n{}2\n{}", line(3, 100, 0), line(1, 500, 2));
        let (rows, dropped) = merge(&text);
        assert_eq!((rows.len(), dropped), (1, 2));
        let (name, row) = &rows[0];
        assert_eq!(row.sum, SlowSum { count: 4, nanoseconds: 600, bytes: 16 });
        assert_eq!(row.ranks, [2, 1]);
        let json = json(name, row);
        assert!(json.starts_with("{\"slow\":\"late sender\",\"count\":4,"), "{json}");
        assert!(sentence(name, row).contains("waited for rank 1, MPI_Send at main (a.c:2)"));
    }
}
