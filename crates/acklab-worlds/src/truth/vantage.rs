//! Where a capture is taken: at either end, or somewhere between.
//!
//! Both ends' captures are complete and stamped by one clock, so each frame is known with its two times, and one that
//! the link lost with its first. What a tap between them would have seen follows: a frame passes it after its share of
//! the way, of the delay of the frame before it where it was lost behind the tap.

use std::collections::BTreeMap;

use acklab_core::rng::Rng;
use acklab_core::segment::TcpRepr;
use acklab_core::time::Time;
use acklab_core::wire::parse_tcp;

/// A captured frame, raw IP.
pub type Frame = (Time, Vec<u8>);

/// A TCP segment in a frame.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// When, ns.
    pub at: u64,
    /// From the client.
    pub of_client: bool,
    /// Its header.
    pub tcp: TcpRepr,
    /// The IPv4 identification.
    pub id: u16,
}

impl Seen {
    /// The segment in `frame`, if it is one and complete; the client's port is not the server's, `server_port`.
    pub fn of(frame: &Frame, server: std::net::SocketAddr) -> Option<Self> {
        let packet = parse_tcp(&frame.1).ok()?;
        let id = u16::from_be_bytes([*frame.1.get(4)?, *frame.1.get(5)?]);
        let of_client = packet.source != server;
        Some(Self { at: frame.0.as_nanos(), of_client, tcp: packet.segment, id })
    }

    /// What stays the same on its way.
    const fn key(&self) -> (bool, u16, u32, u32, u8, u32) {
        let tcp = &self.tcp;
        (self.of_client, self.id, tcp.seq.0, tcp.ack.0, tcp.flags.0, tcp.payload_len)
    }
}

/// Of each segment in `from`: its index in `to`, where it is one of the client (or of the server) that came to the other end.
/// Of several that look alike (SYN-ACKs have no identification), the latest that can have come in that time did.
pub fn twins(from: &[Seen], to: &[Seen], of_client: bool) -> Vec<Option<usize>> {
    let by_key = |all: &[Seen]| {
        let mut keys: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (index, seen) in all.iter().enumerate().filter(|(_, seen)| seen.of_client == of_client)
        {
            keys.entry(seen.key()).or_default().push(index);
        }
        keys
    };
    let (left, came) = (by_key(from), by_key(to));
    let alone =
        left.iter().filter_map(|(key, left)| match (&left[..], came.get(key).map(Vec::as_slice)) {
            ([left], Some([came])) => Some(to[*came].at.saturating_sub(from[*left].at)),
            _ => None,
        });
    let least = alone.min().unwrap_or(0).saturating_sub(CLOCK_ERROR);
    let mut twins = vec![None; from.len()];
    for (key, came) in &came {
        let left = left.get(key).map_or(&[][..], Vec::as_slice);
        for &index in came {
            let can = |at: &&usize| {
                twins[**at].is_none() && from[**at].at + least <= to[index].at + CLOCK_ERROR
            };
            if let Some(&at) = left.iter().rev().find(can) {
                twins[at] = Some(index);
            }
        }
    }
    twins
}

/// What a tap sees past which `share` of the way from client to server lies.
pub fn between(
    ends: [&[Frame]; 2],
    server: std::net::SocketAddr,
    share: f64,
    seed: u64,
) -> Vec<Frame> {
    let mut rng = Rng::named(seed, "truth/between");
    let parse = |frames: &[Frame]| -> (Vec<usize>, Vec<Seen>) {
        let parse = |(index, frame)| Seen::of(frame, server).map(|segment| (index, segment));
        frames.iter().enumerate().filter_map(parse).unzip()
    };
    let parsed = ends.map(parse);
    let mut frames = Vec::new();
    for end in [0, 1] {
        let (from, to) = (&parsed[end], &parsed[1 - end]);
        let share = if end == 0 { share } else { 1.0 - share };
        let twins = twins(&from.1, &to.1, end == 0);
        let way = |(seen, twin): (&Seen, &Option<usize>)| {
            twin.map(|twin| to.1[twin].at as f64 - seen.at as f64)
        };
        // What was lost behind the tap had taken as long up to there as what came before it.
        let mut usual = from.1.iter().zip(&twins).find_map(way).unwrap_or(0.0);
        for ((seen, twin), index) in from.1.iter().zip(twins).zip(&from.0) {
            if seen.of_client != (end == 0) {
                continue;
            }
            match way((seen, &twin)) {
                Some(way) => usual = way,
                None if rng.chance(share) => continue,
                None => {}
            }
            let at = seen.at as f64 + share * usual;
            frames.push((Time::from_nanos(at as u64), ends[end][*index].1.clone()));
        }
    }
    frames.sort_by_key(|frame| frame.0);
    frames
}

/// Stamps of two processors may differ by so much, ns.
const CLOCK_ERROR: u64 = 50_000;
