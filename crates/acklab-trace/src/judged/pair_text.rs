//! Two captures as text: the clocks, each way of each connection, and which host waited.

use std::fmt::Write as _;

use super::pair::{Clock, Pair, Shared, Way};

impl Pair {
    /// The comparison for people, in sentences.
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences = vec![match &self.clock {
            Some(clock) => clock.sentence(),
            None => "The clocks could not be aligned: packets of both directions must stand in both files.".into(),
        }];
        for shared in self.connections.iter().take(CONNECTIONS_MAX) {
            sentences.extend(shared.sentences(self.clock.is_some()));
        }
        if self.connections.len() > CONNECTIONS_MAX {
            let more = self.connections.len() - CONNECTIONS_MAX;
            sentences.push(format!(
                "{more} more connections stand in both files; the JSON has them all."
            ));
        }
        sentences.extend(self.notes.iter().cloned());
        sentences
    }
}

impl Clock {
    fn sentence(&self) -> String {
        let [least, most] = self.offset_interval_ms;
        let [slow, fast] = self.drift_interval_ppm;
        let mut text = format!(
            "The server's clock is {:.3} ms ahead of the client's if both ways take equally long, and between {least:.3} \
             and {most:.3} ms whatever they take; it gains {:.1} ppm (between {slow:.0} and {fast:.0}); by {} packets \
             that stand in both files.",
            self.offset_ms, self.drift_ppm, self.matched
        );
        if self.misfit_ms > 0.0 {
            let _ = write!(
                text,
                " No steady clocks fit that: packets would have come up to {:.3} ms before they left. A clock was set \
                 meanwhile, or stamps are wrong by as much.",
                self.misfit_ms
            );
        }
        text
    }
}

impl Shared {
    /// Each way, and who waited.
    fn sentences(&self, aligned: bool) -> Vec<String> {
        let [client, server] = &self.endpoints;
        let mut sentences = Vec::new();
        if let Some([client_there, server_there]) = &self.translated {
            sentences.push(format!(
                "{client} and {server} are {client_there} and {server_there} in the server's capture: a NAT changes \
                 addresses on the way.",
            ));
        }
        for (way, [from, to]) in self.ways.iter().zip([[client, server], [server, client]]) {
            sentences.push(format!("{from} > {to}: {}", way.words(from, to)));
        }
        let waited = &self.waited;
        if aligned {
            sentences.push(format!(
                "Between {client} and {server}, {:.3} s were spent waiting for the client, {:.3} s for the server, {:.3} s \
                 with data on its way; of these the client's TCP held writes for {:.3} s, the server's for {:.3} s.",
                waited.client_s, waited.server_s, waited.network_s, waited.client_held_s, waited.server_held_s
            ));
        }
        sentences
    }
}

impl Way {
    fn words(&self, from: &str, to: &str) -> String {
        let mut text = format!("{} of {} segments came", self.arrived, self.sent);
        if let Some(delay) = &self.delay_ms {
            let _ = write!(
                text,
                ", in {:.3} ms at least, {:.3} ms at the median, {:.3} ms at the 95th percentile (all ± {:.3} ms)",
                delay.min, delay.p50, delay.p95, delay.uncertainty
            );
        }
        text.push('.');
        if self.lost_data > 0 {
            let frames: Vec<String> = self.lost.iter().map(|lost| lost.frame.to_string()).collect();
            let _ = write!(
                text,
                " {} segments with data left {from} and died on the way (frames {} of its capture).",
                self.lost_data,
                frames.join(", ")
            );
        }
        if self.lost_acks > 0 {
            let _ = write!(text, " {} without data did not come.", self.lost_acks);
        }
        if self.missed > 0 {
            let _ = write!(
                text,
                " {} came, for {to} acknowledged them at once, but are missing in its capture, which is incomplete.",
                self.missed
            );
        }
        if self.from_nowhere > self.foreign_resets {
            let count = self.from_nowhere - self.foreign_resets;
            let _ = write!(
                text,
                " {count} came that are missing in the capture at {from}, which is incomplete."
            );
        }
        if self.foreign_resets > 0 {
            let _ = write!(
                text,
                " {} resets came that {from} never sent: something on the way ends connections.",
                self.foreign_resets
            );
        }
        if let Some(kept) = &self.ack_kept_ms {
            let _ = write!(
                text,
                " {to} kept its {} plain ACKs for {:.2} ms at the median, {:.2} ms at the 95th percentile, {:.2} ms at most.",
                kept.count, kept.p50, kept.p95, kept.max
            );
        }
        text
    }
}

/// Connections told in words.
const CONNECTIONS_MAX: usize = 5;
