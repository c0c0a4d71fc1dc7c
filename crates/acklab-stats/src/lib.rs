//! Distributions, quantiles and intervals; knows no packets.
//!
//! Everything takes slices of `f64` and returns small frozen values that serialise. Results are the
//! same to the bit on every platform: sums run in sorted order and transcendental functions come
//! from `libm`. Samples must be finite; what is not is refused with `None` rather than carried on.

mod bind;
mod ecdf;
mod estimate;
mod expectation;
mod fairness;
mod interval;
mod monitor;
mod procedure;
mod proportion;
pub mod query;
mod reach;
pub mod special;
mod splitting;
mod sprt;
mod student;
mod summary;

pub use bind::BoundQuery;
pub use ecdf::{Ecdf, ks_critical_value};
pub use estimate::{Estimate, EstimatePlan, Estimator, StopRule};
pub use expectation::{Expectation, HalfWidth, UNSEEN};
pub use fairness::jain_index;
pub use interval::MeanInterval;
pub use monitor::{RunMonitor, RunOutcome, Trajectory, Verdict};
pub use procedure::{Procedure, Report, ReportInterval, Settings, SettingsError};
pub use proportion::{ProportionInterval, ProportionMethod, okamoto_runs};
pub use reach::{ReachCurve, ReachPoint};
pub use splitting::{
    Passage, Segment, SplitEstimate, SplitPlan, SplitRun, Splittable, Stuck, choose_levels,
};
pub use sprt::{Comparison, ComparisonPlan, Decision, ErrorRates, Sprt, SprtPlan};
pub use student::t_quantile;
pub use summary::{Summary, quantile_of_sorted};
