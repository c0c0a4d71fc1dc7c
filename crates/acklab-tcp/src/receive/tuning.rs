//! Dynamic right-sizing (Fisk and Feng, LACSI 2001) as Linux has it: the window may be twice what the application
//! read in the last round trip, and more while that grows (`tcp_rcv_space_adjust`).
//!
//! The round trip is that of the peer's echoes of our timestamps (`tcp_rcv_rtt_measure_ts`), else the shortest time in
//! which a whole window arrived (`tcp_rcv_rtt_measure`). Left out: what buffers cost beyond the bytes in them, so the
//! window ends where the system's largest buffer does.

use acklab_core::time::{Span, Time};

/// How far the window may open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tuning {
    limit: u64,
    round_trip: Option<Span>,
    /// The last echo that was measured.
    echo: u32,
    /// A window that began to arrive: when, and where it ends.
    window: Option<(Time, u64)>,
    /// What the application read in one round trip, the most so far.
    space: u64,
    /// Since when, and from which byte on, reading is measured.
    since: Time,
    from: u64,
}

impl Tuning {
    pub(super) const fn new(limit: u64) -> Self {
        let (since, from) = (Time::ZERO, 1);
        Self { limit, round_trip: None, echo: 0, window: None, space: 0, since, from }
    }

    /// The largest window, bytes.
    pub(super) const fn limit(&self) -> u64 {
        self.limit
    }

    /// A full segment arrived in order that echoes our stamp `echo`, `elapsed` old.
    pub(super) fn on_echo(&mut self, echo: u32, elapsed: Span) {
        if std::mem::replace(&mut self.echo, echo) != echo {
            // A stamp counts milliseconds.
            let sample = elapsed.max(Span::from_millis(1));
            self.round_trip = Some(self.round_trip.map_or(sample, |old| old / 8 * 7 + sample / 8));
        }
    }

    /// Data arrived up to `nxt`, and the window announced ends at `edge`: for peers without timestamps.
    pub(super) fn on_window(&mut self, now: Time, nxt: u64, edge: u64) {
        if let Some((began, until)) = self.window {
            if nxt < until {
                return;
            }
            let took = now.since(began);
            self.round_trip = Some(self.round_trip.map_or(took, |old| old.min(took)));
        }
        self.window = Some((now, edge));
    }

    /// The application has read up to `read`; full segments have `mss` bytes.
    pub(super) fn on_read(&mut self, now: Time, read: u64, mss: u32) {
        let mss = u64::from(mss);
        if self.round_trip.is_none_or(|rtt| now.since(self.since) < rtt) {
            return;
        }
        let copied = read - self.from;
        let space = self.space.max(INITIAL_SEGMENTS * mss);
        if copied > space {
            let window = 2 * copied + SPARE_SEGMENTS * mss;
            let growth = window * (copied - space) / space;
            self.limit = self.limit.max(window + 2 * growth);
            self.space = copied;
        }
        (self.since, self.from) = (now, read);
    }
}

/// `TCP_INIT_CWND`: what the first round trip brings.
const INITIAL_SEGMENTS: u64 = 10;
/// Room for what a sender sends more in the next round trip.
const SPARE_SEGMENTS: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;
    const RTT: Span = Span::from_millis(100);

    /// A sender that brings `rates` segments in each round trip; how far the window may open after each.
    fn limits(rates: &[u64]) -> Vec<u64> {
        let mut tuning = Tuning::new(65_535);
        let (mut now, mut read) = (Time::ZERO + RTT, 1);
        tuning.on_echo(1, RTT);
        rates
            .iter()
            .map(|segments| {
                tuning.on_read(now, read, MSS);
                read += segments * 1000;
                now += RTT;
                tuning.on_read(now, read, MSS);
                tuning.limit()
            })
            .collect()
    }

    #[test]
    fn a_slow_sender_needs_no_more_than_the_first_window() {
        assert_eq!(limits(&[10, 10, 10, 11, 8, 10]), [65_535; 6]);
    }

    #[test]
    fn the_window_may_be_twice_what_a_round_trip_brings_and_more_while_it_grows() {
        // 2 * 20 + 16 segments, and twice that for what doubled.
        assert_eq!(limits(&[10, 20, 40, 40]), [65_535, 168_000, 288_000, 288_000]);
    }

    #[test]
    fn without_echoes_the_time_of_a_window_is_the_round_trip() {
        let mut tuning = Tuning::new(65_535);
        tuning.on_window(Time::ZERO, 1, 65_536);
        tuning.on_window(Time::ZERO + RTT / 2, 30_000, 90_000);
        assert_eq!(tuning.round_trip, None);
        tuning.on_window(Time::ZERO + RTT, 65_536, 131_071);
        assert_eq!(tuning.round_trip, Some(RTT));
    }
}
