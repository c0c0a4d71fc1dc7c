//! Random stimuli as scripts, for `acklab packetdrill --compare`: what a peer and a program may do to a host.
//!
//!     cargo run -p acklab-packetdrill --example stimuli -- FOLDER [FIRST [COUNT [SUBJECT…]]]
//!
//! `plain`: one subject a script; `mixed`: everything at once, weighed by themes; `opening`: how connections begin.
//! `SUBJECT…`: these subjects alone, or `plain`, `mixed`, `opening`; without one all.

mod mixed;
mod opening;
mod plain;
mod script;

use std::path::Path;

use script::Script;

/// Adds stimuli of one kind.
type Fill = fn(&mut Script);

const PLAIN: [(&str, Fill); 8] = [
    ("losses", Script::losses),
    ("arrivals", Script::arrivals),
    ("writes", Script::writes),
    ("ends", Script::ends),
    ("growth", Script::growth),
    ("windows", Script::windows),
    ("marks", Script::marks),
    ("wrong", Script::wrong),
];

/// Makes a script of a seed.
type Begin = fn(u64) -> Script;

const OPENING: [(&str, Begin); 4] = [
    ("handshakes", Script::handshakes),
    ("connects", Script::connects),
    ("fast-opens", Script::fast_opens),
    ("again", Script::again),
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().expect("a folder");
    let mut number = |usual| arguments.next().map_or(usual, |text| text.parse().expect("a number"));
    let (first, count): (u64, u64) = (number(1), number(20));
    let subjects: Vec<String> = arguments.collect();
    let is_meant = |kind: &str, name: &str| {
        subjects.is_empty() || subjects.iter().any(|subject| subject == kind || subject == name)
    };
    let write = |name: &str, seed: u64, mut script: Script| {
        script.now += 500;
        script.event("`true`");
        let path = Path::new(&folder).join(format!("{name}-{seed}.pkt"));
        std::fs::write(path, script.text).expect("a file");
    };
    for seed in first..first + count {
        for (name, fill) in PLAIN.into_iter().filter(|(name, _)| is_meant("plain", name)) {
            let mut script = Script::new(seed, name == "marks");
            fill(&mut script);
            write(name, seed, script);
        }
        for theme in mixed::THEMES.iter().filter(|theme| is_meant("mixed", theme.name)) {
            write(theme.name, seed, mixed::script(theme, seed));
        }
        for (name, begin) in OPENING.into_iter().filter(|(name, _)| is_meant("opening", name)) {
            write(name, seed, begin(seed));
        }
    }
}
