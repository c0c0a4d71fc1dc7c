//! Goal: calls do what socket(7) and tcp(7) say where no script of packetdrill looks.

use acklab_host::calls::Stop;
use acklab_host::errno;
use acklab_host::host::Host;
use acklab_host::segment::{Place, flag};
use acklab_host::socket::Family;

const LOCAL: Place = Place { host: 1, port: 0 };
const REMOTE: Place = Place { host: 2, port: 80 };

#[test]
fn a_socket_that_was_shut_down_while_it_connected_has_no_syn_left_when_it_connects_again() {
    let mut host = Host::new(1);
    let fd = host.socket(0, Family::V4, true).expect("a socket") as i32;
    let _ = host.connect(1000, fd, LOCAL, REMOTE);
    host.shutdown(2000, fd, 1).expect("it is known");
    assert_eq!(host.deadline(), None, "no timer of the SYN");
    // The first tells what came of the connection before.
    while host.connect(3000, fd, LOCAL, REMOTE).is_err() && host.deadline().is_none() {}
    assert_eq!(host.sockets[0].tcp.packets_out(), 1);
    host.wire.clear();
    host.advance(3000 + 1_000_000);
    let (_, again) = host.wire.pop_front().expect("the SYN again");
    assert!(again.has(flag::SYN) && host.wire.is_empty());
    assert_eq!(again.seq, host.sockets[0].tcp.snd.isn);
}

#[test]
fn a_udp_socket_keeps_its_port_and_refuses_what_no_packet_carries() {
    let mut host = Host::new(1);
    let fd = host.datagram_socket(true).expect("a socket") as i32;
    for at in 0..70_000 {
        host.connect(at, fd, LOCAL, REMOTE).expect("it is UDP");
        host.send_to(at, fd, (LOCAL, None), 1).expect("it is connected");
        let (_, datagram) = host.datagrams_out.pop_front().expect("it left");
        assert_eq!((datagram.src.port, datagram.dst), (40_001, REMOTE));
    }
    for bytes in [65_508, u32::MAX] {
        let refused = host.send_to(0, fd, (LOCAL, None), bytes);
        assert_eq!(refused, Err(Stop::Errno(errno::EMSGSIZE)), "{bytes}");
    }
    // Ports are chosen anew when the last is reached.
    for _ in 0..30_000 {
        let fd = host.datagram_socket(true).expect("a socket") as i32;
        host.connect(0, fd, LOCAL, REMOTE).expect("it is UDP");
        host.close(0, fd).expect("it is open");
    }
}
