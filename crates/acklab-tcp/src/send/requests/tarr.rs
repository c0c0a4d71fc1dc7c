//! TCP ACK Rate Request (draft-ietf-tcpm-ack-rate-request): a number R of full segments per ACK, up to 127.
//!
//! The draft leaves R to the sender and asks it to respect its window: here each window has eight ACKs, as those that
//! reliable UDP asks for (docs/rudp.md section 5), and R follows the window where it is a quarter off. R = 0, one ACK
//! at once, is understood and never asked for.

use super::rule::{Heard, Rule};

/// Eight ACKs in a window.
#[derive(Debug)]
pub(super) struct Tarr;

impl Rule for Tarr {
    fn wants(&mut self, heard: &Heard) -> u8 {
        (heard.window / ACKS_IN_WINDOW).clamp(2, MOST) as u8
    }

    fn is_worthwhile(&self, asked: u8, wanted: u8) -> bool {
        u32::from(asked.abs_diff(wanted)) * 4 > u32::from(asked)
    }
}

const ACKS_IN_WINDOW: u64 = 8;
/// R has seven bits.
const MOST: u64 = 127;
