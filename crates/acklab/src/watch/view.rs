//! The terminal view of a watch: the connections as they are, the most stalled first, drawn anew every second.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use acklab_live::told::Told;
use acklab_live::watch::{self, Watched};

use super::words::{failure, in_words};
use crate::outcome::{Failure, print};

/// What is on the screen; closed, the terminal is as it was before.
pub(super) struct View {
    drawn: Option<Instant>,
    latest: VecDeque<String>,
}

impl View {
    /// The terminal's other screen, without a cursor.
    pub(super) fn open() -> Self {
        let _ = print("\x1b[?1049h\x1b[?25l");
        Self { drawn: None, latest: VecDeque::new() }
    }

    /// Shows a stall among the latest ones.
    pub(super) fn note(&mut self, told: &Told) {
        if let Told::Stall { held, .. } = told {
            self.latest.push_front(in_words(held));
            self.latest.truncate(LATEST);
        }
    }

    /// Draws the screen anew, if it is time to.
    #[expect(clippy::disallowed_methods, reason = "the terminal's clock")]
    pub(super) fn refresh(&mut self, watch: &mut watch::Watch) -> Result<(), Failure> {
        let now = Instant::now();
        if self.drawn.is_some_and(|at| now.duration_since(at) < EVERY) {
            return Ok(());
        }
        self.drawn = Some(now);
        let (frames, dropped) = watch.frames();
        let sockets = watch.sockets().map_err(failure)?;
        let mut screen = format!(
            "acklab watch: {:.0} s, {frames} frames, {dropped} dropped, {} sockets; Ctrl-C ends it\n\n",
            watch.watched().as_secs_f64(),
            sockets.len(),
        );
        let _ = writeln!(
            screen,
            "{:<22} {:<46} {:>8} {:>7} {:>8} {:>8} {:>7} {:>8}",
            "process", "local > remote", "rtt ms", "ato ms", "unacked", "unsent", "holds", "s lost"
        );
        for watched in sockets.iter().take(ROWS) {
            screen += &row(watched);
        }
        if sockets.len() > ROWS {
            let _ = writeln!(screen, "and {} more", sockets.len() - ROWS);
        }
        screen += "\nLatest stalls:\n";
        for line in &self.latest {
            let _ = writeln!(screen, "  {line}");
        }
        // Each line ends with "clear to its end", the screen with "clear what is below".
        print(&format!("\x1b[H{}\x1b[J", screen.replace('\n', "\x1b[K\n")))
    }
}

impl Drop for View {
    fn drop(&mut self) {
        let _ = print("\x1b[?25h\x1b[?1049l");
    }
}

fn row(watched: &Watched) -> String {
    let Watched { socket, process, count, seconds, .. } = watched;
    let process = process.as_ref().map_or("?".to_owned(), |p| format!("{} {}", p.name, p.pid));
    let timing = socket.timing;
    format!(
        "{process:<22.22} {:<46} {:>8.2} {:>7.0} {:>8} {:>8} {count:>7} {seconds:>8.2}{}\n",
        format!("{} > {}", socket.local, socket.remote),
        timing.rtt_ms,
        timing.ack_timeout_ms,
        timing.unacked,
        timing.unsent_bytes,
        if socket.holds_a_write() { "  a write waits for an ACK" } else { "" },
    )
}

const EVERY: Duration = Duration::from_secs(1);
/// Sockets and stalls that are shown.
const ROWS: usize = 20;
const LATEST: usize = 10;
