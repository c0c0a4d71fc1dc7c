//! The probability of every way in which a procedure can end.

/// A state with its probability under each success probability.
pub(crate) type Weighted<S> = (S, Vec<f64>);

/// Every way to end within `runs_max` runs. The state must depend on the counts alone, not on the
/// order of outcomes; `push` says whether a state is an end.
pub(crate) fn ends<S: Clone>(
    start: &S,
    push: impl Fn(&mut S, bool) -> bool,
    ps: &[f64],
    runs_max: usize,
) -> Vec<Weighted<S>> {
    let mut ended = Vec::new();
    let mut alive = vec![Some((start.clone(), vec![1.0; ps.len()]))];
    for _ in 0..runs_max {
        let mut next: Vec<Option<(S, bool, Vec<f64>)>> = vec![None; alive.len() + 1];
        for (successes, (state, weights)) in
            alive.iter().enumerate().filter_map(|(k, slot)| Some((k, slot.as_ref()?)))
        {
            for holds in [false, true] {
                let share = |(weight, p): (&f64, &f64)| weight * if holds { *p } else { 1.0 - p };
                let weights: Vec<f64> = weights.iter().zip(ps).map(share).collect();
                let slot = &mut next[successes + usize::from(holds)];
                if let Some((.., sum)) = slot {
                    sum.iter_mut().zip(&weights).for_each(|(sum, weight)| *sum += weight);
                } else if weights.iter().any(|weight| *weight > 1e-13) {
                    let mut state = state.clone();
                    let done = push(&mut state, holds);
                    *slot = Some((state, done, weights));
                }
            }
        }
        alive.clear();
        for slot in next {
            alive.push(match slot {
                Some((state, true, weights)) => {
                    ended.push((state, weights));
                    None
                }
                slot => slot.map(|(state, _, weights)| (state, weights)),
            });
        }
    }
    ended
}

/// The probability of `event` at the end and the mean of `runs`, for each success probability.
pub(crate) fn outcome<S>(
    ended: &[Weighted<S>],
    ps: &[f64],
    event: impl Fn(&S, f64) -> bool,
    runs: impl Fn(&S) -> f64,
) -> Vec<(f64, f64)> {
    let each = ps.iter().enumerate().map(|(index, p)| {
        let mut total = (0.0, 0.0, 0.0);
        for (state, weights) in ended {
            let weight = weights[index];
            total.0 += if event(state, *p) { weight } else { 0.0 };
            total.1 += weight * runs(state);
            total.2 += weight;
        }
        assert!((total.2 - 1.0).abs() < 1e-6, "p = {p}: ends with probability {}", total.2);
        (total.0, total.1)
    });
    each.collect()
}

/// The probability that k(n) successes of n runs, at some n up to `runs_max`, lie outside the counts
/// `held(n)` in which an interval covers `p`.
pub(crate) fn ever_outside(
    p: f64,
    runs_max: u64,
    held: impl Fn(u64) -> std::ops::RangeInclusive<u64>,
) -> f64 {
    let mut inside = vec![1.0];
    let mut outside = 0.0;
    for runs in 1..=runs_max {
        let mut next = vec![0.0; inside.len() + 1];
        for (successes, weight) in inside.iter().enumerate() {
            next[successes] += weight * (1.0 - p);
            next[successes + 1] += weight * p;
        }
        let held = held(runs);
        for (successes, weight) in (0..).zip(next.iter_mut()) {
            if !held.contains(&successes) {
                outside += *weight;
                *weight = 0.0;
            }
        }
        inside = next;
    }
    outside
}
