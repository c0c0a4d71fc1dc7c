//! What arrives: the receiving sides of streams, the peer's parcels, and their credit.

use std::collections::BTreeMap;

use super::notes::Notes;
use crate::Code;
use crate::flow::ReceiveCredit;
use crate::piece::{ContentEvent, ControlFrame, Refused};
use crate::receive_parcels::{Fragment, ReceiveParcels};
use crate::receive_stream::{Block, ReceiveStream};
use crate::wire::Parameters;
use acklab_core::time::{Span, Time};

/// The receiving side of one stream.
#[derive(Debug)]
struct Incoming {
    receive: ReceiveStream,
    /// The application knows that there is something to read.
    told_readable: bool,
    /// The code with which the application stopped the peer.
    stopped: Option<u64>,
}

/// Everything that the peer sends.
#[derive(Debug)]
pub(super) struct Receiving {
    local: Parameters,
    streams: BTreeMap<u64, Incoming>,
    parcels: ReceiveParcels,
    /// What the peer may send.
    credit: ReceiveCredit,
    srtt: Span,
    pto: Span,
}

impl Receiving {
    pub(super) fn new(local: &Parameters) -> Self {
        Self {
            local: local.clone(),
            streams: BTreeMap::new(),
            parcels: ReceiveParcels::default(),
            credit: ReceiveCredit::new(local.max_data),
            srtt: Span::from_millis(100),
            pto: Span::from_millis(300),
        }
    }

    pub(super) const fn on_rtt(&mut self, srtt: Span, pto: Span) {
        (self.srtt, self.pto) = (srtt, pto);
    }

    /// The receiving side of a new stream.
    pub(super) fn open(&mut self, now: Time, stream: u64) {
        let receive = ReceiveStream::new(now, self.local.max_stream_data);
        self.streams.insert(stream, Incoming { receive, told_readable: false, stopped: None });
    }

    pub(super) fn has(&self, stream: u64) -> bool {
        self.streams.contains_key(&stream)
    }

    pub(super) fn stream(&self, stream: u64) -> Option<&ReceiveStream> {
        self.streams.get(&stream).map(|known| &known.receive)
    }

    /// The code with which the peer is to stop `stream`, if that is still of use.
    pub(super) fn stop_code(&self, stream: u64) -> Option<u64> {
        self.streams.get(&stream).filter(|known| !known.receive.is_over())?.stopped
    }

    /// Whether that side of `stream` is over, or was never there.
    pub(super) fn is_over(&self, stream: u64) -> bool {
        self.stream(stream).is_none_or(ReceiveStream::is_over)
    }

    /// Forgets `stream`; whether it was there.
    pub(super) fn forget(&mut self, stream: u64) -> bool {
        self.streams.remove(&stream).is_some()
    }

    /// Bytes granted so far: the value of MAX_DATA.
    pub(super) fn granted(&self) -> u64 {
        self.credit.granted()
    }

    /// Bytes that the peer may still begin.
    pub(super) fn window(&self) -> u64 {
        self.credit.left()
    }

    /// Grants more of the connection's credit when half of it is consumed.
    pub(super) fn grant(&mut self, notes: &mut Notes) {
        if self.credit.wants_grant() {
            self.credit.grant();
            notes.want(ControlFrame::MaxData);
        }
    }

    pub(super) fn read(&mut self, now: Time, stream: u64, notes: &mut Notes) -> Option<Block> {
        let known = self.streams.get_mut(&stream)?;
        let Some(block) = known.receive.read() else {
            known.told_readable = false;
            return None;
        };
        self.credit.consume(block.len() as u64);
        if known.receive.wants_grant() {
            known.receive.grant(now, self.srtt);
            notes.want(ControlFrame::MaxStreamData(stream));
        }
        Some(block)
    }

    /// Drops what the peer sends on `stream`; whether it did not before.
    pub(super) fn stop(&mut self, stream: u64, code: u64, notes: &mut Notes) -> bool {
        let known = self.streams.get_mut(&stream);
        let Some(known) = known.filter(|known| !known.receive.is_discarding()) else {
            return false;
        };
        let before = known.receive.consumed();
        known.receive.discard();
        self.credit.consume(known.receive.consumed() - before);
        known.stopped = Some(code);
        notes.want(ControlFrame::StopSending(stream));
        true
    }

    /// A parcel that has arrived.
    pub(super) fn take_parcel(&mut self) -> Option<(u64, Vec<u8>)> {
        let (id, bytes) = self.parcels.take()?;
        self.credit.consume(bytes.len() as u64);
        Some((id, bytes))
    }

    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.parcels.poll_timeout()
    }

    /// Gives up the parcels whose time is over.
    pub(super) fn handle_timeout(&mut self, now: Time, notes: &mut Notes) {
        let credit = &mut self.credit;
        self.parcels.expire(now, |parcel, total| {
            credit.consume(total.into());
            notes.tell(ContentEvent::ParcelGone { parcel, ours: false });
        });
        self.grant(notes);
    }

    /// Bytes that are held, of streams and parcels.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        let streams = self.streams.values().map(|known| known.receive.held());
        streams.sum::<usize>() + self.parcels.held()
    }

    #[cfg(test)]
    pub(super) fn ids(&self) -> impl Iterator<Item = u64> + '_ {
        self.streams.keys().copied()
    }
}

/// Frames.
impl Receiving {
    /// STREAM; whether more is to be granted, and the stream perhaps to be forgotten.
    pub(super) fn on_stream(
        &mut self,
        stream: u64,
        offset: u64,
        data: &[u8],
        fin: bool,
        notes: &mut Notes,
    ) -> Result<bool, Refused> {
        let Some(known) = self.streams.get_mut(&stream) else { return Ok(false) };
        let before = known.receive.consumed();
        let advance = known.receive.advance_of(offset, data.len() as u64, fin)?;
        let mut credit = self.credit;
        credit.take(advance)?;
        let readable = known.receive.insert(offset, data, fin)?;
        // Only what is discarded is consumed by arriving.
        let dropped = known.receive.consumed() - before;
        credit.consume(dropped);
        self.credit = credit;
        if readable && !known.told_readable {
            known.told_readable = true;
            notes.tell(ContentEvent::Readable { stream });
        }
        Ok(dropped > 0 || fin)
    }

    /// RESET_STREAM.
    pub(super) fn on_reset(
        &mut self,
        stream: u64,
        code: u64,
        size: u64,
        notes: &mut Notes,
    ) -> Result<(), Code> {
        let Some(known) = self.streams.get_mut(&stream) else { return Ok(()) };
        let over = known.receive.is_over();
        let before = known.receive.consumed();
        let advance = known.receive.on_reset(size)?;
        let dropped = known.receive.consumed() - before;
        self.credit.take(advance)?;
        self.credit.consume(dropped);
        if !over && known.stopped.is_none() {
            notes.tell(ContentEvent::StreamReset { stream, code });
        }
        self.grant(notes);
        Ok(())
    }

    /// PARCEL.
    pub(super) fn on_parcel(
        &mut self,
        now: Time,
        fragment: &Fragment<'_>,
        notes: &mut Notes,
    ) -> Result<(), Refused> {
        let total = u64::from(fragment.total);
        let new = self.parcels.is_new(fragment.parcel)?;
        if total > self.local.parcel_max {
            return Err(Refused::Close(Code::FlowControl));
        }
        if new {
            self.credit.take(total)?;
        }
        let parcel = fragment.parcel;
        let outcome = self.parcels.insert(now, fragment, self.pto)?;
        if outcome.complete {
            notes.tell(ContentEvent::Parcel { parcel });
        }
        if let Some((parcel, total)) = outcome.dropped {
            self.credit.consume(total.into());
            notes.tell(ContentEvent::ParcelGone { parcel, ours: false });
            self.grant(notes);
        }
        Ok(())
    }

    /// PARCEL_GONE.
    pub(super) fn on_parcel_gone(
        &mut self,
        parcel: u64,
        total: u32,
        notes: &mut Notes,
    ) -> Result<(), Refused> {
        let never_seen = self.parcels.is_new(parcel)?;
        if never_seen {
            self.credit.take(total.into())?;
        }
        let Some(dropped) = self.parcels.on_gone(parcel) else { return Ok(()) };
        self.credit.consume(if never_seen { total.into() } else { dropped.into() });
        notes.tell(ContentEvent::ParcelGone { parcel, ours: false });
        self.grant(notes);
        Ok(())
    }
}
