//! How far a connection has come (docs/rudp.md section 3, "States").

use super::closing::Ending;
use super::handshake::{Answering, Greeting};

/// How far a connection has come.
#[derive(Debug)]
pub(super) enum Stage {
    /// The client greets.
    Greeting(Box<Greeting>),
    /// The server answers until the client shows that it has the keys.
    Answering(Answering),
    Open,
    /// CLOSE was sent or received, or the connection failed.
    Ending(Ending),
    /// Nothing is left to do.
    Closed,
}
