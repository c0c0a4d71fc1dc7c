//! How fast data arrives and leaves: delivery rates (draft-cheng-iccrg-delivery-rate-estimation), pacing, and what the
//! simulations' congestion controls hear of it.

use crate::loss::Heard;
use crate::model::{News, Rate};
use crate::segment::after;
use crate::settings::{Env, SECOND, Us};
use crate::skb::RateStamp;
use crate::tcp::Tcp;

impl Tcp {
    /// The simulations' algorithm hears of an ACK.
    pub(crate) fn tell_model(
        &mut self,
        env: &Env<'_>,
        (delivered, lost): (u32, u32),
        rate: Option<Rate>,
        heard: &Heard,
    ) {
        let news = News {
            now: env.now,
            bytes: heard.bytes,
            delivered,
            lost,
            ece: heard.ece,
            flight: heard.flight,
            srtt: self.rtt.srtt(),
            limited: self.window.was_limit(),
            reducing: self.in_reduction(),
            rate,
        };
        if let Some(model) = self.cc.model() {
            model.on_ack(&news);
        }
    }

    /// The window is what the simulations' algorithm says.
    pub(crate) fn follow_model(&mut self) {
        if let Some(model) = self.cc.model() {
            (self.window.cwnd, self.window.ssthresh) = (model.cwnd(), model.threshold());
            self.window.cwnd = self.window.cwnd.min(self.window.clamp);
        }
    }

    /// A sample of the delivery rate, where the packet sent last that an ACK delivers gives one; the best is kept for TCP_INFO.
    pub(crate) fn note_rate(
        &mut self,
        env: &Env<'_>,
        newly: u32,
        newest: Option<(RateStamp, Us)>,
    ) -> Option<Rate> {
        if self.count.app_limited > 0 && after(self.rec.delivered, self.count.app_limited) {
            self.count.app_limited = 0;
        }
        if newly > 0 {
            self.count.delivered_at = env.now;
        }
        let (stamp, sent) = newest?;
        self.count.first_sent = sent;
        let snd = sent.saturating_sub(stamp.first_sent);
        let ack = env.now.saturating_sub(stamp.delivered_at);
        let interval = snd.max(ack);
        if interval < self.rtt.least() || interval == 0 || self.rtt.least() == 0 {
            return None;
        }
        let packets = self.rec.delivered.wrapping_sub(stamp.delivered);
        let (known, known_interval) = self.count.rate;
        let faster = u64::from(packets) * known_interval >= u64::from(known) * interval;
        if !stamp.app_limited || faster {
            self.count.rate = (packets, interval);
            self.count.rate_app_limited = stamp.app_limited;
        }
        Some(Rate {
            delivered: packets,
            interval,
            prior: stamp.delivered,
            total: self.rec.delivered,
            app_limited: stamp.app_limited,
            in_flight: stamp.in_flight,
            lost: self.rec.lost_total.wrapping_sub(stamp.lost),
        })
    }

    /// Twice the window per round trip in slow start, 1.2 times later.
    pub fn update_pacing(&mut self, env: &Env<'_>) {
        let share = if self.window.cwnd < self.window.ssthresh / 2 {
            env.sysctls.of("tcp_pacing_ss_ratio")
        } else {
            env.sysctls.of("tcp_pacing_ca_ratio")
        };
        let mut rate = u64::from(self.snd.mss)
            * u64::from(self.window.cwnd.max(self.packets_out()))
            * share as u64
            * (8 * SECOND / 100);
        rate = rate.checked_div(self.rtt.srtt8).unwrap_or(rate);
        let asked = self.cc.pacing_rate();
        self.count.paces = asked.is_some();
        let rate = asked.unwrap_or(rate);
        self.count.pacing_rate = if self.opt.pacing > 0 { rate.min(self.opt.pacing) } else { rate };
    }
}
