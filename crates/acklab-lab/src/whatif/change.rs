//! What can be changed, as `--set` has it.

use std::fmt;
use std::str::FromStr;

use acklab_core::options::Word;
use acklab_core::time::Span;
use acklab_tcp::System;

/// One change of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// TCP_NODELAY at the sender.
    NoDelay(bool),
    /// The sender's program writes each message in one piece.
    SingleWrite(bool),
    /// The receiver acknowledges as another system.
    Profile(System),
    /// The receiver acknowledges each segment at once.
    QuickAck(bool),
    /// Another round trip.
    Rtt(Span),
}

impl Change {
    /// What is tried where nothing is asked for; of those that save alike the first is the least trouble.
    pub const USUAL: [Self; 3] =
        [Self::NoDelay(true), Self::SingleWrite(true), Self::QuickAck(true)];

    /// What can be set, for a message.
    pub const NAMES: &str = "sender.nodelay=true, sender.single_write=true, receiver.quickack=true, \
                             receiver.profile=NAME, path.rtt=TIME";
}

impl Change {
    /// What to do and on which host, in words.
    pub fn words(self, sender: &str, receiver: &str) -> String {
        match self {
            Self::NoDelay(on) => {
                format!("TCP_NODELAY {} on {sender}", if on { "set" } else { "not set" })
            }
            Self::SingleWrite(_) => format!("each message of {sender} written in one piece"),
            Self::Profile(system) => format!("ACKs of {receiver} as {system} sends them"),
            Self::QuickAck(_) => format!("ACKs of {receiver} at once (quickack)"),
            Self::Rtt(rtt) => format!("a round trip of {rtt}"),
        }
    }
}

impl FromStr for Change {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((name, value)) = text.split_once('=') else {
            return Err(format!("{text:?} has no =; there are {}", Self::NAMES));
        };
        let flag = || match value {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(format!("{text}: must be true or false")),
        };
        match name {
            "sender.nodelay" => flag().map(Self::NoDelay),
            "sender.single_write" => flag().map(Self::SingleWrite),
            "receiver.quickack" => flag().map(Self::QuickAck),
            "receiver.profile" => value
                .parse()
                .map(Self::Profile)
                .map_err(|_| format!("{text}: must be one of {}", System::NAMES.join(", "))),
            "path.rtt" => match value.parse::<Span>() {
                Ok(rtt) if rtt <= LONGEST_RTT => Ok(Self::Rtt(rtt)),
                Ok(_) => Err(format!("{text}: must be at most {LONGEST_RTT}")),
                Err(error) => Err(format!("{text}: {error}")),
            },
            _ => Err(format!("there is no {name:?}; there are {}", Self::NAMES)),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDelay(on) => write!(f, "sender.nodelay={on}"),
            Self::SingleWrite(on) => write!(f, "sender.single_write={on}"),
            Self::Profile(system) => write!(f, "receiver.profile={system}"),
            Self::QuickAck(on) => write!(f, "receiver.quickack={on}"),
            Self::Rtt(rtt) => write!(f, "path.rtt={rtt}"),
        }
    }
}

/// No path takes longer.
const LONGEST_RTT: Span = Span::from_secs(60);
