//! What a user of `acklab send` and `acklab recv` can choose, through the commands.
//!
//! Goal: codes, several sources, what is left out, what is there already, rehearsals, links and the question before a
//! file is replaced are as docs/transfer.md says. Method: both commands as processes on loopback, a terminal made by
//! script(1) where one is needed.

mod ends;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use ends::{PASSPHRASE, Running, acklab, content, receiver, same, sender};
use serde_json::Value;

/// Sends into a receiver of one transfer; the sender's last line, and what the receiver said of it.
fn carry(what: &Path, to: &Path, theirs: &[&str], ours: &[&str]) -> (Value, Value) {
    let secret = ["--passphrase", PASSPHRASE];
    let (recv, address) = receiver(to, "127.0.0.1:0", &[&secret[..], &["--once"], theirs].concat());
    let send = Running::start(&mut sender(what, &address, &[&secret[..], ours].concat()));
    let (last, status, said) = send.end();
    assert_eq!((status, said.as_str()), (0, ""));
    let (received, status, said) = recv.end();
    assert_eq!((status, said.as_str()), (0, ""));
    (last.expect("a last line"), received.expect("a last line"))
}

fn age(path: &Path, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000 + seconds);
    File::options().write(true).open(path).and_then(|it| it.set_modified(time)).expect("a time");
}

#[test]
fn a_code_says_everything_and_several_sources_come_at_once() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (photos, notes) = (scratch.path().join("photos"), scratch.path().join("notes"));
    fs::create_dir(&photos).expect("a folder");
    fs::write(photos.join("a"), content(300_000, 1)).expect("a file");
    fs::write(&notes, content(2_000_000, 2)).expect("a file");
    let inbox = scratch.path().join("in");
    fs::create_dir(&inbox).expect("a folder");
    // Without arguments: into the present folder, at a port that is free.
    let mut command = acklab();
    command.args(["recv", "--once", "--format", "json"]).current_dir(&inbox);
    let mut recv = Running::start(&mut command);
    let code = recv.line().expect("it says where it listens")["code"].as_str().map(str::to_owned);
    let code = code.expect("a code");
    let mut command = acklab();
    command.arg("send").args([&photos, &notes]).arg(&code).args(["--format", "json"]);
    let (last, status, said) = Running::start(&mut command).end();
    assert_eq!((status, said.as_str()), (0, ""), "{code}");
    let last = last.expect("a last line");
    assert_eq!(last["bytes"], 2_300_000);
    assert_eq!(
        last["paths"].as_array().expect("paths").len(),
        1,
        "the other addresses are no paths"
    );
    assert_eq!(recv.end().1, 0);
    assert!(same(&notes, &inbox.join("notes")) && same(&photos.join("a"), &inbox.join("photos/a")));
    // A code with a wrong word in it.
    let (recv, address) = receiver(&inbox, "127.0.0.1:0", &["--passphrase", PASSPHRASE]);
    let wrong =
        sender(&notes, &format!("able-baker-cat-dot@{address}"), &[]).output().expect("runs");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("wrong passphrase"));
    recv.kill();
}

#[test]
fn a_file_that_is_there_already_is_not_sent_again_and_its_content_is_compared_where_that_is_asked()
{
    let scratch = tempfile::tempdir().expect("a folder");
    let (file, inbox) = (scratch.path().join("x"), scratch.path().join("in"));
    let (copy, size) = (inbox.join("x"), 3_000_000_u64);
    fs::write(&file, content(size as usize, 1)).expect("a file");
    age(&file, 1);
    let (first, received) = carry(&file, &inbox, &[], &[]);
    assert_eq!(first["resumed_bytes"], 0);
    let hash = blake3(&file);
    assert_eq!(
        (first["blake3"].as_str(), received["blake3"].as_str()),
        (Some(&*hash), Some(&*hash))
    );
    let wire = |line: &Value| line["wire_bytes"].as_u64().expect("bytes");
    let held = |line: &Value| (line["resumed_bytes"].as_u64(), line["bytes"].as_u64());
    let (again, _) = carry(&file, &inbox, &[], &[]);
    assert_eq!(held(&again), (Some(size), Some(size)));
    assert!(wire(&again) < 50_000, "{again}");
    // Another content under the same size and time is believed, and found out by its hash.
    fs::write(&copy, content(size as usize, 2)).expect("a file");
    age(&copy, 1);
    let (believed, _) = carry(&file, &inbox, &[], &[]);
    assert_eq!(held(&believed), (Some(size), Some(size)));
    assert!(!same(&file, &copy));
    let (found, received) = carry(&file, &inbox, &["--checksum"], &[]);
    assert_eq!(held(&found), (Some(0), Some(size)));
    assert_eq!(received["resumed_bytes"], 0);
    assert!(same(&file, &copy));
    // The same content under another time is not sent; the time is set.
    age(&copy, 5);
    let (compared, _) = carry(&file, &inbox, &["--checksum", "--keep"], &[]);
    assert_eq!(held(&compared), (Some(size), Some(size)));
    assert!(wire(&compared) < 50_000, "{compared}");
    let modified = |path: &Path| fs::metadata(path).and_then(|it| it.modified()).expect("a time");
    assert_eq!(modified(&copy), modified(&file));
    // Without it, another time is another file.
    age(&copy, 5);
    let (sent, _) = carry(&file, &inbox, &[], &[]);
    assert_eq!(held(&sent), (Some(0), Some(size)));
}

fn blake3(path: &Path) -> String {
    ::blake3::hash(&fs::read(path).expect("a file")).to_string()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long real processes live")]
fn a_rehearsal_names_what_would_be_sent_and_changes_nothing() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (top, inbox) = (scratch.path().join("top"), scratch.path().join("in"));
    fs::create_dir_all(top.join("sub")).expect("folders");
    fs::write(top.join("a"), content(2_500_000, 1)).expect("a file");
    fs::write(top.join("sub/b"), b"words").expect("a file");
    fs::write(top.join("sub/empty"), b"").expect("a file");
    let secret = ["--passphrase", PASSPHRASE];
    let (mut recv, address) = receiver(&inbox, "127.0.0.1:0", &[&secret[..], &["--once"]].concat());
    let rehearse = |more: &[&str]| -> Vec<(String, u64)> {
        let options = [&secret[..], &["--dry-run"], more].concat();
        let output = sender(&top, &address, &options).output().expect("runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("text");
        text.lines()
            .map(|line| {
                let line: Value = serde_json::from_str(line).expect("an object per line");
                assert_eq!(line["schema"], "acklab.transfer-due/1");
                let name = line["name"].as_str().expect("a name").to_owned();
                (name, line["bytes"].as_u64().expect("bytes"))
            })
            .collect()
    };
    let due = |name: &str, bytes| (name.to_owned(), bytes);
    let all = [due("top/a", 2_500_000), due("top/sub/b", 5), due("top/sub/empty", 0)];
    assert_eq!(rehearse(&[]), all);
    assert_eq!(rehearse(&["--exclude", "sub/"]), all[..1]);
    // The sender may end before the receiver has put its empty working folder away.
    let count = || fs::read_dir(&inbox).expect("DIR").count();
    let ended = Instant::now();
    while count() > 0 {
        assert!(ended.elapsed() < Duration::from_secs(10), "nothing was written");
        thread::yield_now();
    }
    // It has not ended the receiver of one transfer; what comes then is interrupted.
    let options = [&secret[..], &["--rate", "1mbyte"]].concat();
    let mut send = Running::start(&mut sender(&top, &address, &options));
    while send.line().expect("progress")["confirmed_bytes"].as_u64() < Some(1 << 20) {}
    send.kill();
    while recv.line().expect("progress")["received_bytes"].as_u64() < Some(1 << 20) {}
    recv.kill();
    let parts = || {
        let parts = fs::read_dir(inbox.join(".acklab-part")).expect("parts");
        parts.map(|entry| entry.expect("an entry").file_name()).collect::<Vec<_>>()
    };
    let before = parts();
    assert_eq!(before.len(), 1);
    let (recv, _) = receiver(&inbox, &address, &secret);
    let left = rehearse(&[]);
    assert!((1..=1_500_000).contains(&left[0].1), "what is held of it is not due: {left:?}");
    assert_eq!(parts(), before, "what an interrupted transfer left stays");
    recv.kill();
}

#[test]
fn what_is_excluded_stays_links_come_and_those_that_lead_out_are_refused() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (top, inbox) = (scratch.path().join("top"), scratch.path().join("in"));
    fs::create_dir_all(top.join("cache/deep")).expect("folders");
    for name in ["a", "b.tmp", "cache/deep/c"] {
        fs::write(top.join(name), b"words").expect("a file");
    }
    symlink("cache/../a", top.join("odd")).expect("a link");
    symlink("a", top.join("near")).expect("a link");
    symlink("nowhere", top.join("cache/dangling")).expect("a link");
    let options = ["--exclude", "*.tmp", "--exclude", "top/cache/deep"];
    let secret = ["--passphrase", PASSPHRASE];
    let (recv, address) = receiver(&inbox, "127.0.0.1:0", &[&secret[..], &["--once"]].concat());
    let (_, status, said) =
        Running::start(&mut sender(&top, &address, &[&secret[..], &options].concat())).end();
    assert_eq!(status, 1);
    assert!(said.contains("top/odd") && said.contains("leads out"), "{said}");
    assert_eq!(recv.end().1, 1);
    let copy = inbox.join("top");
    assert_eq!(fs::read_link(copy.join("near")).expect("a link"), Path::new("a"));
    assert_eq!(fs::read_link(copy.join("cache/dangling")).expect("a link"), Path::new("nowhere"));
    assert!(same(&top.join("a"), &copy.join("a")));
    for absent in ["b.tmp", "cache/deep", "odd"] {
        assert!(fs::symlink_metadata(copy.join(absent)).is_err(), "{absent}");
    }
    // It is taken where that is asked; what is there stays; and times of links are kept.
    carry(&top, &inbox, &["--any-links", "--keep"], &options);
    assert_eq!(fs::read_link(copy.join("odd")).expect("a link"), Path::new("cache/../a"));
    let modified =
        |path: &Path| fs::symlink_metadata(path).and_then(|it| it.modified()).expect("a time");
    assert_eq!(modified(&copy.join("odd")), modified(&top.join("odd")));
}

#[test]
fn a_stream_has_the_name_that_it_is_given() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (recv, address) = receiver(scratch.path(), "127.0.0.1:0", &["--insecure", "--once"]);
    let options = ["--insecure", "--name", "backup.tar"];
    let mut command = sender(Path::new("-"), &address, &options);
    let mut send = Running::start(command.stdin(Stdio::piped()));
    send.child.stdin.take().expect("stdin").write_all(b"words").expect("written");
    let (last, status, said) = send.end();
    assert_eq!((status, said.as_str()), (0, ""));
    let copy = scratch.path().join("backup.tar");
    assert_eq!(last.expect("a last line")["blake3"].as_str(), Some(&*blake3(&copy)));
    assert_eq!((recv.end().1, fs::read(copy).expect("a file")), (0, b"words".to_vec()));
}

#[test]
fn on_a_terminal_the_user_is_asked_before_a_file_is_replaced() {
    if Command::new("script").arg("--version").output().is_err() {
        eprintln!("SKIPPED: a terminal: script(1) is not installed");
        return;
    }
    let scratch = tempfile::tempdir().expect("a folder");
    let (top, inbox) = (scratch.path().join("top"), scratch.path().join("in"));
    fs::create_dir_all(inbox.join("top")).expect("folders");
    fs::create_dir(&top).expect("a folder");
    for name in ["a", "b", "c", "d"] {
        fs::write(top.join(name), content(1_200_000, 3)).expect("a file");
        if name != "d" {
            fs::write(inbox.join("top").join(name), b"old").expect("a file");
        }
    }
    let program = env!("CARGO_BIN_EXE_acklab");
    let line =
        format!("'{program}' recv '{}' --listen 127.0.0.1:0 --insecure --once", inbox.display());
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut terminal = command.spawn().expect("script starts");
    let mut keys = terminal.stdin.take().expect("stdin");
    let mut screen = BufReader::new(terminal.stdout.take().expect("stdout"));
    let mut until = |words: &str| loop {
        let mut line = String::new();
        assert!(screen.read_line(&mut line).expect("a line") > 0, "{words} was never said");
        if line.contains(words) {
            return line;
        }
    };
    let address = until("listening on").trim().rsplit(' ').next().expect("an address").to_owned();
    let send = Running::start(&mut sender(&top, &address, &["--insecure"]));
    until("top/a is there already");
    keys.write_all(b"n\n").expect("typed");
    until("top/b is there already");
    keys.write_all(b"what?\n").expect("typed");
    until("top/b is there already");
    keys.write_all(b"y\n").expect("typed");
    until("top/c is there already");
    keys.write_all(b"a\n").expect("typed");
    let (_, status, said) = send.end();
    assert_eq!(status, 1, "{said}");
    assert!(said.contains("top/a") && said.contains("not to be replaced"), "{said}");
    let mut rest = String::new();
    screen.read_to_string(&mut rest).expect("its words");
    assert!(rest.contains("not complete"), "{rest}");
    assert_eq!(terminal.wait().expect("an end").code(), Some(1));
    assert_eq!(fs::read(inbox.join("top/a")).expect("a file"), b"old");
    for name in ["b", "c", "d"] {
        assert!(same(&top.join(name), &inbox.join("top").join(name)), "{name}");
    }
}
