//! What tests and fuzz targets drive connections with.
//!
//! - [`Pair`] is two connections and a wire;
//! - [`attack_connection`] and [`attack_pair`] turn bytes into hostile peers and networks.

mod adversary;
mod pair;

pub use adversary::{attack_connection, attack_pair};
pub use pair::{Fate, Filter, Pair, Sent, Side};
