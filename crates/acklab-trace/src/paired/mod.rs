//! Two captures of the same connections, one at each end: what one leaves open, two decide.
//!
//! Each file is diagnosed by itself, and read once more for its segments ([`packets`]). Segments are found in both files
//! ([`matching`]), which bounds the clocks ([`clock`]) and shows where packets died; who had the turn when, [`waited`]
//! says. Of each connection the direction from the client is that of the client's capture, and the other that of the
//! server's: at the sender itself a hold and the ACK that ends it are seen as they are.

mod clock;
mod matching;
mod packets;
mod translated;
mod waited;

use std::path::{Path, PathBuf};

use crate::capture::CaptureError;
use crate::diagnose::{Options, assembled_pair, diagnose};
use crate::judged::{Diagnosis, Flow, Lost, Pair, Shared, Waited, Way};

use self::clock::Line;
use self::matching::{Match, Matched};
use self::packets::{Talk, Talks};

/// Diagnoses two captures of the same connections, the first taken at the clients. An error comes with the file that it is of.
pub fn diagnose_pair(
    client: &Path,
    server: &Path,
    options: &Options,
) -> Result<Diagnosis, (PathBuf, CaptureError)> {
    let read = |path: &Path| Ok((diagnose(path, options, |_| ())?, Talks::read(path)?));
    let of = |path: &Path| read(path).map_err(|error| (path.to_owned(), error));
    let (near_client, client_talks) = of(client)?;
    let (near_server, server_talks) = of(server)?;
    let mut talks = [client_talks, server_talks];
    let mut notes = notes(&talks);
    let mut ends = [near_client, near_server];
    let mut names = [client, server].map(|path| path.display().to_string());
    if is_the_other_way_round(&ends) {
        ends.reverse();
        talks.reverse();
        names.reverse();
        notes.push(format!(
            "{} was taken at the client: the files were given the other way round",
            names[0]
        ));
    }
    let [client_talks, server_talks] = talks;
    let shared: Vec<([Talk; 2], Matched)> = client_talks
        .into_pairs(server_talks)
        .into_iter()
        .map(|pair| {
            let matched = Matched::of(&pair);
            (pair, matched)
        })
        .filter(|(_, matched)| matched.pairs().next().is_some())
        .collect();
    let line = Line::of(shared.iter().flat_map(|(pair, matched)| matched.points(pair)));
    if shared.is_empty() {
        notes.push(
            "no packet stands in both files: are they of the same time, and does nothing between them end connections \
             and open its own (a proxy) or change their numbers?"
                .into(),
        );
    }
    let [near_client, near_server] = &ends;
    let mut connections: Vec<Shared> = shared
        .iter()
        .map(|(pair, matched)| describe(pair, matched, line.as_ref(), [near_client, near_server]))
        .collect();
    let waited = |shared: &Shared| shared.waited.client_s + shared.waited.server_s;
    connections.sort_by(|a, b| waited(b).total_cmp(&waited(a)));
    let [client_name, server_name] = names;
    let pair = Pair {
        client: client_name,
        server: server_name,
        clock: line.map(|line| line.clock()),
        connections,
        notes,
    };
    let [near_client, near_server] = ends;
    Ok(assembled_pair(near_client, near_server, pair))
}

fn notes(talks: &[Talks; 2]) -> Vec<String> {
    let full = talks.iter().filter(|talks| talks.is_full).count();
    let note =
        || format!("only the first {} segments of each file were compared", packets::PACKETS_MAX);
    if full > 0 { vec![note()] } else { Vec::new() }
}

/// Whether the first capture was taken at the servers and the second at the clients.
fn is_the_other_way_round(ends: &[Diagnosis; 2]) -> bool {
    let near = |diagnosis: &Diagnosis, end: usize| {
        let near = |flow: &&Flow| flow.captured_near.as_ref() == Some(&flow.endpoints[end]);
        diagnosis.flows.iter().filter(near).count()
    };
    let right = near(&ends[0], 0) + near(&ends[1], 1);
    near(&ends[0], 1) + near(&ends[1], 0) > right
}

fn describe(
    pair: &[Talk; 2],
    matched: &Matched,
    line: Option<&Line>,
    ends: [&Diagnosis; 2],
) -> Shared {
    let names = [0, 1].map(|capture| pair[capture].ends.map(|end| end.to_string()));
    let held = |end: usize| -> f64 {
        let directions = ends[end].flows.iter().flat_map(|flow| &flow.directions);
        let names = &names[end];
        let its = directions.filter(|one| one.from == names[end] && one.to == names[1 - end]);
        its.fold(0.0, |sum, one| sum + one.stalled_s())
    };
    let mut waited = line.map_or_else(Waited::default, |line| waited::of(pair, matched, line));
    waited.client_held_s = held(0).min(waited.client_s);
    waited.server_held_s = held(1).min(waited.server_s);
    let ways = [0, 1].map(|sender| way(pair, matched, sender, line));
    let [endpoints, translated] = names;
    let translated = (translated != endpoints).then_some(translated);
    Shared { endpoints, translated, ways, waited }
}

fn way(pair: &[Talk; 2], matched: &Matched, sender: usize, line: Option<&Line>) -> Way {
    let mut way = Way::default();
    let mut delays = Vec::new();
    for (index, found) in matched.fates(sender) {
        let packet = &pair[sender].packets[index];
        way.sent += 1;
        match found {
            Match::Arrived(other) => {
                way.arrived += 1;
                let arrival = &pair[1 - sender].packets[other];
                delays.extend(
                    line.map(|line| line.one_way_ms(packet.time, arrival.time, sender == 0)),
                );
            }
            Match::Lost if packet.len > 0 => {
                way.lost_data += 1;
                if way.lost.len() < LOST_LISTED {
                    way.lost.push(Lost { frame: packet.frame, bytes: packet.len });
                }
            }
            Match::Lost => way.lost_acks += 1,
            Match::Missed => way.missed += 1,
            Match::Outside => way.sent -= 1,
        }
    }
    let strays = matched.strays(sender);
    let far = &pair[1 - sender].packets;
    way.from_nowhere = strays.len() as u64;
    way.foreign_resets = strays.iter().filter(|&&index| far[index].is_reset()).count() as u64;
    way.delay_ms = line.and_then(|line| line.spread(&mut delays));
    way.ack_kept_ms = waited::acks_kept(&pair[1 - sender], 1 - sender);
    way
}

/// Lost segments that are listed.
const LOST_LISTED: usize = 10;
