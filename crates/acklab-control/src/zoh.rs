//! Exact discretisation under zero-order hold, with or without an input delay.
//!
//! Over a period h in which the input is constant, x(k+1) = Φ x(k) + Γ u(k) with Φ = e^(Ah) and
//! Γ = ∫₀ʰ e^(As) ds B; both stand in one exponential of [[A, B], [0, 0]] h (C. F. Van Loan, IEEE
//! Trans. Automatic Control 23(3), 1978). A delay of d periods and a fraction ε splits the period in
//! two (K. J. Åström and B. Wittenmark, Computer-Controlled Systems, section 3.2).

use acklab_core::time::Span;

use crate::expm::expm;
use crate::matrix::Matrix;
use crate::plant::StateSpace;

/// x(k+1) = `phi` x(k) + `gamma` u(k).
#[derive(Clone, Debug, PartialEq)]
pub struct Zoh {
    /// Φ, states by states.
    pub phi: Matrix,
    /// Γ, states by inputs.
    pub gamma: Matrix,
}

/// x(k+1) = `phi` x(k) + `gamma_older` u(k - `periods` - 1) + `gamma_newer` u(k - `periods`).
#[derive(Clone, Debug, PartialEq)]
pub struct DelayedZoh {
    /// Φ, states by states.
    pub phi: Matrix,
    /// Γ of the command that acts at the period's beginning.
    pub gamma_older: Matrix,
    /// Γ of the command that acts from the fraction ε of the delay until the period's end.
    pub gamma_newer: Matrix,
    /// Whole periods in the delay.
    pub periods: u64,
}

impl Zoh {
    /// Discretises `model` over `period`.
    pub fn new(model: &StateSpace, period: Span) -> Self {
        let (a, b) = (model.a(), model.b());
        let (states, inputs) = (a.rows(), b.cols());
        let seconds = period.as_secs_f64();
        let size = states + inputs;
        let whole = expm(&Matrix::from_fn(size, size, |i, j| match (i < states, j < states) {
            (true, true) => a.at(i, j) * seconds,
            (true, false) => b.at(i, j - states) * seconds,
            (false, _) => 0.0,
        }));
        Self {
            phi: Matrix::from_fn(states, states, |i, j| whole.at(i, j)),
            gamma: Matrix::from_fn(states, inputs, |i, j| whole.at(i, j + states)),
        }
    }

    /// The state at the end of a period that began in `state` under the constant `input` of a plant
    /// with one input.
    pub fn step(&self, state: &[f64], input: f64) -> Vec<f64> {
        let row = |i: usize| {
            let moved: f64 = state.iter().enumerate().map(|(j, x)| self.phi.at(i, j) * x).sum();
            moved + self.gamma.at(i, 0) * input
        };
        (0..state.len()).map(row).collect()
    }
}

impl DelayedZoh {
    /// Discretises `model` over `period` where each input acts `delay` after it was given.
    pub fn new(model: &StateSpace, period: Span, delay: Span) -> Self {
        let fraction = Span::from_nanos(delay.as_nanos() % period.as_nanos().max(1));
        let (before, after) =
            (Zoh::new(model, fraction), Zoh::new(model, period.saturating_sub(fraction)));
        Self {
            phi: after.phi.times(&before.phi),
            gamma_older: after.phi.times(&before.gamma),
            gamma_newer: after.gamma,
            periods: delay.as_nanos() / period.as_nanos().max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use acklab_core::math;

    use super::*;
    use crate::plant::TransferFunction;

    #[test]
    fn the_motor_over_14_ms_is_the_closed_form() {
        // y'' + a y' = b u: the position gains (1 - e^-ah)/a of the speed, and so on.
        let (a, b, h) = (36.17, 36.3, 0.014);
        let e = math::exp(-a * h);
        let zoh = Zoh::new(&TransferFunction::dc_motor().to_state_space(), Span::from_millis(14));
        // Controllable form: the states are speed/b and position/b.
        let phi = Matrix::from_rows([[e, 0.0], [(1.0 - e) / a, 1.0]]);
        let gamma = Matrix::from_rows([[(1.0 - e) / a], [(h - (1.0 - e) / a) / a]]);
        assert!(zoh.phi.plus(-1.0, &phi).norm_1() < 1e-15, "{zoh:?}");
        assert!(zoh.gamma.plus(-1.0, &gamma).norm_1() < 1e-15, "{zoh:?}");
        assert!((b * zoh.gamma.at(1, 0) - 0.003_025_857_475).abs() < 1e-12);
    }

    #[test]
    fn a_delayed_step_is_two_undelayed_steps_one_after_the_other() {
        let motor = TransferFunction::dc_motor().to_state_space();
        let period = Span::from_millis(14);
        let delayed = DelayedZoh::new(&motor, period, Span::from_micros(33_500));
        assert_eq!(delayed.periods, 2);
        let (first, second) = (Span::from_micros(5_500), Span::from_micros(8_500));
        let state = [0.3, -0.2];
        let half = Zoh::new(&motor, first).step(&state, 7.0);
        let expected = Zoh::new(&motor, second).step(&half, -3.0);
        for (i, expected) in expected.iter().enumerate() {
            let moved: f64 = (0..2).map(|j| delayed.phi.at(i, j) * state[j]).sum();
            let got =
                moved + 7.0 * delayed.gamma_older.at(i, 0) + -3.0 * delayed.gamma_newer.at(i, 0);
            assert!((got - expected).abs() < 1e-14, "{got} {expected}");
        }
    }
}
