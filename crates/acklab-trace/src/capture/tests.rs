//! Round trips through writer and reader, hand-made pcapng, and the table of bad inputs.

use std::io::{self, Read, Write};

use acklab_core::time::Time;
use proptest::prelude::*;

use super::*;

type Read1 = (u64, Time, LinkType, u32, Vec<u8>);

/// Everything that a reader gives: frames, damage.
fn read_all(source: impl Read) -> Result<(Vec<Read1>, Option<Damage>), CaptureError> {
    let mut reader = CaptureReader::new(source)?;
    let mut frames = Vec::new();
    while let Some(f) = reader.next_frame()? {
        frames.push((f.number, f.time, f.link, f.original_len, f.bytes.to_vec()));
    }
    let damage = reader.damage().cloned();
    Ok((frames, damage))
}

fn write_all(options: WriterOptions, frames: &[(u64, Vec<u8>, u32)]) -> Vec<u8> {
    let mut writer = CaptureWriter::new(Vec::new(), options).unwrap();
    for (nanos, bytes, original_len) in frames {
        writer.write_frame(Time::from_nanos(*nanos), bytes, *original_len).unwrap();
    }
    writer.finish().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A source that gives a few bytes at a time, as a pipe may.
struct Trickle<'a>(&'a [u8]);

impl Read for Trickle<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = out.len().min(self.0.len()).min(7);
        out[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}

fn any_options() -> impl Strategy<Value = WriterOptions> {
    (any::<bool>(), any::<bool>(), any::<bool>(), 0_u16..300, 20_u32..2_000).prop_map(
        |(pcapng, nanos, big_endian, link, snap_len)| WriterOptions {
            format: if pcapng { Format::Pcapng } else { Format::Pcap },
            link: LinkType(link),
            snap_len,
            nanos,
            big_endian,
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read_in_every_format_order_and_resolution(
        options in any_options(),
        frames in prop::collection::vec(
            (0_u64..4_000_000_000_000_000_000, prop::collection::vec(any::<u8>(), 0..100), 0_u32..9_000),
            0..20,
        ),
        packed in any::<bool>(),
    ) {
        let capture = write_all(options, &frames);
        let (read, damage) = if packed {
            read_all(&gzip(&capture)[..]).unwrap()
        } else {
            read_all(Trickle(&capture)).unwrap()
        };
        prop_assert_eq!(damage, None);
        prop_assert_eq!(read.len(), frames.len());
        for (i, ((nanos, bytes, original_len), found)) in frames.iter().zip(&read).enumerate() {
            let unit = if options.nanos { 1 } else { 1_000 };
            let kept = bytes.len().min(options.snap_len as usize);
            let expect = (
                i as u64 + 1,
                Time::from_nanos(nanos / unit * unit),
                options.link,
                *original_len,
                bytes[..kept].to_vec(),
            );
            prop_assert_eq!(found, &expect);
        }
    }

    #[test]
    fn a_capture_cut_anywhere_gives_the_frames_before_the_cut(
        options in any_options(), cut in 0.0..1.0_f64
    ) {
        let frames: Vec<_> = (0..10_u64).map(|i| (i, vec![0xab; 33], 33)).collect();
        let capture = write_all(WriterOptions { snap_len: 65_535, ..options }, &frames);
        let cut = (capture.len() as f64 * cut) as usize;
        let left = &capture[..cut];
        match read_all(left) {
            Ok((read, None)) => {
                let whole = write_all(WriterOptions { snap_len: 65_535, ..options }, &frames[..read.len()]);
                // A cut section header of pcapng's own may end between its blocks.
                prop_assert!(left.len() == whole.len() || read.is_empty());
            }
            Ok((read, Some(damage))) => {
                prop_assert_eq!(damage.frame, read.len() as u64 + 1);
                prop_assert!(matches!(damage.kind, DamageKind::Cut { .. }), "{}", damage);
                prop_assert!(!read.is_empty());
            }
            Err(error) => {
                let short = matches!(
                    error,
                    CaptureError::Empty
                        | CaptureError::NotACapture { .. }
                        | CaptureError::Damaged(Damage { frame: 1, kind: DamageKind::Cut { .. }, .. })
                );
                prop_assert!(short, "{}", error);
            }
        }
    }
}

#[test]
fn gzip_of_several_members_reads_as_one_stream() {
    let capture =
        write_all(WriterOptions::default(), &[(1, vec![1; 40], 40), (2, vec![2; 40], 40)]);
    let (a, b) = capture.split_at(50);
    let (read, damage) = read_all(&[gzip(a), gzip(b)].concat()[..]).unwrap();
    assert_eq!((read.len(), damage), (2, None));
}

#[test]
fn a_cut_gzip_stream_gives_what_was_unpacked_and_says_so() {
    let frames: Vec<_> = (0..2_000_u64).map(|i| (i, i.to_be_bytes().repeat(20), 160)).collect();
    let packed = gzip(&write_all(WriterOptions::default(), &frames));
    let (read, damage) = read_all(&packed[..packed.len() / 2]).unwrap();
    assert!(read.len() > 100, "{}", read.len());
    let damage = damage.unwrap().to_string();
    assert!(damage.contains("gzip stream is damaged"), "{damage}");
}

/// A block of pcapng, little-endian.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let length = (12 + padded as u32).to_le_bytes();
    let mut block = [&kind.to_le_bytes()[..], &length[..], body].concat();
    block.resize(8 + padded, 0);
    block.extend_from_slice(&length);
    block
}

fn section() -> Vec<u8> {
    let mut body = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
    body.extend_from_slice(&[1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    block(0x0a0d_0d0a, &body)
}

/// An interface with options, given as (code, value).
fn interface(link: u16, options: &[(u16, &[u8])]) -> Vec<u8> {
    let mut body = [&link.to_le_bytes()[..], &[0, 0, 0, 0, 0, 0]].concat();
    for (code, value) in options {
        body.extend_from_slice(&code.to_le_bytes());
        body.extend_from_slice(&(value.len() as u16).to_le_bytes());
        body.extend_from_slice(value);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    body.extend_from_slice(&[0; 4]);
    block(1, &body)
}

fn enhanced(interface: u32, ticks: u64, bytes: &[u8], options: &[u8]) -> Vec<u8> {
    let mut body = interface.to_le_bytes().to_vec();
    body.extend_from_slice(&((ticks >> 32) as u32).to_le_bytes());
    body.extend_from_slice(&(ticks as u32).to_le_bytes());
    body.extend_from_slice(&(bytes.len() as u32).to_le_bytes().repeat(2));
    body.extend_from_slice(bytes);
    body.resize(body.len().next_multiple_of(4), 0);
    body.extend_from_slice(options);
    block(6, &body)
}

#[test]
fn pcapng_interfaces_keep_their_own_link_type_resolution_and_offset() {
    let minus_one = (-1_i64).to_le_bytes();
    let capture = [
        section(),
        interface(1, &[]),
        interface(113, &[(2, b"any"), (9, &[9])]),
        interface(101, &[(9, &[0x8a]), (14, &minus_one)]),
        interface(101, &[(9, &[12])]),
        block(0x0bad, &[1, 2, 3, 4, 5]),
        enhanced(0, 5_000_000, b"micro", b"\x01\0\x04\0note\0\0\0\0"),
        enhanced(1, 5_000_000_000, b"nanosec", &[]),
        enhanced(2, 6 << 10, b"binary", &[]),
        enhanced(3, 5_000_000_000_000, b"pico", &[]),
    ]
    .concat();
    let (read, damage) = read_all(&capture[..]).unwrap();
    assert_eq!(damage, None);
    let five = Time::from_nanos(5_000_000_000);
    assert_eq!(
        read,
        [
            (1, five, LinkType::ETHERNET, 5, b"micro".to_vec()),
            (2, five, LinkType::LINUX_SLL, 7, b"nanosec".to_vec()),
            (3, five, LinkType::RAW, 6, b"binary".to_vec()),
            (4, five, LinkType::RAW, 4, b"pico".to_vec()),
        ]
    );
}

#[test]
fn simple_and_obsolete_packet_blocks_are_read() {
    let mut obsolete = vec![0, 0, 0, 0];
    obsolete.extend_from_slice(&0_u32.to_le_bytes());
    obsolete.extend_from_slice(&7_000_000_u32.to_le_bytes());
    obsolete.extend_from_slice(&[3, 0, 0, 0, 9, 0, 0, 0]);
    obsolete.extend_from_slice(b"old");
    let simple = [&6_u32.to_le_bytes()[..], b"simple"].concat();
    let capture = [section(), interface(1, &[]), block(2, &obsolete), block(3, &simple)].concat();
    let (read, damage) = read_all(&capture[..]).unwrap();
    assert_eq!(damage, None);
    let seven = Time::from_nanos(7_000_000_000);
    assert_eq!(
        read,
        [
            (1, seven, LinkType::ETHERNET, 9, b"old".to_vec()),
            (2, seven, LinkType::ETHERNET, 6, b"simple".to_vec()),
        ]
    );
}

#[test]
fn sections_of_different_byte_order_follow_each_other() {
    let options = |big_endian| WriterOptions {
        format: Format::Pcapng,
        big_endian,
        ..WriterOptions::default()
    };
    let frame = |n: u8| [(u64::from(n), vec![n; 30], 30)];
    let capture =
        [write_all(options(true), &frame(1)), write_all(options(false), &frame(2))].concat();
    let (read, damage) = read_all(&capture[..]).unwrap();
    assert_eq!(damage, None);
    assert_eq!(read.iter().map(|f| f.4[0]).collect::<Vec<_>>(), [1, 2]);
}

/// The message for a capture of which nothing can be read, or for its damage.
fn complaint(bytes: &[u8]) -> String {
    match read_all(bytes) {
        Err(error) => error.to_string(),
        Ok((frames, Some(damage))) => format!("{} good; {damage}", frames.len()),
        Ok((frames, None)) => format!("{} good", frames.len()),
    }
}

#[test]
fn every_bad_input_is_told_what_where_and_how_to_mend() {
    let pcap = write_all(WriterOptions::default(), &[(1, vec![0; 60], 60), (2, vec![0; 60], 60)]);
    let check = |bytes: &[u8], expect: &[&str]| {
        let message = complaint(bytes);
        for part in expect {
            assert!(message.contains(part), "{message:?} lacks {part:?}");
        }
    };
    check(b"", &["empty", "record again"]);
    check(b"\xd4", &["not a capture", "d4"]);
    check(b"No.  Time  Source\n1 0.0 10.0.0.1\n", &["text", "No.  Time  Source", "binary capture"]);
    check(b"\x7fELF\x02\x01\x01\0\0\0\0\0", &["a program (ELF)", "tcpdump -w"]);
    check(b"snoop\0\0\0\0\0\0\x02", &["Solaris snoop", "editcap -F pcapng"]);
    check(b"PK\x03\x04\x14\0", &["zip", "unpack"]);
    check(&[0x28, 0xb5, 0x2f, 0xfd, 4, 0], &["zstd", "zstd -d"]);
    check(&gzip(b"hello, world\n"), &["gzip of text", "hello, world"]);
    check(&gzip(&gzip(&pcap)), &["gzip of gzip within gzip", "gunzip"]);
    check(&gzip(b""), &["gzip of unknown binary data"]);
    check(&[7, 0, 0, 0, 0x10, 0x2f, 0x54, 0x61, 2, 4, 0, 0x60, 0, 0, 0, 0x4c, 0, 0], &["ERF"]);
    check(&[0xa1, 0xb2, 0xcd, 0x34, 0, 2, 0, 4], &["modified pcap", "editcap"]);
    check(&pcap[..10], &["frame 1", "byte 0", "10 of 24 bytes"]);
    check(&pcap[..24], &["0 good"]);
    check(&pcap[..60], &["frame 1", "byte 24", "36 of 76 bytes"]);
    check(&pcap[..pcap.len() - 1], &["1 good", "frame 2 at byte 100", "75 of 76", "interrupted"]);
    let mut lying = pcap.clone();
    lying[100 + 8..100 + 12].copy_from_slice(&0x7fff_ffff_u32.to_le_bytes());
    check(&lying, &["1 good", "frame 2 at byte 100", "2147483647 bytes", "262144", "editcap -r"]);
}

#[test]
fn every_bad_pcapng_block_is_told_apart() {
    let head = [section(), interface(1, &[])].concat();
    let good = enhanced(0, 1, &[0; 60], &[]);
    let check = |tail: &[u8], expect: &str| {
        let message = complaint(&[&head, &good, tail].concat());
        assert!(message.contains("1 good; frame 2 at byte "), "{message}");
        assert!(message.contains(expect), "{message:?} lacks {expect:?}");
    };
    check(&enhanced(9, 1, &[0; 60], &[]), "interface that was not described");
    check(&good[..40], "40 of 92 bytes");
    check(&[6, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0], "not a multiple of 4");
    check(&[6, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0], "1073741824 bytes");
    let mut differ = good.clone();
    differ[88] = 0;
    check(&differ, "two lengths differ");
    let mut longer = good.clone();
    longer[20] = 200;
    check(&longer, "longer than its block");
    check(&interface(1, &[(9, &[0x7f])]), "time resolution");
    let mut other = section();
    other[12] = 2;
    check(&other, "major version");
    other[8] = 0;
    check(&other, "byte-order magic");
    check(&block(3, &[]), "too short");
}
