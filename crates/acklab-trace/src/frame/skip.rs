//! What the dissector passes over.

/// Why a frame gives no segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Skip {
    /// The link type is none that is understood.
    LinkType,
    /// ARP, 802.3/LLC, LLDP and the like.
    NotIp,
    /// UDP, ICMP and the like.
    NotTcp,
    /// An IP fragment after the first.
    Fragment,
    /// The capture does not hold the frame's headers.
    Snapped,
    /// The headers contradict themselves: a TCP or IP header length that cannot be.
    Malformed,
}
