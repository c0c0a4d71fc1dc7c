//! What the data's sender knew when it sent each segment: the packets of the capture, put into the
//! order in which the sender had them.
//!
//! A capture elsewhere than at the sender sees an ACK before the sender does, and the data that it
//! lets go a whole round trip to the sender later. In between, other data passes that left without
//! that ACK. So each ACK is delivered to Nagle's state only shortly before anything it lets go can
//! pass (`Way`): the order of events is then that at the sender, and their times stay those of the
//! capture. How long the way is, is not known while the capture is read; hence the second pass.

mod sender;
mod turns;
mod values;

use std::collections::VecDeque;

use acklab_core::time::{Span, Time};

use self::sender::Sender;
use self::turns::Turns;
pub(super) use self::values::{AckRecord, Arrival, Asked, Damage, Departure, Fill, Marks, Silence};
use crate::noted::event::{AckNote, DataNote, Event, Kind};
use crate::noted::{BURST, LINES, Notes};

/// One direction as its sender had it.
#[derive(Debug, Default)]
pub(super) struct Replay {
    /// New small segments, but for the first.
    pub(super) departures: Vec<Departure>,
    /// Lone full segments that no ACK let go.
    pub(super) fills: Vec<Fill>,
    /// Acknowledgments that came some time after the data.
    pub(super) acks: Vec<AckRecord>,
    /// Pure ACKs of one small segment within 2 ms of it.
    pub(super) prompt_acks: u64,
    /// Segments in order; none of a bulk transfer.
    pub(super) arrivals: Vec<Arrival>,
    /// Silences of the sender of 10 ms and longer.
    pub(super) silences: Vec<Silence>,
    /// Small segments that left with full ones in flight and no small one: Minshall's rule allows
    /// it, so does a write larger than the MSS in newer BSDs.
    pub(super) small_after_full: u64,
    /// After data of the peer that let nothing go, because nothing was unacknowledged: how long until the
    /// sender spoke, ns.
    pub(super) answers: Vec<u64>,
    /// New segments some time after one of the sender's own, with no data of the peer in between.
    pub(super) unasked: u64,
    /// What the capture lacks.
    pub(super) damage: Damage,
    /// Its messages are lines of text, which [`Self::arrivals`] count.
    pub(super) by_lines: bool,
}

impl Replay {
    /// The direction, if an ACK takes `way` from the capture point until what it lets go passes there.
    pub(super) fn of(notes: &Notes<'_>, way: Span) -> Self {
        let mut stage = Stage::new(notes, way);
        for (at, event) in notes.events.iter().enumerate() {
            match event {
                Event::Data(data) => stage.on_data(at, data),
                Event::Ack(ack) => stage.on_ack(ack),
            }
        }
        let Stage { mut replay, heard, turns, .. } = stage;
        replay.damage = Damage::of(notes);
        let settled = turns.settled(notes, replay.damage.missing > 0.0);
        for d in &mut replay.departures {
            let at = settled.partition_point(|one| one.0 <= d.frame);
            let settled = at.checked_sub(1).and_then(|at| settled[at].1);
            d.owing = d.owing.zip(settled).map(|(left, settled)| left - settled);
        }
        replay.answers.extend(heard.iter().map(|_| u64::MAX));
        replay.by_lines = notes.content.framing.is_some_and(|framing| framing.protocol == LINES);
        if notes.bulk {
            replay.arrivals.clear();
        }
        replay
    }
}

/// The second pass.
struct Stage<'n> {
    notes: &'n Notes<'n>,
    mss: u32,
    way: Span,
    /// ACKs on their way to the sender, oldest first.
    waiting: VecDeque<AckNote>,
    sender: Sender,
    /// One past the highest byte acknowledged at the capture point.
    acked_here: u64,
    last: Option<Time>,
    /// What of the peer came since the last segment; before the first the program may speak for any reason.
    asked: Option<Asked>,
    /// Data of the peer since the last segment that let nothing go.
    heard: Vec<Time>,
    turns: Turns<'n>,
    /// The last segment may be a fill, which more data behind it would show to be none.
    fill_open: bool,
    /// The last late ACK, until it is known whether data of the peer follows at once.
    answerable: Option<Time>,
    replay: Replay,
}

impl<'n> Stage<'n> {
    fn new(notes: &'n Notes<'n>, way: Span) -> Self {
        Self {
            notes,
            mss: notes.mss(),
            way,
            waiting: VecDeque::new(),
            sender: Sender::default(),
            acked_here: 0,
            last: None,
            asked: Some(Asked::default()),
            heard: Vec::new(),
            turns: Turns::of(notes),
            fill_open: false,
            answerable: None,
            replay: Replay::default(),
        }
    }

    fn on_data(&mut self, at: usize, data: &DataNote) {
        while self.waiting.front().is_some_and(|ack| ack.time + self.way <= data.time) {
            let Some(ack) = self.waiting.pop_front() else { break };
            self.deliver(&ack);
        }
        let after = |heard: Time| data.time.since(heard).as_nanos();
        self.replay.answers.extend(self.heard.drain(..).map(after));
        let end = data.end();
        match data.kind {
            Kind::Again | Kind::Late => {
                if data.kind == Kind::Again {
                    self.note_repair();
                }
                return self.sender.on_old(end, data.kind == Kind::Again);
            }
            Kind::Gap => self.sender.on_gap(data.offset),
            Kind::New => {}
        }
        let small = data.len < self.mss || !data.len.is_multiple_of(self.mss.max(1));
        let judged = at < self.notes.judged;
        let pause = self.last.map_or(Span::ZERO, |last| data.time.since(last));
        if self.fill_open {
            self.close_fill(pause);
        }
        let asked = self.asked.take();
        self.replay.unasked += u64::from(asked.is_none() && pause >= PAUSE_MIN);
        if let Some(last) = self.last.filter(|_| !judged) {
            if pause >= PAUSE_MIN {
                self.note_silence(data, small, pause);
            }
            if small {
                self.on_small(at, data, last, asked.unwrap_or_default());
            } else if pause >= BURST && data.len == self.mss {
                self.on_lone_full(data, last);
            }
        }
        if !judged {
            let DataNote { time, len, frames, .. } = *data;
            self.replay.arrivals.push(Arrival { time, end, len, frames });
        }
        self.turns.on_said(data);
        self.sender.on_sent(end, small);
        self.last = Some(data.time);
    }

    fn on_small(&mut self, at: usize, data: &DataNote, last: Time, asked: Asked) {
        let sender = &self.sender;
        let broke = sender.has_small_out();
        if broke && data.exempt {
            return;
        }
        let clear = sender.clear.filter(|clear| !broke && clear.time + self.way >= last);
        if clear.is_none() && !broke {
            let counts = sender.has_out_below(data.offset) && !sender.is_in_recovery();
            self.replay.small_after_full += u64::from(counts);
            return;
        }
        let late = if broke { self.next_clear(at, data.offset) } else { None };
        let ack = clear.map(|clear| clear.time).or(late.map(|ack| ack.time));
        let spoken = sender.last_ack.map_or(last, |ack| ack.max(last));
        // Of a bulk transfer the notes lack what the capture holds.
        let whole = !self.notes.bulk;
        self.replay.departures.push(Departure {
            frame: data.frame,
            time: data.time,
            before: last,
            silence: data.time.since(spoken).as_nanos(),
            ack,
            ages: clear.and_then(|clear| clear.ages).or(late.and_then(|ack| ack.ages)),
            peer_after: sender.peer_after.filter(|_| !broke),
            asked: Asked {
                at: asked.at.filter(|at| clear.is_some_and(|c| *at < c.time + self.way)),
                ..asked
            },
            owing: self.turns.left_by(data, clear.map(|clear| clear.time)),
            hears_unseen: data.hears_unseen,
            end: data.end(),
            len: data.len,
            flight_before: clear.map_or(0, |clear| clear.flight_before),
            flight_max: sender.flight_max(),
            marks: Marks {
                broke,
                tail: broke && sender.full,
                pure: clear.map_or(late.is_some_and(|ack| ack.pure), |clear| clear.pure),
                window: clear.is_some_and(|clear| 0 < clear.edge && clear.edge < data.end()),
                recovery: match &clear {
                    Some(clear) => sender.was_in_recovery(clear),
                    None => sender.is_in_recovery(),
                },
                repairing: sender.is_in_recovery(),
                gap: data.kind == Kind::Gap || (whole && sender.unseen > u64::from(self.mss)),
            },
        });
    }

    /// The ACK that would have let a small segment go which passed before it: still on its way, or among
    /// the next packets. One that acknowledges the segment itself is none.
    fn next_clear(&self, at: usize, offset: u64) -> Option<AckNote> {
        let clears = |ack: &&AckNote| (self.sender.small_end..=offset).contains(&ack.acked_to);
        let later =
            self.notes.events[at + 1..].iter().take(AHEAD).filter_map(|event| match event {
                Event::Ack(ack) => Some(ack),
                Event::Data(_) => None,
            });
        self.waiting.iter().chain(later).find(clears).copied()
    }

    fn on_lone_full(&mut self, data: &DataNote, last: Time) {
        let sender = &self.sender;
        let waits = sender.has_out_below(data.offset) && !sender.is_in_recovery();
        if !waits || sender.clear.is_some_and(|clear| clear.time + self.way >= last) {
            return;
        }
        self.fill_open = true;
        self.replay.fills.push(Fill {
            frame: data.frame,
            time: data.time,
            before: last,
            since_ack: self.since_ack(data.time),
            end: data.end(),
            len: data.len,
            small_outstanding: sender.has_small_out(),
            burst: false,
            push: data.push,
        });
    }

    fn close_fill(&mut self, pause: Span) {
        self.fill_open = false;
        let last = self.last.unwrap_or_default();
        let cleared = self.sender.clear.is_some_and(|clear| clear.time + self.way >= last);
        if let Some(fill) = self.replay.fills.last_mut().filter(|_| pause < BURST && !cleared) {
            fill.burst = true;
        }
    }

    /// Since the last ACK, or since one on its way passed.
    fn since_ack(&self, now: Time) -> u64 {
        self.sender.last_ack.map_or(u64::MAX, |ack| now.since(ack).as_nanos())
    }

    fn note_silence(&mut self, data: &DataNote, small: bool, pause: Span) {
        let needed = data.offset + u64::from(data.len.min(self.mss));
        let edge = self.sender.edge_before();
        self.replay.silences.push(Silence {
            nanos: pause.as_nanos(),
            since_ack: self.since_ack(data.time),
            small,
            blocked: 0 < edge && edge < needed,
            recovery: self.sender.is_in_recovery(),
        });
    }

    /// What left just before lost data was sent again, and is not acknowledged, may have been a loss
    /// probe.
    fn note_repair(&mut self) {
        let acked = self.sender.acked;
        let open = self.replay.departures.iter_mut().rev().take(PROBES_MAX);
        open.take_while(|d| d.end > acked).for_each(|d| d.marks.recovery |= d.marks.broke);
    }

    fn on_ack(&mut self, ack: &AckNote) {
        if !ack.pure {
            self.note_answer(ack.time);
        }
        if ack.acked_to > self.acked_here {
            let small = self.sender.is_small_out_at(self.acked_here);
            self.acked_here = ack.acked_to;
            self.note_late_ack(ack, small);
        }
        if self.way == Span::ZERO {
            self.deliver(ack);
        } else {
            self.waiting.push_back(*ack);
        }
    }

    /// The packet comes to the sender.
    fn deliver(&mut self, ack: &AckNote) {
        if !ack.pure && !self.sender.has_any_out() {
            self.heard.push(ack.time);
        }
        if !ack.pure {
            let asked = self.asked.get_or_insert_default();
            asked.at = asked.at.or(Some(ack.time + self.way));
            asked.bytes = asked.bytes.saturating_add(ack.len);
            self.turns.on_heard(ack);
        }
        self.sender.on_ack(ack);
    }

    fn note_late_ack(&mut self, ack: &AckNote, small: bool) {
        let Some([newest_age, oldest_age]) = ack.ages else { return };
        let AckNote { time, segments, pure, .. } = *ack;
        if pure && segments == 1 && oldest_age < ACK_AGE_MIN {
            self.replay.prompt_acks += u64::from(small);
        }
        if oldest_age >= ACK_AGE_MIN {
            let answered = false;
            let record =
                AckRecord { time, oldest_age, newest_age, segments, pure, small, answered };
            self.replay.acks.push(record);
            self.answerable = pure.then_some(time);
        }
    }

    /// Data of the peer right after its ACK, with nothing new to answer in between, marks that ACK.
    fn note_answer(&mut self, now: Time) {
        let Some(ack) = self.answerable.take() else { return };
        if now.since(ack) < ANSWER && self.last.is_none_or(|last| last < ack) {
            self.replay.acks.last_mut().into_iter().for_each(|record| record.answered = true);
        }
    }
}

/// Silence shorter than this is not looked at for its cause.
const PAUSE_MIN: Span = Span::from_millis(10);
/// ACKs faster than this at the capture point are only counted.
const ACK_AGE_MIN: u64 = 2_000_000;
/// Data this soon after an ACK of the same host came from the read that caused the ACK.
const ANSWER: Span = Span::from_millis(1);
/// Segments that a repair is looked back for.
const PROBES_MAX: usize = 8;
/// Packets that an ACK which a segment seems not to have waited for is looked for in.
const AHEAD: usize = 16;
