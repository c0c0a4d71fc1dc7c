//! ACK congestion control for TCP (RFC 5690), which takes its rules from DCCP's CCID 2 (RFC 4341 sections 6.1.1 and 6.1.2):
//! the ACK Ratio R doubles after each window of data in which ACKs were lost, sinks by one after cwnd / (R^2 - R)
//! windows in a row without, is 2 at least and half the window at most.
//!
//! TCP's ACKs have no numbers, so that one which covers more than R segments tells that others before it were lost.
//! An ACK that was marked is not seen: pure ACKs are not ECN-capable (RFC 3168 section 6.1.4), which RFC 5690 would have
//! changed.

use super::rule::{Heard, Rule};

/// R and what the present window has shown.
#[derive(Debug)]
pub(super) struct AckCc {
    ratio: u8,
    /// An ACK was lost in this window.
    lost: bool,
    /// Windows in a row without.
    clean: u64,
}

impl Default for AckCc {
    fn default() -> Self {
        Self { ratio: LEAST, lost: false, clean: 0 }
    }
}

impl Rule for AckCc {
    fn wants(&mut self, heard: &Heard) -> u8 {
        self.lost |= heard.acked > u64::from(heard.asked);
        if heard.new_window {
            self.on_window(heard.window);
        }
        let most = heard.window.div_ceil(2).clamp(LEAST.into(), u8::MAX.into());
        self.ratio = self.ratio.min(most as u8);
        self.ratio
    }
}

impl AckCc {
    fn on_window(&mut self, window: u64) {
        let ratio = u64::from(self.ratio);
        if std::mem::take(&mut self.lost) {
            (self.ratio, self.clean) = (self.ratio.saturating_mul(2), 0);
        } else if self.ratio > LEAST {
            self.clean += 1;
            if self.clean * (ratio * ratio - ratio) >= window {
                (self.ratio, self.clean) = (self.ratio - 1, 0);
            }
        }
    }
}

/// RFC 4341 section 6.1.2: 2 or more where the window is 4 or more.
const LEAST: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn window(rule: &mut AckCc, covered: u64) -> u8 {
        let heard = Heard { window: 40, acked: covered, new_window: false, asked: rule.ratio };
        rule.wants(&heard);
        rule.wants(&Heard { acked: 1, new_window: true, ..heard })
    }

    #[test]
    fn the_ratio_doubles_with_each_window_that_lost_acks_up_to_half_the_window() {
        let mut rule = AckCc::default();
        let seen: Vec<u8> = (0..5).map(|_| window(&mut rule, 100)).collect();
        assert_eq!(seen, [4, 8, 16, 20, 20]);
    }

    #[test]
    fn it_sinks_by_one_after_so_many_clean_windows_as_the_rfc_says() {
        let mut rule = AckCc::default();
        window(&mut rule, 100);
        // From 4: 40 / 12 windows, so 4 of them; from 3: 40 / 6, so 7.
        let seen: Vec<u8> = (0..12).map(|_| window(&mut rule, 2)).collect();
        assert_eq!(seen, [4, 4, 4, 3, 3, 3, 3, 3, 3, 3, 2, 2]);
    }
}
