//! What happens to captures on their way to the person who diagnoses: each damage a function of the frames and a seed.

use acklab_core::rng::Rng;
use acklab_core::time::{Span, Time};
use acklab_core::wire::parse_tcp;
use acklab_trace::capture::{CaptureWriter, LinkType, WriterOptions};
use std::net::SocketAddr;

use super::vantage::Frame;

/// A damage. A merged capture needs both ends' frames and is made by [`merged`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// None.
    Clean,
    /// Only the frames from client to server were captured.
    ToServer,
    /// Only those from server to client.
    ToClient,
    /// 1 % of the frames were not captured.
    Lost1,
    /// 5 % of the frames were not captured.
    Lost5,
    /// 2 % of neighbouring frames stand in the wrong order, with each other's time.
    Swapped,
    /// Every frame was captured twice, 20 us apart.
    Doubled,
    /// Times are wrong by a normal error of 0.1 ms.
    Noise01,
    /// Times are wrong by a normal error of 1 ms.
    Noise1,
    /// Times were cut to milliseconds.
    Millis,
    /// The capture began when 40 % of the time was over.
    MidStart,
    /// 60 bytes of each IP packet were kept.
    Snapped,
    /// `tcpdump -i any`: Linux cooked headers.
    Any,
    /// Both ends' captures in one file, the server's clock 3.7 ms ahead.
    Merged,
}

impl Damage {
    /// All, the first of which is none.
    pub const ALL: [Self; 14] = [
        Self::Clean,
        Self::ToServer,
        Self::ToClient,
        Self::Lost1,
        Self::Lost5,
        Self::Swapped,
        Self::Doubled,
        Self::Noise01,
        Self::Noise1,
        Self::Millis,
        Self::MidStart,
        Self::Snapped,
        Self::Any,
        Self::Merged,
    ];

    /// Its word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::ToServer => "to-server",
            Self::ToClient => "to-client",
            Self::Lost1 => "lost-1",
            Self::Lost5 => "lost-5",
            Self::Swapped => "swapped",
            Self::Doubled => "doubled",
            Self::Noise01 => "noise-0.1ms",
            Self::Noise1 => "noise-1ms",
            Self::Millis => "millis",
            Self::MidStart => "mid-start",
            Self::Snapped => "snapped",
            Self::Any => "any",
            Self::Merged => "merged",
        }
    }

    /// How wrong a time may be, ms.
    pub const fn error_ms(self) -> f64 {
        match self {
            Self::Noise01 => 0.4,
            Self::Noise1 => 4.0,
            Self::Millis => 1.0,
            _ => 0.0,
        }
    }

    /// The capture that is left of `frames`. `server` tells directions.
    pub fn apply(self, frames: &[Frame], server: SocketAddr, seed: u64) -> Vec<u8> {
        let mut rng = Rng::named(seed, self.name());
        let of_client = |frame: &Frame| parse_tcp(&frame.1).is_ok_and(|tcp| tcp.source != server);
        let mut frames: Vec<Frame> = frames.to_vec();
        match self {
            Self::Clean | Self::Snapped | Self::Any | Self::Merged => {}
            Self::ToServer => frames.retain(of_client),
            Self::ToClient => frames.retain(|frame| !of_client(frame)),
            Self::Lost1 => frames.retain(|_| !rng.chance(0.01)),
            Self::Lost5 => frames.retain(|_| !rng.chance(0.05)),
            Self::Swapped => {
                for index in 1..frames.len() {
                    if rng.chance(0.02) {
                        let (earlier, later) = frames.split_at_mut(index);
                        let (one, other) = (&mut earlier[index - 1], &mut later[0]);
                        std::mem::swap(&mut one.1, &mut other.1);
                    }
                }
            }
            Self::Doubled => {
                let twice =
                    |(at, bytes): Frame| [(at, bytes.clone()), (at + Span::from_micros(20), bytes)];
                frames = frames.into_iter().flat_map(twice).collect();
                frames.sort_by_key(|frame| frame.0);
            }
            Self::Noise01 => noise(&mut frames, 0.1e6, &mut rng),
            Self::Noise1 => noise(&mut frames, 1e6, &mut rng),
            Self::Millis => {
                for frame in &mut frames {
                    frame.0 = Time::from_nanos(frame.0.as_nanos() / 1_000_000 * 1_000_000);
                }
            }
            Self::MidStart => {
                let (first, last) = (frames.first().map(|f| f.0), frames.last().map(|f| f.0));
                if let (Some(first), Some(last)) = (first, last) {
                    let begin = first.as_nanos() + (last.as_nanos() - first.as_nanos()) * 2 / 5;
                    frames.retain(|frame| frame.0.as_nanos() >= begin);
                }
            }
        }
        self.written(&frames, &of_client)
    }

    fn written(self, frames: &[Frame], of_client: &dyn Fn(&Frame) -> bool) -> Vec<u8> {
        let link = if self == Self::Any { LinkType::LINUX_SLL } else { LinkType::RAW };
        let snap_len =
            if self == Self::Snapped { SNAPPED } else { WriterOptions::default().snap_len };
        let options = WriterOptions { link, snap_len, ..WriterOptions::default() };
        let mut writer = CaptureWriter::new(Vec::new(), options).expect("memory takes everything");
        for frame in frames {
            let mut bytes = Vec::new();
            if self == Self::Any {
                // Packet type (4: sent by us, 0: to us), ARPHRD_NONE, no address, IPv4.
                bytes.extend([0, if of_client(frame) { 4 } else { 0 }, 0xff, 0xfe, 0, 0]);
                bytes.extend([0; 8]);
                bytes.extend([0x08, 0x00]);
            }
            bytes.extend(&frame.1);
            let length = bytes.len() as u32;
            writer.write_frame(frame.0, &bytes, length).expect("memory takes everything");
        }
        writer.finish().expect("memory takes everything")
    }
}

/// Both ends' frames in one capture in the order of their stamps.
pub fn merged(ends: [&[Frame]; 2], server: SocketAddr, seed: u64) -> Vec<u8> {
    let ahead = |frame: &Frame| (frame.0 + AHEAD, frame.1.clone());
    let mut frames: Vec<Frame> = ends[0].to_vec();
    frames.extend(ends[1].iter().map(ahead));
    frames.sort_by_key(|frame| frame.0);
    Damage::Merged.apply(&frames, server, seed)
}

fn noise(frames: &mut [Frame], deviation: f64, rng: &mut Rng) {
    for frame in frames {
        let at = frame.0.as_nanos() as f64 + rng.normal(0.0, deviation);
        // Whole numbers of this size keep 256 ns.
        frame.0 = Time::from_nanos(at as u64);
    }
}

/// Bytes of an IP packet: its header, TCP's, and a time stamp option.
const SNAPPED: u32 = 60;
/// The server's clock in a merged capture.
const AHEAD: Span = Span::from_micros(3700);
