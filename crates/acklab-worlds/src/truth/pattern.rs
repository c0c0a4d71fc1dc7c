//! What programs do on connections, and over which paths: the cases.

use acklab_core::rng::Rng;

use super::script::{Case, End, Step};

/// Milliseconds in steps' units.
const MS: u64 = 1_000_000;

/// Both programs of a pattern, and who closes first.
pub(super) struct Programs {
    client: Vec<Vec<Step>>,
    server: Vec<Vec<Step>>,
    closes: usize,
}

impl Programs {
    fn new(client: Vec<Step>, server: Vec<Step>) -> Self {
        Self { client: vec![client], server: vec![server], closes: 0 }
    }
}

/// A pattern: its name, and its programs by its randomness.
pub(super) type Pattern = (&'static str, fn(&mut Rng) -> Programs);

/// Every pattern.
pub(super) const PATTERNS: [Pattern; 27] = [
    ("write-write-read", write_write_read),
    ("split-header-think", split_header_think),
    ("request-response", request_response),
    ("answer-in-two", answer_in_two),
    ("pmu-20ms", |rng| periodic(rng, 20 * MS, 0, 250, 50)),
    ("pmu-40ms", |rng| periodic(rng, 40 * MS, 0, 125, 60)),
    ("pmu-20ms-jitter", |rng| periodic(rng, 20 * MS, 4 * MS, 250, 50)),
    ("no-beat", no_beat),
    ("pipelined", pipelined),
    ("bursts", bursts),
    ("bulk-tail", bulk_tail),
    ("typing", typing),
    ("above-half-mss", above_half_mss),
    ("bidirectional", bidirectional),
    ("nodelay-late", nodelay_late),
    ("cork", cork),
    ("slow-server", slow_server),
    ("slow-reader", slow_reader),
    ("scan-50ms", scan),
    ("log-lines", log_lines),
    ("idle-keepalive", idle),
    ("fills", fills),
    ("header-bulk", header_bulk),
    ("rows", rows),
    ("three-writes", three_writes),
    ("poll", poll),
    ("answer-streams", answer_streams),
];

/// Uniform between two bounds.
fn between(rng: &mut Rng, low: u64, high: u64) -> u64 {
    low + rng.below(high - low + 1)
}

/// A header and a body in two writes, then the answer in one; now and then a pause.
fn write_write_read(rng: &mut Rng) -> Programs {
    let (mut client, mut server) = (Vec::new(), Vec::new());
    for _ in 0..60 {
        let (header, body) = (between(rng, 8, 40) as u32, between(rng, 60, 300) as u32);
        client.extend([Step::Write(header), Step::Write(body), Step::Read(120)]);
        client.push(Step::Sleep(between(rng, 0, 10 * MS)));
        server.extend([Step::Read(u64::from(header + body)), Step::Write(120)]);
    }
    Programs::new(client, server)
}

/// The same where the program builds the body for a while, and the server thinks.
fn split_header_think(rng: &mut Rng) -> Programs {
    let (mut client, mut server) = (Vec::new(), Vec::new());
    for _ in 0..40 {
        let pause = between(rng, MS / 2, 15 * MS);
        client.extend([Step::Write(24), Step::Sleep(pause), Step::Write(180), Step::Read(400)]);
        client.push(Step::Sleep(between(rng, 5 * MS, 40 * MS)));
        server.extend([Step::Read(204), Step::Sleep(between(rng, MS, 30 * MS)), Step::Write(400)]);
    }
    Programs::new(client, server)
}

/// One write each way: nothing to hold.
fn request_response(rng: &mut Rng) -> Programs {
    let (mut client, mut server) = (Vec::new(), Vec::new());
    for _ in 0..60 {
        let (request, answer) = (between(rng, 20, 300) as u32, between(rng, 20, 1200) as u32);
        client.extend([Step::Write(request), Step::Read(u64::from(answer))]);
        client.push(Step::Sleep(between(rng, 0, 40 * MS)));
        server.extend([
            Step::Read(u64::from(request)),
            Step::Sleep(between(rng, 0, 20 * MS)),
            Step::Write(answer),
        ]);
    }
    Programs::new(client, server)
}

/// The server answers with a head and a body.
fn answer_in_two(rng: &mut Rng) -> Programs {
    let (mut client, mut server) = (Vec::new(), Vec::new());
    for _ in 0..50 {
        let body = between(rng, 200, 900) as u32;
        client.extend([Step::Write(60), Step::Read(u64::from(80 + body))]);
        client.push(Step::Sleep(between(rng, 0, 25 * MS)));
        server.extend([
            Step::Read(60),
            Step::Write(80),
            Step::Sleep(between(rng, 0, MS)),
            Step::Write(body),
        ]);
    }
    Programs::new(client, server)
}

/// A measuring unit: a message each period.
fn periodic(rng: &mut Rng, period: u64, jitter: u64, count: u64, bytes: u32) -> Programs {
    let steps = (0..count).flat_map(|index| {
        let late = if jitter > 0 { rng.below(jitter) } else { 0 };
        [Step::Until((index + 1) * period + late), Step::Write(bytes)]
    });
    Programs::new(steps.collect(), Vec::new())
}

/// Small messages at random times.
fn no_beat(rng: &mut Rng) -> Programs {
    let steps = (0..200).flat_map(|_| {
        let pause = rng.exponential(25e6) as u64;
        [Step::Sleep(pause), Step::Write(between(rng, 30, 200) as u32)]
    });
    Programs::new(steps.collect(), Vec::new())
}

/// Requests that do not wait for the answer before; the server scans every 20 ms.
fn pipelined(rng: &mut Rng) -> Programs {
    let (mut client, mut server) = (Vec::new(), Vec::new());
    for _ in 0..120 {
        client.extend([Step::Sleep(between(rng, 5 * MS, 25 * MS)), Step::Write(48)]);
        server.extend([Step::Read(48), Step::Sleep(between(rng, 0, 12 * MS)), Step::Write(64)]);
    }
    let reading = vec![Step::Read(120 * 64)];
    Programs { client: vec![client, reading], server: vec![server], closes: 0 }
}

/// Some writes in a row, then a pause.
fn bursts(rng: &mut Rng) -> Programs {
    let mut client = Vec::new();
    for _ in 0..30 {
        for _ in 0..between(rng, 3, 9) {
            client.extend([
                Step::Write(between(rng, 40, 400) as u32),
                Step::Sleep(between(rng, 0, 3 * MS)),
            ]);
        }
        client.push(Step::Sleep(between(rng, 60 * MS, 160 * MS)));
    }
    Programs::new(client, Vec::new())
}

/// Large writes with a small end, and a short answer.
fn bulk_tail(rng: &mut Rng) -> Programs {
    let (mut client, mut server) = (Vec::new(), Vec::new());
    for _ in 0..12 {
        let bytes = between(rng, 8_000, 30_000) as u32;
        client.extend([Step::Write(bytes), Step::Write(30), Step::Read(10), Step::Sleep(60 * MS)]);
        server.extend([Step::Read(u64::from(bytes) + 30), Step::Write(10)]);
    }
    Programs::new(client, server)
}

/// Keystrokes and their echoes.
fn typing(rng: &mut Rng) -> Programs {
    let (mut client, mut server) = (Vec::new(), Vec::new());
    for _ in 0..60 {
        client.extend([Step::Sleep(between(rng, 20 * MS, 180 * MS)), Step::Write(36)]);
        server.extend([Step::Read(36), Step::Sleep(between(rng, 0, 2 * MS)), Step::Write(36)]);
    }
    let reading = vec![Step::Read(60 * 36)];
    Programs { client: vec![client, reading], server: vec![server], closes: 0 }
}

/// Pairs of writes between half a segment and a whole one.
fn above_half_mss(rng: &mut Rng) -> Programs {
    let (mut client, mut server) = (Vec::new(), Vec::new());
    for _ in 0..50 {
        let [one, other] = [between(rng, 760, 1300) as u32, between(rng, 760, 1300) as u32];
        client.extend([
            Step::Write(one),
            Step::Sleep(between(rng, 0, 4 * MS)),
            Step::Write(other),
            Step::Read(40),
        ]);
        client.push(Step::Sleep(between(rng, 0, 30 * MS)));
        server.extend([Step::Read(u64::from(one + other)), Step::Write(40)]);
    }
    Programs::new(client, server)
}

/// Both ends write whenever they like.
fn bidirectional(rng: &mut Rng) -> Programs {
    let mut writer = |low: u64, high: u64| -> Vec<Step> {
        (0..120)
            .flat_map(|_| {
                [
                    Step::Sleep(between(rng, low * MS, high * MS)),
                    Step::Write(between(rng, 20, 300) as u32),
                ]
            })
            .collect()
    };
    Programs::new(writer(10, 50), writer(5, 70))
}

/// The program sets TCP_NODELAY half-way.
fn nodelay_late(rng: &mut Rng) -> Programs {
    let mut programs = write_write_read(rng);
    let half = programs.client[0].len() / 2 / 4 * 4;
    programs.client[0].insert(half, Step::Nodelay(true));
    programs
}

/// Messages put together with MSG_MORE.
fn cork(rng: &mut Rng) -> Programs {
    let (mut client, mut server) = (Vec::new(), Vec::new());
    for _ in 0..50 {
        let body = between(rng, 60, 300) as u32;
        client.extend([
            Step::WriteMore(20),
            Step::Sleep(between(rng, 0, 3 * MS)),
            Step::Write(body),
        ]);
        client.extend([Step::Read(50), Step::Sleep(between(rng, 0, 20 * MS))]);
        server.extend([Step::Read(u64::from(20 + body)), Step::Write(50)]);
    }
    Programs::new(client, server)
}

/// Answers that take long: nothing is held, and the pauses look as if.
fn slow_server(rng: &mut Rng) -> Programs {
    let (mut client, mut server) = (Vec::new(), Vec::new());
    for _ in 0..40 {
        client.extend([Step::Write(90), Step::Read(250)]);
        server.extend([
            Step::Read(90),
            Step::Sleep(between(rng, 38 * MS, 45 * MS)),
            Step::Write(250),
        ]);
    }
    Programs::new(client, server)
}

/// A reader that rests, so that its window closes.
fn slow_reader(rng: &mut Rng) -> Programs {
    let (mut client, mut server) = (Vec::new(), Vec::new());
    for _ in 0..40 {
        let bytes = between(rng, 4_000, 12_000) as u32;
        client.push(Step::Write(bytes));
        server.extend([Step::Sleep(70 * MS), Step::Read(u64::from(bytes))]);
    }
    Programs::new(client, server)
}

/// A master that asks three things in a row of a controller which looks every 50 ms.
fn scan(rng: &mut Rng) -> Programs {
    let (mut client, mut server) = (Vec::new(), Vec::new());
    for _ in 0..40 {
        client.extend([
            Step::Write(12),
            Step::Sleep(between(rng, 0, 2 * MS)),
            Step::Write(12),
            Step::Write(14),
        ]);
        client.push(Step::Read(90));
        client.push(Step::Sleep(between(rng, 0, 8 * MS)));
        server.extend([Step::Read(12), Step::Sleep(between(rng, 0, 50 * MS)), Step::Write(30)]);
        server.extend([Step::Read(26), Step::Sleep(between(rng, 0, 50 * MS)), Step::Write(60)]);
    }
    Programs::new(client, server)
}

/// A log shipper: a line now, a few lines then.
fn log_lines(rng: &mut Rng) -> Programs {
    let mut client = Vec::new();
    for _ in 0..90 {
        for _ in 0..between(rng, 1, 3) {
            client.push(Step::Write(between(rng, 60, 240) as u32));
        }
        client.push(Step::Sleep(between(rng, 2 * MS, 90 * MS)));
    }
    Programs::new(client, Vec::new())
}

/// Almost nothing: too few to say.
fn idle(rng: &mut Rng) -> Programs {
    let (mut client, mut server) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        client.extend([
            Step::Write(40),
            Step::Read(40),
            Step::Sleep(between(rng, 300 * MS, 700 * MS)),
        ]);
        server.extend([Step::Read(40), Step::Write(40)]);
    }
    Programs::new(client, server)
}

/// Writes that come fast enough to fill segments while an ACK is awaited.
fn fills(rng: &mut Rng) -> Programs {
    let steps = (0..400).flat_map(|index: u64| {
        [Step::Until((index + 1) * 8 * MS + rng.below(MS)), Step::Write(400)]
    });
    Programs::new(steps.collect(), Vec::new())
}

/// A small header, then a body of many segments, then the answer: the body's tail waits.
fn header_bulk(rng: &mut Rng) -> Programs {
    let (mut client, mut server) = (Vec::new(), Vec::new());
    for _ in 0..30 {
        let (header, body) = (between(rng, 150, 400) as u32, between(rng, 2_000, 12_000) as u32);
        client.extend([Step::Write(header), Step::Write(body), Step::Read(100)]);
        client.push(Step::Sleep(between(rng, 0, 60 * MS)));
        server.extend([Step::Read(u64::from(header + body)), Step::Write(100)]);
    }
    Programs::new(client, server)
}

/// A query, and its rows, each in its own write.
fn rows(rng: &mut Rng) -> Programs {
    let (mut client, mut server) = (Vec::new(), Vec::new());
    for _ in 0..30 {
        client.push(Step::Write(between(rng, 80, 200) as u32));
        let Some(Step::Write(query)) = client.last().copied() else { continue };
        server.push(Step::Read(u64::from(query)));
        let mut bytes = 0;
        for _ in 0..between(rng, 2, 14) {
            let row = between(rng, 60, 180) as u32;
            server.extend([Step::Write(row), Step::Sleep(between(rng, 0, MS))]);
            bytes += u64::from(row);
        }
        client.extend([Step::Read(bytes), Step::Sleep(between(rng, 0, 40 * MS))]);
    }
    Programs::new(client, server)
}

/// Head, name and value, each in its own write; the answer comes at once.
fn three_writes(rng: &mut Rng) -> Programs {
    let (mut client, mut server) = (Vec::new(), Vec::new());
    for _ in 0..50 {
        let value = between(rng, 10, 600) as u32;
        client.extend([Step::Write(6), Step::Write(30), Step::Write(value), Step::Read(20)]);
        client.push(Step::Sleep(between(rng, 0, 20 * MS)));
        server.extend([Step::Read(u64::from(36 + value)), Step::Write(20)]);
    }
    Programs::new(client, server)
}

/// A master that asks every 50 ms, in two writes, and is answered after the slave's scan.
fn poll(rng: &mut Rng) -> Programs {
    let (mut client, mut server) = (Vec::new(), Vec::new());
    for index in 1..=60 {
        client.extend([
            Step::Until(index * 50 * MS),
            Step::Write(7),
            Step::Write(5),
            Step::Read(25),
        ]);
        server.extend([Step::Read(12), Step::Sleep(between(rng, 0, 10 * MS)), Step::Write(25)]);
    }
    Programs::new(client, server)
}

/// After one request the server sends small events for seconds; the client says little.
fn answer_streams(rng: &mut Rng) -> Programs {
    let mut server = vec![Step::Read(50)];
    let mut bytes = 0;
    for _ in 0..150 {
        let event = between(rng, 40, 220) as u32;
        server.extend([Step::Write(event), Step::Sleep(between(rng, MS, 50 * MS))]);
        bytes += u64::from(event);
    }
    let mut programs = Programs::new(vec![Step::Write(50), Step::Read(bytes)], server);
    programs.closes = 1;
    programs
}

/// Round trips, in turn.
pub(super) const RTTS_US: [u64; 6] = [1_000, 10_000, 30_000, 100_000, 4_000, 250];
/// Receivers, in turn; the kernel more often.
pub(super) const PEERS: [Option<&str>; 8] = [
    None,
    Some("freebsd-12.1"),
    None,
    Some("windows-7"),
    Some("qnx-7.0"),
    None,
    Some("windows-10"),
    Some("macos"),
];
/// Losses of the link, in turn.
const LOSSES: [&str; 6] = ["", "", "", " loss 1%", "", " loss 3%"];

/// What else the link does from the fifth round on, in turn.
const PATHS: [&str; 5] = ["", " 3ms", " rate 5mbit", "", " 1ms loss 1%"];

/// Every case: each pattern with Nagle on and off, over paths and to peers in turn, `breadth` times. From the fifth round on
/// every other client is acklab's TCP, and links have jitter and rates, too.
pub fn cases(breadth: usize) -> Vec<Case> {
    let mut cases = Vec::new();
    for turn in 0..breadth {
        for (index, pattern) in PATTERNS.iter().enumerate() {
            cases.push(one(pattern, turn, index));
        }
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases.dedup_by(|a, b| a.name == b.name);
    cases
}

fn one(&(pattern, programs): &Pattern, turn: usize, index: usize) -> Case {
    // A third without Nagle's algorithm.
    let nodelay = (turn + index) % 3 == 2 && pattern != "nodelay-late";
    let number = turn * 5 + index;
    let mirrored = turn >= 4 && (turn + index).is_multiple_of(2);
    let kernel_only: &[&str] = if mirrored {
        &["nodelay-late", "cork", "bulk-tail", "slow-reader", "header-bulk"]
    } else {
        &["slow-reader", "answer-in-two"]
    };
    let peer = PEERS[(number + turn) % PEERS.len()].filter(|_| !kernel_only.contains(&pattern));
    let rtt = RTTS_US[(number + 2 * turn) % RTTS_US.len()];
    let more = match turn {
        0..4 => LOSSES[(number + turn / 2) % LOSSES.len()],
        _ => PATHS[number % PATHS.len()],
    };
    let quickack = number % 7 == 6 && peer.is_none();
    let algorithm = if nodelay { "nodelay" } else { "nagle" };
    let system = peer.unwrap_or(if quickack { "linux-quickack" } else { "linux" });
    let from = if mirrored && peer.is_some() { "from-" } else { "" };
    let mut name = format!("{pattern}_{algorithm}_{from}{system}_{rtt}us");
    let words = more.replace("loss ", "loss").replace('%', "");
    for word in words.split_whitespace() {
        name = format!("{name}_{word}");
    }
    let foreign = peer.map(str::to_owned);
    let (mine, its) = if mirrored { (foreign, None) } else { (None, foreign) };
    let case = case(programs, name, pattern, format!("delay {}us{more}", rtt / 2));
    let [client, server] = case.ends;
    let slow = pattern == "slow-reader";
    let client = End { nodelay, foreign: mine, ..client };
    let receive_buffer = slow.then_some(16_384);
    let server = End { nodelay, quickack, foreign: its, receive_buffer, ..server };
    Case { ends: [client, server], ..case }
}

/// A case over `link` of which the name is the seed.
pub(super) fn case(
    programs: fn(&mut Rng) -> Programs,
    name: String,
    pattern: &str,
    link: String,
) -> Case {
    let seed = Rng::named(1, &name).next_u64() >> 16;
    let Programs { client, server, closes } = programs(&mut Rng::named(seed, "pattern"));
    let end = |tracks| End { tracks, ..End::default() };
    Case {
        name,
        pattern: pattern.to_owned(),
        ends: [end(client), end(server)],
        closes,
        link: [link.clone(), link],
        seed,
    }
}
