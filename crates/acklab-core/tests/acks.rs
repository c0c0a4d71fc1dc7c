//! Goal: no policy that makes ACKs rare starves the sender. Method: full segments with arbitrary gaps, behind an
//! arbitrary receive window and round trip, with disorder now and then; after each arrival what waits must stay within the policy's
//! own floor: three ACKs per window (the seed of ACK rate limiting), four per least round trip (TACK), a threshold
//! (ACK frequency), what the sender asks for; and whatever waits does so no longer than the policy's timer.

use acklab_core::ack::ack_rate_limit::{AckRateLimit, Options};
use acklab_core::ack::{AckPolicy, DataSample, Decision, Disorder, Profile};
use acklab_core::options::Value;
use acklab_core::time::{Span, Time};
use proptest::prelude::*;

const MSS: u32 = 1460;

/// What waited after each arrival that was not acknowledged: segments, and for how long.
fn drive(
    policy: &mut impl AckPolicy,
    gaps: &[u16],
    (window, rtt): (u32, Span),
    mut check: impl FnMut(u32, Span),
) {
    let rto = Span::from_millis(200);
    let (mut now, mut waiting, mut oldest) = (Time::ZERO, 0, None);
    for (index, &gap) in gaps.iter().enumerate() {
        let next = now + Span::from_micros(u64::from(gap));
        while let Some(at) = policy.poll_timeout().filter(|&at| at <= next) {
            now = at;
            if policy.handle_timeout(now, rto) == Decision::Now {
                if let Some(oldest) = oldest.take() {
                    check(waiting, now.since(oldest));
                }
                policy.on_ack_sent(now);
                waiting = 0;
            }
        }
        now = next;
        waiting += 1;
        let first = *oldest.get_or_insert(now);
        let sample = DataSample {
            len: MSS,
            mss: MSS,
            unacked_segments: waiting,
            unacked_bytes: waiting * MSS,
            window,
            window_not_shrunk: true,
            srtt: Some(rtt),
            rto,
            ..DataSample::default()
        };
        let mut decision = policy.on_data(now, &sample);
        if index % 997 == 996 {
            policy.on_disorder(now, Disorder::Ahead, window);
            decision = Decision::Now;
        }
        if decision == Decision::Now {
            policy.on_ack_sent(now);
            (waiting, oldest) = (0, None);
        } else {
            check(waiting, now.since(first));
            assert!(policy.poll_timeout().is_some(), "{waiting} wait without a timer");
        }
    }
}

/// The policy of this name with other counts.
fn policy(name: &str, counts: &[(&str, u64)]) -> impl AckPolicy + use<> {
    let mut profile: Profile = name.parse().expect("a policy");
    for &(option, count) in counts {
        assert!(
            profile.options().expect("a policy with options").set(option, Value::Count(count)),
            "{option}"
        );
    }
    profile.policy(0.0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn ack_rate_limiting_leaves_three_acks_in_each_window(
        gaps in proptest::collection::vec(0_u16..300, 5000..9000),
        segments in 6_u32..400,
    ) {
        let window = segments * MSS;
        drive(&mut policy("ack-rate-limit", &[("start", 100), ("round", 20)]), &gaps, (window, Span::from_millis(10)), |waiting, time| {
            assert!(waiting <= (segments / 3).max(2), "{waiting} of {segments} wait");
            assert!(time <= Span::from_millis(200), "for {time:?}");
        });
    }

    #[test]
    fn ack_rate_limiting_on_a_path_in_equilibrium_never_takes_a_step_back(
        jitter_ns in proptest::collection::vec(0_u64..4_900, 6000),
    ) {
        // Rounds of 128 segments 10 us apart take 1270 us, of which each end may be off by half of 1/128: 4.96 us.
        let mut policy = AckRateLimit::new(0.0, Options { start: 100, round: 128, ..Options::default() });
        let mut before = 1;
        for (index, (late, sent)) in jitter_ns.iter().zip(0..).enumerate() {
            let now = Time::ZERO + Span::from_micros(10 * sent) + Span::from_nanos(*late);
            let sample = DataSample { len: MSS, mss: MSS, window: 1 << 30, unacked_segments: 1, unacked_bytes: MSS, ..DataSample::default() };
            policy.on_data(now, &sample);
            assert!(policy.segments() >= before, "at segment {index}");
            before = policy.segments();
        }
        assert!(before > 40, "{before} after 46 rounds");
    }

    #[test]
    fn tack_acknowledges_four_times_in_each_round_trip_or_each_second_segment(
        gaps in proptest::collection::vec(0_u16..3000, 500..2000),
        rtt_us in 200_u64..400_000,
    ) {
        let rtt = Span::from_micros(rtt_us);
        drive(&mut policy("tack", &[]), &gaps, (1 << 20, rtt), |waiting, time| {
            let longest = if waiting < 2 { Span::from_millis(40) } else { (rtt / 4).max(Span::from_millis(40)) };
            assert!(time <= longest, "{waiting} for {time:?} of {rtt:?}");
        });
    }

    #[test]
    fn ack_frequency_lets_nine_segments_wait_and_none_longer_than_asked(
        gaps in proptest::collection::vec(0_u16..3000, 500..2000),
        rtt_us in 200_u64..400_000,
    ) {
        let rtt = Span::from_micros(rtt_us);
        drive(&mut policy("ack-frequency", &[]), &gaps, (1 << 20, rtt), |waiting, time| {
            assert!(waiting <= 9, "{waiting} wait");
            let longest = Span::from_millis(25).min((rtt / 4).max(Span::from_millis(1)));
            assert!(time <= longest, "{waiting} for {time:?} of {rtt:?}");
        });
    }

    #[test]
    fn no_more_wait_than_was_asked_for_where_requests_are_honoured_and_elsewhere_they_change_nothing(
        gaps in proptest::collection::vec(0_u16..3000, 500..1500),
        rtt_us in 200_u64..400_000,
        asked in 1_u32..128,
    ) {
        let rtt = Span::from_micros(rtt_us);
        for profile in Profile::all() {
            let run = |request: Option<u32>| {
                let (mut policy, mut waited) = (profile.policy(0.0), Vec::new());
                if let Some(asked) = request {
                    policy.on_request(asked);
                }
                drive(&mut policy, &gaps, (1 << 20, rtt), |waiting, time| waited.push((waiting, time)));
                waited
            };
            let waited = run(Some(asked));
            assert!(waited.iter().all(|&(_, time)| time <= Span::from_millis(500)));
            if profile.honours_requests() {
                assert!(waited.iter().all(|&(waiting, _)| waiting < asked), "{profile:?} of {asked}");
            } else {
                assert_eq!(waited, run(None), "{profile:?}");
            }
        }
    }
}
