//! The matrix exponential by scaling and squaring with Padé approximants.
//!
//! N. J. Higham, "The scaling and squaring method for the matrix exponential revisited", SIAM J.
//! Matrix Anal. Appl. 26(4), 2005: the least degree m of 3, 5, 7, 9, 13 whose bound (table 2.3)
//! covers the 1-norm, else degree 13 after halving often enough. The approximant's coefficients come
//! from their recurrence (section 1) instead of a table. Left out: balancing, which matrices of
//! plants do not need.

use crate::matrix::Matrix;

/// Degree of the approximant and the largest 1-norm for which it is exact to double precision
/// (Higham 2005, table 2.3).
const DEGREES: [(u32, f64); 5] = [
    (3, 1.495_585_217_958_292e-2),
    (5, 2.539_398_330_063_23e-1),
    (7, 9.504_178_996_162_932e-1),
    (9, 2.097_847_961_257_068),
    (13, 5.371_920_351_148_152),
];

/// `e^matrix` for a square matrix of finite elements.
pub fn expm(matrix: &Matrix) -> Matrix {
    let norm = matrix.norm_1();
    if let Some(&(degree, _)) = DEGREES.iter().find(|(_, bound)| norm <= *bound) {
        return approximant(matrix, degree);
    }
    let (degree, bound) = DEGREES[DEGREES.len() - 1];
    let (mut halvings, mut factor) = (0, 1.0);
    while norm * factor > bound {
        halvings += 1;
        factor *= 0.5;
    }
    let scaled = approximant(&matrix.scaled(factor), degree);
    (0..halvings).fold(scaled, |power, _| power.times(&power))
}

/// The diagonal Padé approximant: (V - U) X = V + U with U the odd and V the even terms.
fn approximant(matrix: &Matrix, degree: u32) -> Matrix {
    let square = matrix.times(matrix);
    let mut power = Matrix::identity(matrix.rows());
    let (mut odd, mut even) = (power.scaled(0.0), power.scaled(0.0));
    let mut coefficient = 1.0;
    for k in 0..=degree {
        if k > 0 {
            let (k, m) = (f64::from(k), f64::from(degree));
            coefficient *= (m - k + 1.0) / ((2.0 * m - k + 1.0) * k);
        }
        if k % 2 == 0 {
            if k > 0 {
                power = power.times(&square);
            }
            even = even.plus(coefficient, &power);
        } else {
            odd = odd.plus(coefficient, &power);
        }
    }
    let odd = matrix.times(&odd);
    // V - U is regular for every norm within the degree's bound (Higham 2005, section 2).
    even.plus(-1.0, &odd).solve(&even.plus(1.0, &odd)).unwrap_or(even)
}

#[cfg(test)]
mod tests {
    use acklab_core::math;

    use super::*;

    fn check(got: &Matrix, expected: &Matrix, tolerance: f64) {
        let error = got.plus(-1.0, expected).norm_1() / expected.norm_1();
        assert!(error < tolerance, "{got:?} is not {expected:?}: {error:e}");
    }

    #[test]
    fn rotations_and_shears_have_their_closed_forms_at_every_degree() {
        for angle in [1e-3, 0.1, 0.7, 1.5, 4.0, 40.0] {
            let generator = Matrix::from_rows([[0.0, -angle], [angle, 0.0]]);
            let (sin, cos) = (math::sin(angle), math::cos(angle));
            check(&expm(&generator), &Matrix::from_rows([[cos, -sin], [sin, cos]]), 1e-13);
            let nilpotent = Matrix::from_rows([[0.0, angle, 0.0], [0.0, 0.0, 2.0], [0.0; 3]]);
            let shear = Matrix::from_rows([[1.0, angle, angle], [0.0, 1.0, 2.0], [0.0, 0.0, 1.0]]);
            check(&expm(&nilpotent), &shear, 1e-13);
        }
    }

    #[test]
    fn the_exponential_of_a_stiff_diagonal_is_that_of_its_elements() {
        let diagonal = Matrix::from_rows([[-36.17, 0.0], [0.0, 2.5]]);
        let expected = Matrix::from_rows([[math::exp(-36.17), 0.0], [0.0, math::exp(2.5)]]);
        check(&expm(&diagonal), &expected, 1e-13);
    }
}
