//! Prints the facts of every connection of a capture, one line per direction:
//! `cargo run -r -p acklab-trace --example capture_facts FILE`.

use std::path::PathBuf;

use acklab_trace::capture::{CaptureError, CaptureReader};
use acklab_trace::flow::{DirectionFacts, FlowTable};
use acklab_trace::read::read_capture;

fn main() -> Result<(), CaptureError> {
    let path: PathBuf = std::env::args_os().nth(1).unwrap_or_else(|| "-".into()).into();
    let mut reader = CaptureReader::open(&path)?;
    let mut table = FlowTable::<()>::default();
    let summary = read_capture(&mut reader, &mut table, |_| {})?;
    let reports = table.finish();
    println!("{} frames, {} TCP, {} flows", summary.frames, summary.tcp_frames, reports.total);
    summary.warnings().iter().for_each(|warning| println!("warning: {warning}"));
    for flow in reports.flows.iter().take(20) {
        println!("flow {} frame {} {:?}", flow.id, flow.first_frame, flow.ending);
        flow.directions.iter().for_each(|d| print_facts(&d.facts));
    }
    Ok(())
}

fn print_facts(facts: &DirectionFacts) {
    let DirectionFacts { from, to, packets, stream, window, ttl, vantage, .. } = facts;
    println!("  {from} -> {to}: {:.2?} segments per ACK", facts.segments_per_ack());
    println!("    {packets:?}");
    println!("    {stream:?}");
    println!("    rtt {:?}", facts.rtt);
    if let Some(delay) = &facts.ack_delay {
        println!("    ACKs after {}, 95 % within {}", delay.p50, delay.p95);
    }
    println!("    captured at {vantage:?}, ttl {ttl:?}, window {window:?}");
}
