//! Why a capture cannot be read, or not to its end.
//!
//! Two kinds: a [`CaptureError`] means that nothing can be reported; a [`Damage`] that the reading
//! stopped at some frame, and what came before is good. Both name the frame (from 1), the byte
//! offset (in the unpacked stream where the capture is gzipped), and how to mend it.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::LinkType;
use super::record::CAPTURED_MAX;

/// Nothing of the capture can be reported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The file does not open.
    #[error("cannot open {}: {source}", path.display())]
    Open {
        /// The path as given.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The first bytes cannot be read.
    #[error("cannot read the capture: {0}")]
    Read(#[source] io::Error),
    /// Nothing in it.
    #[error(
        "the file is empty (0 bytes): was the capture stopped before its buffer was written? record again with `tcpdump -U -w FILE`"
    )]
    Empty,
    /// It is something else.
    #[error("not a capture: it looks like {looks_like}; {mend}")]
    NotACapture {
        /// A guess from the first bytes.
        looks_like: String,
        /// What to do about it.
        mend: &'static str,
    },
    /// It is damaged before its first frame.
    #[error("{0}")]
    Damaged(#[source] Damage),
    /// Every frame has a link layer that is not understood.
    #[error(
        "every frame ({frames} in all) has link type {link}, which is not understood; record on an Ethernet, loopback or `any` interface, or convert with `editcap -T ether` if the frames are Ethernet after all"
    )]
    UnsupportedLink {
        /// The first such link type.
        link: LinkType,
        /// How many frames there are.
        frames: u64,
    },
}

/// Where and how the reading had to stop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("frame {frame} at byte {offset}: {kind}")]
pub struct Damage {
    /// The frame that could not be read, from 1.
    pub frame: u64,
    /// Offset of its record (or block) in the unpacked capture, bytes.
    pub offset: u64,
    /// What is wrong.
    pub kind: DamageKind,
}

/// What is wrong with a record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DamageKind {
    /// The file ends within the record.
    Cut {
        /// Bytes the record needs.
        needed: u64,
        /// Bytes left.
        left: u64,
    },
    /// A length beyond any snap length.
    TooLong {
        /// The length as it stands.
        length: u64,
    },
    /// A pcapng block whose parts contradict each other.
    Block(&'static str),
    /// The gzip stream breaks off or fails its checksum.
    Unpack(String),
    /// The system failed to read on.
    Read(String),
}

impl fmt::Display for DamageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut { needed, left } => write!(
                f,
                "the file ends within the record ({left} of {needed} bytes): the recording was \
                 interrupted or the copy is incomplete; the frames before it are good"
            ),
            Self::TooLong { length } => write!(
                f,
                "the record claims {length} bytes, more than any snap length ({CAPTURED_MAX}): the file is \
                 damaged from here on; copy it again in binary mode, or save the part before with \
                 `editcap -r FILE OUT 1-N`"
            ),
            Self::Block(what) => write!(
                f,
                "{what}: the file is damaged from here on; copy it again, or save the part before \
                 with `editcap -r FILE OUT 1-N`"
            ),
            Self::Unpack(why) => {
                write!(f, "the gzip stream is damaged ({why}): the copy is incomplete")
            }
            Self::Read(why) => write!(f, "reading failed: {why}"),
        }
    }
}

/// What a file that is no capture looks like, and how to mend it.
pub(super) fn not_a_capture(head: &[u8], unpacked: bool) -> CaptureError {
    const RECORD: &str = "record with `tcpdump -w FILE` or Wireshark and give that file";
    const CONVERT: &str = "convert it with `editcap -F pcapng FILE OUT`";
    const KNOWN: &[(&[u8], &str, &str)] = &[
        (b"\x7fELF", "a program (ELF)", RECORD),
        (b"snoop\0\0\0", "a Solaris snoop capture", CONVERT),
        (&[0xa1, 0xb2, 0xcd, 0x34], "a modified pcap (Kuznetzov's)", CONVERT),
        (&[0x34, 0xcd, 0xb2, 0xa1], "a modified pcap (Kuznetzov's)", CONVERT),
        (&[0x54, 0x52, 0x00], "a NetXRay or Sniffer capture", CONVERT),
        (b"GMBU", "a Microsoft Network Monitor capture", CONVERT),
        (b"RTSS", "a Microsoft Network Monitor capture", CONVERT),
        (b"PK\x03\x04", "a zip archive", "unpack it first"),
        (&[0xfd, b'7', b'z', b'X', b'Z'], "an xz archive", "unpack it first: `xz -d FILE`"),
        (&[0x28, 0xb5, 0x2f, 0xfd], "a zstd archive", "unpack it first: `zstd -d FILE`"),
        (b"BZh", "a bzip2 archive", "unpack it first: `bunzip2 FILE`"),
        (&[0x1f, 0x8b], "gzip within gzip", "unpack it once: `gunzip FILE`"),
        (b"%PDF", "a PDF document", RECORD),
        (b"\x89PNG", "a PNG picture", RECORD),
    ];
    let (what, mend) = KNOWN
        .iter()
        .find(|(magic, ..)| head.starts_with(magic))
        .map_or_else(|| guess(head), |&(_, what, mend)| (what.to_owned(), mend));
    let looks_like = if unpacked { format!("gzip of {what}") } else { what };
    CaptureError::NotACapture { looks_like, mend }
}

fn guess(head: &[u8]) -> (String, &'static str) {
    if let Some(text) = text(head) {
        let line: String = text.lines().next().unwrap_or("").chars().take(40).collect();
        return (
            format!("text, beginning with {line:?}"),
            "give the binary capture (`tcpdump -w FILE`), not the printed packets",
        );
    }
    if is_erf(head) {
        return (
            "an Endace ERF capture".to_owned(),
            "convert it with `editcap -F pcapng FILE OUT`",
        );
    }
    let bytes: Vec<String> = head.iter().take(8).map(|b| format!("{b:02x}")).collect();
    (
        format!("unknown binary data, beginning with {}", bytes.join(" ")),
        "acklab reads pcap and pcapng, plain or gzipped; convert others with `editcap -F pcapng FILE OUT`",
    )
}

/// The bytes as text, where they are UTF-8 (but for a character cut at the end) without control
/// characters.
fn text(head: &[u8]) -> Option<&str> {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(e) if e.error_len().is_none() => std::str::from_utf8(&head[..e.valid_up_to()]).ok()?,
        Err(_) => return None,
    };
    let readable = |c: char| !c.is_control() || matches!(c, '\t' | '\r' | '\n');
    (!text.is_empty() && text.chars().all(readable)).then_some(text)
}

/// ERF has no magic: a record begins with a time, a type (below 48), flags and its length, which
/// covers the 16 bytes of the record header.
fn is_erf(head: &[u8]) -> bool {
    head.len() >= 16 && {
        let kind = head[8] & 0x7f;
        let length = u16::from_be_bytes([head[10], head[11]]);
        (1..48).contains(&kind) && (16..=9_700).contains(&length) && head[6] | head[7] != 0
    }
}
