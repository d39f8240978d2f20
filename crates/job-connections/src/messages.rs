//! The messages of members of a link: marks of success and failure, parts, and numbers.

use super::PeerIdentity;

/// Appends `part`, at most 65,535 bytes, after its length.
pub fn add_part(to: &mut Vec<u8>, part: &[u8]) {
    to.extend((part.len() as u16).to_le_bytes());
    to.extend(part);
}

/// Takes a part and its length from the front of `rest`. Returns `None` if `rest` is too short.
pub fn part<'v>(rest: &mut &'v [u8]) -> Option<&'v [u8]> {
    let (len, after) = rest.split_first_chunk()?;
    let (part, after) = after.split_at_checked(u16::from_le_bytes(*len).into())?;
    *rest = after;
    Some(part)
}

/// Encodes the message of a member that can go on: the mark of success, then `rest`.
pub fn yes(rest: &[u8]) -> Vec<u8> {
    [b"+", rest].concat()
}

/// Encodes the message of a member that cannot go on, with the reason.
pub fn no(reason: impl std::fmt::Display) -> Vec<u8> {
    format!("-{reason}").into_bytes()
}

/// Decodes a message: returns the bytes after the mark of success, or the reason of a failure in words.
pub fn told(said: &[u8]) -> Result<&[u8], String> {
    match said.split_first() {
        Some((b'+', rest)) => Ok(rest),
        Some((b'-', reason)) => Err(String::from_utf8_lossy(reason).into()),
        _ => Err(MISMATCH.to_owned()),
    }
}

/// The error for a message that cannot be decoded.
const MISMATCH: &str = "a process of another job speaks otherwise: are both of one version?";

/// Encodes numbers for a message.
pub fn numbers(all: impl Iterator<Item = usize>) -> Vec<u8> {
    all.flat_map(|number| (number as u32).to_le_bytes()).collect()
}

/// Decodes exactly `count` numbers from a message.
pub fn numbers_of(said: &[u8], count: usize) -> Result<Vec<usize>, String> {
    let (words, rest) = said.as_chunks();
    match rest.is_empty() && words.len() == count {
        true => Ok(words.iter().map(|&word| u32::from_le_bytes(word) as usize).collect()),
        false => Err(MISMATCH.to_owned()),
    }
}

/// Encodes the list of members that this process already knows, for the other members.
pub fn view(members: &[PeerIdentity]) -> Vec<u8> {
    numbers(members.iter().map(|whom| usize::from(whom.known.is_some())))
}

/// Returns, by place, the number of each member that this process knows and that knows this process. The other members become new
/// peers. `views` are the messages of the members from [`view`].
pub fn known_to_both<'v>(
    members: &[PeerIdentity],
    place: usize,
    views: impl Iterator<Item = &'v [u8]>,
) -> Result<Vec<Option<usize>>, String> {
    let both = |(whom, view): (&PeerIdentity, &[u8])| {
        let theirs = numbers_of(view, members.len())?;
        Ok(whom.known.filter(|_| theirs[place] != 0))
    };
    members.iter().zip(views).map(both).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_heard() {
        assert_eq!(told(&yes(b"rest")), Ok(&b"rest"[..]));
        assert_eq!(told(&no("full")), Err("full".to_owned()));
        assert!(told(b"").is_err() && told(b"?").is_err());
        assert_eq!(numbers_of(&numbers([1, 70_000].into_iter()), 2), Ok(vec![1, 70_000]));
        assert!(numbers_of(&[0; 7], 1).is_err() && numbers_of(&[0; 8], 1).is_err());
    }

    #[test]
    fn who_knows_one_side_only_is_new() {
        let whom = |known| PeerIdentity { job: 1, rank: 0, node: 0, known };
        let members = [whom(Some(4)), whom(None), whom(Some(6))];
        let views = [view(&members), view(&[whom(None); 3]), view(&members)];
        let both = |place| known_to_both(&members, place, views.iter().map(|view| &view[..]));
        assert_eq!(both(0), Ok(vec![Some(4), None, Some(6)]));
        assert_eq!(both(1), Ok(vec![None, None, None]));
    }
}
