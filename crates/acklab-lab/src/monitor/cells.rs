//! Quantities over time, in equal cells: bounded memory whatever happens in a run, and sums that are
//! exact. The mean over the cells is the mean over time, the sum over the cells is the total.

use acklab_core::time::{Span, Time};

/// (seconds, value) in order of time: what a plot draws.
pub type Points = Vec<(f64, f64)>;

/// Equal cells from time zero to an end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    end: u64,
    step: u64,
}

impl Grid {
    pub(super) fn new(end: Time, cells: u64) -> Self {
        let end = end.as_nanos().max(1);
        Self { end, step: end.div_ceil(cells.clamp(1, end)) }
    }

    fn len(self) -> usize {
        self.end.div_ceil(self.step) as usize
    }

    /// The cell of an instant; the end belongs to the last one.
    fn index(self, at: Time) -> usize {
        (at.as_nanos().min(self.end - 1) / self.step) as usize
    }

    /// Where a cell begins and ends, nanoseconds.
    const fn edges(self, cell: usize) -> (u64, u64) {
        let begin = cell as u64 * self.step;
        let end = begin + self.step;
        (begin, if end < self.end { end } else { self.end })
    }

    /// The middle and the width of a cell, seconds.
    fn place(self, cell: usize) -> (f64, f64) {
        let (begin, end) = self.edges(cell);
        (((begin + end) as f64 / 2.0) / 1e9, (end - begin) as f64 / 1e9)
    }
}

/// A value that lasts until it changes.
#[derive(Clone, Debug)]
pub(super) struct Level {
    grid: Grid,
    value: f64,
    since: Time,
    /// Value times seconds.
    integrals: Vec<f64>,
    peaks: Vec<f64>,
}

impl Level {
    pub(super) fn new(grid: Grid) -> Self {
        let cells = grid.len();
        Self {
            grid,
            value: 0.0,
            since: Time::ZERO,
            integrals: vec![0.0; cells],
            peaks: vec![0.0; cells],
        }
    }

    /// From `at` on it is `value`.
    pub(super) fn set(&mut self, at: Time, value: f64) {
        self.pass(at);
        self.value = value;
        let peak = &mut self.peaks[self.grid.index(at)];
        *peak = peak.max(value);
    }

    /// It has been as it was until `at`.
    pub(super) fn pass(&mut self, at: Time) {
        let until = at.as_nanos().min(self.grid.end);
        let mut from = self.since.as_nanos();
        while from < until {
            let cell = self.grid.index(Time::from_nanos(from));
            let to = self.grid.edges(cell).1.min(until);
            self.integrals[cell] += self.value * ((to - from) as f64 / 1e9);
            self.peaks[cell] = self.peaks[cell].max(self.value);
            from = to;
        }
        self.since = self.since.max(at);
    }

    /// Value times seconds, from the beginning to where it was passed.
    pub(super) fn integral(&self) -> f64 {
        self.integrals.iter().sum()
    }

    /// The mean in each cell.
    pub(super) fn means(&self) -> Points {
        let cells = self.integrals.iter().enumerate();
        cells
            .map(|(cell, integral)| {
                let (middle, width) = self.grid.place(cell);
                (middle, integral / width)
            })
            .collect()
    }

    /// The greatest value in each cell.
    pub(super) fn peaks(&self) -> Points {
        let cells = self.peaks.iter().enumerate();
        cells.map(|(cell, peak)| (self.grid.place(cell).0, *peak)).collect()
    }
}

/// What comes in portions: bytes, packets, samples.
#[derive(Clone, Debug)]
pub(super) struct Portions {
    grid: Grid,
    sums: Vec<f64>,
    counts: Vec<u64>,
    peaks: Vec<f64>,
}

impl Portions {
    pub(super) fn new(grid: Grid) -> Self {
        let cells = grid.len();
        Self { grid, sums: vec![0.0; cells], counts: vec![0; cells], peaks: vec![0.0; cells] }
    }

    pub(super) fn add(&mut self, at: Time, amount: f64) {
        let cell = self.grid.index(at);
        self.sums[cell] += amount;
        self.counts[cell] += 1;
        self.peaks[cell] = self.peaks[cell].max(amount);
    }

    pub(super) fn add_span(&mut self, at: Time, span: Span) {
        self.add(at, span.as_millis_f64());
    }

    /// So much for each second, in each cell.
    pub(super) fn rates(&self, factor: f64) -> Points {
        let cells = self.sums.iter().enumerate();
        cells
            .map(|(cell, sum)| {
                let (middle, width) = self.grid.place(cell);
                (middle, factor * sum / width)
            })
            .collect()
    }

    /// The mean portion of each cell that has one.
    pub(super) fn means(&self) -> Points {
        self.where_any(|cell| self.sums[cell] / self.counts[cell] as f64)
    }

    /// The greatest portion of each cell that has one.
    pub(super) fn peaks(&self) -> Points {
        self.where_any(|cell| self.peaks[cell])
    }

    fn where_any(&self, value: impl Fn(usize) -> f64) -> Points {
        let cells = (0..self.counts.len()).filter(|cell| self.counts[*cell] > 0);
        cells.map(|cell| (self.grid.place(cell).0, value(cell))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn the_mean_over_cells_is_the_mean_over_time() {
        let mut level = Level::new(Grid::new(at(40), 4));
        level.set(at(5), 8.0);
        level.set(at(25), 2.0);
        level.pass(at(40));
        assert_eq!(level.means(), [(0.005, 4.0), (0.015, 8.0), (0.025, 5.0), (0.035, 2.0)]);
        assert_eq!(
            level.peaks().iter().map(|point| point.1).collect::<Vec<_>>(),
            [8.0, 8.0, 8.0, 2.0]
        );
        assert!((level.integral() - 0.190).abs() < 1e-12);
    }

    #[test]
    fn the_sum_over_cells_is_the_total() {
        let mut portions = Portions::new(Grid::new(at(40), 4));
        for (ms, amount) in [(0, 1.0), (9, 3.0), (10, 5.0), (40, 7.0)] {
            portions.add(at(ms), amount);
        }
        assert_eq!(
            portions.rates(1.0),
            [(0.005, 400.0), (0.015, 500.0), (0.025, 0.0), (0.035, 700.0)]
        );
        assert_eq!(portions.means(), [(0.005, 2.0), (0.015, 5.0), (0.035, 7.0)]);
        assert_eq!(portions.peaks(), [(0.005, 3.0), (0.015, 5.0), (0.035, 7.0)]);
    }

    #[test]
    fn a_short_run_has_no_more_cells_than_nanoseconds() {
        let grid = Grid::new(Time::from_nanos(3), 100);
        assert_eq!((grid.len(), grid.index(Time::from_nanos(9))), (3, 2));
    }

    #[test]
    fn the_last_cell_is_as_wide_as_what_is_left() {
        let grid = Grid::new(Time::from_nanos(10), 4);
        assert_eq!((grid.len(), grid.edges(3)), (4, (9, 10)));
    }
}
