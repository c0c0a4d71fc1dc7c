//! A relay between a client and a server on the loopback interface, which asks a rule about each datagram.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use acklab_core::packet::Ecn;
use acklab_core::time::Time;
use acklab_net::rudp::driver::{Application, Driver, Machine, Sockets, Waker};
use acklab_rudp::{PathAddrs, Transmit};

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
        let mut wires = Wires { rule, front: address, back, client: None, queue: VecDeque::new() };
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
}

impl Machine for Wires {
    fn handle_datagram(&mut self, now: Time, from: PathAddrs, ecn: Ecn, datagram: &mut [u8]) {
        let to_server = from.local == self.front;
        let to = if to_server {
            self.client = Some(from.remote);
            self.back
        } else {
            let Some(client) = self.client else { return };
            PathAddrs { local: self.front, remote: client }
        };
        if (self.rule)(&Seen { now, to_server, ecn }) {
            self.queue.push_back((to, ecn, datagram.to_vec()));
        }
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, _now: Time, buffer: &mut [u8], _most: usize) -> Option<Transmit> {
        let (addrs, ecn, bytes) = self.queue.pop_front()?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Some(Transmit { addrs, ecn, len: bytes.len(), segment: bytes.len().max(1) })
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
