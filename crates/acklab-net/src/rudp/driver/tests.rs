use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use acklab_core::time::Span;

use super::*;

/// Sends what is queued, keeps what it gets, and counts its timers.
#[derive(Default)]
struct Post {
    outbox: VecDeque<(PathAddrs, Vec<u8>)>,
    leaving: Vec<u8>,
    inbox: Vec<(PathAddrs, Vec<u8>)>,
    timer: Option<Time>,
    rang: Vec<Span>,
}

impl Endpoint for Post {
    type Arrival<'a> = Datagram<'a>;
    type Departure<'a> = Batch<'a>;
    type AppEvent = ();

    fn handle_packet(&mut self, _now: Time, arrival: Datagram<'_>, _sink: &mut Sink) {
        self.inbox.push((arrival.addrs, arrival.bytes.to_vec()));
    }

    fn handle_timeout(&mut self, now: Time, _sink: &mut Sink) {
        if let Some(due) = self.timer.take() {
            self.rang.push(now.since(due));
        }
    }

    fn poll_transmit(&mut self, _now: Time, _sink: &mut Sink) -> Option<Batch<'_>> {
        let addrs;
        (addrs, self.leaving) = self.outbox.pop_front()?;
        Some(Batch { addrs, ecn: Ecn::NotEct, bytes: &self.leaving, segment: 1000 })
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.timer
    }
}

/// An application of one closure.
struct Each<F>(F);

impl<F: FnMut(Time, &mut Post) -> ControlFlow<()>> Application<Post> for Each<F> {
    fn on_progress(&mut self, now: Time, post: &mut Post, _: &mut Sockets) -> ControlFlow<()> {
        (self.0)(now, post)
    }
}

fn here() -> Sockets {
    Sockets::listen(&[SocketAddr::from((Ipv4Addr::LOCALHOST, 0))]).unwrap()
}

fn only(sockets: &Sockets) -> SocketAddr {
    sockets.local().next().unwrap()
}

#[test]
fn what_is_sent_to_oneself_over_two_sockets_arrives_in_order() {
    let mut sockets = here();
    let to = only(&sockets);
    let path = sockets.add(None, to).unwrap();
    let mut post = Post::default();
    // More trains than one turn sends.
    post.outbox.extend((0..200_u8).map(|n| (path, vec![n; 2500])));
    let mut driver = Driver::new(sockets).unwrap();
    let mut all = |_, post: &mut Post| {
        if post.inbox.len() == 600 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    driver.run(&mut post, &mut Each(&mut all)).unwrap();
    let back = PathAddrs { local: to, remote: path.local };
    for (n, train) in post.inbox.chunks(3).enumerate() {
        assert_eq!(
            train.iter().map(|(_, bytes)| bytes.len()).collect::<Vec<_>>(),
            [1000, 1000, 500]
        );
        assert!(train.iter().all(|(from, bytes)| *from == back && bytes[0] == n as u8));
    }
}

#[test]
fn timers_ring_and_never_early() {
    let mut driver = Driver::new(here()).unwrap();
    let mut post = Post { timer: Some(driver.now() + Span::from_micros(700)), ..Post::default() };
    let mut forty = |now, post: &mut Post| {
        if post.rang.len() == 40 {
            return ControlFlow::Break(());
        }
        if post.timer.is_none() {
            post.timer = Some(now + Span::from_micros(700));
        }
        ControlFlow::Continue(())
    };
    driver.run(&mut post, &mut Each(&mut forty)).unwrap();
    assert!(driver.now() >= Time::from_nanos(40 * 700_000));
}

#[test]
fn a_path_that_cannot_be_sent_on_does_not_end_the_loop() {
    let sockets = here();
    let local = only(&sockets);
    let mut post = Post::default();
    let nowhere = "192.0.2.1:9".parse().unwrap();
    let gone = SocketAddr::new(local.ip(), local.port() ^ 1);
    post.outbox.extend([
        (PathAddrs { local, remote: nowhere }, vec![1; 100]),
        (PathAddrs { local: gone, remote: local }, vec![2; 100]),
        (PathAddrs { local, remote: local }, vec![3; 100]),
    ]);
    let mut one = |_, post: &mut Post| {
        if post.inbox.is_empty() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    Driver::new(sockets).unwrap().run(&mut post, &mut Each(&mut one)).unwrap();
    assert_eq!(post.inbox[0].1, vec![3; 100]);
}

#[test]
fn a_call_from_another_thread_is_heard_though_nothing_else_happens() {
    let mut driver = Driver::new(here()).unwrap();
    let waker = driver.waker();
    let said = Arc::new(AtomicBool::new(false));
    let mut caller = None;
    let mut listen = |_, _: &mut Post| {
        if said.load(Ordering::SeqCst) {
            return ControlFlow::Break(());
        }
        let (says, waker) = (said.clone(), waker.clone());
        caller.get_or_insert_with(|| {
            thread::spawn(move || {
                says.store(true, Ordering::SeqCst);
                waker.wake();
            })
        });
        ControlFlow::Continue(())
    };
    driver.run(&mut Post::default(), &mut Each(&mut listen)).unwrap();
    caller.unwrap().join().unwrap();
}
