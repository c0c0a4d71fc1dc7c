//! A line over time of bounded length, whatever its duration: when it is full, every second point goes
//! and from then on half as many are taken.

use acklab_core::time::Time;

/// At most [`POINTS_MAX`] points of a line.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    points: Vec<(Time, u64)>,
    stride: u32,
    skip: u32,
}

impl Default for Line {
    fn default() -> Self {
        Self { points: Vec::new(), stride: 1, skip: 0 }
    }
}

impl Line {
    /// Offers a point.
    pub(crate) fn push(&mut self, time: Time, value: u64) {
        if self.skip > 0 {
            self.skip -= 1;
            return;
        }
        if self.points.len() == POINTS_MAX {
            let mut keep = false;
            self.points.retain(|_| {
                keep = !keep;
                keep
            });
            self.stride *= 2;
        }
        self.points.push((time, value));
        self.skip = self.stride - 1;
    }

    /// The points kept.
    pub(crate) fn points(&self) -> &[(Time, u64)] {
        &self.points
    }
}

/// Enough for a plot of any width.
const POINTS_MAX: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_within_its_limit_and_spans_all_that_was_offered() {
        let mut line = Line::default();
        for i in 0..100_000u64 {
            line.push(Time::from_nanos(i), i);
        }
        let points = line.points();
        assert!(points.len() <= POINTS_MAX && points.len() > POINTS_MAX / 3);
        assert_eq!(points[0].1, 0);
        assert!(points[points.len() - 1].1 > 99_000);
    }
}
