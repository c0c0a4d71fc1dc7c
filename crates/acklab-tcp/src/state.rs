//! The states of a connection (RFC 9293 section 3.3.2) as ONE transition table.
//!
//! Every change of state in the connection goes through [`State::next`], which looks the pair
//! (state, cause) up in [`TRANSITIONS`]; a pair that is not in the table is a bug, not an input, for
//! the segment checks of RFC 9293 section 3.10 come before. The drawing in `docs/tcp-states.md` is
//! generated from the same table, and a test holds it current.
//!
//! RFC 9293 moves SYN-RECEIVED to FIN-WAIT-1 on a close; we note the close and make that move once the
//! connection is established, because its section 3.10.4 queues the FIN until then in any case where
//! data waits, and one path is enough. Left out too: the three-way simultaneous FIN+ACK arcs of figure 5 that combine two causes. A segment
//! that carries both an ACK of our FIN and the peer's FIN causes two transitions in that order.

use std::fmt;

/// A connection's state (RFC 9293 section 3.3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// No connection.
    #[default]
    Closed,
    /// Waiting for a SYN from anyone.
    Listen,
    /// Our SYN is out.
    SynSent,
    /// SYNs crossed or a SYN was answered; our SYN is not acknowledged yet.
    SynReceived,
    /// Open in both directions.
    Established,
    /// We closed; our FIN is not acknowledged.
    FinWait1,
    /// Our FIN is acknowledged; the peer may still send.
    FinWait2,
    /// The peer closed; we may still send.
    CloseWait,
    /// Both closed; our FIN is not acknowledged.
    Closing,
    /// The peer closed first, then we; our FIN is not acknowledged.
    LastAck,
    /// Both FINs are acknowledged; old segments may still be about.
    TimeWait,
}

/// What moves a connection from one state to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The application opens towards a peer.
    ActiveOpen,
    /// The application waits for a peer.
    PassiveOpen,
    /// A SYN without an acceptable ACK arrived.
    Syn,
    /// A SYN that acknowledges ours arrived.
    SynAck,
    /// Our SYN was acknowledged.
    AckOfSyn,
    /// The application closed.
    Close,
    /// A FIN arrived in order.
    Fin,
    /// Our FIN was acknowledged.
    AckOfFin,
    /// 2 MSL passed.
    TimeWaitOver,
    /// An acceptable RST arrived, the application aborted, or retransmission was given up.
    Reset,
    /// An acceptable RST arrived on a connection opened passively before it was established.
    ResetOfPassiveOpen,
}

/// All transitions there are: from, cause, to.
pub const TRANSITIONS: &[(State, Cause, State)] = &[
    (State::Closed, Cause::ActiveOpen, State::SynSent),
    (State::Closed, Cause::PassiveOpen, State::Listen),
    (State::Listen, Cause::Syn, State::SynReceived),
    (State::Listen, Cause::Close, State::Closed),
    (State::Listen, Cause::Reset, State::Closed),
    (State::SynSent, Cause::Syn, State::SynReceived),
    (State::SynSent, Cause::SynAck, State::Established),
    (State::SynSent, Cause::Close, State::Closed),
    (State::SynSent, Cause::Reset, State::Closed),
    (State::SynReceived, Cause::AckOfSyn, State::Established),
    (State::SynReceived, Cause::Reset, State::Closed),
    (State::SynReceived, Cause::ResetOfPassiveOpen, State::Listen),
    (State::Established, Cause::Close, State::FinWait1),
    (State::Established, Cause::Fin, State::CloseWait),
    (State::Established, Cause::Reset, State::Closed),
    (State::FinWait1, Cause::AckOfFin, State::FinWait2),
    (State::FinWait1, Cause::Fin, State::Closing),
    (State::FinWait1, Cause::Reset, State::Closed),
    (State::FinWait2, Cause::Fin, State::TimeWait),
    (State::FinWait2, Cause::Reset, State::Closed),
    (State::CloseWait, Cause::Close, State::LastAck),
    (State::CloseWait, Cause::Reset, State::Closed),
    (State::Closing, Cause::AckOfFin, State::TimeWait),
    (State::Closing, Cause::Reset, State::Closed),
    (State::LastAck, Cause::AckOfFin, State::Closed),
    (State::LastAck, Cause::Reset, State::Closed),
    (State::TimeWait, Cause::TimeWaitOver, State::Closed),
    (State::TimeWait, Cause::Reset, State::Closed),
];

impl State {
    /// The state that `cause` leads to, `None` where the table has no such transition.
    pub fn next(self, cause: Cause) -> Option<Self> {
        TRANSITIONS.iter().find(|&&(from, by, _)| from == self && by == cause).map(|&(_, _, to)| to)
    }

    /// Whether the SYNs are exchanged: sequence numbers are synchronised (RFC 9293 section 3.5.2).
    pub const fn is_synchronised(self) -> bool {
        !matches!(self, Self::Closed | Self::Listen | Self::SynSent | Self::SynReceived)
    }

    /// Whether data of ours may still leave or be sent again.
    pub const fn may_send(self) -> bool {
        matches!(
            self,
            Self::Established | Self::CloseWait | Self::FinWait1 | Self::Closing | Self::LastAck
        )
    }

    /// Whether data of the peer's is still taken.
    pub const fn may_receive(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }

    /// Whether the application may still write.
    pub const fn may_write(self) -> bool {
        matches!(self, Self::SynSent | Self::SynReceived | Self::Established | Self::CloseWait)
    }
}

/// The names of RFC 9293: `SYN-SENT`, `FIN-WAIT-1`, and so on.
impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "CLOSED",
            Self::Listen => "LISTEN",
            Self::SynSent => "SYN-SENT",
            Self::SynReceived => "SYN-RECEIVED",
            Self::Established => "ESTABLISHED",
            Self::FinWait1 => "FIN-WAIT-1",
            Self::FinWait2 => "FIN-WAIT-2",
            Self::CloseWait => "CLOSE-WAIT",
            Self::Closing => "CLOSING",
            Self::LastAck => "LAST-ACK",
            Self::TimeWait => "TIME-WAIT",
        })
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ActiveOpen => "active open",
            Self::PassiveOpen => "passive open",
            Self::Syn => "SYN",
            Self::SynAck => "SYN and ACK of SYN",
            Self::AckOfSyn => "ACK of SYN",
            Self::Close => "close",
            Self::Fin => "FIN",
            Self::AckOfFin => "ACK of FIN",
            Self::TimeWaitOver => "2 MSL",
            Self::Reset => "RST, abort or timeout",
            Self::ResetOfPassiveOpen => "RST after passive open",
        })
    }
}

/// The table as a Mermaid state diagram.
pub fn diagram() -> String {
    use fmt::Write as _;
    let mut text = String::from("stateDiagram-v2\n");
    let id = |state: State| state.to_string().replace('-', "_");
    for (from, cause, to) in TRANSITIONS {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "    {} --> {} : {cause}", id(*from), id(*to));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_pair_of_state_and_cause_stands_twice_in_the_table() {
        for (i, (from, cause, _)) in TRANSITIONS.iter().enumerate() {
            assert!(
                !TRANSITIONS[..i].iter().any(|(f, c, _)| f == from && c == cause),
                "{from} on {cause}"
            );
        }
    }

    #[test]
    fn every_state_but_closed_can_be_reset() {
        for (from, _, _) in TRANSITIONS {
            if *from != State::Closed {
                assert_eq!(from.next(Cause::Reset), Some(State::Closed), "{from}");
            }
        }
    }

    #[test]
    fn every_state_is_reached_from_closed() {
        let mut reached = vec![State::Closed];
        while let Some(&(_, _, to)) =
            TRANSITIONS.iter().find(|(from, _, to)| reached.contains(from) && !reached.contains(to))
        {
            reached.push(to);
        }
        assert_eq!(reached.len(), 11);
    }

    #[test]
    fn the_checked_in_diagram_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tcp-states.md");
        let page = format!(
            "# States of a TCP connection\n\nGenerated from the transition table in \
             `crates/acklab-tcp/src/state.rs`\n(`ACKLAB_BLESS=1 cargo test -p acklab-tcp \
             diagram` writes it anew).\n\n```mermaid\n{}```\n",
            diagram()
        );
        if std::env::var_os("ACKLAB_BLESS").is_some() {
            std::fs::write(path, &page).unwrap();
        }
        let checked_in = std::fs::read_to_string(path).unwrap();
        assert!(checked_in == page, "run `ACKLAB_BLESS=1 cargo test -p acklab-tcp diagram`");
    }
}
