//! Why a network cannot be built.

/// Why a network cannot be built of the kernel's parts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct CannotBuild {
    /// Which link or flow.
    place: String,
    reason: String,
}

impl CannotBuild {
    pub(super) fn new(place: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { place: place.into(), reason: reason.into() }
    }
}
