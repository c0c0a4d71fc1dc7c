#![doc = include_str!("../README.md")]
//!
//! - `door`: the host, its descriptors, its clock and who sleeps; `calls`: the socket calls, which may sleep;
//! - `address`, `controls`, `options`, `setup`: what calls are given and give, as bytes;
//! - `abi`: the functions as C sees them, the only file with `unsafe` code.

mod abi;
mod address;
mod calls;
mod controls;
mod door;
mod options;
mod setup;
