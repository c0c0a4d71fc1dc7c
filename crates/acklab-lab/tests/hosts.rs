//! Goal: a host's processor is the bottleneck that its costs say. Method: a bulk transfer over a link that is faster
//! than the hosts, against the rate that follows from the costs of a segment and of the ACKs that were counted.

use acklab_lab::file::ScenarioFile;
use acklab_lab::results::Results;
use acklab_lab::run;
use acklab_lab::scenario::Catalog;

fn results(hosts: &str, ack: &str) -> Results {
    let text = format!(
        r#"scenario = "network"
duration = "6s"
watch = "a -> b"
measure = {{ from = "2s" }}
{hosts}
[[link]]
between = ["a", "b"]
rate = "10gbit"
delay = "100us"
[[flow]]
from = "a"
to = "b"
kind = "bulk"
cc = "reno"
receive_buffer = 400000
ack = {ack}
"#
    );
    let file = ScenarioFile::parse(&text).unwrap_or_else(|e| panic!("{e}"));
    let plan = file.plan(Catalog(&[])).expect("a good file");
    run::run(&plan)
}

fn mean(results: &Results, metric: &str) -> f64 {
    results.cases[0].metrics.number(metric)
}

/// Segments of 1500 bytes per second.
fn segments(results: &Results) -> f64 {
    mean(results, "throughput_bps") / 12_000.0
}

fn is_close(a: f64, b: f64, share: f64) {
    assert!((a - b).abs() <= share * b, "{a} where {b} is expected");
}

#[test]
fn a_sender_is_as_fast_as_its_segments_and_the_acks_for_them_let_it_be() {
    let host = "[[host]]\nname = \"a\"\ncpu = { send = \"20us\", receive_ack = \"30us\", per_byte = 2, ring = 1000 }\n";
    for ack in [
        "\"every-segment\"",
        "\"delayed\"",
        "{ kind = \"delayed\", segments = 10, delay = \"10ms\" }",
    ] {
        let seen = results(host, ack);
        let acks = mean(&seen, "acks_per_data_segment");
        // A pure ACK with timestamps is 52 bytes.
        let cost = 20e-6 + 1500.0 * 2e-9 + acks * (30e-6 + 52.0 * 2e-9);
        is_close(segments(&seen), 1.0 / cost, 0.005);
        is_close(mean(&seen, "cpu_share.a"), 1.0, 0.001);
    }
}

#[test]
fn a_receiver_with_a_full_ring_loses_packets_and_keeps_its_rate() {
    let host = "[[host]]\nname = \"b\"\ncpu = { receive = \"40us\", send_ack = \"20us\", interrupt = \"5us\", ring = 64 }\n";
    let seen = results(host, "\"delayed\"");
    // SACKs of the lost make more ACKs than one in two; at no time is the host idle for long.
    assert!(mean(&seen, "retransmissions") > 0.0);
    assert!(mean(&seen, "cpu_share.b") > 0.9, "{}", mean(&seen, "cpu_share.b"));
    let acks = mean(&seen, "acks_per_data_segment");
    assert!(segments(&seen) < 1.0 / (40e-6 + acks * 20e-6) * 1.005);
}

#[test]
fn a_router_with_a_processor_pays_for_both_ways() {
    let text = r#"scenario = "network"
duration = "4s"
watch = "r -> b"
[[host]]
name = "r"
cpu = { receive = "50us", send = "50us" }
[[link]]
between = ["a", "r"]
rate = "1gbit"
delay = "1ms"
[[link]]
between = ["r", "b"]
rate = "1gbit"
delay = "1ms"
[[flow]]
from = "a"
to = "b"
kind = "cbr"
bytes = 972
every = "200us"
"#;
    let plan = ScenarioFile::parse(text).unwrap().plan(Catalog(&[])).unwrap();
    let seen = run::run(&plan);
    is_close(mean(&seen, "cpu_share.r"), 0.5, 0.001);
    // 1000 bytes over each link are 8 µs.
    is_close(mean(&seen, "datagram_delay_ms"), 2.116, 1e-6);
}
