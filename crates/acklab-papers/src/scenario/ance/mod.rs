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
pub mod parameters;
mod signals;

use acklab_core::event::Interest;
use acklab_core::rng::Rng;
use acklab_core::time::Time;
use acklab_sim::World;

use acklab_lab::parameter::{SetError, Settings};
use acklab_lab::scenario::network::{Changes, NETWORK_METRICS, NetworkRecorder};
use acklab_lab::scenario::network_signals::follow;
use acklab_lab::scenario::{
    Axis, Capture, CapturePoint, Declaration, MOST_PACKETS, Replication, Scenario,
};
use acklab_lab::signal::{Segment, Signal, Watch};
use model::{Model, PERIOD};
use parameters::{Service, Set};

/// The paper's two experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ance {
    /// One flow through two routers: section 3.
    Daisy,
    /// Several flows and the motor's control loop through two routers: section 4.
    Dumbbell,
}

const DAISY: Declaration = Declaration {
    name: "ance-daisy",
    summary: "one TCP flow over a bottleneck: how its queueing discipline and congestion control share it",
    doc: "Figure 1 of the ANCE paper: sender, router, bottleneck, router, receiver. The flow has \
          endless data. Links carry 1 kB packets and 40-byte ACKs; 17 of them wait at a router. Hosts \
          take no time but `host_jitter`.",
    parameters: parameters::DAISY,
    metrics: &NETWORK_METRICS,
    main_metric: "throughput_bps",
    side_metrics: &["queue_packets", "queue_empty_share", "idle_share", "drops", "marks"],
    grid: &[Axis { parameter: "queue", values: &["red", "codel", "pie", "encn"] }],
    courses: &[
        ("Bottleneck queue", &["queue.length"]),
        ("Congestion window", &["flow[0].cwnd"]),
        ("Throughput since time 0", &["throughput"]),
    ],
    terms: &["rtt"],
    ..Declaration::EMPTY
};

const DUMBBELL: Declaration = Declaration {
    name: "ance-dumbbell",
    summary: "TCP flows and a motor's control loop over a bottleneck: what queues do to the motor",
    doc: "Figure 6 of the ANCE paper: three TCP flows with endless data, and a DC motor whose position \
          is controlled through the same routers, sampled every 14 ms. The motor's samples travel \
          with the data, the commands with the ACKs, 48 bytes each. What the paper leaves open is \
          decided by `preset`.",
    parameters: Set::PARAMETERS,
    metrics: &signals::DUMBBELL_METRICS,
    main_metric: "itae_rad_s",
    side_metrics: &[
        "throughput_bps",
        "jain",
        "queue_packets",
        "queue_empty_share",
        "drops",
        "marks",
    ],
    replications: 10,
    grid: &[Axis { parameter: "queue", values: &["drop-tail", "red", "codel", "pie", "encn"] }],
    courses: &[
        ("Motor position", &["position", "reference"]),
        ("ITAE, as the paper has it", &["itae_rad_s"]),
        ("Bottleneck queue", &["queue.length"]),
        ("Congestion windows", &["flow[0].cwnd", "flow[1].cwnd", "flow[2].cwnd"]),
        ("Throughput since time 0", &["throughput"]),
    ],
    terms: &["rtt"],
    ..Declaration::EMPTY
};

impl Ance {
    /// The settings on top of their preset's, and queue and congestion control paired.
    pub fn resolve(self, settings: &Settings) -> Set {
        Set::resolve(settings, self == Self::Dumbbell)
    }
}

impl Scenario for Ance {
    fn declaration(&self) -> &Declaration {
        match self {
            Self::Daisy => &DAISY,
            Self::Dumbbell => &DUMBBELL,
        }
    }

    fn check(&self, settings: &Settings) -> Result<(), SetError> {
        let set: Set = settings.read();
        if set.duration.is_zero() {
            return Err(settings.refuse("duration", "must be longer than 0"));
        }
        if set.network.service == Service::Within && set.network.buffer < 2 {
            return Err(settings.refuse("buffer", "must be at least 2 with service=within"));
        }
        if set.queues.red_min >= set.queues.red_max {
            return Err(settings.refuse("red_min", "must be less than red_max"));
        }
        Ok(())
    }

    /// Data, ACKs, samples and commands that the bottleneck can carry.
    fn packets(&self, settings: &Settings) -> u64 {
        let set: Set = settings.read();
        let bits = set.network.rate.as_bps() as f64 * set.duration.as_secs_f64();
        let data = bits / (8.0 * f64::from(set.tcp.packet));
        2 * data as u64 + 2 * (set.duration.as_nanos() / PERIOD.as_nanos())
    }

    fn most_packets(&self) -> u128 {
        MOST_PACKETS
    }

    fn run(&self, settings: &Settings, seed: u64, capture: Option<Capture<'_>>) -> Replication {
        let set = self.resolve(settings);
        let mut world = world(&set, seed, Interest::ALL, capture);
        let end = Time::ZERO + set.duration;
        world.run_until(end);
        let events = world.events();
        world.tell_departures(world.observer().bottleneck(), end);
        let recorder = world.observer_mut();
        let (mut metrics, flows) = recorder.finish(end);
        if set.dumbbell {
            signals::add_loop_metrics(&mut metrics, recorder.control());
        }
        Replication {
            hash: recorder.hash(),
            events,
            metrics,
            flows,
            groups: vec![],
            longest_hold: None,
        }
    }

    fn signals(&self, settings: &Settings) -> Vec<Signal> {
        let signals = signals::list(&self.resolve(settings));
        signals.into_iter().map(|(signal, _)| signal).collect()
    }

    fn watch(
        &self,
        settings: &Settings,
        path: &[Segment],
        until: Time,
        wanted: &[bool],
        each: Watch<'_>,
    ) {
        let set = self.resolve(settings);
        let open = |seed, changes: Changes| world(&set, seed, changes.interest(), None);
        follow(&signals::list(&set), path, until, wanted, open, each);
    }
}

/// A world at time zero with everything opened.
fn world<'a>(
    set: &Set,
    seed: u64,
    interest: Interest,
    capture: Option<Capture<'a>>,
) -> World<NetworkRecorder<'a>> {
    let model = Model::new(set);
    let (at, tap) = capture.map_or((None, None), |Capture { at, tap }| (Some(at), Some(tap)));
    let recorder = NetworkRecorder::new(model.watched(set), tap);
    let mut world = World::new(&model.topology, seed, interest, recorder);
    if let Some(point) = at {
        world.tap(match point {
            CapturePoint::Sender => model.senders[0],
            CapturePoint::Middle => model.routers[0],
            CapturePoint::Receiver => model.routers[1],
        });
    }
    let mut draws = Rng::named(seed, "ance/start");
    model.open_control(&mut world, set, &mut draws);
    model.open_flows(&mut world, set, &mut draws);
    world
}
