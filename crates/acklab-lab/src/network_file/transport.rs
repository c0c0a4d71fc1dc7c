//! TCP of a flow: a system's defaults, and what the flow changes about them.

use acklab_core::ack::Profile;
use acklab_core::cc::Algorithm;
use acklab_core::time::Span;
use acklab_tcp::{Config, InitialWindow, LossRecovery, Nagle, System};

use super::flows::Ends;
use super::reader::{Field, Fields, Mistake};

/// The two ends that a flow describes.
pub(super) fn read(table: &mut Fields<'_>) -> Result<Ends, Mistake> {
    let system = table.take("system").map_or(Ok("linux"), |field| field.word(SYSTEMS))?;
    let other = table.take("receiver").map_or(Ok(system), |field| field.word(SYSTEMS))?;
    let packet = table.take("packet").map_or(Ok(1500), |field| field.count(100, 9000))? as u16;
    let mut ends = [system, other].map(|name| defaults(name, packet - HEADERS));
    let [from, to] = &mut ends;
    let mut both = |change: &dyn Fn(&mut Config)| {
        change(from);
        change(to);
    };
    if let Some(cc) = table.take("cc") {
        let congestion: Algorithm = cc.word(Algorithm::NAMES)?.parse().unwrap_or_default();
        both(&|end| {
            end.congestion = congestion.clone();
            end.ecn = NEED_MARKS.contains(&congestion.name());
        });
    }
    if let Some(ecn) = table.take("ecn") {
        let ecn = ecn.flag()?;
        both(&|end| end.ecn = ecn);
    }
    if let Some(ack) = table.take("ack") {
        let profile = acknowledgment(&ack, table)?;
        both(&|end| end.ack = profile.clone());
    }
    if let Some(nagle) = table.take("nagle") {
        let on = nagle.flag()?;
        both(&|end| {
            end.nagle = match (on, end.nagle) {
                (false, _) => Nagle::Off,
                // A system's own variant, where it has one.
                (true, Nagle::Off) => Nagle::Classic,
                (true, own) => own,
            };
        });
    }
    if let Some(recovery) = table.take("recovery") {
        let recovery = match recovery.word(&["sack", "newreno", "reno"])? {
            "sack" => LossRecovery::Sack,
            "newreno" => LossRecovery::NewReno,
            _ => LossRecovery::Reno,
        };
        both(&|end| end.loss.recovery = recovery);
    }
    if let Some(timestamps) = table.take("timestamps") {
        let timestamps = timestamps.flag()?;
        both(&|end| end.timestamps = timestamps);
    }
    if let Some(window) = table.take("iw") {
        let window = InitialWindow::Segments(window.count(1, 1000)? as u32);
        both(&|end| end.window.initial = window);
    }
    if let Some(threshold) = table.take("ssthresh") {
        let segments = threshold.count(1, 1_000_000)?;
        both(&|end| end.window.ssthresh = Some(segments * u64::from(end.mss)));
    }
    if let Some(min_rto) = table.take("min_rto") {
        let min_rto = min_rto.time_above_zero()?;
        both(&|end| (end.rto.min, end.rto.max) = (min_rto, end.rto.max.max(min_rto)));
    }
    if let Some(buffer) = table.take("receive_buffer") {
        let bytes = buffer.count(1000, MOST_BUFFER)? as u32;
        both(&|end| with_receive_buffer(end, bytes));
    }
    let [from, to] = ends;
    Ok(Ends { from, to, packet })
}

fn defaults(system: &str, mss: u16) -> Config {
    match system.parse::<System>() {
        Ok(system) => Config { mss, ..Config::for_system(system) },
        Err(_) => Config::textbook(mss),
    }
}

/// Both buffers are large enough for `bytes` to be under way, and the window scale for it to be said.
fn with_receive_buffer(end: &mut Config, bytes: u32) {
    end.receive_buffer = bytes;
    end.send_buffer = end.send_buffer.max(bytes.saturating_mul(2));
    let needed = (0..14).find(|scale| u16::try_from(bytes >> scale).is_ok()).unwrap_or(14);
    if needed > 0 || end.window_scale.is_some() {
        end.window_scale = end.window_scale.max(Some(needed));
    }
}

/// When data is acknowledged: at every segment, after a stated delay, or as a system does.
fn acknowledgment(field: &Field<'_>, table: &mut Fields<'_>) -> Result<Profile, Mistake> {
    Ok(match field.word(ACKS)? {
        "every-segment" => Profile::EverySegment,
        "delayed" => {
            let longest = Ok(Span::from_millis(200));
            let delay = table.take("ack_delay").map_or(longest, |field| field.time_above_zero())?;
            Profile::Delayed { segments: 2, delay }
        }
        system => defaults(system, LEAST_MSS).ack,
    })
}

/// A system's TCP, or that of papers (`Config::textbook`).
const SYSTEMS: &[&str] = &[
    "linux",
    "freebsd-12.1",
    "freebsd-12.2",
    "windows-7",
    "windows-7-tick",
    "windows-10",
    "qnx-7.0",
    "macos",
    "textbook",
];
const ACKS: &[&str] = &[
    "every-segment",
    "delayed",
    "linux",
    "freebsd-12.1",
    "freebsd-12.2",
    "windows-7",
    "windows-7-tick",
    "windows-10",
    "qnx-7.0",
    "macos",
];
/// Congestion controls that are nothing without marks: ECN is negotiated unless the flow says not to.
const NEED_MARKS: &[&str] = &["encn", "jersey", "dctcp", "edctcp"];
/// IPv4 and TCP headers without options, bytes.
const HEADERS: u16 = 40;
const LEAST_MSS: u16 = 536;
/// 1 GiB less one, what a window scale of 14 can say.
const MOST_BUFFER: u64 = (1 << 30) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_of_the_core_can_be_chosen_for_an_end_and_for_its_acks() {
        let names: Vec<_> = System::ALL.iter().map(|(_, name)| *name).collect();
        assert_eq!(SYSTEMS[..names.len()], names);
        assert_eq!(ACKS[2..], names);
    }

    #[test]
    fn a_larger_receive_buffer_can_be_announced() {
        let check = |bytes: u32, scale: Option<u8>| {
            let mut end = Config::textbook(1460);
            with_receive_buffer(&mut end, bytes);
            assert_eq!(end.window_scale, scale, "{bytes}");
        };
        check(65_535, None);
        check(65_536, Some(1));
        check(1_000_000, Some(4));
        check((1 << 30) - 1, Some(14));
    }
}
