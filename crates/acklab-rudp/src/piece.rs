//! The names of what a packet carries, small enough for the record of every packet in flight:
//! [`Piece`] for content, [`ControlFrame`] for the frames that stand beside it. They name bytes and
//! values and hold none, so what is sent again has the value of the moment.

/// Some bytes of a stream or parcel in one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A STREAM frame.
    Stream {
        /// Stream id.
        stream: u64,
        /// Offset of the first byte.
        offset: u64,
        /// Bytes.
        len: u32,
        /// It says where the stream ends.
        fin: bool,
    },
    /// A PARCEL frame.
    Parcel {
        /// Parcel id.
        parcel: u64,
        /// Offset of the first byte.
        offset: u32,
        /// Bytes.
        len: u32,
    },
}

impl Piece {
    /// Bytes of content.
    pub fn len(&self) -> u32 {
        match *self {
            Self::Stream { len, .. } | Self::Parcel { len, .. } => len,
        }
    }

    /// Whether it carries no byte: the end of a stream alone.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A frame of section 7 that carries no content; its values are those of the moment it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlFrame {
    /// MAX_DATA.
    MaxData,
    /// MAX_STREAMS.
    MaxStreams,
    /// MAX_STREAM_DATA of that stream.
    MaxStreamData(u64),
    /// DATA_BLOCKED.
    DataBlocked,
    /// STREAM_DATA_BLOCKED of that stream.
    StreamDataBlocked(u64),
    /// RESET_STREAM of that stream.
    ResetStream(u64),
    /// STOP_SENDING of that stream.
    StopSending(u64),
    /// PARCEL_GONE of that parcel.
    ParcelGone(u64),
}

/// What streams and parcels have to tell the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentEvent {
    /// `read` of the stream has something: bytes or its end.
    Readable {
        /// Stream id.
        stream: u64,
    },
    /// The stream has room again after it had none.
    Writable {
        /// Stream id.
        stream: u64,
    },
    /// All of a finished stream was acknowledged.
    StreamDelivered {
        /// Stream id.
        stream: u64,
    },
    /// The peer opened it.
    StreamOpened {
        /// Stream id.
        stream: u64,
    },
    /// The peer gave up sending it; what was not read is dropped.
    StreamReset {
        /// Stream id.
        stream: u64,
        /// The application's code.
        code: u64,
    },
    /// The peer does not want it; our sending side was reset with the same code.
    StreamStopped {
        /// Stream id.
        stream: u64,
        /// The application's code.
        code: u64,
    },
    /// A parcel arrived and waits to be taken.
    Parcel {
        /// Parcel id of the peer.
        parcel: u64,
    },
    /// All of a parcel of ours was acknowledged.
    ParcelDelivered {
        /// Our parcel id.
        parcel: u64,
    },
    /// A parcel will not arrive.
    ParcelGone {
        /// Parcel id.
        parcel: u64,
        /// We sent it; else the peer did, and some of it had arrived or it had said so.
        ours: bool,
    },
}

/// Why the frame of a packet was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The peer broke a rule: the connection ends with the code.
    Close(super::Code),
    /// It would take more memory than a stream or parcel may: the packet counts as lost and is not
    /// acknowledged.
    Lost,
}

impl From<super::Code> for Refused {
    fn from(code: super::Code) -> Self {
        Self::Close(code)
    }
}
