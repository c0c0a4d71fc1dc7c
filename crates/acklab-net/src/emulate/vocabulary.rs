//! A direction in netem's vocabulary, as a [`LinkConfig`].
//!
//! After tc-netem(8): `delay TIME [JITTER]`, `loss P%`, `loss gemodel P% [R% [1-H% [1-K%]]]`,
//! `reorder P%`, `duplicate P%`, `corrupt P%`, `rate RATE`, `limit`; and of ours `queue NAME [OPTION
//! VALUE]...` with the options that the queue declares, `outage FROM[-UNTIL]`, and a limit in time or
//! bytes. Differences from netem: jitter is added, uniform
//! on [0, JITTER], and keeps the order; a reordered packet leaves out the delay, as there, but not the
//! transmission; the limit is that of the queue, not of what is on its way; correlations are left out.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use acklab_core::link::{
    Corruption, Duplication, ErrorRate, GilbertElliott, LinkConfig, Loss, LossModel, Outage,
    Packets, Reordering, Share, Shift,
};
use acklab_core::options::spells;
use acklab_core::queue::{Discipline, Limit};
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;

/// netem's limit, packets (tc-netem(8)).
const DEFAULT_LIMIT: u32 = 1000;
/// The words that begin a phrase.
const KEYWORDS: &str = "delay, loss, reorder, duplicate, corrupt, rate, queue, limit, outage";

/// Of the queues that have names the one that no real host understands.
const NOT_REAL: &str = "edctcp";

/// The queues that a direction may have.
pub fn queues() -> impl Iterator<Item = &'static str> {
    Discipline::NAMES.iter().copied().filter(|name| *name != NOT_REAL)
}

/// Where and why a text is no direction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {what}")]
pub struct VocabularyError {
    /// Counted from 1, characters.
    pub column: usize,
    /// What is wrong and how to mend it.
    pub what: String,
}

/// Reads a direction: `delay 20ms loss 5% rate 20mbit queue codel limit 100ms`.
pub fn parse(text: &str) -> Result<LinkConfig, VocabularyError> {
    let mut words = Words::new(text);
    let mut direction = Phrases::default();
    while let Some(word) = words.next() {
        direction.phrase(word, &mut words)?;
    }
    direction.config()
}

#[derive(Default)]
struct Phrases<'a> {
    config: LinkConfig,
    reorder: Option<f64>,
    queue: Discipline,
    limit: Option<(Word<'a>, LimitText)>,
}

#[derive(Clone, Copy, Debug)]
enum LimitText {
    Packets(u32),
    Bytes(u64),
    Time(Span),
}

impl<'a> Phrases<'a> {
    fn phrase(&mut self, word: Word<'a>, words: &mut Words<'a>) -> Result<(), VocabularyError> {
        let packets = Packets::All;
        let impairments = &mut self.config.impairments;
        match word.text {
            "delay" => {
                self.config.delay = words.value::<Span>("delay", "20ms")?;
                if words.next_is_value() {
                    self.config.jitter = words.value::<Span>("delay", "20ms 2ms")?;
                }
            }
            "rate" => self.config.rate = words.value::<BitRate>("rate", "20mbit")?,
            "loss" => impairments.loss = words.loss()?.map(|model| Loss { model, packets }),
            "reorder" => self.reorder = Some(words.percent("reorder", "25%")?),
            "duplicate" => {
                let share = Share::independent(words.percent("duplicate", "1%")?);
                impairments.duplication = Some(Duplication { share, packets });
            }
            "corrupt" => {
                let rate = ErrorRate::PerPacket(words.percent("corrupt", "0.1%")?);
                impairments.corruption = Some(Corruption { rate, packets });
            }
            "outage" => impairments.outages.push(words.outage()?),
            "queue" => self.queue = words.queue()?,
            "limit" | "buffer" => self.limit = Some(words.limit()?),
            _ => {
                let mut what = format!("\"{}\" is none of {KEYWORDS}", word.text);
                let queue = self.queue.name();
                if let Some(options) = self.queue.options() {
                    let names: Vec<_> = options.list().iter().map(|option| option.name).collect();
                    if !names.is_empty() {
                        let names = names.join(", ");
                        let _ = write!(what, "; the options of queue {queue} are {names}");
                    }
                }
                return Err(word.error(what));
            }
        }
        Ok(())
    }

    /// What hangs on more than one phrase.
    fn config(self) -> Result<LinkConfig, VocabularyError> {
        let Self { mut config, reorder, queue, limit } = self;
        if let Some(share) = reorder {
            let shift = Shift::Ahead(config.delay + config.jitter);
            let share = Share::independent(share);
            config.impairments.reordering =
                Some(Reordering { share, gap: 1, shift, packets: Packets::All });
        }
        let limit = match limit {
            None => Limit::packets(DEFAULT_LIMIT),
            Some((_, LimitText::Packets(packets))) => Limit::packets(packets),
            Some((_, LimitText::Bytes(bytes))) => Limit::bytes(bytes),
            Some((word, LimitText::Time(_))) if config.rate == BitRate::INFINITE => {
                return Err(word.error("a limit in time needs a rate, for example rate 20mbit"));
            }
            Some((_, LimitText::Time(time))) => {
                Limit::bytes((config.rate.as_bps() as f64 / 8.0 * time.as_secs_f64()) as u64)
            }
        };
        config.queue = queue.with_limit(limit);
        Ok(config)
    }
}

#[derive(Clone, Copy, Debug)]
struct Word<'a> {
    column: usize,
    text: &'a str,
}

impl Word<'_> {
    fn error(&self, what: impl fmt::Display) -> VocabularyError {
        VocabularyError { column: self.column, what: what.to_string() }
    }
}

/// The words of a text, one after the other.
struct Words<'a> {
    words: std::iter::Peekable<std::vec::IntoIter<Word<'a>>>,
    /// The column behind the last.
    end: usize,
}

impl<'a> Words<'a> {
    fn new(text: &'a str) -> Self {
        let mut words = Vec::new();
        let mut rest = text;
        loop {
            rest = rest.trim_start();
            let Some(end) =
                rest.find(char::is_whitespace).or((!rest.is_empty()).then_some(rest.len()))
            else {
                break;
            };
            let before = text.len() - rest.len();
            words.push(Word { column: text[..before].chars().count() + 1, text: &rest[..end] });
            rest = &rest[end..];
        }
        Self { words: words.into_iter().peekable(), end: text.chars().count() + 1 }
    }

    fn next(&mut self) -> Option<Word<'a>> {
        self.words.next()
    }

    /// Whether a further value of the same phrase follows: one that begins with a digit.
    fn next_is_value(&mut self) -> bool {
        self.words.peek().is_some_and(|word| word.text.starts_with(|c: char| c.is_ascii_digit()))
    }

    fn following(&mut self, keyword: &str, example: &str) -> Result<Word<'a>, VocabularyError> {
        let end = Word { column: self.end, text: "" };
        let missing =
            || end.error(format!("{keyword} needs a value, for example {keyword} {example}"));
        self.words.next().ok_or_else(missing)
    }

    fn value<T: FromStr<Err: fmt::Display>>(
        &mut self,
        keyword: &str,
        example: &str,
    ) -> Result<T, VocabularyError> {
        let word = self.following(keyword, example)?;
        word.text.parse().map_err(|error| word.error(format!("\"{}\": {error}", word.text)))
    }

    /// A share of packets, 0 to 1.
    fn percent(&mut self, keyword: &str, example: &str) -> Result<f64, VocabularyError> {
        let word = self.following(keyword, example)?;
        let number = word.text.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
        let share =
            number.map(|percent| percent / 100.0).filter(|share| (0.0..=1.0).contains(share));
        share.ok_or_else(|| {
            let text = word.text;
            word.error(format!(
                "\"{text}\" is not from 0% to 100%, for example {keyword} {example}"
            ))
        })
    }

    /// `P%`, `random P%`, or `gemodel P% [R% [1-H% [1-K%]]]`.
    fn loss(&mut self) -> Result<Option<LossModel>, VocabularyError> {
        match self.words.peek().map(|word| word.text) {
            Some("gemodel") => {
                self.words.next();
                let example = "gemodel 1% 25%";
                let to_bad = self.percent("loss", example)?;
                // tc-netem(8): without r, 1 - p, which is independent loss.
                let mut others = [1.0 - to_bad, 1.0, 0.0];
                for share in &mut others {
                    if !self.next_is_value() {
                        break;
                    }
                    *share = self.percent("loss", example)?;
                }
                let [to_good, loss_in_bad, loss_in_good] = others;
                let chain = GilbertElliott { to_bad, to_good, loss_in_bad, loss_in_good };
                return Ok(Some(LossModel::GilbertElliott(chain)));
            }
            Some("random") => drop(self.words.next()),
            _ => {}
        }
        let share = self.percent("loss", "5%")?;
        Ok((share > 0.0).then_some(LossModel::Independent(share)))
    }

    /// A discipline's name, and its options as far as the words are names of options.
    fn queue(&mut self) -> Result<Discipline, VocabularyError> {
        let name = self.following("queue", "codel")?;
        if name.text == NOT_REAL {
            return Err(name.error(
                "edctcp sends packets back to their sender, which no real host understands; \
                 threshold marks as it does",
            ));
        }
        let mut queue: Discipline = name.text.parse().map_err(|error| name.error(error))?;
        let Some(options) = queue.options() else { return Ok(queue) };
        let list = options.list();
        while let Some(next) = self.words.peek()
            && let Some(option) = list.iter().find(|option| spells(next.text, option.name))
        {
            self.words.next();
            let value = self.following(option.name, &option.default.to_string())?;
            let text = value.text;
            let read = option.kind.parse(text);
            let read = read
                .map_err(|reason| value.error(format!("\"{text}\": {} {reason}", option.name)))?;
            options.set(option.name, read);
        }
        options.check().map_err(|conflict| name.error(conflict.reason))?;
        Ok(queue)
    }

    fn outage(&mut self) -> Result<Outage, VocabularyError> {
        let word = self.following("outage", "700ms-1.5s")?;
        outage(word.text).map_err(|what| word.error(what))
    }

    /// `100` packets, `100ms` at the rate, or `250kbyte`.
    fn limit(&mut self) -> Result<(Word<'a>, LimitText), VocabularyError> {
        let word = self.following("limit", "100ms")?;
        let text = word.text;
        let units = [("kbyte", 1e3), ("mbyte", 1e6), ("byte", 1.0)];
        let bytes = units.iter().find_map(|(unit, factor)| {
            text.strip_suffix(unit)?.parse::<f64>().ok().map(|number| number * factor)
        });
        let limit = match (bytes, text.parse(), text.parse()) {
            (Some(bytes), _, _) if bytes >= 1.0 => LimitText::Bytes(bytes as u64),
            (None, Ok(packets), _) if packets > 0 => LimitText::Packets(packets),
            (None, Err(_), Ok(time)) => LimitText::Time(time),
            _ => {
                return Err(word.error(format!(
                    "\"{text}\" is no limit; write packets (100), a time at the rate (100ms) or \
                     bytes (250kbyte)"
                )));
            }
        };
        Ok((word, limit))
    }
}

/// Reads `FROM` or `FROM-UNTIL`, counted from the start of the emulation.
pub fn outage(text: &str) -> Result<Outage, String> {
    let time = |text: &str| match text.parse::<Span>() {
        Ok(span) => Ok(Time::ZERO + span),
        Err(error) => Err(format!("\"{text}\": {error}")),
    };
    let (from, until) = match text.split_once('-') {
        Some((from, until)) => (time(from)?, time(until)?),
        None => (time(text)?, Time::MAX),
    };
    if from >= until {
        return Err(format!("\"{text}\" ends before it begins; write for example 700ms-1.5s"));
    }
    Ok(Outage { from, until })
}

#[cfg(test)]
mod tests {
    use acklab_core::queue::ecn::Treatment;

    use super::*;

    #[test]
    fn the_peers_link_is_read() {
        let config = parse("delay 20ms loss 5% rate 20mbit queue drop-tail limit 100ms").unwrap();
        assert_eq!(config.delay, Span::from_millis(20));
        assert_eq!(config.rate, "20mbit".parse().unwrap());
        assert!(
            matches!(config.queue, Discipline::DropTail(own) if own.limit == Limit::bytes(250_000))
        );
        let loss = config.impairments.loss.unwrap();
        assert_eq!(loss.model, LossModel::Independent(0.05));
    }

    #[test]
    fn every_impairment_is_read() {
        let config = parse(
            "delay 10ms 2ms loss gemodel 1% 25% 90% reorder 3% duplicate 2% corrupt 0.1% \
             outage 1s-2s outage 3s limit 50 queue codel",
        )
        .unwrap();
        assert_eq!(config.jitter, Span::from_millis(2));
        let impairments = config.impairments;
        let chain =
            GilbertElliott { to_bad: 0.01, to_good: 0.25, loss_in_bad: 0.9, loss_in_good: 0.0 };
        assert_eq!(impairments.loss.unwrap().model, LossModel::GilbertElliott(chain));
        let reordering = impairments.reordering.unwrap();
        assert_eq!(reordering.shift, Shift::Ahead(Span::from_millis(12)));
        assert_eq!(impairments.duplication.unwrap().share, Share::independent(0.02));
        assert_eq!(impairments.corruption.unwrap().rate, ErrorRate::PerPacket(0.001));
        let ends: Vec<Time> = impairments.outages.iter().map(|outage| outage.until).collect();
        assert_eq!(ends, [Time::from_nanos(2_000_000_000), Time::MAX]);
        assert!(matches!(config.queue, Discipline::Codel(_)));
    }

    #[test]
    fn a_queue_takes_the_options_that_it_declares() {
        let config =
            parse("queue pie target 20ms ecn drop mark_ceiling 5% rate 10mbit limit 50").unwrap();
        let Discipline::Pie(pie) = config.queue else { panic!("{:?}", config.queue) };
        assert_eq!((pie.target, pie.ecn), (Span::from_millis(20), Treatment::Drop));
        assert!((pie.mark_ceiling - 0.05).abs() < 1e-12 && pie.limit == Limit::packets(50));
        let keywords: Vec<&str> = KEYWORDS.split(", ").collect();
        for mut queue in Discipline::all() {
            let name = queue.name();
            for option in queue.options().map(|own| own.list()).unwrap_or_default() {
                assert!(
                    !keywords.contains(&option.name),
                    "{name}: {} begins a phrase",
                    option.name
                );
            }
        }
    }

    #[test]
    fn an_empty_text_is_a_perfect_link_with_netems_limit() {
        let config = parse("").unwrap();
        assert_eq!((config.rate, config.delay), (BitRate::INFINITE, Span::ZERO));
        assert!(
            matches!(config.queue, Discipline::DropTail(own) if own.limit == Limit::packets(1000))
        );
    }

    #[test]
    fn every_mistake_is_told_with_its_column_and_how_to_mend_it() {
        let check = |text: &str, column: usize, word: &str| {
            let error = parse(text).unwrap_err();
            assert_eq!(error.column, column, "{text}: {error}");
            assert!(error.what.contains(word), "{text}: {error}");
        };
        check("dely 20ms", 1, "delay");
        check("delay 20", 7, "unit");
        check("delay", 6, "delay 20ms");
        check("delay 20ms loss 5", 17, "5%");
        check("loss 105%", 6, "100%");
        check("rate 20mbps", 6, "mbit");
        check("rate 1mbit queue reed", 18, "codel");
        check("rate 1mbit queue edctcp", 18, "threshold");
        check("queue codel target 0", 20, "longer than 0");
        check("queue codel target", 19, "target needs a value, for example target 5ms");
        check("queue codel taget 1ms", 13, "options of queue codel are target, interval");
        check("queue policer burst 1000", 21, "from 1500");
        check("queue red min 20 max 10", 7, "min must be less than max");
        check("limit 100ms", 7, "rate 20mbit");
        check("limit 0", 7, "packets");
        check("µ", 1, "none of");
        check("outage 2s-1s", 8, "before");
    }
}
