//! `acklab tcp`: acklab's own TCP talks to the kernel's, or to anything behind it, over a TUN device.

use std::fs::File;
use std::io::BufWriter;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::{fs, io};

use acklab_core::options::{Conflict, Word};
use acklab_core::time::{Span, Time};
use acklab_net::tcp::{
    self, Device, DeviceOptions, Driven, Driver, End, Ended, Handle, Host, Payload, PayloadError,
    Side, Taker,
};
use acklab_tcp::{Config, System};
use acklab_trace::capture::{self, CaptureWriter, LinkType, WriterOptions};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::outcome::{Failure, Format, interruption, print, print_json, tell};
use crate::set;

/// Let acklab's own TCP talk to the kernel's over a TUN device (Linux, root)
///
/// The TCP that runs in virtual time, with a system's profile and real bytes. The device is made here and
/// gone when the command ends, however it ends. acklab has the address --local behind it, the kernel the one
/// before that; the kernel's routes lead further where forwarding is on.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Tcp {
    #[command(subcommand)]
    role: Role,
}

#[derive(Subcommand)]
enum Role {
    /// Wait for a connection
    Listen {
        /// acklab's address and port; with the address 0.0.0.0 or :: it is --local
        address: SocketAddr,
        /// Send back what comes
        #[arg(long, conflicts_with_all = ["out", "input", "discard"])]
        echo: bool,
        /// Serve one connection after the other, and several at once, until interrupted
        #[arg(long)]
        keep: bool,
        /// Send this file; - is standard input. Nothing where the option is missing
        #[arg(long = "in", id = "input", value_name = "FILE")]
        input: Option<PathBuf>,
        #[command(flatten)]
        common: Common,
    },
    /// Connect to a port
    Connect {
        /// Where to; 10.78.0.1 is the kernel's end of the device
        address: SocketAddr,
        /// Send this file; - is standard input
        #[arg(long = "in", id = "input", value_name = "FILE", default_value = "-")]
        input: PathBuf,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Args)]
struct Common {
    /// Put what comes into this file; - is standard output
    #[arg(long, value_name = "FILE", default_value = "-", conflicts_with = "discard")]
    out: PathBuf,
    /// Count what comes and throw it away
    #[arg(long)]
    discard: bool,
    /// Behave as this system's TCP
    #[arg(long, value_name = "SYSTEM", default_value = "linux", value_parser = profile())]
    profile: System,
    /// Set parameters of the TCP over the profile; `--set help` lists them
    #[arg(long = "set", value_name = "NAME=VALUE", num_args = 1..)]
    sets: Vec<String>,
    /// Name of the device; %d is the first free number
    #[arg(long, value_name = "NAME", default_value = "acklab%d")]
    tun: String,
    /// acklab's address behind the device [default: 10.78.0.2 or fd78::2; of `listen`: its ADDRESS]
    #[arg(long, value_name = "ADDR")]
    local: Option<IpAddr>,
    /// The kernel's address at the device [default: the one before --local]
    #[arg(long, value_name = "ADDR")]
    host: Option<IpAddr>,
    /// Largest packet of the device, bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1500)]
    mtu: u32,
    /// Write every packet, either way, into this pcapng file
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    /// How to say what happened, on standard output; text goes to standard error
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

fn profile() -> impl TypedValueParser<Value = System> {
    let named = |name: String| System::named(&name).ok_or("no such profile");
    PossibleValuesParser::new(System::NAMES).try_map(named)
}

/// What is asked for, whichever role.
struct Task<'a> {
    common: &'a Common,
    /// Where to connect to, or the port to listen at.
    peer: Result<SocketAddr, u16>,
    local: IpAddr,
    input: Option<&'a Path>,
    echo: bool,
    keep: bool,
}

impl Tcp {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match &self.role {
            Role::Listen { address, echo, keep, input, common } => {
                let ip = address.ip();
                let local = match common.local {
                    Some(local) if !ip.is_unspecified() && local != ip => {
                        return Err(Failure::at("--local", format!("{local} is not {ip}")));
                    }
                    local => local.filter(|_| ip.is_unspecified()),
                };
                let local = local.unwrap_or(if ip.is_unspecified() { behind(ip) } else { ip });
                let input = input.as_deref();
                let peer = Err(address.port());
                Task { common, peer, local, input, echo: *echo, keep: *keep }.run()
            }
            Role::Connect { address, input, common } => {
                let local = common.local.unwrap_or_else(|| behind(address.ip()));
                if local.is_ipv4() != address.is_ipv4() {
                    let why = format!("{local} and {address} must be of one family");
                    return Err(Failure::at("--local", why));
                }
                let (peer, input) = (Ok(*address), Some(input.as_path()));
                Task { common, peer, local, input, echo: false, keep: false }.run()
            }
        }
    }
}

/// acklab's address where none is given, of the family of `ip`.
const fn behind(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::new(10, 78, 0, 2)),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::new(0xfd78, 0, 0, 0, 0, 0, 0, 2)),
    }
}

impl Task<'_> {
    fn run(&self) -> Result<(), Failure> {
        let common = self.common;
        if common.sets.iter().any(|set| set == "help") {
            return print(&set::help(&common.profile.config()));
        }
        let to_stdout = common.out.as_os_str() == "-" && !common.discard && !self.echo;
        if to_stdout && common.format == Format::Json {
            return Err(Failure::at(
                "--format json",
                "standard output has what comes; say --out FILE or --discard",
            ));
        }
        let config = self.config()?;
        // Files first: nothing is made where they cannot be used.
        self.content().map_err(|error| Failure::at("tcp", error))?;
        let mut capture = common.capture.as_deref().map(begin_capture).transpose()?;
        let options = DeviceOptions {
            name: common.tun.clone(),
            local: self.local,
            host: common.host,
            mtu: common.mtu,
        };
        let device = Device::open(&options).map_err(|error| Failure::at("tcp", error))?;
        let (name, kernel) = (device.name().to_owned(), device.host());
        let mut host = Host::new(self.local, common.mtu, config, tcp::random());
        if let Err(port) = self.peer {
            host.listen(port, if self.keep { MOST_AT_ONCE } else { 1 });
            tell(&format!(
                "acklab: tcp: listening at {} behind {name}, whose kernel end is {kernel}",
                SocketAddr::new(self.local, port)
            ));
        }
        let interrupted = interruption()?;
        let mut written = Ok(());
        let mut on_frame = |at: Time, frame: &[u8]| {
            if let (Some(writer), Ok(())) = (&mut capture, &written) {
                written = writer.write_frame(at, frame, frame.len() as u32);
            }
        };
        let mut wire = Driver::new(device, host, || self.content(), &mut on_frame);
        if let Ok(remote) = self.peer {
            wire.connect(remote).map_err(|error| Failure::at("tcp", error))?;
        }
        let wanted = if self.keep { None } else { Some(1) };
        let driven = wire.run(wanted, &interrupted);
        if let (Some(writer), Ok(())) = (capture, &written) {
            written = writer.finish().map(drop);
        }
        let driven = driven.map_err(|error| Failure::at("tcp", error))?;
        if let (Err(error), Some(path)) = (written, &common.capture) {
            return Err(Failure::at(path.display(), error));
        }
        self.tell(&driven, &name, kernel)
    }

    /// The profile's parameters, with segments that fit the device, and what --set changes about them.
    fn config(&self) -> Result<Config, Failure> {
        let mss = Host::mss(self.local, self.common.mtu);
        let mut config = Config { mss, ..self.common.profile.config() };
        set::all(&mut config, &self.common.sets)?;
        tcp::check(&config).map_err(|Conflict { name, reason }| {
            let place = format!("--profile {}", self.common.profile.name());
            Failure::at(place, format!("{name}: {reason}"))
        })?;
        Ok(config)
    }

    /// What a connection carries.
    fn content(&self) -> Result<Payload, PayloadError> {
        let open = |path: &Path| match path.as_os_str().as_encoded_bytes() {
            b"-" => io::stdin().as_fd().try_clone_to_owned().map(File::from),
            _ => File::open(path),
        };
        let named = |path: &Path, error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        };
        let handle = |path: &Path| {
            open(path).and_then(Handle::new).map_err(|e| PayloadError::Read(named(path, e)))
        };
        let from = self.input.map(handle).transpose()?;
        let out = self.common.out.as_path();
        let to = if self.echo {
            Taker::Echo
        } else if self.common.discard {
            Taker::Discard
        } else {
            let file = match out.as_os_str().as_encoded_bytes() {
                b"-" => io::stdout().as_fd().try_clone_to_owned().map(File::from),
                _ if self.keep => fs::OpenOptions::new().create(true).append(true).open(out),
                _ => File::create(out),
            };
            let handle = file.and_then(Handle::new);
            Taker::File(handle.map_err(|error| PayloadError::Write(named(out, error)))?)
        };
        Ok(Payload::new(from, to))
    }

    fn tell(&self, driven: &Driven, device: &str, kernel: IpAddr) -> Result<(), Failure> {
        match self.common.format {
            Format::Text => driven.streams.iter().for_each(|ended| tell(&text(ended))),
            Format::Json => print_json(&json!({
                "schema": SCHEMA,
                "device": { "name": device, "local": self.local.to_string(),
                            "host": kernel.to_string(), "mtu": self.common.mtu },
                "profile": self.common.profile.name(),
                "connections": driven.streams.iter().map(ended_json).collect::<Vec<_>>(),
                "strays": { "damaged": driven.strays.damaged, "refused": driven.strays.refused,
                            "ignored": driven.strays.ignored },
                "refused_by_device": driven.refused,
                "interrupted": driven.interrupted,
            }))?,
        }
        let whole = driven.streams.iter().all(|ended| ended.end == Some(End::Closed));
        if whole && (!driven.interrupted || self.keep) { Ok(()) } else { Err(Failure::Check) }
    }
}

fn begin_capture(path: &Path) -> Result<CaptureWriter<BufWriter<File>>, Failure> {
    let options = WriterOptions {
        format: capture::Format::Pcapng,
        link: LinkType::RAW,
        ..WriterOptions::default()
    };
    File::create(path)
        .and_then(|file| CaptureWriter::new(BufWriter::new(file), options))
        .map_err(|error| Failure::at(path.display(), error))
}

fn how(end: Option<&End>) -> String {
    match end {
        Some(End::Closed) => "closed".to_owned(),
        Some(End::Reset) => "reset by the peer".to_owned(),
        Some(End::TimedOut) => "given up: the peer does not answer".to_owned(),
        Some(End::Unreachable { kind, code }) => {
            format!("the peer cannot be reached (ICMP type {kind}, code {code})")
        }
        None => "interrupted".to_owned(),
    }
}

fn text(ended: &Ended) -> String {
    let seconds = ended.lasted.as_secs_f64();
    let rate = |side: &Side| side.bytes() as f64 * 8.0 / seconds.max(1e-9) / 1e6;
    let Ended { local, remote, sent, received, tally, terms, .. } = ended;
    format!(
        "{local} - {remote}: {}, {seconds:.3} s; sent {} B ({:.1} Mbit/s, {} segments, {} again), \
         received {} B ({:.1} Mbit/s, {} segments); MSS {}, SACK {}, timestamps {}, window scale {} and {}, \
         ECN {}",
        how(ended.end.as_ref()),
        sent.bytes(),
        rate(sent),
        tally.segments_sent,
        tally.retransmissions,
        received.bytes(),
        rate(received),
        tally.segments_received,
        ended.mss,
        terms.sack,
        terms.timestamps,
        terms.our_scale,
        terms.peer_scale,
        terms.ecn,
    )
}

fn ended_json(ended: &Ended) -> Value {
    let side = |side: &Side| json!({ "bytes": side.bytes(), "blake3": side.hash() });
    let Ended { tally, terms, snapshot, .. } = ended;
    json!({
        "local": ended.local.to_string(),
        "remote": ended.remote.to_string(),
        "end": match ended.end {
            Some(End::Closed) => "closed",
            Some(End::Reset) => "reset",
            Some(End::TimedOut) => "timed-out",
            Some(End::Unreachable { .. }) => "unreachable",
            None => "interrupted",
        },
        "seconds": ended.lasted.as_secs_f64(),
        "sent": side(&ended.sent),
        "received": side(&ended.received),
        "segments": {
            "sent": tally.segments_sent,
            "retransmissions": tally.retransmissions,
            "received": tally.segments_received,
            "too_big": tally.too_big,
        },
        "agreed": {
            "mss": terms.mss, "sack": terms.sack, "timestamps": terms.timestamps, "ecn": terms.ecn,
            "window_scale": { "ours": terms.our_scale, "theirs": terms.peer_scale },
        },
        "mss": ended.mss,
        "srtt_ms": snapshot.srtt.map(Span::as_millis_f64),
        "cwnd_bytes": snapshot.cwnd,
    })
}

/// Connections that `--keep` serves at once.
const MOST_AT_ONCE: usize = 1000;
/// Name of the result's form.
const SCHEMA: &str = "acklab.tcp/1";

const EXAMPLES: &str = "\
Examples:
  sudo acklab tcp listen 10.78.0.2:7000 --echo         then: nc 10.78.0.2 7000
  sudo acklab tcp listen 10.78.0.2:7000 --profile windows-10 --discard --capture w10.pcapng
  sudo acklab tcp connect 10.78.0.1:22 --set cc=bbr3   the kernel's own sshd, through BBR
  acklab tcp connect 10.78.0.1:1 --set help            what can be set

Exit status: 0 fine, 1 a connection was reset, given up or interrupted, 2 unusable arguments or no permission.";
