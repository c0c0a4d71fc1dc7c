//! The ladder diagram: two hosts, time downwards, packets as arrows, waits as shaded bands.
//!
//! Drawn as SVG here rather than with Vega-Lite, because it must be readable without a script and
//! because its time axis is not linear: gaps between events are drawn at least [`GAP_MIN_PX`] and at
//! most [`GAP_MAX_PX`] apart, so that a 0.1 ms path and a 200 ms wait fit one picture. Times are
//! therefore written beside every event.
//!
//! Colours are CSS variables of the page (`var(--…)`), so that the drawing follows the reader's
//! light or dark scheme and the printer's.

use std::fmt::Write as _;

/// One exchange between two hosts.
#[derive(Clone, Debug, Default)]
pub struct Ladder {
    /// The host on the left, by custom the one whose data waits.
    pub left: Host,
    pub right: Host,
    /// Where the packets were recorded.
    pub capture: CapturePoint,
    pub arrows: Vec<Arrow>,
    pub holds: Vec<Hold>,
    /// What happened inside a host.
    pub notes: Vec<Note>,
}

/// A host of a [`Ladder`].
#[derive(Clone, Debug, Default)]
pub struct Host {
    /// Address and port, or name.
    pub name: String,
    /// What it does here: "sends 48-byte messages, Nagle on".
    pub role: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Left,
    Right,
}

/// Where the packets of a [`Ladder`] were recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CapturePoint {
    /// At the left host: its times are measured, the right host's are estimates.
    Left,
    /// At the right host.
    Right,
    /// On the way between them.
    Between,
    /// Nowhere: a simulation knows both ends exactly.
    #[default]
    Simulated,
}

/// A packet. Times are ms from the ladder's origin.
#[derive(Clone, Debug)]
pub struct Arrow {
    /// The host that sent it.
    pub from: Side,
    /// When it left.
    pub sent_ms: f64,
    /// When it arrived.
    pub received_ms: f64,
    /// What it carried: "48 B", "ACK".
    pub label: String,
    pub kind: ArrowKind,
    /// Frame number in the capture.
    pub frame: Option<u64>,
}

/// How an [`Arrow`] is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrowKind {
    /// Data that left when it was written.
    Data,
    /// Data that had been held back.
    HeldData,
    /// An acknowledgment without data.
    Ack,
}

/// A wait, as a band along its host's line. Times are ms from the ladder's origin.
#[derive(Clone, Debug)]
pub struct Hold {
    /// The host that waits.
    pub side: Side,
    pub from_ms: f64,
    pub to_ms: f64,
    /// What waits and why: "96 B held by Nagle"; the duration is added.
    pub label: String,
}

/// What happened inside a host, such as an application's write.
#[derive(Clone, Debug)]
pub struct Note {
    pub side: Side,
    /// When, in ms from the ladder's origin.
    pub at_ms: f64,
    pub label: String,
}

impl Ladder {
    /// The drawing as an SVG element; `alt` is its text alternative.
    pub(super) fn to_svg(&self, alt: &str) -> String {
        let axis = TimeAxis::new(self.instants());
        let height = axis.bottom() + 34.0;
        let mut svg = format!(
            r#"<svg class="ladder" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0}" role="img" font-family="system-ui, sans-serif" font-size="13"><title>{}</title>"#,
            escape(alt)
        );
        self.draw_hosts(&mut svg, axis.bottom() + 16.0);
        for hold in &self.holds {
            draw_hold(&mut svg, hold, &axis);
        }
        for arrow in &self.arrows {
            draw_arrow(&mut svg, arrow, &axis);
        }
        self.draw_times(&mut svg, &axis);
        svg.push_str("</svg>");
        svg
    }

    /// All instants that stand at different heights.
    fn instants(&self) -> Vec<f64> {
        let arrows = self.arrows.iter().flat_map(|arrow| [arrow.sent_ms, arrow.received_ms]);
        let holds = self.holds.iter().flat_map(|hold| [hold.from_ms, hold.to_ms]);
        let notes = self.notes.iter().map(|note| note.at_ms);
        arrows.chain(holds).chain(notes).collect()
    }

    fn draw_hosts(&self, svg: &mut String, bottom: f64) {
        for (host, x, here) in [
            (&self.left, LEFT_X, self.capture == CapturePoint::Left),
            (&self.right, RIGHT_X, self.capture == CapturePoint::Right),
        ] {
            put_text(svg, x, 20.0, "middle", "font-weight=\"600\" font-size=\"14\"", &host.name);
            put_text(svg, x, 38.0, "middle", MUTED, &host.role);
            let _ = write!(
                svg,
                r#"<line x1="{x}" y1="{LINE_TOP}" x2="{x}" y2="{bottom:.1}" stroke="var(--ink)" stroke-width="2"/>"#
            );
            if here {
                draw_capture_point(svg, x, "captured here");
            }
        }
        if self.capture == CapturePoint::Between {
            draw_capture_point(svg, f64::midpoint(LEFT_X, RIGHT_X), "captured between the hosts");
        }
    }

    /// Writes each event's time outside its host's line; times that fall on one height once, and
    /// none where it would touch the one above.
    fn draw_times(&self, svg: &mut String, axis: &TimeAxis) {
        for side in [Side::Left, Side::Right] {
            let ends = self
                .arrows
                .iter()
                .map(|arrow| if arrow.from == side { arrow.sent_ms } else { arrow.received_ms });
            let mut events: Vec<(f64, &str)> = ends.map(|at| (at, "")).collect();
            let notes = self.notes.iter().filter(|note| note.side == side);
            events.extend(notes.map(|note| (note.at_ms, note.label.as_str())));
            events.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.len().cmp(&a.1.len())));
            let (x, anchor) = match side {
                Side::Left => (LEFT_X - 20.0, "end"),
                Side::Right => (RIGHT_X + 20.0, "start"),
            };
            let mut last_y = f64::NEG_INFINITY;
            for (at, words) in events {
                let y = axis.y(at);
                if y - last_y < 14.0 {
                    continue;
                }
                last_y = y;
                let text = match words {
                    "" => format!("{} ms", millis(at)),
                    _ => format!("{} ms: {words}", millis(at)),
                };
                put_text(svg, x, y + 4.0, anchor, MUTED, &text);
            }
        }
    }
}

/// Maps ms to a height: monotone, piecewise linear between the events.
struct TimeAxis {
    /// (ms, y), rising in both.
    knots: Vec<(f64, f64)>,
}

impl TimeAxis {
    fn new(mut instants: Vec<f64>) -> Self {
        instants.retain(|at| at.is_finite());
        instants.sort_by(f64::total_cmp);
        instants.dedup_by(|b, a| *b - *a < SAME_INSTANT_MS);
        let widest = instants.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
        let mut y = LINE_TOP + 34.0;
        let mut knots: Vec<(f64, f64)> = Vec::with_capacity(instants.len());
        for at in instants {
            if let Some(&(before, _)) = knots.last() {
                y += GAP_MIN_PX + (GAP_MAX_PX - GAP_MIN_PX) * (at - before) / widest;
            }
            knots.push((at, y));
        }
        Self { knots }
    }

    fn bottom(&self) -> f64 {
        self.knots.last().map_or(LINE_TOP + 34.0, |knot| knot.1)
    }

    fn y(&self, at: f64) -> f64 {
        match self.knots.partition_point(|knot| knot.0 <= at) {
            0 => self.knots.first().map_or(LINE_TOP, |knot| knot.1),
            index if index == self.knots.len() => self.bottom(),
            index => {
                let (t0, y0) = self.knots[index - 1];
                let (t1, y1) = self.knots[index];
                y0 + (y1 - y0) * (at - t0) / (t1 - t0)
            }
        }
    }
}

fn line_x(side: Side) -> f64 {
    match side {
        Side::Left => LEFT_X,
        Side::Right => RIGHT_X,
    }
}

fn draw_capture_point(svg: &mut String, x: f64, words: &str) {
    let _ = write!(svg, r#"<path d="M{x} {LINE_TOP} l-6 -9 h12 z" fill="var(--capture)"/>"#);
    put_text(svg, x + 10.0, LINE_TOP - 2.0, "start", CAPTURE, words);
}

fn draw_hold(svg: &mut String, hold: &Hold, axis: &TimeAxis) {
    let (top, bottom) = (axis.y(hold.from_ms), axis.y(hold.to_ms));
    let x = line_x(hold.side) - BAND_PX / 2.0;
    let _ = write!(
        svg,
        r#"<rect x="{x}" y="{top:.1}" width="{BAND_PX}" height="{:.1}" rx="3" fill="var(--held)" fill-opacity="0.3" stroke="var(--held)"/>"#,
        (bottom - top).max(2.0)
    );
    let (x, anchor) = match hold.side {
        Side::Left => (8.0, "start"),
        Side::Right => (WIDTH - 8.0, "end"),
    };
    let lines = wrapped(&hold.label, LABEL_CHARS);
    let first = f64::midpoint(top, bottom) - 8.0 * lines.len() as f64;
    put_text(svg, x, first, anchor, DURATION, &format!("{} ms", millis(hold.to_ms - hold.from_ms)));
    for (index, line) in lines.iter().enumerate() {
        put_text(svg, x, first + 17.0 * (index + 1) as f64, anchor, "fill=\"var(--ink)\"", line);
    }
}

fn draw_arrow(svg: &mut String, arrow: &Arrow, axis: &TimeAxis) {
    let (colour, dash) = match arrow.kind {
        ArrowKind::Data => ("var(--data)", ""),
        ArrowKind::HeldData => ("var(--held)", ""),
        ArrowKind::Ack => ("var(--ack)", r#" stroke-dasharray="6 4""#),
    };
    let (x0, x1) = match arrow.from {
        Side::Left => (LEFT_X, RIGHT_X),
        Side::Right => (RIGHT_X, LEFT_X),
    };
    let (y0, y1) = (axis.y(arrow.sent_ms), axis.y(arrow.received_ms));
    let (dx, dy) = (x1 - x0, y1 - y0);
    let length = (dx * dx + dy * dy).sqrt();
    let (ux, uy) = (dx / length, dy / length);
    // The head is a triangle 11 long and 8 wide, and the shaft ends inside it.
    let (bx, by) = (x1 - 11.0 * ux, y1 - 11.0 * uy);
    let _ = write!(
        svg,
        r#"<line x1="{x0}" y1="{y0:.1}" x2="{bx:.1}" y2="{by:.1}" stroke="{colour}" stroke-width="2"{dash}/><path d="M{x1} {y1:.1} L{:.1} {:.1} L{:.1} {:.1} z" fill="{colour}"/>"#,
        bx - 4.0 * uy,
        by + 4.0 * ux,
        bx + 4.0 * uy,
        by - 4.0 * ux,
    );
    let label = match arrow.frame {
        Some(frame) => format!("{} (frame {frame})", arrow.label),
        None => arrow.label.clone(),
    };
    // Along the arrow, upright. Answers leave the left host as their cause arrives there, so arrows
    // converge on the left more often: words stand apart on the right.
    let share = if ux < 0.0 { 0.38 } else { 0.62 };
    let (tx, ty) = (x0 + share * dx, y0 + share * dy);
    let (cos, sin) = if ux < 0.0 { (-ux, -uy) } else { (ux, uy) };
    let _ = write!(
        svg,
        r#"<text transform="matrix({cos:.4} {sin:.4} {:.4} {cos:.4} {tx:.1} {ty:.1})" y="-5" text-anchor="middle" fill="{colour}" stroke="var(--card)" stroke-width="4" paint-order="stroke">{}</text>"#,
        -sin,
        escape(&label)
    );
}

fn put_text(svg: &mut String, x: f64, y: f64, anchor: &str, style: &str, text: &str) {
    let fill = if style.contains("fill=") { "" } else { r#" fill="var(--ink)""# };
    let _ = write!(
        svg,
        r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}"{fill} {style}>{}</text>"#,
        escape(text)
    );
}

/// ms with as many decimals as tell events of a LAN apart.
fn millis(at: f64) -> String {
    let decimals = if at.abs() < 1.0 { 2 } else { 1 };
    let text = format!("{at:.decimals$}");
    if text.trim_start_matches('-').bytes().all(|byte| matches!(byte, b'0' | b'.')) {
        "0".into()
    } else {
        text.replace('-', "\u{2212}")
    }
}

/// `text` broken at spaces into lines of at most `width` characters (longer words stay whole).
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Escapes text for element content and quoted attributes of XML.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// The drawing's width in its own units; the page scales it to fit.
const WIDTH: f64 = 960.0;
/// Where the left host's line stands: room on its left for words and times.
const LEFT_X: f64 = 320.0;
/// Where the right host's line stands.
const RIGHT_X: f64 = 640.0;
/// Where the hosts' lines begin, below their names.
const LINE_TOP: f64 = 66.0;
/// Width of a hold's band.
const BAND_PX: f64 = 20.0;
/// Characters per line of a hold's words, so that they end before the times begin.
const LABEL_CHARS: usize = 22;
/// The least distance between two events: one line of text and air.
const GAP_MIN_PX: f64 = 24.0;
/// The distance drawn for the longest wait.
const GAP_MAX_PX: f64 = 150.0;
/// Events closer than this share one height.
const SAME_INSTANT_MS: f64 = 1e-6;
const MUTED: &str = r#"fill="var(--muted)" font-size="12""#;
const CAPTURE: &str = r#"fill="var(--capture)" font-size="12""#;
const DURATION: &str = r#"fill="var(--held-ink)" font-size="17" font-weight="700""#;

#[cfg(test)]
mod tests {
    use super::*;

    fn stall() -> Ladder {
        let arrow = |from, sent_ms, received_ms, kind, label: &str| Arrow {
            from,
            sent_ms,
            received_ms,
            label: label.into(),
            kind,
            frame: Some(7),
        };
        Ladder {
            left: Host { name: "<b>10.0.0.1</b>".into(), role: "sender".into() },
            right: Host { name: "10.0.0.2".into(), role: "receiver".into() },
            capture: CapturePoint::Right,
            arrows: vec![
                arrow(Side::Left, 0.0, 0.1, ArrowKind::Data, "48 B"),
                arrow(Side::Right, 40.1, 40.2, ArrowKind::Ack, "ACK"),
                arrow(Side::Left, 40.25, 40.35, ArrowKind::HeldData, "96 B"),
            ],
            holds: vec![Hold {
                side: Side::Left,
                from_ms: 20.0,
                to_ms: 40.25,
                label: "96 B held by Nagle until the ACK".into(),
            }],
            notes: vec![Note { side: Side::Left, at_ms: 20.0, label: "writes 48 B".into() }],
        }
    }

    #[test]
    fn time_axis_keeps_the_order_and_a_least_distance() {
        let axis = TimeAxis::new(vec![200.0, 0.0, 0.1, 0.1, f64::NAN]);
        let ys: Vec<f64> = [0.0, 0.1, 200.0].map(|at| axis.y(at)).into();
        assert!(ys[1] - ys[0] >= GAP_MIN_PX && ys[1] - ys[0] < GAP_MIN_PX + 1.0, "{ys:?}");
        assert!((ys[2] - ys[1] - GAP_MAX_PX).abs() < 1e-9, "{ys:?}");
        assert!(axis.y(100.0) > ys[1] && axis.y(100.0) < ys[2]);
    }

    #[test]
    fn names_from_a_capture_are_escaped() {
        let svg = stall().to_svg("one <stall>");
        assert!(svg.contains("&lt;b&gt;10.0.0.1&lt;/b&gt;"));
        assert!(svg.contains("<title>one &lt;stall&gt;</title>"));
        assert!(!svg.contains("<b>"));
    }

    #[test]
    fn a_hold_is_drawn_with_its_milliseconds() {
        let svg = stall().to_svg("stall");
        assert!(svg.contains(">20.2 ms</text>") || svg.contains(">20.3 ms</text>"), "{svg}");
        assert!(svg.contains("captured here"));
        assert_eq!(svg.matches("(frame 7)").count(), 3);
    }

    #[test]
    fn an_empty_ladder_is_still_a_drawing() {
        let svg = Ladder::default().to_svg("nothing");
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>") && !svg.contains("NaN"));
    }

    #[test]
    fn words_wrap_at_spaces_only() {
        assert_eq!(wrapped("96 B held by Nagle", 9), ["96 B held", "by Nagle"]);
        assert_eq!(wrapped("unbreakable", 4), ["unbreakable"]);
    }
}
