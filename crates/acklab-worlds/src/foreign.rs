//! acklab's TCP with another system's profile as a receiver that reads at once, behind a TUN device.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicBool;

use acklab_core::seq::Seq;
use acklab_core::time::Time;
use acklab_net::tcp::{
    self, Device, DeviceError, DeviceOptions, Driver, End, Host, OnFrame, Payload, Taker,
};
use acklab_tcp::{Config, System};

use crate::exchange::Segment;

/// A device in the calling thread's namespace with acklab at `local` and the kernel at `host`.
pub(crate) fn device(local: IpAddr, host: IpAddr) -> Result<Device, DeviceError> {
    Device::open(&DeviceOptions { name: "acklab%d".into(), local, host: Some(host), mtu: MTU })
}

/// acklab at `local` as `system`, whose free-running timers are at `tick` of their period.
pub(crate) fn host(local: IpAddr, system: System, tick: f64) -> Host {
    host_of(local, config(local, system, tick))
}

/// The parameters of its connections.
pub(crate) fn config(local: IpAddr, system: System, tick: f64) -> Config {
    Config { mss: Host::mss(local, MTU), ack_phase: tick, ..system.config() }
}

/// acklab at `local` with such connections.
pub(crate) fn host_of(local: IpAddr, config: Config) -> Host {
    Host::new(local, MTU, config, tcp::random())
}

/// Calls `hear` with each read, when and how much: since the application reads at once, that is what came in order, or
/// filled a hole, from `sender`.
pub(crate) fn reading(
    sender: SocketAddr,
    mut hear: impl FnMut(Time, u32),
) -> impl FnMut(Time, &[u8]) {
    let mut next: Option<Seq> = None;
    move |at, frame| {
        let segment = Segment::of_packet(at.as_nanos(), sender, frame);
        let Some(Segment { leaves: true, tcp, .. }) = segment else { return };
        let (first, end) = (tcp.seq, tcp.seq + tcp.payload_len);
        let expected = *next.get_or_insert(first);
        if end.after(expected) {
            next = Some(end);
            hear(at, end - expected);
        }
    }
}

/// Reads one connection to its end and returns how many bytes came; connects to `remote` where one is given.
pub(crate) fn drive(
    device: Device,
    host: Host,
    remote: Option<SocketAddr>,
    on_frame: &mut OnFrame<'_>,
) -> io::Result<u64> {
    let content = || Ok(Payload::new(None, Taker::Discard));
    let mut driver = Driver::new(device, host, content, on_frame);
    if let Some(remote) = remote {
        driver.connect(remote).map_err(io::Error::other)?;
    }
    let outcome = driver.run(Some(1), &AtomicBool::new(false)).map_err(io::Error::other)?;
    let stream = outcome.streams.first();
    match stream.and_then(|stream| stream.end.as_ref()) {
        Some(End::Closed) => Ok(stream.map_or(0, |stream| stream.received.bytes())),
        end => Err(io::Error::other(format!("the connection was not closed: {end:?}"))),
    }
}

/// As Ethernet has it.
const MTU: u32 = 1500;
