//! Comparison of messages: the type signatures of a send and its receive.

use super::{Checker, remote_party};
use crate::call_site::CallSite;
use crate::datatype::PACKED;
use crate::finding::{FindingClass, Party};
use crate::marks::{MessageArrival, SendRecord};
use crate::requests::ReceiveElements;
use crate::shadow::{buffer_signature, describe};

/// A call that receives.
pub(super) struct ReceiveCall<'a> {
    pub function: &'static str,
    pub site: CallSite,
    pub elements: &'a ReceiveElements,
    /// Time at which the receive began, if the user asks for waits; else 0.
    pub began: u64,
}

/// Result of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SignatureMatch {
    /// Messages of all lengths match.
    Always,
    /// The message matches.
    ThisLength,
    Mismatch,
}

/// Compares the elements of a receive with a message of some bytes. A message that is too long is an error of the library, and such
/// a receive is not compared. So more elements in the same number of bytes are a mismatch.
fn matches(elements: &ReceiveElements, record: &SendRecord, bytes: u64) -> SignatureMatch {
    let unit = &elements.facts.signature;
    if record.is_packed != 0 || unit.contains(PACKED) || unit.hash == record.unit {
        return SignatureMatch::Always;
    }
    let sent = record.sent(bytes);
    match buffer_signature(&elements.facts, elements.count).prefix(sent.elements) == sent {
        true => SignatureMatch::ThisLength,
        false => SignatureMatch::Mismatch,
    }
}

impl Checker {
    /// Compares a receive with its message, and adds a finding if their signatures differ.
    pub(super) fn compare(
        &mut self,
        receive: &ReceiveCall<'_>,
        message: &MessageArrival,
    ) -> SignatureMatch {
        match self.marks.of_message(message) {
            None => SignatureMatch::ThisLength,
            Some(record) => {
                self.note_arrival(receive, &record, message.bytes);
                self.compare_record(receive, &record, message.bytes)
            }
        }
    }

    /// Compares a receive with the record of a message of some bytes.
    pub(super) fn compare_record(
        &mut self,
        receive: &ReceiveCall<'_>,
        record: &SendRecord,
        bytes: u64,
    ) -> SignatureMatch {
        let &ReceiveCall { function, site, elements, .. } = receive;
        let result = matches(elements, record, bytes);
        if result == SignatureMatch::Mismatch {
            let signature = buffer_signature(&elements.facts, elements.count);
            let facts = describe(signature.hash.elements, signature.first().unwrap_or(0));
            let own = Party { rank: Some(self.rank), function: function.to_owned(), site, facts };
            let peer = remote_party(&record.call(), record.describe(bytes));
            self.findings.add(FindingClass::TypeMismatch, vec![own, peer]);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::TypeFacts;
    use crate::signature::TypeSignature;
    use std::sync::Arc;

    /// Returns a type of elements of some classes, each with its size.
    fn facts(elements: &[(u8, u64)]) -> TypeFacts {
        let all = elements.iter().map(|&(class, _)| TypeSignature::element(class)).collect();
        let size: u64 = elements.iter().map(|(_, size)| size).sum();
        let signature = TypeSignature::sequence(all);
        TypeFacts { number: 0, size, signature, blocks: None, in_order: true, extent: size as i64 }
    }

    fn result(sent: &TypeFacts, n: u64, received: TypeFacts, count: i64) -> SignatureMatch {
        let record = SendRecord::new(CallSite::default(), 0, 0, sent);
        let elements = ReceiveElements { facts: Arc::new(received), count };
        matches(&elements, &record, n * sent.size)
    }

    #[test]
    fn a_message_is_a_prefix_of_its_receive() {
        let (int, float, pair) = ([(12, 4)], [(32, 4)], [(12, 4), (33, 8)]);
        assert_eq!(result(&facts(&int), 2, facts(&int), 5), SignatureMatch::Always);
        assert_eq!(result(&facts(&int), 2, facts(&float), 5), SignatureMatch::Mismatch);
        assert_eq!(result(&facts(&int), 4, facts(&[int[0]; 2]), 2), SignatureMatch::ThisLength);
        assert_eq!(result(&facts(&int), 3, facts(&[int[0]; 2]), 2), SignatureMatch::ThisLength);
        assert_eq!(result(&facts(&int), 1, facts(&pair), 2), SignatureMatch::ThisLength);
        assert_eq!(result(&facts(&int), 3, facts(&pair), 1), SignatureMatch::Mismatch);
        assert_eq!(result(&facts(&pair), 1, facts(&int), 3), SignatureMatch::Mismatch);
        assert_eq!(result(&facts(&int), 0, facts(&float), 5), SignatureMatch::ThisLength);
    }

    #[test]
    fn packed_data_match_every_type() {
        let packed = [(PACKED, 1)];
        assert_eq!(result(&facts(&packed), 8, facts(&[(33, 8)]), 1), SignatureMatch::Always);
        assert_eq!(result(&facts(&[(33, 8)]), 1, facts(&packed), 8), SignatureMatch::Always);
    }
}
