//! Scripts as values.

mod cursor;
mod packet;
mod parse;
mod value;

pub use parse::{parse, parse_with};
pub use value::Value;

use acklab_host::segment::TcpOption;

/// Why a text is no script, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Line, from 1.
    pub line: usize,
    /// What was expected or is not understood.
    pub message: String,
}

/// A script.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    /// `--name=value` at the head.
    pub options: Vec<(String, String)>,
    /// Shell commands before the first event, with their lines.
    pub setup: Vec<(usize, String)>,
    /// Events.
    pub events: Vec<Event>,
}

/// When an event happens, microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Whenever it does.
    Any,
    /// At this time, or between two.
    At {
        /// Counted from the event before.
        relative: bool,
        /// Earliest.
        from: u64,
        /// Latest of a range.
        to: Option<u64>,
    },
}

/// An event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Line, from 1.
    pub line: usize,
    /// When.
    pub when: When,
    /// A blocking call ends at.
    pub until: Option<u64>,
    /// What.
    pub kind: Kind,
}

/// What happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A packet to send to the host, or expected of it.
    Packet(Packet),
    /// A socket call.
    Call(Call),
    /// A shell command.
    Command(String),
    /// Code with assertions.
    Code(String),
}

/// A packet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Packet {
    /// Sent to the host.
    pub inbound: bool,
    /// The sender's port and the receiver's, where the script names them.
    pub ports: Option<(u16, u16)>,
    /// The ECN field: the values that are meant; `None`: any.
    pub ecn: Option<Vec<u8>>,
    /// Traffic class.
    pub tos: Option<u8>,
    /// Flow label.
    pub flow_label: Option<u32>,
    /// Time to live, or hop limit.
    pub ttl: Option<u8>,
    /// TCP flags.
    pub flags: u16,
    /// First sequence number, last, bytes of payload.
    pub range: (u32, u32, u32),
    /// Acknowledgment number.
    pub ack: Option<u32>,
    /// Window; `None`: any.
    pub window: Option<u16>,
    /// Urgent pointer.
    pub urgent: Option<u16>,
    /// Options.
    pub options: Options,
    /// ICMP in place of TCP.
    pub icmp: Option<Icmp>,
    /// UDP in place of TCP, as long as the range says.
    pub is_datagram: bool,
}

/// Options of a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Options {
    /// Those listed, in order.
    #[default]
    None,
    /// Those listed, in order.
    List(Vec<TcpOption>),
    /// Any.
    Any,
}

/// A message of ICMP about a segment of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Icmp {
    /// Its type.
    pub kind: String,
    /// Its code.
    pub code: String,
    /// MTU.
    pub mtu: Option<u32>,
    /// The segment that it quotes: its first sequence number.
    pub seq: Option<u32>,
    /// It quotes a datagram.
    pub of_datagram: bool,
}

/// A call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Its name.
    pub name: String,
    /// Arguments.
    pub args: Vec<Value>,
    /// Expected result.
    pub result: Value,
    /// Expected error.
    pub error: Option<String>,
}
