//! Runs the scripts named on the command line and prints what became of each; with `--observe` nothing is judged, and
//! what the host did is printed with its times, as a script would expect it.
use std::path::Path;

use acklab_packetdrill::run::{Settings, run};

fn main() {
    let (flags, paths): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let settings = Settings { observe: flags == ["--observe"], ..Settings::default() };
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a script");
        let folder = Path::new(&path).parent().unwrap_or(Path::new("."));
        let outcome = run(&text, folder, &settings);
        for seen in &outcome.seen {
            if settings.observe {
                println!("{:.6} {}", seen.at as f64 / 1e6, seen.what);
            }
        }
        println!("// {} {path}:{} {}", outcome.verdict.name(), outcome.line, outcome.message);
        for line in outcome.timeline.iter().filter(|_| !outcome.message.is_empty()) {
            println!("    {line}");
        }
    }
}
