//! [`Costs`]: what the loop's error cost, in the ANCE article's measure and the standard ones.
//!
//! With e(k) the error at the plant's tick k, at t(k) since the beginning and h the period: the
//! article's "ITAE" is S = Σ t|e| in rad·s, without the factor h (only so do its 8727 rad·s fit its
//! plant); the standard ITAE is h S, IAE = h Σ|e|, ISE = h Σe², ITSE = h Σ t e². Each change of the
//! reference opens a step with an overshoot and a settling time (2 %), to the resolution of h; a
//! step that the next change cuts off before it settled counts with its whole length.

use acklab_core::time::{Span, Time};

/// Band around the target within which a step has settled, as a share of the step.
pub const SETTLING_BAND: f64 = 0.02;

/// How far from its target, in steps of the reference, a loop is called unstable. A stable loop starts a step away and
/// overshoots by little more than that; one that diverges passes any bound.
pub const UNSTABLE: f64 = 10.0;

/// Sums over the ticks of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    period: f64,
    time_abs: f64,
    abs: f64,
    square: f64,
    time_square: f64,
    steps: Vec<StepResponse>,
    open: Option<OpenStep>,
    last: Option<(f64, f64)>,
    /// The largest change of the reference.
    height: f64,
}

/// How the plant answered one change of the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepResponse {
    /// The first tick with the new reference.
    pub at: Time,
    /// How far beyond the target it went, as a share of the step; 0 where it did not.
    pub overshoot: f64,
    /// From `at` to the first tick after which it stayed within 2 %; the step's length where it did
    /// not settle.
    pub settling: Span,
    /// Whether it settled before the next change.
    pub settled: bool,
    /// The greatest distance from the target, on either side, in the reference's unit.
    pub furthest: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct OpenStep {
    at: Time,
    target: f64,
    height: f64,
    overshoot: f64,
    furthest: f64,
    inside_since: Option<Time>,
}

impl Costs {
    /// No ticks yet, `period` apart.
    pub fn new(period: Span) -> Self {
        Self {
            period: period.as_secs_f64(),
            time_abs: 0.0,
            abs: 0.0,
            square: 0.0,
            time_square: 0.0,
            steps: Vec::new(),
            open: None,
            last: None,
            height: 0.0,
        }
    }

    /// Counts the tick at `now`.
    pub fn on_tick(&mut self, now: Time, reference: f64, position: f64) {
        let (t, error) = (now.as_secs_f64(), reference - position);
        self.time_abs += t * error.abs();
        self.abs += error.abs();
        self.square += error * error;
        self.time_square += t * error * error;
        // Before the first reference the target was where the plant stood.
        let (before, _) = self.last.unwrap_or((position, position));
        if (reference - before).abs() > 0.0 {
            self.steps.extend(self.open.take().map(|step| step.close(now)));
            let height = reference - before;
            self.height = self.height.max(height.abs());
            self.open = Some(OpenStep {
                at: now,
                target: reference,
                height,
                overshoot: 0.0,
                furthest: 0.0,
                inside_since: None,
            });
        }
        if let Some(step) = &mut self.open {
            step.on_position(now, position);
        }
        self.last = Some((reference, position));
    }

    /// The article's S = Σ t|e|, rad·s for a motor.
    pub const fn s(&self) -> f64 {
        self.time_abs
    }

    /// ITAE = h Σ t|e|, rad·s².
    pub fn itae(&self) -> f64 {
        self.period * self.time_abs
    }

    /// IAE = h Σ|e|, rad·s.
    pub fn iae(&self) -> f64 {
        self.period * self.abs
    }

    /// ISE = h Σe², rad²·s.
    pub fn ise(&self) -> f64 {
        self.period * self.square
    }

    /// ITSE = h Σ t e², rad²·s².
    pub fn itse(&self) -> f64 {
        self.period * self.time_square
    }

    /// Of the step under way: how far beyond the target it went so far, as a share of the step.
    pub fn overshoot(&self) -> f64 {
        self.open.map_or(0.0, |step| step.overshoot)
    }

    /// Of the step under way: from its begin to `now`, or to when it came into the 2 % band to stay there so far.
    pub fn settling(&self, now: Time) -> Span {
        self.open.map_or(Span::ZERO, |step| step.close(now).settling)
    }

    /// Whether the position was more than [`UNSTABLE`] of the largest steps away from its target, on either side, in the
    /// step under way or the one before: the loop diverges. A loop whose reference stands still has its first one alone.
    pub fn is_unstable(&self) -> bool {
        let before = self.steps.last().map(|step| step.furthest);
        let furthest = before.into_iter().chain(self.open.map(|step| step.furthest));
        furthest.fold(0.0, f64::max) > UNSTABLE * self.height
    }

    /// The steps that ended with another, in order; the last, unfinished one is left out.
    pub fn steps(&self) -> &[StepResponse] {
        &self.steps
    }
}

impl OpenStep {
    fn on_position(&mut self, now: Time, position: f64) {
        let beyond = (position - self.target) / self.height;
        self.overshoot = self.overshoot.max(beyond);
        self.furthest = self.furthest.max((position - self.target).abs());
        if beyond.abs() > SETTLING_BAND {
            self.inside_since = None;
        } else if self.inside_since.is_none() {
            self.inside_since = Some(now);
        }
    }

    fn close(self, now: Time) -> StepResponse {
        let end = self.inside_since.unwrap_or(now);
        StepResponse {
            at: self.at,
            overshoot: self.overshoot,
            settling: end.since(self.at),
            settled: self.inside_since.is_some(),
            furthest: self.furthest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H: Span = Span::from_millis(500);

    fn after(ticks: &[(f64, f64)]) -> Costs {
        let mut costs = Costs::new(H);
        for (k, (reference, position)) in ticks.iter().enumerate() {
            costs.on_tick(Time::ZERO + H * k as u64, *reference, *position);
        }
        costs
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "exact in binary")]
    fn the_sums_are_those_of_their_formulas() {
        let costs = after(&[(1.0, 0.0), (1.0, 0.5), (1.0, 3.0)]);
        assert_eq!(costs.s(), 0.5 * 0.5 + 1.0 * 2.0);
        assert_eq!(costs.itae(), 0.5 * costs.s());
        assert_eq!(costs.iae(), 0.5 * 3.5);
        assert_eq!(costs.ise(), 0.5 * (1.0 + 0.25 + 4.0));
        assert_eq!(costs.itse(), 0.5 * (0.5 * 0.25 + 4.0));
    }

    #[test]
    fn a_step_has_its_overshoot_and_settles_where_it_stays_in_the_band() {
        let costs =
            after(&[(2.0, 0.0), (2.0, 2.5), (2.0, 1.99), (2.0, 2.02), (1.0, 2.0), (1.0, 1.5)]);
        let [step] = costs.steps() else { panic!("{costs:?}") };
        assert_eq!((step.overshoot, step.settling, step.settled), (0.25, H * 2, true));
        assert!(!costs.is_unstable());
        // Of the step under way: half of it is done.
        assert_eq!((costs.overshoot(), costs.settling(Time::ZERO + H * 5)), (0.0, H));
        // The second step is cut off before it settles.
        let cut = after(&[(0.0, 0.0), (1.0, 0.0), (1.0, 0.5), (0.0, 0.5)]);
        assert_eq!((cut.steps()[0].settling, cut.steps()[0].settled), (H * 2, false));
    }

    #[test]
    fn a_loop_is_unstable_that_is_ten_of_its_largest_steps_away_on_either_side() {
        let is_unstable = |ticks: &[(f64, f64)]| after(ticks).is_unstable();
        assert!(!is_unstable(&[(0.0, 0.0), (1.0, 0.0), (1.0, 10.9)]));
        assert!(is_unstable(&[(0.0, 0.0), (1.0, 0.0), (1.0, 11.5)]));
        // Against its step; and away from a reference that never changes.
        assert!(is_unstable(&[(0.0, 0.0), (1.0, 0.0), (1.0, -9.5)]));
        assert!(is_unstable(&[(1.0, 0.0), (1.0, 0.5), (1.0, 12.0)]));
        // It was back in the step before the last.
        assert!(!is_unstable(&[(0.0, 0.0), (1.0, 12.0), (0.0, 0.0), (1.0, 0.0)]));
        // A small step begins where a large one was cut off.
        assert!(!is_unstable(&[(100.0, 0.0), (100.5, 80.0), (100.5, 90.0)]));
    }
}
