//! Scripts in the packetdrill language, run against a host in virtual time.
//!
//! - [`script`]: the language, read into values;
//! - [`run`]: a script's events in a [`world`], [`acklab_host`] or another, and the verdict;
//! - [`wire`]: segments as the bytes of IP packets;
//! - [`expression`]: assertions; `shell`: commands as settings; `call`: socket calls; `flow`: packets compared.
//!
//! Nothing passes that was not checked: what is not understood is told as not supported, with its line.

mod call;
mod cookie;
pub mod expression;
mod flow;
pub mod run;
pub mod script;
mod shell;
mod symbols;
pub mod wire;
pub mod world;

pub use flow::flags;
