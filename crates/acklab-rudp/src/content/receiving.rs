//! What arrives: the frames of section 7.

use super::{Content, Stream};
use crate::Code;
use crate::piece::{ContentEvent, ControlFrame, Refused};
use crate::receive_parcels::Fragment;
use crate::receive_stream::ReceiveStream;
use crate::send_stream::SendStream;
use crate::wire::Frame;
use acklab_core::time::Time;

impl Content {
    /// Takes a frame of section 7; others are none of its business.
    pub fn handle_frame(&mut self, now: Time, frame: &Frame<'_>) -> Result<(), Refused> {
        match *frame {
            Frame::Stream { stream, offset, fin, data } => {
                self.handle_stream(now, stream, offset, fin, data)?;
            }
            Frame::Parcel { parcel, kind, total, offset, data } => {
                self.handle_parcel(now, &Fragment { parcel, kind, total, offset, data })?;
            }
            Frame::ParcelGone { parcel, total } => self.handle_parcel_gone(parcel, total)?,
            Frame::MaxData(limit) => {
                let more = self.send_credit.on_max_data(limit);
                if more {
                    self.unblock();
                }
            }
            Frame::MaxStreamData { stream, bytes } => {
                self.sending_side(now, stream)?;
                if self.with_send(stream, |send| send.on_max_data(bytes)) == Some(true) {
                    self.enqueue(stream);
                }
            }
            Frame::MaxStreams(streams) => {
                self.own_ids.on_max_streams(streams);
            }
            Frame::ResetStream { stream, code, final_size } => {
                self.handle_reset(now, stream, code, final_size)?;
            }
            Frame::StopSending { stream, code } => self.handle_stop(now, stream, code)?,
            Frame::StreamDataBlocked { stream, .. } => {
                self.receiving_side(now, stream)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Opens the peer's streams up to `stream`; whether it is one of ours or the peer's that can be.
    fn open_for_peer(&mut self, now: Time, stream: u64) -> Result<(), Code> {
        if self.own_ids.owns(stream) {
            // A stream of ours that we never opened.
            return if self.own_ids.is_opened(stream) { Ok(()) } else { Err(Code::Protocol) };
        }
        if self.peer_ids.is_opened(stream) {
            return Ok(());
        }
        let limit = self.peer.as_ref().map_or(0, |peer| peer.max_stream_data);
        let one_way = stream >> 1 & 1 == 1;
        for id in self.peer_ids.open_up_to(stream)? {
            let send = (!one_way).then(|| SendStream::new(limit));
            let receive = ReceiveStream::new(now, self.local.max_stream_data);
            self.streams.insert(id, Stream::new(send, Some(receive)));
            self.events.push_back(ContentEvent::StreamOpened { stream: id });
        }
        Ok(())
    }

    /// The stream on which the peer sends; `None` if it is over.
    fn receiving_side(&mut self, now: Time, stream: u64) -> Result<Option<&mut Stream>, Code> {
        self.open_for_peer(now, stream)?;
        if self.own_ids.owns(stream) && stream >> 1 & 1 == 1 {
            return Err(Code::Protocol);
        }
        Ok(self.streams.get_mut(&stream))
    }

    /// The stream on which we send; `None` if it is over.
    fn sending_side(&mut self, now: Time, stream: u64) -> Result<Option<&mut Stream>, Code> {
        self.open_for_peer(now, stream)?;
        if self.peer_ids.owns(stream) && stream >> 1 & 1 == 1 {
            return Err(Code::Protocol);
        }
        Ok(self.streams.get_mut(&stream))
    }

    fn handle_stream(
        &mut self,
        now: Time,
        id: u64,
        offset: u64,
        fin: bool,
        data: &[u8],
    ) -> Result<(), Refused> {
        if !self.streams.contains_key(&id) {
            self.receiving_side(now, id)?;
        }
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        let Some(receive) = stream.receive.as_mut() else {
            return Err(Refused::Close(Code::Protocol));
        };
        let before = receive.consumed();
        let advance = receive.advance_of(offset, data.len() as u64, fin)?;
        let mut credit = self.receive_credit;
        credit.take(advance)?;
        let readable = receive.insert(offset, data, fin)?;
        // Only what is discarded is consumed by arriving.
        let dropped = receive.consumed() - before;
        credit.consume(dropped);
        self.receive_credit = credit;
        if readable && !stream.told_readable {
            stream.told_readable = true;
            self.events.push_back(ContentEvent::Readable { stream: id });
        }
        if dropped > 0 || fin {
            self.want_max_data();
            self.close_if_over(id);
        }
        Ok(())
    }

    fn handle_reset(&mut self, now: Time, id: u64, code: u64, size: u64) -> Result<(), Refused> {
        self.receiving_side(now, id)?;
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        let Some(receive) = stream.receive.as_mut() else { return Ok(()) };
        let known = receive.is_over();
        let before = receive.consumed();
        let advance = receive.on_reset(size)?;
        let dropped = receive.consumed() - before;
        self.receive_credit.take(advance)?;
        self.receive_credit.consume(dropped);
        if !known && stream.stopped.is_none() {
            self.events.push_back(ContentEvent::StreamReset { stream: id, code });
        }
        self.want_max_data();
        self.close_if_over(id);
        Ok(())
    }

    fn handle_stop(&mut self, now: Time, stream: u64, code: u64) -> Result<(), Refused> {
        self.sending_side(now, stream)?;
        if self.with_send(stream, |send| send.reset(code)).flatten().is_some() {
            self.want(ControlFrame::ResetStream(stream));
            self.events.push_back(ContentEvent::StreamStopped { stream, code });
        }
        Ok(())
    }

    fn handle_parcel(&mut self, now: Time, fragment: &Fragment<'_>) -> Result<(), Refused> {
        let total = u64::from(fragment.total);
        let new = self.receive_parcels.is_new(fragment.parcel)?;
        if total > self.local.parcel_max {
            return Err(Refused::Close(Code::FlowControl));
        }
        if new {
            self.receive_credit.take(total)?;
        }
        let parcel = fragment.parcel;
        let outcome = self.receive_parcels.insert(now, fragment, self.pto)?;
        if outcome.complete {
            self.events.push_back(ContentEvent::Parcel { parcel });
        }
        if let Some((parcel, total)) = outcome.dropped {
            self.receive_credit.consume(total.into());
            self.events.push_back(ContentEvent::ParcelGone { parcel, ours: false });
            self.want_max_data();
        }
        Ok(())
    }

    fn handle_parcel_gone(&mut self, parcel: u64, total: u32) -> Result<(), Refused> {
        let never_seen = self.receive_parcels.is_new(parcel)?;
        if never_seen {
            self.receive_credit.take(total.into())?;
        }
        let Some(dropped) = self.receive_parcels.on_gone(parcel) else { return Ok(()) };
        self.receive_credit.consume(if never_seen { total.into() } else { dropped.into() });
        self.events.push_back(ContentEvent::ParcelGone { parcel, ours: false });
        self.want_max_data();
        Ok(())
    }
}
