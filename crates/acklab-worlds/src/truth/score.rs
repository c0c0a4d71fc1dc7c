//! What a diagnosis says of a capture, held against what happened.
//!
//! A hold of the truth is a segment that Nagle's algorithm kept for 11 ms or longer and that the capture shows; a claim
//! is right where the segment was held for 9 ms or longer, less the error of the capture's time. A capture is stalled
//! where it has such a hold, and not stalled where it has none of 9 ms; what lies between is not asked for a verdict.
//! "Cannot tell" is counted apart.

use std::collections::{BTreeMap, BTreeSet};

use acklab_core::seq::Seq;
use acklab_trace::capture::{CaptureReader, LinkType};
use acklab_trace::diagnosis::{Diagnosis, Direction as Diagnosed, NagleState};
use acklab_trace::{Options, diagnose_reader};
use serde::Serialize;
use serde_json::Value;

use super::damage::{Damage, merged};
use super::hold::{Direction, Nagle};
use super::store::{Kept, VANTAGES, is_kept_out};
use acklab_core::rng::Rng;

/// A capture that a diagnosis gets to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// Index of [`VANTAGES`].
    pub vantage: usize,
    /// What happened to it.
    pub damage: Damage,
}

impl View {
    /// Those of a case: undamaged from everywhere, and each damage at one place that the case's name chooses.
    pub fn of(name: &str) -> Vec<Self> {
        let clean = (0..VANTAGES.len()).map(|vantage| Self { vantage, damage: Damage::Clean });
        let damaged = Damage::ALL[1..].iter().map(|&damage| {
            let mut rng = Rng::named(0, &format!("{name}/{}", damage.name()));
            Self { vantage: rng.below(VANTAGES.len() as u64) as usize, damage }
        });
        clean.chain(damaged).collect()
    }

    /// `client/clean`.
    pub fn name(self) -> String {
        format!("{}/{}", VANTAGES[self.vantage], self.damage.name())
    }

    /// The capture.
    pub fn capture(self, kept: &Kept) -> Vec<u8> {
        let (server, seed) = (kept.truth.directions[0].to, kept.truth.case.seed);
        let [client, _, other] = &kept.captures;
        match self.damage {
            Damage::Merged => merged([client, other], server, seed),
            damage => damage.apply(&kept.captures[self.vantage], server, seed),
        }
    }
}

/// What came out for one capture.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Name of the case with its repetition.
    pub case: String,
    /// `client/clean`.
    pub view: String,
    /// Kept out of tuning.
    pub kept_out: bool,
    /// Damaged.
    pub damaged: bool,
    /// Holds of 11 ms or longer that the capture shows, and how many of them were found.
    pub holds: u64,
    /// Found among them.
    pub found: u64,
    /// Holds claimed, and how many of the claims were right.
    pub claims: u64,
    /// Right among them.
    pub right: u64,
    /// Whether writes were held; `None` where it is too close to be asked.
    pub stalled: Option<bool>,
    /// What the diagnosis says; `None`: it cannot tell.
    pub verdict: Option<bool>,
    /// How sure.
    pub confidence: f64,
    /// By direction with data.
    pub directions: Vec<DirectionOutcome>,
    /// Statements of policies: how sure, and whether right.
    pub statements: Vec<(f64, bool)>,
    /// Claims of holds: how likely, and whether right.
    pub likely: Vec<(f64, bool)>,
}

/// One direction of a capture.
#[derive(Clone, Debug, Serialize)]
pub struct DirectionOutcome {
    /// Whether writes were held, as for the capture.
    pub stalled: Option<bool>,
    /// Whether the diagnosis lists stalls.
    pub said: bool,
    /// Seconds held: from holds of 11 ms or longer, and from all of 9 ms or longer.
    pub seconds: [f64; 2],
    /// What the diagnosis says.
    pub seconds_said: f64,
    /// Between what it says they are.
    pub between: [f64; 2],
    /// Seconds of holds that were found, as they were and as said; of those not found; and said of what was none.
    pub parts: [f64; 4],
}

impl DirectionOutcome {
    /// Whether the seconds are within the bounds and a fifth more.
    pub fn seconds_right(&self) -> bool {
        let [low, high] = self.seconds;
        (low * 0.8..=high * 1.2).contains(&self.seconds_said)
    }

    /// Whether they are between what the diagnosis says.
    pub fn is_covered(&self) -> bool {
        let [low, high] = self.seconds;
        self.between[0] <= high && low <= self.between[1]
    }

    /// Whether it says so exactly that it must be right: the bounds are within a fifth of the seconds.
    pub fn is_exact(&self) -> bool {
        let said = self.seconds_said;
        self.said && self.between[0] >= said * 0.8 && self.between[1] <= said * 1.2
    }

    /// How far apart the bounds are, of the seconds.
    pub fn width(&self) -> f64 {
        (self.between[1] - self.between[0]) / self.seconds_said.max(1e-9)
    }
}

/// Diagnoses one capture of a case and judges it.
pub fn judge(kept: &Kept, view: View) -> Result<Outcome, String> {
    let capture = view.capture(kept);
    let mut reader = CaptureReader::new(&capture[..]).map_err(|error| error.to_string())?;
    let diagnosis = diagnose_reader(&mut reader, &Options::default(), |_| ())
        .map_err(|error| error.to_string())?;
    let json = diagnosis.to_json().map_err(|error| error.to_string())?;
    let json: Value = serde_json::from_str(&json).map_err(|error| error.to_string())?;
    let shown = Shown::of(&capture)?;
    let slack = 2.0 * view.damage.error_ms();
    let mut outcome = Outcome {
        case: kept
            .folder
            .file_name()
            .map_or(String::new(), |name| name.to_string_lossy().into_owned()),
        view: view.name(),
        kept_out: is_kept_out(&kept.truth.case.name),
        damaged: view.damage != Damage::Clean,
        holds: 0,
        found: 0,
        claims: 0,
        right: 0,
        stalled: Some(false),
        verdict: json["verdict"]["stalled"].as_bool(),
        confidence: json["verdict"]["confidence"].as_f64().unwrap_or(0.0),
        directions: Vec::new(),
        statements: Vec::new(),
        likely: Vec::new(),
    };
    let mut longest = 0.0_f64;
    for truth in &kept.truth.directions {
        outcome.direction(truth, &diagnosis, &shown, slack);
        let since = shown.first;
        let held = truth.departures.iter().filter(|one| one.left >= since);
        longest = held.map(|one| truth.held_ms(one)).fold(longest, f64::max);
    }
    outcome.stalled = stalled(longest);
    if let (Some(verdict), Some(stalled)) = (outcome.verdict, outcome.stalled) {
        outcome.statements.push((outcome.confidence, verdict == stalled));
    }
    Ok(outcome)
}

fn stalled(longest_ms: f64) -> Option<bool> {
    (!(SURELY_NOT_MS..HOLD_MS).contains(&longest_ms)).then_some(longest_ms >= HOLD_MS)
}

impl Outcome {
    fn direction(&mut self, truth: &Direction, diagnosis: &Diagnosis, shown: &Shown, slack: f64) {
        let from = truth.from.to_string();
        let segments = shown.from.get(&from);
        let visible = |offset: u64| {
            segments.is_some_and(|all| {
                all.iter()
                    .any(|(start, end)| (truth.place(*start)..truth.place(*end)).contains(&offset))
            })
        };
        let held: Vec<_> =
            truth.departures.iter().filter(|one| truth.held_ms(one) >= SURELY_NOT_MS).collect();
        let seen: Vec<_> =
            held.iter().filter(|one| one.left >= shown.first && visible(one.offset)).collect();
        let of_flow = diagnosis.flows.iter().flat_map(|flow| &flow.directions);
        let said: Vec<_> = of_flow.filter(|direction| direction.from == from).collect();
        let (mut found, mut parts) = (BTreeSet::new(), [0.0; 4]);
        for claim in said.iter().flat_map(|direction| &direction.held) {
            if claim.probability < 0.5 {
                continue;
            }
            let Some((start, end)) = shown.by_frame.get(&claim.frame) else { continue };
            let range = truth.place(*start)..truth.place(*end);
            let its = truth.departures.iter().filter(|one| range.contains(&one.offset));
            let longest = its.clone().map(|one| truth.held_ms(one)).fold(0.0, f64::max);
            let right = longest >= SURELY_NOT_MS - slack;
            let fresh = its.clone().filter(|one| !found.contains(&one.offset));
            let fresh = fresh.map(|one| truth.held_ms(one)).filter(|ms| *ms >= SURELY_NOT_MS);
            parts[0] += fresh.sum::<f64>() / 1e3;
            parts[if right { 1 } else { 3 }] += claim.wait_ms[1] / 1e3;
            found.extend(its.map(|one| one.offset));
            self.claims += 1;
            self.right += u64::from(right);
            self.likely.push((claim.probability, right));
        }
        let long = || seen.iter().filter(|one| truth.held_ms(one) >= HOLD_MS);
        self.holds += long().count() as u64;
        self.found += long().filter(|one| found.contains(&one.offset)).count() as u64;
        let sum = |least: f64| {
            let counted = seen.iter().map(|one| truth.held_ms(one)).filter(|ms| *ms >= least);
            counted.fold(0.0, |sum, ms| sum + ms / 1e3)
        };
        let missed = seen.iter().filter(|one| !found.contains(&one.offset));
        parts[2] = missed.map(|one| truth.held_ms(one)).sum::<f64>() / 1e3;
        if !truth.writes.is_empty() && segments.is_some() {
            let longest = seen.iter().map(|one| truth.held_ms(one)).fold(0.0, f64::max);
            self.directions.push(DirectionOutcome {
                stalled: stalled(longest),
                said: said.iter().any(|direction| !direction.stalls.is_empty()),
                seconds: [sum(HOLD_MS), sum(SURELY_NOT_MS)],
                seconds_said: said.iter().fold(0.0, |sum, direction| sum + direction.stalled_s()),
                between: said
                    .iter()
                    .flat_map(|direction| &direction.stalls)
                    .fold([0.0; 2], |[low, high], stall| {
                        [low + stall.seconds_lower, high + stall.seconds_upper]
                    }),
                parts,
            });
        }
        self.policies(truth, &said);
    }

    /// What is said of Nagle's algorithm.
    fn policies(&mut self, truth: &Direction, said: &[&Diagnosed]) {
        for direction in said {
            let state = direction.nagle.state;
            let right = match truth.nagle {
                Nagle::On => state == NagleState::On,
                Nagle::Off => state == NagleState::Off,
                Nagle::Switched => continue,
            };
            if state != NagleState::Unknown {
                self.statements.push((direction.nagle.confidence, right));
            }
        }
    }
}

impl Direction {
    /// The place in the stream of a sequence number.
    fn place(&self, seq: u32) -> u64 {
        Seq(seq).distance(Seq(self.first)).max(0) as u64
    }
}

/// What of the connection a capture shows.
struct Shown {
    /// First stamp, ns.
    first: u64,
    /// By sender: the sequence numbers of each segment with payload.
    from: BTreeMap<String, Vec<(u32, u32)>>,
    /// By frame.
    by_frame: BTreeMap<u64, (u32, u32)>,
}

impl Shown {
    fn of(capture: &[u8]) -> Result<Self, String> {
        let mut reader = CaptureReader::new(capture).map_err(|error| error.to_string())?;
        let mut shown = Self { first: u64::MAX, from: BTreeMap::new(), by_frame: BTreeMap::new() };
        while let Some(frame) = reader.next_frame().map_err(|error| error.to_string())? {
            shown.first = shown.first.min(frame.time.as_nanos());
            let ip =
                if frame.link == LinkType::LINUX_SLL { &frame.bytes[16..] } else { frame.bytes };
            if let Some((from, start, end)) = head(ip).filter(|(_, start, end)| start != end) {
                shown.from.entry(from).or_default().push((start, end));
                shown.by_frame.insert(frame.number, (start, end));
            }
        }
        Ok(shown)
    }
}

/// Sender and sequence numbers of a TCP segment in IPv4 of which the headers are at hand.
fn head(ip: &[u8]) -> Option<(String, u32, u32)> {
    let header = usize::from(ip.first()? & 15) * 4;
    let length = u32::from(u16::from_be_bytes([*ip.get(2)?, *ip.get(3)?]));
    let tcp = ip.get(header..header + 20)?;
    let payload = length - header as u32 - u32::from(tcp[12] >> 4) * 4;
    let seq = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
    let from = format!(
        "{}.{}.{}.{}:{}",
        ip[12],
        ip[13],
        ip[14],
        ip[15],
        u16::from_be_bytes([tcp[0], tcp[1]])
    );
    Some((from, seq, seq.wrapping_add(payload)))
}

/// Sums over captures.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sums {
    /// Captures.
    pub captures: u64,
    /// Holds shown, found, claimed, rightly claimed.
    pub holds: [u64; 4],
    /// Verdicts asked: right, wrong, cannot tell.
    pub verdicts: [u64; 3],
    /// Wrong ones by kind: stall denied, stall invented.
    pub wrong: [u64; 2],
    /// Directions asked: right, wrong.
    pub directions: [u64; 2],
    /// Stalled directions: seconds right, wrong.
    pub seconds: [u64; 2],
    /// Stalled directions of which stalls were found: seconds within the interval that is said, all of them.
    pub covered: [u64; 2],
    /// Those of them with bounds within a fifth: seconds right, all of them.
    pub exact: [u64; 2],
    /// How far apart the bounds are, of the seconds, each.
    pub widths: Vec<f64>,
    /// By least confidence (0.5, 0.8, 0.95, 0.99): statements, right ones.
    pub statements: [[u64; 2]; 4],
    /// The same for claims of single holds.
    pub likely: [[u64; 2]; 4],
}

/// Confidence from which statements are counted.
pub const LEVELS: [f64; 4] = [0.5, 0.8, 0.95, 0.99];

impl Sums {
    /// Adds one capture's outcome.
    pub fn add(&mut self, outcome: &Outcome) {
        self.captures += 1;
        for (sum, part) in
            self.holds.iter_mut().zip([outcome.holds, outcome.found, outcome.claims, outcome.right])
        {
            *sum += part;
        }
        if let Some(stalled) = outcome.stalled {
            match outcome.verdict {
                None => self.verdicts[2] += 1,
                Some(said) if said == stalled => self.verdicts[0] += 1,
                Some(said) => {
                    self.verdicts[1] += 1;
                    self.wrong[usize::from(said)] += 1;
                }
            }
        }
        for direction in &outcome.directions {
            if let Some(stalled) = direction.stalled {
                self.directions[usize::from(stalled != direction.said)] += 1;
                if stalled {
                    self.seconds[usize::from(!direction.seconds_right())] += 1;
                    self.covered[0] += u64::from(direction.said && direction.is_covered());
                    self.covered[1] += u64::from(direction.said);
                    let exact = u64::from(direction.is_exact());
                    self.exact[0] += exact * u64::from(direction.seconds_right());
                    self.exact[1] += exact;
                    self.widths.extend(direction.said.then(|| direction.width()));
                }
            }
        }
        let count = |levels: &mut [[u64; 2]; 4], statements: &[(f64, bool)]| {
            for (sure, right) in statements {
                for (level, sums) in LEVELS.iter().zip(levels.iter_mut()) {
                    if sure >= level {
                        sums[0] += 1;
                        sums[1] += u64::from(*right);
                    }
                }
            }
        };
        count(&mut self.statements, &outcome.statements);
        count(&mut self.likely, &outcome.likely);
    }

    /// Recall and precision of holds.
    pub fn recall_and_precision(&self) -> [f64; 2] {
        let [holds, found, claims, right] = self.holds.map(|count| count as f64);
        [found / holds, right / claims]
    }

    /// As a row of a Markdown table behind `name`.
    pub fn row(&self, name: &str) -> String {
        let share = |[part, all]: [u64; 2]| {
            if all == 0 {
                "-".to_owned()
            } else {
                format!("{:.1} %", 100.0 * part as f64 / all as f64)
            }
        };
        let [holds, found, claims, right] = self.holds;
        let [ok, wrong, open] = self.verdicts;
        let sure = |levels: &[[u64; 2]; 4]| {
            let [all, right] = levels[2];
            format!("{} of {all}", share([right, all]))
        };
        let mut widths = self.widths.clone();
        widths.sort_by(f64::total_cmp);
        let width = widths.get(widths.len() / 2).map_or("-".to_owned(), |all| format!("{all:.2}"));
        format!(
            "| {name} | {} | {} of {holds} | {} of {claims} | {} of {} | {open} | {}, {} | {} | {} | {} of {} | {} | {width} | {} | {} |",
            self.captures,
            share([found, holds]),
            share([right, claims]),
            share([ok, ok + wrong + open]),
            ok + wrong + open,
            self.wrong[0],
            self.wrong[1],
            share([self.directions[0], self.directions[0] + self.directions[1]]),
            share([self.seconds[0], self.seconds[0] + self.seconds[1]]),
            share(self.exact),
            self.exact[1],
            share(self.covered),
            sure(&self.statements),
            sure(&self.likely),
        )
    }
}

/// The head of the table whose rows [`Sums::row`] makes.
pub const HEAD: &str = "\
| captures of | n | recall of holds | precision | verdict right | cannot tell | denied, invented | directions right | seconds right | where said within a fifth | within the interval | its width | statements >= 95 % right | claims >= 95 % right |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|";

/// What counts as a hold, ms.
const HOLD_MS: f64 = 11.0;
/// What is shorter is none.
const SURELY_NOT_MS: f64 = 9.0;
