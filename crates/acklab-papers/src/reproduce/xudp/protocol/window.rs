//! The sliding window, in packets: slow start, and what follows where there is a threshold (Jacobson,
//! "Congestion Avoidance and Control", 1988, sections 1 and 3).

/// How the window moves.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// It starts and restarts here, packets.
    pub initial: f64,
    /// It never passes this, packets.
    pub most: f64,
    /// It starts again when everything sent has been acknowledged and nothing waits.
    pub restart: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Window {
    rules: Rules,
    packets: f64,
    threshold: f64,
}

impl Window {
    pub(super) fn new(rules: Rules) -> Self {
        Self { rules, packets: rules.initial, threshold: rules.most }
    }

    /// Packets that may be out.
    pub(super) fn packets(&self) -> f64 {
        self.packets
    }

    /// A packet was acknowledged.
    pub(super) fn on_ack(&mut self) {
        let step = if self.packets < self.threshold { 1.0 } else { 1.0 / self.packets };
        self.packets = (self.packets + step).min(self.rules.most);
    }

    /// A packet's time ran out.
    pub(super) fn on_timeout(&mut self) {
        self.threshold = (self.packets / 2.0).max(2.0);
        self.packets = self.rules.initial;
    }

    /// Nothing is out and nothing waits.
    pub(super) fn on_idle(&mut self) {
        if self.rules.restart {
            self.packets = self.rules.initial;
        }
    }
}
