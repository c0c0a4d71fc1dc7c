//! `acklab fix`: TCP_NODELAY and bounds of the delayed ACK for programs that cannot be changed.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use acklab_core::time::Span;
use acklab_live::chosen::Chosen;
use acklab_live::fix::{self, FixError, Plan, Remedy};
use acklab_live::told::Summary;
use acklab_live::watch::Watch;
use clap::Args;
use serde_json::{Value, json};

use crate::outcome::{Failure, Format, interruption, print, print_json, tell};
use crate::watch::words::failure;

/// Mend held writes of running programs from outside, without touching them (Linux, root)
///
/// Shows what will be done, measures for some seconds, does it, and measures again. Open connections have their socket
/// options set through a copy of the socket; connections that will be opened get theirs from a BPF program on the
/// cgroup; immediate ACKs come from a route. All of it is undone by --undo, also after this program was killed.
#[derive(Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of the command line")]
#[command(after_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("what").args(["nodelay", "delack_max", "quickack", "undo", "list"]).required(true))]
pub(crate) struct Fix {
    /// Connections of this process
    #[arg(long, value_name = "N")]
    pid: Option<u32>,
    /// Connections with this port at one end
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Connections of the processes in this cgroup (version 2) and below it
    #[arg(long, value_name = "PATH")]
    cgroup: Option<PathBuf>,
    /// Where writes are held: switch Nagle's algorithm off (TCP_NODELAY)
    #[arg(long)]
    nodelay: bool,
    /// Where ACKs are late: delay none for longer than this (TCP_DELACK_MAX_US; at least two ticks, 8 ms at 250 Hz)
    #[arg(long, value_name = "TIME")]
    delack_max: Option<Span>,
    /// Where ACKs are late: delay none, by a route to each peer that is connected now
    #[arg(long)]
    quickack: bool,
    /// Take back what was fixed: all of it, or that of the same --pid, --port or --cgroup
    #[arg(long)]
    undo: bool,
    /// Show the fixes that are in force
    #[arg(long)]
    list: bool,
    /// Show what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Measure for so many seconds before, and after; 0 measures not at all
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    seconds: u64,
    /// How to tell it: for people, or one JSON object, schema acklab.fix/1
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

impl Fix {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let chosen = Chosen { pid: self.pid, port: self.port, cgroup: self.cgroup.clone() };
        if self.list {
            return self.tell_list(&fix::records());
        }
        if self.undo {
            return self.tell_undone(&fix::undo(&chosen));
        }
        if chosen == Chosen::default() {
            return Err(Failure::Unusable(
                "fix: say whose connections are meant: --pid N, --port N or --cgroup PATH"
                    .to_owned(),
            ));
        }
        let remedy = match self.delack_max {
            Some(most) => Remedy::DelackMax(most),
            None if self.quickack => Remedy::QuickAck,
            None => Remedy::NoDelay,
        };
        let plan = fix::plan(&chosen, remedy).map_err(refused)?;
        if self.format == Format::Text {
            print(&plan_text(&plan, self.dry_run))?;
        }
        if self.dry_run {
            return self.tell_json(&plan, remedy, false, [None, None]);
        }
        let interrupted = interruption()?;
        let before = self.measure(&chosen, &interrupted)?;
        if interrupted.load(Ordering::Relaxed) {
            tell("acklab: fix: interrupted; nothing was changed");
            self.tell_json(&plan, remedy, false, [before, None])?;
            return Err(Failure::Incomplete);
        }
        plan.apply().map_err(|error| {
            tell(&format!(
                "acklab: fix: not all steps were taken; undo them with: {}",
                plan.undoing()
            ));
            refused(error)
        })?;
        let after = self.measure(&chosen, &interrupted)?;
        if self.format == Format::Text {
            if let (Some(before), Some(after)) = (&before, &after) {
                print(&format!(
                    "Before: {}\nAfter:  {}\n",
                    measured_text(before),
                    measured_text(after)
                ))?;
            }
            print(&format!("Undo it with: {}\n", plan.undoing()))?;
        }
        self.tell_json(&plan, remedy, true, [before, after])?;
        if interrupted.load(Ordering::Relaxed) {
            tell("acklab: fix: interrupted while measuring what it brought; the fix is in force");
            return Err(Failure::Incomplete);
        }
        Ok(())
    }

    /// What a watch sees in the time; `None` where there is none.
    fn measure(
        &self,
        chosen: &Chosen,
        interrupted: &AtomicBool,
    ) -> Result<Option<Summary>, Failure> {
        if self.seconds == 0 {
            return Ok(None);
        }
        let mut watch = Watch::begin(chosen).map_err(failure)?;
        let end = Duration::from_secs(self.seconds);
        while watch.watched() < end && !interrupted.load(Ordering::Relaxed) {
            watch.turn().map_err(failure)?;
        }
        Ok(Some(watch.finish().0))
    }

    fn tell_json(
        &self,
        plan: &Plan,
        remedy: Remedy,
        applied: bool,
        measured: [Option<Summary>; 2],
    ) -> Result<(), Failure> {
        if self.format == Format::Text {
            return Ok(());
        }
        let seconds = self.seconds as f64;
        let is_whole =
            |one: &Option<Summary>| one.as_ref().is_none_or(|it| it.watched_s >= seconds);
        let complete = (applied || self.dry_run) && measured.iter().all(is_whole);
        let [before, after] = measured.map(|m| m.map(|m| measured_json(&m)));
        print_json(&json!({
            "schema": SCHEMA,
            "remedy": remedy.words(),
            "steps": plan.steps(),
            "not_covered": plan.not_covered(),
            "applied": applied,
            "complete": complete,
            "before": before,
            "after": after,
            "undo": plan.undoing(),
        }))
    }

    fn tell_list(&self, records: &[String]) -> Result<(), Failure> {
        match self.format {
            Format::Text if records.is_empty() => print("No fix is in force.\n"),
            Format::Text => print(&(records.join("\n") + "\n")),
            Format::Json => print_json(&json!({ "schema": SCHEMA, "fixes": records })),
        }
    }

    fn tell_undone(&self, undone: &fix::Undone) -> Result<(), Failure> {
        match self.format {
            Format::Text if undone.steps.is_empty() => print("Nothing was left to undo.\n")?,
            Format::Text => print(&(undone.steps.join("\n") + "\n"))?,
            Format::Json => print_json(&json!({
                "schema": SCHEMA,
                "undone": undone.steps,
                "failed": undone.failed,
            }))?,
        }
        if undone.failed.is_empty() {
            return Ok(());
        }
        Err(Failure::Unusable(format!("fix: not undone: {}", undone.failed.join("; "))))
    }
}

fn refused(error: FixError) -> Failure {
    Failure::at("fix", error)
}

fn plan_text(plan: &Plan, dry: bool) -> String {
    let mut text = if dry { "Would do:\n" } else { "Does:\n" }.to_owned();
    text.extend(plan.steps().iter().map(|step| format!("  {step}\n")));
    text.extend(plan.not_covered().iter().map(|gap| format!("Does not reach {gap}\n")));
    text
}

fn measured_text(measured: &Summary) -> String {
    let Summary { watched_s, frames, count, seconds, .. } = measured;
    format!("{count} writes held for {seconds:.3} s in {watched_s:.1} s ({frames} frames)")
}

fn measured_json(measured: &Summary) -> Value {
    json!({
        "watched_s": measured.watched_s,
        "frames": measured.frames,
        "dropped": measured.dropped,
        "count": measured.count,
        "seconds": measured.seconds,
    })
}

/// The JSON's schema name.
const SCHEMA: &str = "acklab.fix/1";

const EXAMPLES: &str = "\
Examples:
  sudo acklab fix --pid $(pidof broker) --nodelay --dry-run
  sudo acklab fix --port 4712 --nodelay
  sudo acklab fix --port 4712 --delack-max 8ms         on the host that acknowledges
  sudo acklab fix --list
  sudo acklab fix --undo

What each remedy brings and costs: docs/remedies.md.";
