//! Distributions, quantiles and intervals; knows no packets.
//!
//! Everything takes slices of `f64` and returns small frozen values that serialise. Results are the
//! same to the bit on every platform: sums run in sorted order and transcendental functions come
//! from `libm`. Samples must be finite; what is not is refused with `None` rather than carried on.

mod ecdf;
mod estimate;
mod fairness;
mod histogram;
mod interval;
mod monitor;
mod proportion;
pub mod query;
pub mod special;
mod student;
mod summary;

pub use ecdf::{Ecdf, ks_critical_value};
pub use estimate::{Estimate, EstimatePlan, Estimator, StopRule};
pub use fairness::jain_index;
pub use histogram::Histogram;
pub use interval::MeanInterval;
pub use monitor::{RunMonitor, RunOutcome, Trajectory, Verdict};
pub use proportion::{ProportionInterval, ProportionMethod, okamoto_runs};
pub use student::t_quantile;
pub use summary::{Summary, quantile_of_sorted};
