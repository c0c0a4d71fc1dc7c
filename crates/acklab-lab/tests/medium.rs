//! Goal: a half-duplex link carries one packet at a time, whichever way, at its rate and overhead, in turns. Method:
//! floods both ways against the count that fits; a TCP transfer against the time that its segments and ACKs take.

use acklab_lab::file::ScenarioFile;
use acklab_lab::results::Results;
use acklab_lab::run;
use acklab_lab::scenario::Catalog;

fn results(flows: &str) -> Results {
    let text = format!(
        r#"scenario = "network"
duration = "4s"
watch = "a -> b"
measure = {{ from = "1s" }}
[[link]]
between = ["a", "b"]
rate = "24mbit"
delay = "10us"
half_duplex = {{ overhead = "100us" }}
buffer = 100
{flows}"#
    );
    let file = ScenarioFile::parse(&text).unwrap_or_else(|e| panic!("{e}"));
    run::run(&file.plan(Catalog(&[])).expect("a good file"))
}

fn flow(from: &str, to: &str, rest: &str) -> String {
    format!("[[flow]]\nfrom = \"{from}\"\nto = \"{to}\"\n{rest}\n")
}

const FLOOD: &str = "kind = \"cbr\"\nbytes = 972\nrate = \"40mbit\"";

#[test]
fn floods_share_the_medium_in_turns() {
    // 1000 bytes take 333.3 µs and 100 µs: 2307.7 packets per second together.
    let packets = 3.0 / (1000.0 * 8.0 / 24e6 + 100e-6);
    let alone = results(&flow("a", "b", FLOOD));
    let bps = alone.cases[0].metrics.number("datagram_bps");
    assert!((bps / 8000.0 * 3.0 - packets).abs() < 2.0, "{bps}");
    let both = results(&(flow("a", "b", FLOOD) + &flow("b", "a", FLOOD)));
    for flow in &both.cases[0].flows {
        let bps = flow.metrics.number("datagram_bps");
        assert!((bps / 8000.0 * 3.0 - packets / 2.0).abs() < 2.0, "{}: {bps}", flow.id);
    }
}

#[test]
fn a_queue_that_empties_gives_the_medium_up() {
    // Now and then a packet each way: whoever sent last must not wait for one that has nothing to send.
    let cbr = |every: &str| format!("kind = \"cbr\"\nbytes = 972\nevery = \"{every}\"");
    let seen = results(&(flow("a", "b", &cbr("900us")) + &flow("b", "a", &cbr("1300us"))));
    let metrics = &seen.cases[0].metrics;
    // At most the last one each way is still on its way.
    assert!(metrics.number("undelivered_datagrams") <= 2.0);
    // Its own transmission, and at most one of the other way before it.
    let longest = metrics.spread("datagram_delay_ms").unwrap().max;
    assert!((0.433..0.88).contains(&longest), "{longest}");
}

#[test]
fn each_ack_costs_a_transfer_the_time_of_a_transmission() {
    for ack in [
        "\"every-segment\"",
        "\"delayed\"",
        "{ kind = \"delayed\", segments = 16, delay = \"50ms\" }",
    ] {
        let transfer =
            format!("kind = \"bulk\"\ncc = \"reno\"\nreceive_buffer = 100000\nack = {ack}");
        let seen = results(&flow("a", "b", &transfer));
        let metrics = &seen.cases[0].metrics;
        let acks = metrics.number("acks_per_data_segment");
        let seconds = 1500.0 * 8.0 / 24e6 + 100e-6 + acks * (52.0 * 8.0 / 24e6 + 100e-6);
        let bps = 12_000.0 / seconds;
        let got = metrics.number("throughput_bps");
        assert!((got / bps - 1.0).abs() < 0.01, "{ack}: {got} where {bps} fits");
    }
}
