//! `[[link]]` tables: a rate, a delay, a queue and what goes wrong on the wire, for one direction or two.
//!
//! With `from` and `to` a link carries packets one way; with `between` it does both ways, and
//! `[link.forward]` and `[link.reverse]` say where the two differ: what stands there goes before what
//! stands in the link itself.

use std::ops::Range;

use acklab_core::link::{
    Corruption, Duplication, ErrorRate, GilbertElliott, Impairments, LinkConfig, Loss, LossModel,
    Outage, Packets, Reordering, Share, Shift,
};
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;

use super::reader::{Field, Fields, Mistake};
use super::{distributions, queues};

pub(super) struct Direction {
    pub(super) from: Node,
    pub(super) to: Node,
    pub(super) config: LinkConfig,
}

/// A node's name where it was written.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) span: Range<usize>,
}

impl Node {
    pub(super) fn read(field: &Field<'_>) -> Result<Self, Mistake> {
        let name = field.string()?;
        let fits = |c: char| c.is_alphanumeric() || "_-.".contains(c);
        if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(fits) {
            let reason = format!(
                "a node's name is 1 to {LONGEST_NAME} letters, digits, points, hyphens or underscores"
            );
            return Err(field.refuse(reason));
        }
        Ok(Self { name: name.to_owned(), span: field.span() })
    }
}

/// The links of a table.
pub(super) struct Links {
    pub(super) directions: Vec<Direction>,
    /// They are heard one at a time, and each transmission costs this beside its bits.
    pub(super) half_duplex: Option<Span>,
}

pub(super) fn read(mut link: Fields<'_>) -> Result<Links, Mistake> {
    let both = link.take("between");
    let directions = if let Some(between) = both {
        let [a, b] = between.pair("[\"r1\", \"r2\"]")?;
        let (a, b) = (Node::read(&a)?, Node::read(&b)?);
        link.describe(format!("the link between {} and {}", a.name, b.name));
        differ(&a, &b)?;
        let forward = one_way(&mut link, "forward", &a, &b)?;
        let reverse = one_way(&mut link, "reverse", &b, &a)?;
        vec![forward, reverse]
    } else {
        let from =
            link.need("from", "from = \"r1\" and to = \"r2\", or between = [\"r1\", \"r2\"]")?;
        let to = link.need("to", "to = \"r2\"")?;
        let (from, to) = (Node::read(&from)?, Node::read(&to)?);
        link.describe(format!("the link from {} to {}", from.name, to.name));
        differ(&from, &to)?;
        let config = Layers { own: None, link: &mut link }.config()?;
        vec![Direction { from, to, config }]
    };
    let half_duplex =
        link.take("half_duplex").map(|field| half_duplex(&field, &directions)).transpose()?;
    link.finish()?;
    Ok(Links { directions, half_duplex: half_duplex.flatten() })
}

/// `true`, or a table with the overhead.
fn half_duplex(field: &Field<'_>, directions: &[Direction]) -> Result<Option<Span>, Mistake> {
    if directions.iter().any(|direction| direction.config.rate == BitRate::INFINITE) {
        return Err(field.refuse("nothing shares a medium of infinite rate; give the link a rate"));
    }
    if directions.len() < 2 {
        return Err(
            field.refuse("one direction shares with nobody; write between = [\"a\", \"b\"]")
        );
    }
    if !field.is_table() {
        return Ok(field.flag()?.then_some(Span::ZERO));
    }
    let mut table = field.fields("half_duplex")?;
    let overhead = table.need("overhead", "overhead = \"150us\"")?.time()?;
    table.finish()?;
    Ok(Some(overhead))
}

fn differ(a: &Node, b: &Node) -> Result<(), Mistake> {
    if a.name == b.name {
        let message = format!("a link from {} to itself; it needs two nodes", a.name);
        return Err(Mistake::new(&b.span, message));
    }
    Ok(())
}

fn one_way(
    link: &mut Fields<'_>,
    key: &'static str,
    from: &Node,
    to: &Node,
) -> Result<Direction, Mistake> {
    let what = format!("the direction from {} to {}", from.name, to.name);
    let own = link.take(key).map(|table| table.fields(what)).transpose()?;
    let mut layers = Layers { own, link };
    let config = layers.config()?;
    layers.own.map_or(Ok(()), Fields::finish)?;
    Ok(Direction { from: from.clone(), to: to.clone(), config })
}

/// A direction's own table before the link's.
struct Layers<'f, 'a> {
    own: Option<Fields<'a>>,
    link: &'f mut Fields<'a>,
}

impl<'a> Layers<'_, 'a> {
    fn take(&mut self, key: &'static str) -> Option<Field<'a>> {
        let of_link = self.link.take(key);
        self.own.as_mut().and_then(|own| own.take(key)).or(of_link)
    }

    fn config(&mut self) -> Result<LinkConfig, Mistake> {
        let (rate, changes) = match self.take("rate") {
            Some(rate) => distributions::rate(&rate)?,
            None => {
                return Err(self
                    .link
                    .need("rate", "rate = \"10mbit\"")
                    .err()
                    .unwrap_or_else(|| Mistake::new(self.link.span(), "a link needs `rate`")));
            }
        };
        let delay = self.time("delay")?;
        let jitter = self.time("jitter")?;
        let mut config = LinkConfig::new(rate, delay).with_jitter(jitter);
        config.changes = changes;
        let [queue, buffer, bytes] = ["queue", "buffer", "buffer_bytes"].map(|key| self.take(key));
        if rate == BitRate::INFINITE {
            if let Some(field) = [&queue, &buffer, &bytes].into_iter().flatten().next() {
                let reason = "nothing waits on a link of infinite rate; leave this out, or give the \
                              link a rate";
                return Err(field.refuse(reason));
            }
        } else {
            config.queue = queues::read(queue.as_ref(), buffer.as_ref(), bytes.as_ref())?;
        }
        config.impairments = self.impairments()?;
        Ok(config)
    }

    fn time(&mut self, key: &'static str) -> Result<Span, Mistake> {
        self.take(key).map_or(Ok(Span::ZERO), |field| field.time())
    }

    fn impairments(&mut self) -> Result<Impairments, Mistake> {
        let impairments = Impairments {
            loss: self.take("loss").map(|field| loss(&field)).transpose()?.flatten(),
            outages: self.take("outages").map_or(Ok(Vec::new()), |field| outages(&field))?,
            corruption: self.take("corrupt").map(|field| corruption(&field)).transpose()?,
            reordering: self.take("reorder").map(|field| reordering(&field)).transpose()?,
            duplication: self.take("duplicate").map(|field| duplication(&field)).transpose()?,
        };
        Ok(impairments)
    }
}

fn loss(field: &Field<'_>) -> Result<Option<Loss>, Mistake> {
    if !field.is_table() {
        let share = field.share()?;
        let model = LossModel::Independent(share);
        return Ok((share > 0.0).then_some(Loss { model, packets: Packets::All }));
    }
    let mut table = field.fields("a loss")?;
    let packets = only(&mut table)?;
    let model = if let Some(listed) = table.take("packets") {
        let index = |item: &Field<'_>| item.count(0, i64::MAX as u64);
        LossModel::List(listed.items()?.iter().map(index).collect::<Result<_, _>>()?)
    } else if let Some(to_bad) = table.take("p") {
        LossModel::GilbertElliott(gilbert_elliott(&to_bad, &mut table)?)
    } else {
        let example = "share = \"1%\", or packets = [3, 17], or p = 0.01 and r = 0.25";
        LossModel::Independent(table.need("share", example)?.share()?)
    };
    table.finish()?;
    Ok(Some(Loss { model, packets }))
}

/// By netem's letters: p into the bad state, r out of it; h and k, what arrives in the bad and in the
/// good state.
fn gilbert_elliott(p: &Field<'_>, table: &mut Fields<'_>) -> Result<GilbertElliott, Mistake> {
    let simple = GilbertElliott::simple(p.share()?, table.need("r", "r = 0.25")?.share()?);
    let lost = |arrives: Option<Field<'_>>, else_lost: f64| {
        arrives.map_or(Ok(else_lost), |field| field.share().map(|share| 1.0 - share))
    };
    Ok(GilbertElliott {
        loss_in_bad: lost(table.take("h"), simple.loss_in_bad)?,
        loss_in_good: lost(table.take("k"), simple.loss_in_good)?,
        ..simple
    })
}

fn outages(field: &Field<'_>) -> Result<Vec<Outage>, Mistake> {
    let one = |item: &Field<'_>| {
        let [from, until] = item.pair("[\"10s\", \"12s\"]")?;
        let outage = Outage { from: Time::ZERO + from.time()?, until: Time::ZERO + until.time()? };
        if outage.from >= outage.until {
            return Err(item.refuse("an outage ends after it begins"));
        }
        Ok(outage)
    };
    field.items()?.iter().map(one).collect()
}

fn corruption(field: &Field<'_>) -> Result<Corruption, Mistake> {
    if !field.is_table() {
        let rate = ErrorRate::PerPacket(field.share()?);
        return Ok(Corruption { rate, packets: Packets::All });
    }
    let mut table = field.fields("corrupt")?;
    let packets = only(&mut table)?;
    let rate = if let Some(rate) = table.take("bit_error_rate") {
        ErrorRate::PerBit(rate.number(0.0, 1.0)?)
    } else {
        let example = "share = \"1%\", or bit_error_rate = 1e-6";
        ErrorRate::PerPacket(table.need("share", example)?.share()?)
    };
    table.finish()?;
    Ok(Corruption { rate, packets })
}

fn reordering(field: &Field<'_>) -> Result<Reordering, Mistake> {
    let mut table = field
        .fields("reorder")
        .map_err(|_| field.refuse("must be a table, such as { share = \"1%\", late = \"5ms\" }"))?;
    let packets = only(&mut table)?;
    let share = share(&mut table)?;
    let gap = table.take("gap").map_or(Ok(0), |gap| gap.count(0, u64::from(u32::MAX)))? as u32;
    let shift = if let Some(ahead) = table.take("ahead") {
        Shift::Ahead(ahead.time_above_zero()?)
    } else {
        let example = "late = \"5ms\", or ahead = \"5ms\"";
        Shift::Late(table.need("late", example)?.time_above_zero()?)
    };
    table.finish()?;
    Ok(Reordering { share, gap, shift, packets })
}

fn duplication(field: &Field<'_>) -> Result<Duplication, Mistake> {
    if !field.is_table() {
        let share = Share::independent(field.share()?);
        return Ok(Duplication { share, packets: Packets::All });
    }
    let mut table = field.fields("duplicate")?;
    let packets = only(&mut table)?;
    let share = share(&mut table)?;
    table.finish()?;
    Ok(Duplication { share, packets })
}

fn share(table: &mut Fields<'_>) -> Result<Share, Mistake> {
    let share = table.need("share", "share = \"1%\"")?.share()?;
    let correlation = table.take("correlation").map_or(Ok(0.0), |field| field.share())?;
    Ok(Share { share, correlation })
}

/// Which packets an impairment looks at.
fn only(table: &mut Fields<'_>) -> Result<Packets, Mistake> {
    let Some(only) = table.take("only") else { return Ok(Packets::All) };
    Ok(match only.word(&["data", "pure-acks"])? {
        "data" => Packets::Data,
        _ => Packets::PureAcks,
    })
}

const LONGEST_NAME: usize = 40;
