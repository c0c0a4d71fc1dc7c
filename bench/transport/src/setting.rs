//! The links: rate, delay, loss, and whether path 0 dies.

/// Rate and delay of a link, the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Link {
    /// 20 Mbit/s, 20 ms each way.
    #[value(name = "20/20")]
    R20D20,
    /// 10 Mbit/s, 50 ms each way.
    #[value(name = "10/50")]
    R10D50,
    /// 100 Mbit/s, 10 ms each way.
    #[value(name = "100/10")]
    R100D10,
}

/// One column of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// Rate and delay.
    pub link: Link,
    /// Independent loss in both directions, per cent.
    pub loss: f64,
    /// Uniform jitter in both directions that keeps the order, ms.
    pub jitter: f64,
    /// Path 0 is dead from then on, seconds.
    pub dead: Option<f64>,
}

impl Link {
    /// Mbit/s and ms each way.
    pub fn figures(self) -> (u32, u32) {
        match self {
            Self::R20D20 => (20, 20),
            Self::R10D50 => (10, 50),
            Self::R100D10 => (100, 10),
        }
    }
}

impl Setting {
    /// In `acklab emulate`'s words: a drop-tail queue of 100 ms, as in every measurement of the peers.
    pub fn words(&self) -> String {
        let (rate, delay) = self.link.figures();
        let jitter = match self.jitter {
            0.0 => String::new(),
            jitter => format!(" {jitter}ms"),
        };
        format!(
            "delay {delay}ms{jitter} loss {}% rate {rate}mbit queue drop-tail limit 100ms",
            self.loss
        )
    }

    /// For a table's head.
    pub fn title(&self) -> String {
        let dead = self.dead.map_or(String::new(), |at| format!(", path 0 dead at {at} s"));
        let jitter = match self.jitter {
            0.0 => String::new(),
            jitter => format!(", + {jitter} ms"),
        };
        format!("{} %{jitter}{dead}", self.loss)
    }

    /// The shortest time in which that many bytes can cross, seconds, over `paths` such paths: nothing
    /// but the bytes, the loss and one round trip.
    pub fn least(&self, bytes: u64, paths: usize) -> f64 {
        let (rate, delay) = self.link.figures();
        let wire = bytes as f64 * 8.0 / (f64::from(rate) * 1e6 * paths as f64);
        wire / (1.0 - self.loss / 100.0) + 2.0 * f64::from(delay) / 1e3
    }
}
