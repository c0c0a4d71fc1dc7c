//! What property tests and fuzz targets drive reliable UDP with.
//!
//! [`attack_peers`] turns bytes into hostile peers of a client and a server, [`attack_network`] into a
//! hostile network between honest ones. Both hold the two ends to the core's contract after every step.

mod ends;
mod hostile;
mod network;

pub use hostile::attack_peers;
pub use network::attack_network;
