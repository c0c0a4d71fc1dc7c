//! `make truth`: makes cases of known truth on the running kernel, and holds the diagnosis against them.
//!
//!     truth make DIR [--pairs] [--breadth N] [--runs N] [--parallel N] [--only WORD]
//!     truth score DIR [--each | --wrong] [--only WORD] [--json FILE]
//!     truth causes DIR [--only WORD] [--each]
//!     truth two DIR [--only WORD] [--each]
//!     truth whatif DIR [--only WORD] [--each]
//!     truth middle DIR
//!     truth capture FOLDER VANTAGE/DAMAGE FILE
//!     truth adopt DIR FOLDER...

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::exit;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

use acklab_core::rng::Rng;
use acklab_core::time::Span;
use acklab_net::emulate;
use acklab_trace::capture::CaptureReader;
use acklab_worlds::campaign::{Campaign, News};
use acklab_worlds::truth::damage::Damage;
use acklab_worlds::truth::hold::{EndFacts, addresses, direction};
use acklab_worlds::truth::lab::{Done, Lab, LabError, Side, play};
use acklab_worlds::truth::score::{HEAD, Outcome, Sums, View, judge};
use acklab_worlds::truth::script::{Call, Case, End, Logged};
use acklab_worlds::truth::store::{Kept, SCHEMA, Truth};
use acklab_worlds::truth::{causes, pairs, pattern, two, vantage, what_if};

fn main() {
    let words: Vec<OsString> = env::args_os().skip(1).collect();
    let texts: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let outcome = match texts.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["init", parent, ..] => exit(emulate::init::run(parent.parse().unwrap_or(0), &words[2..])),
        ["play", case, end, connects] => match serde_json::from_str::<Case>(case) {
            Ok(case) => exit(play(&case, usize::from(end == "1"), connects == "true")),
            Err(error) => Err(error.to_string()),
        },
        ["make", dir, ..] => make(Path::new(dir), &Options(&texts[2..])),
        ["score", dir, ..] => score(Path::new(dir), &Options(&texts[2..])),
        ["middle", dir] => middle(Path::new(dir)),
        ["causes", dir, ..] => tell_causes(Path::new(dir), &Options(&texts[2..])),
        ["whatif", dir, ..] => tell_what_if(Path::new(dir), &Options(&texts[2..])),
        ["two", dir, ..] => two(Path::new(dir), &Options(&texts[2..])),
        ["capture", folder, view, file] => write_capture(Path::new(folder), view, Path::new(file)),
        ["adopt", dir, ..] => texts[2..].iter().try_for_each(|from| adopt(dir.as_ref(), from.as_ref())),
        _ => Err(
            "usage: truth make DIR [--pairs] [--breadth N] [--runs N] [--parallel N] [--only WORD]\n       \
             truth score DIR [--each] [--wrong] [--only WORD] [--json FILE]\n       \
             truth causes DIR [--only WORD] [--each]\n       \
             truth two DIR [--only WORD] [--each]\n       \
             truth whatif DIR [--only WORD] [--each]\n       \
             truth capture FOLDER VANTAGE/DAMAGE FILE\n       \
             truth adopt DIR FOLDER..."
                .to_owned(),
        ),
    };
    if let Err(reason) = outcome {
        eprintln!("truth: {reason}");
        exit(1);
    }
}

/// `--name value`.
struct Options<'a>(&'a [String]);

impl Options<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        let at = self.0.iter().position(|word| word == name)?;
        self.0.get(at + 1).map(String::as_str)
    }

    fn number(&self, name: &str, otherwise: usize) -> Result<usize, String> {
        self.text(name)
            .map_or(Ok(otherwise), |text| text.parse().map_err(|error| format!("{name}: {error}")))
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|word| word == name)
    }
}

/// Makes every case that is not there yet.
fn make(root: &Path, options: &Options<'_>) -> Result<(), String> {
    let runs = options.number("--runs", 2)? as u32;
    let only = options.text("--only").unwrap_or_default();
    let all = if options.has("--pairs") {
        pairs::pairs(options.number("--breadth", 1)?)
    } else {
        pattern::cases(options.number("--breadth", 6)?)
    };
    let mut wanted: Vec<(Case, u32)> = Vec::new();
    for run in 1..=runs {
        let cases = all.iter().filter(|case| case.name.contains(only)).cloned();
        wanted.extend(
            cases.filter(|case| !Kept::place(root, case, run).exists()).map(|case| (case, run)),
        );
    }
    // Halves and patterns in no order, so that a part of all is a fair one.
    wanted.sort_by_key(|(case, run)| Rng::named(3, &format!("{}{run}", case.name)).next_u64());
    eprintln!("truth: {} cases to make in {}", wanted.len(), root.display());
    let interrupted = Arc::new(AtomicBool::new(false));
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let max_lateness = Span::from_millis(2);
    let lab = Lab {
        program,
        init: "init",
        play: "play",
        max_lateness,
        interrupted: Arc::clone(&interrupted),
    };
    let campaign = Campaign {
        parallel: options.number("--parallel", 16)?,
        apart: Duration::from_millis(300),
        attempts: 4,
        interrupted: &interrupted,
    };
    campaign
        .run(
            &wanted,
            |(case, run)| {
                let repeated = Case { seed: case.seed ^ u64::from(*run) << 60, ..case.clone() };
                let done = lab.run(&repeated).map_err(|error| (error, case.name.clone()))?;
                keep(root, &repeated, *run, &done)
                    .map_err(|reason| (LabError::Invalid(reason), case.name.clone()))
            },
            |(error, _)| matches!(error, LabError::Invalid(_) | LabError::End { .. }),
            |(case, run), news| {
                match news {
                    News::Done(()) => eprintln!("truth: {}.{run}", case.name),
                    News::Repeated((error, _)) => {
                        eprintln!("truth: {}.{run} again: {error}", case.name);
                    }
                }
                Ok(())
            },
        )
        .map_err(|(error, name)| format!("{name}: {error}"))
}

/// Finds out what happened, and keeps it.
fn keep(root: &Path, case: &Case, run: u32, done: &Done) -> Result<(), String> {
    let connects = case.ends[0].foreign.is_some() || case.ends[1].foreign.is_none();
    let ends = addresses(&done.sides[0].frames, connects).ok_or("no SYN was captured")?;
    let facts: Vec<EndFacts<'_>> = case
        .ends
        .iter()
        .zip(&done.sides)
        .map(|(end, side)| EndFacts {
            log: &side.log,
            frames: &side.frames,
            system: end.foreign.as_deref().unwrap_or("linux"),
            nodelay: end.nodelay,
        })
        .collect();
    let directions: Option<Vec<_>> = [(0, 1), (1, 0)]
        .into_iter()
        .map(|(from, to)| direction(&facts[from], &facts[to], ends, from == 0))
        .collect();
    let directions = directions.ok_or("the handshake was not captured")?;
    let middle = 0.2 + 0.6 * Rng::named(case.seed, "middle").uniform();
    let [client, server] = &done.sides;
    let between = vantage::between([&client.frames, &server.frames], ends[1], middle, case.seed);
    let truth = Truth {
        schema: SCHEMA.to_owned(),
        case: case.clone(),
        run,
        kernel: done.kernel.clone(),
        lateness_us: done.lateness_us,
        middle,
        directions,
    };
    let captures = [client.frames.clone(), between, server.frames.clone()];
    let kept = Kept { folder: Kept::place(root, case, run), truth, captures };
    kept.write().map_err(|error| error.to_string())
}

/// A conversation of programs that nobody here wrote, as tools/truth-programs leaves it in `case.json`.
#[derive(serde::Deserialize)]
struct Foreign {
    name: String,
    pattern: String,
    link: [String; 2],
    /// The client's calls and the server's, by time.
    logs: [Vec<Logged>; 2],
    lateness_us: f64,
    kernel: String,
}

/// Takes such a conversation, with `client.pcap` and `server.pcap` beside it, among the cases below `root`.
fn adopt(root: &Path, from: &Path) -> Result<(), String> {
    let told = |error: &dyn std::fmt::Display| format!("{}: {error}", from.display());
    let text = fs::read(from.join("case.json")).map_err(|error| told(&error))?;
    let Foreign { name, pattern, link, logs, lateness_us, kernel } =
        serde_json::from_slice(&text).map_err(|error| told(&error))?;
    let frames = |who: &str| -> Result<Vec<vantage::Frame>, String> {
        let path = from.join(format!("{who}.pcap"));
        let told = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let mut reader = CaptureReader::open(&path).map_err(|error| told(&error))?;
        let mut frames = Vec::new();
        while let Some(frame) = reader.next_frame().map_err(|error| told(&error))? {
            frames.push((frame.time, frame.bytes.to_vec()));
        }
        Ok(frames)
    };
    let mut ends = [End::default(), End::default()];
    let mut sides = [Side::default(), Side::default()];
    for (which, mut log) in logs.into_iter().enumerate() {
        let writes = |call: &Logged| matches!(call.call, Call::Write(_) | Call::WriteMore(_));
        let first = log.iter().find(|call| writes(call)).map_or(u64::MAX, |call| call.at);
        let early = |call: &Logged| call.at < first && matches!(call.call, Call::Nodelay(_));
        ends[which].nodelay =
            log.iter().rfind(|call| early(call)).is_some_and(|c| c.call == Call::Nodelay(true));
        log.retain(|call| !early(call));
        sides[which] = Side { log, frames: frames(["client", "server"][which])? };
    }
    let case = Case { name, pattern, ends, closes: 0, link, seed: 1 };
    keep(root, &case, 1, &Done { sides, kernel, lateness_us, lost: [0; 2] })
}

/// Holds the diagnosis against every case below `root`.
fn score(root: &Path, options: &Options<'_>) -> Result<(), String> {
    let only = options.text("--only").unwrap_or_default();
    let mut folders = Kept::list(root).map_err(|error| format!("{}: {error}", root.display()))?;
    folders.retain(|folder| folder.to_string_lossy().contains(only));
    let outcomes = judge_all(&folders)?;
    let mut rows: BTreeMap<(u8, String), Sums> = BTreeMap::new();
    for outcome in &outcomes {
        let half = if outcome.kept_out { "kept out" } else { "tuning" };
        let state = if outcome.damaged { "damaged" } else { "clean" };
        let damage = outcome.view.split('/').next_back().unwrap_or_default();
        let pattern = outcome.case.split('_').next().unwrap_or_default();
        for name in [
            (0, format!("{state}, {half}")),
            (1, damage.to_owned()),
            (2, format!("{pattern}, {state}")),
        ] {
            rows.entry(name).or_default().add(outcome);
        }
    }
    println!("{HEAD}");
    for ((_, name), sums) in &rows {
        println!("{}", sums.row(name));
    }
    tell_calibration(&outcomes);
    tell_each(&outcomes, options);
    if let Some(file) = options.text("--json") {
        let text = serde_json::to_string(&outcomes).map_err(|error| error.to_string())?;
        fs::write(file, text).map_err(|error| format!("{file}: {error}"))?;
    }
    Ok(())
}

/// How many of the statements made with a confidence are right, and of the holds claimed with a probability.
fn tell_calibration(outcomes: &[Outcome]) {
    const BOUNDS: [f64; 6] = [0.0, 0.5, 0.8, 0.9, 0.95, 0.99];
    println!(
        "\n| said with | statements, clean: right | damaged: right | holds, clean: right | damaged: right |"
    );
    println!("|---|---|---|---|---|");
    for (index, low) in BOUNDS.iter().enumerate() {
        let high = BOUNDS.get(index + 1).copied().unwrap_or(f64::INFINITY);
        let cell = |damaged: bool, of: fn(&Outcome) -> &[(f64, bool)]| {
            let all = outcomes.iter().filter(|one| one.damaged == damaged).flat_map(of);
            let within: Vec<bool> =
                all.filter(|said| (*low..high).contains(&said.0)).map(|said| said.1).collect();
            let right = within.iter().filter(|right| **right).count();
            match within.len() {
                0 => "-".to_owned(),
                count => format!("{:.1} % of {count}", 100.0 * right as f64 / count as f64),
            }
        };
        let most =
            if high.is_finite() { format!("{low} to {high}") } else { format!("{low} or more") };
        println!(
            "| {most} | {} | {} | {} | {} |",
            cell(false, |one| &one.statements),
            cell(true, |one| &one.statements),
            cell(false, |one| &one.likely),
            cell(true, |one| &one.likely)
        );
    }
}

/// A line for each capture, or for those of which something was wrong.
fn tell_each(outcomes: &[Outcome], options: &Options<'_>) {
    for one in outcomes {
        let wrong = one.stalled.is_some() && one.stalled != one.verdict
            || one.found < one.holds
            || one.right < one.claims
            || one.directions.iter().any(|d| d.stalled == Some(true) && !d.seconds_right());
        if options.has("--each") || options.has("--wrong") && wrong {
            let word =
                |state: Option<bool>| state.map_or("?", |on| if on { "stalled" } else { "not" });
            println!(
                "{} {}: truth {}, said {} ({:.2}); found {} of {}, right {} of {}; seconds {:?}",
                one.case,
                one.view,
                word(one.stalled),
                word(one.verdict),
                one.confidence,
                one.found,
                one.holds,
                one.right,
                one.claims,
                one.directions.iter().map(|d| (d.seconds, d.seconds_said)).collect::<Vec<_>>()
            );
        }
    }
}

fn judge_all(folders: &[PathBuf]) -> Result<Vec<Outcome>, String> {
    let (next, all) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let work = || -> Result<(), String> {
            while let Some(folder) = folders.get(next.fetch_add(1, Ordering::Relaxed)) {
                let kept = Kept::read(folder).map_err(|error| error.to_string())?;
                for view in View::of(&kept.truth.case.name) {
                    let outcome = judge(&kept, view).map_err(|error| {
                        format!("{} {}: {error}", folder.display(), view.name())
                    })?;
                    all.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
                }
            }
            Ok(())
        };
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running
            .into_iter()
            .try_for_each(|thread| thread.join().map_err(|_| "a thread panicked".to_owned())?)
    })?;
    let mut all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    all.sort_by(|a, b| (&a.case, &a.view).cmp(&(&b.case, &b.view)));
    Ok(all)
}

/// Makes the captures in the middle anew, out of those at the ends.
fn middle(root: &Path) -> Result<(), String> {
    for folder in Kept::list(root).map_err(|error| format!("{}: {error}", root.display()))? {
        let mut kept = Kept::read(&folder).map_err(|error| error.to_string())?;
        let (server, share) = (kept.truth.directions[0].to, kept.truth.middle);
        let [client, _, other] = &kept.captures;
        kept.captures[1] = vantage::between([client, other], server, share, kept.truth.case.seed);
        kept.write_capture(1).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Causes beside Nagle's algorithm, in undamaged captures.
fn tell_causes(root: &Path, options: &Options<'_>) -> Result<(), String> {
    let only = options.text("--only").unwrap_or_default();
    let mut folders = Kept::list(root).map_err(|error| format!("{}: {error}", root.display()))?;
    folders.retain(|folder| folder.to_string_lossy().contains(only));
    let mut kinds: BTreeMap<&str, [f64; 7]> = BTreeMap::new();
    for folder in &folders {
        let kept = Kept::read(folder).map_err(|error| error.to_string())?;
        for one in causes::judge(&kept)? {
            let [said, truth] = one.count;
            let sums = kinds.entry(one.kind).or_default();
            let which = match (said > 0, truth >= 3) {
                (true, true) => 0,
                (false, true) => 1,
                (true, false) if truth == 0 => 2,
                _ => 3,
            };
            if options.has("--each")
                && (which == 1 || which == 2 || which == 0 && said * 10 < truth * 8)
            {
                println!("{} {one:?}", folder.display());
            }
            sums[which] += 1.0;
            if which == 0 {
                sums[4] += said as f64 / truth as f64;
                sums[5] += one.seconds[0];
                sums[6] += one.seconds[1];
            }
        }
    }
    println!(
        "| cause | hosts with 3 or more: named | not named | named where there was none | count said, of truth | seconds said, of truth |"
    );
    println!("|---|---|---|---|---|---|");
    for (kind, [named, missed, invented, _, counts, said, truth]) in kinds {
        let seconds =
            if truth > 0.0 { format!("{:.1} %", 100.0 * said / truth) } else { "-".to_owned() };
        println!(
            "| {kind} | {named} | {missed} | {invented} | {:.1} % | {seconds} |",
            100.0 * counts / named
        );
    }
    Ok(())
}

/// Both captures of every case together, with the server's clock as it was, shifted and drifting.
fn tell_what_if(root: &Path, options: &Options<'_>) -> Result<(), String> {
    let only = options.text("--only").unwrap_or_default();
    let mut folders = Kept::list(root).map_err(|error| format!("{}: {error}", root.display()))?;
    folders.retain(|folder| folder.to_string_lossy().contains(only));
    let mut sums: BTreeMap<String, [u64; 5]> = BTreeMap::new();
    for told in what_if::judge(&folders)? {
        if options.has("--each") {
            println!("{told}");
        }
        let half = if told.kept_out { "kept out" } else { "tuning" };
        let of = sums.entry(format!("{half}: {}", told.change)).or_default();
        let refused = told.predicted.is_err();
        let honest = !told.is_right() && told.is_open() && told.is_inside();
        of[0] += 1;
        of[1] += u64::from(told.is_right());
        of[2] += u64::from(honest);
        of[3] += u64::from(refused);
        of[4] += u64::from(!told.is_right() && !honest && !refused);
    }
    println!(
        "| change | predictions | p50 and p95 right | not, but within an interval that is wider | refused | wrong |\n|---|---|---|---|---|---|"
    );
    for (change, [all, right, honest, refused, wrong]) in sums {
        println!("| {change} | {all} | {right} | {honest} | {refused} | {wrong} |");
    }
    Ok(())
}

fn two(root: &Path, options: &Options<'_>) -> Result<(), String> {
    let only = options.text("--only").unwrap_or_default();
    let mut folders = Kept::list(root).map_err(|error| format!("{}: {error}", root.display()))?;
    folders.retain(|folder| folder.to_string_lossy().contains(only));
    let folder_of_both = tempfile::tempdir().map_err(|error| error.to_string())?;
    println!(
        "| server's clock | pairs | aligned | offset within | drift within | offset wrong by, ms: median, worst | \
         least delays within | lost said, true | pairs with losses right | missed |\n|---|---|---|---|---|---|---|---|---|---|"
    );
    for shift in two::SHIFTS {
        let (mut all, mut errors) = (Vec::new(), Vec::new());
        for folder in &folders {
            let kept = Kept::read(folder).map_err(|error| error.to_string())?;
            let aligned = two::judge(&kept, shift, folder_of_both.path())?;
            if options.has("--each") {
                println!("{} {shift:?}: {aligned:?}", folder.display());
            }
            if aligned.aligned {
                errors.push(aligned.error_ms.abs());
            }
            all.push(aligned);
        }
        errors.sort_by(f64::total_cmp);
        let count = |of: fn(&two::Aligned) -> bool| all.iter().filter(|one| of(one)).count();
        let sum = |of: fn(&two::Aligned) -> u64| all.iter().map(of).sum::<u64>();
        println!(
            "| {} ms, {} ppm, {}{} | {} | {} | {} | {} | {:.3}, {:.3} | {} | {}, {} | {} | {} |",
            shift.ahead as f64 / 1e6,
            shift.drift_ppm,
            shift.damage.name(),
            if shift.nat { ", behind a NAT" } else { "" },
            all.len(),
            count(|one| one.aligned),
            count(|one| one.within[0]),
            count(|one| one.within[1]),
            errors.get(errors.len() / 2).unwrap_or(&0.0),
            errors.last().unwrap_or(&0.0),
            count(|one| one.delays_within),
            sum(|one| one.lost[0]),
            sum(|one| one.lost[1]),
            count(|one| one.lost[0] == one.lost[1]),
            sum(|one| one.missed),
        );
    }
    Ok(())
}

/// Writes the capture that the scorer diagnoses.
fn write_capture(folder: &Path, view: &str, file: &Path) -> Result<(), String> {
    let kept = Kept::read(folder).map_err(|error| error.to_string())?;
    let all = (0..3).flat_map(|vantage| Damage::ALL.map(|damage| View { vantage, damage }));
    let names = || all.clone().map(View::name).collect::<Vec<_>>().join(", ");
    let chosen = all.clone().find(|one| one.name() == view);
    let chosen = chosen.ok_or_else(|| format!("no view {view}; there are {}", names()))?;
    fs::write(file, chosen.capture(&kept)).map_err(|error| format!("{}: {error}", file.display()))
}
