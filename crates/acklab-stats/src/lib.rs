//! Distributions, quantiles and intervals; knows no packets.
//!
//! Everything takes slices of `f64` and returns small frozen values that serialise. Results are the
//! same to the bit on every platform: sums run in sorted order and transcendental functions come
//! from `libm`. Samples must be finite; what is not is refused with `None` rather than carried on.
//!
#![doc = include_str!("../README.md")]

mod betting;
mod bind;
mod distance;
mod distribution;
mod ecdf;
mod estimate;
mod expectation;
mod fairness;
mod fisher;
mod interval;
mod mixture;
mod monitor;
mod procedure;
mod proportion;
mod quantile;
pub mod query;
mod reach;
pub mod special;
mod splitting;
mod sprt;
mod steady;
mod student;
mod summary;

pub use bind::BoundQuery;
pub use distance::{ks_to_law, two_sample_ks};
pub use ecdf::{Ecdf, ks_critical_value};
pub use estimate::{Estimate, EstimatePlan, Estimator, StopRule};
pub use expectation::{Expectation, HalfWidth, MeanPlan, MeanTest, UNSEEN};
pub use fairness::jain_index;
pub use fisher::fisher_exact;
pub use interval::{Interval, MeanInterval, Validity};
pub use monitor::{RunMonitor, RunOutcome, Slice, Trajectory, Verdict};
pub use procedure::{Procedure, Report, Settings, SettingsError};
pub use proportion::{ProportionInterval, ProportionMethod, okamoto_runs};
pub use quantile::{QuantileOverRuns, QuantilePlan};
pub use reach::{ReachCurve, ReachPoint};
pub use splitting::{
    Passage, Segment, SplitEstimate, SplitPlan, SplitRun, Splittable, Stuck, choose_levels,
};
pub use sprt::{Claim, Comparison, ComparisonPlan, Decision, ErrorRates, Sprt, SprtPlan};
pub use steady::{Steadiness, SteadyEstimate, SteadyPlan, SteadyState, TooShort};
pub use student::t_quantile;
pub use summary::{Summary, quantile_of_sorted};
