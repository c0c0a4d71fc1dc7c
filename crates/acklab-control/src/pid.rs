//! [`Pid`]: P, PI and PID in parallel form, u = Kp e + Ki ∫e + Kd de/dt.
//!
//! The integral's three discretisations are forward Euler (the command does not see the present
//! error's share), backward Euler and Tustin. The derivative acts on the error through a first-order
//! filter, by backward Euler. Commands are limited, by default to ±[`COMMAND_CAP`], so that a loop
//! that diverges stays finite; two ways keep the integral from winding up meanwhile (K. J. Åström
//! and T. Hägglund, PID Controllers, section 3.5).

use acklab_core::time::Span;

/// Bound on every command where no other is set: far above any motor, far below infinity.
pub const COMMAND_CAP: f64 = 1e6;

acklab_core::words! {
    /// How the integral is discretised.
    #[derive(Default)]
    pub enum Integration {
        /// u(k) = Kp e(k) + I(k), then I(k+1) = I(k) + Ki h e(k).
        #[default]
        ForwardEuler = "forward-euler",
        /// I(k) = I(k-1) + Ki h e(k), then u(k) = Kp e(k) + I(k).
        BackwardEuler = "backward-euler",
        /// As backward Euler, with the mean of e(k) and e(k-1).
        Tustin = "tustin",
    }
}

/// What happens to the integral while the command is at its limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum AntiWindup {
    #[default]
    None,
    /// It stands still while the error drives the command further out.
    Clamping,
    /// It is led back by the excess over this time.
    BackCalculation(Span),
}

/// Gains and options.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PidGains {
    /// Kp, command per error.
    pub kp: f64,
    /// Ki, command per error and second.
    pub ki: f64,
    /// Kd, command per error per second.
    pub kd: f64,
    /// Time constant of the derivative's filter; zero for none.
    pub derivative_filter: Span,
    /// How the integral is discretised.
    pub integration: Integration,
    /// What happens to the integral at the limit.
    pub anti_windup: AntiWindup,
    /// Commands stay within ± this.
    pub limit: f64,
}

impl Default for PidGains {
    /// The ANCE article's PI: Kp = 11.86, Ki = 47.45 (section 4).
    fn default() -> Self {
        Self::pi(11.86, 47.45)
    }
}

impl PidGains {
    /// Proportional control.
    pub const fn p(kp: f64) -> Self {
        Self::pi(kp, 0.0)
    }

    /// Proportional and integral control.
    pub const fn pi(kp: f64, ki: f64) -> Self {
        Self {
            kp,
            ki,
            kd: 0.0,
            derivative_filter: Span::ZERO,
            integration: Integration::ForwardEuler,
            anti_windup: AntiWindup::None,
            limit: COMMAND_CAP,
        }
    }

    /// All three.
    pub const fn pid(kp: f64, ki: f64, kd: f64, derivative_filter: Span) -> Self {
        Self { kd, derivative_filter, ..Self::pi(kp, ki) }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Pid {
    gains: PidGains,
    period: f64,
    integral: f64,
    derivative: f64,
    last_error: f64,
}

impl Pid {
    /// At rest: nothing integrated, the error before the first taken as zero.
    pub fn new(gains: PidGains, period: Span) -> Self {
        let period = period.as_secs_f64();
        Self { gains, period, integral: 0.0, derivative: 0.0, last_error: 0.0 }
    }

    /// The command for `error`, one period after the last.
    pub fn update(&mut self, error: f64) -> f64 {
        let PidGains { kp, ki, kd, integration, limit, .. } = self.gains;
        let h = self.period;
        if kd != 0.0 {
            let filter = self.gains.derivative_filter.as_secs_f64();
            self.derivative =
                (filter * self.derivative + kd * (error - self.last_error)) / (filter + h);
        }
        let grown = ki
            * h
            * match integration {
                Integration::ForwardEuler | Integration::BackwardEuler => error,
                Integration::Tustin => f64::midpoint(error, self.last_error),
            };
        let before = self.integral;
        let used = if integration == Integration::ForwardEuler { before } else { before + grown };
        let wanted = kp * error + used + self.derivative;
        let mut command = wanted.clamp(-limit, limit);
        self.integral = before + grown;
        match self.gains.anti_windup {
            AntiWindup::None => {}
            AntiWindup::Clamping => {
                if wanted.abs() > limit && (wanted > command) == (grown > 0.0) {
                    self.integral = before;
                    command = (wanted - (used - before)).clamp(-limit, limit);
                }
            }
            AntiWindup::BackCalculation(time) => {
                self.integral += (command - wanted) * (h / time.as_secs_f64().max(h));
            }
        }
        self.last_error = error;
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H: Span = Span::from_millis(100);

    fn commands(gains: PidGains, errors: &[f64]) -> Vec<f64> {
        let mut pid = Pid::new(gains, H);
        errors.iter().map(|&error| pid.update(error)).collect()
    }

    fn check(gains: PidGains, errors: &[f64], expected: &[f64]) {
        let got = commands(gains, errors);
        assert!(got.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{got:?}");
    }

    #[test]
    fn the_three_integrations_differ_by_when_the_error_counts() {
        let with = |integration| PidGains { integration, ..PidGains::pi(2.0, 10.0) };
        check(with(Integration::ForwardEuler), &[1.0, 1.0, 0.0], &[2.0, 3.0, 2.0]);
        check(with(Integration::BackwardEuler), &[1.0, 1.0, 0.0], &[3.0, 4.0, 2.0]);
        check(with(Integration::Tustin), &[1.0, 1.0, 0.0], &[2.5, 3.5, 2.0]);
    }

    #[test]
    fn the_derivative_is_filtered_and_dies_out() {
        let pure = PidGains::pid(0.0, 0.0, 1.0, Span::ZERO);
        check(pure, &[1.0, 1.0, 0.5], &[10.0, 0.0, -5.0]);
        // Filter of one period: half of the step at first, then halves.
        check(PidGains::pid(0.0, 0.0, 1.0, H), &[1.0, 1.0, 1.0], &[5.0, 2.5, 1.25]);
    }

    #[test]
    fn at_the_limit_the_integral_winds_up_stands_still_or_is_led_back() {
        let errors = [1.0, 1.0, 1.0, -0.1];
        let with = |anti_windup| PidGains { anti_windup, limit: 1.5, ..PidGains::pi(1.0, 10.0) };
        check(with(AntiWindup::None), &errors, &[1.0, 1.5, 1.5, 1.5]);
        check(with(AntiWindup::Clamping), &errors, &[1.0, 1.5, 1.5, 0.9]);
        check(with(AntiWindup::BackCalculation(H)), &errors, &[1.0, 1.5, 1.5, 1.4]);
    }
}
