//! Detection of lost peers by a process that waits and gets no messages from them.
//!
//! A peer may compute for hours and answer nothing, so silence alone proves nothing. If the provider uses TCP, the kernels of
//! both hosts know more: each connection is set to send probes, and to end when the other host acknowledges nothing for a given
//! time ([`crate::sockets`]).
//!
//! ```text
//!   silent for `keepalive` ──► ask once (a message that wants an answer) ──► silent again: check the connection
//!        there                 the peer computes, its host lives: go on
//!        being made            for longer than `patience`: lost
//!        gone, at two checks   the kernel has given it up: lost
//! ```
//! Other providers report the peers that they have given up.

use super::OfiState;
use crate::connection_state::ConnectionState;
use crate::job::OfiCore;
use crate::signs::GONE;
use crate::sockets::Sockets;
use crate::wire::OfiMessageKind;
use std::time::Instant;

/// Action to take for a silent peer.
enum Step {
    Ask,
    Lose(&'static str),
}

impl OfiState {
    /// Checks all peers if it is time for the next check. A waiting process calls this function when nothing has come for a
    /// while.
    #[cold]
    pub fn look_at_peers(&mut self, core: &OfiCore) {
        let now = Instant::now();
        if core.times.keepalive.is_zero() || now < self.next_look || self.trouble.fault().is_some()
        {
            return;
        }
        self.next_look = now + core.times.keepalive;
        let mut steps = Vec::new();
        let mut sockets = None;
        for (rank, peer) in self.peers.iter_mut().filter(|(_, peer)| !peer.left && !peer.lost) {
            for (i, over) in peer.over.iter_mut().enumerate() {
                let link = || {
                    let sockets = sockets.get_or_insert_with(|| Sockets::own(core));
                    sockets.to(core, i + 1, rank)
                };
                if over.is_stuck(link) {
                    steps.push((rank, Step::Lose("a rail has failed without a word of it")));
                }
            }
            let signs = &mut peer.signs;
            if std::mem::take(&mut signs.heard) {
                (signs.asked, signs.gone, signs.since) = (false, 0, now);
                signs.ever = true;
            } else if !std::mem::replace(&mut signs.asked, true) {
                steps.push((rank, Step::Ask));
            } else {
                let sockets = sockets.get_or_insert_with(|| Sockets::own(core));
                let late = now.duration_since(signs.since) > core.times.patience;
                match sockets.to(core, 0, rank) {
                    ConnectionState::Unknown | ConnectionState::There => signs.gone = 0,
                    ConnectionState::BeingMade if !late => {}
                    ConnectionState::BeingMade => steps
                        .push((rank, Step::Lose("it does not answer requests for a connection"))),
                    ConnectionState::Gone => {
                        signs.gone += 1;
                        if signs.gone >= GONE {
                            steps.push((rank, Step::Lose(signs.why_gone())));
                        }
                    }
                }
            }
        }
        for (rank, step) in steps {
            match step {
                Step::Ask => self.tell(core, rank, OfiMessageKind::Ask, [0; 3]),
                Step::Lose(what) => self.lose(core, rank, "a sign of life", what),
            }
        }
    }
}
