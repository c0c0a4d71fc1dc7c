//! A cursor over the datagram that is being filled.

use super::varint;

/// Writes big-endian fields one after the other into a slice. Callers look first whether there is
/// room; a field that does not fit is a fault of the program and is left out.
#[derive(Debug)]
pub struct Writer<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    /// A writer at the beginning of `bytes`.
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes written so far.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Bytes for which there is room.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// What was written.
    pub fn written(&self) -> &[u8] {
        &self.bytes[..self.at]
    }

    /// The room that is left, to be filled by the caller, who then calls [`Self::advance`].
    pub fn rest_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.at..]
    }

    /// Counts `len` bytes that the caller has filled as written.
    pub fn advance(&mut self, len: usize) {
        debug_assert!(len <= self.remaining(), "more than there was room for");
        self.at = (self.at + len).min(self.bytes.len());
    }

    /// Appends `field`.
    pub fn put_bytes(&mut self, field: &[u8]) {
        let room = self.bytes.get_mut(self.at..self.at + field.len());
        debug_assert!(room.is_some(), "no room for the field");
        if let Some(room) = room {
            room.copy_from_slice(field);
            self.at += field.len();
        }
    }

    /// Appends one byte.
    pub fn put_u8(&mut self, value: u8) {
        self.put_bytes(&[value]);
    }

    /// Appends two bytes.
    pub fn put_u16(&mut self, value: u16) {
        self.put_bytes(&value.to_be_bytes());
    }

    /// Appends four bytes.
    pub fn put_u32(&mut self, value: u32) {
        self.put_bytes(&value.to_be_bytes());
    }

    /// Appends eight bytes.
    pub fn put_u64(&mut self, value: u64) {
        self.put_bytes(&value.to_be_bytes());
    }

    /// Appends a varint in its shortest form; `value` is at most [`varint::MAX`].
    pub fn put_varint(&mut self, value: u64) {
        debug_assert!(value <= varint::MAX, "too large for a varint");
        match varint::len(value) {
            1 => self.put_u8(value as u8),
            2 => self.put_u16(value as u16 | 1 << 14),
            4 => self.put_u32(value as u32 | 2 << 30),
            _ => self.put_u64(value | 3 << 62),
        }
    }

    /// Appends `len` zeros.
    pub fn put_zeros(&mut self, len: usize) {
        let len = len.min(self.remaining());
        self.rest_mut()[..len].fill(0);
        self.advance(len);
    }
}
