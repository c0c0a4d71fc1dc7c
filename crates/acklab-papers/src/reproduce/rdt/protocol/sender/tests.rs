//! The sender step by step, at known times.

use super::*;

fn at(micros: u64) -> Time {
    Time::ZERO + Span::from_micros(micros)
}

fn ack(ack: u16) -> Header {
    Header { seq: 0, ack }
}

/// Sequence numbers and paths of what leaves at `micros`.
fn leaving(sender: &mut Sender, micros: u64) -> Vec<(u16, usize)> {
    sender.handle_timeout(at(micros));
    let mut left = Vec::new();
    while let Some((header, path)) = sender.poll_transmit(at(micros)) {
        left.push((header.seq, path));
    }
    left
}

#[test]
fn the_window_opens_with_the_first_unacknowledged_packet() {
    let mut sender = Sender::new(at(0), Settings::new(40, 1));
    let first: Vec<(u16, usize)> = (1..=16).map(|seq| (seq, 0)).collect();
    assert_eq!(leaving(&mut sender, 0), first);
    sender.handle_packet(at(12_000), ack(3));
    assert_eq!(leaving(&mut sender, 12_000), []);
    sender.handle_packet(at(12_000), ack(1));
    assert_eq!(leaving(&mut sender, 12_000), [(17, 0)]);
    sender.handle_packet(at(12_000), ack(2));
    assert_eq!(leaving(&mut sender, 12_000), [(18, 0), (19, 0)]);
}

#[test]
fn the_first_sample_is_the_time_out_and_a_spread_widens_it() {
    let mut sender = Sender::new(at(0), Settings::new(2, 1));
    leaving(&mut sender, 0);
    assert_eq!(sender.timeouts()[0], Span::from_millis(50));
    sender.handle_packet(at(12_000), ack(1));
    assert_eq!(sender.timeouts()[0], Span::from_millis(12), "no deviation yet");
    sender.handle_packet(at(20_000), ack(2));
    // 0.875 * 12 + 0.125 * 20 = 13 ms; a quarter of 20 - 13; 13 + 4 * 1.75.
    assert_eq!(sender.timeouts()[0], Span::from_millis(20));
}

#[test]
fn a_copy_is_timed_from_its_last_transmission_and_a_second_ack_counts_again() {
    let mut sender = Sender::new(at(0), Settings::new(1, 1));
    leaving(&mut sender, 0);
    assert_eq!(leaving(&mut sender, 50_050), [(1, 0)]);
    // The ACK of the first copy, 51 ms late, looks like one of 1 ms.
    sender.handle_packet(at(51_050), ack(1));
    assert_eq!(sender.timeouts()[0], Span::from_millis(1));
    sender.handle_packet(at(62_050), ack(1));
    assert!(sender.timeouts()[0] > Span::from_millis(10));
}

#[test]
fn the_parity_of_the_index_chooses_the_path_and_each_has_its_estimate() {
    let mut sender = Sender::new(at(0), Settings::new(4, 2));
    assert_eq!(leaving(&mut sender, 0), [(1, 0), (2, 1), (3, 0), (4, 1)]);
    sender.handle_packet(at(8_000), ack(2));
    assert_eq!(sender.timeouts(), [Span::from_millis(50), Span::from_millis(8)]);
}

#[test]
fn a_transmission_waits_for_the_processor() {
    let cpu = Span::from_millis(4);
    let mut sender = Sender::new(at(0), Settings { cpu, ..Settings::new(2, 1) });
    assert_eq!(sender.poll_timeout(), Some(at(4_000)));
    assert_eq!(leaving(&mut sender, 0), []);
    assert_eq!(leaving(&mut sender, 4_000), [(1, 0)]);
    assert_eq!(leaving(&mut sender, 8_000), [(2, 0)]);
    // Its time is in the round trip.
    sender.handle_packet(at(16_000), ack(1));
    assert_eq!(sender.timeouts()[0], Span::from_millis(16));
}

#[test]
fn after_a_thousand_time_outs_a_path_is_left_for_good() {
    let settings = Settings { tries: 3, ..Settings::new(4, 2) };
    let mut sender = Sender::new(at(0), settings);
    leaving(&mut sender, 0);
    for seq in [1, 3] {
        sender.handle_packet(at(10_000), ack(seq));
    }
    assert_eq!(leaving(&mut sender, 50_050), [(2, 1), (4, 1)]);
    assert_eq!(leaving(&mut sender, 100_100), [(2, 1), (4, 1)]);
    assert_eq!(sender.links_down(), 0);
    assert_eq!(leaving(&mut sender, 150_150), [(2, 0), (4, 0)]);
    assert_eq!(sender.links_down(), 1);
    // With the other path's estimate.
    assert_eq!(leaving(&mut sender, 160_200), [(2, 0), (4, 0)]);
}

#[test]
fn the_end_is_sent_until_it_is_answered_or_given_up() {
    let settings = Settings { tries: 2, ..Settings::new(1, 2) };
    let mut sender = Sender::new(at(0), settings);
    leaving(&mut sender, 0);
    sender.handle_packet(at(10_000), ack(1));
    assert_eq!(sender.stage(), Stage::Ending(at(10_000)));
    assert_eq!(leaving(&mut sender, 10_000), [(0, 1)], "index -1 is odd in Python");
    let mut answered = sender.clone();
    answered.handle_packet(at(22_000), Header::END);
    let over = |ended, answered| Stage::Over { delivered: at(10_000), ended, answered };
    assert_eq!(answered.stage(), over(at(22_000), true));
    assert_eq!(leaving(&mut answered, 60_050), []);
    assert_eq!(answered.poll_timeout(), None);
    assert_eq!(leaving(&mut sender, 60_050), [(0, 1)]);
    assert_eq!(leaving(&mut sender, 110_100), []);
    assert_eq!(sender.stage(), over(at(110_100), false));
}

#[test]
fn acknowledgments_of_what_does_not_exist_do_nothing() {
    let mut sender = Sender::new(at(0), Settings::new(2, 1));
    leaving(&mut sender, 0);
    sender.handle_packet(at(1_000), ack(9));
    sender.handle_packet(at(1_000), Header::END);
    assert_eq!(sender.stage(), Stage::Sending);
    assert_eq!(sender.timeouts()[0], Span::from_millis(50));
}
