//! What a watch says, in words.

use acklab_live::told::Held;
use acklab_live::watch::WatchError;

use crate::outcome::Failure;

/// A watch's refusal at the command line.
pub(crate) fn failure(error: WatchError) -> Failure {
    Failure::at("watch", error)
}

/// Who was held, how often, and by what.
pub(crate) fn in_words(held: &Held) -> String {
    let end = |address: &str, name: &Option<String>, pid: Option<u32>| match (name, pid) {
        (Some(name), Some(pid)) => format!("{address} ({name}, {pid})"),
        _ => address.to_owned(),
    };
    format!(
        "{} > {}: {} held {:.3} s in all, {}",
        end(&held.from, &held.process, held.pid),
        end(&held.to, &held.peer_process, held.peer_pid),
        writes(held.count),
        held.seconds,
        held.mechanism.name(),
    )
}

fn writes(count: u64) -> String {
    if count == 1 { "1 write".to_owned() } else { format!("{count} writes") }
}
