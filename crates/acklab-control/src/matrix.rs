//! [`Matrix`]: dense, small, row by row; what plants of a handful of states need.
//!
//! Shapes are the caller's business: an operation on shapes that do not fit panics, and everything
//! that a user can shape is checked where it comes in ([`crate::plant::StateSpace::new`]).

#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    rows: usize,
    cols: usize,
    data: Vec<f64>,
}

impl Matrix {
    /// The matrix whose element in row `i`, column `j` is `element(i, j)`.
    pub fn from_fn(rows: usize, cols: usize, element: impl Fn(usize, usize) -> f64) -> Self {
        let data = (0..rows * cols).map(|at| element(at / cols, at % cols)).collect();
        Self { rows, cols, data }
    }

    pub fn from_rows<const R: usize, const C: usize>(rows: [[f64; C]; R]) -> Self {
        Self::from_fn(R, C, |i, j| rows[i][j])
    }

    /// All zeros.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self::from_fn(rows, cols, |_, _| 0.0)
    }

    pub fn identity(size: usize) -> Self {
        Self::from_fn(size, size, |i, j| f64::from(u8::from(i == j)))
    }

    /// Number of rows.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub const fn cols(&self) -> usize {
        self.cols
    }

    /// The element in row `i`, column `j`.
    pub fn at(&self, i: usize, j: usize) -> f64 {
        self.data[i * self.cols + j]
    }

    /// Replaces the element in row `i`, column `j`.
    pub fn set(&mut self, i: usize, j: usize, value: f64) {
        self.data[i * self.cols + j] = value;
    }

    /// Whether no element is infinite or NaN.
    pub fn is_finite(&self) -> bool {
        self.data.iter().all(|element| element.is_finite())
    }

    /// Every element times `factor`.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        Self { data: self.data.iter().map(|element| element * factor).collect(), ..*self }
    }

    /// `self + factor * other`.
    #[must_use]
    pub fn plus(&self, factor: f64, other: &Self) -> Self {
        assert_eq!((self.rows, self.cols), (other.rows, other.cols), "shapes differ");
        let data = self.data.iter().zip(&other.data).map(|(a, b)| a + factor * b).collect();
        Self { data, ..*self }
    }

    /// The product `self * other`.
    #[must_use]
    pub fn times(&self, other: &Self) -> Self {
        assert_eq!(self.cols, other.rows, "shapes do not fit");
        Self::from_fn(self.rows, other.cols, |i, j| {
            (0..self.cols).map(|k| self.at(i, k) * other.at(k, j)).sum()
        })
    }

    /// The greatest column sum of absolute values: the norm that scaling and squaring goes by.
    pub fn norm_1(&self) -> f64 {
        let column = |j| (0..self.rows).map(|i| self.at(i, j).abs()).sum::<f64>();
        (0..self.cols).map(column).fold(0.0, f64::max)
    }

    /// Solves `self * x = right` by Gaussian elimination with partial pivoting; `None` where a pivot
    /// is zero.
    pub fn solve(&self, right: &Self) -> Option<Self> {
        assert_eq!((self.rows, self.rows), (self.cols, right.rows), "shapes do not fit");
        let (n, mut left, mut x) = (self.rows, self.clone(), right.clone());
        for k in 0..n {
            let pivot =
                (k..n).max_by(|&a, &b| left.at(a, k).abs().total_cmp(&left.at(b, k).abs()))?;
            left.swap_rows(k, pivot);
            x.swap_rows(k, pivot);
            if left.at(k, k) == 0.0 {
                return None;
            }
            for i in k + 1..n {
                let factor = left.at(i, k) / left.at(k, k);
                left.subtract_row(i, k, factor);
                x.subtract_row(i, k, factor);
            }
        }
        for k in (0..n).rev() {
            for j in 0..x.cols {
                let known: f64 = (k + 1..n).map(|i| left.at(k, i) * x.at(i, j)).sum();
                x.set(k, j, (x.at(k, j) - known) / left.at(k, k));
            }
        }
        Some(x)
    }

    fn swap_rows(&mut self, a: usize, b: usize) {
        for j in 0..self.cols {
            self.data.swap(a * self.cols + j, b * self.cols + j);
        }
    }

    fn subtract_row(&mut self, from: usize, row: usize, factor: f64) {
        for j in 0..self.cols {
            self.set(from, j, self.at(from, j) - factor * self.at(row, j));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_that_needs_pivoting_is_solved() {
        let left = Matrix::from_rows([[0.0, 2.0, 1.0], [1.0, 1.0, 0.0], [4.0, 0.0, 3.0]]);
        let x = Matrix::from_rows([[1.0], [-2.0], [3.0]]);
        let solved = left.solve(&left.times(&x)).expect("regular");
        assert!(solved.plus(-1.0, &x).norm_1() < 1e-14, "{solved:?}");
    }

    #[test]
    fn a_singular_system_has_no_solution() {
        let left = Matrix::from_rows([[1.0, 2.0], [2.0, 4.0]]);
        assert_eq!(left.solve(&Matrix::identity(2)), None);
    }
}
