//! The retransmission time-out by RFC 6298, and deliveries that duplicate ACKs show, counted.

use super::recovery::{Account, RtoEstimator};
use crate::config::{Config, Rto};
use crate::system::System;
use acklab_core::time::Span;

fn plain() -> Rto {
    let min = Span::from_millis(1);
    Rto { min, granularity: min, min_on_variance: false, ..Config::default().rto }
}

#[test]
fn the_time_out_is_one_second_before_the_first_measurement() {
    // RFC 6298 (2.1)
    assert_eq!(RtoEstimator::new(plain()).rto(), Span::from_secs(1));
}

#[test]
fn measurements_move_srtt_by_an_eighth_and_rttvar_by_a_quarter() {
    let mut rto = RtoEstimator::new(plain());
    // RFC 6298 (2.2): SRTT = R, RTTVAR = R/2, RTO = SRTT + 4 RTTVAR.
    rto.on_sample(Span::from_millis(80));
    assert_eq!((rto.srtt(), rto.rto()), (Some(Span::from_millis(80)), Span::from_millis(240)));
    // RFC 6298 (2.3): RTTVAR = 3/4 * 40 + 1/4 * |80 - 160| = 50, SRTT = 7/8 * 80 + 1/8 * 160.
    rto.on_sample(Span::from_millis(160));
    assert_eq!((rto.srtt(), rto.rto()), (Some(Span::from_millis(90)), Span::from_millis(290)));
}

#[test]
fn the_lower_bound_is_on_the_sum_or_on_the_variance() {
    let mut sum = RtoEstimator::new(Rto { min: Span::from_millis(200), ..plain() });
    let mut variance = RtoEstimator::new(Config::default().rto);
    for _ in 0..200 {
        sum.on_sample(Span::from_millis(30));
        variance.on_sample(Span::from_millis(30));
    }
    // RFC 6298 (2.4), and Linux.
    assert_eq!(sum.rto(), Span::from_millis(200));
    assert_eq!(variance.rto().as_micros() / 1000, 230);
}

#[test]
fn bsd_leaves_the_peers_delayed_ack_its_time() {
    let mut rto = RtoEstimator::new(System::FreeBsd122.config().rto);
    for _ in 0..200 {
        rto.on_sample(Span::from_millis(30));
    }
    assert_eq!(rto.rto().as_micros() / 1000, 231);
}

#[test]
fn every_expiry_doubles_up_to_the_ceiling_and_a_sample_ends_it() {
    // RFC 6298 (5.5) and (2.5)
    let mut rto = RtoEstimator::new(Rto { max: Span::from_secs(5), ..plain() });
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(rto.rto().as_micros() / 1000);
        rto.on_timeout();
    }
    assert_eq!(seen, [1000, 2000, 4000, 5000]);
    rto.on_sample(Span::from_millis(10));
    assert_eq!(rto.rto(), Span::from_millis(30));
}

#[test]
fn a_lost_syn_makes_the_first_time_out_three_seconds() {
    // RFC 6298 (5.7)
    let mut rto = RtoEstimator::new(plain());
    rto.on_timeout();
    rto.on_syn_timeout();
    assert_eq!(rto.rto(), Span::from_secs(3));
}

#[test]
fn duplicates_and_partial_acks_count_every_delivery_once() {
    // Ten segments of 100, of which the first and the sixth are lost.
    let mut account = Account::default();
    let duplicates: u64 = (0..8).map(|_| account.on_duplicate(1000, 100)).sum();
    assert_eq!(duplicates, 800);
    assert_eq!(account.on_advance(500, 100), 100, "the hole it filled");
    assert_eq!(account.on_advance(500, 100), 100, "the rest was on account");
    assert_eq!(account.on_advance(100, 100), 100, "settled");
}

#[test]
fn duplicates_deliver_no_more_than_is_out_but_the_missing_segment() {
    let mut account = Account::default();
    let delivered: u64 = (0..50).map(|_| account.on_duplicate(1000, 100)).sum();
    assert_eq!(delivered, 900);
}
