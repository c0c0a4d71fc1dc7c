//! Goal: the special functions and intervals are those of scipy to 1e-12.
//! Method: a table that `oracle/generate.py` wrote, relative errors.

use acklab_stats::special::{beta_cdf, beta_quantile, ln_gamma, normal_quantile};
use acklab_stats::{ProportionMethod, t_quantile};

#[expect(
    clippy::unreadable_literal,
    clippy::approx_constant,
    reason = "as Python prints them"
)]
#[rustfmt::skip]
#[path = "oracle/table.rs"]
mod table;

#[track_caller]
fn close(got: f64, expect: f64, row: &dyn std::fmt::Debug) {
    let error = (got - expect).abs();
    assert!(error <= 1e-12 * expect.abs(), "{row:?}: {got:?} is not {expect:?}");
}

#[test]
fn special_functions_are_those_of_scipy() {
    for row in table::LN_GAMMA {
        close(ln_gamma(row.0), row.1, row);
    }
    for row in table::BETA_CDF {
        close(beta_cdf(row.2, row.0, row.1), row.3, row);
    }
    for row in table::BETA_QUANTILE {
        close(beta_quantile(row.2, row.0, row.1), row.3, row);
    }
    for row in table::NORMAL_QUANTILE {
        close(normal_quantile(row.0), row.1, row);
    }
    for row in table::T_QUANTILE {
        close(t_quantile(row.0, row.1), row.2, row);
    }
}

fn count(cell: f64) -> u64 {
    cell as u64
}

#[test]
fn intervals_of_a_proportion_are_those_of_scipy() {
    for (method, rows) in [
        (ProportionMethod::ClopperPearson, table::CLOPPER_PEARSON),
        (ProportionMethod::Wilson, table::WILSON),
    ] {
        for row in rows {
            let got = method.interval(count(row.0), count(row.1), row.2).expect("a valid row");
            close(got.low, row.3, row);
            close(got.high, row.4, row);
        }
    }
    for row in table::BAYES {
        let method = ProportionMethod::Bayes { a: row.0, b: row.1 };
        let got = method.interval(count(row.2), count(row.3), 0.95).expect("a valid row");
        close(got.low, row.4, row);
        close(got.high, row.5, row);
    }
}
