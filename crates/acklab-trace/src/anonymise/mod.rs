//! A capture that can be handed on: TCP over mapped addresses, without payload and without names.
//!
//! The capture that is written begins each packet at IP and has no options, so that MAC addresses, VLANs, comments, names
//! of interfaces and hosts, and what pads a frame are not in it. What is not TCP, and what cannot be dissected, is left out
//! and counted. `packet` writes a packet, `addresses` maps addresses; of a payload whose messages are framed, types and
//! lengths are left, of lines of text where they end (`noted::framing`).
//!
//! Times stay what they are. Whoever knows the traffic can still recognise it by its pattern of sizes and times.

mod addresses;
mod key;
mod packet;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;

use crate::capture::{
    CaptureError, CaptureReader, CaptureWriter, Damage, Format, Frame, LinkType, WriterOptions,
};
use crate::diagnose::{Options, diagnose};
use crate::frame::{Skip, headers};
use crate::judged::Diagnosis;
use crate::noted::{BareHeaders, LINES, bare_lines, opening};
use crate::segment::Endpoint;

pub use key::Key;

use addresses::Addresses;
use packet::Ends;

/// What became of the frames of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Account {
    /// Frames of the capture.
    pub frames: u64,
    /// Written.
    pub kept: u64,
    /// Left out: no TCP.
    pub not_tcp: u64,
    /// Left out: fragments after the first.
    pub fragments: u64,
    /// Left out: cut within the headers, contradicting itself, or of a link type that is not understood.
    pub unreadable: u64,
    /// Where and why reading had to stop before the end.
    pub damage: Option<Damage>,
}

/// Why a capture could not be anonymised.
#[derive(Debug, thiserror::Error)]
pub enum AnonymiseError {
    /// The capture cannot be read.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The new one cannot be written.
    #[error("{0}")]
    Write(#[from] io::Error),
}

/// Writes the capture at `source`, which is read twice, as pcapng to what `sink` opens; it is opened once `source` was
/// read, so that a capture that cannot be read costs nothing.
pub fn anonymise<W: Write>(
    source: &Path,
    sink: impl FnOnce() -> io::Result<W>,
    key: Key,
) -> Result<Account, AnonymiseError> {
    let framed = framed(&diagnose(source, &Options::default(), |_| ())?);
    let options =
        WriterOptions { format: Format::Pcapng, link: LinkType::RAW, ..WriterOptions::default() };
    let mut writer = CaptureWriter::new(sink()?, options)?;
    let mut anonymiser = Anonymiser { addresses: Addresses::new(key.clone()), key, framed };
    let mut reader = CaptureReader::open(source)?;
    let mut account = Account::default();
    while let Some(frame) = reader.next_frame()? {
        account.frames += 1;
        match anonymiser.packet(&frame) {
            Ok((bytes, len)) => {
                writer.write_frame(frame.time, &bytes, len)?;
                account.kept += 1;
            }
            Err(Skip::NotIp | Skip::NotTcp) => account.not_tcp += 1,
            Err(Skip::Fragment) => account.fragments += 1,
            Err(Skip::LinkType | Skip::Snapped | Skip::Malformed) => account.unreadable += 1,
        }
    }
    writer.finish()?;
    account.damage = reader.damage().cloned();
    Ok(account)
}

struct Anonymiser {
    key: Key,
    addresses: Addresses,
    framed: BTreeMap<Ends, Bare>,
}

/// What may be kept of the payload of a direction whose messages are known.
enum Bare {
    Headers(BareHeaders),
    Lines,
}

impl Anonymiser {
    /// The packet in a frame as it is written, and its length on the wire.
    fn packet(&mut self, frame: &Frame<'_>) -> Result<(Vec<u8>, u32), Skip> {
        let headers = headers(frame)?;
        let segment = &headers.segment;
        let ends = [segment.src, segment.dst];
        let payload = match self.framed.get_mut(&ends) {
            Some(Bare::Lines) => bare_lines(segment.payload),
            Some(Bare::Headers(bare)) if segment.payload_len > 0 => {
                bare.strip(segment.seq, segment.payload_len, segment.payload)
            }
            _ => opening::bare(segment.payload_len, segment.payload),
        };
        let bytes = packet::written(&self.key, &mut self.addresses, &headers, ends, &payload);
        Ok((bytes, headers.wire_len))
    }
}

/// The directions whose messages are framed by a known protocol.
fn framed(diagnosis: &Diagnosis) -> BTreeMap<Ends, Bare> {
    let end = |text: &str| -> Option<Endpoint> {
        let address: SocketAddr = text.parse().ok()?;
        Some(Endpoint { addr: address.ip(), port: address.port() })
    };
    let directions = diagnosis.flows.iter().flat_map(|flow| &flow.directions);
    let framed = directions.filter_map(|direction| {
        let protocol = direction.writes.protocol?;
        let headers = || BareHeaders::new(protocol).map(Bare::Headers);
        let bare = if protocol == LINES { Some(Bare::Lines) } else { headers() }?;
        Some(([end(&direction.from)?, end(&direction.to)?], bare))
    });
    framed.collect()
}
