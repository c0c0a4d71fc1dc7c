//! How exactly hosts and paths keep time, and how much a sample must show.

/// A host reacts to an ACK within its own scheduling grain: 1 ms is the tick of the slowest stacks
/// that answer from a timer loop.
pub(super) const REACTION_MS: f64 = 1.0;
/// Share of the far round trip that jitter may add.
pub(super) const JITTER_SHARE: f64 = 0.1;
/// No segment crosses the path in less than this share of the least round trip seen.
pub(super) const EARLY_SHARE: f64 = 0.96;
/// So many points make a slope.
pub(super) const SLOPE_POINTS: usize = 8;
