//! Which streams there are and may be, by their ids.

use crate::Code;
use crate::flow::StreamIds;

/// The ids of both ends.
#[derive(Debug)]
pub(super) struct Ids {
    own: StreamIds,
    peer: StreamIds,
    /// Streams of the peer that are over.
    peer_closed: u64,
    /// How many the peer may have open at once.
    most: u64,
}

impl Ids {
    pub(super) fn new(client: bool, most: u64) -> Self {
        let (own, peer) = (StreamIds::new(client, 0), StreamIds::new(!client, most));
        Self { own, peer, peer_closed: 0, most }
    }

    /// The peer allows so many of ours.
    pub(super) fn allow(&mut self, streams: u64) {
        self.own.on_max_streams(streams);
    }

    /// The id of a new stream of ours, if one is allowed.
    pub(super) fn open(&mut self, both_ways: bool) -> Option<u64> {
        self.own.open(both_ways)
    }

    /// The streams that the peer opens by naming `stream`; none where that is known, or ours.
    pub(super) fn open_for_peer(
        &mut self,
        stream: u64,
    ) -> Result<impl Iterator<Item = u64> + use<>, Code> {
        let known = if self.own.owns(stream) {
            // A stream of ours that we never opened.
            self.own.is_opened(stream).then_some(true).ok_or(Code::Protocol)?
        } else {
            self.peer.is_opened(stream)
        };
        let opened = if known { None } else { Some(self.peer.open_up_to(stream)?) };
        Ok(opened.into_iter().flatten())
    }

    /// Only we send on `stream`.
    pub(super) fn is_ours_alone(&self, stream: u64) -> bool {
        self.own.owns(stream) && is_one_way(stream)
    }

    /// Only the peer sends on `stream`.
    pub(super) fn is_theirs_alone(&self, stream: u64) -> bool {
        self.peer.owns(stream) && is_one_way(stream)
    }

    /// `stream` is over; whether the peer is to be told of a new limit.
    pub(super) fn on_closed(&mut self, stream: u64) -> bool {
        if !self.peer.owns(stream) {
            return false;
        }
        self.peer_closed += 1;
        let target = self.most + self.peer_closed;
        let grants = (target - self.peer.limit()) * 4 >= self.most;
        if grants {
            self.peer.on_max_streams(target);
        }
        grants
    }

    /// How many streams the peer may open: the value of MAX_STREAMS.
    pub(super) fn limit(&self) -> u64 {
        self.peer.limit()
    }
}

/// Whether content goes one way only on a stream of that id.
pub(super) const fn is_one_way(stream: u64) -> bool {
    stream >> 1 & 1 == 1
}
