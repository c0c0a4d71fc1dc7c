//! Goal: the course protocol of `acklab reproduce rdt` sends the same packets on sockets as in virtual
//! time.
//! Method: a file of one window over the emulator's link and over the simulated one, which lose the same
//! packets of a list. The first time-out is a second where a round trip is 14 ms, so that a busy machine
//! does not add retransmissions to the ones compared. Needs root; skipped with a message otherwise.

#![cfg(target_os = "linux")]

use std::path::Path;
use std::sync::atomic::AtomicBool;

use acklab_core::link::{Loss, LossModel, Packets};
use acklab_core::time::Span;
use acklab_net::emulate::EmulateError;
use acklab_papers::reproduce::rdt::bench::{Bench, BenchError, Course};
use acklab_papers::reproduce::rdt::emulated::Transfer;
use acklab_papers::reproduce::rdt::protocol::{Settings, chunks};
use acklab_papers::reproduce::rdt::simulated::{Network, transfer};

/// Sixteen packets, the last one short.
const SIZE: usize = 16 * 512 - 100;
const SECOND: Span = Span::from_secs(1);

fn bench(name: &str) -> Bench {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    Bench { program: env!("CARGO_BIN_EXE_acklab").into(), scratch }
}

/// `None` with a message where emulating is not permitted.
fn emulated(name: &str, course: &Course) -> Option<Transfer> {
    match bench(name).course(course, &AtomicBool::new(false)) {
        Ok(transfer) => Some(transfer),
        Err(BenchError::Emulate(EmulateError::Privilege { .. })) => {
            eprintln!("SKIPPED: the course protocol on sockets: emulating is not permitted here");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn sockets_and_virtual_time_send_the_same_packets() {
    let mut link = Network::new(0.0).one_way();
    let lost = Loss { model: LossModel::List(vec![2, 5, 11]), packets: Packets::All };
    link.impairments.loss = Some(lost);
    let course = Course {
        links: vec![[link.clone(), link]],
        size: SIZE,
        cpu: Span::ZERO,
        initial_timeout: SECOND,
        seed: 1,
    };
    let Some(real) = emulated("rdt-same-packets", &course) else { return };
    let settings = Settings::new(chunks(SIZE).expect("small"), 1);
    let settings = Settings { initial_timeout: SECOND, ..settings };
    let link = course.links[0][0].clone();
    let network = Network { direct: Some(link), ..Network::new(0.0) };
    let simulated = transfer(&network, settings, course.seed, true);
    // 16 packets, and a second later again those of which data or ACK was lost: data 2, 5 and 11, and of
    // the 13 ACKs 2, 5 and 11, which are those of packets 3, 7 and 14.
    let expect = [(1..=16).collect::<Vec<u16>>(), vec![3, 4, 6, 8, 12, 15]].concat();
    let numbers = |log: &[(usize, u16)]| -> Vec<u16> {
        log.iter().take(expect.len()).map(|(_, seq)| *seq).collect()
    };
    assert_eq!(numbers(&simulated.log), expect);
    assert_eq!(numbers(&real.log), expect);
    assert!(real.seconds > 1.0, "{real:?}");
}

#[test]
fn two_paths_carry_a_file_by_the_parity_of_its_packets() {
    let link = Network::new(0.05).one_way();
    let course = Course {
        links: vec![[link.clone(), link.clone()], [link.clone(), link]],
        size: 100_000,
        cpu: Span::from_micros(100),
        initial_timeout: Span::from_millis(50),
        seed: 2,
    };
    // That the file is whole is the receiver's word, without which there is no result.
    let Some(real) = emulated("rdt-two-paths", &course) else { return };
    let parity = |(path, seq): &(usize, u16)| *path == usize::from((seq + 1) % 2);
    assert!(real.log.iter().all(parity), "{real:?}");
    assert!(real.packets > 196, "{real:?}");
}
