//! The words a reader may never have heard, two sentences each.
//!
//! Definitions follow RFC 896 and RFC 1122 section 4.2.3.4 (Nagle), RFC 1122 section 4.2.3.2
//! (delayed ACK) and RFC 9293 (the rest).

use serde::Serialize;

#[derive(Clone, Copy, Debug, Serialize)]
pub struct Term {
    /// How a page asks for it.
    pub key: &'static str,
    /// The question a reader would ask.
    pub question: &'static str,
    /// The answer, about two sentences.
    pub answer: &'static str,
}

/// The entries with these keys, in the order asked for.
///
/// Unknown keys are left out.
pub fn terms(keys: &[&str]) -> Vec<Term> {
    keys.iter().filter_map(|key| TERMS.iter().find(|term| term.key == *key).copied()).collect()
}

const TERMS: &[Term] = &[
    Term {
        key: "nagle",
        question: "What is Nagle’s algorithm?",
        answer: "A rule in the sending computer’s TCP: while data it has sent is still \
                 unacknowledged, it keeps back a new small message instead of sending it at once. \
                 It saves packets on slow links and is on by default; an application switches it \
                 off with the socket option TCP_NODELAY.",
    },
    Term {
        key: "delayed-ack",
        question: "What is a delayed ACK?",
        answer: "The receiving computer confirms data with an acknowledgment (ACK), and waits a \
                 little before sending it in the hope of confirming several packets at once or of \
                 sending it along with a reply. The wait is typically 40 ms on Linux, and 40, 100 \
                 or 200 ms on other systems.",
    },
    Term {
        key: "interaction",
        question: "Why is the combination slow?",
        answer: "The sender waits for the ACK before it sends the next small message, and the \
                 receiver waits for the next message before it sends the ACK. Neither moves until \
                 the receiver’s timer runs out, so messages are late although the network is idle.",
    },
    Term {
        key: "hold",
        question: "What is a hold?",
        answer: "A message that was written but left the sender only because an ACK for earlier \
                 data arrived, or because enough data had gathered to fill a packet. The time in \
                 between is the added delay; it does not show up in a ping.",
    },
    Term {
        key: "rtt",
        question: "What is the round-trip time (RTT)?",
        answer: "The time from sending a packet to hearing its echo: twice the way through the \
                 network, without any waiting in the hosts.",
    },
    Term {
        key: "mss",
        question: "What is the MSS?",
        answer: "The maximum segment size: the most data that fits one packet of this connection, \
                 usually about 1460 bytes. Nagle’s algorithm never keeps back a full segment.",
    },
    Term {
        key: "jain",
        question: "What is Jain’s index?",
        answer: "A number for how evenly flows share: 1 when all have the same throughput, 1/n when one of \
                 n has everything. It does not say which flow is worse off; the table of flows does.",
    },
    Term {
        key: "cdf",
        question: "How do I read a cumulative distribution (CDF)?",
        answer: "Go up from a delay on the horizontal axis to the line: its height is the share of \
                 messages that were at most that late. A line that hugs the left edge is good; a \
                 line that rises slowly means that delays are spread out.",
    },
    Term {
        key: "time-sequence",
        question: "How do I read a time-sequence plot?",
        answer: "Time runs to the right, and the position in the byte stream upwards; each upright \
                 bar is one packet of data, and the stepped line below is what the receiver has \
                 acknowledged. A horizontal bar that ends in a packet is the time for which that \
                 packet’s data waited in the sender.",
    },
    Term {
        key: "quantile",
        question: "What are p50 and p95?",
        answer: "Half of all values lie at or below p50 (the median), and 95 % lie at or below p95. \
                 They are computed by linear interpolation between the two nearest values.",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_come_in_the_order_asked_for_and_unknown_keys_are_skipped() {
        let found: Vec<&str> = terms(&["mss", "no such", "nagle"]).iter().map(|t| t.key).collect();
        assert_eq!(found, ["mss", "nagle"]);
    }

    #[test]
    fn keys_are_unique() {
        for (index, term) in TERMS.iter().enumerate() {
            assert!(TERMS[index + 1..].iter().all(|other| other.key != term.key), "{}", term.key);
        }
    }
}
