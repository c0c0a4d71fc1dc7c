//! What can be set: every point that the thesis leaves open has a name, a default and a reason here.

use acklab_core::time::Span;
use acklab_lab::parameter::{Parameter, SetError, Settings};

acklab_core::options! {
    /// The parameters of `acklab reproduce xudp`.
    pub struct Set {
        /// told (8.1): how long acknowledgments are held back in the run with the timer
        ack_timer: Span = "100ms",
        /// open: whether the timer starts with the first acknowledgment that waits, or runs freely
        timer: Timer = "armed",
        /// told (5): bytes of a parcel in a packet; open: whether headers are among them
        packet: u32 as count(64, 1400) = "512",
        /// told (8.1): bytes of a parcel of the stream
        parcel: u32 as count(1, 32_768) = "10240",
        /// told as 1 MB (8.1): parcels of the stream
        parcels: u64 as count(1, 10_000) = "103",
        /// told (8.1): when a run is cut off, as the thesis's first was
        cut: Span = "54.215s",
        /// open, fitted to 206.5 KB/s and 16.9 ms: time to send or to receive a packet; section 8.6
        /// calls the server's unoptimised architecture the bottleneck
        host: Span = "950us",
        /// open, fitted to 76.6 KB/s: the same while a program loads the network (8.7), if that ran
        /// on the same computers
        loaded_host: Span = "2640us",
        /// open: whether a server sends what may leave before it reads what has arrived, or after
        order: Order = "send-first",
        /// open, fitted to 9.52 KB/s: commands about a complete parcel that pass to and fro, each
        /// held by the timer of its server, before the next parcel begins; section 8.8 speaks of
        /// acknowledgments of command parcels, figure 8.3 of long times with one packet in the
        /// network
        exchange: u32 as count(1, 16) = "6",
        /// open: parcels that may be unfinished at once; one fits four of the tables, see
        /// docs/xudp.md
        parcels_ahead: u64 as count(1, 64) = "1",
        /// open: which parcels are given up when their time runs out: those that wait, or also one
        /// that is on its way; in table 8.9 the bytes acknowledged are hardly more than those of
        /// the parcels received
        obsolete: Obsolete = "waiting",
        /// open: whether, on the first day, the window starts again at window_initial when nothing
        /// is out and nothing waits; figure 8.3 shows bursts that begin at one packet
        restart: YesNo = "yes",
        /// told (8.1): slow start; open: from where
        window_initial: u64 as count(1, 64) = "1",
        /// open: the largest window on the first day, packets
        window_most: u64 as count(1, 1024) = "64",
        /// open, fitted to 10.7 packets: the largest window after the congestion control was
        /// tweaked (8.2); it then no longer starts again
        tweaked_window: u64 as count(1, 1024) = "11",
        /// open: time-out before the first round trip; RFC 1122 section 4.2.3.1
        rto_initial: Span = "3s",
        /// open: least time-out; one tick of BSD's slow timer
        rto_least: Span = "500ms",
        /// open: mean deviations in the time-out; Jacobson 1988 as revised
        rto_deviations: f64 as number(0.0, 100.0, "") = "4",
        /// open: whether round trips of packets sent twice are left out
        karn: YesNo = "yes",
        /// open: packets of 512 B that the socket holds; BSD's 41,600 B
        buffer: u32 as count(1, 10_000) = "80",
        /// open: propagation each way; 10base-2 is at most 185 m a segment
        delay: Span = "10us",
        /// open: independent loss of packets each way
        loss: f64 as number(0.0, 0.9, "") = "0",
    }
}

acklab_core::words! {
    /// When the timer starts.
    pub enum Timer {
        /// With the first acknowledgment that waits.
        Armed = "armed",
        /// It runs freely.
        Tick = "tick",
    }
}

acklab_core::words! {
    /// What a server does first.
    pub enum Order {
        /// It sends what may leave.
        SendFirst = "send-first",
        /// It reads what has arrived.
        ReadFirst = "read-first",
    }
}

acklab_core::words! {
    /// Which parcels are given up when their time runs out.
    pub enum Obsolete {
        /// Those that wait.
        Waiting = "waiting",
        /// Also one that is on its way.
        Begun = "begun",
    }
}

acklab_core::words! {
    /// Yes or no.
    pub enum YesNo {
        /// Yes.
        Yes = "yes",
        /// No.
        No = "no",
    }
}

/// All of them.
pub const PARAMETERS: &[Parameter] = Set::PARAMETERS;

/// A setting that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    #[error(
        "there is no parameter {name:?}; {hint}`acklab reproduce xudp --parameters` lists them all"
    )]
    UnknownName {
        name: String,
        /// The nearest name as a question, or empty.
        hint: String,
    },
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
