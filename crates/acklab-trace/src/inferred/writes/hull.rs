//! The lower convex hull of points in ascending order of x (Andrew's monotone chain).

/// Its corners.
pub(super) struct Hull(Vec<(f64, f64)>);

impl Hull {
    /// The hull below `points`.
    pub(super) fn below(points: &[(f64, f64)]) -> Self {
        let mut hull: Vec<(f64, f64)> = Vec::new();
        for p in points {
            while let [.., a, b] = hull[..] {
                if (b.0 - a.0) * (p.1 - a.1) > (b.1 - a.1) * (p.0 - a.0) {
                    break;
                }
                hull.pop();
            }
            hull.push(*p);
        }
        Self(hull)
    }

    /// Its slope at the middle.
    pub(super) fn main_slope(&self) -> f64 {
        let (Some(first), Some(last)) = (self.0.first(), self.0.last()) else { return 0.0 };
        let middle = f64::midpoint(first.0, last.0);
        let across = self.0.windows(2).find(|w| w[1].0 >= middle);
        across.map_or(0.0, |w| (w[1].1 - w[0].1) / (w[1].0 - w[0].0))
    }

    /// Its height at `x`; beyond its ends that of the end.
    pub(super) fn at(&self, x: f64) -> f64 {
        let i = self.0.partition_point(|p| p.0 < x);
        match (i.checked_sub(1).and_then(|j| self.0.get(j)), self.0.get(i)) {
            (Some(a), Some(b)) => a.1 + (b.1 - a.1) * (x - a.0) / (b.0 - a.0),
            (Some(end), None) | (None, Some(end)) => end.1,
            (None, None) => 0.0,
        }
    }
}
