//! The contract: five verbs that everything which takes packets answers to, and a sixth for runs that
//! branch.
//!
//! `now` is always an argument. After any mutation the caller drains [`Endpoint::poll_transmit`],
//! then [`Endpoint::poll_event`], then reads [`Endpoint::poll_timeout`] once. A spurious timeout is
//! a no-op; the same input gives the same output to the bit. [`crate::contract`] checks all of that,
//! and its property tests hold every implementor to it.
//!
//! What arrives and leaves is the endpoint's own choice: a [`Packet`](crate::packet::Packet), a value,
//! for TCP, links and whatever else lives in virtual time alone; bytes with their addresses for a
//! protocol that also runs on sockets. Bytes that leave stand in the endpoint's own buffer until it is
//! asked again, hence the lifetimes.

use crate::event::Sink;
use crate::time::Time;

/// A host's transport, a link, a queue or a relay.
pub trait Endpoint {
    /// What arrives.
    type Arrival<'a>;

    /// What leaves.
    type Departure<'a>
    where
        Self: 'a;

    /// What it tells the application or the world above it.
    type AppEvent;

    /// Takes what arrived at `now`.
    fn handle_packet(&mut self, now: Time, arrival: Self::Arrival<'_>, sink: &mut Sink);

    /// Acts on every deadline that is due at `now`; does nothing where none is.
    fn handle_timeout(&mut self, now: Time, sink: &mut Sink);

    /// The next that leaves at `now`; `None` when all that may leave has left.
    fn poll_transmit(&mut self, now: Time, sink: &mut Sink) -> Option<Self::Departure<'_>>;

    /// When [`Endpoint::handle_timeout`] must be called next, if nothing else happens before.
    fn poll_timeout(&self) -> Option<Time>;

    /// The next thing the layer above should know. Those that tell nothing keep this.
    fn poll_event(&mut self) -> Option<Self::AppEvent> {
        None
    }

    /// From now on, whatever it draws comes from its streams under `seed`: a run that branches. What
    /// was drawn before stays as it is. Those that draw nothing ignore it.
    fn reseed(&mut self, _seed: u64) {}
}
