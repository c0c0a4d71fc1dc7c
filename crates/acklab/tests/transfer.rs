//! `acklab send` and `acklab recv` as processes on loopback.
//!
//! Goal: what docs/transfer.md promises holds for the program as a user runs it: the contract's last line,
//! the exit statuses, one clear line where a secret is wrong, and that a transfer goes on where kill -9
//! stopped either side. `ACKLAB_KILLS` sets the number of kills (`make test-kill`).

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use acklab_core::rng::Rng;
mod ends;

use ends::{PASSPHRASE, Running, acklab, content, receiver, same, sender};

#[test]
fn a_folder_arrives_and_the_last_line_is_the_contracts() {
    let scratch = tempfile::tempdir().expect("a folder");
    let from = scratch.path().join("photos");
    fs::create_dir_all(from.join("sub")).expect("folders");
    fs::write(from.join("a"), content(3_000_000, 1)).expect("a file");
    fs::write(from.join("sub/b"), content(70_000, 2)).expect("a file");
    let secret = ["--passphrase", PASSPHRASE];
    let options = [&secret[..], &["--once"]].concat();
    let (recv, address) = receiver(&scratch.path().join("in"), "127.0.0.1:0", &options);
    let (last, status, said) = Running::start(&mut sender(&from, &address, &secret)).end();
    assert_eq!((status, said.as_str()), (0, ""));
    let last = last.expect("a last line");
    let keys: Vec<&str> = last.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(keys, ["bytes", "paths", "resumed_bytes", "schema", "seconds", "wire_bytes"]);
    assert_eq!(last["schema"], "acklab.transfer/1");
    assert_eq!(last["bytes"], 3_070_000);
    assert_eq!(last["resumed_bytes"], 0);
    let wire = last["wire_bytes"].as_u64().expect("bytes");
    assert!((3_070_000..4_000_000).contains(&wire), "{wire} B on the wire");
    let path = last["paths"][0].as_object().expect("a path");
    let keys: Vec<&str> = path.keys().map(String::as_str).collect();
    assert_eq!(keys, ["bytes", "local", "lost", "remote", "rtt_ms", "state"]);
    assert_eq!(path["remote"], address.as_str());
    let (last, status, said) = recv.end();
    assert_eq!((status, said.as_str()), (0, ""));
    assert_eq!(last.expect("a last line")["end"], "complete");
    for file in ["a", "sub/b"] {
        let copy = fs::read(scratch.path().join("in/photos").join(file)).expect("a file");
        assert_eq!(copy, fs::read(from.join(file)).expect("a file"), "{file}");
    }
}

#[test]
fn standard_input_arrives_as_a_file() {
    let scratch = tempfile::tempdir().expect("a folder");
    let options = ["--insecure", "--once"];
    let (recv, address) = receiver(&scratch.path().join("in"), "[::1]:0", &options);
    let mut command = sender(Path::new("-"), &address, &["--insecure"]);
    let mut send = Running::start(command.stdin(Stdio::piped()));
    let bytes = content(2_500_000, 3);
    let mut stdin = send.child.stdin.take().expect("stdin");
    stdin.write_all(&bytes).expect("written");
    drop(stdin);
    let (last, status, said) = send.end();
    assert_eq!((status, said.as_str()), (0, ""));
    assert_eq!(last.expect("a last line")["bytes"], 2_500_000);
    assert_eq!(recv.end().1, 0);
    assert_eq!(fs::read(scratch.path().join("in/stdin")).expect("a file"), bytes);
}

#[test]
fn what_is_received_to_standard_output_is_the_file_and_nothing_else() {
    let scratch = tempfile::tempdir().expect("a folder");
    let file = scratch.path().join("x");
    let mut bytes = content(5_500_000, 7);
    bytes[1 << 20..3 << 20].fill(0);
    let sparse = File::create(&file).expect("a file");
    sparse.set_len(bytes.len() as u64).expect("a hole");
    for part in [0..1 << 20, 3 << 20..bytes.len()] {
        std::os::unix::fs::FileExt::write_all_at(&sparse, &bytes[part.clone()], part.start as u64)
            .expect("data");
    }
    let mut command = acklab();
    command.args(["recv", "-", "--listen", "127.0.0.1:0", "--insecure"]);
    let mut recv = Running::start(&mut command);
    let mut said = BufReader::new(recv.child.stderr.take().expect("stderr"));
    let mut line = String::new();
    said.read_line(&mut line).expect("it says where it listens");
    let address = line.trim().strip_prefix("listening on ").expect("an address");
    // A greeting of an unknown kind from an unauthenticated host: it decides nothing.
    let mut greeting = vec![0; 1200];
    greeting[..22].copy_from_slice(b"\x80AKL\x02\0\0\0\0\0\0\0\0strangerM");
    UdpSocket::bind("127.0.0.1:0").and_then(|it| it.send_to(&greeting, address)).expect("sent");
    let send = Running::start(&mut sender(&file, address, &["--insecure"]));
    let mut arrived = Vec::new();
    recv.out.read_to_end(&mut arrived).expect("the file");
    assert!(arrived == bytes, "{} B of {}", arrived.len(), bytes.len());
    let (last, status, complaints) = send.end();
    assert_eq!((status, complaints.as_str()), (0, ""));
    assert_eq!(last.expect("a last line")["bytes"], 5_500_000);
    assert_eq!(recv.child.wait().expect("an end").code(), Some(0));
    let mut told = String::new();
    said.read_to_string(&mut told).expect("its words");
    assert!(told.contains("turned away"), "{told}");
}

/// Carries datagrams between a client and a server on the loopback interface until it is blocked.
fn relay(server: &str) -> (String, Arc<AtomicBool>) {
    let front = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let back = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    back.connect(server).expect("a server");
    let address = front.local_addr().expect("its address").to_string();
    let blocked = Arc::new(AtomicBool::new(false));
    let (up, down) = (Arc::clone(&blocked), Arc::clone(&blocked));
    let answers = (front.try_clone().expect("a socket"), back.try_clone().expect("a socket"));
    let (knows, client) = channel();
    thread::spawn(move || {
        let mut bytes = vec![0; 65536];
        while let Ok((len, from)) = front.recv_from(&mut bytes) {
            let _ = knows.send(from);
            if !up.load(Ordering::SeqCst) {
                let _ = back.send(&bytes[..len]);
            }
        }
    });
    thread::spawn(move || {
        let (front, back) = answers;
        let (mut bytes, mut to) = (vec![0; 65536], client.recv().expect("a client"));
        loop {
            // What ICMP says of a server that is gone is no end.
            let Ok(len) = back.recv(&mut bytes) else { continue };
            to = client.try_iter().last().unwrap_or(to);
            if !down.load(Ordering::SeqCst) {
                let _ = front.send_to(&bytes[..len], to);
            }
        }
    });
    (address, blocked)
}

#[test]
fn what_was_begun_on_standard_output_is_not_begun_again() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (file, bytes) = (scratch.path().join("x"), content(8_000_000, 11));
    fs::write(&file, &bytes).expect("a file");
    let mut command = acklab();
    command.args(["recv", "-", "--listen", "127.0.0.1:0", "--insecure"]);
    let mut recv = Running::start(&mut command);
    let mut said = BufReader::new(recv.child.stderr.take().expect("stderr"));
    let mut line = String::new();
    said.read_line(&mut line).expect("it says where it listens");
    let (address, blocked) = relay(line.trim().strip_prefix("listening on ").expect("an address"));
    let mut send =
        Running::start(&mut sender(&file, &address, &["--insecure", "--rate", "2mbyte"]));
    let mut arrived = vec![0; 1 << 20];
    recv.out.read_exact(&mut arrived).expect("a part of it");
    blocked.store(true, Ordering::SeqCst);
    let mut complaints = BufReader::new(send.child.stderr.take().expect("stderr"));
    line.clear();
    complaints.read_line(&mut line).expect("it greets anew");
    blocked.store(false, Ordering::SeqCst);
    recv.out.read_to_end(&mut arrived).expect("the rest");
    assert!(bytes.starts_with(&arrived), "{} B are not the file's first", arrived.len());
    assert_eq!(recv.child.wait().expect("an end").code(), Some(1));
    send.kill();
}

/// The most memory that a process has had, kB.
fn peak_kilobytes(running: &Running) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", running.child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

#[test]
fn ten_gigabytes_of_sparse_file_take_less_than_64_megabytes_at_either_end() {
    let scratch = tempfile::tempdir().expect("a folder");
    let file = scratch.path().join("x");
    let sparse = File::create(&file).expect("a file");
    sparse.set_len(10_000_000_000).expect("a hole");
    let data = content(3_000_000, 8);
    for at in [0, 5_000_000_000, 9_997_000_000] {
        std::os::unix::fs::FileExt::write_all_at(&sparse, &data, at).expect("data");
    }
    let secret = ["--passphrase", PASSPHRASE];
    let options = [&secret[..], &["--once"]].concat();
    let (recv, address) = receiver(&scratch.path().join("in"), "127.0.0.1:0", &options);
    let mut send = Running::start(&mut sender(&file, &address, &secret));
    let (mut peaks, mut last) = ([0; 2], None);
    while let Some(line) = send.line() {
        last = Some(line);
        for (peak, running) in peaks.iter_mut().zip([&send, &recv]) {
            // A process that is ending has no memory any more.
            *peak = peak_kilobytes(running).unwrap_or_default().max(*peak);
        }
    }
    let last = last.expect("a last line");
    assert_eq!(last["bytes"], 10_000_000_000_u64);
    assert!(last["wire_bytes"].as_u64().expect("bytes") < 16_000_000, "{last}");
    assert!(peaks.iter().all(|peak| (1..64_000).contains(peak)), "{peaks:?} kB");
    assert_eq!((send.end().1, recv.end().1), (0, 0));
    let blocks = std::os::unix::fs::MetadataExt::blocks(
        &fs::metadata(scratch.path().join("in/x")).expect("the copy"),
    );
    assert!(blocks * 512 < 16_000_000, "{blocks} blocks were written");
}

#[test]
fn a_wrong_secret_is_one_clear_line_on_both_sides_exit_2_at_the_sender_and_no_end_of_the_receiver()
{
    let scratch = tempfile::tempdir().expect("a folder");
    let file = scratch.path().join("x");
    fs::write(&file, b"x").expect("a file");
    let own = scratch.path().join("own.key");
    let own = own.to_str().expect("UTF-8");
    let other = scratch.path().join("other.key");
    let other = other.to_str().expect("UTF-8");
    // A receiver with keys makes its own, and says which to give; no peer is known to it.
    let known = scratch.path().join("known");
    fs::write(&known, "").expect("a file");
    let known = known.to_str().expect("UTF-8");
    let keys = ["--identity", own, "--known-peers", known];
    let passphrase = ["--passphrase", PASSPHRASE];
    let cases: [(&[&str], &[&str], &str); 3] = [
        (&passphrase, &["--passphrase", "able-baker-cat-dot"], "wrong passphrase or key"),
        (&passphrase, &["--insecure"], "different kinds of secret"),
        (&keys, &[], "know"),
    ];
    for (gate, secret, words) in cases {
        let mut command = acklab();
        command.arg("recv").arg(scratch.path().join("in")).args([
            "--listen",
            "127.0.0.1:0",
            "--once",
        ]);
        command.args(["--format", "json"]).args(gate);
        let mut recv = Running::start(&mut command);
        let first = recv.line().expect("it says where it listens");
        let address = first["listen"][0].as_str().expect("an address").to_owned();
        let key = first["key"].as_str().unwrap_or_default().to_owned();
        let unknown = ["--identity", other, "--peer", &key];
        let secret = if secret.is_empty() { &unknown[..] } else { secret };
        let (_, status, said) = Running::start(&mut sender(&file, &address, secret)).end();
        assert_eq!(status, 2, "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains(words), "{said}");
        let line = recv.line().expect("a line");
        assert_eq!(line["schema"], "acklab.transfer-turned-away/1");
        assert!(line["why"].as_str().expect("words").contains(words), "{line}");
        assert_eq!(line["count"], 1);
        assert!(recv.child.try_wait().expect("its state").is_none(), "it waits on");
        recv.kill();
    }
    assert!(!scratch.path().join("in/x").exists());
}

#[test]
fn unusable_arguments_say_what_to_write_instead() {
    let scratch = tempfile::tempdir().expect("a folder");
    let file = scratch.path().join("x");
    fs::write(&file, b"x").expect("a file");
    let (file, to) = (file.to_str().expect("UTF-8"), "127.0.0.1:9");
    let passphrase = ["--passphrase", "p"];
    let cases: &[(&[&str], &str)] = &[
        (&["send", file, to], "ACKLAB_PASSPHRASE"),
        (&["send", file, "127.0.0.1"], "no port"),
        (&["send", file, to, "--passphrase", " "], "empty"),
        (&["send", file, to, "--rate", "60"], "60mbyte"),
        (&["send", file, to, "--path", "127.0.0.1"], "no comma"),
        (&["send", file, to, "--cc", "fast"], "known:"),
        (&["send", "/nowhere/at/all", to], "No such file"),
        (&["recv", file, "--listen", "127.0.0.1:0"], "exists"),
        (&["send", "-", file, to, "--passphrase", "p"], "alone"),
        (&["send", file, "p@127.0.0.1", "--insecure"], "no port"),
        (&["send", file, "p@127.0.0.1:9", "--insecure"], "leave the other secret out"),
        (&["send", file, file, to], "same name"),
        (&["send", file, to, "--exclude", "/"], "the pattern"),
        (&["send", file, to, "--name", "x"], "--name"),
    ];
    for (arguments, words) in cases {
        let mut command = acklab();
        command.args(*arguments);
        if words.starts_with(|first: char| first != 'A' && first != 'e') {
            command.env("ACKLAB_PASSPHRASE", passphrase[1]);
        }
        let Output { status, stderr, .. } = command.output().expect("it runs");
        let said = String::from_utf8_lossy(&stderr);
        assert_eq!(status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}

#[test]
fn a_transfer_goes_on_where_kill_9_stopped_either_side() {
    let kills = std::env::var("ACKLAB_KILLS").map_or(4, |text| text.parse().expect("a number"));
    let scratch = tempfile::tempdir().expect("a folder");
    let (file, folder) = (scratch.path().join("x"), scratch.path().join("in"));
    let size: u64 = 24_000_000;
    fs::write(&file, content(size as usize, 4)).expect("a file");
    let mut rng = Rng::named(5, "kills");
    let secret = ["--passphrase", PASSPHRASE];
    let mut done = 0;
    while done < kills {
        let _ = fs::remove_dir_all(&folder);
        let (mut recv, address) = receiver(&folder, "127.0.0.1:0", &secret);
        let options = [&secret[..], &["--rate", "15mbyte"]].concat();
        let mut confirmed = 0;
        // A few kills in each transfer, at points that the sender's progress passes.
        for _ in 0..2 + rng.next_u64() % 3 {
            let mut send = Running::start(&mut sender(&file, &address, &options));
            let until = confirmed + rng.next_u64() % (size / 10);
            let resumed = follow(&mut send, until, &mut confirmed);
            assert!(resumed.is_none_or(|resumed| resumed <= size));
            done += 1;
            if rng.next_u64().is_multiple_of(2) {
                send.kill();
            } else {
                // The receiver comes again on the same port, and then its sender is killed too, which
                // would have greeted it anew after 5 s.
                recv.kill();
                send.kill();
                (recv, _) = receiver(&folder, &address, &secret);
            }
        }
        let (last, status, said) = Running::start(&mut sender(&file, &address, &secret)).end();
        assert_eq!(status, 0, "{said}");
        let last = last.expect("a last line");
        let resumed = last["resumed_bytes"].as_u64().expect("bytes");
        assert!(resumed >= confirmed, "{confirmed} B were confirmed, and {resumed} B resumed");
        let end = std::iter::from_fn(|| recv.line()).find(|line| line["end"] == "complete");
        let received = end.expect("an end")["received_bytes"].as_u64().expect("bytes");
        assert_eq!(received + resumed, size, "what was held is not sent again");
        assert!(same(&file, &folder.join("x")), "the copy is another");
        recv.kill();
    }
}

/// Reads progress until so much is confirmed or it ends; gives what was resumed.
fn follow(send: &mut Running, until: u64, confirmed: &mut u64) -> Option<u64> {
    let mut resumed = None;
    while *confirmed < until {
        let line = send.line()?;
        if line["schema"] == "acklab.transfer/1" {
            break;
        }
        *confirmed = (*confirmed).max(line["confirmed_bytes"].as_u64().expect("bytes"));
        resumed = line["resumed_bytes"].as_u64();
    }
    resumed
}

#[test]
fn a_receiver_of_one_transfer_waits_for_the_sender_that_vanished() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (file, folder) = (scratch.path().join("x"), scratch.path().join("in"));
    fs::write(&file, content(12_000_000, 9)).expect("a file");
    let secret = ["--passphrase", PASSPHRASE];
    let (recv, address) = receiver(&folder, "127.0.0.1:0", &[&secret[..], &["--once"]].concat());
    let options = [&secret[..], &["--rate", "15mbyte"]].concat();
    let mut send = Running::start(&mut sender(&file, &address, &options));
    let mut confirmed = 0;
    follow(&mut send, 3_000_000, &mut confirmed);
    send.kill();
    let (last, status, said) = Running::start(&mut sender(&file, &address, &secret)).end();
    assert_eq!(status, 0, "{said}");
    assert!(last.expect("a last line")["resumed_bytes"].as_u64().expect("bytes") >= confirmed);
    assert_eq!(recv.end().1, 0);
    assert!(same(&file, &folder.join("x")));
}

#[test]
fn a_sender_whose_receiver_died_greets_the_next_one_and_goes_on() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (file, folder) = (scratch.path().join("x"), scratch.path().join("in"));
    fs::write(&file, content(20_000_000, 6)).expect("a file");
    let secret = ["--passphrase", PASSPHRASE];
    let (recv, address) = receiver(&folder, "127.0.0.1:0", &secret);
    let options = [&secret[..], &["--rate", "20mbyte"]].concat();
    let mut send = Running::start(&mut sender(&file, &address, &options));
    let mut confirmed = 0;
    follow(&mut send, 6_000_000, &mut confirmed);
    recv.kill();
    let again = [&secret[..], &["--once"]].concat();
    let (recv, _) = receiver(&folder, &address, &again);
    let (last, status, said) = send.end();
    assert_eq!(status, 0, "{said}");
    assert!(said.contains("silent"), "{said}");
    assert_eq!(last.expect("a last line")["bytes"], 20_000_000);
    let (last, status, _) = recv.end();
    assert_eq!(status, 0);
    assert!(last.expect("a last line")["resumed_bytes"].as_u64().expect("bytes") >= confirmed);
    assert!(same(&file, &folder.join("x")));
}

#[test]
fn a_receiver_with_keys_that_was_killed_says_so_when_it_is_back() {
    let scratch = tempfile::tempdir().expect("a folder");
    let text = |name: &str| scratch.path().join(name).to_str().expect("UTF-8").to_owned();
    let (file, folder) = (scratch.path().join("x"), scratch.path().join("in"));
    fs::write(&file, content(20_000_000, 6)).expect("a file");
    let (ours, theirs, known) = (text("ours"), text("theirs"), text("known"));
    fs::write(&known, "").expect("a file");
    let gate = ["--identity", &theirs, "--known-peers", &known];
    let start = |listen: &str| {
        let mut command = acklab();
        command.arg("recv").arg(&folder).args(["--listen", listen, "--format", "json"]).args(gate);
        let mut recv = Running::start(&mut command);
        let first = recv.line().expect("it says where it listens");
        let word = |value: &serde_json::Value| value.as_str().expect("words").to_owned();
        (recv, word(&first["listen"][0]), word(&first["key"]))
    };
    let (recv, address, key) = start("127.0.0.1:0");
    let secret = ["--identity", &ours, "--peer", &key, "--rate", "20mbyte"];
    let (_, _, said) = Running::start(&mut sender(&file, &address, &secret)).end();
    let line = said.split("known peers: ").nth(1).expect("the line to add");
    fs::write(&known, line).expect("a file");
    recv.kill();
    let (recv, ..) = start(&address);
    let mut send = Running::start(&mut sender(&file, &address, &secret));
    follow(&mut send, 6_000_000, &mut 0);
    recv.kill();
    let (recv, ..) = start(&address);
    let (last, status, said) = send.end();
    assert_eq!((status, said.contains("lost the connection")), (0, true), "{said}");
    // 5 s of silence otherwise.
    let seconds = last.expect("a last line")["seconds"].as_f64().expect("seconds");
    assert!(seconds < 5.0, "{seconds} s");
    assert!(same(&file, &folder.join("x")));
    recv.kill();
}

#[test]
fn a_stream_waits_for_a_network_that_went_away() {
    let scratch = tempfile::tempdir().expect("a folder");
    let options = ["--insecure", "--once"];
    let (recv, address) = receiver(&scratch.path().join("in"), "127.0.0.1:0", &options);
    let (address, blocked) = relay(&address);
    let mut command = sender(Path::new("-"), &address, &["--insecure"]);
    let mut send = Running::start(command.stdin(Stdio::piped()));
    let mut stdin = send.child.stdin.take().expect("stdin");
    let bytes = content(3_000_000, 5);
    let (first, rest) = bytes.split_at(1 << 20);
    stdin.write_all(first).expect("written");
    while send.line().expect("progress")["sent_bytes"] != 1 << 20 {}
    blocked.store(true, Ordering::SeqCst);
    stdin.write_all(rest).expect("written");
    drop(stdin);
    // Longer than a file's sender waits before it greets anew, which a stream cannot.
    let seconds = |send: &mut Running| send.line().expect("progress")["seconds"].as_f64();
    let until = seconds(&mut send).map(|seconds| seconds + 7.0);
    while seconds(&mut send) < until {}
    blocked.store(false, Ordering::SeqCst);
    let (last, status, said) = send.end();
    assert_eq!((status, said.as_str()), (0, ""));
    assert_eq!(last.expect("a last line")["bytes"], 3_000_000);
    assert_eq!(recv.end().1, 0);
    assert_eq!(fs::read(scratch.path().join("in/stdin")).expect("a file"), bytes);
}

#[test]
fn a_passphrase_that_may_be_guessed_is_warned_of_and_its_guesses_are_told() {
    let scratch = tempfile::tempdir().expect("a folder");
    let file = scratch.path().join("x");
    fs::write(&file, b"x").expect("a file");
    for (passphrase, weak) in [("sunshine", true), (PASSPHRASE, false)] {
        let options = ["--passphrase", passphrase, "--once"];
        let (recv, address) = receiver(&scratch.path().join("in"), "127.0.0.1:0", &options);
        let wrong = sender(&file, &address, &["--passphrase", "moonlight"]).output().expect("runs");
        assert_eq!(wrong.status.code(), Some(2));
        let right = sender(&file, &address, &["--passphrase", passphrase]).output().expect("runs");
        assert_eq!(right.status.code(), Some(0), "{right:?}");
        let (_, status, said) = recv.end();
        assert_eq!((status, said.contains("easily guessed")), (0, weak), "{said}");
    }
}

/// A library that answers fchmod(2) as file systems without permissions do (vfat, exFAT, CIFS).
fn no_permissions(folder: &Path) -> Option<std::path::PathBuf> {
    let (source, library) = (folder.join("fchmod.c"), folder.join("fchmod.so"));
    let code = "#include <errno.h>\n\
        int fchmod(int fd, unsigned mode) { (void)fd; (void)mode; errno = EPERM; return -1; }\n\
        int futimens(int fd, const void *t) { (void)fd; (void)t; errno = EPERM; return -1; }\n";
    fs::write(&source, code).expect("a file");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
    cc.status().is_ok_and(|status| status.success()).then_some(library)
}

#[test]
fn a_file_system_without_permissions_takes_files_and_the_user_is_told() {
    let scratch = tempfile::tempdir().expect("a folder");
    let Some(library) = no_permissions(scratch.path()) else {
        eprintln!("SKIPPED: a file system without permissions: no C compiler");
        return;
    };
    let (top, to) = (scratch.path().join("top"), scratch.path().join("in"));
    fs::create_dir(&top).expect("a folder");
    for name in ["a", "b"] {
        fs::write(top.join(name), content(1_500_000, 8)).expect("a file");
    }
    let mut command = acklab();
    command.arg("recv").arg(&to).env("LD_PRELOAD", library);
    command.args(["--listen", "127.0.0.1:0", "--format", "json", "--insecure", "--once"]);
    let mut recv = Running::start(&mut command);
    let first = recv.line().expect("it says where it listens");
    let address = first["listen"][0].as_str().expect("an address").to_owned();
    let (last, status, said) = Running::start(&mut sender(&top, &address, &["--insecure"])).end();
    assert_eq!((status, said.as_str()), (0, ""), "{last:?}");
    let mut told = Vec::new();
    while let Some(line) = recv.line() {
        told.extend(line["problem"].as_str().map(str::to_owned));
    }
    assert_eq!(told.len(), 1, "once, not for every file: {told:?}");
    assert!(told[0].contains("permissions or times"), "{told:?}");
    for name in ["a", "b"] {
        assert!(same(&top.join(name), &to.join("top").join(name)));
    }
}
