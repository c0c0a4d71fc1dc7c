//! By which option a sender tells its peer how often to acknowledge, and what of it is announced on SYNs.

use acklab_core::segment::AckRequest;

acklab_core::words! {
    /// How a sender asks its peer for ACKs, and in whose words its peer may ask it.
    pub enum AckRequests {
        /// Not at all.
        Off = "off",
        /// TCP ACK Rate Request: eight ACKs in a congestion window (draft-ietf-tcpm-ack-rate-request).
        Tarr = "tarr",
        /// ACK congestion control: rarer while ACKs are lost (RFC 5690).
        AckCc = "ackcc",
    }
}

impl AckRequests {
    /// What a SYN says of it.
    pub const fn announcement(self) -> Option<AckRequest> {
        match self {
            Self::Off => None,
            Self::Tarr => Some(AckRequest::TarrCapable),
            Self::AckCc => Some(AckRequest::AckCcPermitted),
        }
    }

    /// The request for an ACK each `segments` full segments.
    pub const fn request(self, segments: u8) -> Option<AckRequest> {
        match self {
            Self::Off => None,
            Self::Tarr => Some(AckRequest::Tarr(segments)),
            Self::AckCc => Some(AckRequest::AckCc(segments)),
        }
    }
}
