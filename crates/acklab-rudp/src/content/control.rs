//! The frames of section 7 that arrive, and those beside content that leave: limits, resets, what is gone.
//! Each of these waits at most once and is written with the value of the moment it leaves.

use super::Content;
use super::ids::is_one_way;
use crate::Code;
use crate::piece::{ContentEvent, ControlFrame, Refused};
use crate::receive_parcels::Fragment;
use crate::wire::Frame;
use acklab_core::time::Time;

/// What leaves.
impl Content {
    /// Whether a control frame waits.
    pub fn has_control(&self) -> bool {
        self.notes.first_control().is_some()
    }

    /// The next control frame that fits into `room` bytes: what the packet's record keeps, and the
    /// frame itself.
    pub fn poll_control(&mut self, room: usize) -> Option<(ControlFrame, Frame<'static>)> {
        while let Some(control) = self.notes.first_control() {
            let frame = self.frame_of(control);
            if frame.is_some_and(|frame| frame.len() > room) {
                return None;
            }
            self.notes.drop_control();
            if let Some(frame) = frame {
                return Some((control, frame));
            }
        }
        None
    }

    /// A packet with `control` was acknowledged.
    pub fn on_control_acked(&mut self, control: ControlFrame) {
        match control {
            ControlFrame::ParcelGone(parcel) => self.sending.on_gone_acked(parcel, &mut self.notes),
            ControlFrame::ResetStream(stream) => {
                self.sending.streams_mut().on_reset_acked(stream);
                self.close_if_over(stream);
            }
            _ => {}
        }
    }

    /// A packet with `control` was lost: it leaves again if it still says anything.
    pub fn on_control_lost(&mut self, control: ControlFrame) {
        match control {
            ControlFrame::DataBlocked | ControlFrame::StreamDataBlocked(_) => {}
            _ if self.frame_of(control).is_some() => self.notes.want(control),
            _ => {}
        }
    }

    /// The frame with the value of the moment; `None` when it has nothing to say any more.
    fn frame_of(&self, control: ControlFrame) -> Option<Frame<'static>> {
        Some(match control {
            ControlFrame::MaxData => Frame::MaxData(self.receiving.granted()),
            ControlFrame::MaxStreams => Frame::MaxStreams(self.ids.limit()),
            ControlFrame::DataBlocked => Frame::DataBlocked(self.sending.limit()),
            ControlFrame::MaxStreamData(stream) => {
                let bytes = self.receiving.stream(stream)?.granted();
                Frame::MaxStreamData { stream, bytes }
            }
            ControlFrame::StreamDataBlocked(stream) => {
                let limit = self.sending.stream(stream)?.limit();
                Frame::StreamDataBlocked { stream, limit }
            }
            ControlFrame::ResetStream(stream) => {
                let reset = self.sending.stream(stream)?.reset_state()?;
                Frame::ResetStream { stream, code: reset.code, final_size: reset.final_size }
            }
            ControlFrame::StopSending(stream) => {
                Frame::StopSending { stream, code: self.receiving.stop_code(stream)? }
            }
            ControlFrame::ParcelGone(parcel) => {
                let total = self.sending.parcel(parcel)?.gone_total();
                Frame::ParcelGone { parcel, total }
            }
        })
    }
}

/// What arrives.
impl Content {
    /// Takes a frame of section 7; others are none of its business.
    pub fn handle_frame(&mut self, now: Time, frame: &Frame<'_>) -> Result<(), Refused> {
        match *frame {
            Frame::Stream { stream, offset, fin, data } => {
                if !self.receiving.has(stream) {
                    self.receiving_side(now, stream)?;
                }
                let notes = &mut self.notes;
                if self.receiving.on_stream(stream, offset, data, fin, notes)? {
                    self.receiving.grant(notes);
                    self.close_if_over(stream);
                }
            }
            Frame::Parcel { parcel, kind, total, offset, data } => {
                let fragment = Fragment { parcel, kind, total, offset, data };
                self.receiving.on_parcel(now, &fragment, &mut self.notes)?;
            }
            Frame::ParcelGone { parcel, total } => {
                self.receiving.on_parcel_gone(parcel, total, &mut self.notes)?;
            }
            Frame::MaxData(limit) => self.sending.on_max_data(limit, &mut self.notes),
            Frame::MaxStreamData { stream, bytes } => {
                self.sending_side(now, stream)?;
                self.sending.on_max_stream_data(stream, bytes, &mut self.notes);
            }
            Frame::MaxStreams(streams) => self.ids.allow(streams),
            Frame::ResetStream { stream, code, final_size } => {
                self.receiving_side(now, stream)?;
                self.receiving.on_reset(stream, code, final_size, &mut self.notes)?;
                self.close_if_over(stream);
            }
            Frame::StopSending { stream, code } => {
                self.sending_side(now, stream)?;
                if self.sending.reset(stream, code, &mut self.notes) {
                    self.notes.tell(ContentEvent::StreamStopped { stream, code });
                }
            }
            Frame::StreamDataBlocked { stream, .. } => self.receiving_side(now, stream)?,
            _ => {}
        }
        Ok(())
    }

    /// Opens the peer's streams up to `stream`, which must be one of ours or one that the peer may open.
    fn open_for_peer(&mut self, now: Time, stream: u64) -> Result<(), Code> {
        for id in self.ids.open_for_peer(stream)? {
            if !is_one_way(id) {
                self.sending.open(id);
            }
            self.receiving.open(now, id);
            self.notes.tell(ContentEvent::StreamOpened { stream: id });
        }
        Ok(())
    }

    /// The peer says something of a stream on which it sends, if it may.
    fn receiving_side(&mut self, now: Time, stream: u64) -> Result<(), Code> {
        self.open_for_peer(now, stream)?;
        if self.ids.is_ours_alone(stream) { Err(Code::Protocol) } else { Ok(()) }
    }

    /// The peer says something of a stream on which we send, if it may.
    fn sending_side(&mut self, now: Time, stream: u64) -> Result<(), Code> {
        self.open_for_peer(now, stream)?;
        if self.ids.is_theirs_alone(stream) { Err(Code::Protocol) } else { Ok(()) }
    }
}
