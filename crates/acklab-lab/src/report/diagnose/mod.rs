//! The report of a diagnosis: what is wrong, for a reader who has never heard of Nagle.
//!
//! The order is that of the questions a reader has: is something wrong and what do I change (the
//! verdict), what does it look like (one hold packet by packet, the stream over time, the added
//! delay, the ACK delays), which connections are concerned (the table, in which a row can be chosen
//! to see its figures), what do the words mean, and how was this made. Everything shown is in the
//! JSON as well; nothing is computed here but the drawing.

mod figures;

use std::iter;

use acklab_trace::Diagnosis;
use acklab_trace::diagnosis::{
    Cause, Cure, Direction, Finding, Flow, Mechanism, NagleState, PolicyKind, Stall, WaitCause,
};

use super::html::ReportError;
use super::ladder::Ladder;
use super::page::{Block, Fix, Page, Section, Tone, Verdict};
use super::table::{Column, Table, Unit, grouped, measure};

/// The report as one HTML file. `file` names the capture as the user did; `conditions` are the
/// command, version and the like as (name, value).
pub fn diagnose_html(
    diagnosis: &Diagnosis,
    file: &str,
    conditions: Vec<(String, String)>,
) -> Result<String, ReportError> {
    page(diagnosis, file, conditions).to_html()
}

/// The report as a page, for callers that add to it.
pub fn page(diagnosis: &Diagnosis, file: &str, conditions: Vec<(String, String)>) -> Page {
    let capture = &diagnosis.capture;
    let directions = worst_first(diagnosis);
    let shown = &directions[..directions.len().min(DIRECTIONS_SHOWN)];
    let mut sections: Vec<Section> =
        shown.iter().map(|(flow, direction)| evidence(diagnosis, flow, direction)).collect();
    let connections = connections(diagnosis, &directions);
    sections.push(Section::new("All connections", vec![connections.into()]));
    if !diagnosis.causes.is_empty() {
        let words = |cause: &Cause| Block::Text(format!("{} {}", cause.proof, cause.remedy));
        let causes = diagnosis.causes.iter().map(words).collect();
        sections.push(Section::new("What else took time, each by its proof", causes));
    }
    if let Some(pair) = &diagnosis.pair {
        let sentences = pair.sentences().into_iter().map(Block::Text).collect();
        sections.push(Section::new("What both captures say together", sentences));
    }
    sections.extend(diagnosis.cure.as_ref().and_then(remedies));
    let limits = [&diagnosis.verdict.limits[..], &capture.notes[..]].concat();
    if !limits.is_empty() {
        let limits = limits.into_iter().map(Block::Text).collect();
        sections.push(Section::new("What this capture cannot tell", limits));
    }
    Page {
        title: "Are messages held back in the sender?".into(),
        subject: format!(
            "{file}: {} packets in {} s, {} TCP connection{}",
            grouped(capture.packets),
            measure(capture.duration_s),
            grouped(capture.connections),
            if capture.connections == 1 { "" } else { "s" },
        ),
        verdict: verdict(diagnosis),
        sections,
        terms: vec![
            "nagle",
            "delayed-ack",
            "interaction",
            "hold",
            "rtt",
            "mss",
            "time-sequence",
            "cdf",
            "quantile",
        ],
        conditions,
    }
}

/// The ladder of the worst hold, for a page of another kind: a simulated run that is captured and
/// diagnosed draws itself this way.
pub fn ladder(diagnosis: &Diagnosis) -> Option<Ladder> {
    worst_first(diagnosis)
        .into_iter()
        .find_map(|(flow, direction)| figures::draw_ladder(flow, direction))
}

/// Every direction with data, the one that lost most time first; among the rest the busiest first.
fn worst_first(diagnosis: &Diagnosis) -> Vec<(&Flow, &Direction)> {
    let mut directions: Vec<(&Flow, &Direction)> = diagnosis
        .flows
        .iter()
        .flat_map(|flow| flow.directions.iter().map(move |direction| (flow, direction)))
        .filter(|(_, direction)| direction.segments > 0)
        .collect();
    directions.sort_by(|(_, a), (_, b)| {
        stalled_s(b).total_cmp(&stalled_s(a)).then(b.bytes.cmp(&a.bytes))
    });
    directions
}

fn verdict(diagnosis: &Diagnosis) -> Verdict {
    let verdict = &diagnosis.verdict;
    let worst = verdict.findings.first();
    let (tone, headline) = match worst {
        Some(finding) if ended(diagnosis, finding) => (Tone::Neutral, ended_headline(finding)),
        Some(finding) => (Tone::Fault, headline(finding)),
        None if diagnosis.capture.tcp_segments == 0 => {
            (Tone::Unsure, "There is no TCP in this capture to judge.".to_owned())
        }
        None => not_held(diagnosis),
    };
    let mut explanation = vec![verdict.summary.clone()];
    explanation.extend(worst.map(|finding| finding.explanation.clone()));
    explanation.extend(diagnosis.cure.as_ref().map(Cure::sentence));
    if !verdict.decides.is_empty() {
        explanation.push(format!("What would decide it: {}.", verdict.decides.join("; ")));
    }
    if let more @ 1.. = verdict.findings.len().saturating_sub(1) {
        explanation.push(format!(
            "{more} more direction{} held back; choose {} in the table below.",
            if more == 1 { " is" } else { "s are" },
            if more == 1 { "it" } else { "one" },
        ));
    }
    Verdict { tone, headline, explanation, fixes: worst.map(fixes).unwrap_or_default() }
}

/// Without a hold: the verdict, and where to look instead: a reader who waits is not sent away with a "no".
fn not_held(diagnosis: &Diagnosis) -> (Tone, String) {
    let (tone, verdict) = if diagnosis.verdict.stalled.is_none() {
        (Tone::Unsure, "This capture cannot tell whether anything was held back")
    } else {
        (Tone::Fine, "No. Nothing was held back by Nagle’s algorithm here")
    };
    match diagnosis.instead() {
        Some(cause) if tone == Tone::Fine => (Tone::Neutral, format!("{verdict}; but {cause}.")),
        Some(cause) => (tone, format!("{verdict}; but {cause}.")),
        None => (tone, format!("{verdict}.")),
    }
}

/// The verdict in one sentence, without ports or figures.
fn headline(finding: &Finding) -> String {
    let (mut from, mut to) = (host(&finding.from), host(&finding.to));
    if from == to {
        (from, to) = (&finding.from, &finding.to);
    }
    match finding.mechanism {
        Mechanism::DelayedAckTimer => format!(
            "Yes. {from} holds messages back because {to} acknowledges late: Nagle’s algorithm meets \
             a delayed ACK."
        ),
        Mechanism::MssFilled => format!(
            "Yes. {from} holds messages back until they fill a whole packet: Nagle’s algorithm, with \
             no acknowledgment to release them."
        ),
        Mechanism::AckClocked => format!(
            "Yes. {from} holds messages back until {to} acknowledges the one before: Nagle’s \
             algorithm adds a round trip."
        ),
    }
}

/// Whether the sender switched Nagle's algorithm off after the holds.
fn ended(diagnosis: &Diagnosis, finding: &Finding) -> bool {
    let flow = diagnosis.flows.iter().find(|flow| flow.id == finding.flow);
    let direction = flow
        .and_then(|flow| flow.directions.iter().find(|direction| direction.from == finding.from));
    direction.is_some_and(|direction| direction.nagle.state == NagleState::Off)
}

fn ended_headline(finding: &Finding) -> String {
    format!(
        "Only at first: {} held messages back, and then switched Nagle’s algorithm off.",
        host(&finding.from)
    )
}

fn fixes(finding: &Finding) -> Vec<Fix> {
    [
        ("sender", &finding.from, &finding.sender_fix),
        ("receiver", &finding.to, &finding.receiver_fix),
    ]
    .into_iter()
    .filter(|(_, _, changes)| !changes.is_empty())
    .map(|(side, address, changes)| Fix {
        host: format!("On the {side}, {}", host(address)),
        changes: changes.clone(),
    })
    .collect()
}

/// What is known of one direction, with its figures.
fn evidence(diagnosis: &Diagnosis, flow: &Flow, direction: &Direction) -> Section {
    let mut blocks = Vec::new();
    let finding = diagnosis
        .verdict
        .findings
        .iter()
        .skip(1)
        .find(|finding| finding.flow == flow.id && finding.from == direction.from);
    if let Some(finding) = finding {
        blocks.push(Block::Text(format!("{}. {}", finding.headline, finding.explanation)));
        for fix in fixes(finding) {
            blocks.push(Block::Text(format!("{}: {}", fix.host, fix.changes.join(" Or: "))));
        }
    }
    blocks.extend(figures::ladder(flow, direction));
    if !direction.stalls.is_empty() {
        blocks.push(Block::Table(stalls(direction)));
    }
    blocks.extend(figures::close_up(direction));
    blocks.extend(figures::overview(direction));
    blocks.extend(figures::added_delay(direction));
    blocks.extend(figures::ack_delay(direction));
    blocks.push(Block::Facts(facts(direction)));
    let evidence = [&direction.nagle.evidence[..], &direction.receiver_policy.evidence].concat();
    if !evidence.is_empty() {
        blocks.push(Block::Text(format!("How this is known: {}.", evidence.join("; "))));
    }
    Section {
        title: format!("From {} to {}", direction.from, direction.to),
        choice: Some(key(flow, direction)),
        blocks,
    }
}

/// What each remedy would have done to the direction that was held longest.
fn remedies(cure: &Cure) -> Option<Section> {
    let told = cure.prediction.as_ref()?;
    let names = told.remedies.iter().map(|tried| tried.words.clone());
    let names = iter::once("as measured".to_owned()).chain(names);
    let delays =
        || iter::once(&told.measured).chain(told.remedies.iter().map(|tried| &tried.delays));
    let saved = told.remedies.iter().map(|tried| Some(tried.saved_s));
    let table = Table::new(
        format!("Delay from write to departure, {} to {}.", cure.from, cure.to),
        vec![
            Column::text("Remedy").over(names, |name| name),
            Column::number("p50", "ms").over(delays(), |delays| delays.p50_ms),
            Column::number("p95", "ms").over(delays(), |delays| delays.p95_ms),
            Column::number("Mean", "ms").over(delays(), |delays| delays.mean_ms),
            Column::number("Saved", "s").over(iter::once(None).chain(saved), |saved| saved),
        ],
    );
    let ground = Block::Text(told.ground());
    Some(Section::new("What each remedy would have done", vec![table.into(), ground]))
}

fn facts(direction: &Direction) -> Vec<(String, String)> {
    let ms = |value: f64| format!("{} ms", measure(value));
    let mut facts = vec![
        ("Data".to_owned(), format!("{} bytes", grouped(direction.bytes))),
        ("Segments with data".to_owned(), grouped(direction.segments)),
        ("Nagle’s algorithm at the sender".to_owned(), nagle(direction)),
        ("The receiver acknowledges".to_owned(), receiver(direction)),
    ];
    let mut add = |name: &str, value: Option<String>| {
        facts.extend(value.map(|value| (name.to_owned(), value)));
    };
    add(
        "Round trip (least, p50, p95)",
        direction.rtt_ms.map(|rtt| [rtt.min, rtt.p50, rtt.p95].map(measure).join(", ") + " ms"),
    );
    add("Segments per acknowledgment", direction.acks.segments_per_ack.map(measure));
    add("Pure acknowledgments", Some(grouped(direction.acks.pure)));
    add("Message size", direction.writes.message_bytes.map(|bytes| format!("{bytes} bytes")));
    add("Time between messages", direction.writes.period_ms.map(ms));
    add("Protocol", direction.writes.protocol.map(str::to_owned));
    add("Sent again", (direction.retransmissions > 0).then(|| grouped(direction.retransmissions)));
    add(
        "Receive window closed",
        (direction.zero_windows > 0).then(|| grouped(direction.zero_windows)),
    );
    for wait in &direction.waits {
        let what = match wait.cause {
            WaitCause::Application => "Silent because the application wrote nothing",
            WaitCause::Window => "Waited for the receiver’s window",
            WaitCause::Congestion => "Waited for the congestion window",
            WaitCause::LossRecovery => "Waited for lost packets to be repaired",
        };
        add(
            what,
            Some(format!("{} times, {} s in all", grouped(wait.count), measure(wait.seconds))),
        );
    }
    facts
}

fn nagle(direction: &Direction) -> String {
    let nagle = &direction.nagle;
    let state = match nagle.state {
        NagleState::On => "on",
        NagleState::Off => "off",
        NagleState::Unknown => return "cannot be told from this traffic".into(),
    };
    let variant = nagle.variant.map_or(String::new(), |variant| format!(", {variant} variant"));
    format!("{state}{variant} (probability {})", percent(nagle.confidence))
}

fn receiver(direction: &Direction) -> String {
    let policy = &direction.receiver_policy;
    let timer = policy.timer_ms.map_or(String::new(), |timer| format!(" {} ms", measure(timer)));
    let how = match policy.kind {
        PolicyKind::Fixed => format!("{timer} after the data"),
        PolicyKind::Tick => format!("at a free-running tick of{timer}"),
        PolicyKind::Adaptive => format!("{timer} or more after the data, adaptively"),
        PolicyKind::Immediate => "at once".into(),
        PolicyKind::Unknown => return "in a way that cannot be told from this traffic".into(),
    };
    let profile = policy.profile.map_or(String::new(), |profile| format!(", like {profile}"));
    format!(
        "{}{profile} (weight of the evidence: {})",
        how.trim_start(),
        percent(policy.confidence)
    )
}

fn stalls(direction: &Direction) -> Table {
    let stalls = &direction.stalls;
    let frames = |stall: &Stall| {
        let worst = stall.worst_frames.iter().take(5).map(ToString::to_string);
        worst.collect::<Vec<_>>().join(", ")
    };
    let delay = |name: &str, pick: fn(&Stall) -> f64| Column::number(name, "ms").over(stalls, pick);
    let table = Table::new(
        "Messages held back, by what let them go at last.",
        vec![
            Column::text("Released by").over(stalls, |stall| mechanism(stall.mechanism)),
            Column::number("Holds", "").over(stalls, |stall| stall.count),
            Column::number("Time lost", "s").over(stalls, |stall| stall.seconds),
            Column::number("Share of time", Unit::percent("%"))
                .over(stalls, |stall| stall.share_of_time),
            delay("Added delay, p50", |stall| stall.added_delay_ms.p50),
            delay("p95", |stall| stall.added_delay_ms.p95),
            delay("Worst", |stall| stall.added_delay_ms.max),
            Column::text("Worst frames").over(stalls, frames),
        ],
    );
    match direction.small_holds {
        0 => table,
        few => {
            table.note(format!("Holds shorter than 10 ms are not counted here: {}.", grouped(few)))
        }
    }
}

fn mechanism(mechanism: Mechanism) -> &'static str {
    match mechanism {
        Mechanism::DelayedAckTimer => "the receiver’s delayed-ACK timer",
        Mechanism::MssFilled => "enough data to fill a packet",
        Mechanism::AckClocked => "an ordinary acknowledgment",
    }
}

fn connections(diagnosis: &Diagnosis, directions: &[(&Flow, &Direction)]) -> Table {
    let shown = &directions[..directions.len().min(ROWS_SHOWN)];
    let rows = || shown.iter().map(|(_, direction)| *direction);
    let columns = vec![
        Column::text("From").over(rows(), |direction| direction.from.as_str()),
        Column::text("To").over(rows(), |direction| direction.to.as_str()),
        Column::number("Data", "bytes").over(rows(), |direction| direction.bytes),
        Column::number("Segments", "").over(rows(), |direction| direction.segments),
        Column::number("RTT, p50", "ms")
            .over(rows(), |direction| direction.rtt_ms.map(|rtt| rtt.p50)),
        Column::text("Nagle").over(rows(), |direction| match direction.nagle.state {
            NagleState::On => "on",
            NagleState::Off => "off",
            NagleState::Unknown => "–",
        }),
        Column::number("Holds", "").over(rows(), held),
        Column::number("Time lost", "s").over(rows(), stalled_s),
        Column::number("Added delay, p95", "ms").over(rows(), |direction| {
            (held(direction) > 0).then_some(direction.added_delay_ms.p95)
        }),
    ];
    let choice = |(index, (flow, direction)): (usize, &(&Flow, &Direction))| {
        (index < DIRECTIONS_SHOWN).then(|| key(flow, direction))
    };
    let table = Table::new(
        "Both directions of each connection, the most stalled first. Choose a row to see its figures; click a \
         heading to sort.",
        columns,
    )
    .choose(shown.iter().enumerate().map(choice))
    .flag(rows().map(|direction| held(direction) > 0));
    match left_out(diagnosis, directions.len()) {
        notes if notes.is_empty() => table,
        notes => table.note(notes.join(" ")),
    }
}

/// What the table and the figures do not show.
fn left_out(diagnosis: &Diagnosis, directions: usize) -> Vec<String> {
    let mut notes = Vec::new();
    if directions > DIRECTIONS_SHOWN {
        notes.push(format!("Figures are shown for the first {DIRECTIONS_SHOWN} rows."));
    }
    let rows = directions.saturating_sub(ROWS_SHOWN) as u64;
    if rows > 0 || diagnosis.flows_not_listed > 0 {
        notes.push(format!(
            "Left out: {} directions here, and {} connections that were counted but not kept in \
             detail.",
            grouped(rows),
            grouped(diagnosis.flows_not_listed)
        ));
    }
    notes
}

/// How often the direction's sender held data back.
fn held(direction: &Direction) -> u64 {
    direction.stalls.iter().map(|stall| stall.count).sum()
}

fn stalled_s(direction: &Direction) -> f64 {
    // An empty sum is -0.0.
    direction.stalls.iter().map(|stall| stall.seconds).sum::<f64>() + 0.0
}

fn key(flow: &Flow, direction: &Direction) -> String {
    format!("{}: {} > {}", flow.id, direction.from, direction.to)
}

/// An endpoint without its port.
fn host(endpoint: &str) -> &str {
    endpoint
        .rsplit_once(':')
        .map_or(endpoint, |(host, _)| host.trim_start_matches('[').trim_end_matches(']'))
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Directions with figures: so many keep the file below a megabyte.
const DIRECTIONS_SHOWN: usize = 12;
/// Rows of the table of connections.
const ROWS_SHOWN: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::ladder::Side;
    use crate::report::plot::{Cdf, Histogram, Plot};

    fn demo(name: &str) -> Diagnosis {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../demo").join(name);
        acklab_trace::diagnose(&path, &acklab_trace::Options::default(), |_| {}).expect(name)
    }

    #[test]
    fn a_stalled_capture_names_both_hosts_and_draws_the_hold() {
        let diagnosis = demo("nagle-linux.pcapng");
        let page = page(&diagnosis, "nagle-linux.pcapng", vec![]);
        assert_eq!(page.verdict.tone, Tone::Fault);
        assert!(page.verdict.headline.starts_with("Yes. 127.0.0.1:"), "{}", page.verdict.headline);
        let hosts: Vec<&str> = page.verdict.fixes.iter().map(|fix| fix.host.as_str()).collect();
        assert_eq!(hosts, ["On the sender, 127.0.0.1", "On the receiver, 127.0.0.1"]);
        let kinds = page.sections[0].blocks.iter().map(|block| match block {
            Block::Ladder(_) => 'l',
            Block::Figure(_) => 'f',
            Block::Table(_) => 't',
            Block::Facts(_) => 'd',
            Block::Text(_) => 'p',
        });
        assert_eq!(kinds.collect::<String>(), "ltffffdp");
        let ladder = ladder(&diagnosis).expect("a ladder");
        let held = ladder.holds.iter().find(|hold| hold.side == Side::Left).expect("a hold");
        assert!((39.0..49.0).contains(&(held.to_ms - held.from_ms)), "{held:?}");
    }

    #[test]
    fn a_clean_capture_is_told_so_without_a_remedy() {
        let page = page(&demo("nodelay-linux.pcapng"), "nodelay-linux.pcapng", vec![]);
        assert_eq!(page.verdict.tone, Tone::Fine);
        assert!(page.verdict.fixes.is_empty());
        let ladders = page.sections.iter().flat_map(|section| &section.blocks);
        assert_eq!(ladders.filter(|block| matches!(block, Block::Ladder(_))).count(), 0);
    }

    /// `ipv6.pcap`: SYNs that a router says do not arrive cost 3 s, and no write is held. `dead.pcap`: they alone.
    #[test]
    fn a_headline_without_a_hold_says_where_to_look_instead() {
        for (name, tone, verdict) in
            [("ipv6", Tone::Neutral, "No. Nothing was"), ("dead", Tone::Unsure, "This capture")]
        {
            let diagnosis = demo(&format!("../crates/acklab-trace/tests/icmp/{name}.pcap"));
            let page = page(&diagnosis, name, vec![]);
            let headline = &page.verdict.headline;
            assert_eq!(page.verdict.tone, tone, "{headline}");
            assert!(headline.starts_with(verdict), "{headline}");
            assert!(headline.contains("; but packets to "), "{headline}");
            assert!(diagnosis.to_text().contains("Look at this instead: packets to "), "{name}");
        }
    }

    #[test]
    fn a_capture_of_many_connections_stays_small_and_says_what_it_leaves_out() {
        let mut diagnosis = demo("nagle-linux.pcapng");
        let flow = diagnosis.flows[0].clone();
        diagnosis.flows = vec![flow; 400];
        for (id, flow) in (0..).zip(&mut diagnosis.flows) {
            flow.id = id;
        }
        let page = page(&diagnosis, "many.pcapng", vec![]);
        let shown = page.sections.iter().filter(|section| section.choice.is_some()).count();
        assert_eq!(shown, DIRECTIONS_SHOWN);
        let html = page.to_html().expect("templates are sound");
        assert!(html.len() < 1_200_000, "{} bytes", html.len());
        assert!(html.contains("Left out: 300 directions"));
    }

    #[test]
    fn titles_of_axes_fit_a_phone() {
        let page = page(&demo("nagle-linux.pcapng"), "slow.pcapng", vec![]);
        let mut seen = 0;
        for block in page.sections.iter().flat_map(|section| &section.blocks) {
            let Block::Figure(figure) = block else { continue };
            let (Plot::Histogram(Histogram { x_title: title, .. })
            | Plot::Cdf(Cdf { x_title: title, .. })) = &figure.drawing
            else {
                continue;
            };
            assert!(title.len() <= 40, "{title}");
            seen += 1;
        }
        assert!(seen >= 2);
    }

    #[test]
    fn a_capture_without_tcp_is_not_called_clean() {
        let mut diagnosis = demo("nodelay-linux.pcapng");
        diagnosis.flows.clear();
        diagnosis.capture.tcp_segments = 0;
        let page = page(&diagnosis, "udp.pcapng", vec![]);
        assert_eq!(page.verdict.tone, Tone::Unsure);
        assert!(page.to_html().is_ok());
    }

    #[test]
    fn hosts_are_named_without_their_ports() {
        for (endpoint, name) in [
            ("192.168.0.60:4712", "192.168.0.60"),
            ("[2001:db8::1]:502", "2001:db8::1"),
            ("no port", "no port"),
        ] {
            assert_eq!(host(endpoint), name);
        }
    }
}
