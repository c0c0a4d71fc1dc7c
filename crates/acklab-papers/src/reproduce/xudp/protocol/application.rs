//! What hands parcels to a server: the thesis's two programs.
//!
//! One sends a stream of equal RELIABLE parcels as fast as the server takes them (section 8.1), the other
//! a burst of frames at the start of each second, the first of them RELIABLE and the others with a time
//! to obsolescence (section 8.5). Of 291 parcels at ten in a second the thesis received the last after
//! 29.68 s; so we take one at 0 s, then full bursts at 1 s to 29 s.

use acklab_core::time::{Span, Time};

use super::packet::{Kind, Parcel};

/// A program.
#[derive(Clone, Debug)]
pub enum Application {
    /// Only receives.
    Silent,
    /// Equal RELIABLE parcels, one after the other.
    Stream {
        /// Bytes of each.
        bytes: u32,
        parcels: u64,
    },
    /// Bursts.
    Frames {
        /// Bytes of each parcel.
        bytes: u32,
        /// Parcels in each second but the first, which has one.
        per_second: u64,
        /// How many in all.
        parcels: u64,
        /// Time to obsolescence of all but the first of each second.
        life: Span,
    },
}

impl Application {
    /// Parcel number `id` and when it is there; `None` after the last.
    pub fn parcel(&self, id: u64) -> Option<(Time, Parcel)> {
        match *self {
            Self::Stream { bytes, parcels } if id < parcels => {
                Some((Time::ZERO, Parcel { id, bytes, kind: Kind::Reliable }))
            }
            Self::Frames { bytes, per_second, parcels, life } if id < parcels => {
                let second = id.div_ceil(per_second);
                let first = id == 0 || id - 1 == (second - 1) * per_second;
                let kind = if first { Kind::Reliable } else { Kind::Expiring(life) };
                let at = Time::ZERO + Span::from_secs(second);
                Some((at, Parcel { id, bytes, kind }))
            }
            _ => None,
        }
    }

    /// Whether the program waits for the server to take a parcel before it makes the next.
    pub fn waits(&self) -> bool {
        matches!(self, Self::Stream { .. })
    }
}
