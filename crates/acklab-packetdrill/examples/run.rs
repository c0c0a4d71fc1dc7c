//! Runs the scripts named on the command line and prints what became of each.
use std::path::Path;

use acklab_packetdrill::run::{Settings, run};

fn main() {
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path).expect("a script");
        let folder = Path::new(&path).parent().unwrap_or(Path::new("."));
        let outcome = run(&text, folder, &Settings::default());
        println!("{} {path}:{} {}", outcome.verdict.name(), outcome.line, outcome.message);
        if !outcome.message.is_empty() || std::env::var_os("SHOW").is_some() {
            for line in outcome.timeline {
                println!("    {line}");
            }
        }
    }
}
