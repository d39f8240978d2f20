//! The sleep on two fabrics at the same time.

use std::sync::Arc;
use std::time::Duration;
use weft_fabric::wait::{Sleep, Token};

/// The sleep of a joined fabric. The sleep itself is that of the far fabric, which also watches the descriptor that the near
/// fabric's ring makes readable. Both fabrics are armed, so that near peers ring and the network raises events.
pub struct JoinedSleep {
    near: Arc<dyn Sleep>,
    far: Arc<dyn Sleep>,
}

impl JoinedSleep {
    pub fn new(near: Arc<dyn Sleep>, far: Arc<dyn Sleep>) -> JoinedSleep {
        JoinedSleep { near, far }
    }
}

impl Sleep for JoinedSleep {
    fn arm(&self) -> Token {
        self.near.arm();
        self.far.arm()
    }

    fn sleep(&self, token: Token, limit: Duration) {
        self.far.sleep(token, limit);
    }

    fn disarm(&self) {
        self.far.disarm();
        self.near.disarm();
    }

    fn ring(&self) {
        self.far.ring();
    }

    fn may_have_rung(&self, token: Token) -> bool {
        self.far.may_have_rung(token)
    }
}
