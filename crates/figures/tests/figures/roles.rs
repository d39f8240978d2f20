//! Roles of published numbers change in one direction only: a value that has been looked at is never held out again.

use super::records;
use std::collections::BTreeMap;
use weft_fabric_sim::Machine;
use weft_fabric_sim::machine::EvidenceRole;

/// Each role that was given to a row in place of `held-out`, in order of time. Lines are added, never changed.
const GIVEN: &str = include_str!("../../../../figures/roles.csv");
/// Number of lines of the file when this test was written, and their hash.
const LINES: usize = 103;
const HASH: u64 = 0xaf9b_7b98_2e54_ee80;

/// Machine files of all documents.
pub const MACHINES: [&str; 9] =
    ["kini1", "kini2", "collgm", "ia32", "em64t", "fence", "rendezvous", "epyc9654", "xeon24"];

type Rows = BTreeMap<(String, String), EvidenceRole>;

/// Computes the FNV-1a hash.
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Returns the roles of the list, the last of each row. An error names a line that goes back.
fn given(text: &str) -> Result<Rows, String> {
    let mut rows = Rows::new();
    for (at, record) in records(text).into_iter().enumerate().skip(1) {
        let [paper, row, role] = &record[..] else {
            return Err(format!("line {}: three fields", at + 1));
        };
        let role = EvidenceRole::ALL.into_iter().find(|known| known.name() == role);
        let role = role.ok_or_else(|| format!("line {}: no such role", at + 1))?;
        let before =
            rows.insert((paper.clone(), row.clone()), role).unwrap_or(EvidenceRole::HeldOut);
        if before == role || !before.may_become(role) {
            let (was, is) = (before.name(), role.name());
            return Err(format!("line {}: {row} was {was} and cannot become {is}", at + 1));
        }
    }
    Ok(rows)
}

/// Returns the roles that machine files give to all rows.
fn said() -> Rows {
    let mut rows = Rows::new();
    for name in MACHINES {
        let evidence = Machine::load(name).unwrap().evidence;
        for (role, list) in evidence.lists() {
            for row in list {
                rows.insert((evidence.paper.clone(), row.clone()), role);
            }
        }
    }
    rows
}

/// Lists the differences between machine files and the list.
fn problems(given: &Rows, said: &Rows) -> Vec<String> {
    let of = |(key, role): (&(String, String), &EvidenceRole)| {
        let now = said.get(key).copied();
        (now != Some(*role)).then(|| {
            let now = now.map_or("in no machine file", EvidenceRole::name);
            format!("{}: {} is {now}, and figures/roles.csv has it {}", key.0, key.1, role.name())
        })
    };
    let unlisted = |(key, role): (&(String, String), &EvidenceRole)| {
        (*role != EvidenceRole::HeldOut && !given.contains_key(key)).then(|| {
            format!("{}: {} is {}: add a line to figures/roles.csv", key.0, key.1, role.name())
        })
    };
    given.iter().filter_map(of).chain(said.iter().filter_map(unlisted)).collect()
}

#[test]
fn no_line_of_the_list_of_roles_is_gone() {
    let lines: String = GIVEN.split_inclusive('\n').take(LINES).collect();
    assert_eq!(hash(&lines), HASH, "the first {LINES} lines of figures/roles.csv stay as they are");
}

#[test]
fn machine_files_give_the_roles_of_the_list_and_no_other() {
    assert_eq!(problems(&given(GIVEN).unwrap(), &said()), [""; 0]);
}

#[test]
fn a_role_that_goes_back_is_found() {
    let list = |lines: &str| given(&format!("paper,row,role\n{lines}"));
    for back in [
        "A,b; c,informed\nA,b; c,held-out\n",
        "A,b; c,fitted\nA,b; c,informed\n",
        "A,b; c,held-out\n",
    ] {
        assert!(list(back).unwrap_err().contains("b; c"), "{back}");
    }
    let rows = list("A,b; c,informed\nA,b; c,fitted\n").unwrap();
    let key = || ("A".to_owned(), "b; c".to_owned());
    assert_eq!(rows[&key()], EvidenceRole::Fitted);
    // A role that changes in the machine file without a line in the list is a problem.
    let quietly = Rows::from([(key(), EvidenceRole::HeldOut)]);
    assert!(
        problems(&rows, &quietly)[0].contains("is held-out, and figures/roles.csv has it fitted")
    );
    let unlisted = Rows::from([(key(), EvidenceRole::Informed)]);
    assert!(problems(&Rows::new(), &unlisted)[0].contains("add a line"));
}
