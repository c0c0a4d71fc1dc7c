//! Proportional rate reduction (RFC 6937, with the conservative bound of RFC 9937): in fast recovery as much leaves as
//! arrived, in the proportion that brings what is on the way down to the threshold by the end of the round trip.

/// One recovery; all in the window's weight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reduction {
    /// The window when recovery began (RecoverFS), and what it is reduced to.
    before: u64,
    threshold: u64,
    mss: u64,
    delivered: u64,
    out: u64,
    window: u64,
}

impl Reduction {
    pub(super) const fn new(before: u64, threshold: u64, mss: u64) -> Self {
        let (delivered, out) = (0, 0);
        Self { before, threshold, mss, delivered, out, window: threshold }
    }

    /// An ACK of recovery says that `news` arrived; `pipe` is on the way. `clean`: the cumulative ACK moved and no
    /// further loss was found.
    pub(super) fn on_ack(&mut self, news: u64, pipe: u64, clean: bool) {
        if news == 0 || self.before == 0 {
            return;
        }
        self.delivered += news;
        let room = if pipe > self.threshold {
            let share = u128::from(self.delivered) * u128::from(self.threshold);
            (share.div_ceil(u128::from(self.before)) as u64).saturating_sub(self.out)
        } else {
            let extra = if clean { self.mss } else { 0 };
            let room = self.delivered.saturating_sub(self.out).max(news) + extra;
            room.min(self.threshold - pipe)
        };
        // The first retransmission leaves whatever the proportion.
        let least = if self.out == 0 { self.mss } else { 0 };
        self.window = pipe + room.max(least);
    }

    pub(super) const fn on_sent(&mut self, weight: u64) {
        self.out += weight;
    }

    /// How much may be on the way.
    pub(super) const fn window(&self) -> u64 {
        self.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments that leave for each ACK of one segment, with `lost` of a window of `before`.
    fn sent(before: u64, threshold: u64, lost: u64) -> Vec<u64> {
        let mut reduction = Reduction::new(before, threshold, 1);
        let mut pipe = before - lost;
        (0..before - lost)
            .map(|_| {
                pipe -= 1;
                reduction.on_ack(1, pipe, false);
                let room = reduction.window().saturating_sub(pipe);
                (0..room).for_each(|_| reduction.on_sent(1));
                pipe += room;
                room
            })
            .collect()
    }

    #[test]
    fn half_the_rate_leaves_where_one_segment_was_lost() {
        // RFC 6937 section 4: a window of 20, halved; one segment for each two that arrive.
        let sent = sent(20, 10, 1);
        assert_eq!(sent.iter().sum::<u64>(), 10);
        assert!(sent[..16].windows(2).all(|pair| pair[0] + pair[1] == 1), "{sent:?}");
    }

    #[test]
    fn after_heavy_loss_no_more_leaves_than_arrives() {
        // 15 of 20 lost: five ACKs let five segments leave, not the ten that the threshold has room for.
        assert_eq!(sent(20, 10, 15), [1; 5]);
    }

    #[test]
    fn a_clean_advance_lets_one_more_leave() {
        let mut reduction = Reduction::new(20, 10, 1);
        reduction.on_ack(1, 4, false);
        assert_eq!(reduction.window(), 5);
        reduction.on_sent(1);
        reduction.on_ack(1, 4, true);
        assert_eq!(reduction.window(), 6);
    }
}
