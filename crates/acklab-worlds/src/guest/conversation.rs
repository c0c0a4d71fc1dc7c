//! The two ends of a flow, each a thread in its namespace with a blocking socket.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use acklab_net::tcp::Device;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, connect, listen, setsockopt,
    socket, sockopt,
};

use super::clock::Clock;
use super::space;
use crate::foreign;
use crate::job::{End, Flow, FlowLog, Foreign, Sample, Task};
use crate::tcp_info;

/// What a flow's threads write down.
#[derive(Debug, Default)]
pub(super) struct Record(Mutex<FlowLog>);

impl Record {
    fn log(&self) -> MutexGuard<'_, FlowLog> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What they wrote so far.
    pub(super) fn take(&self) -> FlowLog {
        std::mem::take(&mut self.log())
    }

    fn fail(&self, end: &str, error: &io::Error) {
        self.log().error.get_or_insert_with(|| format!("{end}: {error}"));
    }
}

/// Opens the listener and starts both ends; they go on until the guest ends.
pub(super) fn start(
    flow: &Flow,
    sampling: u64,
    clock: Clock,
    record: &Arc<Record>,
) -> io::Result<()> {
    let [client, server] = &flow.ends;
    let connector = space::inside(&client.space, || connector(client))??;
    let talk = Talk { flow: flow.clone(), sampling, clock, record: Arc::clone(record) };
    let other = talk.clone();
    match &server.foreign {
        None => {
            let listener = space::inside(&server.space, || listener(server))??;
            thread::spawn(move || talk.named("server", || talk.serve(&listener)));
        }
        Some(of) => {
            let (of, at) = (of.clone(), server.address);
            let device = space::inside(&server.space, || {
                foreign::device((*at.ip()).into(), of.host.into())
            })?
            .map_err(io::Error::other)?;
            thread::spawn(move || talk.named("server", || talk.serve_foreign(device, &of, at)));
        }
    }
    thread::spawn(move || other.named("client", || other.call(connector)));
    Ok(())
}

/// `tcp_sock.scaling_ratio` of Linux 6.12 where frames of 1500 bytes arrive, in 256ths (`tcp_measure_rcv_mss`).
const SCALING_RATIO: usize = 152;

/// A socket with an end's options, bound to its address.
fn bound(end: &End) -> io::Result<OwnedFd> {
    let fd = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&fd, sockopt::TcpCongestion, &end.congestion.clone().into()).map_err(|error| {
        io::Error::other(format!(
            "the kernel has no congestion control {:?}: {error}",
            end.congestion
        ))
    })?;
    setsockopt(&fd, sockopt::TcpNoDelay, &end.nodelay)?;
    if let Some(bytes) = end.receive_buffer {
        // The kernel doubles what it is given (tcp(7)), and announces of that the share that payload has of a full
        // frame's memory.
        let memory = bytes as usize * 256 / SCALING_RATIO;
        setsockopt(&fd, sockopt::RcvBufForce, &(memory / 2))?;
    }
    bind(fd.as_raw_fd(), &SockaddrIn::from(end.address))?;
    Ok(fd)
}

fn listener(end: &End) -> io::Result<TcpListener> {
    let fd = bound(end)?;
    listen(&fd, Backlog::new(8)?)?;
    Ok(TcpListener::from(fd))
}

fn connector(end: &End) -> io::Result<OwnedFd> {
    bound(end)
}

#[derive(Clone)]
struct Talk {
    flow: Flow,
    sampling: u64,
    clock: Clock,
    record: Arc<Record>,
}

impl Talk {
    fn named(&self, end: &str, work: impl FnOnce() -> io::Result<()>) {
        if let Err(error) = work() {
            self.record.fail(end, &error);
        }
    }

    fn call(&self, fd: OwnedFd) -> io::Result<()> {
        self.clock.sleep_until(self.flow.start);
        let to: SocketAddrV4 = self.flow.ends[1].address;
        connect(fd.as_raw_fd(), &SockaddrIn::from(to))?;
        let mut stream = TcpStream::from(fd);
        match &self.flow.task {
            Task::Bulk(bytes) => {
                self.sample(&stream)?;
                self.stop(&stream)?;
                send_bulk(&mut stream, bytes.unwrap_or(u64::MAX))
            }
            Task::Writes(writes) => {
                self.sample(&stream)?;
                self.write(&mut stream, writes)
            }
            Task::Requests { count, request, reply, think, .. } => {
                self.ask(&mut stream, *count, *request as usize, *reply as usize, *think)
            }
        }
    }

    fn serve(&self, listener: &TcpListener) -> io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        match &self.flow.task {
            Task::Bulk(_) => self.drain(&mut stream),
            Task::Writes(_) => self.read(&mut stream),
            Task::Requests { request, reply, service, .. } => {
                self.sample(&stream)?;
                self.answer(&mut stream, *request as usize, *reply as usize, *service)
            }
        }
    }

    /// Reads with acklab's TCP behind `device`.
    fn serve_foreign(&self, device: Device, of: &Foreign, at: SocketAddrV4) -> io::Result<()> {
        let system = of.system.parse().map_err(|_| io::Error::other("no such system"))?;
        let mut host = foreign::host(at.ip().to_owned().into(), system, of.tick);
        host.listen(at.port(), 1);
        let sender = self.flow.ends[0].address.into();
        let mut hear = foreign::reading(sender, |_, bytes| {
            self.record.log().reads.push((self.clock.now(), bytes));
        });
        foreign::drive(device, host, None, &mut hear).map(drop)
    }

    /// Looks at the socket from time to time, on a thread beside.
    fn sample(&self, stream: &TcpStream) -> io::Result<()> {
        let (talk, stream) = (self.clone(), stream.try_clone()?);
        if self.sampling == 0 {
            return Ok(());
        }
        thread::spawn(move || {
            let mut at = talk.clock.now();
            while let Ok(info) = tcp_info::read(&stream) {
                talk.record.log().samples.push(Sample {
                    at,
                    cwnd: info.tcpi_snd_cwnd,
                    ssthresh: info.tcpi_snd_ssthresh,
                    srtt_us: info.tcpi_rtt,
                    retransmissions: info.tcpi_total_retrans,
                });
                at += talk.sampling;
                talk.clock.sleep_until(at);
            }
        });
        Ok(())
    }

    /// Nothing new is written after the flow's stop.
    fn stop(&self, stream: &TcpStream) -> io::Result<()> {
        if let Some(stop) = self.flow.stop {
            let (clock, stream) = (self.clock, stream.try_clone()?);
            thread::spawn(move || {
                clock.sleep_until(stop);
                let _ = stream.shutdown(Shutdown::Write);
            });
        }
        Ok(())
    }

    fn write(&self, stream: &mut TcpStream, writes: &[(u64, u32)]) -> io::Result<()> {
        let largest = writes.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
        let content = vec![0x61; largest as usize];
        for (at, bytes) in writes {
            self.clock.sleep_until(*at);
            self.record.log().writes.push((self.clock.now(), *bytes));
            stream.write_all(&content[..*bytes as usize])?;
        }
        Ok(())
    }

    fn read(&self, stream: &mut TcpStream) -> io::Result<()> {
        let mut buffer = vec![0; CHUNK];
        loop {
            let bytes = stream.read(&mut buffer)?;
            if bytes == 0 {
                return Ok(());
            }
            self.record.log().reads.push((self.clock.now(), bytes as u32));
        }
    }

    fn drain(&self, stream: &mut TcpStream) -> io::Result<()> {
        let mut buffer = vec![0; CHUNK];
        loop {
            let bytes = stream.read(&mut buffer)?;
            if bytes == 0 {
                return Ok(());
            }
            self.record.log().received += bytes as u64;
        }
    }

    fn ask(
        &self,
        stream: &mut TcpStream,
        count: u64,
        request: usize,
        reply: usize,
        think: u64,
    ) -> io::Result<()> {
        let (request, mut buffer) = (vec![0x61; request], vec![0; reply]);
        for _ in 0..count {
            let asked = self.clock.now();
            stream.write_all(&request)?;
            stream.read_exact(&mut buffer)?;
            let answered = self.clock.now();
            self.record.log().exchanges.push((asked, answered));
            self.clock.sleep_until(answered + think);
        }
        Ok(())
    }

    fn answer(
        &self,
        stream: &mut TcpStream,
        request: usize,
        reply: usize,
        service: u64,
    ) -> io::Result<()> {
        let (mut buffer, reply) = (vec![0; request], vec![0x61; reply]);
        loop {
            match stream.read_exact(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                outcome => outcome?,
            }
            self.clock.sleep_until(self.clock.now() + service);
            stream.write_all(&reply)?;
        }
    }
}

/// Writes until so many bytes are written or the writing side is shut.
fn send_bulk(stream: &mut TcpStream, mut left: u64) -> io::Result<()> {
    let content = vec![0x61; CHUNK];
    while left > 0 {
        let chunk = left.min(CHUNK as u64) as usize;
        match stream.write(&content[..chunk]) {
            Ok(written) => left -= written as u64,
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    stream.shutdown(Shutdown::Write)
}

/// Bytes of one call.
const CHUNK: usize = 1 << 16;
