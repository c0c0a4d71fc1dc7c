//! What a diagnosis of both ends' captures says of clocks, delays and losses, held against what happened.
//!
//! Both captures of a case are stamped by one clock, so the truth of any offset and drift that is put on the server's stamps
//! is known, and so is each time on the way.

use std::fs;
use std::path::Path;

use acklab_core::time::Time;
use acklab_trace::{Options, diagnose_pair};
use serde::Serialize;

use super::damage::Damage;
use super::store::Kept;
use super::vantage::{Frame, Seen, twins};

/// What is done to the server's capture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// Its clock is ahead by so much at the first frame, ns.
    pub ahead: i64,
    /// And gains so much, parts per million.
    pub drift_ppm: f64,
    /// And this happened to it.
    pub damage: Damage,
    /// A NAT gives the client another address and port on the way.
    pub nat: bool,
}

/// What is tried: one clock; an offset; a day and a drift; an offset where 5 % of the frames were not captured; that behind a NAT.
pub const SHIFTS: [Shift; 5] = [
    Shift { ahead: 0, drift_ppm: 0.0, damage: Damage::Clean, nat: false },
    Shift { ahead: 3_700_000, drift_ppm: 0.0, damage: Damage::Clean, nat: false },
    Shift { ahead: -86_400_000_000_000, drift_ppm: 60.0, damage: Damage::Clean, nat: false },
    Shift { ahead: 250_000_000, drift_ppm: -20.0, damage: Damage::Lost5, nat: false },
    Shift { ahead: 250_000_000, drift_ppm: -20.0, damage: Damage::Lost5, nat: true },
];

/// What came out for one case.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Aligned {
    /// Whether clocks were aligned at all.
    pub aligned: bool,
    /// Whether the true offset lies within the interval that was said, and the true drift.
    pub within: [bool; 2],
    /// How wrong the offset is, ms.
    pub error_ms: f64,
    /// Half of the interval, ms.
    pub half_ms: f64,
    /// Least time on the way, to the server and to the client: as said and in truth, ms.
    pub delays_ms: [[f64; 2]; 2],
    /// Whether both are within the uncertainty that was said.
    pub delays_within: bool,
    /// Lost segments with data, both ways together: as said and in truth.
    pub lost: [u64; 2],
    /// Segments that the capture is said to have missed.
    pub missed: u64,
}

/// Diagnoses both captures of a case together. `room` is a folder for them.
pub fn judge(kept: &Kept, shift: Shift, room: &Path) -> Result<Aligned, String> {
    let server = kept.truth.directions[0].to;
    let first = kept.captures[2].first().map_or(0, |frame| frame.0.as_nanos());
    let moved = |at: u64| -> i64 {
        let gained = (at as f64 - first as f64) * shift.drift_ppm / 1e6;
        shift.ahead + gained as i64
    };
    let shifted: Vec<Frame> = kept.captures[2]
        .iter()
        .map(|(at, bytes)| {
            let at = at.as_nanos();
            let bytes = if shift.nat { translated(bytes, server.port()) } else { bytes.clone() };
            (Time::from_nanos(at.saturating_add_signed(moved(at))), bytes)
        })
        .collect();
    let paths = ["client", "server"].map(|name| room.join(format!("{name}.pcap")));
    let clean = Damage::Clean.apply(&kept.captures[0], server, kept.truth.case.seed);
    let damaged = shift.damage.apply(&shifted, server, kept.truth.case.seed);
    for (path, bytes) in paths.iter().zip([clean, damaged]) {
        fs::write(path, bytes).map_err(|error| error.to_string())?;
    }
    let diagnosis = diagnose_pair(&paths[0], &paths[1], &Options::default())
        .map_err(|(path, error)| format!("{}: {error}", path.display()))?;
    let pair = diagnosis.pair.ok_or("no pair")?;
    let mut aligned = Aligned::default();
    let truth = &kept.truth.directions;
    aligned.lost[1] = truth.iter().map(|direction| direction.lost.len() as u64).sum();
    let Some(shared) = pair.connections.first() else { return Ok(aligned) };
    aligned.lost[0] = shared.ways.iter().map(|way| way.lost_data).sum();
    aligned.missed = shared.ways.iter().map(|way| way.missed).sum();
    let Some(clock) = pair.clock else { return Ok(aligned) };
    aligned.aligned = true;
    // The files may have been turned: then the client's clock is the one that is ahead.
    let is_turned = pair.client == paths[1].display().to_string();
    let sign = if is_turned { -1.0 } else { 1.0 };
    let times = kept.captures[0].iter().map(|frame| frame.0.as_nanos());
    let middle = times.clone().min().unwrap_or(0) / 2 + times.max().unwrap_or(0) / 2;
    let offset = sign * moved(middle) as f64 / 1e6;
    let [low, high] = clock.offset_interval_ms;
    aligned.within[0] = (low - ROUNDING_MS..=high + ROUNDING_MS).contains(&offset);
    let [slow, fast] = clock.drift_interval_ppm;
    aligned.within[1] = (slow - 1.0..=fast + 1.0).contains(&(sign * shift.drift_ppm));
    aligned.error_ms = clock.offset_ms - offset;
    aligned.half_ms = (high - low) / 2.0;
    aligned.delays_within = true;
    for way in [0, 1] {
        let parse = |frames: &[Frame]| -> Vec<Seen> {
            frames.iter().filter_map(|frame| Seen::of(frame, server)).collect()
        };
        let (here, there) = (parse(&kept.captures[2 * way]), parse(&kept.captures[2 - 2 * way]));
        let pairs = here.iter().zip(twins(&here, &there, way == 0));
        let took = pairs.filter_map(|(seen, twin)| Some(there[twin?].at as f64 - seen.at as f64));
        let least = took.fold(f64::INFINITY, f64::min) / 1e6;
        let said = shared.ways[if is_turned { 1 - way } else { way }].delay_ms;
        let Some(said) = said.filter(|_| least.is_finite()) else { continue };
        aligned.delays_ms[way] = [said.min, least];
        aligned.delays_within &= (said.min - least).abs() <= said.uncertainty + ROUNDING_MS;
    }
    Ok(aligned)
}

/// An IPv4 packet whose client has another address and port (RFC 3022 section 2.2).
fn translated(packet: &[u8], server: u16) -> Vec<u8> {
    let mut packet = packet.to_vec();
    let tcp = usize::from(packet[0] & 0xf) * 4;
    let to_server = packet[tcp + 2..tcp + 4] == server.to_be_bytes();
    let (address, port) = if to_server { (12, tcp) } else { (16, tcp + 2) };
    packet[address..address + 4].copy_from_slice(&[203, 0, 113, 77]);
    packet[port..port + 2].copy_from_slice(&1_025_u16.to_be_bytes());
    packet
}

/// Stamps in files are whole nanoseconds, drift is put on in floats.
const ROUNDING_MS: f64 = 0.05;
