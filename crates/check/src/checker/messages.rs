//! Comparison of messages: the type signatures of a send and its receive.

use super::{Checker, remote_party};
use crate::call_site::CallSite;
use crate::datatype::PACKED;
use crate::report::{FindingClass, Party};
use crate::shadow::{CallRecord, describe};
use crate::signature::TypeSignature;

/// A call that receives.
pub(super) struct ReceiveCall<'a> {
    pub function: &'static str,
    pub site: CallSite,
    pub signature: &'a TypeSignature,
}

impl Checker {
    /// Completes a receive with the message's source and tag, and compares all messages that are known now.
    pub(super) fn complete_receive(&mut self, comm: usize, id: u64, source: i64, tag: i64) {
        let known = self.comms.get_mut(&comm).map(|facts| facts.complete(id, source, tag));
        for (receive, record) in known.unwrap_or_default() {
            match &receive.signature {
                None => self.probed(receive.id, record),
                Some(signature) => {
                    let own =
                        ReceiveCall { function: receive.function, site: receive.site, signature };
                    self.compare(&own, &record);
                }
            }
        }
    }

    /// Compares the signature of a receive with the message's.
    pub(super) fn compare(&mut self, receive: &ReceiveCall<'_>, record: &CallRecord) {
        let signature = receive.signature;
        let sent = record.sequence_hash();
        let is_packed = record.first == u32::from(PACKED) || signature.contains(PACKED);
        // A message that is too long is an error of the library, and such a receive is not compared. So more elements in the same
        // number of bytes are a mismatch.
        if is_packed || signature.prefix(sent.elements) == sent {
            return;
        }
        let facts = describe(signature.hash.elements, signature.first().unwrap_or(0));
        let function = receive.function.to_owned();
        let own = Party { rank: Some(self.rank), function, site: receive.site, facts };
        let peer = remote_party(record, record.describe());
        self.findings.add(FindingClass::TypeMismatch, vec![own, peer]);
    }
}
