//! TQUIC as a peer, as quinn-peer is; with several paths.
//!
//!     tquic-peer recv DIR ADDR:PORT...
//!     tquic-peer send DIR BYTES bbr|bbr3|cubic [LOCAL,]ADDR:PORT...
//!
//! Each further address is a path of its own, from LOCAL, added as soon as the server's connection ids allow; packets go
//! by the least round trip. Defaults but for the congestion control and the paths; BoringSSL takes the cipher.
//! The library has no sockets: this is its event loop, over non-blocking sockets and poll(2).

use std::cell::RefCell;
use std::env;
use std::error::Error;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use acklab_bench_transport::{CERTIFICATE_PEM, CHUNK, KEY_PEM, NAME, say};
use bytes::Bytes;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tquic::{
    Config, CongestionControlAlgorithm, Connection, Endpoint, MultipathAlgorithm, PacketInfo,
    PacketSendHandler, TlsConfig, TransportHandler,
};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;
/// A path from here to there.
type Route = (SocketAddr, SocketAddr);

/// The largest datagram.
const DATAGRAM: usize = 65_536;
const PROTOCOL: &[u8] = b"bench";

fn main() -> Outcome {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["recv", folder, ref addresses @ ..] if !addresses.is_empty() => {
            let addresses: Result<Vec<SocketAddr>, _> =
                addresses.iter().map(|address| address.parse()).collect();
            receive(folder.as_ref(), &addresses?)
        }
        ["send", folder, bytes, control, ref paths @ ..] if !paths.is_empty() => {
            let paths: Outcome<Vec<(IpAddr, SocketAddr)>> = paths.iter().map(|p| path(p)).collect();
            send(folder.as_ref(), bytes.parse()?, control, &paths?)
        }
        _ => Err(
            "usage: tquic-peer recv DIR ADDR... | send DIR BYTES bbr|bbr3|cubic [LOCAL,]ADDR..."
                .into(),
        ),
    }
}

/// `[LOCAL,]ADDR:PORT`.
fn path(word: &str) -> Outcome<(IpAddr, SocketAddr)> {
    match word.split_once(',') {
        Some((local, remote)) => Ok((local.parse()?, remote.parse()?)),
        None => Ok((Ipv4Addr::UNSPECIFIED.into(), word.parse()?)),
    }
}

fn receive(folder: &Path, addresses: &[SocketAddr]) -> Outcome {
    let mut config = configuration(addresses.len(), "bbr")?;
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    config.set_tls_config(TlsConfig::new_server_config(
        &file(CERTIFICATE_PEM),
        &file(KEY_PEM),
        vec![PROTOCOL.to_vec()],
        false,
    )?);
    let sockets = Sockets::bind(addresses)?;
    let taker = Taker { total: 0, over: Rc::default() };
    let over = taker.over.clone();
    let mut endpoint = Endpoint::new(Box::new(config), true, Box::new(taker), sockets.clone());
    turn(&mut endpoint, &sockets, |_| *over.borrow())
}

fn send(folder: &Path, bytes: u64, control: &str, paths: &[(IpAddr, SocketAddr)]) -> Outcome {
    let mut config = configuration(paths.len(), control)?;
    let mut tls = TlsConfig::new_client_config(vec![PROTOCOL.to_vec()], false)?;
    tls.set_verify(true);
    tls.set_ca_certs(&folder.join(CERTIFICATE_PEM).to_string_lossy())?;
    config.set_tls_config(tls);

    let start = Instant::now();
    let sockets = Sockets::connect(paths)?;
    let routes: Vec<Route> =
        sockets.0.iter().zip(paths).map(|((local, _), (_, remote))| (*local, *remote)).collect();
    let state = Rc::new(RefCell::new(State::default()));
    let giver = Giver {
        left: bytes,
        block: vec![0x5a; CHUNK].into(),
        answer: Vec::new(),
        state: state.clone(),
    };
    let mut endpoint = Endpoint::new(Box::new(config), false, Box::new(giver), sockets.clone());
    let index = endpoint.connect(routes[0].0, routes[0].1, Some(NAME), None, None, None)?;
    let mut waiting = routes[1..].to_vec();
    let mut told = false;
    turn(&mut endpoint, &sockets, |endpoint| {
        let state = state.borrow();
        if state.established
            && let Some(connection) = endpoint.conn_get_mut(index)
        {
            waiting.retain(|(local, remote)| connection.add_path(*local, *remote).is_err());
        }
        if let (Some((arrived, at)), false) = (state.answer, told) {
            told = true;
            if let Err(error) = say(arrived, bytes, at.duration_since(start)) {
                eprintln!("tquic-peer: {error}");
            }
        }
        state.over
            || told
                && start.elapsed()
                    > state.answer.map_or(Duration::MAX, |(_, at)| {
                        at.duration_since(start) + Duration::from_secs(1)
                    })
    })
}

fn configuration(paths: usize, control: &str) -> Outcome<Config> {
    let mut config = Config::new()?;
    config.set_congestion_control_algorithm(match control {
        "bbr" => CongestionControlAlgorithm::Bbr,
        "bbr3" => CongestionControlAlgorithm::Bbr3,
        "cubic" => CongestionControlAlgorithm::Cubic,
        _ => return Err("congestion control: bbr, bbr3 or cubic".into()),
    });
    config.set_max_idle_timeout(30_000);
    if paths > 1 {
        config.enable_multipath(true);
        config.set_multipath_algorithm(MultipathAlgorithm::MinRtt);
    }
    Ok(config)
}

/// Datagrams and timers until `over`.
fn turn(
    endpoint: &mut Endpoint,
    sockets: &Sockets,
    mut over: impl FnMut(&mut Endpoint) -> bool,
) -> Outcome {
    let mut datagram = vec![0; DATAGRAM];
    loop {
        endpoint.process_connections()?;
        if over(endpoint) {
            return Ok(());
        }
        let wait = endpoint
            .timeout()
            .map_or(Duration::from_millis(20), |t| t.min(Duration::from_millis(20)));
        // Up to the next whole millisecond: a wait of none would spin.
        let wait = PollTimeout::try_from(wait.as_micros().div_ceil(1000) as u64)?;
        let mut polled: Vec<PollFd> = sockets
            .0
            .iter()
            .map(|(_, socket)| PollFd::new(socket.as_fd(), PollFlags::POLLIN))
            .collect();
        poll(&mut polled, wait)?;
        for (local, socket) in &sockets.0 {
            loop {
                let (length, src) = match socket.recv_from(&mut datagram) {
                    Ok(read) => read,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    // ICMP's word about an earlier datagram.
                    Err(error) if error.kind() == ErrorKind::ConnectionRefused => continue,
                    Err(error) => return Err(error.into()),
                };
                let info = PacketInfo { src, dst: *local, time: Instant::now() };
                // A damaged or late datagram is the library's to drop.
                drop(endpoint.recv(&mut datagram[..length], &info));
            }
        }
        endpoint.on_timeout(Instant::now());
    }
}

/// Each path's socket by its own address.
struct Sockets(Vec<(SocketAddr, UdpSocket)>);

impl Sockets {
    fn bind(addresses: &[SocketAddr]) -> Outcome<Rc<Self>> {
        let socket = |&address: &SocketAddr| {
            let socket = UdpSocket::bind(address)?;
            socket.set_nonblocking(true)?;
            Ok((socket.local_addr()?, socket))
        };
        Ok(Rc::new(Self(addresses.iter().map(socket).collect::<Outcome<_>>()?)))
    }

    /// Bound where the route to each peer leaves, for the library knows a path by both its addresses.
    fn connect(paths: &[(IpAddr, SocketAddr)]) -> Outcome<Rc<Self>> {
        let local = |(local, remote): &(IpAddr, SocketAddr)| {
            let probe = UdpSocket::bind((*local, 0))?;
            probe.connect(remote)?;
            Ok((probe.local_addr()?.ip(), 0).into())
        };
        Self::bind(&paths.iter().map(local).collect::<Outcome<Vec<SocketAddr>>>()?)
    }
}

impl PacketSendHandler for Sockets {
    fn on_packets_send(&self, packets: &[(Vec<u8>, PacketInfo)]) -> tquic::Result<usize> {
        for (sent, (bytes, info)) in packets.iter().enumerate() {
            let Some((_, socket)) = self.0.iter().find(|(local, _)| *local == info.src) else {
                continue;
            };
            match socket.send_to(bytes, info.dst) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(sent),
                // Lost, as the link may lose it.
                _ => {}
            }
        }
        Ok(packets.len())
    }
}

/// What the sender's loop sees of its connection.
#[derive(Default)]
struct State {
    established: bool,
    /// How many bytes arrived, and when that was known.
    answer: Option<(u64, Instant)>,
    over: bool,
}

/// The sending end's callbacks.
struct Giver {
    left: u64,
    block: Bytes,
    answer: Vec<u8>,
    state: Rc<RefCell<State>>,
}

impl Giver {
    fn fill(&mut self, connection: &mut Connection, stream: u64) {
        while self.left > 0 {
            let length = self.left.min(self.block.len() as u64);
            let last = length == self.left;
            let piece = self.block.slice(..length as usize);
            match connection.stream_write(stream, piece, last) {
                Ok(taken) => self.left -= taken as u64,
                Err(_) => break,
            }
        }
        drop(connection.stream_want_write(stream, self.left > 0));
    }
}

impl TransportHandler for Giver {
    fn on_conn_created(&mut self, _: &mut Connection) {}

    fn on_conn_established(&mut self, connection: &mut Connection) {
        self.state.borrow_mut().established = true;
        if let Ok(stream) = connection.stream_bidi_new(0, false) {
            self.fill(connection, stream);
        }
    }

    fn on_conn_closed(&mut self, _: &mut Connection) {
        self.state.borrow_mut().over = true;
    }

    fn on_stream_created(&mut self, _: &mut Connection, _: u64) {}

    fn on_stream_readable(&mut self, connection: &mut Connection, stream: u64) {
        let mut bytes = [0; 64];
        while let Ok((length, last)) = connection.stream_read(stream, &mut bytes) {
            self.answer.extend_from_slice(&bytes[..length]);
            if last {
                let total = self.answer[..].try_into().map_or(0, u64::from_be_bytes);
                self.state.borrow_mut().answer = Some((total, Instant::now()));
                drop(connection.close(true, 0, b"done"));
                break;
            }
        }
    }

    fn on_stream_writable(&mut self, connection: &mut Connection, stream: u64) {
        self.fill(connection, stream);
    }

    fn on_stream_closed(&mut self, _: &mut Connection, _: u64) {}

    fn on_new_token(&mut self, _: &mut Connection, _: Vec<u8>) {}
}

/// The receiving end's callbacks.
struct Taker {
    total: u64,
    over: Rc<RefCell<bool>>,
}

impl TransportHandler for Taker {
    fn on_conn_created(&mut self, _: &mut Connection) {}

    fn on_conn_established(&mut self, _: &mut Connection) {}

    fn on_conn_closed(&mut self, _: &mut Connection) {
        *self.over.borrow_mut() = true;
    }

    fn on_stream_created(&mut self, _: &mut Connection, _: u64) {}

    fn on_stream_readable(&mut self, connection: &mut Connection, stream: u64) {
        let mut bytes = vec![0; CHUNK];
        while let Ok((length, last)) = connection.stream_read(stream, &mut bytes) {
            self.total += length as u64;
            if last {
                let answer = Bytes::copy_from_slice(&self.total.to_be_bytes());
                drop(connection.stream_write(stream, answer, true));
                break;
            }
        }
    }

    fn on_stream_writable(&mut self, connection: &mut Connection, stream: u64) {
        drop(connection.stream_want_write(stream, false));
    }

    fn on_stream_closed(&mut self, _: &mut Connection, _: u64) {}

    fn on_new_token(&mut self, _: &mut Connection, _: Vec<u8>) {}
}
