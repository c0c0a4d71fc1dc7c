//! The frames beside content: limits, resets, what is gone. Each waits at most once and is written
//! with the value of the moment it leaves.

use super::Content;
use crate::piece::ControlFrame;
use crate::wire::Frame;

impl Content {
    /// Whether a control frame waits.
    pub fn has_control(&self) -> bool {
        !self.control.is_empty()
    }

    /// The next control frame that fits into `room` bytes: what the packet's record keeps, and the
    /// frame itself.
    pub fn poll_control(&mut self, room: usize) -> Option<(ControlFrame, Frame<'static>)> {
        while let Some(&control) = self.control.front() {
            let frame = self.frame_of(control);
            if frame.is_some_and(|frame| frame.len() > room) {
                return None;
            }
            self.control.pop_front();
            if let Some(frame) = frame {
                return Some((control, frame));
            }
        }
        None
    }

    /// A packet with `control` was acknowledged.
    pub fn on_control_acked(&mut self, control: ControlFrame) {
        match control {
            ControlFrame::ParcelGone(parcel) => {
                self.send_parcels.on_gone_acked(parcel);
                self.begin_parcels();
            }
            ControlFrame::ResetStream(stream) => {
                if let Some(known) = self.streams.get_mut(&stream) {
                    known.reset_acked = true;
                    self.close_if_over(stream);
                }
            }
            _ => {}
        }
    }

    /// A packet with `control` was lost: it leaves again if it still says anything.
    pub fn on_control_lost(&mut self, control: ControlFrame) {
        match control {
            ControlFrame::DataBlocked | ControlFrame::StreamDataBlocked(_) => {}
            _ if self.frame_of(control).is_some() => self.want(control),
            _ => {}
        }
    }

    /// Queues `control` unless it waits already.
    pub(super) fn want(&mut self, control: ControlFrame) {
        if !self.control.contains(&control) {
            self.control.push_back(control);
        }
    }

    /// Grants more of the connection's credit when half of it is consumed.
    pub(super) fn want_max_data(&mut self) {
        if self.receive_credit.wants_grant() {
            self.receive_credit.grant();
            self.want(ControlFrame::MaxData);
        }
    }

    /// The frame with the value of the moment; `None` when it has nothing to say any more.
    fn frame_of(&self, control: ControlFrame) -> Option<Frame<'static>> {
        Some(match control {
            ControlFrame::MaxData => Frame::MaxData(self.receive_credit.granted()),
            ControlFrame::MaxStreams => Frame::MaxStreams(self.peer_ids.limit()),
            ControlFrame::DataBlocked => Frame::DataBlocked(self.send_credit.limit()),
            ControlFrame::MaxStreamData(stream) => {
                let bytes = self.streams.get(&stream)?.receive.as_ref()?.granted();
                Frame::MaxStreamData { stream, bytes }
            }
            ControlFrame::StreamDataBlocked(stream) => {
                let send = self.streams.get(&stream)?.send.as_ref()?;
                Frame::StreamDataBlocked { stream, limit: send.limit() }
            }
            ControlFrame::ResetStream(stream) => {
                let reset = self.streams.get(&stream)?.send.as_ref()?.reset_state()?;
                Frame::ResetStream { stream, code: reset.code, final_size: reset.final_size }
            }
            ControlFrame::StopSending(stream) => {
                let known = self.streams.get(&stream)?;
                known.receive.as_ref().filter(|receive| !receive.is_over())?;
                Frame::StopSending { stream, code: known.stopped? }
            }
            ControlFrame::ParcelGone(parcel) => {
                let total = self.send_parcels.parcel(parcel)?.gone_total();
                Frame::ParcelGone { parcel, total }
            }
        })
    }
}
