//! The diagnosis of real captures, recorded by others, that were read packet by packet before.
//!
//! They lie where `ACKLAB_CAPTURES` says, else in `../shared/captures` beside the workspace; where
//! they are absent the tests say so and pass.

use std::path::{Path, PathBuf};

use acklab_trace::diagnosis::{Direction, Mechanism, NagleState};
use acklab_trace::{Diagnosis, Options, diagnose};

fn captures() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/captures");
    let folder = std::env::var_os("ACKLAB_CAPTURES").map_or(beside, PathBuf::from);
    folder.is_dir().then_some(folder)
}

fn read(file: &str) -> Option<Diagnosis> {
    let Some(folder) = captures() else {
        eprintln!("SKIPPED: no captures; set ACKLAB_CAPTURES to the folder that holds {file}");
        return None;
    };
    Some(diagnose(&folder.join(file), &Options::default(), |_| {}).expect("a capture"))
}

fn from<'a>(diagnosis: &'a Diagnosis, host: &str) -> &'a Direction {
    diagnosis
        .flows
        .iter()
        .flat_map(|f| &f.directions)
        .filter(|d| d.from.starts_with(host))
        .max_by_key(|d| d.segments)
        .expect("the host sends")
}

fn count(direction: &Direction, mechanism: Mechanism) -> u64 {
    direction.stalls.iter().filter(|s| s.mechanism == mechanism).map(|s| s.count).sum()
}

fn holds(diagnosis: &Diagnosis) -> u64 {
    diagnosis.flows.iter().flat_map(|f| &f.directions).map(Direction::holds).sum()
}

#[test]
fn of_two_phasor_units_the_one_with_nagle_is_found_and_the_other_is_clean() {
    let Some(diagnosis) = read("C37.118_2PMUsInSync_TCP.pcap") else { return };
    let held = from(&diagnosis, "192.168.0.60:");
    assert_eq!(held.nagle.state, NagleState::On);
    assert!((804..=881).contains(&held.holds()), "{}", held.holds());
    assert!((570..=610).contains(&count(held, Mechanism::DelayedAckTimer)));
    // An ACK at 20 to 26 ms lets 289 go; of a quarter of them the oldest byte waited less than 10 ms.
    assert!((210..=300).contains(&count(held, Mechanism::AckClocked)));
    assert_eq!(held.receiver_policy.profile, Some("linux"));
    assert_eq!(held.receiver_policy.timer_ms, Some(40.0));
    assert!((20.0..=30.1).contains(&held.stalled_s()), "{}", held.stalled_s());
    // The time stamps in the data give 18.6 and 38.6 ms.
    assert_eq!(held.added_delay_ms.source, "in_band");
    assert!(
        (held.added_delay_ms.p50 - 18.6).abs() < 0.2
            && (held.added_delay_ms.p95 - 38.6).abs() < 0.2
    );
    let estimate = held.added_delay_estimate_ms.expect("the general method too");
    assert_eq!(estimate.source, "period");
    assert!((estimate.p50 - 18.6).abs() < 2.0 && (estimate.p95 - 38.6).abs() < 2.0, "{estimate:?}");
    let clean = from(&diagnosis, "192.168.0.241:");
    assert_eq!((clean.nagle.state, clean.holds()), (NagleState::Off, 0));
}

#[test]
fn a_phasor_unit_whose_phase_feigns_holds_is_clean() {
    let Some(diagnosis) = read("C37.118_1PMU_TCP.pcap") else { return };
    assert_eq!(diagnosis.verdict.stalled, Some(false));
    assert_eq!(from(&diagnosis, "192.168.0.241:").nagle.state, NagleState::Off);
}

#[test]
fn a_server_that_answers_from_its_main_loop_is_no_stall() {
    let file = "open62541_client-server_mainloop-ActivateSession-diagInfo.pcap";
    let Some(diagnosis) = read(file) else { return };
    assert_eq!(holds(&diagnosis), 0, "{}", diagnosis.to_text());
}

#[test]
fn the_textbook_write_write_read_holds_every_second_write() {
    let Some(diagnosis) = read("rfc3030-bdat-multipart-chunked.pcap") else { return };
    let client = from(&diagnosis, "127.0.0.1:38718");
    assert_eq!(count(client, Mechanism::DelayedAckTimer), 27);
    assert_eq!(holds(&diagnosis), 27);
    assert!((client.stalled_s() - 1.16).abs() < 0.02);
    assert!((client.stalls[0].added_delay_ms.p50 - 43.9).abs() < 0.2);
    assert!(client.writes.split_writes >= 26);
    assert!(
        diagnosis.verdict.findings[0].sender_fix[0].starts_with("Write each message in one piece")
    );
}

#[test]
fn a_switch_that_holds_five_messages_is_found_from_the_other_side() {
    let Some(diagnosis) = read("of10_pf5240.pcap") else { return };
    let switch = from(&diagnosis, "172.16.1.101:");
    let stall = &switch.stalls[0];
    let mut frames = stall.worst_frames.clone();
    frames.sort_unstable();
    assert_eq!(frames, [19, 24, 29, 36, 41]);
    assert_eq!((holds(&diagnosis), stall.mechanism), (5, Mechanism::DelayedAckTimer));
    assert_eq!(from(&diagnosis, "172.16.1.51:").holds(), 0);
}

#[test]
fn an_upload_over_ssh_has_two_holds_before_no_delay_is_set() {
    let Some(diagnosis) = read("trace_tcp_medium_snap80.pcap") else { return };
    let upload = from(&diagnosis, "10.30.0.167:");
    let mut frames = upload.stalls[0].worst_frames.clone();
    frames.sort_unstable();
    assert_eq!((holds(&diagnosis), frames), (2, vec![12, 18]));
    let per_ack = upload.acks.segments_per_ack.expect("ACKs");
    assert!((per_ack / 7.24 - 1.0).abs() < 0.02, "{per_ack}");
}

#[test]
fn a_bulk_transfer_in_slow_start_is_no_stall() {
    let Some(diagnosis) = read("timestamp.pcap") else { return };
    assert_eq!(holds(&diagnosis), 0);
    let per_ack = from(&diagnosis, "192.168.2.20:").acks.segments_per_ack.expect("ACKs");
    assert!((per_ack / 3.78 - 1.0).abs() < 0.02, "{per_ack}");
}
