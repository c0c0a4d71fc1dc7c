//! One connection in the result.

use schemars::JsonSchema;
use serde::Serialize;

use super::Direction;
use super::bare_acks;
use super::causes::{self, Cause, CauseKind, Conversation};
use super::protocol;
use crate::flow::facts::CapturePoint;
use crate::flow::{FlowReport, Told};
use crate::inferred::Lack;

/// One connection.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Flow {
    /// Number of the connection, from 0 in order of its first packet (Wireshark's `tcp.stream`).
    pub id: u64,
    /// Both ends, `ip:port`, the one that sent first (the client, where the handshake was seen)
    /// first.
    pub endpoints: [String; 2],
    /// First frame of the connection.
    pub first_frame: u64,
    /// Start, seconds from the first packet of the capture.
    pub start_s: f64,
    /// First to last packet, seconds.
    pub duration_s: f64,
    /// The handshake, where it was captured.
    pub handshake: Option<Handshake>,
    /// Where the capture was taken: near which end, as `ip:port`; `None` if it cannot be told.
    pub captured_near: Option<String>,
    /// Packets of a host that the capture lacks altogether, put back by the timestamps that the other echoed.
    pub inferred: u64,
    /// The two directions: from the first endpoint, then from the second.
    pub directions: Vec<Direction>,
    /// What else took time, or ended it, each with its proof.
    pub causes: Vec<Cause>,
    /// What the path said of its packets.
    #[serde(skip)]
    pub(crate) told: [Option<Told>; 2],
}

/// What the handshake agreed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Handshake {
    /// Round trip of the whole path, milliseconds.
    pub rtt_ms: f64,
    /// MSS each end announced, client first.
    pub mss: [Option<u16>; 2],
    /// Window scale each end announced, client first.
    pub window_scale: [Option<u8>; 2],
    /// Both ends permit SACK.
    pub sack: bool,
    /// Both ends use timestamps.
    pub timestamps: bool,
}

impl Flow {
    /// From what the table has left of it; `origin_s` is the time of the capture's first packet.
    pub(crate) fn of(report: FlowReport<Box<Direction>>, origin_s: f64) -> Self {
        let [a, b] = &report.directions;
        let endpoints = report.endpoints.map(|e| e.to_string());
        let (client, server) = (a.facts.stream.offer, b.facts.stream.offer);
        let handshake = client.zip(server).map(|(client, server)| Handshake {
            rtt_ms: a.facts.rtt.map_or(0.0, |r| r.min.as_millis_f64()),
            mss: [client.mss, server.mss],
            window_scale: [client.window_scale, server.window_scale],
            sack: client.sack_permitted && server.sack_permitted,
            timestamps: client.timestamps && server.timestamps,
        });
        let captured_near = match a.facts.vantage.point {
            CapturePoint::Sender => Some(endpoints[0].clone()),
            CapturePoint::Receiver => Some(endpoints[1].clone()),
            CapturePoint::Loopback => Some("both".into()),
            CapturePoint::Between | CapturePoint::Unknown => None,
        };
        let life = report.life;
        let no_bare_acks = bare_acks::are_missing([&a.facts.packets, &b.facts.packets]);
        let judged = |direction: Direction| {
            if no_bare_acks { direction.left_open(Lack::BareAcks) } else { direction }
        };
        let mut flow = Self {
            id: report.id - 1,
            endpoints,
            first_frame: report.first_frame,
            start_s: report.first_time.as_secs_f64() - origin_s,
            duration_s: report.last_time.since(report.first_time).as_secs_f64(),
            handshake,
            captured_near,
            inferred: report.inferred,
            directions: report.directions.into_iter().map(|d| judged(*d.observed)).collect(),
            causes: Vec::new(),
            told: [life.too_big, life.unreachable],
        };
        protocol::agree(&mut flow.directions);
        let causes = causes::cut_off(&flow.conversation(), &life).into_iter().collect();
        Self { causes, ..flow }.with_causes()
    }

    /// The same with what its directions prove, beside how it ended.
    pub(crate) fn with_causes(mut self) -> Self {
        self.causes.retain(|cause| cause.kind == CauseKind::Reset);
        let proved = causes::of(&self.conversation(), &self.directions);
        self.causes.extend(proved);
        self
    }

    fn conversation(&self) -> Conversation<'_> {
        Conversation {
            flow: self.id,
            endpoints: &self.endpoints,
            opened: self.handshake.is_some(),
            near: self.captured_near.as_deref(),
            too_big: self.told[0],
            unreachable: self.told[1],
        }
    }

    /// The greatest causes of all `flows`, and of connections that never came about, the longest first.
    pub(crate) fn ranked_causes(flows: &[Self], mut unopened: Vec<Cause>) -> Vec<Cause> {
        unopened.extend(flows.iter().flat_map(|flow| &flow.causes).cloned());
        unopened.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then(b.count.cmp(&a.count)));
        unopened.truncate(CAUSES_LISTED);
        unopened
    }

    /// Seconds that it lost in stalls.
    pub(crate) fn stalled_s(&self) -> f64 {
        self.directions.iter().fold(0.0, |sum, d| sum + d.stalled_s())
    }
}

/// Causes of the whole capture that are listed; each connection has its own.
const CAUSES_LISTED: usize = 10;
