//! Acknowledging by a policy of the simulations. Disorder, a FIN and challenges are answered at once, whatever the
//! policy; nothing is compressed.

use acklab_core::ack::{DataSample, Disorder, ReadSample};
use acklab_core::time::Span;

use crate::settings::Env;
use crate::tcp::Tcp;

impl Tcp {
    /// Data came that is not simply the next.
    pub(crate) fn note_disorder(&mut self, env: &Env<'_>, disorder: Disorder) {
        if self.ack.policy.is_none() {
            return;
        }
        let window = self.space();
        if let Some(ruling) = &mut self.ack.policy {
            ruling.on_disorder(env.now, disorder, window);
        }
    }

    /// Whether what came leaves an ACK at once; else the policy's timer is armed.
    pub(crate) fn is_ack_ruled(&mut self, env: &Env<'_>) -> bool {
        let sample = self.data_sample(env);
        let at_once = self.ack.now || self.rcv.fin;
        let asked = self.asked_of_us(sample.window);
        let Some(ruling) = &mut self.ack.policy else { return false };
        if let Some(segments) = asked {
            ruling.on_request(segments);
        }
        if ruling.is_due(env.now, sample) || at_once {
            return true;
        }
        self.timers.delack = ruling.deadline();
        false
    }

    fn data_sample(&mut self, env: &Env<'_>) -> DataSample {
        let last = self.rcv.wnd;
        let window = self.possible_window(env);
        DataSample {
            mss: self.terms.advmss,
            unacked_bytes: self.rcv.nxt.wrapping_sub(self.rcv.wup),
            window,
            window_not_shrunk: window >= last,
            was_zero_window: last == 0,
            srtt: (self.rtt.srtt8 > 0).then(|| Span::from_micros(self.rtt.srtt())),
            rto: Span::from_micros(self.rtt.rto),
            ..DataSample::default()
        }
    }

    /// The window that an ACK would announce.
    fn possible_window(&mut self, env: &Env<'_>) -> u32 {
        let quick = self.ack.quick;
        let window = self.select_window(env);
        self.ack.quick = quick;
        window
    }

    /// The policy's timer is due: whether an ACK leaves.
    pub(crate) fn is_timer_ruled(&mut self, env: &Env<'_>) -> bool {
        let rto = self.rtt.rto;
        let Some(ruling) = &mut self.ack.policy else { return false };
        if ruling.on_time(env.now, rto) {
            return true;
        }
        self.timers.delack = ruling.deadline();
        false
    }

    /// The program read `copied` bytes: whether an ACK leaves.
    pub(crate) fn is_read_ruled(&mut self, env: &Env<'_>, copied: u32) -> bool {
        if self.ack.policy.is_none() {
            return false;
        }
        let sample = ReadSample {
            copied,
            unacked_bytes: self.rcv.nxt.wrapping_sub(self.rcv.wup),
            queue_empty: self.rcv.queue.is_empty(),
            window: self.possible_window(env),
            advertised: self.receive_window(),
        };
        let Some(ruling) = &mut self.ack.policy else { return false };
        let due = ruling.on_read(env.now, &sample);
        self.timers.delack = ruling.deadline();
        due
    }

    /// An ACK left, with `data` or without.
    pub(crate) fn on_ruled_ack_sent(&mut self, env: &Env<'_>, data: bool) {
        if let Some(ruling) = &mut self.ack.policy {
            ruling.on_ack_sent(env.now, data);
            self.timers.delack = ruling.deadline();
        }
    }
}
