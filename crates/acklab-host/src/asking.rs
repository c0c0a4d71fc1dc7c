//! How the ends of a simulated connection ask each other for ACKs (draft-ietf-tcpm-ack-rate-request, RFC 5690), which Linux
//! does not know. The rules of what is asked are acklab-tcp's [`Requests`]; [`crate::asked`] asks them.

use acklab_core::segment::AckRequest;
use acklab_tcp::{AckRequests, Requests};

use crate::segment::TcpOption;

/// The requests of one connection.
#[derive(Clone, Debug)]
pub struct Asking {
    /// In whose words.
    pub(crate) by: AckRequests,
    /// What is asked of the peer, where both ends know the words.
    pub(crate) ours: Option<Requests>,
    /// Segments per ACK that the peer asked for.
    pub(crate) theirs: Option<u8>,
}

impl Asking {
    /// For a connection that has not begun; `None`: nothing is asked.
    pub fn new(by: AckRequests) -> Option<Self> {
        (by != AckRequests::Off).then_some(Self { by, ours: None, theirs: None })
    }

    /// Whether the peer asked for anything.
    pub(crate) const fn is_asked(&self) -> bool {
        self.theirs.is_some()
    }

    /// What both ends agreed on.
    pub const fn agreed(&self) -> AckRequests {
        if self.ours.is_some() { self.by } else { AckRequests::Off }
    }
}

/// The option of a request, padded.
pub(crate) fn add_request(options: &mut Vec<TcpOption>, request: AckRequest) {
    let (kind, id, value) = request.option();
    let padding = if value.is_some() { 3 } else { 0 };
    options.extend((0..padding).map(|_| TcpOption::Nop));
    options.push(TcpOption::Other(kind, id.into_iter().chain(value).collect()));
}

/// Bytes of a request's option, padded ([`AckRequest::wire_len`]).
pub(crate) const REQUEST: u32 = 8;
