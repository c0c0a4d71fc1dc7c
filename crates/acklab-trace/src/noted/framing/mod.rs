//! Message boundaries in a byte stream, by the framing of length-prefixed protocols, or by lines of text ([`lines`]).
//!
//! A [`FrameReader`] follows every protocol of the table [`PROTOCOLS`] through the stream at once: each
//! reads the header where it expects one, jumps by the length it finds there, and drops out at the
//! first header that is not valid. What remains after a few frames is the protocol. Payload that
//! was not captured (snapped frames) may be jumped over, a header may not. Only in-order new data
//! counts; after a gap the reader waits for a segment that begins with a valid header.

mod bare;
mod in_band;
mod lines;
mod protocols;

use acklab_core::time::Time;

pub(crate) use bare::BareHeaders;
use in_band::InBand;
use lines::Lines;
pub(crate) use lines::{LINES, bare_lines};
use protocols::{HEADER_MAX, Header, PROTOCOLS, Protocol};

/// Frames in a row that make a protocol believable.
const FRAMES_MIN: u64 = 3;
/// The same of a run that has ended, of headers that tell little.
const FRAMES_UNTOLD: u64 = 20;
/// Segments in a row at whose start a protocol may begin anew, for captures that begin mid-message or lack segments.
const RESTARTS_MAX: u8 = 16;
/// Different frame sizes that are counted.
const SIZES_MAX: usize = 8;

/// One protocol's way through the stream.
#[derive(Clone, Debug)]
struct Track {
    protocol: &'static Protocol,
    /// Where the next header begins.
    boundary: u64,
    header: [u8; HEADER_MAX],
    have: u8,
    frames: u64,
    /// Frames of the longest run that the protocol explains, which may have ended where the capture lacks something.
    proven: u64,
    /// Segments seen, and those that ended with a frame.
    segments: u64,
    aligned: u64,
    alive: bool,
    restarts: u8,
}

/// Follows the framing of one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct FrameReader {
    tracks: Vec<Track>,
    started: bool,
    found: Found,
    lines: Lines,
}

/// What the headers of the protocol that leads said.
#[derive(Clone, Debug, Default)]
struct Found {
    /// Frame sizes, each with its number.
    sizes: Vec<(u32, u64)>,
    /// Segments that end within the frame that they begin, and those that end with its header.
    cut: u64,
    cut_behind_header: u64,
    in_band: InBand,
}

/// A stretch of the stream that has come.
#[derive(Clone, Copy)]
pub(crate) struct Piece<'a> {
    pub(crate) time: Time,
    pub(crate) offset: u64,
    /// Bytes on the wire, of which `payload` were captured.
    pub(crate) len: u32,
    pub(crate) payload: &'a [u8],
}

/// What framing says of a direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Framing {
    /// Name of the protocol.
    pub(crate) protocol: &'static str,
    /// Whether other bytes hardly ever look like it.
    pub(crate) telling: bool,
    /// Complete frames.
    pub(crate) frames: u64,
    /// The frame size that dominates (60 % or more), bytes.
    pub(crate) size: Option<u32>,
    /// Of the frames that came in pieces, most were cut behind their header.
    pub(crate) header_apart: bool,
    /// 0 to 1, from the number of consecutive valid frames.
    pub(crate) confidence: f64,
}

impl FrameReader {
    /// New in-order data; returns the number of frames complete by its end, 0 if no framing fits.
    pub(crate) fn on_data(&mut self, piece: Piece<'_>) -> u64 {
        if !self.started {
            self.started = true;
            self.tracks = PROTOCOLS.iter().map(|p| Track::new(p, piece.offset)).collect();
        }
        let lead_before = self.lead().map(|t| t.protocol.name);
        for track in &mut self.tracks {
            let leads = lead_before.is_none_or(|lead| lead == track.protocol.name);
            track.on_data(piece, leads.then_some(&mut self.found));
        }
        self.tracks.retain(|t| t.alive || t.restarts < RESTARTS_MAX);
        self.lines.on_data(piece.len, piece.payload);
        self.lead().map_or(self.lines.complete, |t| t.frames)
    }

    /// Whether any protocol may still fit.
    pub(crate) fn is_live(&self) -> bool {
        !self.started || !self.tracks.is_empty() || self.lines.is_live()
    }

    /// Delay of each message above the least of all, by the time stamps in the data, milliseconds;
    /// empty where there are none.
    pub(crate) fn stamped_delays_ms(&self) -> Vec<f64> {
        self.found.in_band.delays_ms()
    }

    /// The protocol that fits, if one does.
    pub(crate) fn framing(&self) -> Option<Framing> {
        let sure = |frames: u64| frames as f64 / (frames as f64 + 1.0);
        let proven = |track: &&Track| track.proven.max(track.run());
        // Headers that tell little may fit a few bytes of anything.
        let past = self.tracks.iter().rev().max_by_key(proven).filter(|track| {
            proven(track) >= if track.protocol.telling { 1 } else { FRAMES_UNTOLD }
        });
        let Some(lead) = self.lead().filter(|track| track.run() > 0).or(past) else {
            let frames = self.lines.complete;
            let fit = self.lead().is_none() && self.lines.fit();
            return fit.then(|| Framing {
                protocol: LINES,
                telling: false,
                frames,
                size: None,
                header_apart: false,
                confidence: sure(frames),
            });
        };
        let sizes = &self.found.sizes;
        let total: u64 = sizes.iter().map(|s| s.1).sum();
        let size = sizes.iter().max_by_key(|s| s.1).filter(|s| s.1 * 10 >= total * 6).map(|s| s.0);
        Some(Framing {
            protocol: lead.protocol.name,
            telling: lead.protocol.telling,
            frames: proven(&lead),
            size,
            header_apart: self.found.cut_behind_header * 2 > self.found.cut,
            confidence: sure(proven(&lead)),
        })
    }

    fn lead(&self) -> Option<&Track> {
        self.tracks.iter().filter(|t| t.alive && t.frames > 0).rev().max_by_key(|t| t.frames)
    }
}

impl Track {
    /// Whether frames end where segments end: what an application sends at once it writes whole.
    /// Headers with several fields to check need no such support.
    fn is_aligned(&self) -> bool {
        self.protocol.telling || self.aligned * 2 >= self.segments.min(self.frames)
    }

    /// Frames of the present run, if they are believable.
    fn run(&self) -> u64 {
        if self.frames >= FRAMES_MIN && self.is_aligned() { self.frames } else { 0 }
    }

    fn new(protocol: &'static Protocol, boundary: u64) -> Self {
        Self {
            protocol,
            boundary,
            header: [0; HEADER_MAX],
            have: 0,
            frames: 0,
            proven: 0,
            segments: 0,
            aligned: 0,
            alive: true,
            restarts: 0,
        }
    }

    fn on_data(&mut self, piece: Piece<'_>, mut found: Option<&mut Found>) {
        let Piece { time, offset, len, payload } = piece;
        if !self.alive {
            let run = self.run();
            self.proven = self.proven.max(run);
            self.restarts = if run > 0 { 0 } else { self.restarts + 1 };
            (self.alive, self.boundary, self.have, self.frames) = (true, offset, 0, 0);
            (self.segments, self.aligned) = (0, 0);
        }
        let end = offset + u64::from(len);
        let mut frame = None;
        loop {
            let at = self.boundary + u64::from(self.have);
            if at >= end {
                self.segments += 1;
                self.aligned += u64::from(self.boundary == end);
                if let (Some(found), Some(start)) = (found, frame)
                    && self.boundary != end
                {
                    found.cut += 1;
                    let head =
                        self.protocol.heads.iter().any(|head| start + u64::from(*head) == end);
                    found.cut_behind_header += u64::from(head);
                }
                return;
            }
            if self.have == 0 {
                frame = Some(self.boundary);
            }
            let known = at.checked_sub(offset).and_then(|i| payload.get(i as usize));
            let Some(byte) = known else {
                self.alive = false;
                return;
            };
            self.header[usize::from(self.have)] = *byte;
            self.have += 1;
            match (self.protocol.header)(&self.header[..usize::from(self.have)]) {
                Header::More => {}
                Header::Invalid => {
                    self.alive = false;
                    return;
                }
                Header::Frame(total) => {
                    if let Some(found) = &mut found {
                        let header = &self.header[..usize::from(self.have)];
                        count_size(&mut found.sizes, total);
                        found.in_band.on_header(self.protocol.name, time, header);
                    }
                    self.boundary += u64::from(total);
                    self.have = 0;
                    self.frames += 1;
                }
            }
        }
    }
}

fn count_size(sizes: &mut Vec<(u32, u64)>, size: u32) {
    if let Some(slot) = sizes.iter_mut().find(|s| s.0 == size) {
        slot.1 += 1;
    } else if sizes.len() < SIZES_MAX {
        sizes.push((size, 1));
    } else if let Some(rarest) = sizes.iter_mut().min_by_key(|s| s.1) {
        *rarest = (size, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(reader: &mut FrameReader, offset: u64, len: u32, payload: &[u8]) {
        reader.on_data(Piece { time: Time::ZERO, offset, len, payload });
    }

    fn modbus(transaction: u8, len: u8) -> Vec<u8> {
        let mut frame = vec![0, transaction, 0, 0, 0, len, 1, 3];
        frame.resize(6 + usize::from(len), 7);
        frame
    }

    #[test]
    fn frames_cut_across_segments_are_counted_whole() {
        let stream: Vec<u8> = (0..50).flat_map(|i| modbus(i, 20)).collect();
        let mut reader = FrameReader::default();
        let mut offset = 0;
        for piece in stream.chunks(7) {
            feed(&mut reader, offset, piece.len() as u32, piece);
            offset += piece.len() as u64;
        }
        let framing = reader.framing().expect("fits");
        assert_eq!(framing.protocol, "modbus_tcp");
        assert_eq!((framing.frames, framing.size), (50, Some(26)));
    }

    #[test]
    fn text_is_no_framing() {
        let text = b"GET / HTTP/1.1\r\nHost: plant.example\r\nAccept: text/html\r\n\r\n".repeat(20);
        let mut reader = FrameReader::default();
        for (i, piece) in text.chunks(100).enumerate() {
            feed(&mut reader, i as u64 * 100, piece.len() as u32, piece);
        }
        assert_eq!(reader.framing(), None);
    }

    #[test]
    fn a_capture_that_begins_mid_message_finds_the_framing_at_the_next_one() {
        let mut reader = FrameReader::default();
        feed(&mut reader, 0, 9, &[9; 9]);
        let mut offset = 9;
        for i in 0..10 {
            let frame = modbus(i, 12);
            feed(&mut reader, offset, frame.len() as u32, &frame);
            offset += frame.len() as u64;
        }
        assert_eq!(reader.framing().expect("fits").frames, 10);
    }

    /// Behind what the capture lacks the stream begins in the middle of a message, as often as it likes.
    #[test]
    fn what_a_capture_lacks_does_not_undo_what_was_proven() {
        let mut reader = FrameReader::default();
        let mut offset = 0;
        for i in 0..200 {
            let frame = modbus(i, 12);
            let lacks = i % 10 == 9;
            if !lacks {
                feed(&mut reader, offset, 9, &frame[..9]);
                feed(&mut reader, offset + 9, frame.len() as u32 - 9, &frame[9..]);
            }
            offset += frame.len() as u64;
        }
        feed(&mut reader, offset + 9, 9, &[9; 9]);
        let framing = reader.framing().expect("fits");
        assert_eq!((framing.protocol, framing.frames), ("modbus_tcp", 9));
    }

    #[test]
    fn lines_are_messages_where_they_gather_and_nowhere_else() {
        let told = |lines: &dyn Fn(usize) -> usize, begin: &str| {
            let mut reader = FrameReader::default();
            let mut offset = 0;
            for i in 0..40 {
                let line = |n: usize| format!("{begin} {}\n", i * 31 + n);
                let text: String = (0..lines(i)).map(line).collect();
                feed(&mut reader, offset, text.len() as u32, text.as_bytes());
                offset += text.len() as u64;
            }
            reader.framing().map(|framing| (framing.protocol, framing.frames))
        };
        let gathered = |i: usize| if i == 0 { 1 } else { 1 + i % 5 };
        let lines = (0..40).map(gathered).sum::<usize>() as u64;
        assert_eq!(told(&gathered, "tick"), Some((LINES, lines)));
        // One each; three each; several at once from the beginning; and no text.
        assert_eq!(told(&|_| 1, "tick"), None);
        assert_eq!(told(&|i| if i == 0 { 1 } else { 3 }, "tick"), None);
        assert_eq!(told(&|i| 2 + i % 5, "tick"), None);
        assert_eq!(told(&gathered, "\u{1}"), None);
        assert_eq!(bare_lines(b"user 7\r\n\xc3\xa4\n"), b"xxxxxxx\nxx\n");
    }

    #[test]
    fn a_payload_that_was_not_captured_is_jumped_over_but_a_header_is_not() {
        let tls = |n: u16| {
            let mut f = vec![23, 3, 3];
            f.extend(n.to_be_bytes());
            f
        };
        let mut reader = FrameReader::default();
        for i in 0..5u64 {
            feed(&mut reader, i * 205, 205, &tls(200));
        }
        assert_eq!(reader.framing().expect("fits").frames, 5);
        let mut cut = FrameReader::default();
        for i in 0..5u64 {
            feed(&mut cut, i * 410, 410, &tls(200));
        }
        assert_eq!(cut.framing(), None);
    }
}
