//! What became of a check.

use schemars::JsonSchema;
use serde::Serialize;

/// What became of a check.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Outcome {
    /// The check as written, normalised.
    pub check: String,
    /// The metric's value.
    pub value: f64,
    /// Whether it holds.
    pub holds: bool,
}
