//! Any bytes as each kind of packet of reliable UDP: no panic, and what parses must emit in as many
//! bytes as it says and parse to the same. The first byte chooses the kind.
#![no_main]

use acklab_rudp::wire::{
    Frame, Frames, Long, Parameters, SHORT_HEADER, ShortHeader, Writer,
};
use libfuzzer_sys::fuzz_target;

fn emitted(len: usize, emit: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut bytes = vec![0xaa; len];
    let mut writer = Writer::new(&mut bytes);
    emit(&mut writer);
    assert_eq!(writer.remaining(), 0);
    bytes
}

fn frames(bytes: &[u8]) {
    let Ok(frames) = Frames::new(bytes).collect::<Result<Vec<Frame<'_>>, _>>() else { return };
    for frame in &frames {
        if let Frame::Ack(ack) = frame {
            let mut below = u64::MAX;
            for range in ack.ranges() {
                assert!(range.start() <= range.end() && *range.end() + 1 < below);
                below = *range.start();
            }
        }
    }
    let len = frames.iter().map(Frame::len).sum();
    let bytes = emitted(len, |writer| frames.iter().for_each(|frame| frame.emit(writer)));
    let again: Result<Vec<Frame<'_>>, _> = Frames::new(&bytes).collect();
    assert_eq!(again, Ok(frames));
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&kind, bytes)) = bytes.split_first() else { return };
    match kind % 4 {
        0 => frames(bytes),
        1 => {
            if let Ok(packet) = Long::parse(bytes) {
                let emitted = emitted(packet.len(), |writer| packet.emit(writer));
                assert_eq!(Long::parse(&emitted), Ok(packet));
            }
        }
        2 => {
            if let Ok(parameters) = Parameters::decode(bytes) {
                assert_eq!(Parameters::decode(&parameters.encode()), Ok(parameters));
            }
        }
        _ => {
            if let Ok(header) = ShortHeader::parse(bytes) {
                let emitted = emitted(SHORT_HEADER, |writer| header.emit(writer));
                assert_eq!(emitted, bytes[..SHORT_HEADER]);
            }
        }
    }
});
