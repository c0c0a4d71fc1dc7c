//! By which option a sender tells its peer how often to acknowledge, and what of it is announced on SYNs.

use crate::config::Config;
use acklab_core::options::Conflict;
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
    /// Refuses what does not go together: requests, and a policy that does not honour them.
    pub fn check(config: &Config) -> Result<(), Conflict> {
        if config.ack_requests == Self::Off || config.ack.honours_requests() {
            return Ok(());
        }
        let own = config.ack.name();
        let reason = format!(
            "goes with ack = linux, delayed, tick or ack-frequency; {own} decides by itself"
        );
        Err(Conflict { name: "ack_requests", reason })
    }

    /// What a SYN says of it.
    pub(super) const fn announcement(self) -> Option<AckRequest> {
        match self {
            Self::Off => None,
            Self::Tarr => Some(AckRequest::TarrCapable),
            Self::AckCc => Some(AckRequest::AckCcPermitted),
        }
    }

    /// The request for an ACK each `segments` full segments.
    pub(super) const fn request(self, segments: u8) -> Option<AckRequest> {
        match self {
            Self::Off => None,
            Self::Tarr => Some(AckRequest::Tarr(segments)),
            Self::AckCc => Some(AckRequest::AckCc(segments)),
        }
    }
}
