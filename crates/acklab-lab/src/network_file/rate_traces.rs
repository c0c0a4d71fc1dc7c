//! Link rates that a file lists: `rate = { trace = "lte.csv" }` becomes the schedule that it means in the text, so
//! that what was run is all in the text, wherever the file goes.
//!
//! Two kinds of file. Time and rate on each line, apart by a comma, a semicolon or space: `0.1,2mbit`; numbers alone
//! are seconds and bit/s, times count from the first. Or one whole number on each line: the millisecond at which a
//! packet of 1500 bytes may leave, begun anew after the last (mahimahi's format; Netravali et al., USENIX ATC 2015).

use std::fmt::Write as _;
use std::ops::Range;

use acklab_core::time::Span;
use acklab_core::units::BitRate;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::reader::Mistake;

/// Reads the file of a name, or says why it cannot be read.
pub type Reading<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// Where the text names files of rates, with what they mean.
pub(super) fn written_out(
    root: &DeTable<'_>,
    reading: Reading<'_>,
) -> Result<Vec<(Range<usize>, String)>, Mistake> {
    let mut places = Vec::new();
    // A flow's trace is a list of what it sends.
    for (_, value) in root.iter().filter(|(key, _)| key.get_ref() != "flow") {
        in_value(value, reading, &mut places)?;
    }
    Ok(places)
}

fn in_value(
    value: &Spanned<DeValue<'_>>,
    reading: Reading<'_>,
    places: &mut Vec<(Range<usize>, String)>,
) -> Result<(), Mistake> {
    match value.get_ref() {
        DeValue::Array(items) => {
            items.iter().try_for_each(|item| in_value(item, reading, places))?;
        }
        DeValue::Table(table) => {
            for (key, value) in table {
                match value.get_ref() {
                    DeValue::String(name) if key.get_ref() == KEY => {
                        let schedule = schedule(name, table.contains_key("repeat"), reading)
                            .map_err(|reason| {
                                Mistake::new(&value.span(), format!("{KEY} = {name:?}: {reason}"))
                            })?;
                        places.push((key.span().start..value.span().end, schedule));
                    }
                    _ => in_value(value, reading, places)?,
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// The file `name` as keys of a rate that changes.
fn schedule(name: &str, repeats: bool, reading: Reading<'_>) -> Result<String, String> {
    let text = reading(name)?;
    let (steps, period) = read(&text)?;
    if period.is_some() && repeats {
        return Err("a file of times at which packets may leave repeats itself".into());
    }
    let mut keys = "steps = [".to_owned();
    let mut last = None;
    for (at, rate) in steps.into_iter().filter(|step| last.replace(step.1) != Some(step.1)) {
        let _ = write!(keys, "[\"{at}\", \"{rate}\"], ");
    }
    keys.truncate(keys.trim_end_matches([',', ' ']).len());
    keys.push(']');
    if let Some(period) = period {
        let _ = write!(keys, ", repeat = \"{period}\"");
    }
    Ok(keys)
}

type Steps = Vec<(Span, BitRate)>;

/// Steps from 0 on, and after which time they begin anew.
fn read(text: &str) -> Result<(Steps, Option<Span>), String> {
    let lines = (1..).zip(text.lines()).filter_map(|(number, line)| {
        let fields: Vec<&str> =
            line.split([',', ';', ' ', '\t']).filter(|field| !field.is_empty()).collect();
        let is_data = fields.first().is_some_and(|first| !first.starts_with('#'));
        is_data.then_some((number, fields))
    });
    let mut lines = lines.peekable();
    // A heading.
    lines.next_if(|(_, fields)| !fields[0].starts_with(|first: char| first.is_ascii_digit()));
    let Some((_, first)) = lines.peek() else { return Err("has no lines".into()) };
    if first.len() == 1 { departures(lines) } else { rates(lines).map(|steps| (steps, None)) }
}

/// Times and rates.
fn rates<'a>(lines: impl Iterator<Item = (usize, Vec<&'a str>)>) -> Result<Steps, String> {
    let mut steps: Steps = Vec::new();
    let mut first = None;
    for (number, fields) in lines {
        let wrong = |what: &str| format!("line {number}: {what}");
        let [at, rate] = fields[..] else {
            return Err(wrong("must be a time and a rate, such as 0.1,2mbit"));
        };
        let at = seconds(at).ok_or_else(|| wrong("a time is seconds, or 100ms"))?;
        let rate = bits(rate).ok_or_else(|| wrong("a rate is bit/s, or 2mbit"))?;
        // To the microsecond, which is what a time since 1970 tells.
        let at = ((at - *first.get_or_insert(at)).max(0.0) * 1e6).round();
        let at = Span::from_micros(at as u64);
        if steps.last().is_some_and(|(last, _)| at <= *last) {
            return Err(wrong("its time must be after that of the line before"));
        }
        steps.push((at, rate));
    }
    match steps.last() {
        Some((_, last)) if *last > NOTHING => Ok(steps),
        _ => Err("its last rate, which stays, is 0".into()),
    }
}

fn seconds(text: &str) -> Option<f64> {
    let number = text.parse::<f64>().ok().filter(|seconds| seconds.is_finite());
    number.or_else(|| text.parse::<Span>().ok().map(Span::as_secs_f64))
}

fn bits(text: &str) -> Option<BitRate> {
    match text.parse::<f64>() {
        Ok(bps) if (0.0..1e18).contains(&bps) => {
            Some(BitRate::from_bps(bps as u64).unwrap_or(NOTHING))
        }
        Ok(_) => None,
        Err(_) => text.parse().ok().filter(|rate| *rate != BitRate::INFINITE),
    }
}

/// When packets may leave, in ms, as rates of [`BIN`] each.
fn departures<'a>(
    lines: impl Iterator<Item = (usize, Vec<&'a str>)>,
) -> Result<(Steps, Option<Span>), String> {
    let mut packets: Vec<u64> = Vec::new();
    let mut last = 0;
    for (number, fields) in lines {
        let ms = if let [ms] = fields[..] { ms.parse::<u64>().ok() } else { None };
        let ms = ms.filter(|ms| *ms <= LATEST).ok_or_else(|| {
            format!(
                "line {number}: must be one whole number, ms up to an hour, as the lines before it"
            )
        })?;
        if ms < last {
            return Err(format!("line {number}: must not be before the line above it"));
        }
        last = ms;
        // What leaves at 10 has used the first ten milliseconds.
        let bin = (ms.saturating_sub(1) / BIN) as usize;
        packets.resize(packets.len().max(bin + 1), 0);
        packets[bin] += 1;
    }
    if last == 0 {
        return Err("all packets leave at 0".into());
    }
    let bins = (0..).zip(packets).map(|(bin, packets): (u64, u64)| {
        let begin = bin * BIN;
        let bps = packets * PACKET_BITS * 1000 / BIN.min(last - begin);
        (Span::from_millis(begin), BitRate::from_bps(bps).unwrap_or(NOTHING))
    });
    Ok((bins.collect(), Some(Span::from_millis(last))))
}

const KEY: &str = "trace";
/// A link that stands still: a packet would take hours.
const NOTHING: BitRate = match BitRate::from_bps(1) {
    Some(rate) => rate,
    None => BitRate::INFINITE,
};
/// Departures are counted over so many ms: finer than queues can tell, and 100 steps a second.
const BIN: u64 = 10;
/// An hour, ms.
const LATEST: u64 = 3_600_000;
const PACKET_BITS: u64 = 12_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> Result<String, String> {
        schedule("file", false, &|_| Ok(text.to_owned()))
    }

    #[test]
    fn times_and_rates_count_from_the_first_and_equal_ones_are_one() {
        let text = "time,rate\n# a drive\n1700000000.0,2mbit\n1700000000.5;500000\n1700000001 500kbit\n1700000002\t0\n\
                    1700000003,1e6\n";
        let steps = "steps = [[\"0s\", \"2mbit\"], [\"500ms\", \"500kbit\"], [\"2s\", \"1bit\"], [\"3s\", \"1mbit\"]]";
        assert_eq!(written(text).as_deref(), Ok(steps));
    }

    #[test]
    fn departures_are_rates_of_ten_milliseconds_and_begin_anew() {
        // Two packets in the first 10 ms, none in the second, three in the last 5.
        let steps = "steps = [[\"0s\", \"2400kbit\"], [\"10ms\", \"1bit\"], [\"20ms\", \"7200kbit\"]], \
                     repeat = \"25ms\"";
        assert_eq!(written("1\n10\n21\n25\n25\n").as_deref(), Ok(steps));
        let twice = schedule("file", true, &|_| Ok("1\n10\n".to_owned()));
        assert!(twice.unwrap_err().contains("repeats itself"));
    }

    #[test]
    fn what_is_no_trace_is_refused_with_its_line() {
        for (text, expected) in [
            ("", "has no lines"),
            ("time,rate\n", "has no lines"),
            ("0,1mbit\n1\n", "line 2: must be a time and a rate"),
            ("0,1mbit\n1,infinite\n", "line 2: a rate is bit/s"),
            ("0,1mbit\n1,-5\n", "line 2: a rate is bit/s"),
            ("0,1mbit\n1x,1mbit\n", "line 2: a time is seconds"),
            ("0,1mbit\n0,2mbit\n", "line 2: its time must be after"),
            ("0,1mbit\n1,0\n", "its last rate"),
            ("1\n2,3\n", "line 2: must be one whole number"),
            ("5\n4\n", "line 2: must not be before"),
            ("0\n0\n", "all packets leave at 0"),
            ("1\n99999999999\n", "line 2: must be one whole number"),
        ] {
            let reason = written(text).expect_err(text);
            assert!(reason.contains(expected), "{text:?}: {reason}");
        }
    }
}
