//! Diagnoses captures and prints the text, or with `--json` the JSON.

use std::path::Path;

use acklab_trace::{Options, diagnose};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut json = false;
    for arg in std::env::args().skip(1) {
        if arg == "--json" {
            json = true;
            continue;
        }
        let diagnosis = diagnose(Path::new(&arg), &Options::default(), |_| {})?;
        if json {
            println!("{}", diagnosis.to_json()?);
        } else {
            println!("== {arg}\n{}", diagnosis.to_text());
        }
    }
    Ok(())
}
