//! Goal: `acklab dataset` writes the published layout, reads it back byte for byte, and finds what is wrong with one, by file
//! and line; and runs on the running kernel leave nothing behind, whatever ends them, and go on where they were.
//! Method: run the built binary over small data sets in virtual time, spoil one file after the other; kill and starve
//! campaigns on the running kernel (as root where possible, skipped with a message otherwise).

#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

const ACKLAB: &str = env!("CARGO_BIN_EXE_acklab");
/// The user `nobody`, who may nothing.
const NOBODY: u32 = 65534;
/// A data set of four cases in virtual time.
const SMALL: [&str; 5] =
    ["--set", "receiver=linux,freebsd-12.1", "nagle=on,off", "rtt=30ms", "messages=40"];

/// A folder of this test's own, empty.
fn fresh(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("dataset-{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a folder for tests");
    path
}

fn dataset(verb: &str, folder: &Path, rest: &[&str]) -> Output {
    let mut command = Command::new(ACKLAB);
    command.args(["dataset", verb]).arg(folder).args(rest).output().expect("the binary runs")
}

fn small(name: &str) -> PathBuf {
    let folder = fresh(name);
    let output = dataset("write", &folder, &SMALL);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    folder
}

/// Every file below a folder, by its path there.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut open = vec![folder.to_owned()];
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(at).expect("a folder").map(|entry| entry.expect("one").path()) {
            if entry.is_dir() {
                open.push(entry);
            } else {
                found.insert(entry.strip_prefix(folder).expect("below").to_owned());
            }
        }
    }
    found
}

#[test]
fn the_layout_is_the_published_one_and_is_written_again_byte_for_byte() {
    let folder = small("layout");
    let data = folder.join("Data");
    let cases: BTreeSet<String> = fs::read_dir(&data)
        .expect("Data")
        .map(|entry| entry.expect("one").file_name().into_string().expect("a name"))
        .collect();
    let folders = [
        "FreeBSD-NagleOff-30ms",
        "FreeBSD-NagleOn-30ms",
        "Linux-NagleOff-30ms",
        "Linux-NagleOn-30ms",
    ];
    assert_eq!(cases, folders.map(str::to_owned).into());
    for case in folders {
        let names: BTreeSet<_> = files(&data.join(case)).into_iter().collect();
        let mut expected: BTreeSet<PathBuf> =
            ["App-Net-Delay-ALL.txt", "CDF.txt"].map(PathBuf::from).into();
        for run in 0..10 {
            for kind in ["Sender-out", "Sniffer", "SnifferTimestamp", "App-Net-Delay-Sniffer"] {
                expected.insert(format!("{kind}-{run}.txt").into());
            }
        }
        assert_eq!(names, expected, "{case}");
    }
    let line = |file: &str, number: usize| {
        let path = data.join("FreeBSD-NagleOn-30ms").join(file);
        let text = fs::read_to_string(path).expect("a file");
        text.lines().nth(number - 1).expect("a line").to_owned()
    };
    // The second message of a run is written 100 ms after the first, which is acknowledged after 130 ms.
    let second = line("App-Net-Delay-Sniffer-3.txt", 2);
    let words: Vec<&str> = second.split(' ').collect();
    let [id, made, left, length, delay] = words[..] else { panic!("{second}") };
    assert_eq!((id, length), ("2", "100"));
    assert_eq!(line("Sender-out-3.txt", 2), format!("2 {made}"));
    assert_eq!(line("SnifferTimestamp-3.txt", 2), format!("{left} 100"));
    let number = |word: &str| word.parse::<f64>().expect("a number");
    assert!((number(delay) - 30_003.0).abs() < 1.0, "{delay} us");
    assert!(((number(left) - number(made)) * 1e6 - number(delay)).abs() < 1.0);
    let syn = line("Sniffer-3.txt", 1);
    assert!(syn.ends_with(" [SA] length 0"), "{syn}");
    let last = line(
        "CDF.txt",
        fs::read_to_string(data.join(folders[1]).join("CDF.txt")).expect("it").lines().count(),
    );
    assert!(last.ends_with(" 1.000000000"), "{last}");

    let again = fresh("layout-again");
    let from = folder.display().to_string();
    let output = dataset("write", &again, &["--from", &from]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let every = files(&data);
    assert_eq!(every, files(&again.join("Data")));
    for file in
        every.iter().map(|file| Path::new("Data").join(file)).chain(["messages.parquet".into()])
    {
        assert!(
            fs::read(folder.join(&file)).expect("one")
                == fs::read(again.join(&file)).expect("other"),
            "{} differs",
            file.display()
        );
    }
}

#[test]
fn what_is_wrong_is_told_by_file_and_line() {
    let folder = small("verify");
    let verify = || {
        let output = dataset("verify", &folder, &["--format", "json"]);
        let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let faults: Vec<String> = json["faults"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|one| {
                let file = Path::new(one["file"].as_str().expect("a path"));
                let file = file.file_name().expect("a name").display();
                format!("{file}:{} {}", one["line"], one["what"].as_str().expect("words"))
            })
            .collect();
        (output.status.code(), faults)
    };
    assert_eq!(verify(), (Some(0), vec![]));
    let case = folder.join("Data/FreeBSD-NagleOn-30ms");
    // (file, line, what stands there, what shall, where it must be told, words of it)
    let spoilt: [(&str, usize, &str, &str, &str, &str); 9] = [
        ("Sender-out-2.txt", 5, "5 ", "6 ", "Sender-out-2.txt:5", "the ID is 6 where 5 should be"),
        ("Sender-out-2.txt", 7, "0.", "1.", "App-Net-Delay-Sniffer-2.txt:7", "in Sender-out"),
        (
            "SnifferTimestamp-4.txt",
            9,
            " 100",
            " 101",
            "App-Net-Delay-Sniffer-4.txt:9",
            "in SnifferTimestamp",
        ),
        (
            "SnifferTimestamp-4.txt",
            9,
            "1.",
            "9.",
            "SnifferTimestamp-4.txt:9",
            "its last byte is in the segment of",
        ),
        ("Sniffer-0.txt", 3, "length 1", "length 2", "Sniffer-0.txt:null", "its segments have"),
        ("Sniffer-0.txt", 3, "length", "len", "Sniffer-0.txt:3", "where \"length\" should be"),
        (
            "App-Net-Delay-Sniffer-9.txt",
            2,
            " 30",
            " 31",
            "App-Net-Delay-Sniffer-9.txt:2",
            "the times differ by",
        ),
        (
            "App-Net-Delay-ALL.txt",
            42,
            "2 30",
            "2 33",
            "App-Net-Delay-ALL.txt:42",
            "in App-Net-Delay-Sniffer-1.txt, line 2",
        ),
        ("CDF.txt", 2, " 0.", " 0.9", "CDF.txt:2", "of the delays are said to be at most"),
    ];
    for (file, line, there, other, told, words) in spoilt {
        let path = case.join(file);
        let good = fs::read_to_string(&path).expect("a file");
        let lines: Vec<String> = (1..)
            .zip(good.lines())
            .map(|(number, text)| {
                if number != line {
                    return format!("{text}\n");
                }
                assert!(text.contains(there), "{file}:{line}: {text}");
                format!("{}\n", text.replacen(there, other, 1))
            })
            .collect();
        fs::write(&path, lines.concat()).expect("ours");
        let (status, faults) = verify();
        assert_eq!(status, Some(1), "{file}:{line}");
        let found = faults.iter().any(|fault| fault.starts_with(told) && fault.contains(words));
        assert!(found, "{file}:{line} {other}: {faults:#?}");
        fs::write(&path, good).expect("ours");
    }
    fs::remove_file(case.join("CDF.txt")).expect("ours");
    fs::write(case.join("notes.txt"), "").expect("ours");
    let (_, faults) = verify();
    assert!(faults.iter().any(|fault| fault.starts_with("CDF.txt:null")), "{faults:?}");
}

#[test]
fn another_layout_that_says_the_same_is_read() {
    // As tcpdump prints it, with a heading, times to the microsecond, delays in whole microseconds.
    let folder = fresh("theirs");
    let case = folder.join("Ubuntu-NagleOn-100ms");
    fs::create_dir_all(&case).expect("ours");
    let put = |name: &str, text: &str| fs::write(case.join(name), text).expect("ours");
    for run in 0..10 {
        put(&format!("Sender-out-{run}.txt"), "ID Ts\n1 1634000000.000010\n2 1634000000.100010\n");
        put(
            &format!("Sniffer-{run}.txt"),
            "1634000000.000052 IP 10.0.0.1.5000 > 10.0.0.2.40000: Flags [P.], length 100\n\
             1634000000.140010 IP 10.0.0.1.5000 > 10.0.0.2.40000: Flags [P.], length 100\n",
        );
        put(
            &format!("SnifferTimestamp-{run}.txt"),
            "1634000000.000052 100\n1634000000.140010 100\n",
        );
        put(
            &format!("App-Net-Delay-Sniffer-{run}.txt"),
            "1 1634000000.000010 1634000000.000052 100 42\n2 1634000000.100010 1634000000.140010 100 4.0e4\n",
        );
    }
    put("App-Net-Delay-ALL.txt", &"1 42\n2 40000\n".repeat(10));
    // A staircase may begin with the share below its first value.
    put("CDF.txt", "0.042 0\n0.042 0.5\n40 1\n");
    let output = dataset("verify", &folder, &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let output = dataset("read", &folder, &["--format", "json"]);
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let only = &json["cases"][0];
    assert_eq!((&only["case"], &only["messages"]), (&"Ubuntu-NagleOn-100ms".into(), &20.into()));
    assert_eq!(only["buffering_delay_ms"]["max"], 40.0);
    assert_eq!(only["closed_form"]["max"], 100.0, "the closed form of a Linux receiver");
}

#[test]
fn a_folder_of_another_data_set_is_refused() {
    let folder = small("refused");
    let refused = |rest: &[&str], words: &str| {
        let output = dataset("write", &folder, rest);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(words), "{errors}");
    };
    refused(&["--set", "receiver=linux", "messages=40"], "other settings");
    refused(&["--set", "receiver=linux", "period=10ms,20ms"], "period: takes one value");
    refused(&["--set", "runs=many"], "runs= takes a number");
    assert!(dataset("write", &folder, &SMALL).status.success(), "the same one goes on");
}

/// A campaign on the running kernel of eight runs of 3 s.
const KERNEL: [&str; 9] = [
    "--world",
    "kernel",
    "--max-lateness",
    "500ms",
    "--set",
    "receiver=linux,qnx-7.0",
    "nagle=on",
    "rtt=10ms",
    "messages=30",
];
const KERNEL_RUNS: [&str; 2] = ["--runs", "4"];

fn on_kernel(folder: &Path) -> Command {
    let mut command = Command::new(ACKLAB);
    command.args(["dataset", "write"]).arg(folder).args(KERNEL).args(KERNEL_RUNS);
    command
}

/// Whether runs on the running kernel may be made here.
fn permitted() -> bool {
    let output = Command::new(ACKLAB).args(["emulate", "--", "true"]).output();
    let output = output.expect("the binary runs");
    let may = output.status.code() != Some(2);
    if !may {
        eprintln!("SKIPPED: runs on the running kernel: not permitted here");
    }
    may
}

/// Processes of `program`: itself and every run's.
fn processes(program: &Path) -> Vec<(u32, String)> {
    let entries = fs::read_dir("/proc").expect("a /proc").filter_map(Result::ok);
    let of = |entry: fs::DirEntry| {
        let id: u32 = entry.file_name().to_str()?.parse().ok()?;
        let exe = fs::read_link(entry.path().join("exe")).ok()?;
        let words = fs::read_to_string(entry.path().join("cmdline")).ok()?;
        (exe == program && !words.is_empty()).then(|| (id, words.replace('\0', " ")))
    };
    entries.filter_map(of).collect()
}

/// Waits for what must come.
#[expect(clippy::disallowed_methods, reason = "real processes take real time")]
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(40);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// A copy of the program, so that its processes are told from those of other tests.
fn own_program(folder: &Path) -> PathBuf {
    let program = folder.join("acklab");
    fs::copy(ACKLAB, &program).expect("room for a copy");
    program.canonicalize().expect("it is there")
}

#[test]
fn a_campaign_that_is_killed_leaves_nothing_and_goes_on_where_it_was() {
    if !permitted() {
        return;
    }
    let folder = fresh("killed");
    let program = own_program(&folder);
    let target = folder.join("set");
    // One worker is slow enough to be killed in the middle.
    let start = || {
        let mut command = Command::new(&program);
        command.args(["dataset", "write"]).arg(&target).args(KERNEL).args(KERNEL_RUNS);
        command.args(["--parallel", "3"]).stderr(Stdio::null()).spawn().expect("it starts")
    };
    for at_least in [1, 3] {
        let mut campaign = start();
        wait_for("runs that ended", || {
            let kept = fs::read_dir(target.join("runs")).ok()?.count();
            (kept >= at_least).then_some(())
        });
        campaign.kill().expect("ours");
        campaign.wait().expect("ours");
        wait_for("its processes to end", || processes(&program).is_empty().then_some(()));
    }
    let output = on_kernel(&target).output().expect("the binary runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(errors.contains("are there already"), "it went on: {errors}");

    let whole = folder.join("whole");
    assert!(on_kernel(&whole).status().expect("the binary runs").success());
    assert_eq!(files(&target), files(&whole), "as if it had not been interrupted");
    for folder in [&target, &whole] {
        let output = dataset("verify", folder, &[]);
        // Four runs are not ten, and nothing else is wrong.
        let told = String::from_utf8_lossy(&output.stdout);
        let faults: Vec<_> = told
            .lines()
            .filter(|line| line.contains(".txt:") && !line.contains("No such file"))
            .collect();
        assert!(faults.is_empty(), "{told}");
    }
    let kept = fs::read_dir(target.join("runs")).expect("runs").count();
    assert_eq!(kept, 8);
    let environment =
        fs::read_to_string(target.join("environment.json")).expect("it stands with the results");
    let environment: Value = serde_json::from_str(&environment).expect("JSON");
    for key in [
        "kernel",
        "clock_source",
        "load",
        "offloads",
        "congestion_control",
        "emulator_lateness_p99_us",
    ] {
        assert!(!environment[key].is_null(), "{key}: {environment:#}");
    }
}

#[test]
fn a_process_of_a_run_that_is_killed_costs_that_run_alone() {
    if !permitted() {
        return;
    }
    let folder = fresh("robbed");
    let program = own_program(&folder);
    for verb in ["kernel-sender", "kernel-receiver", "emulate-init"] {
        let target = folder.join(verb);
        let mut command = Command::new(&program);
        command.args(["dataset", "write"]).arg(&target).args(KERNEL).args(KERNEL_RUNS);
        let campaign = command.stderr(Stdio::piped()).spawn().expect("it starts");
        let victim = wait_for("a process of a run", || {
            let found = processes(&program).into_iter();
            let mut found = found.filter(|(_, words)| words.split(' ').nth(1) == Some(verb));
            found.next().map(|(id, _)| id)
        });
        let kill = Command::new("kill").args(["-9", &victim.to_string()]).status();
        assert!(kill.expect("kill(1)").success());
        let output = campaign.wait_with_output().expect("ours");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{verb}: {errors}");
        assert!(errors.contains("again, for it was"), "{verb}: {errors}");
        assert_eq!(processes(&program), []);
    }
}

#[test]
fn a_full_disk_is_told_and_nothing_is_left_half_written() {
    let folder = fresh("full");
    let mount = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "acklab-test"])
        .arg(&folder)
        .stderr(Stdio::null())
        .status();
    if !mount.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: a full disk: no tmpfs may be mounted here");
        return;
    }
    let output = dataset("write", &folder, &SMALL);
    let left = files(&folder);
    let unmount = Command::new("umount").arg(&folder).status();
    assert!(unmount.expect("umount(8)").success());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("No space left on device"), "{errors}");
    assert!(left.iter().all(|file| !file.display().to_string().contains("unfinished")), "{left:?}");
}

#[test]
fn who_may_not_make_runs_is_told_what_it_needs() {
    let folder = fresh("nobody");
    let program = std::env::temp_dir().join(format!("acklab-dataset-{}", std::process::id()));
    fs::copy(ACKLAB, &program).expect("room for a copy");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("the copy is ours");
    let attempt = || {
        let mut command = Command::new(&program);
        command.args(["run", "nagle-delack", "--world", "kernel", "--set", "messages=3"]);
        command.current_dir(std::env::temp_dir());
        command
    };
    // Refused where the test is not root, and then it has nothing to give up.
    let output = attempt().uid(NOBODY).output().or_else(|_| attempt().output());
    fs::remove_file(&program).expect("the copy is ours");
    let output = output.expect("the binary runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("not permitted") && errors.contains("sudo"), "{errors}");
    assert!(files(&folder).is_empty());
}

#[test]
fn a_run_whose_interface_disappears_is_made_again() {
    if !permitted() {
        return;
    }
    let folder = fresh("unplugged");
    let program = own_program(&folder);
    let target = folder.join("set");
    let mut command = Command::new(&program);
    command.args(["dataset", "write"]).arg(&target).args(KERNEL).args(["--runs", "1"]);
    let campaign = command.stderr(Stdio::piped()).spawn().expect("it starts");
    let sender = wait_for("a sender that writes", || {
        let found = processes(&program).into_iter();
        let mut found = found.filter(|(_, words)| words.split(' ').nth(1) == Some("kernel-sender"));
        found.next().map(|(id, _)| id)
    });
    let gone = Command::new("nsenter")
        .args(["-t", &sender.to_string(), "-n", "ip", "link", "delete", "path0"])
        .status();
    assert!(gone.expect("nsenter(1)").success());
    let output = campaign.wait_with_output().expect("ours");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.contains("relay packets"), "{errors}");
    assert_eq!(processes(&program), []);
}
