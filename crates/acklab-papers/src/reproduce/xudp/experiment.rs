//! One run: two servers at the ends of a wire, and the log that the thesis's server wrote.

use acklab_core::ack::Profile;
use acklab_core::event::{Event, EventKind, Interest};
use acklab_core::link::LinkConfig;
use acklab_core::packet::Addr;
use acklab_core::rng::Rng;
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;
use acklab_sim::{Observer, Topology, World};

use super::parameters::{Obsolete, Order, Set, Timer, YesNo};
use super::protocol::application::Application;
use super::protocol::packet::Wire;
use super::protocol::{Sending, Server, Setup, server};
use super::protocol::{TimeoutRules, WindowRules};
use acklab_lab::parameter::Settings;

/// What happened, as the three log files and the receiver's have it.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// (when, bytes) of each packet that was acknowledged.
    pub acknowledged: Vec<(Time, f64)>,
    /// (when the acknowledgment came, round trip in ms) of each of them.
    pub round_trips: Vec<(Time, f64)>,
    /// (since when, packets).
    pub window: Vec<(Time, f64)>,
    /// (when, number) of each parcel that the receiver completed.
    pub received: Vec<(Time, u64)>,
    /// When the sender had nothing left to do, and how many parcels it had given up.
    pub finished: Option<(Time, u64)>,
    /// Packets lost because a socket's buffer was full.
    pub overflowed: u64,
}

impl Observer for Log {
    fn on_event(&mut self, event: &Event) {
        let EventKind::App { code, value, .. } = event.kind else { return };
        let at = event.time;
        match code {
            server::ACKNOWLEDGED_BYTES => self.acknowledged.push((at, value)),
            server::ROUND_TRIP_MS => self.round_trips.push((at, value)),
            // The receiver's window never moves; the sender's does from the first packet on.
            server::WINDOW_PACKETS => self.window.push((at, value)),
            server::PARCEL_RECEIVED => self.received.push((at, value as u64)),
            server::FINISHED => self.finished = Some((at, value as u64)),
            server::OVERFLOWED => self.overflowed += 1,
            _ => {}
        }
    }
}

/// The figures of a table in section 8.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Total data acknowledged, bytes of parcels.
    pub bytes: f64,
    /// Total transmission time, seconds.
    pub seconds: f64,
    /// Average round trip time of the packets acknowledged, ms.
    pub rtt_ms: f64,
    /// Average window over the 20 ms steps, packets.
    pub window: f64,
    /// Most bytes acknowledged in 100 ms, as a rate in bytes per second.
    pub peak: f64,
}

impl Figures {
    /// Bytes per second.
    pub fn rate(&self) -> f64 {
        self.bytes / self.seconds
    }
}

/// A step of the server's log (section 8).
pub const STEP: Span = Span::from_millis(20);

impl Log {
    /// When the last acknowledgment came.
    pub fn end(&self) -> Time {
        self.acknowledged.last().map_or(Time::ZERO, |(at, _)| *at)
    }

    /// (ms, bytes acknowledged so far), each 20 ms.
    pub fn progress(&self) -> Vec<(f64, f64)> {
        let mut total = 0.0;
        let mut next = self.acknowledged.iter().peekable();
        self.steps(|at| {
            while let Some((_, bytes)) = next.next_if(|(when, _)| *when <= at) {
                total += bytes;
            }
            total
        })
    }

    /// (ms, packets), each 20 ms.
    pub fn windows(&self) -> Vec<(f64, f64)> {
        let mut window = 0.0;
        let mut next = self.window.iter().peekable();
        self.steps(|at| {
            while let Some((_, packets)) = next.next_if(|(when, _)| *when <= at) {
                window = *packets;
            }
            window
        })
    }

    /// (ms of the step in which the acknowledgment came, round trip in ms) of each packet.
    pub fn scatter(&self) -> Vec<(f64, f64)> {
        let step = STEP.as_nanos();
        let quantised = |at: &Time| Span::from_nanos(at.as_nanos().div_ceil(step) * step);
        self.round_trips.iter().map(|(at, rtt)| (quantised(at).as_millis_f64(), *rtt)).collect()
    }

    fn steps(&self, mut value: impl FnMut(Time) -> f64) -> Vec<(f64, f64)> {
        let steps = self.end().as_nanos().div_ceil(STEP.as_nanos());
        let point = |step: u64| {
            let since = Span::from_nanos(step * STEP.as_nanos());
            (since.as_millis_f64(), value(Time::ZERO + since))
        };
        (0..=steps).map(point).collect()
    }

    /// The table's figures.
    pub fn figures(&self) -> Figures {
        let mean = |points: &[(f64, f64)]| {
            points.iter().map(|(_, value)| value).sum::<f64>() / points.len() as f64
        };
        let rtts: Vec<f64> = self.round_trips.iter().map(|(_, rtt)| *rtt).collect();
        let progress = self.progress();
        let windows: Vec<_> = progress.windows(6).map(|w| w[5].1 - w[0].1).collect();
        Figures {
            bytes: self.acknowledged.iter().map(|(_, bytes)| bytes).sum(),
            seconds: self.end().as_secs_f64(),
            rtt_ms: rtts.iter().sum::<f64>() / rtts.len() as f64,
            window: mean(&self.windows()),
            peak: windows.into_iter().fold(0.0, f64::max) / 0.1,
        }
    }
}

/// The policy of the thesis's timer.
pub fn timer(settings: &Settings) -> Profile {
    let Set { ack_timer: period, timer, .. } = settings.read();
    match timer {
        Timer::Tick if !period.is_zero() => Profile::tick(u32::MAX, period, 1),
        _ => Profile::delayed(u32::MAX, period),
    }
}

/// Runs two servers until the sender is done or the run is cut off.
pub fn run(
    settings: &Settings,
    policy: &Profile,
    application: Application,
    cut: Span,
    seed: u64,
) -> Log {
    let set: Set = settings.read();
    let mut topology = Topology::default();
    let (a, b) = (topology.node(), topology.node());
    let rate = BitRate::from_bps(ETHERNET_BPS).unwrap_or(BitRate::INFINITE);
    let link = LinkConfig::new(rate, set.delay).with_loss(set.loss);
    topology.duplex(a, b, &link);
    let mut world = World::new(&topology, seed, Interest::MESSAGE, Log::default());
    let (local, remote) = (Addr { node: a, port: PORT }, Addr { node: b, port: PORT });
    let wire = Wire::default();
    let mut phase = Rng::named(seed, "xudp/timer");
    for (local, remote, application) in
        [(remote, local, Application::Silent), (local, remote, application)]
    {
        let setup = Setup {
            local,
            remote,
            wire: wire.clone(),
            sending: sending(&set),
            policy: policy.policy(phase.uniform()),
            per_packet: set.host,
            buffer: set.buffer as usize,
            reads_first: set.order == Order::ReadFirst,
            application,
        };
        world.attach(local, Box::new(Server::new(setup)));
    }
    world.run_until(Time::ZERO + cut);
    world.into_observer()
}

fn sending(set: &Set) -> Sending {
    Sending {
        packet: set.packet,
        parcels_ahead: set.parcels_ahead,
        exchange: set.exchange,
        window: WindowRules {
            initial: set.window_initial as f64,
            most: set.window_most as f64,
            restart: set.restart == YesNo::Yes,
        },
        timeout: TimeoutRules {
            initial: set.rto_initial,
            least: set.rto_least,
            deviations: set.rto_deviations,
        },
        drop_begun: set.obsolete == Obsolete::Begun,
        karn: set.karn == YesNo::Yes,
    }
}

/// 10base-2 (IEEE 802.3 clause 10).
const ETHERNET_BPS: u64 = 10_000_000;
/// Any port.
const PORT: u16 = 1997;
