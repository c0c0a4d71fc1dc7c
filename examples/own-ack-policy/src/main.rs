//! An ACK policy of one's own, beside others in a network from a file: docs/ack-policy.md.

use std::{env, error, fs, path::Path};

use acklab_core::ack::{AckPolicy, DataSample, Decision};
use acklab_core::time::{Span, Time};
use acklab_lab::{file::ScenarioFile, output::Folder, own_ack, run, scenario::Catalog};

/// An ACK for every 20 kB, and 10 ms after the first byte that still waits.
#[derive(Default)]
struct EveryBytes {
    deadline: Option<Time>,
}

impl AckPolicy for EveryBytes {
    fn on_data(&mut self, now: Time, sample: &DataSample) -> Decision {
        if sample.unacked_bytes >= 20_000 {
            return Decision::Now;
        }
        self.deadline.get_or_insert(now + Span::from_millis(10));
        Decision::Wait
    }

    fn on_ack_sent(&mut self, _now: Time) {
        self.deadline = None;
    }

    fn handle_timeout(&mut self, now: Time, _rto: Span) -> Decision {
        let is_due = self.deadline.take_if(|at| *at <= now).is_some();
        if is_due { Decision::Now } else { Decision::Wait }
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.deadline
    }
}

fn main() -> Result<(), Box<dyn error::Error>> {
    own_ack::add("every-bytes", EveryBytes::default);
    let mut arguments = env::args().skip(1);
    let file =
        arguments.next().ok_or("which file? such as examples/own-ack-policy/network.toml")?;
    let plan = ScenarioFile::parse(&fs::read_to_string(file)?)?.plan(Catalog(&[]))?;
    let folder = Folder::create(Path::new(&arguments.next().unwrap_or("out".into())), &plan)?;
    let results = run::run_closely(&plan);
    folder.write(&results)?;
    print!("{}", results.comparison().table().to_text());
    Ok(())
}
