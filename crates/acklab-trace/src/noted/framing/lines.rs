//! Lines of text as messages: logs, JSON by lines, NMEA, metrics.
//!
//! Where the first segment is a line at most, which nothing held back, and later ones carry various numbers of lines, they
//! gathered. Where all have the same few lines, or the first has several, a message may be more than a line (HTTP, SMTP),
//! and lines are no framing.

/// Name of the framing.
pub(crate) const LINES: &str = "lines";

/// Follows one direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines {
    out: bool,
    /// Complete lines, segments, and those of them that end with a line.
    pub(super) complete: u64,
    segments: u64,
    aligned: u64,
    /// Which numbers of lines segments had, one bit each.
    numbers: u64,
}

impl Lines {
    /// New in-order data: `len` bytes on the wire, of which `payload` were captured.
    pub(super) fn on_data(&mut self, len: u32, payload: &[u8]) {
        if self.out {
            return;
        }
        let text = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t' | b'\r' | b'\n' | 0x80..);
        let whole = payload.len() == len as usize;
        let lines = payload.split(|byte| *byte == b'\n').count() as u64 - 1;
        self.out = !whole || !payload.iter().all(text) || (self.segments == 0 && lines > 1);
        self.complete += lines;
        self.segments += 1;
        self.aligned += u64::from(payload.ends_with(b"\n"));
        self.numbers |= 1 << lines.min(63);
    }

    /// Whether they may still be messages.
    pub(super) fn is_live(&self) -> bool {
        !self.out
    }

    /// Whether they are, by what was seen.
    pub(super) fn fit(&self) -> bool {
        let various = (self.numbers & !1).count_ones() >= VARIOUS;
        !self.out && various && self.segments >= SEGMENTS_MIN && self.aligned * 2 >= self.segments
    }
}

/// A payload of which nothing but the ends of its lines is left.
pub(crate) fn bare_lines(payload: &[u8]) -> Vec<u8> {
    payload.iter().map(|byte| if *byte == b'\n' { b'\n' } else { b'x' }).collect()
}

/// So many numbers of lines in a segment are no program's choice.
const VARIOUS: u32 = 4;
/// Fewer segments are a greeting, or a few replies.
const SEGMENTS_MIN: u64 = 20;
