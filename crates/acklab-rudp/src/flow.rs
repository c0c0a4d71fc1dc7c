//! Credit: how many bytes and streams each end lets the other begin (docs/rudp.md section 7).
//!
//! MAX_DATA is the sum over streams of the highest offset plus the total of every parcel begun. Limits
//! only grow. The receiver grants anew when half of its window is consumed.

use super::Code;

/// What the peer lets this end send.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SendCredit {
    limit: u64,
    used: u64,
    /// The limit for which DATA_BLOCKED was sent.
    told: Option<u64>,
}

impl SendCredit {
    /// Bytes that may be begun.
    pub(super) fn left(&self) -> u64 {
        self.limit - self.used
    }

    /// The limit: the value of DATA_BLOCKED.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// The peer grants `limit`; whether that is more than before.
    pub(super) fn on_max_data(&mut self, limit: u64) -> bool {
        let more = limit > self.limit;
        self.limit = self.limit.max(limit);
        more
    }

    /// `bytes` leave for the first time.
    pub(super) fn take(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.left(), "more than was granted");
        self.used = (self.used + bytes).min(self.limit);
    }

    /// Data waits for credit; whether the peer has not been told at this limit.
    pub(super) fn on_blocked(&mut self) -> bool {
        self.told.replace(self.limit) != Some(self.limit)
    }
}

/// What this end lets the peer send.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveCredit {
    window: u64,
    granted: u64,
    used: u64,
    consumed: u64,
}

impl ReceiveCredit {
    /// `window` bytes are granted at first, and never more than that are unconsumed.
    pub(super) fn new(window: u64) -> Self {
        Self { window, granted: window, used: 0, consumed: 0 }
    }

    /// The peer has begun `bytes` more.
    pub(super) fn take(&mut self, bytes: u64) -> Result<(), Code> {
        if bytes > self.granted - self.used {
            return Err(Code::FlowControl);
        }
        self.used += bytes;
        Ok(())
    }

    /// The application has `bytes` more, or never will.
    pub(super) fn consume(&mut self, bytes: u64) {
        debug_assert!(self.consumed + bytes <= self.used, "consumed what never came");
        self.consumed += bytes;
    }

    /// Whether it is time to grant more.
    pub(super) fn wants_grant(&self) -> bool {
        self.consumed + self.window >= self.granted + self.window / 2
    }

    /// Grants anew; the value of MAX_DATA.
    pub(super) fn grant(&mut self) -> u64 {
        self.granted = self.granted.max(self.consumed + self.window);
        self.granted
    }

    /// Bytes that the peer may still begin.
    pub(super) fn left(&self) -> u64 {
        self.granted - self.used
    }

    /// Bytes granted so far.
    pub(super) fn granted(&self) -> u64 {
        self.granted
    }
}

/// The ids of streams: bit 0 says who opened it (0: client), bit 1 whether it is one-way. The limit
/// counts the streams of both kinds that one end has opened so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamIds {
    /// Bit 0 of its ids.
    opener: u64,
    /// Streams opened, two-way and one-way.
    opened: [u64; 2],
    limit: u64,
}

impl StreamIds {
    /// The ids that the client or the server gives.
    pub(super) fn new(client: bool, limit: u64) -> Self {
        Self { opener: u64::from(!client), opened: [0; 2], limit }
    }

    /// Whether that end opens `stream`.
    pub(super) fn owns(&self, stream: u64) -> bool {
        stream & 1 == self.opener
    }

    /// Whether `stream` was opened before.
    pub(super) fn is_opened(&self, stream: u64) -> bool {
        stream >> 2 < self.opened[(stream >> 1 & 1) as usize]
    }

    /// Gives the next id, where the limit allows another.
    pub(super) fn open(&mut self, both_ways: bool) -> Option<u64> {
        if self.opened.iter().sum::<u64>() >= self.limit {
            return None;
        }
        let one_way = u64::from(!both_ways);
        let index = &mut self.opened[one_way as usize];
        *index += 1;
        Some((*index - 1) << 2 | one_way << 1 | self.opener)
    }

    /// The peer uses `stream`: it and those of its kind below that were not opened yet are opened.
    pub(super) fn open_up_to(
        &mut self,
        stream: u64,
    ) -> Result<impl Iterator<Item = u64> + use<>, Code> {
        let one_way = stream >> 1 & 1;
        let (from, to) = (self.opened[one_way as usize], (stream >> 2) + 1);
        let other = self.opened[1 - one_way as usize];
        if to > from && to + other > self.limit {
            return Err(Code::FlowControl);
        }
        self.opened[one_way as usize] = from.max(to);
        let opener = self.opener;
        Ok((from..to).map(move |index| index << 2 | one_way << 1 | opener))
    }

    /// Streams that may be opened in all.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// Raises the limit; whether it was lower.
    pub(super) fn on_max_streams(&mut self, limit: u64) -> bool {
        let more = limit > self.limit;
        self.limit = self.limit.max(limit);
        more
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_tell_who_opened_and_whether_it_is_one_way() {
        let mut server = StreamIds::new(false, 3);
        assert_eq!(server.open(true), Some(1));
        assert_eq!(server.open(false), Some(3));
        assert_eq!(server.open(false), Some(7));
        assert_eq!(server.open(true), None);
        assert!(server.on_max_streams(4));
        assert_eq!(server.open(true), Some(5));
    }

    #[test]
    fn streams_below_one_that_is_used_are_opened_with_it() {
        let mut client = StreamIds::new(true, 4);
        let opened: Vec<u64> = client.open_up_to(8).expect("three of four").collect();
        assert_eq!(opened, [0, 4, 8]);
        assert_eq!(client.open_up_to(4).expect("opened before").count(), 0);
        assert_eq!(client.open_up_to(6).err(), Some(Code::FlowControl));
        assert_eq!(client.open_up_to(2).expect("the fourth").collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn half_a_window_consumed_asks_for_a_grant() {
        let mut credit = ReceiveCredit::new(100);
        assert_eq!(credit.take(101), Err(Code::FlowControl));
        assert_eq!(credit.take(100), Ok(()));
        credit.consume(49);
        assert!(!credit.wants_grant());
        credit.consume(1);
        assert!(credit.wants_grant());
        assert_eq!(credit.grant(), 150);
        assert_eq!(credit.take(51), Err(Code::FlowControl));
    }
}
