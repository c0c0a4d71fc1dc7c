//! Reliable UDP in the world: the same connections and listeners that run on sockets, as peers whose
//! datagrams are bytes.
//!
//! [`Host`] is an endpoint and what uses it, at one address or several. [`pair`] makes the two hosts of a
//! connection whose ends are driven by [`crate::app::App`]s, as those of TCP are; tests and reproductions
//! bring other [`User`]s, who see streams and parcels.

mod host;
mod stream;

pub use host::{Host, User};
pub use stream::{AppUser, End, pair};
