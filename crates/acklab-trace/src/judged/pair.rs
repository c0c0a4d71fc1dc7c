//! What two captures of the same connections say together, in the result.

use schemars::JsonSchema;
use serde::Serialize;

/// Two captures, one at each end.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Pair {
    /// Name of the file that was captured at the clients.
    pub client: String,
    /// Name of the file that was captured at the servers.
    pub server: String,
    /// The server's clock beside the client's; `None`: it could not be aligned.
    pub clock: Option<Clock>,
    /// Connections that both files hold, the longest waits first.
    pub connections: Vec<Shared>,
    /// What limits the comparison, one sentence each.
    pub notes: Vec<String>,
}

impl Pair {
    /// What the server's capture calls the two ends that the client's calls `endpoints`.
    pub(crate) fn at_server(&self, endpoints: &[String; 2]) -> [String; 2] {
        for shared in &self.connections {
            let Some(translated) = &shared.translated else { continue };
            let [client, server] = translated.clone();
            let [here, there] = endpoints;
            if shared.endpoints == [here, there].map(String::as_str) {
                return [client, server];
            }
            if shared.endpoints == [there, here].map(String::as_str) {
                return [server, client];
            }
        }
        endpoints.clone()
    }
}

/// The server's clock less the client's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Clock {
    /// In the middle of the capture, milliseconds: if both ways take equally long at best.
    pub offset_ms: f64,
    /// What it may be, whatever the ways take, milliseconds: least, most.
    pub offset_interval_ms: [f64; 2],
    /// By how much the server's clock is faster, parts per million.
    pub drift_ppm: f64,
    /// What that may be: least, most.
    pub drift_interval_ppm: [f64; 2],
    /// Packets found in both captures.
    pub matched: u64,
    /// No straight line fits, by so much: a clock was set meanwhile, or stamps are wrong, milliseconds; 0 where one does.
    pub misfit_ms: f64,
}

/// A connection that both captures hold.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Shared {
    /// Client and server, `ip:port`, as the client's capture has them.
    pub endpoints: [String; 2],
    /// The same as the server's capture has them, where a NAT changes them on the way.
    pub translated: Option<[String; 2]>,
    /// To the server, to the client.
    pub ways: [Way; 2],
    /// Which host waited.
    pub waited: Waited,
}

/// One direction of the path.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Way {
    /// Segments that left the sender, as its own capture has them.
    pub sent: u64,
    /// Those of them that came to the other end.
    pub arrived: u64,
    /// Time on the way, if the clocks are as aligned; `None` where they are not.
    pub delay_ms: Option<OneWay>,
    /// Segments with data that left and did not come, and whose data was sent again.
    pub lost_data: u64,
    /// Segments without data that left and did not come: lost, or missed by the capture.
    pub lost_acks: u64,
    /// The first lost segments with data.
    pub lost: Vec<Lost>,
    /// Segments whose data was acknowledged without being sent again, yet the capture at the receiver does not hold them.
    pub missed: u64,
    /// Segments that came and that the sender's capture does not hold: it missed them, or something on the way made them.
    pub from_nowhere: u64,
    /// Among them resets: something between the hosts ends connections.
    pub foreign_resets: u64,
    /// How long the receiver kept pure ACKs of this direction's data, by its own clock.
    pub ack_kept_ms: Option<Kept>,
}

/// One-way delays, milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct OneWay {
    /// Least.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// Most.
    pub max: f64,
    /// All of them may be longer or shorter by this, for the offset of the clocks may; what one way gains the other loses.
    pub uncertainty: f64,
}

/// How long something was kept, milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Kept {
    /// How many.
    pub count: u64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// Most.
    pub max: f64,
}

/// A segment with data that left one host and did not come to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Lost {
    /// Its frame in the sender's capture.
    pub frame: u64,
    /// Payload bytes.
    pub bytes: u32,
}

/// Where the time between the first and the last data went, seconds. Each host's part is measured by its own clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Waited {
    /// The client had everything that was sent to it and had not yet written; or its writes were held.
    pub client_s: f64,
    /// The same of the server.
    pub server_s: f64,
    /// Data was on its way, or was being sent again.
    pub network_s: f64,
    /// Part of `client_s` in which the client's TCP held writes back.
    pub client_held_s: f64,
    /// Part of `server_s` in which the server's TCP held writes back.
    pub server_held_s: f64,
    /// Times that the turn passed from one host to the other.
    pub turns: u64,
}
