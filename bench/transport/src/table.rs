//! Medians, as a table for people and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::contender::Contender;
use crate::setting::Setting;
use crate::trial::Trial;
use crate::veth::Bulk;

/// All transfers of one contender in one setting.
pub struct Cell {
    /// Who.
    pub contender: Contender,
    /// Where.
    pub setting: Setting,
    /// The transfers that were run.
    pub trials: Vec<Trial>,
}

impl Cell {
    /// The median of the seconds, where a transfer that was not done counts as longer than any other;
    /// none: the median transfer was not done.
    pub fn median(&self) -> Option<f64> {
        let seconds = |trial: &Trial| trial.seconds.unwrap_or(f64::INFINITY);
        Some(median(self.trials.iter().map(seconds))).filter(|value| value.is_finite())
    }

    /// Medians of the bytes on the wire, forwards and backwards.
    pub fn wire(&self) -> [f64; 2] {
        [0, 1].map(|way| median(self.trials.iter().map(|trial| trial.wire[way] as f64)))
    }

    fn json(&self, bytes: u64) -> Value {
        let (rate, delay) = self.setting.link.figures();
        let troubles: Vec<_> = self.trials.iter().filter_map(|t| t.trouble.as_deref()).collect();
        json!({
            "contender": self.contender.name(),
            "rate_mbit": rate, "delay_ms": delay, "loss_percent": self.setting.loss,
            "jitter_ms": self.setting.jitter,
            "path_0_dead_s": self.setting.dead, "paths": self.contender.paths(),
            "median_s": self.median(),
            "least_s": self.setting.least(bytes, self.contender.paths()),
            "seconds": self.trials.iter().map(|trial| trial.seconds).collect::<Vec<_>>(),
            "wire_bytes": self.trials.iter().map(|trial| trial.wire).collect::<Vec<_>>(),
            "invalid": self.trials.iter().filter(|trial| !trial.valid).count(),
            "troubles": troubles,
        })
    }
}

/// The middle value; between two middle ones the lower.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(f64::INFINITY)
}

/// Seconds, and bytes on the wire forwards per byte of the file; a row each contender.
pub fn text(cells: &[Cell], bytes: u64, limit: f64) -> String {
    let mut out = String::new();
    let mut settings: Vec<Setting> = Vec::new();
    for cell in cells {
        if !settings.contains(&cell.setting) {
            settings.push(cell.setting);
        }
    }
    for link in settings.iter().map(|s| s.link).collect::<Vec<_>>().chunk_by(|a, b| a == b) {
        let (rate, delay) = link[0].figures();
        let columns: Vec<_> = settings.iter().filter(|s| s.link == link[0]).collect();
        let _ = writeln!(out, "\n{rate} Mbit/s, {delay} ms each way: seconds (wire bytes / file)");
        let _ = write!(out, "{:<18}", "loss");
        for setting in &columns {
            let _ = write!(out, "{:>24}", setting.title());
        }
        for contender in crate::contender::ALL {
            let row = |setting: &Setting| {
                cells.iter().find(|c| c.contender == contender && c.setting == *setting)
            };
            if !columns.iter().any(|setting| row(setting).is_some()) {
                continue;
            }
            let _ = write!(out, "\n{:<18}", contender.name());
            for setting in &columns {
                let _ = write!(
                    out,
                    "{:>24}",
                    row(setting).map_or("".into(), |c| field(c, bytes, limit))
                );
            }
        }
        out.push('\n');
    }
    out
}

fn field(cell: &Cell, bytes: u64, limit: f64) -> String {
    let seconds = match cell.median() {
        Some(seconds) => format!("{seconds:.2} ({:.2})", cell.wire()[0] / bytes as f64),
        None if cell.trials.iter().any(|trial| trial.trouble.is_some()) => "failed".into(),
        None => format!("> {limit}"),
    };
    let late = cell.trials.iter().filter(|trial| !trial.valid).count();
    if late > 0 { format!("{seconds} {late} late") } else { seconds }
}

/// CPU and memory of the bulk transfers; a row each contender.
pub fn bulk_text(rows: &[(Contender, Vec<Bulk>)], bytes: u64) -> String {
    let mut out = format!(
        "\n{:.1} GB over veth, MTU 1500: CPU s/GB (median of {})\n{:<18}{:>8}{:>10}{:>8}{:>8}{:>16}\n",
        bytes as f64 / 1e9,
        rows.first().map_or(0, |row| row.1.len()),
        "",
        "sender",
        "receiver",
        "both",
        "Gbit/s",
        "memory MB"
    );
    for (contender, runs) in rows {
        let of = |value: fn(&Bulk) -> f64| median(runs.iter().map(value));
        let _ = writeln!(
            out,
            "{:<18}{:>8.2}{:>10.2}{:>8.2}{:>8.2}{:>9.0}{:>7.0}",
            contender.name(),
            of(|b| b.cpu[0]),
            of(|b| b.cpu[1]),
            of(|b| b.cpu[0] + b.cpu[1]),
            bytes as f64 * 8e-9 / of(|b| b.seconds),
            of(|b| b.memory[0] as f64 / 1e6),
            of(|b| b.memory[1] as f64 / 1e6),
        );
    }
    out
}

/// Everything that was measured.
pub fn json(cells: &[Cell], bulk: &[(Contender, Vec<Bulk>)], bytes: u64, bulk_bytes: u64) -> Value {
    let runs = |runs: &[Bulk]| {
        let run =
            |b: &Bulk| json!({ "seconds": b.seconds, "cpu_s_per_gb": b.cpu, "memory": b.memory });
        runs.iter().map(run).collect::<Vec<_>>()
    };
    json!({
        "schema": "acklab.bench-transport/1",
        "bytes": bytes,
        "cells": cells.iter().map(|cell| cell.json(bytes)).collect::<Vec<_>>(),
        "bulk_bytes": bulk_bytes,
        "bulk": bulk.iter()
            .map(|(who, trials)| json!({ "contender": who.name(), "runs": runs(trials) }))
            .collect::<Vec<_>>(),
    })
}
