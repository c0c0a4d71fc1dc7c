//! Goal: `acklab emulate` does to real packets what the same link does in virtual time, says how far it
//! can be trusted, and leaves nothing behind, whatever ends it.
//! Method: run the built binary, as root where possible (skipped with a message otherwise). The
//! commands that talk over the link are this test program again, in a role ([`Role`]). Times are held
//! to lower bounds alone, so that a busy machine cannot fail a test.

#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use acklab_core::endpoint::Endpoint;
use acklab_core::event::Sink;
use acklab_core::link::Link;
use acklab_core::packet::{Addr, Body, Ecn, Packet};
use acklab_core::time::{Span, Time};
use acklab_net::emulate::vocabulary;
use serde_json::Value;

const ACKLAB: &str = env!("CARGO_BIN_EXE_acklab");
/// The user `nobody`, who may nothing.
const NOBODY: u32 = 65534;
/// Payload of a datagram, bytes: its number and zeros.
const DATAGRAM: usize = 100;
/// A guard against hanging.
const PATIENCE: Duration = Duration::from_secs(20);
/// When nothing came for so long, nothing more will.
const SILENCE: Duration = Duration::from_millis(700);
const PORT: u16 = 7000;

/// What this program does as a command of an emulation; the environment says which.
const ROLE: &str = "ACKLAB_TEST_ROLE";
const COUNT: &str = "ACKLAB_TEST_COUNT";
const FILE: &str = "ACKLAB_TEST_FILE";

/// A command line for sh that runs this program in `role`.
fn role(role: &str, count: u32, file: &Path) -> String {
    let itself = std::env::current_exe().expect("this program's file");
    let (itself, file) = (itself.display(), file.display());
    format!(
        "{ROLE}={role} {COUNT}={count} {FILE}='{file}' exec '{itself}' --ignored --exact \
         the_commands_that_talk_over_the_link"
    )
}

/// A path of this test's own, where no file stands.
fn fresh(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if path.exists() {
        fs::remove_file(&path).expect("the file is ours");
    }
    path
}

fn emulate(options: &[&str], command: &[&str]) -> Command {
    let mut emulate = Command::new(ACKLAB);
    emulate.arg("emulate").args(options).arg("--").args(command);
    emulate
}

/// Runs one role against another and returns the exit status and the JSON; `None` with a message where
/// that is not permitted.
fn measured(options: &[&str], server: &str, client: &str) -> Option<(i32, Value)> {
    let options = [options, &["--format", "json", "--server", server]].concat();
    let Output { status, stdout, stderr } =
        emulate(&options, &["sh", "-c", client]).output().expect("the binary runs");
    let errors = String::from_utf8_lossy(&stderr);
    if errors.contains("not permitted") {
        eprintln!("SKIPPED: emulating a link: not permitted here");
        return None;
    }
    let json: Value = serde_json::from_slice(&stdout).unwrap_or_else(|_| panic!("{errors}"));
    assert_eq!(json["command"]["status"], 0, "{json:#}\n{errors}");
    Some((status.code().expect("not killed"), json))
}

/// Sends numbered datagrams and returns the JSON and the numbers that arrived.
fn datagrams(name: &str, count: u32, options: &[&str]) -> Option<(Value, Vec<u32>)> {
    let file = fresh(name);
    let (server, client) = (role("collect", count, &file), role("send", count, &file));
    let (_, json) = measured(options, &server, &client)?;
    let text = fs::read_to_string(&file).expect("the server wrote it");
    let numbers = text.lines().map(|line| line.parse().expect("a number")).collect();
    Some((json, numbers))
}

#[test]
#[ignore = "the other tests run it as the commands of an emulation"]
fn the_commands_that_talk_over_the_link() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let count: u32 = std::env::var(COUNT).expect("a count").parse().expect("a number");
    let file = std::env::var(FILE).expect("a file");
    let words = |name| -> Vec<String> {
        let list = std::env::var(name).expect("the emulator says the addresses");
        list.split(' ').map(str::to_owned).collect()
    };
    let (local, remote) = (words("ACKLAB_LOCAL"), words("ACKLAB_REMOTE"));
    match role.as_str() {
        "collect" => collect(&local[0], Path::new(&file)),
        "send" => send(&remote[0], count),
        "echo" => echo(local.last().expect("a path")),
        "ask" => ask(&remote, count),
        "tcp-read" => tcp_read(&local[0], count),
        "tcp-write" => tcp_write(&remote[0], count),
        other => panic!("no role {other}"),
    }
}

/// Takes numbered datagrams until nothing comes any more, writes their numbers down and says so.
fn collect(local: &str, file: &Path) {
    let socket = UdpSocket::bind((local, PORT)).expect("the address is ours");
    socket.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    let mut buffer = [0; DATAGRAM];
    let mut numbers = Vec::new();
    let (_, sender) = socket.peek_from(&mut buffer).expect("a datagram");
    socket.set_read_timeout(Some(SILENCE)).expect("a time-out");
    while socket.recv(&mut buffer).is_ok() {
        let number = [buffer[0], buffer[1], buffer[2], buffer[3]];
        numbers.push(u32::from_be_bytes(number).to_string());
    }
    fs::write(file, numbers.join("\n")).expect("a folder for tests");
    socket.send_to(b"done", sender).expect("a way back");
}

fn send(remote: &str, count: u32) {
    let any = if remote.contains(':') { "[::]:0" } else { "0.0.0.0:0" };
    let socket = UdpSocket::bind(any).expect("a port");
    socket.connect((remote, PORT)).expect("a route");
    let mut datagram = [0; DATAGRAM];
    for number in 0..count {
        datagram[..4].copy_from_slice(&number.to_be_bytes());
        socket.send(&datagram).expect("a way there");
    }
    socket.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    socket.recv(&mut datagram).expect("the server has seen the last of them");
}

fn echo(local: &str) {
    let socket = UdpSocket::bind((local, PORT)).expect("the address is ours");
    let mut buffer = [0; DATAGRAM];
    loop {
        let (length, from) = socket.recv_from(&mut buffer).expect("a datagram");
        socket.send_to(&buffer[..length], from).expect("a way back");
    }
}

/// Sends to every path; the last one must answer each time.
fn ask(remotes: &[String], count: u32) {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a port");
    socket.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    for _ in 0..count {
        for remote in remotes {
            socket.send_to(b"question", (remote.as_str(), PORT)).expect("a way there");
        }
        let (_, from) = socket.recv_from(&mut [0; DATAGRAM]).expect("an answer");
        assert_eq!(from.ip().to_string(), *remotes.last().expect("a path"));
    }
}

/// Reno, which fills any queue, and ECN, in the calling process's namespace (linux ip-sysctl.rst).
fn set_tcp() {
    for (name, value) in [("tcp_ecn", "1"), ("tcp_congestion_control", "reno")] {
        fs::write(format!("/proc/sys/net/ipv4/{name}"), value).expect("a namespace of our own");
    }
}

fn tcp_read(local: &str, count: u32) {
    set_tcp();
    let listener = TcpListener::bind((local, PORT)).expect("the address is ours");
    let (mut stream, _) = listener.accept().expect("a client");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("all of it");
    let right = |(index, byte): (usize, &u8)| *byte == (index % 251) as u8;
    assert!(bytes.len() == count as usize && bytes.iter().enumerate().all(right));
    stream.write_all(b"!").expect("a way back");
}

fn tcp_write(remote: &str, count: u32) {
    set_tcp();
    let mut stream = TcpStream::connect((remote, PORT)).expect("a server");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    let bytes: Vec<u8> = (0..count as usize).map(|index| (index % 251) as u8).collect();
    stream.write_all(&bytes).expect("a way there");
    stream.shutdown(std::net::Shutdown::Write).expect("an open stream");
    stream.read_exact(&mut [0]).expect("the server had all of it");
}

#[test]
fn real_datagrams_share_the_fate_of_simulated_ones() {
    let (link, count) = ("delay 5ms rate 2mbit loss 10% limit 5000", 1500);
    let options = ["--forward", link, "--seed", "7"];
    let Some((json, arrived)) = datagrams("fate.txt", count, &options) else { return };
    let mut twin = Link::new(0, 7, vocabulary::parse(link).expect("a link"));
    let mut sink = Sink::default();
    for number in 0..count {
        let body = Body::Datagram { len: DATAGRAM as u32, words: [u64::from(number), 0] };
        let (src, dst) = (Addr::default(), Addr::default());
        let packet = Packet { src, dst, ecn: Ecn::NotEct, returned: false, body };
        let now = Time::ZERO + Span::from_micros(100) * u64::from(number);
        twin.handle_packet(now, packet, &mut sink);
    }
    let mut simulated = Vec::new();
    while let Some(due) = twin.poll_timeout() {
        twin.handle_timeout(due, &mut sink);
        while let Some(packet) = twin.poll_transmit(due, &mut sink) {
            let Body::Datagram { words, .. } = packet.body else { panic!("what went in") };
            simulated.push(words[0] as u32);
        }
    }
    assert_eq!(arrived, simulated);
    let forward = &json["paths"][0]["forward"];
    assert_eq!(forward["packets"], count);
    assert_eq!(forward["lost"], u64::from(count) - simulated.len() as u64);
    // Five standard deviations of a binomial: sqrt(1500 * 0.1 * 0.9) = 11.6.
    assert!((92..=208).contains(&forward["lost"].as_u64().expect("a count")), "{forward}");
}

#[test]
fn tcp_gets_through_whole_and_no_sooner_than_the_link_lets_it() {
    let bytes = 1_000_000;
    let none = fresh("unused");
    let (server, client) = (role("tcp-read", bytes, &none), role("tcp-write", bytes, &none));
    let link = "delay 20ms rate 20mbit limit 100ms";
    let options = ["--forward", link, "--reverse", link];
    let Some((status, json)) = measured(&options, &server, &client) else { return };
    // A round trip for the handshake, one way for the last byte and back for the answer, and the bytes
    // themselves without any header.
    let least = 0.08 + f64::from(bytes) * 8.0 / 20e6;
    let seconds = json["command"]["seconds"].as_f64().expect("a number");
    assert!(seconds >= least, "{seconds} s, and the link needs {least} s");
    assert_eq!(json["schema"], "acklab.emulate/1");
    assert_eq!(json["server"]["status"], 0);
    let lateness = &json["lateness_us"];
    let departures = ["forward", "reverse"]
        .map(|way| json["paths"][0][way]["delivered"].as_u64().expect("a count"));
    assert_eq!(lateness["packets"], departures[0] + departures[1]);
    let in_time = lateness["p99"].as_f64().expect("a number") <= 1000.0;
    assert_eq!(json["valid"], in_time && json["mishaps"] == 0);
    assert_eq!(status, i32::from(json["valid"] == false));
    // Both hosts said so of themselves.
    for host in ["client", "server"] {
        let settings = &json["environment"][host];
        assert_eq!(settings["net.ipv4.tcp_congestion_control"], "reno", "{json:#}");
        assert_eq!(settings["net.ipv4.tcp_ecn"], "1", "{json:#}");
    }
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").expect("it is Linux");
    assert_eq!(json["environment"]["kernel"], kernel.trim());
}

#[test]
fn ipv6_takes_the_same_way() {
    let count = 100;
    let file = fresh("six.txt");
    let six =
        |role: String| format!("ACKLAB_LOCAL=$ACKLAB_LOCAL6 ACKLAB_REMOTE=$ACKLAB_REMOTE6; {role}");
    let (server, client) = (six(role("collect", count, &file)), six(role("send", count, &file)));
    let link = "delay 3ms rate 2mbit";
    let Some((_, json)) = measured(&["--forward", link], &server, &client) else { return };
    let text = fs::read_to_string(&file).expect("the server wrote it");
    let numbers: Vec<u32> = text.lines().map(|line| line.parse().expect("a number")).collect();
    assert_eq!(numbers, (0..count).collect::<Vec<_>>());
    // 40 bytes of IPv6, 8 of UDP; and nothing of what kernels say to each other over IPv6.
    let forward = &json["paths"][0]["forward"];
    assert_eq!((&forward["packets"], &forward["bytes"]), (&100.into(), &14_800.into()));
}

#[test]
fn codel_keeps_real_tcps_delay_below_half_of_drop_tails_and_marks_reach_it_whole() {
    let bytes = 2_000_000;
    let none = fresh("unused");
    let (server, client) = (role("tcp-read", bytes, &none), role("tcp-write", bytes, &none));
    let through = |queue: &str| {
        let forward = format!("delay 10ms rate 20mbit limit 300ms queue {queue}");
        let options = ["--forward", &forward, "--reverse", "delay 10ms"];
        let (_, json) = measured(&options, &server, &client)?;
        Some(json["paths"][0]["forward"].clone())
    };
    let Some(drop_tail) = through("drop-tail") else { return };
    let Some(codel) = through("codel") else { return };
    let mean = |forward: &Value| forward["queue_ms"]["mean"].as_f64().expect("a number");
    assert!(mean(&codel) < mean(&drop_tail) / 2.0, "{codel} against {drop_tail}");
    // Only a segment whose sender negotiated ECN is marked and not dropped.
    assert!(codel["marked"].as_u64().expect("a count") > 0, "{codel}");
    assert_eq!(drop_tail["marked"], 0);
}

#[test]
fn copies_arrive_twice_and_damage_is_found_out_by_the_receiver() {
    let count = 200;
    let link = "delay 2ms rate 2mbit duplicate 100%";
    let Some((json, twice)) = datagrams("twice.txt", count, &["--forward", link]) else { return };
    assert_eq!(twice, (0..count).flat_map(|number| [number; 2]).collect::<Vec<_>>());
    assert_eq!(json["paths"][0]["forward"]["duplicated"], count);
    let link = "delay 2ms rate 2mbit corrupt 50%";
    let Some((json, whole)) = datagrams("whole.txt", count, &["--forward", link]) else { return };
    let forward = &json["paths"][0]["forward"];
    let corrupted = forward["corrupted"].as_u64().expect("a count");
    assert_eq!(forward["delivered"], count);
    assert!(corrupted > 0 && whole.len() as u64 == u64::from(count) - corrupted, "{forward}");
}

#[test]
fn a_dead_path_loses_everything_and_leaves_the_other_alone() {
    let none = fresh("unused");
    let (server, client) = (role("echo", 0, &none), role("ask", 50, &none));
    let options = ["--paths", "2", "--forward", "delay 3ms", "--down-path", "0@0"];
    let Some((_, json)) = measured(&options, &server, &client) else { return };
    let [dead, alive] = [0, 1].map(|path| &json["paths"][path]["forward"]);
    assert_eq!((&dead["packets"], &dead["lost"]), (&50.into(), &50.into()));
    assert_eq!((&alive["packets"], &alive["lost"]), (&50.into(), &0.into()));
    // It never ends by itself, so it was asked to.
    assert_eq!(json["server"]["status"], Value::Null);
}

#[test]
fn a_run_that_is_later_than_allowed_is_not_valid() {
    let none = fresh("unused");
    let (server, client) = (role("echo", 0, &none), role("ask", 20, &none));
    let options = ["--forward", "delay 3ms", "--max-lateness", "0"];
    let Some((status, json)) = measured(&options, &server, &client) else { return };
    assert_eq!((status, &json["valid"]), (1, &false.into()));
    assert!(json["doubts"][0].as_str().expect("a sentence").contains("late"), "{json:#}");
}

/// Starts commands that do not end for half a minute, on either side and in the background too, and
/// returns once they run: the emulator, the rest of its output, and the client's namespace.
fn endless() -> Option<(Child, BufReader<std::process::ChildStdout>, String)> {
    let command = "setsid sleep 30 & readlink /proc/self/ns/net; sleep 30";
    let options = ["--server", "setsid sleep 30 & sleep 30"];
    let mut child = emulate(&options, &["sh", "-c", command])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut output = BufReader::new(child.stdout.take().expect("piped"));
    let mut namespace = String::new();
    output.read_line(&mut namespace).expect("a line");
    if namespace.is_empty() {
        let errors = child.wait_with_output().expect("it ends").stderr;
        let errors = String::from_utf8_lossy(&errors);
        assert!(errors.contains("not permitted"), "{errors}");
        eprintln!("SKIPPED: emulating a link: not permitted here");
        return None;
    }
    Some((child, output, namespace.trim().to_owned()))
}

/// How many processes live in the network namespace.
fn inhabitants(namespace: &str) -> usize {
    let processes = fs::read_dir("/proc").expect("a /proc").filter_map(Result::ok);
    let lives = |path: PathBuf| fs::read_link(path).is_ok_and(|link| link == Path::new(namespace));
    processes.filter(|process| lives(process.path().join("ns/net"))).count()
}

#[test]
fn nothing_outlives_an_emulator_that_is_killed() {
    let Some((mut emulator, mut output, namespace)) = endless() else { return };
    assert!(inhabitants(&namespace) >= 3);
    emulator.kill().expect("ours");
    emulator.wait().expect("ours");
    // Every command holds the pipe open: it ends when the last of them is dead.
    #[expect(clippy::disallowed_methods, reason = "how long real processes live")]
    let killed = std::time::Instant::now();
    output.read_to_string(&mut String::new()).expect("the end");
    assert!(killed.elapsed() < Duration::from_secs(15), "they lived on");
    assert_eq!(inhabitants(&namespace), 0);
}

#[test]
fn an_interrupted_emulator_says_what_it_measured_and_leaves_nothing() {
    let Some((mut emulator, mut output, namespace)) = endless() else { return };
    let interrupt = format!("kill -INT {}", emulator.id());
    assert!(Command::new("sh").args(["-c", &interrupt]).status().expect("a shell").success());
    let mut text = String::new();
    let mut printed = String::new();
    output.read_to_string(&mut printed).expect("the end");
    emulator.stderr.take().expect("piped").read_to_string(&mut text).expect("the end");
    assert_eq!(emulator.wait().expect("ours").code(), Some(3));
    assert!(text.contains("interrupted") && text.contains("lateness"), "{text}");
    // Standard output is the commands' alone.
    assert_eq!(printed, "");
    assert_eq!(inhabitants(&namespace), 0);
}

#[test]
fn what_cannot_be_emulated_is_told_and_exits_2() {
    let check = |options: &[&str], command: &[&str], says: &str| {
        let output = emulate(options, command).output().expect("the binary runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        let skipped = says == "not found" && errors.contains("not permitted");
        assert!(errors.contains(says) || skipped, "{errors}");
    };
    check(&["--forward", "dely 5ms"], &["true"], "--forward:1: \"dely\"");
    check(&["--reverse", "delay 5ms loss 5"], &["true"], "--reverse:16:");
    check(&["--down-path", "2@1s"], &["true"], "there is no path 2");
    check(&["--max-lateness", "soon"], &["true"], "--max-lateness");
    check(&[], &["a-command-that-is-not-there"], "not found");
}

#[test]
fn who_may_not_emulate_is_told_what_it_needs() {
    // Where the user may run it, which the target folder need not be.
    let binary = std::env::temp_dir().join(format!("acklab-emulate-{}", std::process::id()));
    fs::copy(ACKLAB, &binary).expect("room for a copy");
    fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).expect("the copy is ours");
    let attempt = || {
        let mut command = Command::new(&binary);
        command.args(["emulate", "--", "true"]);
        command
    };
    // Refused where the test is not root, and then it has nothing to give up.
    let output = attempt().uid(NOBODY).output().or_else(|_| attempt().output());
    fs::remove_file(&binary).expect("the copy is ours");
    let output = output.expect("the binary runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("not permitted") && errors.contains("sudo"), "{errors}");
}

#[test]
fn an_emulation_whose_device_is_taken_away_says_so_and_ends() {
    #[expect(clippy::disallowed_methods, reason = "how long real processes live")]
    let began = std::time::Instant::now();
    let command = ["sh", "-c", "ip link delete path0; sleep 30"];
    let output = emulate(&["--server", "sleep 30"], &command).output().expect("the binary runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("not permitted") {
        eprintln!("SKIPPED: emulating a link: not permitted here");
        return;
    }
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("relay packets"), "{errors}");
    assert!(began.elapsed() < Duration::from_secs(15), "it waited for the command");
}
