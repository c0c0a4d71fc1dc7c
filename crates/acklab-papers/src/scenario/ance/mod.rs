//! The experiments of Sup, de Moraes and Bauchspiess: TCP flows, and a control loop, over a bottleneck.
//!
//! "Acknowledge-Based Non-Congestion Estimation: An Indirect Queue Management Approach for Concurrent
//! TCP and UDP-like Flows" (IJCNIS 2020). `ance-daisy` is its section 3, `ance-dumbbell` its section 4.
//! What the paper leaves open is a parameter ([`parameters`]); the topology is in [`model`], the
//! discipline and the congestion control by name in [`algorithms`], what is measured and what a query may
//! name in [`signals`].

mod algorithms;
mod echo;
mod model;
mod parameters;
mod signals;

use acklab_core::event::Interest;
use acklab_core::rng::Rng;
use acklab_core::time::Time;
use acklab_sim::World;

use acklab_lab::measured::MetricDoc;
use acklab_lab::parameter::{Parameter, SetError, Settings};
use acklab_lab::scenario::network::{NETWORK_METRICS, NetworkRecorder};
use acklab_lab::scenario::network_signals::follow;
use acklab_lab::scenario::{Axis, Capture, CapturePoint, Replication, Scenario};
use acklab_lab::signal::{Segment, Signal, Watch};
use model::{Model, PERIOD};
use parameters::resolve;

/// The paper's two experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ance {
    /// One flow through two routers: section 3.
    Daisy,
    /// Several flows and the motor's control loop through two routers: section 4.
    Dumbbell,
}

impl Ance {
    /// The settings with the preset's values, and queue and congestion control paired.
    pub fn resolved(settings: &Settings) -> Settings {
        resolve(settings)
    }

    const fn pick<T: Copy>(self, daisy: T, dumbbell: T) -> T {
        match self {
            Self::Daisy => daisy,
            Self::Dumbbell => dumbbell,
        }
    }
}

impl Scenario for Ance {
    fn name(&self) -> &'static str {
        self.pick("ance-daisy", "ance-dumbbell")
    }

    fn summary(&self) -> &'static str {
        self.pick(
            "one TCP flow over a bottleneck: how its queueing discipline and congestion control share it",
            "TCP flows and a motor's control loop over a bottleneck: what queues do to the motor",
        )
    }

    fn doc(&self) -> &'static str {
        self.pick(
            "Figure 1 of the ANCE paper: sender, router, bottleneck, router, receiver. The flow has \
             endless data. Links carry 1 kB packets and 40-byte ACKs; 17 of them wait at a router. Hosts \
             take no time but `host_jitter`.",
            "Figure 6 of the ANCE paper: three TCP flows with endless data, and a DC motor whose position \
             is controlled through the same routers, sampled every 14 ms. The motor's samples travel \
             with the data, the commands with the ACKs, 48 bytes each. What the paper leaves open is \
             decided by `preset`.",
        )
    }

    fn parameters(&self) -> &'static [Parameter] {
        self.pick(parameters::DAISY, parameters::DUMBBELL)
    }

    fn metrics(&self) -> &'static [MetricDoc] {
        self.pick(&NETWORK_METRICS, signals::DUMBBELL_METRICS)
    }

    fn main_metric(&self) -> &'static str {
        self.pick("throughput_bps", "itae_rad_s")
    }

    fn side_metrics(&self) -> &'static [&'static str] {
        self.pick(
            &["queue_packets", "queue_empty_share", "idle_share", "drops", "marks"],
            &["throughput_bps", "jain", "queue_packets", "queue_empty_share", "drops", "marks"],
        )
    }

    fn replications(&self) -> u64 {
        self.pick(1, 10)
    }

    fn grid(&self) -> &'static [Axis] {
        self.pick(
            &[Axis { parameter: "queue", values: &["red", "codel", "pie", "encn"] }],
            &[Axis { parameter: "queue", values: &["drop-tail", "red", "codel", "pie", "encn"] }],
        )
    }

    fn courses(&self) -> &'static [(&'static str, &'static [&'static str])] {
        self.pick(
            &[
                ("Bottleneck queue", &["queue.length"]),
                ("Congestion window", &["flow[0].cwnd"]),
                ("Throughput since time 0", &["throughput"]),
            ],
            &[
                ("Motor position", &["position", "reference"]),
                ("ITAE, as the paper has it", &["itae"]),
                ("Bottleneck queue", &["queue.length"]),
                ("Congestion windows", &["flow[0].cwnd", "flow[1].cwnd", "flow[2].cwnd"]),
                ("Throughput since time 0", &["throughput"]),
            ],
        )
    }

    fn terms(&self) -> &'static [&'static str] {
        &["rtt"]
    }

    fn check(&self, settings: &Settings) -> Result<(), SetError> {
        check(settings)
    }

    fn packets(&self, settings: &Settings) -> u64 {
        packets(settings)
    }

    fn run(&self, settings: &Settings, seed: u64, capture: Option<Capture<'_>>) -> Replication {
        run(settings, seed, capture)
    }

    fn signals(&self, settings: &Settings) -> Vec<Signal> {
        signals::list(&resolve(settings)).into_iter().map(|(signal, _)| signal).collect()
    }

    fn watch(
        &self,
        settings: &Settings,
        path: &[Segment],
        until: Time,
        wanted: &[bool],
        each: Watch<'_>,
    ) {
        watch(settings, path, until, wanted, each);
    }
}

fn check(settings: &Settings) -> Result<(), SetError> {
    let refuse = |name: &str, reason: &str| {
        let value = settings.values().find(|(other, _)| *other == name);
        let text = value.map_or_else(String::new, |(_, value)| value.to_string());
        Err(SetError::BadValue { name: name.into(), text, reason: reason.into() })
    };
    if settings.span("duration").is_zero() {
        return refuse("duration", "must be longer than 0");
    }
    if settings.choice("service") == "within" && settings.count("buffer") < 2 {
        return refuse("buffer", "must be at least 2 with service=within");
    }
    if settings.number("red_min") >= settings.number("red_max") {
        return refuse("red_min", "must be less than red_max");
    }
    Ok(())
}

/// Data, ACKs, samples and commands that the bottleneck can carry.
fn packets(settings: &Settings) -> u64 {
    let bits = settings.rate("rate").as_bps() as f64 * settings.span("duration").as_secs_f64();
    let data = bits / (8.0 * settings.count("packet") as f64);
    2 * data as u64 + 2 * (settings.span("duration").as_nanos() / PERIOD.as_nanos())
}

/// A world at time zero with everything opened.
fn world<'a>(
    settings: &Settings,
    seed: u64,
    interest: Interest,
    capture: Option<Capture<'a>>,
) -> World<NetworkRecorder<'a>> {
    let model = Model::new(settings);
    let (at, tap) = capture.map_or((None, None), |Capture { at, tap }| (Some(at), Some(tap)));
    let recorder = NetworkRecorder::new(model.watched(settings), tap);
    let mut world = World::new(&model.topology, seed, interest, recorder);
    if let Some(point) = at {
        world.tap(match point {
            CapturePoint::Sender => model.senders[0],
            CapturePoint::Middle => model.routers[0],
            CapturePoint::Receiver => model.routers[1],
        });
    }
    let mut draws = Rng::named(seed, "ance/start");
    model.open_control(&mut world, settings, &mut draws);
    model.open_flows(&mut world, settings, &mut draws);
    world
}

fn run(settings: &Settings, seed: u64, capture: Option<Capture<'_>>) -> Replication {
    let settings = resolve(settings);
    let mut world = world(&settings, seed, Interest::ALL, capture);
    let end = Time::ZERO + settings.span("duration");
    world.run_until(end);
    let events = world.events();
    world.tell_departures(world.observer().bottleneck(), end);
    let recorder = world.observer_mut();
    let (mut metrics, flows) = recorder.finish(end);
    if settings.has("flows") {
        signals::add_loop_metrics(&mut metrics, recorder.control());
    }
    Replication { hash: recorder.hash(), events, metrics, flows, longest_hold: None }
}

fn watch(settings: &Settings, path: &[Segment], until: Time, wanted: &[bool], each: Watch<'_>) {
    let settings = resolve(settings);
    let open = |seed, interest| world(&settings, seed, interest, None);
    follow(&signals::list(&settings), path, until, wanted, open, each);
}
