//! The sending half: outgoing parcel queue, fragmentation, packets in the network, and the queue in which
//! fragmented parcels wait for their acknowledgments (thesis, section 5, figure 5.6).
//!
//! How many parcels may be unfinished before the next is fragmented, and when a parcel is finished, is
//! not told; see `parcels_ahead` and `exchange` in [`super::super::parameters`].

use std::collections::{BTreeMap, VecDeque};

use acklab_core::time::{Span, Time};

use super::packet::{Fragment, Kind, Parcel};
use super::retransmission::{self, Timeout};
use super::window::{self, Window};

/// How a server sends.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    /// Bytes of a parcel per packet.
    pub packet: u32,
    /// Parcels that may be unfinished before the next is fragmented.
    pub parcels_ahead: u64,
    /// Commands about a finished parcel that pass to and fro, the first from the receiver.
    pub exchange: u32,
    pub window: window::Rules,
    /// The time-out.
    pub timeout: retransmission::Rules,
    /// A parcel that is on its way is given up, too, when its time runs out; else only those that wait.
    pub drop_begun: bool,
    /// Round trips of packets sent more than once do not count (Karn and Partridge 1987).
    pub karn: bool,
}

/// A packet of data that was acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acknowledged {
    /// Bytes of its parcel.
    pub(super) bytes: u32,
    /// Since it last left.
    pub(super) rtt: Span,
}

pub(super) struct Outgoing {
    sending: Sending,
    window: Window,
    timeout: Timeout,
    /// Outgoing parcel queue, with the time of handing over.
    parcels: VecDeque<(Time, Parcel)>,
    cutting: Option<Cutting>,
    next_number: u64,
    in_network: BTreeMap<u64, Flight>,
    /// Timed out, to be sent again.
    again: VecDeque<u64>,
    /// Fragmented or being fragmented, and not finished.
    unfinished: BTreeMap<u64, Unfinished>,
    skipped: u64,
}

struct Cutting {
    parcel: Parcel,
    next: u32,
    count: u32,
}

struct Flight {
    fragment: Fragment,
    left: Time,
    due: Time,
    sent: u32,
}

struct Unfinished {
    kind: Kind,
    expires: Time,
    /// Packets not acknowledged.
    missing: u32,
    /// When to stop waiting for the exchange after the last packet.
    exchange_due: Option<Time>,
}

impl Outgoing {
    pub(super) fn new(sending: Sending) -> Self {
        Self {
            sending,
            window: Window::new(sending.window),
            timeout: Timeout::new(sending.timeout),
            parcels: VecDeque::new(),
            cutting: None,
            next_number: 0,
            in_network: BTreeMap::new(),
            again: VecDeque::new(),
            unfinished: BTreeMap::new(),
            skipped: 0,
        }
    }

    /// The application hands over a parcel.
    pub(super) fn offer(&mut self, now: Time, parcel: Parcel) {
        self.parcels.push_back((now, parcel));
    }

    /// Parcels that wait to be fragmented.
    pub(super) fn waiting(&self) -> usize {
        self.parcels.len()
    }

    /// Nothing waits and nothing is unfinished.
    pub(super) fn is_idle(&self) -> bool {
        self.parcels.is_empty() && self.unfinished.is_empty()
    }

    /// Parcels given up so far: their time ran out.
    pub(super) fn skipped(&self) -> u64 {
        self.skipped
    }

    pub(super) fn window(&self) -> f64 {
        self.window.packets()
    }

    pub(super) fn timeout(&self) -> Span {
        self.timeout.span()
    }

    pub(super) fn mean_rtt(&self) -> Option<Span> {
        self.timeout.mean()
    }

    /// The next fragment that may go; it leaves at `left`.
    pub(super) fn next_fragment(&mut self, now: Time, left: Time) -> Option<Fragment> {
        self.expire(now);
        if self.in_network.len() - self.again.len() >= self.window.packets() as usize {
            return None;
        }
        let due = left + self.timeout.span();
        while let Some(number) = self.again.pop_front() {
            if let Some(flight) = self.in_network.get_mut(&number) {
                (flight.left, flight.due, flight.sent) = (left, due, flight.sent + 1);
                return Some(flight.fragment);
            }
        }
        let fragment = self.cut()?;
        self.in_network.insert(fragment.number, Flight { fragment, left, due, sent: 1 });
        Some(fragment)
    }

    /// Takes the next fragment off the parcel in front.
    fn cut(&mut self) -> Option<Fragment> {
        if self.cutting.is_none() {
            if self.unfinished.len() as u64 >= self.sending.parcels_ahead {
                return None;
            }
            let (given, parcel) = self.parcels.pop_front()?;
            let count = parcel.bytes.div_ceil(self.sending.packet).max(1);
            let expires = match parcel.kind {
                Kind::Expiring(life) if self.sending.drop_begun => given + life,
                _ => Time::MAX,
            };
            let unfinished =
                Unfinished { kind: parcel.kind, expires, missing: count, exchange_due: None };
            self.unfinished.insert(parcel.id, unfinished);
            self.cutting = Some(Cutting { parcel, next: 0, count });
        }
        let cutting = self.cutting.as_mut()?;
        let index = cutting.next;
        let offset = index * self.sending.packet;
        let fragment = Fragment {
            number: self.next_number,
            parcel: cutting.parcel.id,
            index,
            count: cutting.count,
            bytes: self.sending.packet.min(cutting.parcel.bytes - offset),
        };
        self.next_number += 1;
        cutting.next += 1;
        if cutting.next == cutting.count {
            self.cutting = None;
        }
        Some(fragment)
    }

    /// The other server has the packet.
    pub(super) fn on_packet_ack(&mut self, now: Time, number: u64) -> Option<Acknowledged> {
        let flight = self.in_network.remove(&number)?;
        self.again.retain(|other| *other != number);
        let rtt = now.since(flight.left);
        if flight.sent == 1 || !self.sending.karn {
            self.timeout.on_round_trip(rtt);
        }
        self.window.on_ack();
        let wait = self.exchange_wait();
        if let Some(parcel) = self.unfinished.get_mut(&flight.fragment.parcel) {
            parcel.missing -= 1;
            if parcel.missing == 0 {
                parcel.exchange_due = Some(now + wait);
            }
        }
        if self.in_network.is_empty() && self.cutting.is_none() {
            self.window.on_idle();
        }
        Some(Acknowledged { bytes: flight.fragment.bytes, rtt })
    }

    /// A command about a parcel came: the step to answer with, if it goes on.
    pub(super) fn on_parcel_command(&mut self, now: Time, id: u64, step: u32) -> Option<u32> {
        if step >= self.sending.exchange {
            self.finish(id);
            return None;
        }
        let wait = self.exchange_wait();
        let parcel = self.unfinished.get_mut(&id)?;
        if let Some(due) = &mut parcel.exchange_due {
            *due = now + wait;
        }
        Some(step + 1)
    }

    /// How long a command about a finished parcel is waited for; they are not sent again.
    fn exchange_wait(&self) -> Span {
        Span::from_nanos(self.timeout.span().as_nanos() * EXCHANGE_TIMEOUTS)
    }

    /// A command about a parcel leaves.
    pub(super) fn on_parcel_command_sent(&mut self, id: u64, step: u32) {
        if step >= self.sending.exchange {
            self.finish(id);
        }
    }

    fn finish(&mut self, id: u64) {
        if self.unfinished.get(&id).is_some_and(|parcel| parcel.missing == 0) {
            self.unfinished.remove(&id);
        }
    }

    /// Acts on packets whose time ran out, parcels that expired, exchanges that got stuck.
    pub(super) fn handle_timeout(&mut self, now: Time) {
        self.expire(now);
        let late: Vec<u64> = self
            .in_network
            .iter()
            .filter(|(_, f)| f.due <= now)
            .map(|(number, _)| *number)
            .collect();
        if !late.is_empty() {
            self.window.on_timeout();
            self.timeout.on_timeout();
        }
        for number in late {
            let Some(flight) = self.in_network.get_mut(&number) else { continue };
            flight.due = Time::MAX;
            let parcel = flight.fragment.parcel;
            match self.unfinished.get(&parcel).map(|parcel| parcel.kind) {
                Some(Kind::OneShot) => self.give_up(parcel),
                _ => self.again.push_back(number),
            }
        }
        self.unfinished.retain(|_, parcel| parcel.exchange_due.is_none_or(|due| due > now));
    }

    /// Drops every parcel whose time ran out.
    fn expire(&mut self, now: Time) {
        let skipped = &mut self.skipped;
        self.parcels.retain(|(given, parcel)| {
            let live = !matches!(parcel.kind, Kind::Expiring(life) if *given + life <= now);
            *skipped += u64::from(!live);
            live
        });
        let expired = |parcel: &&Unfinished| parcel.expires <= now && parcel.missing > 0;
        while let Some((&id, _)) = self.unfinished.iter().find(|(_, parcel)| expired(parcel)) {
            self.give_up(id);
        }
    }

    fn give_up(&mut self, id: u64) {
        self.skipped += 1;
        self.unfinished.remove(&id);
        self.in_network.retain(|_, flight| flight.fragment.parcel != id);
        let in_network = &self.in_network;
        self.again.retain(|number| in_network.contains_key(number));
        if self.cutting.as_ref().is_some_and(|cutting| cutting.parcel.id == id) {
            self.cutting = None;
        }
    }

    /// When [`Self::handle_timeout`] has something to do.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        let packets = self.in_network.values().map(|flight| flight.due);
        let parcels = self.unfinished.values().flat_map(|parcel| {
            let expires = (parcel.missing > 0).then_some(parcel.expires);
            [expires, parcel.exchange_due].into_iter().flatten()
        });
        packets.chain(parcels).min().filter(|due| *due != Time::MAX)
    }
}

/// Time-outs until a lost command about a finished parcel no longer holds up the next; ours.
const EXCHANGE_TIMEOUTS: u64 = 4;
