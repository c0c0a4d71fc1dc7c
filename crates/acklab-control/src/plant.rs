//! Plants: transfer functions and state space.
//!
//! A transfer function becomes a [`StateSpace`] in controllable canonical form; from there on there
//! is one kind of plant. The named plant is the DC motor of the ANCE article, equation (3): a Maxon
//! F2140 from volts to radians, identified by experiment.

use crate::matrix::Matrix;

/// x' = A x + B u, y = C x + D u, in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct StateSpace {
    a: Matrix,
    b: Matrix,
    c: Matrix,
    d: Matrix,
}

/// numerator(s) / denominator(s), coefficients from the highest power down.
#[derive(Clone, Debug, PartialEq)]
pub struct TransferFunction {
    numerator: Vec<f64>,
    denominator: Vec<f64>,
}

/// Why something is not a plant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    #[error("the denominator is zero: give at least one coefficient that is not")]
    ZeroDenominator,
    #[error(
        "the numerator has degree {numerator} and the denominator {denominator}: a plant cannot \
         differentiate its input; lower the numerator's degree"
    )]
    Improper {
        /// Degree of the numerator.
        numerator: usize,
        /// Degree of the denominator.
        denominator: usize,
    },
    #[error("{matrix} is {rows} by {cols}, but {expected} is needed")]
    Shape {
        matrix: &'static str,
        rows: usize,
        /// Its columns.
        cols: usize,
        expected: String,
    },
    #[error("a coefficient is not finite")]
    NotFinite,
    #[error("{what}")]
    Timing {
        /// What is wrong and what would be right.
        what: &'static str,
    },
}

impl StateSpace {
    /// The plant with these matrices: A n by n, B n by m, C p by n, D p by m.
    pub fn new(a: Matrix, b: Matrix, c: Matrix, d: Matrix) -> Result<Self, ModelError> {
        let fits = |matrix: &'static str, given: &Matrix, rows: usize, cols: usize| {
            if (given.rows(), given.cols()) == (rows, cols) {
                return Ok(());
            }
            let expected = format!("{rows} by {cols}");
            Err(ModelError::Shape { matrix, rows: given.rows(), cols: given.cols(), expected })
        };
        fits("A", &a, a.rows(), a.rows())?;
        fits("B", &b, a.rows(), b.cols())?;
        fits("C", &c, c.rows(), a.rows())?;
        fits("D", &d, c.rows(), b.cols())?;
        if ![&a, &b, &c, &d].into_iter().all(Matrix::is_finite) {
            return Err(ModelError::NotFinite);
        }
        Ok(Self { a, b, c, d })
    }

    pub const fn a(&self) -> &Matrix {
        &self.a
    }

    /// B, states by inputs.
    pub const fn b(&self) -> &Matrix {
        &self.b
    }

    /// C, outputs by states.
    pub const fn c(&self) -> &Matrix {
        &self.c
    }

    /// D, outputs by inputs.
    pub const fn d(&self) -> &Matrix {
        &self.d
    }

    /// Number of states.
    pub const fn states(&self) -> usize {
        self.a.rows()
    }

    /// Whether it has one input and one output.
    pub const fn is_siso(&self) -> bool {
        self.b.cols() == 1 && self.c.rows() == 1
    }

    /// The first output in `state` under `input` at the first input.
    pub fn output(&self, state: &[f64], input: f64) -> f64 {
        let seen: f64 = state.iter().enumerate().map(|(j, x)| self.c.at(0, j) * x).sum();
        seen + self.d.at(0, 0) * input
    }
}

impl TransferFunction {
    /// The transfer function with these coefficients, highest power of s first; leading zeros are
    /// dropped.
    pub fn new(numerator: &[f64], denominator: &[f64]) -> Result<Self, ModelError> {
        if !numerator.iter().chain(denominator).all(|c| c.is_finite()) {
            return Err(ModelError::NotFinite);
        }
        let trimmed = |coefficients: &[f64]| -> Vec<f64> {
            coefficients.iter().copied().skip_while(|c| *c == 0.0).collect()
        };
        let (numerator, denominator) = (trimmed(numerator), trimmed(denominator));
        if denominator.is_empty() {
            return Err(ModelError::ZeroDenominator);
        }
        if numerator.len() > denominator.len() {
            let (numerator, denominator) = (numerator.len() - 1, denominator.len() - 1);
            return Err(ModelError::Improper { numerator, denominator });
        }
        Ok(Self { numerator, denominator })
    }

    /// The DC motor of equation (3), 36.3 / (s² + 36.17 s): volts in, radians out.
    pub fn dc_motor() -> Self {
        Self { numerator: vec![36.3], denominator: vec![1.0, 36.17, 0.0] }
    }

    /// Numerator, highest power first.
    pub fn numerator(&self) -> &[f64] {
        &self.numerator
    }

    /// Denominator, highest power first.
    pub fn denominator(&self) -> &[f64] {
        &self.denominator
    }

    /// The same plant in controllable canonical form.
    pub fn to_state_space(&self) -> StateSpace {
        let states = self.denominator.len() - 1;
        let leading = self.denominator[0];
        let denominator: Vec<f64> = self.denominator.iter().map(|c| c / leading).collect();
        let mut numerator = vec![0.0; states + 1 - self.numerator.len()];
        numerator.extend(self.numerator.iter().map(|c| c / leading));
        let direct = numerator[0];
        let a = Matrix::from_fn(states, states, |i, j| match i {
            0 => -denominator[j + 1],
            _ => f64::from(u8::from(i == j + 1)),
        });
        let b = Matrix::from_fn(states, 1, |i, _| f64::from(u8::from(i == 0)));
        let c = Matrix::from_fn(1, states, |_, j| numerator[j + 1] - denominator[j + 1] * direct);
        StateSpace { a, b, c, d: Matrix::from_rows([[direct]]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_plant_is_refused_with_the_reason() {
        let check = |numerator: &[f64], denominator: &[f64], message: &str| {
            let error = TransferFunction::new(numerator, denominator).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        };
        check(&[1.0], &[], "denominator is zero");
        check(&[1.0], &[0.0, 0.0], "denominator is zero");
        check(&[1.0, 0.0, 0.0], &[1.0, 0.0], "degree 2 and the denominator 1");
        check(&[f64::NAN], &[1.0], "not finite");
        let one = || Matrix::identity(1);
        let error = StateSpace::new(Matrix::identity(2), one(), one(), one()).unwrap_err();
        assert_eq!(error.to_string(), "B is 1 by 1, but 2 by 1 is needed");
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "exact in binary")]
    fn a_direct_term_goes_past_the_states() {
        // (2s + 3)/(s + 4) = 2 - 5/(s + 4)
        let plant = TransferFunction::new(&[2.0, 3.0], &[1.0, 4.0]).unwrap().to_state_space();
        assert_eq!((plant.c().at(0, 0), plant.d().at(0, 0)), (-5.0, 2.0));
        assert_eq!(plant.output(&[1.0], 10.0), 15.0);
    }
}
