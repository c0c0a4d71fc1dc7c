//! Plants, controllers and control costs: the loop that is closed over the network.
//!
//! A [`StateSpace`] is discretised exactly by zero-order hold ([`zoh`]), a [`Pid`] closes the loop,
//! and [`peer::PlantPeer`] and [`peer::ControllerPeer`] put both behind datagrams, as endpoints of
//! the core, so that any world can carry their samples and commands. What happens is told in
//! application events ([`record::code`]); a [`LoopRecord`] turns those into costs, ages and delays.
//! [`motor_loop()`] is the same loop over fixed delays, and [`margin`] says how much delay it bears.
//!
//! The model of reference is the networked DC motor of the ANCE article (equation (3), algorithms 2
//! and 3). Left out: plants with several inputs or outputs in the peers, observers, noise.
//!
#![doc = include_str!("../README.md")]
#![allow(
    missing_docs,
    reason = "not published: a line of documentation says what the name does not"
)]

pub mod cost;
pub mod expm;
pub mod margin;
pub mod matrix;
pub mod motor_loop;
pub mod peer;
pub mod pid;
pub mod plant;
pub mod record;
pub mod reference;
pub mod zoh;

pub use cost::{Costs, StepResponse};
pub use matrix::Matrix;
pub use motor_loop::{LoopRun, MotorLoop, Split, motor_loop};
pub use peer::{
    Actuation, ControllerPeer, ControllerSetup, Driven, Missing, PlantPeer, PlantSetup,
};
pub use pid::{AntiWindup, Integration, Pid, PidGains};
pub use plant::{ModelError, StateSpace, TransferFunction};
pub use record::{LoopRecord, LoopValue};
pub use reference::SquareWave;
