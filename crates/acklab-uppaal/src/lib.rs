//! UPPAAL export: the dumbbell with its control loop as timed automata that UPPAAL SMC opens.
//!
//! The plant and the controller are the automata of Sup, de Moraes and Bauchspiess (ANCE) as their
//! algorithms 2 and 3 and tables 2 and 3 give them: SamplingP/SendingP, SamplingCS/SendingCS, and the
//! functions they name. Channels, routers, transmitters and receivers are ours, because the paper
//! leaves them to another one that was not to be had. The time unit is 1 us, every instant a whole
//! number of them; the plant's state is in doubles.
//!
//! [`Model`] is what can be exported; what UPPAAL's language or this file does not hold is refused by
//! [`Model::from_settings`]. [`Model::to_xml`] writes the file, always the same for the same model.
//! Left out: delayed ACKs, SACK, queues other than drop-tail, RED, CoDel, PIE and ENCN, congestion
//! controls other than Reno, ANCE and ENCN.
//!
#![doc = include_str!("../README.md")]
#![allow(
    missing_docs,
    reason = "not published: a line of documentation says what the name does not"
)]

mod automata;
mod constants;
mod model;
mod system;
mod xml;

pub use model::{ExportError, Model};
