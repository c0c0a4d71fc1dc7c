//! Any bytes as a TCP segment with its options: no panic, and what is read must be read again from what is written of it.
#![no_main]

use acklab_core::contract::attack_tcp_wire;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    attack_tcp_wire(bytes);
});
