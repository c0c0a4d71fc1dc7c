//! Any text as a script in the packetdrill language: no panic, and an error names a line that is there. What is a
//! script runs, within bounded time.
#![no_main]

use std::path::Path;

use acklab_packetdrill::run::{Settings, Verdict, run};
use acklab_packetdrill::script::parse;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let lines = text.matches('\n').count() + 1;
    match parse(text) {
        Err(error) => assert!((1..=lines).contains(&error.line), "{error:?}"),
        Ok(script) => {
            let outcome = run(text, Path::new("/nonexistent"), &Settings::default());
            assert!(outcome.verdict == Verdict::Pass || !outcome.message.is_empty());
            assert!(script.events.iter().all(|event| event.line <= lines));
        }
    }
});
