//! `[[flow]]` tables: who sends what to whom, when, and over which transport.

use std::ops::Range;

use acklab_core::cc::Algorithm;
use acklab_core::packet::Packet;
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;
use acklab_sim::app::RequestPattern;
use acklab_sim::arrivals::{Length, Pattern};
use acklab_sim::distribution::Distribution;
use acklab_tcp::Config;

use super::distributions::{self, Of};
use super::links::Node;
use super::loops::ControlLoop;
use super::reader::{Field, Fields, Mistake};
use super::transport;

/// A flow as it was written.
pub(super) struct Entry {
    pub(super) from: Node,
    pub(super) to: Node,
    pub(super) flow: Flow,
    /// Where its name is, else the flow.
    pub(super) name_at: Range<usize>,
    /// The host that it has for itself.
    pub(super) access: Option<Access>,
    /// With which other flows it is looked at.
    pub(super) group: Option<String>,
}

/// The link of a flow's own host.
pub(super) struct Access {
    /// Of a packet of no length, over the whole way.
    pub(super) rtt: Span,
    pub(super) rate: BitRate,
    pub(super) jitter: Span,
    /// Where it stands.
    pub(super) at: Range<usize>,
}

/// What a flow does.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    /// Name in results.
    pub(crate) name: String,
    /// Nothing before.
    pub(crate) start: Time,
    /// It begins so many seconds after the copy before it.
    pub(crate) every: Option<Every>,
    /// Nothing new from then on.
    pub(crate) stop: Time,
    /// What it carries.
    pub(crate) traffic: Traffic,
}

/// A flow that begins so long after the one before it.
#[derive(Clone, Debug)]
pub(crate) struct Every {
    /// What flows that follow one another have in common.
    pub(crate) process: String,
    /// Seconds.
    pub(crate) gap: Distribution,
}

/// What is sent over what.
#[derive(Clone, Debug)]
pub(crate) enum Traffic {
    /// As much as the transport takes; so many bytes, or without end.
    Bulk(Ends, Option<Distribution>),
    /// Messages of an arrival process over TCP or reliable UDP, with the bytes of each where all have the
    /// same.
    Messages(Ends, Arriving, Option<u32>),
    /// Requests from the first node over TCP or reliable UDP, answered by the second.
    Requests(Ends, RequestPattern, Varying),
    /// Datagrams of an arrival process.
    Datagrams(Arriving),
    /// A plant at the first node and its controller at the second.
    Loop(Box<ControlLoop>),
}

/// What arrives, and how large it is where that is random.
#[derive(Clone, Debug)]
pub(crate) struct Arriving {
    pub(crate) pattern: Pattern,
    pub(crate) sizes: Option<Distribution>,
    /// The most that one may have.
    pub(crate) largest: u32,
}

/// What of requests is random.
#[derive(Clone, Debug, Default)]
pub(crate) struct Varying {
    pub(crate) reply: Option<Distribution>,
    /// Seconds.
    pub(crate) think: Option<Distribution>,
}

impl Varying {
    /// Whether anything is.
    pub(crate) const fn is_random(&self) -> bool {
        self.reply.is_some() || self.think.is_some()
    }
}

impl Traffic {
    /// Whether it goes over TCP or reliable UDP.
    pub(crate) const fn has_connection(&self) -> bool {
        !matches!(self, Self::Datagrams(_) | Self::Loop(_))
    }
}

/// Both ends' transport.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    pub(crate) over: Over,
    /// Bytes of a full packet at the IP layer.
    pub(crate) packet: u16,
}

/// What a flow with a connection goes over.
#[derive(Clone, Debug)]
pub(crate) enum Over {
    /// TCP, set up at both ends: where the flow comes from and where it goes.
    Tcp(Box<[Config; 2]>),
    /// Reliable UDP, the same at both ends.
    Rudp(Box<acklab_rudp::Config>),
}

impl Ends {
    /// Payload of a full packet, bytes.
    pub(crate) fn payload(&self) -> f64 {
        match &self.over {
            Over::Tcp(ends) => {
                let [from, to] = &**ends;
                let options = if from.timestamps && to.timestamps { TIMESTAMPS } else { 0 };
                f64::from(from.mss.min(to.mss) - options)
            }
            Over::Rudp(config) => (config.largest_datagram - RUDP_HEADERS) as f64,
        }
    }

    /// What the congestion window counts as a full packet, bytes.
    pub(crate) fn unit(&self) -> f64 {
        match &self.over {
            Over::Tcp(_) => self.payload(),
            Over::Rudp(config) => config.largest_datagram as f64,
        }
    }

    /// The name of its congestion control, with the transport if it is not TCP.
    pub(crate) fn control(&self) -> String {
        match &self.over {
            Over::Tcp(ends) => ends[0].congestion.name().to_owned(),
            Over::Rudp(config) => format!("{} over reliable UDP", config.algorithm.name()),
        }
    }

    /// The most that may be under way, bytes.
    fn window(&self) -> f64 {
        match &self.over {
            Over::Tcp(ends) => f64::from(ends[0].receive_buffer.max(ends[1].receive_buffer)),
            Over::Rudp(config) => config.parameters.max_data as f64,
        }
    }

    /// Whether it bears queues that hand packets back.
    fn waits_when_returned(&self) -> bool {
        matches!(&self.over, Over::Tcp(ends) if matches!(ends[0].congestion, Algorithm::Edctcp(_)))
    }
}

/// Number `index`, read.
pub(super) fn read(mut table: Fields<'_>, index: usize, duration: Span) -> Result<Entry, Mistake> {
    let name_field = table.take("name");
    let name = name_field.as_ref().map_or(Ok(format!("flow{index}")), read_name)?;
    table.describe(format!("flow {name:?}"));
    let from = Node::read(&table.need("from", "from = \"a\"")?)?;
    let to = Node::read(&table.need("to", "to = \"b\"")?)?;
    if from.name == to.name {
        let message =
            format!("flow {name:?} goes from {} to itself; it needs two nodes", from.name);
        return Err(Mistake::new(&to.span, message));
    }
    let kind = table.need("kind", "kind = \"bulk\"")?.word(KINDS)?;
    table.describe(format!("flow {name:?} of kind {kind}"));
    let start = table.take("start");
    let begin = start.as_ref().map_or(Ok(Span::ZERO), Field::time)?;
    if let Some(field) = start.filter(|_| begin >= duration) {
        return Err(field.refuse(format!("must be before the end, at {duration}")));
    }
    let traffic = read_traffic(kind, &mut table)?;
    let every = match &traffic {
        Traffic::Bulk(..) => {
            table.take("every").map(|field| read_every(&field, &name)).transpose()?
        }
        _ => None,
    };
    let mut end = Time::MAX;
    if !matches!(traffic, Traffic::Requests(..) | Traffic::Loop(_))
        && let Some(stop) = table.take("stop")
    {
        let at = stop.time()?;
        if at <= begin {
            return Err(stop.refuse(format!("must be after the start, at {begin}")));
        }
        end = Time::ZERO + at;
    }
    let access = access(&mut table)?;
    let group = table.take("group").map(|field| read_group(&field)).transpose()?;
    let name_at = name_field.map_or_else(|| table.span().clone(), |field| field.span());
    table.finish()?;
    let flow = Flow { name, start: Time::ZERO + begin, every, stop: end, traffic };
    Ok(Entry { from, to, flow, name_at, access, group })
}

/// The host of a flow that says how long its round trips are.
fn access(table: &mut Fields<'_>) -> Result<Option<Access>, Mistake> {
    let rtt = table.take("rtt");
    let [rate, jitter] = ["access_rate", "access_jitter"].map(|key| table.take(key));
    let Some(field) = rtt else {
        return match rate.or(jitter) {
            Some(field) => {
                Err(field.refuse("is of the flow's own host, which it has with `rtt` alone"))
            }
            None => Ok(None),
        };
    };
    Ok(Some(Access {
        rtt: field.time_above_zero()?,
        rate: rate.map_or(Ok(BitRate::INFINITE), |field| field.rate())?,
        jitter: jitter.map_or(Ok(Span::ZERO), |field| field.time())?,
        at: field.span(),
    }))
}

/// A group's name is the beginning of its signals' names.
fn read_group(field: &Field<'_>) -> Result<String, Mistake> {
    let name = field.string()?;
    let is_word = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    if !is_word(name) || name.len() > LONGEST_NAME || ["queue", "flow"].contains(&name) {
        let reason = format!(
            "a group's name is 1 to {LONGEST_NAME} letters, digits or underscores, the first a letter, and \
             neither queue nor flow"
        );
        return Err(field.refuse(reason));
    }
    Ok(name.to_owned())
}

/// Transfers that come one after the other: each is a flow, the copies of one table.
fn read_every(field: &Field<'_>, name: &str) -> Result<Every, Mistake> {
    let process = name.split('[').next().unwrap_or_default().to_owned();
    Ok(Every { process, gap: distributions::read(field, Of::Time)? })
}

fn read_name(field: &Field<'_>) -> Result<String, Mistake> {
    let name = field.string()?;
    if name.is_empty() || name.chars().count() > LONGEST_NAME || name.chars().any(char::is_control)
    {
        return Err(field.refuse(format!("a flow's name is 1 to {LONGEST_NAME} characters")));
    }
    Ok(name.to_owned())
}

fn read_traffic(kind: &str, table: &mut Fields<'_>) -> Result<Traffic, Mistake> {
    Ok(match kind {
        "bulk" => {
            let bytes = table.take("bytes");
            let bytes = bytes.map(|field| distributions::read(&field, Of::Bytes(MOST_BYTES)));
            let bytes = bytes.transpose()?;
            let over = table.take("transport").map_or(Ok("tcp"), |field| field.word(CONNECTED))?;
            Traffic::Bulk(transport::read(over, table)?, bytes)
        }
        "loop" => Traffic::Loop(Box::new(ControlLoop::read(table)?)),
        "request" => {
            let (pattern, varying) = requests(table)?;
            let over = table.take("transport").map_or(Ok("tcp"), |field| field.word(CONNECTED))?;
            Traffic::Requests(transport::read(over, table)?, pattern, varying)
        }
        _ => {
            let over = match table.take("transport") {
                Some(field) => field.word(&["tcp", "rudp", "udp"])?,
                None if matches!(kind, "cbr" | "poisson") => "udp",
                None => "tcp",
            };
            let largest = if over == "udp" { LARGEST_DATAGRAM } else { LARGEST_MESSAGE };
            let (arriving, bytes) = arriving(kind, table, largest)?;
            if over == "udp" {
                Traffic::Datagrams(arriving)
            } else {
                Traffic::Messages(transport::read(over, table)?, arriving, bytes)
            }
        }
    })
}

fn requests(table: &mut Fields<'_>) -> Result<(RequestPattern, Varying), Mistake> {
    let size = |field: Field<'_>| field.count(1, LARGEST_MESSAGE).map(|bytes| bytes as u32);
    let service = table.take("service").map_or(Ok(Span::ZERO), |field| field.time())?;
    let think =
        table.take("think").map(|field| distributions::read(&field, Of::Time)).transpose()?;
    let reply = table.need("reply", "reply = 100_000")?;
    let reply = distributions::read(&reply, Of::Bytes(LARGEST_MESSAGE))?;
    let pattern = RequestPattern {
        exchanges: table.take("count").map_or(Ok(u64::MAX), |field| field.count(1, MOST_COUNT))?,
        header: size(table.need("request", "request = 400")?)?,
        body: 0,
        gap: Span::ZERO,
        reply: reply.mean() as u32,
        service,
        think: Span::from_secs_f64(think.as_ref().map_or(0.0, Distribution::mean)),
    };
    let random = |of: Distribution| (!matches!(of, Distribution::Constant(_))).then_some(of);
    Ok((pattern, Varying { reply: random(reply), think: think.and_then(random) }))
}

/// The arrivals of a flow, and the bytes of each where all have the same.
fn arriving(
    kind: &str,
    table: &mut Fields<'_>,
    most: u64,
) -> Result<(Arriving, Option<u32>), Mistake> {
    let largest = most as u32;
    if kind == "trace" {
        let trace = table.need("trace", "trace = [[\"0s\", 1000], [\"10ms\", 500]]")?;
        let entries = read_trace(&trace, most)?;
        let bytes = entries[0].1;
        let alike = entries.iter().all(|(_, other)| *other == bytes);
        let pattern = Pattern::Trace(entries.into());
        return Ok((Arriving { pattern, sizes: None, largest }, alike.then_some(bytes)));
    }
    let sizes = distributions::read(&table.need("bytes", "bytes = 1000")?, Of::Bytes(most))?;
    let bytes = (sizes.mean() + 0.5) as u32;
    let pattern = pattern(kind, table, bytes)?;
    Ok(match sizes {
        Distribution::Constant(_) => (Arriving { pattern, sizes: None, largest }, Some(bytes)),
        random => (Arriving { pattern, sizes: Some(random), largest }, None),
    })
}

fn pattern(kind: &str, table: &mut Fields<'_>, bytes: u32) -> Result<Pattern, Mistake> {
    let period = period(table, bytes)?;
    Ok(match kind {
        "poisson" => Pattern::Poisson { mean: period, bytes },
        "on-off" => {
            let lengths = table.take("lengths");
            let lengths = lengths.map_or(Ok("exponential"), |field| field.word(LENGTHS))?;
            let shape = match lengths {
                "pareto" => {
                    table.take("shape").map_or(Ok(1.5), |field| field.number(1.1, 100.0))?
                }
                _ => 0.0,
            };
            let length = |field: Field<'_>| -> Result<Length, Mistake> {
                let mean = field.time_above_zero()?;
                Ok(match lengths {
                    "constant" => Length::Constant(mean),
                    "pareto" => Length::Pareto { mean, shape },
                    _ => Length::Exponential { mean },
                })
            };
            let on = length(table.need("on", "on = \"500ms\"")?)?;
            let off = length(table.need("off", "off = \"500ms\"")?)?;
            Pattern::OnOff { on, off, period, bytes }
        }
        _ => Pattern::Constant { period, bytes },
    })
}

/// From one arrival to the next: `every`, or what `rate` makes of `bytes`.
fn period(table: &mut Fields<'_>, bytes: u32) -> Result<Span, Mistake> {
    let (every, rate) = (table.take("every"), table.take("rate"));
    match (every, rate) {
        (Some(every), None) => every.time_above_zero(),
        (None, Some(field)) => match field.rate()? {
            BitRate::INFINITE => {
                Err(field.refuse("must be finite; kind = \"bulk\" sends all it can"))
            }
            rate => Ok(rate.serialisation(u64::from(bytes))),
        },
        (Some(_), Some(rate)) => Err(rate.refuse("`every` is given, too; one of the two decides")),
        (None, None) => {
            table.need("every", "every = \"20ms\", or rate = \"1mbit\"")?;
            Ok(Span::ZERO)
        }
    }
}

/// Entries in order of time, at least one.
fn read_trace(trace: &Field<'_>, largest: u64) -> Result<Vec<(Span, u32)>, Mistake> {
    let mut last = Span::ZERO;
    let mut entry = |item: &Field<'_>| {
        let [at, bytes] = item.pair("[\"10ms\", 500]")?;
        let (time, bytes) = (at.time()?, bytes.count(1, largest)? as u32);
        if time < last {
            return Err(at.refuse(format!("must not be before the entry above it, at {last}")));
        }
        last = time;
        Ok((time, bytes))
    };
    let entries = trace.items()?.iter().map(&mut entry).collect::<Result<Vec<_>, _>>()?;
    if entries.is_empty() {
        return Err(trace.refuse("has no entries; write pairs of time and bytes, [\"10ms\", 500]"));
    }
    Ok(entries)
}

/// What the estimate of a plan's size needs of a flow's way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// The lowest rate on it.
    pub(super) rate: BitRate,
    /// The link that has it.
    pub(super) narrowest: u32,
    /// Propagation there and back, and the transmission of a packet of 1500 bytes; above zero.
    pub(super) round_trip: Span,
}

impl Flow {
    /// About how many packets of data, arrivals and exchanges it has within `seconds`.
    pub(super) fn packets(&self, way: &Way, seconds: f64) -> f64 {
        let full = |ends: &Ends| {
            let by_rate = way.rate.as_bps() as f64 / (8.0 * ends.payload());
            let by_window = ends.window() / ends.payload() / way.round_trip.as_secs_f64();
            by_rate.min(by_window) * seconds
        };
        match &self.traffic {
            Traffic::Bulk(ends, bytes) => {
                let bytes = bytes.as_ref().map_or(f64::INFINITY, Distribution::mean);
                let asked = bytes / ends.payload();
                full(ends).min(asked)
            }
            Traffic::Messages(ends, Arriving { pattern, .. }, _) => {
                let (arrivals, bytes) = arrivals(pattern, seconds);
                arrivals + full(ends).min(bytes / ends.payload())
            }
            Traffic::Requests(ends, pattern, _) => {
                let least = way.round_trip + pattern.service + pattern.think;
                let exchanges = (seconds / least.as_secs_f64()).min(pattern.exchanges as f64);
                let bytes = f64::from(pattern.header) + f64::from(pattern.reply);
                2.0 * exchanges + full(ends).min(exchanges * bytes / ends.payload())
            }
            Traffic::Datagrams(arriving) => arrivals(&arriving.pattern, seconds).0,
            Traffic::Loop(control) => 2.0 * seconds / control.period.as_secs_f64(),
        }
    }

    /// Bytes of the packets of a flow that sends full ones and no more of them than its way carries.
    pub(super) fn full_packet(&self) -> Option<f64> {
        match &self.traffic {
            Traffic::Bulk(ends, _) | Traffic::Requests(ends, ..) => Some(f64::from(ends.packet)),
            Traffic::Messages(..) | Traffic::Datagrams(_) | Traffic::Loop(_) => None,
        }
    }

    /// Whether it bears queues that hand packets back: others than E-DCTCP send them again at once.
    pub(super) fn waits_when_returned(&self) -> bool {
        match &self.traffic {
            Traffic::Bulk(ends, _) | Traffic::Messages(ends, ..) | Traffic::Requests(ends, ..) => {
                ends.waits_when_returned()
            }
            Traffic::Datagrams(_) | Traffic::Loop(_) => true,
        }
    }

    /// Whether the way back must exist, too.
    pub(super) const fn is_two_way(&self) -> bool {
        !matches!(self.traffic, Traffic::Datagrams(_))
    }
}

/// Arrivals within `seconds`, and their bytes.
fn arrivals(pattern: &Pattern, seconds: f64) -> (f64, f64) {
    let (period, bytes) = match pattern {
        Pattern::Constant { period, bytes } | Pattern::Poisson { mean: period, bytes } => {
            (*period, *bytes)
        }
        // An on period has one arrival at least.
        Pattern::OnOff { on, off, period, bytes } => {
            ((*period).min(least(*on) + least(*off)), *bytes)
        }
        Pattern::Trace(entries) => {
            let bytes = entries.iter().map(|(_, bytes)| f64::from(*bytes)).sum();
            return (entries.len() as f64, bytes);
        }
    };
    let arrivals = 1.0 + seconds / period.as_secs_f64().max(1e-9);
    (arrivals, arrivals * f64::from(bytes))
}

/// What most periods are longer than.
fn least(length: Length) -> Span {
    match length {
        Length::Constant(span) => span,
        Length::Exponential { mean } => mean,
        Length::Pareto { mean, shape } => {
            Span::from_secs_f64(mean.as_secs_f64() * (shape - 1.0) / shape)
        }
    }
}

const KINDS: &[&str] =
    &["bulk", "on-off", "messages", "request", "trace", "cbr", "poisson", "loop"];
const LENGTHS: &[&str] = &["constant", "exponential", "pareto"];
const LONGEST_NAME: usize = 40;
const MOST_BYTES: u64 = 1 << 50;
const MOST_COUNT: u64 = 1 << 50;
/// Bytes of a message that an application writes at once.
const LARGEST_MESSAGE: u64 = 1 << 30;
/// What fits into IPv4's length field, less headers.
const LARGEST_DATAGRAM: u64 = 65_535 - (Packet::IPV4_HEADER + Packet::UDP_HEADER) as u64;
/// What carries a connection.
const CONNECTED: &[&str] = &["tcp", "rudp"];
/// Header and tag of a packet of reliable UDP, and the header of a stream's frame up to 1 GiB, bytes
/// (docs/rudp.md section 2).
const RUDP_HEADERS: usize = acklab_rudp::wire::SHORT_HEADER + acklab_rudp::protect::TAG + 6;
/// The timestamp option with its padding (RFC 7323 appendix A), bytes.
const TIMESTAMPS: u16 = 12;
