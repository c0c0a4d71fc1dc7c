//! Where on the path the capture was made.
//!
//! Evidence: the time to each end and back (at an end it is only that host's own processing), and
//! the time to live (64, 128 or 255 as sent; less by one for each router passed).

use std::net::IpAddr;

use acklab_core::time::Span;

use super::facts::{CapturePoint, Vantage};

/// What one end of a connection shows of the capture point.
#[derive(Clone, Copy)]
pub(super) struct End {
    pub(super) addr: IpAddr,
    /// The least time to it and back.
    pub(super) half: Option<Span>,
    /// Time to live of its packets.
    pub(super) ttl: Option<u8>,
}

/// Locates the capture point as the direction from end 0 to end 1 sees it.
pub(super) fn locate(ends: [End; 2]) -> Vantage {
    let (point, confidence) = weigh(ends);
    Vantage { point, confidence }
}

fn weigh(ends: [End; 2]) -> (CapturePoint, f64) {
    let (addrs, halves) = (ends.map(|end| end.addr), ends.map(|end| end.half));
    if addrs[0] == addrs[1] || addrs.iter().all(|a| a.to_canonical().is_loopback()) {
        return (CapturePoint::Loopback, 1.0);
    }
    let hops = ends.map(|end| end.ttl.and_then(hops));
    let point = |end: usize| [CapturePoint::Sender, CapturePoint::Receiver][end];
    let ttl_says = match hops {
        [Some(0), Some(1..)] => Some(0),
        [Some(1..), Some(0)] => Some(1),
        _ => None,
    };
    if let [Some(near), Some(far)] = halves {
        let end = usize::from(far < near);
        let (near, far) = (near.min(far), near.max(far));
        let told_apart = near * HALVES_RATIO <= far;
        let on_host = hops[end] == Some(0) || hops[end].is_none();
        return match (told_apart, ttl_says) {
            (true, Some(by_ttl)) if by_ttl == end => (point(end), 0.98),
            (true, Some(by_ttl)) => (point(by_ttl), 0.6),
            (true, None) if on_host && near < NEAR_MAX => (point(end), 0.9),
            (false, Some(by_ttl)) => (point(by_ttl), 0.8),
            _ if hops.iter().all(|h| h.is_some_and(|h| h > 0)) => (CapturePoint::Between, 0.8),
            _ if near > NEAR_MAX => (CapturePoint::Between, 0.6),
            _ => (CapturePoint::Unknown, 0.0),
        };
    }
    match ttl_says {
        Some(end) => (point(end), 0.7),
        None => (CapturePoint::Unknown, 0.0),
    }
}

impl Vantage {
    /// The same as the opposite direction sees it.
    pub(super) fn reversed(self) -> Self {
        let point = match self.point {
            CapturePoint::Sender => CapturePoint::Receiver,
            CapturePoint::Receiver => CapturePoint::Sender,
            other => other,
        };
        Self { point, ..self }
    }
}

/// Routers passed, by the next of the usual initial values; `None` where that is too many, as of
/// embedded stacks that begin at 30 or 32.
fn hops(ttl: u8) -> Option<u8> {
    let initial = match ttl {
        0..=64 => 64,
        65..=128 => 128,
        129.. => 255,
    };
    Some(initial - ttl).filter(|&hops| hops <= HOPS_MAX)
}

/// A half this many times longer than the other is a path, the other a host.
const HALVES_RATIO: u64 = 4;
/// Longer paths are hardly found.
const HOPS_MAX: u8 = 30;
/// Longer than a host needs to answer by itself.
const NEAR_MAX: Span = Span::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_near_end_is_found_by_time_and_by_hops() {
        let addrs = [IpAddr::from([192, 0, 2, 1]), IpAddr::from([198, 51, 100, 1])];
        let (short, long) = (Some(Span::from_micros(40)), Some(Span::from_millis(30)));
        let check = |halves: [_; 2], ttls: [_; 2], expect: CapturePoint| {
            let end = |i: usize| End { addr: addrs[i], half: halves[i], ttl: ttls[i] };
            assert_eq!(locate([end(0), end(1)]).point, expect, "{halves:?} {ttls:?}");
        };
        check([short, long], [Some(64), Some(52)], CapturePoint::Sender);
        check([long, short], [Some(52), Some(64)], CapturePoint::Receiver);
        check([short, long], [Some(64), Some(64)], CapturePoint::Sender);
        check([short, long], [Some(64), Some(30)], CapturePoint::Sender);
        check([None, None], [Some(128), Some(52)], CapturePoint::Sender);
        check([long, long], [Some(60), Some(120)], CapturePoint::Between);
        check([short, short], [Some(64), Some(64)], CapturePoint::Unknown);
    }
}
