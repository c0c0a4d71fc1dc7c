//! The contract, as something that can be run: against our own endpoints in the tests, against
//! arbitrary input in the fuzz targets, and against whatever a user writes.
//!
//! - [`drain`] drives one endpoint as every world must, and panics where it is busy for ever;
//! - [`check_quiet`] asserts that a spurious timeout does nothing;
//! - [`attack_congestion_control`], [`attack_ack_policy`], [`attack_queue`] and [`attack_link`] turn
//!   bytes into hostile samples for one algorithm, so that a new one gets its property test by being in its registry;
//! - [`attack_choosable`] chooses among the registries by bytes, too, for a fuzz target;
//! - [`attack_tcp_wire`] reads bytes as a TCP segment;
//! - [`vary()`] gives an algorithm other options, so that those are attacked, too;
//! - [`operate_congestion_control`] is a model sender, for what holds only of samples that fit together.

mod algorithms;
mod choices;
mod choosable;
mod operations;
mod vary;
mod wire;

pub use algorithms::{attack_ack_policy, attack_congestion_control, attack_link, attack_queue};
pub use choices::Choices;
pub use choosable::attack_choosable;
pub use operations::operate_congestion_control;
pub use vary::vary;
pub use wire::attack_tcp_wire;

use crate::endpoint::Endpoint;
use crate::event::Sink;
use crate::time::Time;

/// Packets that one input may set free at one instant; more is a busy loop. A window of 8 MB in the
/// smallest segments, of 8 bytes, is as many.
pub const MAX_BURST: usize = 1 << 20;

/// Takes everything out of an endpoint at `now`: packets first, then events.
///
/// # Panics
/// Where it offers more than [`MAX_BURST`] packets at one instant.
pub fn drain<E: Endpoint>(
    endpoint: &mut E,
    now: Time,
    sink: &mut Sink,
    mut each: impl FnMut(E::Departure<'_>),
) -> Vec<E::AppEvent> {
    let mut burst = 0;
    while let Some(departure) = endpoint.poll_transmit(now, sink) {
        burst += 1;
        assert!(burst <= MAX_BURST, "busy loop: {burst} packets at {now}");
        each(departure);
    }
    std::iter::from_fn(|| endpoint.poll_event()).collect()
}

/// Asserts what must hold once an endpoint is drained at `now`: no deadline in the past after its
/// timeout was handled, and a timeout before its time changes nothing.
///
/// # Panics
/// Where it does not hold.
pub fn check_quiet<E: Endpoint>(endpoint: &mut E, now: Time, sink: &mut Sink) {
    assert!(endpoint.poll_transmit(now, sink).is_none(), "not drained at {now}");
    let due = endpoint.poll_timeout();
    if due.is_none_or(|at| at > now) {
        endpoint.handle_timeout(now, sink);
        assert!(endpoint.poll_transmit(now, sink).is_none(), "a spurious timeout sent at {now}");
        assert!(endpoint.poll_event().is_none(), "a spurious timeout told something at {now}");
        assert_eq!(endpoint.poll_timeout(), due, "a spurious timeout moved the deadline at {now}");
    }
}

/// Handles the timeout that is due at `now` and asserts that the deadline moved on.
///
/// # Panics
/// Where the same deadline stays due, which would spin for ever.
pub fn expire<E: Endpoint>(
    endpoint: &mut E,
    now: Time,
    sink: &mut Sink,
    each: impl FnMut(E::Departure<'_>),
) -> Vec<E::AppEvent> {
    endpoint.handle_timeout(now, sink);
    let events = drain(endpoint, now, sink, each);
    assert!(
        endpoint.poll_timeout().is_none_or(|at| at > now),
        "the deadline of {now} is still due after it was handled"
    );
    events
}
