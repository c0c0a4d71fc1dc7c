//! What can be set: every point that the thesis leaves open has a name, a default and a reason here.

use acklab_lab::parameter::{Kind, Parameter, SetError, Settings};

/// The parameters of `acklab reproduce xudp`.
pub const PARAMETERS: &[Parameter] = &[
    span(
        "ack_timer",
        "100ms",
        "told (8.1): how long acknowledgments are held back in the run with the timer",
    ),
    choice(
        "timer",
        &["armed", "tick"],
        "open: whether the timer starts with the first acknowledgment that waits, or runs freely",
    ),
    count(
        "packet",
        "512",
        64,
        1400,
        "told (5): bytes of a parcel in a packet; open: whether headers are among them",
    ),
    count("parcel", "10240", 1, 32_768, "told (8.1): bytes of a parcel of the stream"),
    count("parcels", "103", 1, 10_000, "told as 1 MB (8.1): parcels of the stream"),
    span("cut", "54.215s", "told (8.1): when a run is cut off, as the thesis's first was"),
    span(
        "host",
        "950us",
        "open, fitted to 206.5 KB/s and 16.9 ms: time to send or to receive a packet; section 8.6 calls the \
         server's unoptimised architecture the bottleneck",
    ),
    span(
        "loaded_host",
        "2640us",
        "open, fitted to 76.6 KB/s: the same while a program loads the network (8.7), if that ran on the same \
         computers",
    ),
    choice(
        "order",
        &["send-first", "read-first"],
        "open: whether a server sends what may leave before it reads what has arrived, or after",
    ),
    count(
        "exchange",
        "6",
        1,
        16,
        "open, fitted to 9.52 KB/s: commands about a complete parcel that pass to and fro, each held by the \
         timer of its server, before the next parcel begins; section 8.8 speaks of acknowledgments of command \
         parcels, figure 8.3 of long times with one packet in the network",
    ),
    count(
        "parcels_ahead",
        "1",
        1,
        64,
        "open: parcels that may be unfinished at once; one fits four of the tables, see docs/xudp.md",
    ),
    choice(
        "obsolete",
        &["waiting", "begun"],
        "open: which parcels are given up when their time runs out: those that wait, or also one that is on its \
         way; in table 8.9 the bytes acknowledged are hardly more than those of the parcels received",
    ),
    choice(
        "restart",
        &["yes", "no"],
        "open: whether, on the first day, the window starts again at window_initial when nothing is out and \
         nothing waits; figure 8.3 shows bursts that begin at one packet",
    ),
    count("window_initial", "1", 1, 64, "told (8.1): slow start; open: from where"),
    count("window_most", "64", 1, 1024, "open: the largest window on the first day, packets"),
    count(
        "tweaked_window",
        "11",
        1,
        1024,
        "open, fitted to 10.7 packets: the largest window after the congestion control was tweaked (8.2); it \
         then no longer starts again",
    ),
    span(
        "rto_initial",
        "3s",
        "open: time-out before the first round trip; RFC 1122 section 4.2.3.1",
    ),
    span("rto_least", "500ms", "open: least time-out; one tick of BSD's slow timer"),
    Parameter {
        name: "rto_deviations",
        default: "4",
        kind: Kind::Number { min: 0.0, max: 100.0, unit: "" },
        doc: "open: mean deviations in the time-out; Jacobson 1988 as revised",
    },
    choice("karn", &["yes", "no"], "open: whether round trips of packets sent twice are left out"),
    count(
        "buffer",
        "80",
        1,
        10_000,
        "open: packets of 512 B that the socket holds; BSD's 41,600 B",
    ),
    span("delay", "10us", "open: propagation each way; 10base-2 is at most 185 m a segment"),
    Parameter {
        name: "loss",
        default: "0",
        kind: Kind::Number { min: 0.0, max: 0.9, unit: "" },
        doc: "open: independent loss of packets each way",
    },
];

const fn span(name: &'static str, default: &'static str, doc: &'static str) -> Parameter {
    Parameter { name, default, kind: Kind::Span, doc }
}

const fn count(
    name: &'static str,
    default: &'static str,
    min: u64,
    max: u64,
    doc: &'static str,
) -> Parameter {
    Parameter { name, default, kind: Kind::Count { min, max }, doc }
}

const fn choice(
    name: &'static str,
    words: &'static [&'static str],
    doc: &'static str,
) -> Parameter {
    Parameter { name, default: words[0], kind: Kind::Choice(words), doc }
}

/// A setting that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// No parameter of that name.
    #[error(
        "there is no parameter {name:?}; {hint}`acklab reproduce xudp --parameters` lists them all"
    )]
    UnknownName {
        /// What was given.
        name: String,
        /// The nearest name as a question, or empty.
        hint: String,
    },
    /// Not `name=value`, or a value that does not fit.
    #[error(transparent)]
    Unfit(SetError),
}

impl From<SetError> for ParameterError {
    fn from(error: SetError) -> Self {
        match error {
            SetError::UnknownName { name, hint, .. } => Self::UnknownName { name, hint },
            other => Self::Unfit(other),
        }
    }
}

/// The defaults with these `name=value` on top.
pub fn settings<'a>(pairs: impl IntoIterator<Item = &'a str>) -> Result<Settings, ParameterError> {
    let mut settings = Settings::defaults("xudp", PARAMETERS);
    for pair in pairs {
        settings.set_pair(pair)?;
    }
    Ok(settings)
}
