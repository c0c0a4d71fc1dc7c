//! Any text through the query parser: no panic; what is read prints to a text that is read the same;
//! a bound query judges a run without a panic.
#![no_main]

use acklab_stats::RunOutcome;
use acklab_stats::query::parse;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let query = match parse(text) {
        Ok(query) => query,
        Err(error) => {
            assert!(error.line >= 1 && error.column >= 1);
            let _ = error.to_string();
            return;
        }
    };
    let printed = query.to_string();
    // Spaces may make it longer than what is read.
    if printed.len() <= 16 << 10 {
        assert_eq!(parse(&printed).as_ref(), Ok(&query), "{printed}");
    }
    let Ok(bound) = query.bind(text, &["x", "itae", "queue.length"]) else { return };
    let mut monitor = bound.monitor(0);
    for (time, x) in [(0.0, 0.0), (0.5, 1e308), (0.5, -1.0), (40.0, f64::NAN)] {
        monitor.observe(time, &[x, time, 1.0]);
    }
    if let RunOutcome::Formula { at, .. } = monitor.finish(50.0) {
        assert!(!at.is_nan());
    }
});
