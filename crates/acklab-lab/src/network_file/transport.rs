//! The transport of a flow: TCP with a system's defaults, or reliable UDP with its own, and what the flow
//! changes about them.

use acklab_core::ack::Profile;
use acklab_core::cc::Algorithm;
use acklab_core::options::{Conflict, Word, joined};
use acklab_sim::segments;
use acklab_tcp::{AckRequests, Config, InitialWindow, LossRecovery, Nagle, Stack, System};

use super::flows::{Ends, Over};
use super::reader::{Field, Fields, Mistake};
use crate::own_ack;

/// The two ends that a flow over `transport` describes.
pub(super) fn read(transport: &str, table: &mut Fields<'_>) -> Result<Ends, Mistake> {
    if transport == "rudp" { reliable_udp(table) } else { tcp(table) }
}

fn reliable_udp(table: &mut Fields<'_>) -> Result<Ends, Mistake> {
    table.describe(format!("{} over reliable UDP", table.what()));
    let packet = table.take("packet").map_or(Ok(1500), |field| field.count(1228, 1500))? as u16;
    let largest_datagram = usize::from(packet) - UDP_HEADERS;
    let mut config = acklab_rudp::Config { largest_datagram, ..acklab_rudp::Config::default() };
    if let Some(cc) = table.take("cc") {
        config.algorithm = algorithm(&cc)?;
    }
    if let Some(ecn) = table.take("ecn") {
        config.ecn = ecn.flag()?;
    }
    if let Some(ack) = table.take("ack") {
        config.ack = Some(acknowledgment(&ack, table)?);
    }
    if let Some(acks) = table.take("ask_acks") {
        config.asks.ask_acks = acks.count(2, 1000)? as u32;
    }
    if let Some(most) = table.take("ask_most") {
        config.asks.ask_most = most.count(1, 65_536)? as u32;
    }
    if let Some(window) = table.take("iw") {
        config.initial_window = window.count(1, 1000)? as u32;
    }
    Ok(Ends { over: Over::Rudp(Box::new(config)), packet })
}

fn tcp(table: &mut Fields<'_>) -> Result<Ends, Mistake> {
    let said = ["system", "receiver"].map(|key| table.take(key));
    let system = said[0].as_ref().map_or(Ok("linux"), |field| field.word(&SYSTEMS))?;
    let other = said[1].as_ref().map_or(Ok(system), |field| field.word(&SYSTEMS))?;
    let packet = table.take("packet").map_or(Ok(1500), |field| field.count(100, 9000))? as u16;
    let mut ends = [system, other].map(|name| defaults(name, packet - HEADERS));
    let [from, to] = &mut ends;
    let mut asked = None;
    let mut both = |change: &dyn Fn(&mut Config)| {
        change(from);
        change(to);
    };
    if let Some(stack) = table.take("stack") {
        let stack: Stack = stack.typed()?;
        both(&|end| end.stack = stack);
    }
    if let Some(cc) = table.take("cc") {
        let congestion = algorithm(&cc)?;
        let ecn = congestion.needs_marks();
        both(&|end| (end.congestion, end.ecn) = (congestion.clone(), ecn));
    }
    if let Some(ecn) = table.take("ecn") {
        let ecn = ecn.flag()?;
        both(&|end| end.ecn = ecn);
    }
    if let Some(ack) = table.take("ack") {
        let profile = acknowledgment(&ack, table)?;
        both(&|end| end.ack = profile.clone());
    }
    if let Some(requests) = table.take("ack_requests") {
        let by: AckRequests = requests.typed()?;
        both(&|end| end.ack_requests = by);
        asked = Some(requests);
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
        let recovery: LossRecovery = recovery.typed()?;
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
    if let Err(Conflict { name, reason }) = ends.iter().try_for_each(segments::check) {
        let own = if table.has(name) { table.take(name) } else { None };
        let of_system = said.into_iter().flatten().next();
        return Err(match (own, of_system) {
            (Some(field), _) => field.refuse(reason),
            (None, Some(field)) => field.refuse(format!("{name}: {reason}")),
            (None, None) => Mistake::new(table.span(), format!("{name}: {reason}")),
        });
    }
    if let Some(field) = asked {
        let together = ends.iter().try_for_each(Config::check_requests);
        together.map_err(|conflict| field.refuse(conflict.reason))?;
    }
    Ok(Ends { over: Over::Tcp(Box::new(ends)), packet })
}

fn defaults(system: &str, mss: u16) -> Config {
    let own = System::named(system).map(System::config);
    own.map_or_else(|| Config::textbook(mss), |own| Config { mss, ..own })
}

/// A congestion control with its options.
fn algorithm(field: &Field<'_>) -> Result<Algorithm, Mistake> {
    let (name, table) = field.named(Algorithm::NAMES, "a congestion control", "cubic")?;
    let mut algorithm: Algorithm = name.parse().map_err(|error| field.refuse(error))?;
    if let Some(mut table) = table {
        algorithm.options().map_or(Ok(()), |options| table.options(options))?;
        table.finish()?;
    }
    Ok(algorithm)
}

/// Both buffers are large enough for `bytes` to be under way, and the window scale for it to be said.
fn with_receive_buffer(end: &mut Config, bytes: u32) {
    end.receive_buffer = bytes;
    end.receive_tuning = false;
    end.send_buffer = end.send_buffer.max(bytes.saturating_mul(2));
    let needed = (0..14).find(|scale| u16::try_from(bytes >> scale).is_ok()).unwrap_or(14);
    if needed > 0 || end.window_scale.is_some() {
        end.window_scale = end.window_scale.max(Some(needed));
    }
}

/// When data is acknowledged: by a policy with its options, or as a system does.
fn acknowledgment(field: &Field<'_>, table: &mut Fields<'_>) -> Result<Profile, Mistake> {
    let mut names = Profile::NAMES.to_vec();
    if !field.is_table() {
        names.extend(System::NAMES.iter().filter(|name| !Profile::NAMES.contains(name)));
    }
    let own_policies = own_ack::names();
    names.extend(&own_policies);
    let (name, own) = field.named_or(&names, "an ACK policy", "delayed", Some("delayed"))?;
    if let Some(profile) = own_ack::find(name) {
        return own.map_or(Ok(()), Fields::finish).map(|()| profile);
    }
    let Ok(mut profile) = name.parse::<Profile>() else { return Ok(defaults(name, LEAST_MSS).ack) };
    if let (Profile::Delayed(options), None) = (&mut profile, &own)
        && let Some(delay) = table.take("ack_delay")
    {
        options.delay = delay.time_above_zero()?;
    }
    if let Some(mut own) = own {
        if let Profile::Delayed(options) = &mut profile {
            // What is meant by them in words.
            if let Some(every) = own.take("every") {
                options.segments = every.count(1, 1_000_000)? as u32;
            }
            if let Some(timer) = own.take("timer") {
                options.delay = timer.time_above_zero()?;
            }
        }
        profile.options().map_or(Ok(()), |options| own.options(options))?;
        own.finish()?;
    }
    Ok(profile)
}

/// A system's TCP, or that of papers (`Config::textbook`).
const SYSTEMS: [&str; System::NAMES.len() + 1] = joined("", &[System::NAMES, &["textbook"]]);
/// IPv4 and TCP headers without options, bytes.
const HEADERS: u16 = 40;
/// IPv4 and UDP headers, bytes.
const UDP_HEADERS: usize = 28;
const LEAST_MSS: u16 = 536;
/// 1 GiB less one, what a window scale of 14 can say.
const MOST_BUFFER: u64 = (1 << 30) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_acknowledges_by_the_policy_of_its_name_where_there_is_one() {
        for system in System::ALL {
            if let Ok(policy) = system.name().parse::<Profile>() {
                assert_eq!(format!("{policy:?}"), format!("{:?}", system.config().ack));
            }
        }
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
