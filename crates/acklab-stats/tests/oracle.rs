//! Goal: the special functions and intervals are those of scipy to 1e-12.
//! Method: a table that `oracle/generate.py` wrote, relative errors.

use acklab_stats::special::{beta_cdf, beta_quantile, ln_gamma, normal_quantile};
use acklab_stats::{ProportionMethod, t_quantile};

const VALUES: &str = include_str!("oracle/values.txt");

/// What a line of the table asks for, computed here; `None` for a name that is not known.
fn computed(name: &str, arguments: &[f64]) -> Option<Vec<f64>> {
    let interval = |method: ProportionMethod, counts: [f64; 2], confidence| {
        let found = method.interval(counts[0] as u64, counts[1] as u64, confidence);
        let found = found.expect("a valid row");
        vec![found.low, found.high]
    };
    Some(match (name, arguments) {
        ("ln_gamma", &[x]) => vec![ln_gamma(x)],
        ("beta_cdf", &[a, b, x]) => vec![beta_cdf(x, a, b)],
        ("beta_quantile", &[a, b, p]) => vec![beta_quantile(p, a, b)],
        ("normal_quantile", &[p]) => vec![normal_quantile(p)],
        ("t_quantile", &[p, degrees]) => vec![t_quantile(p, degrees)],
        ("clopper_pearson", &[hits, runs, level]) => {
            interval(ProportionMethod::ClopperPearson, [hits, runs], level)
        }
        ("wilson", &[hits, runs, level]) => interval(ProportionMethod::Wilson, [hits, runs], level),
        ("bayes", &[a, b, hits, runs]) => {
            interval(ProportionMethod::Bayes { a, b }, [hits, runs], 0.95)
        }
        _ => return None,
    })
}

#[test]
fn special_functions_and_intervals_of_a_proportion_are_those_of_scipy() {
    let mut held = std::collections::BTreeMap::new();
    for line in VALUES.lines().skip(1) {
        let (name, cells) = line.split_once(' ').expect("a name and cells");
        let cells: Vec<f64> = cells.split(' ').map(|cell| cell.parse().expect(line)).collect();
        let values = if ["clopper_pearson", "wilson", "bayes"].contains(&name) { 2 } else { 1 };
        let (arguments, expected) = cells.split_at(cells.len() - values);
        let got = computed(name, arguments).unwrap_or_else(|| panic!("what is {line}?"));
        for (got, expected) in got.iter().zip(expected) {
            let error = (got - expected).abs();
            assert!(error <= 1e-12 * expected.abs(), "{line}: {got:?} is not {expected:?}");
        }
        *held.entry(name).or_insert(0) += 1;
    }
    let counts: Vec<u32> = held.into_values().collect();
    assert_eq!(counts, [9, 47, 60, 33, 12, 11, 66, 33], "rows by name, in alphabetical order");
}
