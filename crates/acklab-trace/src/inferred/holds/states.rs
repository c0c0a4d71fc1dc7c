//! Whether Nagle's algorithm was on at each segment: two states, rarely changed (TCP_NODELAY is set
//! once, if at all), weighed by what each segment says, forwards and backwards.

/// Probability of "on" at each step, by how many times likelier the step is with Nagle's algorithm on than off.
pub(super) fn smoothed(mut ratios: Vec<f64>) -> Vec<f64> {
    let mut on = Vec::with_capacity(ratios.len());
    let mut forward = PRIOR;
    for ratio in &mut ratios {
        *ratio = ratio.clamp(1.0 / MOST, MOST);
        let weight = forward * *ratio + (1.0 - forward);
        let after = forward * *ratio / weight;
        on.push(after);
        forward = after * (1.0 - SWITCHED_OFF) + (1.0 - after) * SWITCHED_ON;
    }
    // Likelihoods of what follows, scaled so that they add up to one.
    let (mut if_on, mut if_off) = (0.5, 0.5);
    for (at, ratio) in ratios.iter().enumerate().rev() {
        let here = on[at] * if_on;
        on[at] = here / (here + (1.0 - on[at]) * if_off);
        let (next_on, next_off) = (ratio * if_on, if_off);
        let (a, b) = (
            (1.0 - SWITCHED_OFF) * next_on + SWITCHED_OFF * next_off,
            SWITCHED_ON * next_on + (1.0 - SWITCHED_ON) * next_off,
        );
        (if_on, if_off) = (a / (a + b), b / (a + b));
    }
    on
}

/// Before anything is seen.
const PRIOR: f64 = 0.5;
/// TCP_NODELAY is set once, shortly after the beginning, if at all.
const SWITCHED_OFF: f64 = 1e-3;
/// Hardly any program takes it back.
const SWITCHED_ON: f64 = 1e-12;
/// No single segment says more than this, e to the power of 6: hosts do odd things.
const MOST: f64 = 403.428_793_492_735_1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_in_the_middle_is_found_and_a_stray_is_forgiven() {
        let mut ratios = vec![2.7; 40];
        ratios[10] = 0.02;
        ratios.extend([0.14; 40]);
        let on = smoothed(ratios);
        assert!(on[..38].iter().all(|p| *p > 0.9), "{on:?}");
        assert!(on[45..].iter().all(|p| *p < 0.1), "{on:?}");
    }

    #[test]
    fn nothing_seen_says_nothing() {
        let on = smoothed(vec![1.0; 10]);
        assert!((0.45..=0.5).contains(&on[9]));
    }
}
