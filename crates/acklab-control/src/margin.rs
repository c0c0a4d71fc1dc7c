//! How much delay the loop bears before it is unstable.
//!
//! Discrete: plant, PI and an input delay that need not be whole periods as one linear map from tick
//! to tick ([`closed_loop`]); it is stable while its spectral radius is below one. Continuous: phase
//! margin over crossover frequency of the open loop, less half a period where a hold acts. The ANCE
//! article's loop bears 70 to 72 ms sampled (by integration), 77.9 ms in continuous time. Left out:
//! derivatives and limits, with which the loop is not this map.

use acklab_core::math;
use acklab_core::time::Span;

use crate::matrix::Matrix;
use crate::pid::{Integration, PidGains};
use crate::plant::{StateSpace, TransferFunction};
use crate::zoh::DelayedZoh;

/// Squarings of a matrix in [`spectral_radius`]: 2^40 steps of the map, far more than rounding shows.
const SQUARINGS: u32 = 40;

/// The greatest absolute value among the eigenvalues of a square matrix, as the growth per step of
/// its powers (Gelfand's formula), by repeated squaring.
pub fn spectral_radius(matrix: &Matrix) -> f64 {
    let (mut power, mut log, mut share) = (matrix.clone(), 0.0, 1.0);
    for _ in 0..SQUARINGS {
        let norm = power.norm_1();
        if norm == 0.0 {
            return 0.0;
        }
        log += share * math::ln(norm);
        power = power.scaled(1.0 / norm);
        power = power.times(&power);
        share *= 0.5;
    }
    math::exp(log)
}

/// Whether all eigenvalues lie inside the unit circle, decided as soon as a power of the matrix shows
/// it: by a norm below one, or by a trace that stable eigenvalues cannot add up to.
pub fn is_stable(matrix: &Matrix) -> bool {
    let mut power = matrix.clone();
    for _ in 0..SQUARINGS {
        if power.norm_1() < 1.0 {
            return true;
        }
        let trace: f64 = (0..power.rows()).map(|i| power.at(i, i)).sum();
        if trace.abs() > power.rows() as f64 || !power.is_finite() {
            return false;
        }
        power = power.times(&power);
    }
    false
}

/// The loop from tick to tick under a PI controller whose command acts `delay` after its tick.
///
/// States: the plant's, the integral, the last error, and the commands of the last `⌊delay/h⌋ + 1`
/// ticks, newest first. The set point is zero.
pub fn closed_loop(model: &StateSpace, gains: &PidGains, period: Span, delay: Span) -> Matrix {
    let zoh = DelayedZoh::new(model, period, delay);
    let (states, h) = (model.states(), period.as_secs_f64());
    let (integral, last_error) = (states, states + 1);
    let (commands, whole) = (states + 2, zoh.periods as usize);
    let size = commands + whole + 1;
    let unit = |at: usize| Matrix::from_fn(1, size, |_, j| f64::from(u8::from(j == at)));
    // Each quantity as a row over the states: error, integral after this tick, command.
    let error = Matrix::from_fn(1, size, |_, j| match j {
        j if j < states => -model.c().at(0, j),
        // The command that acts until the tick.
        j if j == commands + whole => -model.d().at(0, 0),
        _ => 0.0,
    });
    let (now, last) = match gains.integration {
        Integration::ForwardEuler | Integration::BackwardEuler => (1.0, 0.0),
        Integration::Tustin => (0.5, 0.5),
    };
    // Without integral action the integral is no state: it would stay, and count as marginal.
    let kept = unit(integral).scaled(f64::from(u8::from(gains.ki != 0.0)));
    let summed = kept.plus(gains.ki * h * now, &error).plus(gains.ki * h * last, &unit(last_error));
    let used = if gains.integration == Integration::ForwardEuler {
        unit(integral)
    } else {
        summed.clone()
    };
    let command = used.plus(gains.kp, &error);
    let past = |ticks: usize| match ticks {
        0 => command.clone(),
        _ => unit(commands + ticks - 1),
    };
    let (newer, older) = (past(whole), past(whole + 1));
    Matrix::from_fn(size, size, |i, j| match i {
        i if i < states => {
            let moved = if j < states { zoh.phi.at(i, j) } else { 0.0 };
            moved
                + zoh.gamma_newer.at(i, 0) * newer.at(0, j)
                + zoh.gamma_older.at(i, 0) * older.at(0, j)
        }
        i if i == integral => summed.at(0, j),
        i if i == last_error => error.at(0, j),
        i => past(i - commands).at(0, j),
    })
}

/// The greatest delay at which the sampled loop is stable, found by a sweep in steps of a tenth of
/// a period and halved down to the nanosecond; `None` where it is unstable without any delay, and
/// `longest` where it is stable throughout.
pub fn delay_margin(
    model: &StateSpace,
    gains: &PidGains,
    period: Span,
    longest: Span,
) -> Option<Span> {
    let stable = |delay: Span| is_stable(&closed_loop(model, gains, period, delay));
    if !stable(Span::ZERO) {
        return None;
    }
    let step = Span::from_nanos((period.as_nanos() / 10).max(1));
    let mut low = Span::ZERO;
    let mut high = loop {
        let next = low + step;
        if next >= longest {
            return Some(longest);
        }
        if !stable(next) {
            break next;
        }
        low = next;
    };
    while high.as_nanos() - low.as_nanos() > 1 {
        let middle = Span::from_nanos(u64::midpoint(low.as_nanos(), high.as_nanos()));
        if stable(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(low)
}

/// The factor by which all gains together may grow until the sampled loop is unstable under `delay`, found by a sweep in
/// steps of 5 % and halved down to a millionth; `None` where it is unstable as it is, and `most` where it is stable
/// throughout.
pub fn gain_margin(
    model: &StateSpace,
    gains: &PidGains,
    (period, delay): (Span, Span),
    most: f64,
) -> Option<f64> {
    let stable = |factor: f64| {
        let scaled = PidGains { kp: factor * gains.kp, ki: factor * gains.ki, ..*gains };
        is_stable(&closed_loop(model, &scaled, period, delay))
    };
    if !stable(1.0) {
        return None;
    }
    let mut low = 1.0;
    let mut high = loop {
        let next = low * 1.05;
        if next >= most {
            return Some(most);
        }
        if !stable(next) {
            break next;
        }
        low = next;
    };
    while high / low > 1.0 + 1e-6 {
        let middle = f64::midpoint(low, high);
        if stable(middle) { low = middle } else { high = middle }
    }
    Some(low)
}

/// Margins of the continuous open loop of a PI controller and a plant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContinuousMargin {
    /// Where the open loop's gain falls through one, rad/s.
    pub crossover: f64,
    /// Phase margin there, rad.
    pub phase: f64,
    /// The delay that uses up the phase margin, s.
    pub delay: f64,
}

/// The margins at the highest crossover below 10^6 rad/s; `None` where the gain never crosses one
/// from above.
pub fn continuous_margin(plant: &TransferFunction, gains: &PidGains) -> Option<ContinuousMargin> {
    let open = |w: f64| {
        let (re, im) = divide(evaluate(plant.numerator(), w), evaluate(plant.denominator(), w));
        // Times Kp + Ki/(jw).
        (re * gains.kp + im * gains.ki / w, im * gains.kp - re * gains.ki / w)
    };
    let gain = |w: f64| {
        let (re, im) = open(w);
        re * re + im * im
    };
    let mut low = 1e6;
    while gain(low) < 1.0 {
        low /= 1.05;
        if low < 1e-6 {
            return None;
        }
    }
    let mut high = low * 1.05;
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if gain(middle) >= 1.0 { low = middle } else { high = middle }
    }
    let (re, im) = open(low);
    // The angle from the negative real axis, counted from -180 degrees upwards.
    let phase = math::atan2(-im, -re);
    Some(ContinuousMargin { crossover: low, phase, delay: phase / low })
}

/// A polynomial, highest power first, at jw: real and imaginary part.
fn evaluate(polynomial: &[f64], w: f64) -> (f64, f64) {
    polynomial.iter().fold((0.0, 0.0), |(re, im), c| (c - im * w, re * w))
}

fn divide((a, b): (f64, f64), (c, d): (f64, f64)) -> (f64, f64) {
    let square = c * c + d * d;
    ((a * c + b * d) / square, (b * c - a * d) / square)
}
