//! Pacing of segments ([`acklab_core::pacing`]); bare ACKs are not paced. Without a rate, everything leaves
//! as the window lets it.

use super::connection::Connection;
use super::timers::Timer;
use acklab_core::cc::CongestionControl;
use acklab_core::time::Time;

impl Connection {
    /// Whether pacing holds the next segment back; its timer runs then.
    pub(super) fn must_wait(&mut self, now: Time) -> bool {
        if self.pacer.next() <= now || self.cc.pacing_rate().is_none() {
            return false;
        }
        self.timers.set(Timer::Pace, self.pacer.next());
        true
    }

    /// A segment with payload leaves.
    pub(super) fn pace(&mut self, now: Time, bytes: u32) {
        if let Some(rate) = self.cc.pacing_rate() {
            let mss = self.terms.full_segment(0);
            self.pacer.on_sent(now, bytes, rate, mss);
        }
    }
}
