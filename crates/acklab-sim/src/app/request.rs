//! Write-write-read: a request in two writes, then its reply, over and over.
//!
//! The pattern that Nagle's algorithm and delayed ACKs punish together: the second write waits for
//! the ACK of the first, and the server, which cannot answer half a request, delays that ACK. With
//! one write per request (`body` of 0 bytes) it is an ordinary request and reply.

use acklab_core::event::EventKind;
use acklab_core::packet::NodeId;
use acklab_core::time::{Span, Time};
use acklab_tcp::AppEvent;

use super::{App, Io};
use crate::distribution::Draws;

/// Code of the [`EventKind::App`] event with which a client tells how long an exchange took, in ms
/// from its first write to the last byte of its reply.
pub const EXCHANGE_MS: u32 = 1;

/// What client and server agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestPattern {
    /// Exchanges in all.
    pub exchanges: u64,
    /// Bytes of the first write.
    pub header: u32,
    /// Bytes of the second write; 0 for none.
    pub body: u32,
    /// From the first write to the second.
    pub gap: Span,
    /// Bytes of the reply.
    pub reply: u32,
    /// From the request's last byte to the reply.
    pub service: Span,
    /// From a reply to the next request.
    pub think: Span,
}

/// What the client does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Header,
    Body,
}

/// The asking side.
#[derive(Clone, Debug)]
pub struct RequestClient {
    pattern: RequestPattern,
    node: NodeId,
    done: u64,
    began: Time,
    received: u32,
    next: Option<(Time, Step)>,
    /// Bytes of a write that found no room yet.
    owed: u32,
    replies: Replies,
    thinking: Option<Draws>,
}

impl RequestClient {
    /// A client at `node`, which its events name.
    pub fn new(pattern: RequestPattern, node: NodeId) -> Self {
        Self {
            pattern,
            node,
            done: 0,
            began: Time::ZERO,
            received: 0,
            next: None,
            owed: 0,
            replies: Replies::new(&pattern, None),
            thinking: None,
        }
    }

    /// The same with random replies, which the server draws from the same stream, and times to think, seconds.
    #[must_use]
    pub fn varying(self, replies: Option<Draws>, thinking: Option<Draws>) -> Self {
        Self { replies: Replies::new(&self.pattern, replies), thinking, ..self }
    }

    fn on_readable(&mut self, io: &mut Io<'_>) {
        self.received += io.read(u32::MAX);
        if self.received < self.replies.present {
            return;
        }
        self.received -= self.replies.present;
        self.replies.next();
        self.done += 1;
        let value = io.now.since(self.began).as_millis_f64();
        io.tell(EventKind::App { node: self.node, code: EXCHANGE_MS, value });
        if self.done < self.pattern.exchanges {
            let think = self.thinking.as_mut().map(|draws| Span::from_secs_f64(draws.draw()));
            self.next = Some((io.now + think.unwrap_or(self.pattern.think), Step::Header));
        } else {
            io.close();
        }
    }
}

impl App for RequestClient {
    fn on_event(&mut self, event: AppEvent, io: &mut Io<'_>) {
        match event {
            AppEvent::Connected => self.next = Some((io.now, Step::Header)),
            AppEvent::Readable => self.on_readable(io),
            AppEvent::Writable => write_owed(&mut self.owed, io),
            _ => {}
        }
    }

    fn handle_timeout(&mut self, io: &mut Io<'_>) {
        let Some((_, step)) = self.next.take_if(|(due, _)| *due <= io.now) else { return };
        match step {
            Step::Header => {
                self.began = io.now;
                self.owed += self.pattern.header;
                write_owed(&mut self.owed, io);
                if self.pattern.body > 0 {
                    self.next = Some((io.now + self.pattern.gap, Step::Body));
                }
            }
            Step::Body => {
                self.owed += self.pattern.body;
                write_owed(&mut self.owed, io);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.next.map(|(due, _)| due)
    }

    fn reseed(&mut self, seed: u64) {
        if let Some(thinking) = &mut self.thinking {
            thinking.reseed(seed);
        }
    }
}

/// Writes what is owed as far as there is room; the rest follows when there is more.
fn write_owed(owed: &mut u32, io: &mut Io<'_>) {
    if *owed > 0 {
        *owed -= io.write(*owed);
    }
}

/// The answering side: reads as soon as anything is there, answers once a request is whole.
#[derive(Clone, Debug)]
pub struct ReplyingServer {
    pattern: RequestPattern,
    received: u32,
    due: Option<Time>,
    /// Bytes of a reply that found no room yet.
    owed: u32,
    replies: Replies,
}

/// How long the replies are.
#[derive(Clone, Debug)]
struct Replies {
    /// The next one.
    present: u32,
    draws: Option<Draws>,
}

impl Replies {
    fn new(pattern: &RequestPattern, draws: Option<Draws>) -> Self {
        let mut replies = Self { present: pattern.reply, draws };
        replies.next();
        replies
    }

    fn next(&mut self) {
        if let Some(draws) = &mut self.draws {
            self.present = draws.bytes(LARGEST_REPLY);
        }
    }
}

/// 1 GiB.
const LARGEST_REPLY: u32 = 1 << 30;

impl ReplyingServer {
    /// A server for clients of the same pattern.
    pub fn new(pattern: RequestPattern) -> Self {
        Self { pattern, received: 0, due: None, owed: 0, replies: Replies::new(&pattern, None) }
    }

    /// The same with random replies, which the client draws from the same stream. They stay what they are when a
    /// run branches, as both ends must agree.
    #[must_use]
    pub fn varying(self, replies: Option<Draws>) -> Self {
        Self { replies: Replies::new(&self.pattern, replies), ..self }
    }

    fn request_bytes(&self) -> u32 {
        self.pattern.header + self.pattern.body
    }

    fn answer_whole_requests(&mut self, io: &mut Io<'_>) {
        if self.due.is_none() && self.received >= self.request_bytes() {
            self.due = Some(io.now + self.pattern.service);
            if self.pattern.service.is_zero() {
                self.handle_timeout(io);
            }
        }
    }
}

impl App for ReplyingServer {
    fn on_event(&mut self, event: AppEvent, io: &mut Io<'_>) {
        match event {
            AppEvent::Readable => {
                self.received += io.read(u32::MAX);
                self.answer_whole_requests(io);
            }
            AppEvent::Writable => write_owed(&mut self.owed, io),
            AppEvent::PeerClosed => io.close(),
            _ => {}
        }
    }

    fn handle_timeout(&mut self, io: &mut Io<'_>) {
        if self.due.is_some_and(|due| due <= io.now) {
            self.due = None;
            self.received -= self.request_bytes();
            self.owed += self.replies.present;
            self.replies.next();
            write_owed(&mut self.owed, io);
            self.answer_whole_requests(io);
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.due
    }
}
