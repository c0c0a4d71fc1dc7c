//! ACK policies that a program brings along: known to network files under their names.
//!
//! A program that links acklab calls [`add`] before it reads a file; from then on `ack = "my-policy"` is that policy,
//! in `--set` and sweeps too. docs/ack-policy.md has the whole of such a program.

use std::sync::{PoisonError, RwLock};

use acklab_core::ack::{AckPolicy, Factory, Profile};
use acklab_core::options::Word;
use acklab_tcp::System;

/// Makes the policy `name` known; `build` makes the state of one connection. The last of a name counts. Names of
/// built-in policies and systems keep their meaning.
pub fn add<P: AckPolicy + Send + 'static>(
    name: &'static str,
    build: impl Fn() -> P + Send + Sync + 'static,
) {
    let profile = Profile::Custom(Factory::new(move |_phase| Box::new(build())));
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    known.retain(|(known, _)| *known != name);
    known.push((name, profile));
}

/// The names of all of them, but for those that are taken.
pub(crate) fn names() -> Vec<&'static str> {
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    known.iter().map(|(name, _)| *name).filter(is_free).collect()
}

/// The policy of that name.
pub(crate) fn find(name: &str) -> Option<Profile> {
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    let found = known.iter().find(|(known, _)| *known == name && is_free(known));
    found.map(|(_, profile)| profile.clone())
}

fn is_free(name: &&str) -> bool {
    !Profile::NAMES.contains(name) && !System::NAMES.contains(name)
}

static KNOWN: RwLock<Vec<(&str, Profile)>> = RwLock::new(Vec::new());
