//! Distributions, quantiles and intervals; knows no packets.
//!
//! Everything takes slices of `f64` and returns small frozen values that serialise. Results are the
//! same to the bit on every platform: sums run in sorted order and transcendental functions come
//! from `libm`. Samples must be finite; what is not is refused with `None` rather than carried on.

mod ecdf;
mod fairness;
mod histogram;
mod interval;
mod proportion;
pub mod special;
mod student;
mod summary;

pub use ecdf::{Ecdf, ks_critical_value};
pub use fairness::jain_index;
pub use histogram::Histogram;
pub use interval::MeanInterval;
pub use proportion::{ProportionInterval, ProportionMethod, okamoto_runs};
pub use student::t_quantile;
pub use summary::{Summary, quantile_of_sorted};
