//! Goal: an anonymised capture gives the diagnosis of the original, and nothing of the original's hosts and words is in it.
//! Method: anonymise every capture at hand and compare the diagnoses; search the output of real and of generated captures
//! for the addresses and the payload of the input.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use acklab_core::time::Time;
use acklab_trace::anonymise::{Account, Key, anonymise};
use acklab_trace::capture::{CaptureReader, CaptureWriter, LinkType, WriterOptions};
use acklab_trace::{Diagnosis, Options, diagnose, diagnose_reader};
use proptest::prelude::*;
use serde_json::Value;

fn captures() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in ["demo", "../shared/captures"] {
        let Ok(entries) = fs::read_dir(root.join(folder)) else { continue };
        let paths = entries.map(|entry| entry.expect("an entry").path());
        files.extend(
            paths.filter(|path| {
                path.extension().is_some_and(|end| end == "pcap" || end == "pcapng")
            }),
        );
    }
    files.sort();
    assert!(files.len() >= 2, "{files:?}");
    files
}

fn anonymised(source: &Path, key: u8) -> (Account, Vec<u8>) {
    let mut out = Vec::new();
    let account =
        anonymise(source, || Ok(&mut out), Key::from_bytes([key; 32])).expect("a capture");
    (account, out)
}

fn read(bytes: &[u8]) -> Diagnosis {
    let mut reader = CaptureReader::new(bytes).expect("a capture");
    diagnose_reader(&mut reader, &Options::default(), |_| ()).expect("a capture")
}

/// What is judged, without addresses and frame numbers.
fn judged(diagnosis: &Diagnosis) -> Vec<Value> {
    let flows = diagnosis.flows.iter().map(|flow| {
        let directions = flow.directions.iter().map(|direction| {
            let value = serde_json::to_value(direction).expect("JSON");
            let keys =
                ["stalls", "nagle", "receiver_policy", "acks", "writes", "added_delay", "waits"];
            keys.map(|key| without_frames(value[key].clone()))
        });
        let causes = flow.causes.iter().map(|cause| cause.kind);
        serde_json::json!([
            flow.id,
            flow.duration_s,
            flow.handshake,
            directions.collect::<Vec<_>>(),
            serde_json::to_value(causes.collect::<Vec<_>>()).expect("JSON"),
        ])
    });
    flows.collect()
}

/// Frames are numbered anew where some are left out.
fn without_frames(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(key, _)| !key.contains("frame"));
            kept.map(|(key, value)| (key, without_frames(value))).collect()
        }
        Value::Array(items) => items.into_iter().map(without_frames).collect(),
        // Words may name an end or a frame.
        Value::String(_) => Value::Null,
        other => other,
    }
}

#[test]
fn the_diagnosis_is_that_of_the_original() {
    for path in captures() {
        let original = diagnose(&path, &Options::default(), |_| ()).expect("a capture");
        let (account, bytes) = anonymised(&path, 1);
        let after = read(&bytes);
        assert_eq!(account.kept, original.capture.tcp_segments, "{}", path.display());
        assert_eq!(after.capture.packets, account.kept);
        assert_eq!(after.verdict.stalled, original.verdict.stalled, "{}", path.display());
        let (was, is) = (judged(&original), judged(&after));
        assert_eq!(was.len(), is.len(), "{}", path.display());
        for (was, is) in was.iter().zip(&is) {
            assert_eq!(was, is, "{}", path.display());
        }
    }
}

#[test]
fn the_same_key_gives_the_same_capture_and_another_key_other_addresses() {
    let path = &captures()[0];
    assert_eq!(anonymised(path, 1), anonymised(path, 1));
    assert_ne!(anonymised(path, 1).1, anonymised(path, 2).1);
}

/// Stretches of `length` bytes with more than zeros in them.
fn stretches(bytes: &[u8], length: usize) -> impl Iterator<Item = &[u8]> {
    let telling = move |part: &&[u8]| part.iter().filter(|byte| **byte != 0).count() * 2 > length;
    bytes.windows(length).filter(telling)
}

#[test]
fn no_address_and_no_payload_of_a_real_capture_is_left() {
    for path in captures() {
        let (_, bytes) = anonymised(&path, 3);
        let diagnosis = diagnose(&path, &Options::default(), |_| ()).expect("a capture");
        // Of framed messages types, lengths and C37.118's time stamps are kept: 12 bytes in a row at most.
        let mut directions = diagnosis.flows.iter().flat_map(|flow| &flow.directions);
        let is_framed = directions.any(|direction| direction.writes.protocol.is_some());
        let length = if is_framed { 13 } else { 8 };
        let mut reader = CaptureReader::new(&bytes[..]).expect("a capture");
        let mut packets = std::collections::BTreeSet::new();
        let mut all = Vec::new();
        while let Some(frame) = reader.next_frame().expect("whole") {
            packets.extend(stretches(frame.bytes, length).map(<[u8]>::to_vec));
            all.extend_from_slice(frame.bytes);
        }
        let mut original = CaptureReader::open(&path).expect("a capture");
        while let Some(frame) = original.next_frame().expect("whole") {
            // Behind the link layer, IP and TCP without options: 54 bytes in Ethernet; the MSS and window scale of a
            // handshake are kept.
            let behind = frame.bytes.get(74..).unwrap_or_default();
            for stretch in stretches(behind, length) {
                assert!(
                    !packets.contains(stretch),
                    "{}: {stretch:02x?} of frame {}",
                    path.display(),
                    frame.number
                );
            }
        }
        let after = read(&bytes).to_text();
        for flow in &diagnosis.flows {
            for end in &flow.endpoints {
                let address = end.rsplit_once(':').expect("a port").0;
                let is_loopback = address.starts_with("127.") || address == "[::1]";
                assert!(is_loopback || !after.contains(address), "{}: {address}", path.display());
            }
        }
    }
}

/// A frame of TCP over IPv4 or IPv6 whose every telling field is made of `mark`.
fn frame(
    mark: u8,
    is_v6: bool,
    options: &[u8],
    ip_options: usize,
    payload: usize,
    tail: usize,
) -> Vec<u8> {
    let mut frame = vec![mark; 12];
    frame.extend([0x81, 0, 0x0f, mark]);
    let tcp_len = 20 + options.len();
    if is_v6 {
        frame.extend([0x86, 0xdd, 0x6f, mark, mark, mark]);
        let extension = 8 * ip_options;
        frame.extend(((tcp_len + payload + extension) as u16).to_be_bytes());
        frame.extend([if ip_options > 0 { 60 } else { 6 }, 64]);
        frame.extend([mark; 32]);
        if ip_options > 0 {
            frame.extend([6, ip_options as u8 - 1]);
            frame.extend(vec![mark; extension - 2]);
        }
    } else {
        let header = 20 + 4 * ip_options;
        frame.extend([8, 0, 0x40 | (header / 4) as u8, mark & 0xfc]);
        frame.extend(((header + tcp_len + payload) as u16).to_be_bytes());
        frame.extend([mark, mark, 0x40, 0, 64, 6, mark, mark]);
        frame.extend(vec![mark; 8 + 4 * ip_options]);
    }
    frame.extend([0x1f, 0x90, 0x9c, 0x40]);
    frame.extend([mark; 8]);
    frame.extend([(tcp_len / 4 * 16) as u8, 0x18, 1, 0, mark, mark, mark, mark]);
    frame.extend(options);
    frame.extend(vec![mark; payload + tail]);
    frame
}

proptest! {
    /// Whatever tells of the hosts is made of one byte; two of it in a row are nowhere in a packet afterwards.
    #[test]
    fn of_a_made_frame_nothing_that_tells_is_left(
        mark in 0xa1_u8..0xfe,
        is_v6: bool,
        kinds in proptest::collection::vec((prop_oneof![Just(1_u8), Just(5), Just(8), Just(30), Just(34), Just(253), any::<u8>()], 2_u8..14), 0..3),
        ip_options in 0_usize..6,
        payload in 0_usize..60,
        tail in 0_usize..20,
        cut in 0_usize..200,
        key: u8,
    ) {
        let mut options = Vec::new();
        for (kind, len) in kinds {
            options.extend([kind, len]);
            options.extend(vec![mark; usize::from(len) - 2]);
        }
        options.truncate(40);
        options.resize(options.len().next_multiple_of(4), 1);
        let bytes = frame(mark, is_v6, &options, ip_options, payload, tail);
        let original = bytes.len() as u32;
        let kept = bytes.len().min(if cut < 20 { usize::MAX } else { cut });
        let mut writer = CaptureWriter::new(Vec::new(), WriterOptions::default()).expect("memory");
        writer.write_frame(Time::from_nanos(1), &bytes[..kept], original).expect("memory");
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(&writer.finish().expect("memory")).expect("a file");
        let (account, out) = anonymised(file.path(), key);
        prop_assert_eq!(account.frames, 1);
        let mut reader = CaptureReader::new(&out[..]).expect("a capture");
        let Some(frame) = reader.next_frame().expect("whole") else {
            prop_assert_eq!(account.kept, 0);
            return Ok(());
        };
        prop_assert_eq!(frame.link, LinkType::RAW);
        // Two equal bytes may come by chance where a number was shifted or an address mapped; three in a row hardly.
        let found = frame.bytes.windows(3).filter(|three| three.iter().all(|byte| *byte == mark)).count();
        prop_assert!(found <= 1, "{:02x?}", frame.bytes);
    }
}
