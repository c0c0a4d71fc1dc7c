//! ACK rate limiting (Statkus, Paulikas, Krukonis: TCP Acknowledgment Optimization in Low Power and Embedded
//! Devices, Electronics 10(6):639, 2021, section 3 and figures 1 to 3): Linux's policy with the number of
//! segments that one ACK covers raised step by step, as long as that does no harm.
//!
//! The first `start` segments are acknowledged as Linux does. After them each round of `round` segments is
//! timed: a round no slower than the one before raises the number of segments per ACK (`ack_rate_val`), a slower
//! one lowers it; it stays within `least` and RWND / (`acks` MSS) (`ack_rate_max`). Data out of order, or a
//! retransmission, begins all anew. ACKs for other reasons (quick ACKs, the timer, a closed window) are Linux's.
//!
//! The paper prints its code as pictures; what its text leaves open is an option: whether a round's time or the
//! round trip is judged, what a slower round falls back to, whether a reset forgets the number reached, whether the
//! maximum follows the window after the start, and whether reading acknowledges sooner (`tcp_cleanup_rbuf`, which
//! the paper does not mention and which unpatched acknowledges each two segments).
//!
//! Nor does it say how much slower a slower round is. On a path in equilibrium each round takes as long as the one
//! before, and the least jitter tosses a coin: the number walks at random. So a round is slower only if it took
//! longer by more than 1/128 of the last one (`margin`): beyond the jitter of a round of 500 packets on a path that
//! keeps its rate (each end of it off by two packets), and less than any change of rate that matters.

use super::linux::{self, Linux};
use super::{AckPolicy, DataSample, Decision, Disorder, ReadSample};
use crate::time::{Span, Time};

crate::words! {
    /// What a round is judged by.
    pub enum Judge {
        /// The time in which its segments arrived, which is the throughput.
        Throughput = "throughput",
        /// The smoothed round trip, as far as this side knows it.
        Rtt = "rtt",
        /// Both: either one getting worse makes the round a slower one.
        Both = "both",
    }
}

crate::words! {
    /// What a slower round does to the segments per ACK.
    pub enum Fallback {
        /// One step down.
        Step = "step",
        /// The value of before the last rise.
        Previous = "previous",
    }
}

crate::options! {
    /// The paper's variables; what it gives no number for has one that its figures suggest.
    #[derive(Copy, PartialEq, Eq)]
    pub struct Options {
        /// Segments before limiting starts: start_ack_lmt, 2000 in the paper.
        start: u32 as count(0, 10_000_000) = "2000",
        /// Segments of a round that is timed: start_ack_lmt2, which begins as start_ack_lmt.
        round: u32 as count(1, 10_000_000) = "2000",
        /// By how much a round changes the segments per ACK.
        step: u32 as count(1, 1000) = "1",
        /// Segments per ACK beyond which one leaves, at the start and at the least; 1 is Linux's own.
        least: u32 as count(1, 1000) = "1",
        /// ACKs per receive window at the least: ack_rate_max = RWND / (3 MSS).
        acks: u32 as count(2, 1000) = "3",
        /// What a round is judged by.
        judge: Judge = "throughput",
        /// A round is slower if it is above the last one by more than the last one halved so often, 1/128; 0: by anything.
        margin: u32 as count(0, 31) = "7",
        /// What a slower round falls back to.
        fallback: Fallback = "step",
        /// Disorder forgets the segments per ACK reached, too, and not the count of segments alone.
        forget: bool = "true",
        /// The maximum follows the window after the start, too.
        follow: bool = "false",
        /// Reading acknowledges no sooner than arriving (else tcp_cleanup_rbuf stays as it is).
        reads: bool = "true",
    }
}

/// Linux with a limited rate of ACKs.
#[derive(Clone, Copy, Debug)]
pub struct AckRateLimit {
    linux: Linux,
    options: Options,
    /// Segments since the start or the last disorder, up to `start`: `init_pkt_cnt`.
    seen: u32,
    /// Segments of this round: `ack_pkt_cnt`.
    counted: u32,
    began: Time,
    /// The last round, as it was judged.
    last: Option<Round>,
    /// Segments per ACK: `ack_rate_val`.
    segments: u32,
    /// What they were before the last rise.
    before: u32,
    /// At most: `ack_rate_max`; 0 before the first segment.
    most: u32,
    /// Segments per ACK and the most, as they were told last.
    told: [u32; 2],
}

/// What a round is judged by.
#[derive(Clone, Copy, Debug)]
struct Round {
    took: Span,
    rtt: Option<Span>,
}

impl AckRateLimit {
    /// A fresh connection; `phase` is not used.
    pub fn new(phase: f64, options: Options) -> Self {
        let least = options.least;
        Self {
            linux: Linux::new(phase, linux::Options::default()),
            options,
            seen: 0,
            counted: 0,
            began: Time::ZERO,
            last: None,
            segments: least,
            before: least,
            most: 0,
            told: [0; 2],
        }
    }

    /// Segments per ACK now.
    pub const fn segments(&self) -> u32 {
        self.segments
    }

    fn count(&mut self, now: Time, sample: &DataSample) {
        let starting = self.seen < self.options.start;
        if starting || self.options.follow || self.most == 0 {
            let fits = sample.window / self.options.acks.saturating_mul(sample.mss.max(1));
            self.most = fits.max(self.options.least);
            self.segments = self.segments.min(self.most);
        }
        if starting {
            self.seen += 1;
            return;
        }
        if self.counted == 0 {
            self.began = now;
        }
        self.counted += 1;
        if self.counted >= self.options.round {
            self.counted = 0;
            self.judge(Round { took: now.since(self.began), rtt: sample.srtt });
        }
    }

    fn judge(&mut self, round: Round) {
        let above = |now: Span, last: Span| now > last + self.tolerated(last);
        let longer = |last: Round| above(round.took, last.took);
        let farther =
            |last: Round| last.rtt.zip(round.rtt).is_some_and(|(last, rtt)| above(rtt, last));
        let worse = self.last.is_some_and(|last| match self.options.judge {
            Judge::Throughput => longer(last),
            Judge::Rtt => farther(last),
            Judge::Both => longer(last) || farther(last),
        });
        let step = self.options.step;
        if !worse {
            self.before = self.segments;
            self.segments = (self.segments + step).min(self.most);
        } else if self.options.fallback == Fallback::Previous {
            self.segments = self.before;
        } else {
            self.segments = self.segments.saturating_sub(step).max(self.options.least);
        }
        self.last = Some(round);
    }

    /// By how much more than `last` a round may take and is no slower.
    const fn tolerated(&self, last: Span) -> Span {
        match self.options.margin {
            0 => Span::ZERO,
            halvings => Span::from_nanos(last.as_nanos() >> halvings),
        }
    }
}

impl AckPolicy for AckRateLimit {
    fn on_data(&mut self, now: Time, sample: &DataSample) -> Decision {
        self.count(now, sample);
        let limited = self.seen >= self.options.start;
        let segments = if limited { self.segments } else { 1 };
        self.linux.stretch(segments, self.options.reads);
        self.linux.on_data(now, sample)
    }

    fn on_disorder(&mut self, now: Time, disorder: Disorder, window: u32) {
        (self.seen, self.counted, self.last) = (0, 0, None);
        if self.options.forget {
            (self.segments, self.before) = (self.options.least, self.options.least);
        }
        self.linux.stretch(1, self.options.reads);
        self.linux.on_disorder(now, disorder, window);
    }

    fn on_read(&mut self, now: Time, sample: &ReadSample) -> Decision {
        self.linux.on_read(now, sample)
    }

    fn on_data_sent(&mut self, now: Time) {
        self.linux.on_data_sent(now);
    }

    fn on_quickack(&mut self, now: Time, on: bool, always: bool) {
        self.linux.on_quickack(now, on, always);
    }

    fn poll_rate(&mut self) -> Option<[u32; 2]> {
        let rate = [self.segments, self.most];
        (std::mem::replace(&mut self.told, rate) != rate).then_some(rate)
    }

    fn on_ack_sent(&mut self, now: Time) {
        self.linux.on_ack_sent(now);
    }

    fn handle_timeout(&mut self, now: Time, rto: Span) -> Decision {
        self.linux.handle_timeout(now, rto)
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.linux.poll_timeout()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    struct Stream {
        policy: AckRateLimit,
        now: Time,
        waiting: u32,
        window: u32,
    }

    impl Stream {
        fn new(options: Options) -> Self {
            let policy = AckRateLimit::new(0.0, options);
            Self { policy, now: Time::ZERO, waiting: 0, window: 300 * MSS }
        }

        /// Segments `gap` apart; how many ACKs left.
        fn segments(&mut self, count: u32, gap: Span) -> u32 {
            let before = (self.now, 0);
            (0..count)
                .fold(before, |(_, acks), _| {
                    self.now += gap;
                    self.waiting += 1;
                    let sample = DataSample {
                        len: MSS,
                        mss: MSS,
                        unacked_segments: self.waiting,
                        unacked_bytes: self.waiting * MSS,
                        window: self.window,
                        window_not_shrunk: true,
                        rto: Span::from_millis(200),
                        ..DataSample::default()
                    };
                    if self.policy.on_data(self.now, &sample) == Decision::Wait {
                        return (self.now, acks);
                    }
                    self.policy.on_ack_sent(self.now);
                    self.waiting = 0;
                    (self.now, acks + 1)
                })
                .1
        }
    }

    const QUICK: Span = Span::from_micros(10);
    const SLOW: Span = Span::from_micros(20);

    fn small() -> Options {
        Options { start: 100, round: 100, ..Options::default() }
    }

    #[test]
    fn nothing_is_limited_before_the_start() {
        let mut stream = Stream::new(small());
        let mut linux = Stream::new(Options { start: 1_000_000, ..small() });
        assert_eq!(stream.segments(100, QUICK), linux.segments(100, QUICK));
        assert_eq!(stream.policy.segments(), 1);
    }

    #[test]
    fn limiting_may_start_with_the_first_segment() {
        let mut stream = Stream::new(Options { start: 0, ..small() });
        stream.segments(300, QUICK);
        assert_eq!(stream.policy.segments(), 4);
    }

    #[test]
    fn each_round_no_slower_than_the_last_adds_a_step_up_to_a_third_of_the_window() {
        let mut stream = Stream::new(small());
        stream.segments(100, QUICK);
        for round in 1..=99 {
            stream.segments(100, QUICK);
            assert_eq!(stream.policy.segments(), 1 + round);
        }
        stream.segments(1000, QUICK);
        assert_eq!(stream.policy.segments(), 100);
        // One ACK per 101 segments: more than 100 wait.
        assert_eq!(stream.segments(1010, QUICK), 10);
    }

    #[test]
    fn each_change_of_the_number_is_told_once() {
        let mut stream = Stream::new(small());
        let mut told = Vec::new();
        for _ in 0..400 {
            stream.segments(1, QUICK);
            told.extend(stream.policy.poll_rate());
        }
        assert_eq!(told, [[1, 100], [2, 100], [3, 100], [4, 100]]);
    }

    #[test]
    fn a_slower_round_takes_a_step_back_but_never_below_the_least() {
        let mut stream = Stream::new(small());
        stream.segments(100 + 300, QUICK);
        assert_eq!(stream.policy.segments(), 4);
        stream.segments(100, SLOW);
        assert_eq!(stream.policy.segments(), 3);
        for more in 1..10 {
            stream.segments(100, SLOW + Span::from_micros(more));
        }
        assert_eq!(stream.policy.segments(), 1);
        let mut jumps = Stream::new(Options { fallback: Fallback::Previous, step: 5, ..small() });
        jumps.segments(100 + 300, QUICK);
        jumps.segments(100, SLOW);
        assert_eq!(jumps.policy.segments(), 11);
    }

    #[test]
    fn a_round_within_the_margin_of_the_last_is_no_slower_and_one_beyond_it_is() {
        // A round of 128 segments 10 us apart takes 1270 us; 1/128 of that is 9.921 us.
        for (margin, late, slower) in
            [(7, 9_921, false), (7, 9_922, true), (0, 1, true), (0, 0, false)]
        {
            let mut stream = Stream::new(Options { start: 100, round: 128, margin, ..small() });
            stream.segments(100 + 256, QUICK);
            assert_eq!(stream.policy.segments(), 3);
            stream.segments(127, QUICK);
            stream.segments(1, QUICK + Span::from_nanos(late));
            assert_eq!(stream.policy.segments(), if slower { 2 } else { 4 }, "{margin}, {late}");
        }
    }

    #[test]
    fn disorder_starts_anew_and_may_keep_the_number_reached() {
        for forget in [true, false] {
            let mut stream = Stream::new(Options { forget, ..small() });
            stream.segments(100 + 900, QUICK);
            stream.policy.on_disorder(stream.now, Disorder::Ahead, stream.window);
            stream.policy.on_ack_sent(stream.now);
            assert_eq!(stream.policy.segments(), if forget { 1 } else { 10 });
            let acks = stream.segments(100, QUICK);
            assert!(acks >= 49, "{acks} ACKs right after disorder");
        }
    }

    #[test]
    fn without_the_patch_of_reads_each_two_segments_are_acknowledged_by_reading() {
        for (reads, expected) in [(true, Decision::Wait), (false, Decision::Now)] {
            let mut stream = Stream::new(Options { reads, ..small() });
            stream.segments(100 + 1900, QUICK);
            while stream.waiting < 3 {
                stream.segments(1, QUICK);
            }
            let sample = ReadSample {
                copied: 3 * MSS,
                unacked_bytes: stream.waiting * MSS,
                queue_empty: true,
                ..ReadSample::default()
            };
            assert_eq!(stream.policy.on_read(stream.now, &sample), expected);
        }
    }
}
