//! `acklab demo`: a real capture diagnosed, and the same exchange in virtual time.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use acklab_lab::output::Folder;
use acklab_papers::demo::{self, Stalls};
use acklab_trace::{Diagnosis, Options};
use clap::Args;

use crate::diagnose::{make_folder, read, write_files};
use crate::outcome::{Failure, print, tell};

/// Diagnose a capture of the real Linux kernel, simulate the same exchange, and compare
#[derive(Args)]
pub(crate) struct Demo {
    /// A capture of 40 write-write-read exchanges, as `acklab record` records it
    #[arg(default_value = "demo/nagle-linux.pcapng")]
    file: PathBuf,
    /// Write the reports into this folder
    #[arg(long, value_name = "DIR", default_value = "out/demo")]
    out: PathBuf,
}

impl Demo {
    pub(crate) fn run(self) -> Result<(), Failure> {
        make_folder(&self.out)?;
        let real = read(&self.file, &Options::default())?;
        write_files(&self.out, &real, &self.file.display().to_string())?;

        let twin = demo::simulate().map_err(|error| Failure::Unusable(error.to_string()))?;
        let simulated = self.out.join("simulated");
        let folder = Folder::create(&simulated, &twin.results.plan)
            .and_then(|folder| folder.write(&twin.results));
        folder.map_err(|error| Failure::at(simulated.display(), error))?;
        let packets = simulated.join("packets.pcapng");
        fs::write(&packets, &twin.packets).map_err(|e| Failure::at(packets.display(), e))?;
        print(&self.summary(&real, &twin.diagnosis))?;
        agree(Stalls::of(&real), Stalls::of(&twin.diagnosis))
    }

    fn summary(&self, real: &Diagnosis, simulated: &Diagnosis) -> String {
        let mut text = format!("{}\n\n", real.verdict.summary);
        let (kernel, twin) = (Stalls::of(real), Stalls::of(simulated));
        let _ =
            writeln!(text, "                   held writes   lost     added delay p50 / p95 / max");
        for (name, stalls) in [("Linux kernel", kernel), ("virtual time", twin)] {
            let delay = stalls.delay_ms;
            let _ = writeln!(
                text,
                "  {name:<16} {:>10}  {:>6.2} s  {:>8.1} / {:.1} / {:.1} ms",
                stalls.count, stalls.seconds, delay.p50, delay.p95, delay.max
            );
        }
        let _ = writeln!(
            text,
            "  virtual time differs by {:+} held writes and {:+.1} ms in the median delay\n",
            twin.count.cast_signed() - kernel.count.cast_signed(),
            twin.delay_ms.p50 - kernel.delay_ms.p50
        );
        let _ = writeln!(text, "report:     {}", self.out.join("report.html").display());
        let _ = writeln!(text, "simulation: {}", self.out.join("simulated/report.html").display());
        text
    }
}

/// Whether the capture shows what the simulation shows; if not, says in what they differ.
fn agree(kernel: Stalls, twin: Stalls) -> Result<(), Failure> {
    let apart = (kernel.delay_ms.p50 - twin.delay_ms.p50).abs();
    let difference = if kernel.count == 0 {
        "no write was held in the capture".to_owned()
    } else if kernel.count.abs_diff(twin.count) * 10 > twin.count {
        format!("{} writes were held, {} in virtual time", kernel.count, twin.count)
    } else if apart > MEDIANS_APART_MS {
        format!("the median delays lie {apart:.1} ms apart")
    } else {
        return Ok(());
    };
    tell(&format!(
        "the capture does not show the exchange that was simulated: {difference}; `acklab record` \
         makes one that does"
    ));
    Err(Failure::Check)
}

/// How far the two medians may lie apart: a Linux timer expires on the kernel's tick, 4 ms where HZ
/// is 250.
const MEDIANS_APART_MS: f64 = 5.0;
