//! The contract's property tests: arbitrary samples against every congestion control, ACK policy, queue
//! and link.

use std::collections::BTreeSet;

use acklab_core::ack::Profile;
use acklab_core::cc::{Algorithm, Start, ance, balance, encn, jersey};
use acklab_core::contract::{
    Choices, attack_ack_policy, attack_choosable, attack_congestion_control, attack_link,
    attack_queue, operate_congestion_control, vary,
};
use acklab_core::link::{
    Corruption, Duplication, ErrorRate, GilbertElliott, Impairments, Link, LinkConfig, Loss,
    LossModel, Outage, Packets, Reordering, Share, Shift,
};
use acklab_core::queue::{Discipline, DropTail, Factory, Limit, Setup, drop_tail};
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;
use proptest::prelude::*;

/// Every built-in one with options that the bytes choose, and the readings of ANCE, ENCN and Jersey that
/// behave otherwise.
fn algorithms(variation: &[u8]) -> Vec<Algorithm> {
    let mut algorithms = Algorithm::all();
    let mut choices = Choices::new(variation);
    algorithms.iter_mut().filter_map(Algorithm::options).for_each(|own| vary(own, &mut choices));
    let window = balance::Options {
        slow_start: balance::SlowStart::Prose,
        min_window: 3,
        ..ance::Options::plain().window
    };
    for spacing in [ance::Spacing::SecondSmallest, ance::Spacing::PerRoundTrip] {
        algorithms.push(Algorithm::Ance(ance::Options { spacing, ..ance::Options::plain() }));
    }
    algorithms.push(Algorithm::Ance(ance::Options {
        window,
        ..ance::Options::oracle(BitRate::from_bps(1_500_000).expect("not zero"))
    }));
    let window = balance::Options { slow_start: balance::SlowStart::Algorithm1, ..window };
    algorithms.push(Algorithm::Encn(encn::Options { window }));
    let rtt = jersey::OwndRtt::Latest;
    algorithms.push(Algorithm::Jersey(jersey::Options { rtt, ..jersey::Options::default() }));
    algorithms
}

#[test]
fn bytes_choose_and_attack_whatever_is_registered() {
    let pairs = (0..5).flat_map(|kind| (0..=255).map(move |which| [kind, which, which]));
    let chosen: BTreeSet<&str> = pairs.map(|bytes| attack_choosable(&bytes)).collect();
    let registries = [Algorithm::NAMES, Profile::NAMES, Discipline::NAMES];
    assert_eq!(chosen, registries.concat().into_iter().collect());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, max_shrink_iters: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_congestion_control_keeps_a_window_of_one_segment_and_is_deterministic(
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
        mss in 88_u32..9000,
    ) {
        for algorithm in Algorithm::all() {
            let start = Start { mss, initial_window: 10 * u64::from(mss), initial_ssthresh: u64::MAX, seed: 1 };
            let run = || attack_congestion_control(&mut algorithm.controller(&start), mss, &bytes);
            prop_assert_eq!(run(), run());
        }
    }

    #[test]
    fn every_congestion_control_keeps_its_bounds_whatever_a_sender_meets(
        bytes in proptest::collection::vec(any::<u8>(), 0..1200),
        mss in 88_u32..9000,
        (initial_window, ssthresh) in (1_u64..12, 2_u64..100),
        seed in any::<u64>(),
        variation in proptest::collection::vec(any::<u8>(), 0..100),
    ) {
        let mss_bytes = u64::from(mss);
        for initial_ssthresh in [u64::MAX, ssthresh * mss_bytes] {
            let initial_window = initial_window * mss_bytes;
            let start = Start { mss, initial_window, initial_ssthresh, seed };
            for algorithm in algorithms(&variation) {
                let run = || operate_congestion_control(&algorithm, &start, &bytes);
                prop_assert_eq!(run(), run(), "{:?}", algorithm);
            }
        }
    }

    #[test]
    fn every_ack_policy_acknowledges_within_500_ms_and_is_deterministic(
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
        phase in 0.0..1.0,
        variation in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut choices = Choices::new(&variation);
        for mut profile in Profile::all() {
            if let Some(options) = profile.options() {
                vary(options, &mut choices);
            }
            let run = || attack_ack_policy(&mut profile.policy(phase), &bytes);
            prop_assert_eq!(run(), run(), "{:?}", profile);
        }
    }

    #[test]
    fn every_queue_conserves_packets_and_bytes_and_is_deterministic(
        bytes in proptest::collection::vec(any::<u8>(), 0..2000),
        packets in 1_u32..40,
        limit in 1_000_u64..40_000,
        bps in 10_000_u64..100_000_000,
        variation in proptest::collection::vec(any::<u8>(), 0..150),
    ) {
        let rate = BitRate::from_bps(bps).unwrap();
        let mut choices = Choices::new(&variation);
        for mut discipline in Discipline::all().iter().map(|each| each.for_packets(packets)) {
            if let Some(options) = discipline.options() {
                vary(options, &mut choices);
            }
            let setup = Setup { rate, seed: 1, name: "link/0" };
            for limit in [Limit::packets(packets), Limit { packets, bytes: limit }] {
                let discipline = discipline.clone().with_limit(limit);
                let run = || attack_queue(&mut *discipline.build(&setup), &bytes);
                prop_assert_eq!(run(), run(), "{:?}", discipline);
            }
        }
    }

    #[test]
    fn every_link_conserves_packets_and_their_order(
        bytes in proptest::collection::vec(any::<u8>(), 0..1500),
        bps in 10_000_u64..1_000_000_000,
        (delay_us, jitter_us) in (0_u64..50_000, 0_u64..20_000),
        loss in 0.0..0.5,
        packets in 0_u32..30,
    ) {
        let limit = Limit::packets(packets);
        let rate = BitRate::from_bps(bps).unwrap();
        let plain = LinkConfig::new(rate, Span::from_micros(delay_us))
            .with_jitter(Span::from_micros(jitter_us))
            .with_loss(loss)
            .with_queue(Discipline::drop_tail(limit));
        let managed = plain.clone().with_queue(Discipline::Custom(Factory::new(move |setup| {
            Box::new(DropTail::new(drop_tail::Options { limit }, setup))
        })));
        for config in [plain, managed] {
            let arrived = attack_link(&mut Link::new(0, 7, config.clone()), &bytes);
            prop_assert!(arrived.is_sorted());
            prop_assert_eq!(arrived, attack_link(&mut Link::new(0, 7, config), &bytes));
        }
    }

    #[test]
    fn a_link_with_any_queue_and_impairments_conserves_packets(
        bytes in proptest::collection::vec(any::<u8>(), 0..1500),
        bps in 10_000_u64..1_000_000_000,
        (share, correlation) in (0.0..1.0, 0.0..1.0),
        by in 0_u64..30_000,
        (gap, selected, late) in (0_u32..5, 0..3_usize, any::<bool>()),
    ) {
        let rate = BitRate::from_bps(bps).unwrap();
        let packets = [Packets::All, Packets::Data, Packets::PureAcks][selected];
        let (by, share) = (Span::from_micros(by), Share { share, correlation });
        let shift = if late { Shift::Late(by) } else { Shift::Ahead(by) };
        let chain = GilbertElliott::simple(0.1, 0.4);
        let impairments = Impairments {
            loss: Some(Loss { model: LossModel::GilbertElliott(chain), packets }),
            outages: vec![Outage { from: Time::from_nanos(1), until: Time::ZERO + by }],
            corruption: Some(Corruption { rate: ErrorRate::PerBit(1e-5), packets }),
            reordering: Some(Reordering { share, gap, shift, packets }),
            duplication: Some(Duplication { share, packets }),
        };
        let config = LinkConfig::new(rate, by).with_impairments(impairments);
        for discipline in Discipline::all() {
            let name = discipline.name();
            let config = config.clone().with_queue(discipline.for_packets(10));
            let run = || attack_link(&mut Link::new(0, 7, config.clone()), &bytes);
            prop_assert_eq!(run(), run(), "{}", name);
        }
    }
}
