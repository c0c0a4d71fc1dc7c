//! Pieces of content: as frames, and what of them is still of use.

use super::sending::Sending;
use crate::piece::Piece;
use crate::send_parcels::SendParcel;
use crate::wire::{StreamHeader, Writer, varint};
use acklab_core::time::Time;

impl Sending {
    /// Appends the frame of `piece`, which fits: without a length where it reaches the writer's end, and
    /// with PADDING before it where only that makes it reach.
    pub(crate) fn emit(&self, piece: &Piece, now: Time, writer: &mut Writer<'_>) {
        let len = piece.len() as usize;
        let length_field = varint::len(len as u64);
        match *piece {
            Piece::Stream { stream, offset, fin, .. } => {
                let header = StreamHeader { stream, offset, fin };
                let to_end = fill_up(writer, header.len_to_end() + len, length_field);
                header.emit(writer, len, to_end);
                if let Some(send) = self.stream(stream) {
                    send.copy_into(offset, &mut writer.rest_mut()[..len]);
                }
                writer.advance(len);
            }
            Piece::Parcel { parcel, offset, len } => {
                let Some(known) = self.parcel(parcel) else { return };
                let header = known.header(parcel, offset, now);
                let bytes = known.bytes(offset, len);
                let to_end = fill_up(writer, header.len_to_end() + bytes.len(), length_field);
                header.emit(writer, bytes.len(), to_end);
                writer.put_bytes(bytes);
            }
        }
    }

    /// Whether `piece` is to leave on two paths at once.
    pub(crate) fn is_redundant(&self, piece: &Piece) -> bool {
        match *piece {
            Piece::Stream { stream, .. } => {
                self.streams().get(stream).is_some_and(|stream| stream.redundant)
            }
            Piece::Parcel { parcel, .. } => {
                self.parcel(parcel).is_some_and(SendParcel::is_redundant)
            }
        }
    }

    /// What of `piece` is still of use to the peer and may leave again: its first part that was not
    /// acknowledged. For tail duplicates and probes, made from the records of packets in flight.
    pub(crate) fn still_wanted(&self, piece: &Piece) -> Option<Piece> {
        match *piece {
            Piece::Stream { stream, offset, len, fin } => {
                let send = self.stream(stream)?;
                let left = send.unacked(offset..offset + u64::from(len))?;
                if left.len == 0 && !fin {
                    return None;
                }
                let (offset, len) = (left.offset, left.len as u32);
                Some(Piece::Stream { stream, offset, len, fin: left.fin })
            }
            Piece::Parcel { parcel, offset, len } => {
                let known = self.parcel(parcel)?;
                let left = known.unacked(u64::from(offset)..u64::from(offset + len))?;
                let (offset, len) = (left.start as u32, (left.end - left.start) as u32);
                Some(Piece::Parcel { parcel, offset, len })
            }
        }
    }

    /// What of `piece` may leave on a second path, for streams and parcels that are redundant: a
    /// ONE_SHOT parcel's too, which is never sent again for any other reason.
    pub(crate) fn second_copy(&self, piece: &Piece) -> Option<Piece> {
        match *piece {
            Piece::Stream { .. } => self.still_wanted(piece),
            Piece::Parcel { parcel, offset, len } => {
                let known = self.parcel(parcel)?;
                (known.bytes(offset, len).len() == len as usize).then_some(*piece)
            }
        }
    }

    /// Bytes of a packet that `piece` takes at least: the frame without a length field.
    pub(crate) fn len_of(&self, piece: &Piece, now: Time) -> usize {
        let header = match *piece {
            Piece::Stream { stream, offset, fin, .. } => {
                StreamHeader { stream, offset, fin }.len_to_end()
            }
            Piece::Parcel { parcel, offset, .. } => self
                .parcel(parcel)
                .map_or(0, |known| known.header(parcel, offset, now).len_to_end()),
        };
        header + piece.len() as usize
    }
}

/// Whether a frame that takes `len` bytes without its `length_field` is to reach the writer's end;
/// where it would almost do so, PADDING makes it.
fn fill_up(writer: &mut Writer<'_>, len: usize, length_field: usize) -> bool {
    if len + length_field <= writer.remaining() {
        return false;
    }
    writer.put_zeros(writer.remaining().saturating_sub(len));
    true
}
