//! The scenario `nagle-delack` as a network's file, for worlds whose both ends are Linux.

use std::fmt::Write as _;

use acklab_core::rng::Rng;
use acklab_core::time::Span;
use acklab_core::units::BitRate;
use acklab_lab::network_file::NetworkFile;
use acklab_lab::parameter::Settings;

/// The scenario's name.
pub const SCENARIO: &str = "nagle-delack";

/// The file of one replication: its first write is as long after the start as `seed` draws. The reason where the
/// settings ask for more than two Linux hosts and a reader that reads at once.
pub fn file(settings: &Settings, seed: u64) -> Result<NetworkFile, String> {
    let word = |name: &str| settings.get::<&str>(name).unwrap_or_default();
    let span = |name: &str| settings.get::<Span>(name).unwrap_or_default();
    let count = |name: &str| settings.get::<u64>(name).unwrap_or_default();
    let refuse = |name: &str, reason: &str| Err(format!("{name}: {reason}"));
    if word("receiver") != "linux" || (settings.is_chosen("sender") && word("sender") != "linux") {
        return refuse(
            "receiver, sender",
            "both ends are the Linux kernel here; leave them out, or say linux",
        );
    }
    let nagle = match word("nagle") {
        "on" | "minshall" => true,
        "off" => false,
        _ => return refuse("nagle", "Linux has on, off and minshall"),
    };
    for name in ["reads", "jitter", "skew", "overhead", "jiffy"] {
        if settings.is_chosen(name) {
            return refuse(name, "cannot be set in other worlds");
        }
    }
    let (period, rtt, messages) = (span("period"), span("rtt"), count("messages"));
    if messages > MOST_MESSAGES {
        return refuse("messages", "at most 100000 in other worlds");
    }
    // The writes begin when the connection stands, after two round trips at the latest.
    let phase =
        Span::from_nanos(Rng::named(seed, "nagle-delack/start").below(span("phase").as_nanos()));
    let first = rtt * 2 + phase;
    let mut trace = String::new();
    for index in 0..messages {
        let at = first + period * index;
        let _ = write!(trace, "[\"{}us\", {}], ", at.as_nanos() as f64 / 1e3, count("message"));
    }
    let loss = settings.get::<f64>("loss").unwrap_or_default() / 100.0;
    let rate = match settings.get::<BitRate>("rate") {
        Some(BitRate::INFINITE) | None => "infinite".to_owned(),
        Some(rate) => format!("{}bit", rate.as_bps()),
    };
    let text = format!(
        "scenario = \"network\"\nduration = \"{}ms\"\nwatch = \"sender -> receiver\"\n\
         [[link]]\nbetween = [\"sender\", \"receiver\"]\nrate = \"{rate}\"\ndelay = \"{}us\"\nloss = {loss}\n\
         [[flow]]\nname = \"sender-receiver\"\nfrom = \"sender\"\nto = \"receiver\"\nkind = \"trace\"\n\
         nagle = {nagle}\ntrace = [{trace}]\n",
        (first + period * messages + rtt * 4 + Span::from_secs(1)).as_nanos().div_ceil(1_000_000),
        (rtt / 2).as_nanos() as f64 / 1e3,
    );
    NetworkFile::parse(&text).map_err(|mistake| mistake.to_string())
}

const MOST_MESSAGES: u64 = 100_000;
