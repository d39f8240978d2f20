//! The place where a rank, or its helper, sleeps.

use crate::segment::Segment;
use std::sync::Arc;
use std::time::Duration;
use weft_fabric::wait::{Doorbell, Sleep, Token};

/// A doorbell of a rank, which keeps its segment mapped.
pub(crate) struct RankBell {
    pub segment: Arc<Segment>,
    pub rank: usize,
    pub helper: bool,
}

impl RankBell {
    fn get(&self) -> &Doorbell {
        let control = self.segment.control(self.rank);
        if self.helper { &control.helper } else { &control.doorbell }
    }
}

impl Sleep for RankBell {
    fn arm(&self) -> Token {
        self.get().arm()
    }

    fn sleep(&self, token: Token, limit: Duration) {
        self.get().sleep(token, limit);
    }

    fn disarm(&self) {
        self.get().disarm();
    }

    fn ring(&self) {
        self.get().ring();
    }

    fn may_have_rung(&self, token: Token) -> bool {
        self.get().may_have_rung(token)
    }
}
