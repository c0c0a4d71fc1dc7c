//! A relay between a client and a server on the loopback interface, which asks a rule about each datagram.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use acklab_core::endpoint::Endpoint;
use acklab_core::event::Sink;
use acklab_core::packet::Ecn;
use acklab_core::time::Time;
use acklab_net::rudp::driver::{Application, Driver, Sockets, Waker};
use acklab_rudp::{Batch, Datagram, PathAddrs};

/// A datagram at the relay.
pub(crate) struct Seen {
    /// When it came, from the relay's start.
    pub(crate) now: Time,
    /// It goes to the server.
    pub(crate) to_server: bool,
    pub(crate) ecn: Ecn,
}

/// Runs until it is dropped.
pub(crate) struct Relay {
    /// Where the client sends to.
    pub(crate) address: SocketAddr,
    over: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

/// What lets a datagram pass.
pub(crate) type Rule = Box<dyn FnMut(&Seen) -> bool + Send>;

impl Relay {
    pub(crate) fn new(server: SocketAddr, rule: Rule) -> Self {
        let mut sockets = Sockets::listen(&[SocketAddr::new(server.ip(), 0)]).expect("a front");
        let address = sockets.local().next().expect("its address");
        let back = sockets.add(Some(server.ip()), server).expect("a back");
        let mut driver = Driver::new(sockets).expect("a loop");
        let (over, waker) = (Arc::new(AtomicBool::new(false)), driver.waker());
        let ends = Arc::clone(&over);
        let (queue, leaving) = (VecDeque::new(), Vec::new());
        let mut wires = Wires { rule, front: address, back, client: None, queue, leaving };
        let run = move || driver.run(&mut wires, &mut Until(ends)).expect("the loop");
        Self { address, over, waker, thread: Some(thread::spawn(run)) }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        self.waker.wake();
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(
            thread::panicking() || ended.is_some_and(|ended| ended.is_ok()),
            "the relay failed"
        );
    }
}

struct Wires {
    rule: Rule,
    front: SocketAddr,
    back: PathAddrs,
    client: Option<SocketAddr>,
    queue: VecDeque<(PathAddrs, Ecn, Vec<u8>)>,
    leaving: Vec<u8>,
}

impl Endpoint for Wires {
    type Arrival<'a> = Datagram<'a>;
    type Departure<'a> = Batch<'a>;
    type AppEvent = ();

    fn handle_packet(&mut self, now: Time, arrival: Datagram<'_>, _sink: &mut Sink) {
        let Datagram { addrs: from, ecn, bytes } = arrival;
        let to_server = from.local == self.front;
        let to = if to_server {
            self.client = Some(from.remote);
            self.back
        } else {
            let Some(client) = self.client else { return };
            PathAddrs { local: self.front, remote: client }
        };
        if (self.rule)(&Seen { now, to_server, ecn }) {
            self.queue.push_back((to, ecn, bytes.to_vec()));
        }
    }

    fn handle_timeout(&mut self, _now: Time, _sink: &mut Sink) {}

    fn poll_transmit(&mut self, _now: Time, _sink: &mut Sink) -> Option<Batch<'_>> {
        let (addrs, ecn);
        (addrs, ecn, self.leaving) = self.queue.pop_front()?;
        let segment = self.leaving.len().max(1);
        Some(Batch { addrs, ecn, bytes: &self.leaving, segment })
    }

    fn poll_timeout(&self) -> Option<Time> {
        None
    }
}

struct Until(Arc<AtomicBool>);

impl Application<Wires> for Until {
    fn on_progress(&mut self, _: Time, _: &mut Wires, _: &mut Sockets) -> ControlFlow<()> {
        if self.0.load(Ordering::SeqCst) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}
