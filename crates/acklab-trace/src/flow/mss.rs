//! The effective MSS of a direction: what counts as a full segment.
//!
//! By the handshake: the lesser of the two offers, less the timestamp option (RFC 9293 section
//! 3.7.1, RFC 6691). A path with a smaller MTU forces it down: a run of equal segments without PSH (or of
//! multiples of one, which the card joined), none longer seen, was cut to size by the sender and not by its
//! application. Where the capture misses the handshake, by the largest segment seen; a super-frame of segmentation offload is a
//! multiple of the real MSS.

/// An estimate of the effective MSS.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mss {
    agreed: Option<u32>,
    largest: u32,
    /// The largest that is no multiple of a shorter one, and segments in a row, without PSH, that are multiples of it.
    unit: u32,
    run: u32,
    effective: u32,
}

/// Nothing known: the default of RFC 9293.
impl Default for Mss {
    fn default() -> Self {
        Self { agreed: None, largest: 0, unit: 0, run: 0, effective: DEFAULT }
    }
}

impl Mss {
    /// The MSS, bytes; at least 1.
    #[inline]
    pub(super) fn bytes(self) -> u32 {
        self.effective
    }

    /// Takes the outcome of the handshake.
    pub(super) fn agree(&mut self, mss: u32) {
        self.agreed = Some(mss.max(1));
        self.estimate();
    }

    /// Takes the length of a new segment.
    #[inline]
    pub(super) fn on_segment(&mut self, len: u32, push: bool) {
        let joined = self.unit >= DEFAULT && len.is_multiple_of(self.unit);
        let longer = len > self.unit && !joined;
        if longer {
            (self.unit, self.run) = (len, 0);
        }
        if longer || (len > self.largest && self.agreed.is_none()) {
            self.largest = self.largest.max(len);
            self.estimate();
        }
        if len < self.unit || push {
            self.run = 0;
        } else if self.run < CUT_TO_SIZE {
            self.run += 1;
            if self.run == CUT_TO_SIZE {
                self.estimate();
            }
        }
    }

    fn estimate(&mut self) {
        let cut_to_size = self.run == CUT_TO_SIZE && self.unit >= DEFAULT;
        self.effective = match self.agreed {
            Some(agreed) if cut_to_size => agreed.min(self.unit),
            Some(agreed) => agreed,
            None => {
                let divides = |mss: &&u32| self.largest.is_multiple_of(**mss);
                ETHERNET.iter().find(divides).copied().unwrap_or(self.largest).max(DEFAULT)
            }
        };
    }
}

/// RFC 9293 section 3.7.1: without the option, 536 for IPv4.
pub(super) const DEFAULT: u32 = 536;
/// What fits 1500 bytes: IPv4 plain and with timestamps, IPv6 plain and with timestamps.
const ETHERNET: [u32; 4] = [1_460, 1_448, 1_440, 1_428];
/// So many equal segments in a row are no coincidence.
const CUT_TO_SIZE: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mss_follows_handshake_path_and_super_frames() {
        let check = |agreed: Option<u32>, lens: &[u32], push: bool, expect: u32| {
            let mut mss = Mss::default();
            if let Some(agreed) = agreed {
                mss.agree(agreed);
            }
            for &len in lens {
                mss.on_segment(len, push);
            }
            assert_eq!(mss.bytes(), expect, "{agreed:?} {lens:?} {push}");
        };
        check(Some(1_448), &[48, 96, 48], true, 1_448);
        check(Some(1_448), &[1_000; 20], true, 1_448);
        check(Some(1_448), &[1_348; 20], false, 1_348);
        check(Some(1_448), &[1_348; 7], false, 1_448);
        check(Some(1_448), &[28_960; 20], false, 1_448);
        let joined = [1_348, 2_696, 1_348, 6_740, 1_348, 2_696, 1_348, 1_348, 1_400];
        check(Some(1_448), &joined[..8], false, 1_348);
        check(Some(1_448), &joined, false, 1_448);
        check(None, &[48, 96], true, 536);
        check(None, &[1_448, 28_960], false, 1_448);
        check(None, &[8_948], false, 8_948);
    }
}
