//! A lab of known truth: programs that log each call, over the running kernel's TCP and acklab's profiles, captured at
//! both ends; what a diagnosis says of the captures is held against what happened.
//!
//! [`pattern`] says what programs do and [`pairs`] what is changed, [`script`] is the form in which they are told, [`lab`] runs them in two
//! namespaces with the emulator between them, [`hold`] finds out of logs and complete captures which writes waited and
//! for what, [`vantage`] and [`damage`] make the captures that a diagnosis gets to see, [`store`] keeps a case as a
//! folder, [`score`] judges.

pub mod causes;
pub mod damage;
pub mod hold;
#[cfg(target_os = "linux")]
pub mod lab;
pub mod pairs;
pub mod pattern;
#[cfg(target_os = "linux")]
mod play;
pub mod score;
pub mod script;
pub mod store;
pub mod two;
pub mod vantage;
pub mod what_if;
