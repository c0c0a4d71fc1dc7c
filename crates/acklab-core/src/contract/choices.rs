//! [`Choices`]: decisions read from bytes, so that a fuzzer's input or a random vector is a script.

/// A cursor over bytes; at the end every choice is zero.
#[derive(Clone, Debug)]
pub struct Choices<'a> {
    bytes: &'a [u8],
}

impl<'a> Choices<'a> {
    /// Decisions from `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Whether nothing is left to decide.
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// What is left to decide with.
    pub const fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    /// One byte.
    pub fn byte(&mut self) -> u8 {
        match self.bytes.split_first() {
            Some((&first, rest)) => {
                self.bytes = rest;
                first
            }
            None => 0,
        }
    }

    /// Two bytes.
    pub fn word(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// Four bytes.
    pub fn long(&mut self) -> u32 {
        u32::from(self.word()) | u32::from(self.word()) << 16
    }

    /// One of 0..bound, by one byte; 0 where `bound` is 0.
    pub fn below(&mut self, bound: u8) -> u8 {
        self.byte() % bound.max(1)
    }

    /// One of `all`, of which there is at least one, by one byte.
    pub fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[usize::from(self.byte()) % all.len()].clone()
    }

    /// True every other time.
    pub fn flip(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// A distance that is most often small: 0, a few, a segment, or anything.
    pub fn distance(&mut self) -> i32 {
        match self.below(6) {
            0 | 1 => 0,
            2 => i32::from(self.byte() as i8),
            3 => 536,
            4 => i32::from(self.word() as i16),
            _ => self.long() as i32,
        }
    }

    /// The next `count` bytes, or what is left of them.
    pub fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.bytes.split_at(count.min(self.bytes.len()));
        self.bytes = rest;
        taken
    }
}
