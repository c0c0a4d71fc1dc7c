//! A conversation played in virtual time, as it was or with changes.

use acklab_core::ack::{Profile, delayed, linux};
use acklab_core::event::{Event, EventKind, Interest};
use acklab_core::link::LinkConfig;
use acklab_core::options::Word;
use acklab_core::packet::Addr;
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;
use acklab_sim::{End, Observer, Topology, World};
use acklab_tcp::{Config, Nagle, System};
use acklab_trace::diagnosis::{Direction, NagleState, PolicyKind, ReceiverPolicy, Written};

use super::Change;
use super::conversation::{Place, Script};
use super::player::{Player, head_start};

/// Another system or timer that the receiver's ACKs fit.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    pub(super) name: String,
    ack: Profile,
}

impl Receiver {
    /// The same with its timer later by so much; `None` of one without a timer of its own.
    pub(super) fn later(&self, late: Span) -> Option<Self> {
        let Profile::Delayed(options) = &self.ack else { return None };
        let delay = options.delay + late;
        let name = format!("{}, but after {delay}", self.name);
        let ack = Profile::Delayed(delayed::Options { delay, ..*options });
        Some(Self { name, ack })
    }
}

/// What can be played: both ends' writes and hosts, and the path.
#[derive(Clone)]
pub(super) struct Play {
    /// The sender under question first.
    scripts: [Script; 2],
    hosts: [Config; 2],
    rtt: Span,
    /// The first of both connects.
    connects: bool,
}

/// What came out, of the direction under question.
#[derive(Debug, Default)]
pub(super) struct Played {
    sender: Addr,
    /// From each message's last write to its last byte's departure, milliseconds.
    pub(super) delays_ms: Vec<f64>,
    pub(super) segments: u64,
    pub(super) held: u64,
    /// Writes that never left.
    pub(super) unsent: u64,
}

impl Play {
    /// The conversation of two directions by these writes of theirs.
    pub(super) fn of(
        [own, peer]: [&Direction; 2],
        writes: [&[Written]; 2],
        connects: bool,
        place: Place,
    ) -> Option<Self> {
        let ways = [(own, peer), (peer, own)].map(|(d, other)| {
            let round = d.rtt_to_sender_ms.or(other.rtt_to_receiver_ms);
            round.map(|ms| Span::from_secs_f64(ms.max(0.0) / 2e3))
        });
        let whole = own.rtt_ms.map(|rtt| Span::from_secs_f64(rtt.min.max(0.0) / 1e3));
        let rtt = match ways {
            [Some(a), Some(b)] => (a + b) * 2,
            _ => whole?,
        };
        let firsts = writes.iter().filter_map(|writes| writes.first());
        let origin = firsts.map(|write| write.at).min()?;
        let [near, far] = ways.map(Option::unwrap_or_default);
        Some(Self {
            scripts: [
                Script::of(writes[0], writes[1], near, origin, place),
                Script::of(writes[1], writes[0], far, origin, place),
            ],
            hosts: [host(own, &peer.receiver_policy), host(peer, &own.receiver_policy)],
            rtt,
            connects,
        })
    }

    /// The round trip that it is played with.
    pub(super) const fn rtt(&self) -> Span {
        self.rtt
    }

    /// The delays of the messages that these writes of the sender are, milliseconds.
    pub(super) fn messages(&self, writes: &[Written]) -> Vec<f64> {
        let steps = self.scripts[0].steps.iter().zip(writes);
        steps.filter(|(step, _)| step.ends).map(|(_, write)| write.delay_ms()).collect()
    }

    /// Whether either program answers the other.
    pub(super) fn answers(&self) -> [bool; 2] {
        [self.scripts[0].answers, self.scripts[1].answers]
    }

    /// Lets the receiver acknowledge so.
    pub(super) fn receive_by(&mut self, receiver: &Receiver) {
        self.hosts[1].ack = receiver.ack.clone();
    }

    /// Makes a change; why not, where it cannot be made.
    pub(super) fn change(&mut self, change: Change) -> Result<(), &'static str> {
        match change {
            Change::NoDelay(on) => {
                if on {
                    self.hosts[0].nagle = Nagle::Off;
                }
            }
            Change::SingleWrite(on) => {
                if on {
                    let merged = self.scripts[0].in_one_piece();
                    self.scripts[0] = merged
                        .ok_or("its messages are no runs of writes between the peer's data")?;
                }
            }
            Change::Profile(system) => self.hosts[1].ack = system.config().ack,
            Change::QuickAck(on) => {
                if on {
                    self.hosts[1].ack = Profile::EverySegment;
                }
            }
            Change::Rtt(rtt) => self.rtt = rtt,
        }
        Ok(())
    }

    pub(super) fn run(self) -> Played {
        let Self { scripts: [own, peer], hosts: [sender, receiver], rtt, connects } = self;
        let mut topology = Topology::default();
        let nodes = [topology.node(), topology.node()];
        let there = rtt / 2;
        topology.link(nodes[0], nodes[1], LinkConfig::new(BitRate::INFINITE, there));
        topology.link(
            nodes[1],
            nodes[0],
            LinkConfig::new(BitRate::INFINITE, rtt.saturating_sub(there)),
        );
        let [at, to] = nodes.map(|node| Addr { node, port: PORT });
        let start = Time::ZERO + head_start(rtt);
        let ends: Vec<bool> = own.steps.iter().map(|step| step.ends).collect();
        let all = (own.steps.len() + peer.steps.len()) as u64;
        let end = |addr, config, script: Script| End {
            addr,
            config,
            isn: Seq(0),
            app: Box::new(Player::new(script.steps, start)) as _,
        };
        let (own, peer) = (end(at, sender, own), end(to, receiver, peer));
        let watch = Played { sender: at, ..Played::default() };
        let interest = Interest::MESSAGE.with(Interest::TRANSPORT);
        let mut world = World::new(&topology, 0, interest, watch);
        if connects {
            world.connect(own, peer);
        } else {
            world.connect(peer, own);
        }
        world.run_until(Time::ZERO + LONGEST + (rtt + PATIENCE) * all);
        let played = world.into_observer();
        let unsent = ends.len().saturating_sub(played.delays_ms.len()) as u64;
        let delays_ms = played.delays_ms.iter().zip(ends).filter(|(_, ends)| *ends);
        Played { unsent, delays_ms: delays_ms.map(|(ms, _)| *ms).collect(), ..played }
    }
}

impl Played {
    /// Takes in another play.
    pub(super) fn add(&mut self, other: Self) {
        self.delays_ms.extend(other.delays_ms);
        self.segments += other.segments;
        self.held += other.held;
        self.unsent += other.unsent;
    }

    /// What so many plays come to on average: of every so many delays that are next to each other, the middle one.
    pub(super) fn mean_of(mut self, plays: usize) -> Self {
        if plays < 2 {
            return self;
        }
        self.delays_ms.sort_by(f64::total_cmp);
        let middle = |alike: &[f64]| alike[alike.len() / 2];
        let delays_ms = self.delays_ms.chunks(plays).map(middle).collect();
        let [segments, held] = [self.segments, self.held].map(|sum| sum / plays as u64);
        Self { delays_ms, segments, held, ..self }
    }
}

impl Observer for Played {
    fn on_event(&mut self, event: &Event) {
        match event.kind {
            EventKind::MessageSent { flow, written_at, .. } if flow.local == self.sender => {
                self.delays_ms.push(event.time.since(written_at).as_millis_f64());
            }
            EventKind::SegmentSent { flow, len, retransmission: false, .. }
                if len > 0 && flow.local == self.sender =>
            {
                self.segments += 1;
            }
            EventKind::Released { flow, .. } if flow.local == self.sender => self.held += 1,
            _ => {}
        }
    }
}

/// The host that sends `own` and whose ACKs `policy` describes.
fn host(own: &Direction, policy: &ReceiverPolicy) -> Config {
    let mut names = policy.profile.iter().chain(&policy.candidates);
    let system = names.find_map(|name| name.parse().ok()).unwrap_or(System::Linux);
    let config = system.config();
    let ack = receivers(policy).into_iter().next().map_or(config.ack.clone(), |one| one.ack);
    let nagle = match own.nagle.state {
        NagleState::Off => Nagle::Off,
        NagleState::On if own.nagle.variant.is_some() => Nagle::Minshall,
        NagleState::On | NagleState::Unknown => config.nagle,
    };
    // The MSS of a direction is without the options already.
    let mss = own.mss.clamp(1, u32::from(u16::MAX)) as u16;
    Config { ack, nagle, mss, timestamps: false, ..config }
}

/// All that the receiver may be, the likeliest first; where nothing is known, any system.
pub(super) fn receivers(policy: &ReceiverPolicy) -> Vec<Receiver> {
    let known = policy.profile.iter().chain(&policy.candidates).copied();
    let mut names: Vec<&str> = known.collect();
    if names.is_empty() && policy.kind == PolicyKind::Unknown {
        names = System::NAMES.to_vec();
    }
    let systems = names.into_iter().filter_map(|name| name.parse::<System>().ok());
    let of =
        |system: System| Receiver { name: format!("as {system} does"), ack: system.config().ack };
    let mut all: Vec<Receiver> = systems.clone().map(of).collect();
    // Most distributions have HZ = 250.
    all.extend(systems.filter(|system| *system == System::Linux).map(|_| {
        let ack =
            Profile::Linux(linux::Options { jiffy: Some(JIFFY), ..linux::Options::default() });
        Receiver { name: format!("as linux does, with timers on a grid of {JIFFY}"), ack }
    }));
    let timer = policy.timer_ms.map(|ms| Span::from_secs_f64(ms.max(0.1) / 1e3));
    let own = match (policy.kind, timer) {
        (PolicyKind::Immediate, _) => Some(("each segment at once".into(), Profile::EverySegment)),
        (PolicyKind::Tick, Some(t)) => Some((format!("at a tick of {t}"), Profile::tick(2, t, 1))),
        (_, Some(t)) => Some((format!("after {t}"), Profile::delayed(2, t))),
        (_, None) if all.is_empty() => Some(("as linux does".into(), System::Linux.config().ack)),
        _ => None,
    };
    let own = own.map(|(name, ack)| Receiver { name, ack });
    // What acknowledges at once is no likelier to be a system that delays at times.
    let at = if policy.kind == PolicyKind::Immediate { 0 } else { all.len() };
    all.splice(at..at, own);
    all
}

/// The grid of Linux's timers.
const JIFFY: Span = Span::from_millis(4);
const PORT: u16 = 4712;
/// Longer conversations are not played to their end.
const LONGEST: Span = Span::from_secs(30 * 86_400);
/// What a write may wait for its ACK at most, and the program after it.
const PATIENCE: Span = Span::from_secs(10);

#[cfg(test)]
mod tests {
    use super::super::conversation::{Step, Trigger};
    use super::*;

    #[test]
    fn a_receiver_of_which_nothing_is_known_may_be_any_system() {
        let names = |policy| receivers(&policy).into_iter().map(|one| one.name);
        let open = ReceiverPolicy::default();
        assert_eq!(names(open.clone()).next().as_deref(), Some("as linux does"));
        assert!(names(open.clone()).any(|name| name == "as windows-7 does"));
        let mut known = open.clone();
        (known.profile, known.kind) = (Some("qnx-7.0"), PolicyKind::Fixed);
        assert_eq!(names(known).collect::<Vec<_>>(), ["as qnx-7.0 does"]);
    }
    /// Either TCP carries whatever a capture may show: segments of any size, a receiver of any kind.
    #[test]
    fn writes_of_any_segment_size_are_played_to_the_last_byte() {
        let receivers = receivers(&ReceiverPolicy::default());
        let systems = [System::Linux, System::Qnx70];
        for (system, receiver) in
            systems.iter().flat_map(|one| receivers.iter().map(move |it| (one, it)))
        {
            for mss in [1, 47, 536, 65_535] {
                let write = |at| Step {
                    bytes: 2000,
                    ends: true,
                    trigger: Trigger::At { at: Span::from_millis(at), bytes: 0 },
                };
                let steps = vec![write(1), write(2), write(300)];
                let config = Config { mss, timestamps: false, ..system.config() };
                let mut play = Play {
                    scripts: [steps, Vec::new()].map(|steps| Script { steps, answers: false }),
                    hosts: [config.clone(), config],
                    rtt: Span::from_millis(10),
                    connects: true,
                };
                play.receive_by(receiver);
                let played = play.run();
                let case = format!("{system}, {}, {mss} B", receiver.name);
                assert_eq!((played.unsent, played.delays_ms.len()), (0, 3), "{case}");
                let least = 6000_u64.div_ceil(u64::from(mss.max(48)));
                assert!(
                    (least.max(3)..=6000).contains(&played.segments),
                    "{case}: {}",
                    played.segments
                );
            }
        }
    }
}
