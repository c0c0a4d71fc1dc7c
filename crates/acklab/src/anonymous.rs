//! `acklab diagnose --anonymise`: a capture that can be handed on.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;

use acklab_trace::anonymise::{Account, AnonymiseError, Key, anonymise};

use crate::diagnose::unreadable;
use crate::outcome::{Failure, discard, tell};

/// Writes `file` without addresses, payload and names to `out`, and says what was left out.
pub(crate) fn write(file: &Path, out: &Path, key: Option<&Path>) -> Result<(), Failure> {
    if file == Path::new("-") {
        let reason = "--anonymise reads a capture twice: give a file, not standard input";
        return Err(Failure::Unusable(reason.into()));
    }
    if let (Ok(one), Ok(other)) = (fs::canonicalize(file), fs::canonicalize(out))
        && one == other
    {
        return Err(Failure::at("--anonymise", "this is the capture itself; give another name"));
    }
    let key = match key {
        Some(path) => read_key(path)?,
        None => random_key()?,
    };
    match anonymise(file, || File::create(out).map(BufWriter::new), key) {
        Ok(account) => {
            tell(&words(&account, out));
            if let Some(damage) = &account.damage {
                tell(&format!("{}: {damage}", file.display()));
            }
            Ok(())
        }
        Err(AnonymiseError::Capture(error)) => Err(unreadable(file, error)),
        Err(AnonymiseError::Write(error)) => {
            // Half a capture is none.
            let _ = discard(out);
            Err(Failure::at(out.display(), error))
        }
    }
}

fn read_key(path: &Path) -> Result<Key, Failure> {
    let text = fs::read_to_string(path).map_err(|error| Failure::at(path.display(), error))?;
    let wrong = "has no key: 64 hexadecimal digits, such as `openssl rand -hex 32` writes";
    Key::from_hex(&text).ok_or_else(|| Failure::at(path.display(), wrong))
}

fn random_key() -> Result<Key, Failure> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| Failure::at("--anonymise: a random key", error))?;
    Ok(Key::from_bytes(bytes))
}

fn words(account: &Account, out: &Path) -> String {
    let Account { frames, kept, not_tcp, fragments, unreadable, .. } = account;
    let reasons = [
        (*not_tcp, "no TCP"),
        (*fragments, "fragments"),
        (*unreadable, "whose headers are cut or contradict themselves"),
    ];
    let left: Vec<String> =
        reasons.iter().filter(|(n, _)| *n > 0).map(|(n, why)| format!("{n} {why}")).collect();
    let left = if left.is_empty() { "none".to_owned() } else { left.join(", ") };
    format!("anonymised: {kept} of {frames} frames in {}; left out: {left}", out.display())
}
