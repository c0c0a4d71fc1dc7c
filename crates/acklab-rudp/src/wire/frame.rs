//! Frames: what a packet holds once its protection is undone (docs/rudp.md section 2).
//!
//! [`Frames`] walks over the bytes and yields [`Frame`]s that borrow from them; a run of PADDING is
//! one frame. Limits that the table gives (counts, lengths, kinds, the size of a parcel) are held
//! here, limits that the connection grants are not. Content is written without an extra copy:
//! [`StreamHeader`] or [`ParcelHeader`], then the caller's bytes into the writer's room.

use std::net::{IpAddr, SocketAddr};

use super::ack::AckFrame;
use super::{LIFE_MAX_MS, Malformed, PARCEL_MAX, Reader, TEXT_MAX, Writer, varint};

/// What becomes of a parcel's lost fragments (section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Sent again until they arrive.
    Reliable,
    /// Never sent again.
    OneShot,
    /// Sent again until the parcel's life is over.
    Expiring {
        /// What is left of its life when the fragment leaves, ms.
        life_ms: u64,
    },
}

/// How an end uses a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathStatus {
    /// For everything.
    Use,
    /// Only when no other path is active.
    Spare,
    /// Nothing is heard on it here.
    Silent,
}

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the table in docs/rudp.md section 2")]
pub enum Frame<'a> {
    /// So many bytes of nothing.
    Padding(usize),
    Ping,
    Ack(AckFrame<'a>),
    AckFrequency {
        path: u8,
        sequence: u64,
        packets: u64,
        delay_us: u64,
        reordering: u8,
    },
    ImmediateAck {
        path: u8,
    },
    PathChallenge([u8; 8]),
    PathResponse([u8; 8]),
    PathStatus {
        path: u8,
        sequence: u64,
        status: PathStatus,
    },
    AddPath {
        id: u8,
        address: SocketAddr,
    },
    RemovePath {
        path: u8,
        code: u64,
    },
    MaxData(u64),
    MaxStreamData {
        stream: u64,
        bytes: u64,
    },
    MaxStreams(u64),
    Stream {
        stream: u64,
        offset: u64,
        fin: bool,
        data: &'a [u8],
    },
    Parcel {
        parcel: u64,
        kind: Kind,
        total: u32,
        offset: u32,
        data: &'a [u8],
    },
    ParcelGone {
        parcel: u64,
        total: u32,
    },
    DataBlocked(u64),
    StreamDataBlocked {
        stream: u64,
        limit: u64,
    },
    ResetStream {
        stream: u64,
        code: u64,
        final_size: u64,
    },
    StopSending {
        stream: u64,
        code: u64,
    },
    Close {
        code: u64,
        text: &'a [u8],
    },
}

/// A STREAM frame without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamHeader {
    /// Stream id.
    pub stream: u64,
    /// Where in the stream the data belong.
    pub offset: u64,
    /// The data end the stream.
    pub fin: bool,
}

/// A PARCEL frame without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParcelHeader {
    /// Parcel id.
    pub parcel: u64,
    /// What becomes of lost fragments.
    pub kind: Kind,
    /// Bytes of the whole parcel.
    pub total: u32,
    /// Where in the parcel the data belong.
    pub offset: u32,
}

impl StreamHeader {
    /// Bytes of the header without a length field.
    pub fn len_to_end(&self) -> usize {
        1 + varint::len(self.stream) + varint::len(self.offset)
    }

    /// Appends the header for `len` bytes of data: with the length, or, if the data reach `to_end` of
    /// the packet, without.
    pub fn emit(&self, writer: &mut Writer<'_>, len: usize, to_end: bool) {
        writer.put_u8(0x10 | u8::from(self.fin) | u8::from(!to_end) << 1);
        writer.put_varint(self.stream);
        writer.put_varint(self.offset);
        if !to_end {
            writer.put_varint(len as u64);
        }
    }
}

impl ParcelHeader {
    /// Bytes of the header without a length field.
    pub fn len_to_end(&self) -> usize {
        let life = match self.kind {
            Kind::Expiring { life_ms } => varint::len(life_ms),
            Kind::Reliable | Kind::OneShot => 0,
        };
        2 + varint::len(self.parcel)
            + varint::len(self.total.into())
            + varint::len(self.offset.into())
            + life
    }

    /// Appends the header for `len` bytes of data: with the length, or, if the data reach `to_end` of
    /// the packet, without.
    pub fn emit(&self, writer: &mut Writer<'_>, len: usize, to_end: bool) {
        writer.put_u8(0x14 | u8::from(!to_end));
        writer.put_varint(self.parcel);
        writer.put_u8(match self.kind {
            Kind::Reliable => 0,
            Kind::OneShot => 1,
            Kind::Expiring { .. } => 2,
        });
        writer.put_varint(self.total.into());
        writer.put_varint(self.offset.into());
        if let Kind::Expiring { life_ms } = self.kind {
            writer.put_varint(life_ms);
        }
        if !to_end {
            writer.put_varint(len as u64);
        }
    }
}

impl<'a> Frame<'a> {
    /// Whether a packet with it is acknowledged (column E of the table).
    pub fn is_ack_eliciting(&self) -> bool {
        !matches!(self, Self::Padding(_) | Self::Ack(_) | Self::Close { .. })
    }

    /// Bytes that [`Self::emit`] appends.
    pub fn len(&self) -> usize {
        let fields: &[u64] = match self {
            Self::Padding(len) => return *len,
            Self::Ack(ack) => return ack.len(),
            Self::Stream { stream, offset, fin, data } => {
                let header = StreamHeader { stream: *stream, offset: *offset, fin: *fin };
                return header.len_to_end() + with_length(data);
            }
            Self::Parcel { parcel, kind, total, offset, data } => {
                let (parcel, kind, total, offset) = (*parcel, *kind, *total, *offset);
                let header = ParcelHeader { parcel, kind, total, offset };
                return header.len_to_end() + with_length(data);
            }
            Self::Close { code, text } => return 1 + varint::len(*code) + with_length(text),
            Self::AddPath { address, .. } => return if address.is_ipv4() { 9 } else { 21 },
            Self::PathChallenge(_) | Self::PathResponse(_) => return 9,
            Self::ImmediateAck { .. } => return 2,
            Self::AckFrequency { sequence, packets, delay_us, .. } => {
                return 3 + varint::len(*sequence) + varint::len(*packets) + varint::len(*delay_us);
            }
            Self::PathStatus { sequence, .. } => return 3 + varint::len(*sequence),
            Self::RemovePath { code, .. } => return 2 + varint::len(*code),
            Self::Ping => &[],
            Self::MaxData(bytes) => &[*bytes],
            Self::MaxStreamData { stream, bytes } => &[*stream, *bytes],
            Self::MaxStreams(streams) => &[*streams],
            Self::ParcelGone { parcel, total } => &[*parcel, u64::from(*total)],
            Self::DataBlocked(limit) => &[*limit],
            Self::StreamDataBlocked { stream, limit } => &[*stream, *limit],
            Self::ResetStream { stream, code, final_size } => &[*stream, *code, *final_size],
            Self::StopSending { stream, code } => &[*stream, *code],
        };
        1 + fields.iter().map(|&field| varint::len(field)).sum::<usize>()
    }

    /// Whether it takes no bytes: PADDING of none.
    pub fn is_empty(&self) -> bool {
        *self == Self::Padding(0)
    }

    /// Appends the frame, STREAM and PARCEL with a length field.
    pub fn emit(&self, writer: &mut Writer<'_>) {
        match *self {
            Self::Padding(len) => writer.put_zeros(len),
            Self::Ping => writer.put_u8(0x01),
            Self::Ack(ack) => ack.emit(writer),
            Self::AckFrequency { path, sequence, packets, delay_us, reordering } => {
                writer.put_bytes(&[0x06, path]);
                writer.put_varint(sequence);
                writer.put_varint(packets);
                writer.put_varint(delay_us);
                writer.put_u8(reordering);
            }
            Self::ImmediateAck { path } => writer.put_bytes(&[0x07, path]),
            Self::PathChallenge(random) => {
                writer.put_u8(0x08);
                writer.put_bytes(&random);
            }
            Self::PathResponse(random) => {
                writer.put_u8(0x09);
                writer.put_bytes(&random);
            }
            Self::PathStatus { path, sequence, status } => {
                writer.put_bytes(&[0x0a, path]);
                writer.put_varint(sequence);
                writer.put_u8(status as u8);
            }
            Self::AddPath { id, address } => put_address(writer, id, address),
            Self::RemovePath { path, code } => {
                writer.put_bytes(&[0x0c, path]);
                writer.put_varint(code);
            }
            Self::MaxData(bytes) => put(writer, 0x0d, &[bytes]),
            Self::MaxStreamData { stream, bytes } => put(writer, 0x0e, &[stream, bytes]),
            Self::MaxStreams(streams) => put(writer, 0x0f, &[streams]),
            Self::Stream { stream, offset, fin, data } => {
                StreamHeader { stream, offset, fin }.emit(writer, data.len(), false);
                writer.put_bytes(data);
            }
            Self::Parcel { parcel, kind, total, offset, data } => {
                ParcelHeader { parcel, kind, total, offset }.emit(writer, data.len(), false);
                writer.put_bytes(data);
            }
            Self::ParcelGone { parcel, total } => put(writer, 0x16, &[parcel, total.into()]),
            Self::DataBlocked(limit) => put(writer, 0x17, &[limit]),
            Self::StreamDataBlocked { stream, limit } => put(writer, 0x18, &[stream, limit]),
            Self::ResetStream { stream, code, final_size } => {
                put(writer, 0x19, &[stream, code, final_size]);
            }
            Self::StopSending { stream, code } => put(writer, 0x1a, &[stream, code]),
            Self::Close { code, text } => {
                put(writer, 0x1b, &[code, text.len() as u64]);
                writer.put_bytes(text);
            }
        }
    }

    fn parse(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let kind = reader.u8()?;
        Ok(match kind {
            0x00 => Self::Padding(1 + skip_zeros(reader)),
            0x01 => Self::Ping,
            0x02..=0x05 => Self::Ack(AckFrame::parse(kind, reader)?),
            0x06 => Self::AckFrequency {
                path: reader.u8()?,
                sequence: reader.varint()?,
                packets: reader.varint()?,
                delay_us: reader.varint()?,
                reordering: reader.u8()?,
            },
            0x07 => Self::ImmediateAck { path: reader.u8()? },
            0x08 => Self::PathChallenge(*reader.array()?),
            0x09 => Self::PathResponse(*reader.array()?),
            0x0a => Self::PathStatus {
                path: reader.u8()?,
                sequence: reader.varint()?,
                status: match reader.u8()? {
                    0 => PathStatus::Use,
                    1 => PathStatus::Spare,
                    2 => PathStatus::Silent,
                    _ => return Err(Malformed),
                },
            },
            0x0b => parse_address(reader)?,
            0x0c => Self::RemovePath { path: reader.u8()?, code: reader.varint()? },
            0x10..=0x13 => parse_stream(kind, reader)?,
            0x14 | 0x15 => parse_parcel(kind, reader)?,
            0x1b => {
                let (code, len) = (reader.varint()?, reader.varint()?);
                let text = reader.take(len)?;
                if text.len() > TEXT_MAX {
                    return Err(Malformed);
                }
                Self::Close { code, text }
            }
            _ => return Self::parse_limits(kind, reader),
        })
    }

    /// The frames that are varints alone.
    fn parse_limits(kind: u8, reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        Ok(match kind {
            0x0d => Self::MaxData(reader.varint()?),
            0x0e => Self::MaxStreamData { stream: reader.varint()?, bytes: reader.varint()? },
            0x0f => Self::MaxStreams(reader.varint()?),
            0x16 => Self::ParcelGone { parcel: reader.varint()?, total: total(reader)? },
            0x17 => Self::DataBlocked(reader.varint()?),
            0x18 => Self::StreamDataBlocked { stream: reader.varint()?, limit: reader.varint()? },
            0x19 => Self::ResetStream {
                stream: reader.varint()?,
                code: reader.varint()?,
                final_size: reader.varint()?,
            },
            0x1a => Self::StopSending { stream: reader.varint()?, code: reader.varint()? },
            _ => return Err(Malformed),
        })
    }
}

/// Bytes of `data` and the length field before it.
fn with_length(data: &[u8]) -> usize {
    varint::len(data.len() as u64) + data.len()
}

fn put(writer: &mut Writer<'_>, kind: u8, fields: &[u64]) {
    writer.put_u8(kind);
    for &field in fields {
        writer.put_varint(field);
    }
}

fn put_address(writer: &mut Writer<'_>, id: u8, address: SocketAddr) {
    writer.put_bytes(&[0x0b, id, if address.is_ipv4() { 4 } else { 6 }]);
    match address.ip() {
        IpAddr::V4(ip) => writer.put_bytes(&ip.octets()),
        IpAddr::V6(ip) => writer.put_bytes(&ip.octets()),
    }
    writer.put_u16(address.port());
}

fn skip_zeros(reader: &mut Reader<'_>) -> usize {
    let rest = reader.rest();
    let zeros = rest.iter().position(|&byte| byte != 0).unwrap_or(rest.len());
    *reader = Reader::new(&rest[zeros..]);
    zeros
}

fn parse_address<'a>(reader: &mut Reader<'_>) -> Result<Frame<'a>, Malformed> {
    let id = reader.u8()?;
    let ip = match reader.u8()? {
        4 => IpAddr::from(*reader.array::<4>()?),
        6 => IpAddr::from(*reader.array::<16>()?),
        _ => return Err(Malformed),
    };
    Ok(Frame::AddPath { id, address: SocketAddr::new(ip, reader.u16()?) })
}

fn parse_data<'a>(has_length: bool, reader: &mut Reader<'a>) -> Result<&'a [u8], Malformed> {
    if has_length {
        let len = reader.varint()?;
        reader.take(len)
    } else {
        Ok(reader.rest())
    }
}

fn parse_stream<'a>(kind: u8, reader: &mut Reader<'a>) -> Result<Frame<'a>, Malformed> {
    let (stream, offset) = (reader.varint()?, reader.varint()?);
    let data = parse_data(kind & 2 != 0, reader)?;
    // A stream has no byte beyond the largest varint (RFC 9000 section 19.8).
    if offset + data.len() as u64 > varint::MAX {
        return Err(Malformed);
    }
    Ok(Frame::Stream { stream, offset, fin: kind & 1 != 0, data })
}

/// The size of a parcel, at most 2^24 bytes.
fn total(reader: &mut Reader<'_>) -> Result<u32, Malformed> {
    let total = reader.varint()?;
    if total <= PARCEL_MAX { Ok(total as u32) } else { Err(Malformed) }
}

fn parse_parcel<'a>(kind: u8, reader: &mut Reader<'a>) -> Result<Frame<'a>, Malformed> {
    let parcel = reader.varint()?;
    let how = reader.u8()?;
    let total = total(reader)?;
    let offset = reader.varint()?;
    let how = match how {
        0 => Kind::Reliable,
        1 => Kind::OneShot,
        2 => Kind::Expiring { life_ms: reader.varint()? },
        _ => return Err(Malformed),
    };
    let data = parse_data(kind & 1 != 0, reader)?;
    let inside = offset + data.len() as u64 <= u64::from(total) && !data.is_empty();
    let lives = !matches!(how, Kind::Expiring { life_ms } if life_ms > LIFE_MAX_MS);
    if inside && lives {
        Ok(Frame::Parcel { parcel, kind: how, total, offset: offset as u32, data })
    } else {
        Err(Malformed)
    }
}

/// The frames of one packet. After the first error there are no more.
///
/// ```
/// use acklab_rudp::wire::{Frame, Frames, Writer};
///
/// let mut room = [0; 64];
/// let mut writer = Writer::new(&mut room);
/// let frames = [Frame::MaxData(70_000), Frame::Close { code: 1, text: b"bye" }];
/// for frame in &frames {
///     frame.emit(&mut writer);
/// }
/// let read: Vec<Frame> = Frames::new(writer.written()).map(|frame| frame.expect("whole")).collect();
/// assert_eq!(read, frames);
/// assert!(Frames::new(&[0xff]).next().expect("a frame").is_err());
/// ```
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    reader: Reader<'a>,
}

impl<'a> Frames<'a> {
    /// The frames of a packet whose protection is undone.
    pub fn new(payload: &'a [u8]) -> Self {
        Self { reader: Reader::new(payload) }
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let frame = Frame::parse(&mut self.reader);
        if frame.is_err() {
            self.reader = Reader::new(&[]);
        }
        Some(frame)
    }
}
