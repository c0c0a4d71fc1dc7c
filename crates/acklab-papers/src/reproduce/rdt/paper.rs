//! The paper's tables 1 and 2.

/// A row: mean transfer time of 5,000,000 bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Loss probability of an interface.
    pub loss: f64,
    /// 1 in table 1, 2 in table 2.
    pub paths: usize,
    /// Mean, seconds.
    pub mean: f64,
    /// "Margin of error" as printed, in percent.
    pub printed_margin: f64,
}

impl Row {
    /// What the printed margin is: the code compares seconds with 0.1 and the table prints them times
    /// 100.
    pub fn margin_seconds(&self) -> f64 {
        self.printed_margin / 100.0
    }
}

/// The file's size, bytes (section I).
pub const SIZE: usize = 5_000_000;
/// The loss probabilities (section IV).
pub const LOSSES: [f64; 3] = [0.05, 0.15, 0.28];

/// Table 1, then table 2.
pub const ROWS: [Row; 6] = [
    Row { loss: 0.05, paths: 1, mean: 48.150_447_404, printed_margin: 9.9696 },
    Row { loss: 0.15, paths: 1, mean: 81.197_790_027, printed_margin: 1.5739 },
    Row { loss: 0.28, paths: 1, mean: 172.959_200_991, printed_margin: 8.8248 },
    Row { loss: 0.05, paths: 2, mean: 41.345_601_795_6, printed_margin: 9.9737 },
    Row { loss: 0.15, paths: 2, mean: 73.144_699_189_7, printed_margin: 9.9973 },
    Row { loss: 0.28, paths: 2, mean: 161.939_675_249, printed_margin: 9.9912 },
];

/// The row of an experiment, in the order of [`ROWS`].
pub const fn row(loss: usize, paths: usize) -> Row {
    ROWS[loss + LOSSES.len() * (paths - 1)]
}
