//! Long packets: the handshake, and the two that say that there is none (docs/rudp.md section 2).
//!
//! A packet of another version is told apart from garbage, because a server answers it. Padding
//! behind an INITIAL's message is not looked at.

use super::{Malformed, Reader, TEXT_MAX, Writer};

/// Length of the header of long packets, bytes.
pub const LONG_HEADER: usize = 21;

/// How much of an INITIAL belongs to the prologue of its handshake, bytes: through "ciphers offered"
/// (section 3).
pub const PROLOGUE: usize = 23;

/// The least length of an INITIAL's datagram (section 2; RFC 9000 section 14.1).
pub const INITIAL_LEN: usize = 1200;

/// Length of a RETRY token, bytes.
pub const TOKEN: usize = 40;

/// Length of a RESET token, bytes.
pub const RESET_TOKEN: usize = 16;

/// "AKL", version 2.
const VERSION: [u8; 4] = [0x41, 0x4b, 0x4c, 0x02];

const LONG: u8 = 0x80;

/// A long packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Long<'a> {
    /// Destination connection id; 0 in an INITIAL.
    pub destination: u64,
    /// Source connection id.
    pub source: u64,
    /// What it says.
    pub body: LongBody<'a>,
}

/// What a long packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongBody<'a> {
    /// A client greets.
    Initial {
        /// 1 passphrase, 2 keys, 255 insecure.
        mode: u8,
        /// Ciphers offered, a bit each.
        ciphers: u8,
        /// Which copy of it this is, from 0.
        copy: u8,
        /// What RETRY gave.
        token: Option<&'a [u8; TOKEN]>,
        /// The handshake's message.
        message: &'a [u8],
    },
    /// A server greets back.
    Answer {
        /// The number of the chosen cipher's bit.
        cipher: u8,
        /// The copy of the INITIAL that it answers.
        copy: u8,
        /// The handshake's message.
        message: &'a [u8],
    },
    /// Say it again with this token.
    Retry {
        /// The token.
        token: &'a [u8; TOKEN],
    },
    /// No connection.
    Refuse {
        /// Number of a [`crate::Code`].
        code: u8,
        /// For the reader: at most 80 bytes of printable ASCII.
        text: &'a [u8],
    },
    /// The connection with the source id is not known here.
    Reset {
        /// What transport parameter 8 announced.
        token: &'a [u8; RESET_TOKEN],
    },
}

/// Why a datagram is no long packet of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongError {
    /// It is a packet of another version; `source` is what its header would have as source id.
    OtherVersion {
        /// Source connection id.
        source: u64,
    },
    /// It is none at all.
    Malformed,
}

impl From<Malformed> for LongError {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

impl<'a> Long<'a> {
    /// Reads a datagram.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, LongError> {
        let mut reader = Reader::new(datagram);
        let first = reader.u8()?;
        if first & 0xf0 != LONG {
            return Err(LongError::Malformed);
        }
        let version = *reader.array::<4>()?;
        let destination = reader.u64()?;
        let source = reader.u64()?;
        if version[..3] == VERSION[..3] && version[3] != VERSION[3] {
            return Err(LongError::OtherVersion { source });
        }
        if version != VERSION {
            return Err(LongError::Malformed);
        }
        let body = match first & 0x0f {
            0 if datagram.len() < INITIAL_LEN => return Err(LongError::Malformed),
            0 => LongBody::parse_initial(&mut reader)?,
            1 => {
                let (cipher, copy) = (reader.u8()?, reader.u8()?);
                LongBody::Answer { cipher, copy, message: message(&mut reader)? }
            }
            2 => LongBody::Retry { token: reader.array()? },
            3 => LongBody::Refuse { code: reader.u8()?, text: reader.rest() },
            4 => LongBody::Reset { token: reader.array()? },
            _ => return Err(LongError::Malformed),
        };
        let whole = match body {
            LongBody::Initial { .. } => true,
            LongBody::Refuse { text, .. } => {
                text.len() <= TEXT_MAX && text.iter().all(|byte| (0x20..0x7f).contains(byte))
            }
            _ => reader.is_empty(),
        };
        if whole { Ok(Self { destination, source, body }) } else { Err(LongError::Malformed) }
    }

    /// Bytes of the datagram, the padding of INITIAL with them.
    pub fn len(&self) -> usize {
        LONG_HEADER
            + match self.body {
                LongBody::Initial { token, message, .. } => {
                    let body = 6 + token.map_or(0, |_| TOKEN) + message.len();
                    return (LONG_HEADER + body).max(INITIAL_LEN);
                }
                LongBody::Answer { message, .. } => 4 + message.len(),
                LongBody::Retry { .. } => TOKEN,
                LongBody::Refuse { text, .. } => 1 + text.len(),
                LongBody::Reset { .. } => RESET_TOKEN,
            }
    }

    /// Never: a packet has a header.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Appends the datagram, which takes [`Self::len`] bytes.
    pub fn emit(&self, writer: &mut Writer<'_>) {
        let end = writer.position() + self.len();
        writer.put_u8(LONG | self.body.kind());
        writer.put_bytes(&VERSION);
        writer.put_u64(self.destination);
        writer.put_u64(self.source);
        match self.body {
            LongBody::Initial { mode, ciphers, copy, token, message } => {
                writer.put_bytes(&[mode, ciphers, copy, token.map_or(0, |_| TOKEN as u8)]);
                writer.put_bytes(token.map_or(&[], |token| &token[..]));
                writer.put_u16(message.len() as u16);
                writer.put_bytes(message);
                writer.put_zeros(end.saturating_sub(writer.position()));
            }
            LongBody::Answer { cipher, copy, message } => {
                writer.put_bytes(&[cipher, copy]);
                writer.put_u16(message.len() as u16);
                writer.put_bytes(message);
            }
            LongBody::Retry { token } => writer.put_bytes(token),
            LongBody::Refuse { code, text } => {
                writer.put_u8(code);
                writer.put_bytes(text);
            }
            LongBody::Reset { token } => writer.put_bytes(token),
        }
    }
}

impl<'a> LongBody<'a> {
    fn kind(&self) -> u8 {
        match self {
            Self::Initial { .. } => 0,
            Self::Answer { .. } => 1,
            Self::Retry { .. } => 2,
            Self::Refuse { .. } => 3,
            Self::Reset { .. } => 4,
        }
    }

    fn parse_initial(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let &[mode, ciphers, copy, token_len] = reader.array()?;
        let token = match usize::from(token_len) {
            0 => None,
            TOKEN => Some(reader.array()?),
            _ => return Err(Malformed),
        };
        Ok(Self::Initial { mode, ciphers, copy, token, message: message(reader)? })
    }
}

fn message<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Malformed> {
    let len = reader.u16()?;
    reader.take(u64::from(len))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn emitted(packet: &Long<'_>) -> Vec<u8> {
        let mut bytes = vec![0xaa; packet.len()];
        let mut writer = Writer::new(&mut bytes);
        packet.emit(&mut writer);
        assert_eq!(writer.remaining(), 0);
        bytes
    }

    #[test]
    fn every_body_is_read_as_it_was_written() {
        let (token, reset) = ([7; TOKEN], [9; RESET_TOKEN]);
        let (mode, ciphers, copy, message) = (2, 3, 4, &b"hello"[..]);
        let bodies = [
            LongBody::Initial { mode, ciphers, copy, token: None, message },
            LongBody::Initial { mode, ciphers, copy, token: Some(&token), message: &[5; 1500] },
            LongBody::Answer { cipher: 1, copy, message },
            LongBody::Retry { token: &token },
            LongBody::Refuse { code: 4, text: b"wrong passphrase" },
            LongBody::Reset { token: &reset },
        ];
        for body in bodies {
            let packet = Long { destination: 1, source: u64::MAX, body };
            let bytes = emitted(&packet);
            assert_eq!(Long::parse(&bytes), Ok(packet));
            if !matches!(body, LongBody::Refuse { .. }) {
                assert_eq!(Long::parse(&bytes[..bytes.len() - 1]), Err(LongError::Malformed));
            }
        }
    }

    #[test]
    fn another_version_is_told_apart_from_garbage() {
        let body = LongBody::Refuse { code: 6, text: b"" };
        let mut bytes = emitted(&Long { destination: 0, source: 77, body });
        bytes[4] = 1;
        assert_eq!(Long::parse(&bytes), Err(LongError::OtherVersion { source: 77 }));
        bytes[3] = 2;
        assert_eq!(Long::parse(&bytes), Err(LongError::Malformed));
    }

    #[test]
    fn a_text_that_no_terminal_should_show_is_no_packet() {
        let body = LongBody::Refuse { code: 6, text: b"\x1b[2J" };
        let bytes = emitted(&Long { destination: 0, source: 77, body });
        assert_eq!(Long::parse(&bytes), Err(LongError::Malformed));
    }
}
