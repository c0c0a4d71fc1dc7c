//! The automata: locations, edges and where they stand on the canvas.
//!
//! Rules that keep the network sound under UPPAAL SMC: every channel is broadcast; a process that may
//! be handed a packet listens in every location in which time passes; no edge leads into a location
//! whose invariant it breaks; what is decided on the spot is decided in a committed location.

use acklab_core::queue::Discipline;
use acklab_core::time::Span;
use acklab_papers::scenario::ance::parameters::Set;

use super::constants::{ACK_BYTES, NCS_BYTES, constants, us};
use super::model::Model;
use super::system;
use super::xml::{Edge, Location, Network, Template};

impl Model {
    /// The model as a file for UPPAAL.
    pub fn to_xml(&self) -> String {
        network(self).to_xml()
    }
}

/// The whole network.
fn network(model: &Model) -> Network {
    Network {
        declaration: constants(model, channel_capacity(model))
            + include_str!("text/declarations.uppaal"),
        templates: vec![
            plant(),
            controller(),
            channel(),
            router(model),
            transmitter(model),
            receiver(),
        ],
        system: system::instances(model),
        queries: system::queries(model),
    }
}

/// More packets than can be in flight on any channel: its delay over the least time between two.
fn channel_capacity(model: &Model) -> u64 {
    let Set { network, tcp, control, .. } = &model.set;
    let packet = u64::from(tcp.packet);
    let (access, bottleneck) = (network.access_rate, network.rate);
    let last_receiver = network.rx_access + control.rx_spread * (control.flows - 1);
    let flights = [
        (network.tx_access + tcp.host_jitter, access.serialisation(packet)),
        (network.delay, bottleneck.serialisation(ACK_BYTES.min(NCS_BYTES))),
        (last_receiver + tcp.host_jitter, bottleneck.serialisation(packet)),
        (network.tx_access, bottleneck.serialisation(ACK_BYTES)),
        (control.ncs_access, bottleneck.serialisation(NCS_BYTES)),
    ];
    let most = flights.map(|(delay, gap)| us(delay) / us(gap).max(1));
    most.into_iter().max().unwrap_or(0) + SPARE
}

/// Room for rounding, for what is being handed over, and for a burst of duplicate ACKs.
const SPARE: u64 = 4;

fn plant() -> Template {
    Template {
        name: "Plant",
        parameter: "",
        declaration: "// Algorithm 2.\n".to_owned() + include_str!("text/plant.uppaal"),
        locations: vec![
            Location::timed("SamplingP", (0, 0), "tp <= h"),
            Location::timed("SendingP", (400, 0), "tp <= Tpsm"),
        ],
        edges: vec![
            Edge {
                from: "SamplingP",
                to: "SendingP",
                guard: "tp >= h",
                update: "tp = 0, ComputePosition(), ComputeITAE()",
                labels: (60, -130),
                nails: vec![(200, -80)],
                ..Edge::default()
            },
            Edge {
                from: "SendingP",
                to: "SamplingP",
                guard: "tp >= Tpsm",
                sync: "hop[LEFT_SENDS + FLOWS]!",
                update: "SendMeasured()",
                labels: (110, 90),
                nails: vec![(200, 80)],
            },
            taking(
                "SamplingP",
                (-340, -10),
                [(-110, -50), (-110, 50)],
                "hop[LEFT_GETS + FLOWS]?",
                TAKE_U,
            ),
            taking(
                "SendingP",
                (530, -10),
                [(510, -50), (510, 50)],
                "hop[LEFT_GETS + FLOWS]?",
                TAKE_U,
            ),
        ],
    }
}

const TAKE_U: &str = "u_arrived = wire.value";
const TAKE_Y: &str = "y_received = wire.value";

fn controller() -> Template {
    Template {
        name: "Controller",
        parameter: "",
        declaration: "// Algorithm 3.\n".to_owned() + include_str!("text/controller.uppaal"),
        locations: vec![
            Location::committed("StartCS", (0, -200)),
            Location::timed("SamplingCS", (0, 0), "tc <= h"),
            Location::timed("SendingCS", (400, 0), "tc <= Tcsc"),
        ],
        edges: vec![
            Edge {
                from: "StartCS",
                to: "SamplingCS",
                update: "tc = phase()",
                labels: (10, -130),
                ..Edge::default()
            },
            Edge {
                from: "SamplingCS",
                to: "SendingCS",
                guard: "tc >= h",
                update: "tc = 0, ComputeControlSignal()",
                labels: (90, -130),
                nails: vec![(200, -80)],
                ..Edge::default()
            },
            Edge {
                from: "SendingCS",
                to: "SamplingCS",
                guard: "tc >= Tcsc",
                sync: "hop[RIGHT_SENDS + FLOWS]!",
                update: "SendControlSignal()",
                labels: (110, 90),
                nails: vec![(200, 80)],
            },
            taking(
                "SamplingCS",
                (-350, -10),
                [(-110, -50), (-110, 50)],
                "hop[RIGHT_GETS + FLOWS]?",
                TAKE_Y,
            ),
            taking(
                "SendingCS",
                (530, -10),
                [(510, -50), (510, 50)],
                "hop[RIGHT_GETS + FLOWS]?",
                TAKE_Y,
            ),
        ],
    }
}

/// A loop that takes a packet in.
fn taking(
    at: &'static str,
    labels: (i32, i32),
    nails: [(i32, i32); 2],
    sync: &'static str,
    update: &'static str,
) -> Edge {
    Edge { from: at, to: at, sync, update, labels, nails: nails.to_vec(), ..Edge::default() }
}

fn channel() -> Template {
    Template {
        name: "Channel",
        parameter: "const int IN, const int OUT, const bool FANS_OUT, const count_t DELAY, const count_t JITTER",
        declaration: "// A pipe: what goes in comes out after DELAY, in order.\n".to_owned()
            + include_str!("text/channel.uppaal"),
        locations: vec![
            Location::passive("Empty", (0, 0)),
            Location::timed("Carrying", (400, 0), "now <= due[first]"),
        ],
        edges: vec![
            Edge {
                from: "Empty",
                to: "Carrying",
                sync: "hop[IN]?",
                update: "push()",
                labels: (160, -120),
                nails: vec![(200, -80)],
                ..Edge::default()
            },
            taking("Carrying", (530, -10), [(510, -50), (510, 50)], "hop[IN]?", "push()"),
            Edge {
                from: "Carrying",
                to: "Carrying",
                guard: "number > 1 && now >= due[first]",
                sync: "hop[onto()]!",
                update: "pop()",
                labels: (300, -180),
                nails: vec![(340, -110), (460, -110)],
            },
            Edge {
                from: "Carrying",
                to: "Empty",
                guard: "number == 1 && now >= due[first]",
                sync: "hop[onto()]!",
                update: "pop()",
                labels: (90, 90),
                nails: vec![(200, 80)],
            },
        ],
    }
}

fn router(model: &Model) -> Template {
    let pie = matches!(model.queue, Discipline::Pie(_));
    let idle = Location::passive("Idle", (0, 0));
    let serving = Location::timed("Serving", (400, 0), "c <= service");
    let mut edges = router_edges();
    let (idle, serving) = if pie {
        edges.extend(pie_updates());
        let idle = Location { invariant: "u <= PIE_UPDATE".into(), ..idle };
        (idle, Location { invariant: "c <= service && u <= PIE_UPDATE".into(), ..serving })
    } else {
        (idle, serving)
    };
    Template {
        name: "Router",
        parameter: "const int SIDE, const int IN, const int OUT, const int TCP_BYTES, const count_t T_TCP, const count_t T_NCS",
        declaration: "// One direction of the bottleneck: a queue and the packet in service.\n"
            .to_owned()
            + include_str!("text/router.uppaal")
            + model.router
            + include_str!("text/admission.uppaal"),
        locations: vec![idle, serving, Location::committed("Deciding", (200, 200))],
        edges,
    }
}

fn router_edges() -> Vec<Edge> {
    vec![
        Edge {
            from: "Idle",
            to: "Deciding",
            sync: "hop[IN]?",
            update: "admit()",
            labels: (60, 30),
            ..Edge::default()
        },
        taking("Serving", (530, -60), [(510, -50), (510, 50)], "hop[IN]?", "admit()"),
        Edge {
            from: "Serving",
            to: "Deciding",
            guard: "c >= service",
            sync: "hop[OUT]!",
            update: "depart()",
            labels: (330, 90),
            nails: vec![(400, 200)],
        },
        Edge {
            from: "Deciding",
            to: "Serving",
            guard: "busy",
            update: "c = 0",
            labels: (215, 70),
            ..Edge::default()
        },
        Edge {
            from: "Deciding",
            to: "Idle",
            guard: "!busy",
            labels: (20, 220),
            nails: vec![(0, 200)],
            ..Edge::default()
        },
    ]
}

/// PIE sets its probability at the multiples of its update interval, whatever the queue does.
fn pie_updates() -> [Edge; 2] {
    let update = |at, labels, nails| Edge {
        from: at,
        to: at,
        guard: "u >= PIE_UPDATE",
        update: "update_probability(), u = 0",
        labels,
        nails,
        ..Edge::default()
    };
    [
        update("Idle", (-150, -130), vec![(-50, -90), (50, -90)]),
        update("Serving", (300, -130), vec![(350, -90), (450, -90)]),
    ]
}

fn transmitter(model: &Model) -> Template {
    Template {
        name: "Transmitter",
        parameter: "const int[0, FLOWS - 1] f, const count_t START",
        declaration: "// TCP with always something to send.\n".to_owned()
            + include_str!("text/transmitter.uppaal")
            + &model.window.concat()
            + include_str!("text/transmitter_tail.uppaal"),
        locations: vec![
            Location::timed("Closed", (-300, 0), "now <= START"),
            Location::committed("Deciding", (0, 0)),
            Location::timed("Waiting", (0, 250), "now <= timer"),
            Location::timed("Sending", (400, 0), "c <= T_SEGMENT"),
        ],
        edges: transmitter_edges(),
    }
}

fn transmitter_edges() -> Vec<Edge> {
    const ACK: &str = "hop[LEFT_GETS + f]?";
    vec![
        Edge {
            from: "Closed",
            to: "Deciding",
            guard: "now >= START",
            update: "open()",
            labels: (-220, -45),
            ..Edge::default()
        },
        Edge {
            from: "Deciding",
            to: "Sending",
            guard: "may_send() && now < timer",
            update: "c = 0, choose()",
            labels: (90, -130),
            nails: vec![(200, -80)],
            ..Edge::default()
        },
        Edge {
            from: "Deciding",
            to: "Waiting",
            guard: "!may_send() && now < timer",
            labels: (-230, 120),
            nails: vec![(-40, 125)],
            ..Edge::default()
        },
        Edge {
            from: "Deciding",
            to: "Deciding",
            guard: "now >= timer",
            update: "time_out()",
            labels: (-50, -150),
            nails: vec![(-50, -100), (50, -100)],
            ..Edge::default()
        },
        Edge {
            from: "Waiting",
            to: "Deciding",
            sync: ACK,
            update: "ReceiveAck()",
            labels: (50, 110),
            nails: vec![(40, 125)],
            ..Edge::default()
        },
        Edge {
            from: "Waiting",
            to: "Deciding",
            guard: "now >= timer",
            update: "time_out()",
            labels: (230, 200),
            nails: vec![(220, 250), (220, 100)],
            ..Edge::default()
        },
        Edge {
            from: "Sending",
            to: "Deciding",
            guard: "c >= T_SEGMENT",
            sync: "hop[LEFT_SENDS + f]!",
            update: "SendSegment()",
            labels: (240, 15),
            ..Edge::default()
        },
        taking("Sending", (530, -10), [(510, -50), (510, 50)], ACK, "ReceiveAck()"),
    ]
}

fn receiver() -> Template {
    Template {
        name: "Receiver",
        parameter: "const int[0, FLOWS - 1] f",
        declaration: "// TCP that acknowledges every segment.\n".to_owned()
            + include_str!("text/receiver.uppaal"),
        locations: vec![
            Location::passive("Listening", (0, 0)),
            Location::committed("Acknowledging", (400, 0)),
        ],
        edges: vec![
            Edge {
                from: "Listening",
                to: "Acknowledging",
                sync: "hop[RIGHT_GETS + f]?",
                update: "ReceiveSegment()",
                labels: (110, -120),
                nails: vec![(200, -80)],
                ..Edge::default()
            },
            Edge {
                from: "Acknowledging",
                to: "Listening",
                sync: "hop[RIGHT_SENDS + f]!",
                update: "SendAck()",
                labels: (110, 90),
                nails: vec![(200, 80)],
                ..Edge::default()
            },
        ],
    }
}

/// A channel that begins with putting a packet on the link: no queue can form there.
pub(super) fn with_serialisation(model: &Model, bytes: u64, delay: Span) -> u64 {
    us(model.set.network.access_rate.serialisation(bytes)) + us(delay)
}
