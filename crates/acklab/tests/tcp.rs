//! Goal: acklab's TCP and the kernel's understand each other over a real device, in both roles, over
//! both IPs, whatever the links between them do, and nothing is left behind.
//! Method: run the built binary in network namespaces that `unshare` or `acklab emulate` make, as root
//! where possible (skipped with a message otherwise). The kernel's end is this program again, in a role
//! ([`ROLE`]); what arrives is compared byte by byte. Long transfers: `make test-wire`.

#![cfg(target_os = "linux")]

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use acklab_core::options::Word;
use acklab_tcp::System;
use serde_json::Value;

const ACKLAB: &str = env!("CARGO_BIN_EXE_acklab");
/// A guard against hanging.
const PATIENCE: Duration = Duration::from_mins(5);
/// What this program does as the kernel's end; the environment says which.
const ROLE: &str = "ACKLAB_TEST_ROLE";
/// How many bytes each long transfer has; `make test-wire` says more.
const BYTES: &str = "ACKLAB_WIRE_BYTES";
const FEW: u64 = 5_000_000;

/// The stream of a test: no two places nearby look alike.
fn content(from: u64, length: usize) -> impl Iterator<Item = u8> {
    (from..from + length as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8)
}

fn bytes() -> u64 {
    std::env::var(BYTES).map_or(FEW, |bytes| bytes.parse().expect("a number of bytes"))
}

/// A command line for sh that runs this program in `role`.
fn role(role: &str) -> String {
    let itself = std::env::current_exe().expect("this program's file");
    let itself = itself.display();
    format!("{ROLE}='{role}' '{itself}' --ignored --exact --nocapture the_kernels_end")
}

#[test]
#[ignore = "the other tests run it as the kernel's end"]
fn the_kernels_end() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let words: Vec<&str> = role.split(' ').collect();
    let [doing, address, count] = words[..] else { panic!("no role {role}") };
    let (address, count): (SocketAddr, u64) =
        (address.parse().expect("an address"), count.parse().expect("a count"));
    match doing {
        "accept" => {
            let listener = TcpListener::bind(address).expect("the address is ours");
            let (stream, _) = listener.accept().expect("a peer");
            both_ways(stream, count);
        }
        "connect" => both_ways(reached(address), count),
        "shut" => {
            let error = TcpStream::connect(address).expect_err("nothing listens there");
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
        }
        _ => panic!("no role {role}"),
    }
}

/// A connection to an end that may need a while to be there.
#[expect(clippy::disallowed_methods, reason = "the other end takes real time")]
fn reached(address: SocketAddr) -> TcpStream {
    let began = std::time::Instant::now();
    loop {
        match TcpStream::connect(address) {
            Ok(stream) => return stream,
            Err(error) => assert!(began.elapsed() < PATIENCE, "no peer: {error}"),
        }
        std::thread::yield_now();
    }
}

/// Sends `count` bytes and reads as many, at the same time; prints what `ss` says of the connection when it began.
fn both_ways(mut stream: TcpStream, count: u64) {
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    stream.set_write_timeout(Some(PATIENCE)).expect("a time-out");
    let mut writing = stream.try_clone().expect("a second handle");
    let writer = std::thread::spawn(move || {
        let mut at = 0;
        while at < count {
            let block: Vec<u8> = content(at, 65_536.min((count - at) as usize)).collect();
            writing.write_all(&block).expect("the peer reads");
            at += block.len() as u64;
        }
        writing.shutdown(std::net::Shutdown::Write).expect("an open stream");
    });
    let (mut at, mut block, mut asked) = (0_u64, vec![0; 65_536], false);
    loop {
        let length = stream.read(&mut block).expect("the peer writes");
        if length == 0 {
            break;
        }
        assert!(content(at, length).eq(block[..length].iter().copied()), "wrong near byte {at}");
        at += length as u64;
        if !asked {
            asked = true;
            let ss = Command::new("ss").args(["-tinao"]).output();
            if let Ok(Output { stdout, .. }) = ss {
                eprintln!("SS: {}", String::from_utf8_lossy(&stdout).replace('\n', " "));
            }
        }
    }
    assert_eq!(at, count, "the peer's stream ended early");
    writer.join().expect("all was written");
}

fn fresh(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if path.exists() {
        fs::remove_file(&path).expect("the file is ours");
    }
    path
}

/// The file that acklab sends: the same stream as the kernel's end.
fn source(name: &str, count: u64) -> PathBuf {
    let path = fresh(name);
    let mut file = std::io::BufWriter::new(fs::File::create(&path).expect("a folder for tests"));
    let mut at = 0;
    while at < count {
        let block: Vec<u8> = content(at, 1_000_000.min((count - at) as usize)).collect();
        file.write_all(&block).expect("room on the disk");
        at += block.len() as u64;
    }
    file.flush().expect("room on the disk");
    path
}

/// Whether the file is the stream.
fn is_stream(path: &Path, count: u64) -> bool {
    let mut file = std::io::BufReader::new(fs::File::open(path).expect("it was written"));
    let (mut at, mut block) = (0_u64, vec![0; 1_000_000]);
    loop {
        let length = file.read(&mut block).expect("a readable file");
        if length == 0 {
            return at == count;
        }
        if !content(at, length).eq(block[..length].iter().copied()) {
            return false;
        }
        at += length as u64;
    }
}

/// Runs `script` in a new network namespace with loopback up; `None` with a message where that is not
/// permitted.
fn in_own_network(script: &str) -> Option<Output> {
    let output = Command::new("unshare")
        .args(["--net", "sh", "-ec", &format!("ip link set lo up; {script}")])
        .stdin(Stdio::null())
        .output()
        .expect("unshare of util-linux");
    skipped_or(output)
}

fn skipped_or(output: Output) -> Option<Output> {
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("Operation not permitted") || errors.contains("not permitted;") {
        eprintln!("SKIPPED: TCP over a device: not permitted here");
        return None;
    }
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}: {errors}{told}", output.status);
    Some(output)
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// acklab listens and the kernel connects; both send `count` bytes at the same time.
fn listens(name: &str, address: &str, count: u64, more: &str) -> Option<Output> {
    let (from, to) = (source(&format!("{name}.from"), count), fresh(&format!("{name}.to")));
    let script = format!(
        "'{ACKLAB}' tcp listen {address} --in '{}' --out '{}' --format json {more} & \
         {} >/dev/null; wait $!",
        from.display(),
        to.display(),
        role(&format!("connect {address} {count}"))
    );
    let output = in_own_network(&script)?;
    assert!(is_stream(&to, count), "{}", String::from_utf8_lossy(&output.stderr));
    remove([&from, &to]);
    Some(output)
}

fn remove(files: [&Path; 2]) {
    for file in files {
        fs::remove_file(file).expect("the file is ours");
    }
}

/// The kernel listens at its end of the device, and acklab connects.
fn connects(name: &str, address: &str, count: u64, more: &str) -> Option<Output> {
    let (from, to) = (source(&format!("{name}.from"), count), fresh(&format!("{name}.to")));
    // The address comes with the device, so the kernel's end binds to any.
    let (_, port) = address.rsplit_once(':').expect("a port");
    let any = if address.starts_with('[') { "[::]" } else { "0.0.0.0" };
    let script = format!(
        "{} >/dev/null & until ss -tln | grep -q ':{port} '; do :; done; \
         '{ACKLAB}' tcp connect {address} --in '{}' --out '{}' --format json {more}; wait $!",
        role(&format!("accept {any}:{port} {count}")),
        from.display(),
        to.display(),
    );
    let output = in_own_network(&script)?;
    assert!(is_stream(&to, count), "{}", String::from_utf8_lossy(&output.stderr));
    remove([&from, &to]);
    Some(output)
}

#[test]
fn every_byte_arrives_in_both_roles_over_both_ips() {
    for (name, listen, connect) in
        [("v4", "10.78.0.2:7000", "10.78.0.1:7000"), ("v6", "[fd78::2]:7000", "[fd78::1]:7000")]
    {
        let Some(output) = listens(&format!("l{name}"), listen, bytes(), "") else { return };
        let json = json(&output);
        let connection = &json["connections"][0];
        assert_eq!(connection["end"], "closed", "{json:#}");
        assert_eq!(connection["sent"]["blake3"], connection["received"]["blake3"]);
        assert_eq!(json["refused_by_device"], 0);
        let mss = if name == "v4" { 1448 } else { 1428 };
        assert_eq!(connection["agreed"]["mss"], mss);
        let Some(output) = connects(&format!("c{name}"), connect, bytes(), "") else { return };
        assert_eq!(self::json(&output)["connections"][0]["end"], "closed");
    }
}

/// Runs `server` in one network and `client` in another with a link between them, over which the client's
/// network forwards what comes from its device; `None` with a message where that is not permitted.
fn over_a_link(forward: &str, reverse: &str, server: &str, client: &str) -> Option<Value> {
    // Answers to acklab's address go back the same way.
    let server =
        format!("ip route add 10.78.0.0/24 dev path0; ip route add fd78::/64 dev path0; {server}");
    let client = format!(
        "echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding; {client}"
    );
    let output = Command::new(ACKLAB)
        .args(["emulate", "--forward", forward, "--reverse", reverse, "--format", "json"])
        .args(["--max-lateness", "10s", "--server", &server, "--", "sh", "-ec", &client])
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs");
    let output = skipped_or(output)?;
    let emulated = json(&output);
    for end in ["command", "server"] {
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(emulated[end]["status"], 0, "{end}: {errors}");
    }
    Some(emulated)
}

/// acklab behind the client's network and the kernel behind the link send each other `count` bytes.
fn transfer_over_a_link(name: &str, links: [&str; 2], count: u64, more: &str) -> Option<Value> {
    let (from, to) = (source(&format!("{name}.from"), count), fresh(&format!("{name}.to")));
    let client = format!(
        "'{ACKLAB}' tcp connect 10.77.0.2:7000 --in '{}' --out '{}' {more}",
        from.display(),
        to.display()
    );
    let server = format!("{} >/dev/null", role(&format!("accept 10.77.0.2:7000 {count}")));
    let emulated = over_a_link(links[0], links[1], &server, &client)?;
    assert!(is_stream(&to, count), "{name}: not the bytes that were sent");
    remove([&from, &to]);
    Some(emulated)
}

#[test]
fn every_byte_arrives_over_links_that_lose_reorder_and_copy() {
    for (name, link, more) in [
        ("e0", "delay 2ms limit 5000", "--set stack=stream"),
        ("e1", "delay 2ms loss 1% limit 5000", "--set stack=stream"),
        // A lost retransmission costs a time-out, of which there are many here.
        ("e5", "delay 2ms loss 5% limit 5000", "--set stack=stream cc=bbr3 min_rto=20ms"),
        (
            "er",
            "delay 2ms 1ms loss 1% reorder 3% duplicate 2% corrupt 0.5% limit 5000",
            "--set stack=stream",
        ),
        ("h1", "delay 2ms loss 1% limit 5000", ""),
        ("h5", "delay 2ms loss 5% limit 5000", ""),
        ("hr", "delay 2ms 1ms loss 1% reorder 3% duplicate 2% corrupt 0.5% limit 5000", ""),
    ] {
        let emulated = transfer_over_a_link(name, [link, link], bytes(), more);
        let Some(emulated) = emulated else { return };
        let lost = |way: &str| emulated["paths"][0][way]["lost"].as_u64().expect("a count");
        assert_eq!(lost("forward") > 0 && lost("reverse") > 0, name != "e0", "{emulated:#}");
        let seconds = &emulated["command"]["seconds"];
        eprintln!("{name}: {link}: {} bytes each way in {seconds} s", bytes());
    }
}

#[test]
fn a_narrower_link_behind_the_kernel_is_found() {
    // The kernel of the client's network is the router: it forwards from the device into a link of 1300
    // bytes and answers what is longer with ICMP.
    let (count, link) = (FEW, "delay 1ms limit 5000");
    for (v, remote) in [("4", "10.77.0.2"), ("6", "[fd77::2]")] {
        let (from, to) = (source(&format!("m{v}.from"), count), fresh(&format!("m{v}.to")));
        let report = fresh(&format!("m{v}.json"));
        let client = format!(
            "ip link set path0 mtu 1300; '{ACKLAB}' tcp connect {remote}:7000 --in '{}' --out '{}' \
             --format json >'{}'",
            from.display(),
            to.display(),
            report.display()
        );
        let server = format!("{} >/dev/null", role(&format!("accept {remote}:7000 {count}")));
        let Some(_) = over_a_link(link, link, &server, &client) else { return };
        assert!(is_stream(&to, count));
        remove([&from, &to]);
        let json: Value =
            serde_json::from_slice(&fs::read(&report).expect("it was written")).expect("JSON");
        let connection = &json["connections"][0];
        assert!(connection["segments"]["too_big"].as_u64() > Some(0), "{json:#}");
        let mss = if v == "4" { 1300 - 40 - 12 } else { 1300 - 60 - 12 };
        assert_eq!(connection["mss"], mss, "{json:#}");
    }
}

#[test]
fn the_kernel_sees_the_options_that_were_agreed_on() {
    let check = |name: &str, more: &str, present: &[&str], absent: &[&str]| {
        let Some(output) = listens(name, "10.78.0.2:7000", FEW, more) else { return };
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        let line = told.lines().find(|line| line.starts_with("SS: ")).expect("ss was asked");
        for word in present {
            assert!(line.contains(word), "{more}: no {word} in {line}");
        }
        for word in absent {
            assert!(!line.contains(word), "{more}: {word} in {line}");
        }
    };
    check("o1", "", &[" ts ", " sack ", "wscale:7,", "mss:1448", "rcvmss:1448"], &[" ecn"]);
    check("o2", "--set timestamps=false mss=1000", &[" sack ", "mss:1000"], &[" ts "]);
    check("o3", "--set recovery=newreno", &[" ts "], &[" sack "]);
    check("o4", "--profile qnx-7.0", &["wscale:0,"], &[]);
    check("o6", "--set stack=stream", &[" ts ", " sack ", "wscale:7,", "mss:1448"], &[" ecn"]);
    check("o5", "--mtu 9000", &["mss:8948"], &[]);
}

#[test]
fn every_profile_talks_to_the_kernel() {
    for system in System::NAMES {
        let more = format!("--profile {system}");
        let Some(output) = listens(&format!("p-{system}"), "10.78.0.2:7000", 300_000, &more) else {
            return;
        };
        assert_eq!(json(&output)["connections"][0]["end"], "closed", "{system}");
    }
}

#[test]
fn a_port_where_nothing_listens_refuses() {
    let script = format!(
        "'{ACKLAB}' tcp listen 10.78.0.2:7000 --discard 2>/dev/null & \
         until ip -4 address | grep -q 10.78.0.1; do :; done; {} >/dev/null; kill $!; wait $! || true",
        role("shut 10.78.0.2:7001 0")
    );
    let _ = in_own_network(&script);
}

#[test]
fn tshark_finds_nothing_wrong_in_a_capture_of_it() {
    for (name, address) in [("t4", "10.78.0.2:40000"), ("t6", "[fd78::2]:40000")] {
        let capture = fresh(&format!("{name}.pcapng"));
        let more = format!("--capture '{}'", capture.display());
        let Some(_) = listens(name, address, FEW, &more) else { return };
        let tshark = Command::new("tshark")
            .args(["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"])
            .args(["-d", "tcp.port==40000,data", "-z", "expert,warn", "-q", "-r"])
            .arg(&capture)
            .output();
        let Ok(Output { status, stdout, .. }) = tshark else {
            eprintln!("SKIPPED: tshark's view of acklab's TCP: tshark is not installed");
            return;
        };
        let found = String::from_utf8_lossy(&stdout);
        // Rows begin with a count. A window that is full is what a window is for, and no fault.
        let is_row = |line: &&str| line.trim_start().starts_with(|c: char| c.is_ascii_digit());
        let is_flow_control =
            |line: &&str| line.contains("completely full") || line.contains("Zero Window");
        // Zero in ones' complement, either way: the kernel's packets (`skb_checksum_help`), one of 65,536.
        let is_zero = |line: &&str| line.contains("0xffff instead of 0x0000");
        // What the kernel sent twice, because this process was late, is told so (RFC 2883).
        let is_told = |line: &&str| line.contains("D-SACK Sequence");
        let is_fault =
            |it: &&str| is_row(it) && !is_flow_control(it) && !is_zero(it) && !is_told(it);
        let faults: Vec<_> = found.lines().filter(is_fault).collect();
        assert!(status.success() && faults.is_empty(), "{address}: {found}");
    }
}

#[test]
fn echo_comes_back_and_the_device_is_gone_however_acklab_ends() {
    for signal in ["TERM", "KILL"] {
        let script = format!(
            "'{ACKLAB}' tcp listen 10.78.0.2:7000 --echo --keep --tun wire7 2>/dev/null & \
             until ip link show wire7 >/dev/null 2>&1; do :; done; {} >/dev/null; \
             {} >/dev/null; kill -{signal} $!; wait $! || true; \
             if ip link show wire7 2>/dev/null; then exit 1; fi",
            role("connect 10.78.0.2:7000 100000"),
            role("connect 10.78.0.2:7000 50000"),
        );
        let Some(_) = in_own_network(&script) else { return };
    }
}

#[test]
fn what_cannot_be_used_is_said_with_how_to_mend_it() {
    let check = |arguments: &str, words: &[&str]| {
        let script = format!("'{ACKLAB}' tcp {arguments} </dev/null || test $? = 2");
        let Some(output) = in_own_network(&script) else { return };
        let errors = String::from_utf8_lossy(&output.stderr);
        for word in words {
            assert!(errors.contains(word), "{arguments}: no {word:?} in {errors}");
        }
    };
    check("listen 127.0.0.1:7 --discard", &["127.0.0.1 is an address of this machine"]);
    check("listen 10.78.0.2:7 --tun lo --discard", &["lo is there already"]);
    check("listen 10.78.0.2:7 --tun a/b --discard", &["\"a/b\" is no name"]);
    check("listen 10.78.0.2:7 --mtu 100 --discard", &["100 bytes", "576"]);
    check("listen 10.78.0.2:7 --set naggle=off", &["naggle", "nagle"]);
    check("listen 10.78.0.2:7 --set iw=0", &["iw=0", "1 to 1000"]);
    check("listen 10.78.0.2:7 --host fd78::1 --discard", &["one family"]);
    check("listen 10.78.0.2:7 --local 10.78.0.3 --discard", &["10.78.0.3 is not 10.78.0.2"]);
    check("connect 10.78.0.1:7 --format json", &["--out"]);
    check("connect 10.78.0.1:7 --in /no/such --discard", &["/no/such"]);
}
