//! The receiving end: an ACK for every intact packet, and the end.
//!
//! Each packet whose payload has its checksum is acknowledged by its number, a second copy too. The end
//! packet is answered once, without repetition, and then the receiver is gone: if that answer is lost,
//! there is no other (paper, section II).

use super::Header;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The packet of this index, for the first time.
    New(u16),
    /// A packet that has come before.
    Again,
    End,
    /// Damaged, not of this file, or after the end: no answer.
    Ignored,
}

#[derive(Clone, Debug)]
pub struct Receiver {
    arrived: Vec<bool>,
    missing: usize,
    over: bool,
}

impl Receiver {
    /// Waits for a file of `chunks` packets.
    pub fn new(chunks: u16) -> Self {
        let chunks = usize::from(chunks);
        Self { arrived: vec![false; chunks], missing: chunks, over: false }
    }

    /// Takes a packet: what it was, and the answer, which leaves on the path on which it came.
    pub fn handle_packet(&mut self, header: Header, intact: bool) -> (Arrival, Option<Header>) {
        if !intact || self.over {
            return (Arrival::Ignored, None);
        }
        if header == Header::END {
            self.over = true;
            return (Arrival::End, Some(Header::END));
        }
        let Some(index) = header.seq.checked_sub(1) else { return (Arrival::Ignored, None) };
        let Some(arrived) = self.arrived.get_mut(usize::from(index)) else {
            return (Arrival::Ignored, None);
        };
        let arrival = if *arrived { Arrival::Again } else { Arrival::New(index) };
        if !*arrived {
            *arrived = true;
            self.missing -= 1;
        }
        (arrival, Some(Header { seq: 0, ack: header.seq }))
    }

    /// Whether the whole file is there.
    pub const fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// Whether the end packet has come.
    pub const fn is_over(&self) -> bool {
        self.over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_intact_copy_is_acknowledged_and_the_end_once() {
        let mut receiver = Receiver::new(2);
        let mut data = |seq, intact| receiver.handle_packet(Header { seq, ack: 0 }, intact);
        let ack = |ack| Some(Header { seq: 0, ack });
        assert_eq!(data(2, true), (Arrival::New(1), ack(2)));
        assert_eq!(data(2, true), (Arrival::Again, ack(2)));
        assert_eq!(data(1, false), (Arrival::Ignored, None));
        assert_eq!(data(3, true), (Arrival::Ignored, None));
        assert_eq!(data(1, true), (Arrival::New(0), ack(1)));
        assert_eq!(data(0, true), (Arrival::End, Some(Header::END)));
        assert_eq!(data(0, true), (Arrival::Ignored, None));
        assert!(receiver.is_complete() && receiver.is_over());
    }
}
