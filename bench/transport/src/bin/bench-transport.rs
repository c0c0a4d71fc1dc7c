//! `make bench-transport`: acklab, quinn and the kernel's TCP over the same links, in one run.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use acklab_bench_transport::contender::{ALL, Contender, Workshop, own_folder};
use acklab_bench_transport::metered::Metered;
use acklab_bench_transport::setting::{Link, Setting};
use acklab_bench_transport::table::{self, Cell};
use acklab_bench_transport::trial;
use acklab_bench_transport::veth::{self, Bulk, Wire};
use clap::{Args, Parser, Subcommand};

/// Transports side by side over emulated links (Linux, root)
#[derive(Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    inner: Option<Inner>,
    #[command(flatten)]
    bench: Bench,
}

/// What the bench runs of itself in other processes.
#[derive(Subcommand)]
#[command(disable_help_subcommand = true)]
enum Inner {
    /// Run a command and write down what it cost
    #[command(hide = true)]
    Metered(Metered),
    /// Hold a network namespace
    #[command(hide = true)]
    Hold,
    /// Run ip in a namespace
    #[command(hide = true)]
    Enter {
        net: PathBuf,
        #[arg(last = true)]
        words: Vec<String>,
    },
}

#[derive(Args)]
struct Bench {
    /// The acklab program
    #[arg(long, default_value = "target/release/acklab")]
    acklab: PathBuf,
    /// Who takes part
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = ALL)]
    only: Vec<Contender>,
    /// Rate in Mbit/s and delay in ms
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Link::R20D20, Link::R10D50, Link::R100D10])]
    links: Vec<Link>,
    /// Loss in both directions, per cent
    #[arg(long, value_delimiter = ',', default_values_t = [0.0, 5.0, 15.0, 28.0])]
    loss: Vec<f64>,
    /// Jitter in both directions, ms
    #[arg(long, value_delimiter = ',', default_values_t = [0.0])]
    jitter: Vec<f64>,
    /// Transfers of each in each setting
    #[arg(long, default_value_t = 5)]
    runs: u64,
    /// Bytes of each transfer
    #[arg(long, default_value_t = 5_000_000)]
    bytes: u64,
    /// Seconds after which a transfer has failed
    #[arg(long, default_value_t = 20.0)]
    limit: f64,
    /// Bytes of the transfers over veth; 0: none
    #[arg(long, default_value_t = 1_000_000_000)]
    bulk: u64,
    /// Leave out the emulated links
    #[arg(long)]
    bulk_only: bool,
    /// Where the result goes as JSON
    #[arg(long)]
    out: Option<PathBuf>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.inner {
        Some(Inner::Metered(metered)) => metered.run(),
        Some(Inner::Hold) => veth::hold(),
        Some(Inner::Enter { net, words }) => veth::enter(&net, &words),
        None => cli.bench.run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-transport: {error}");
            ExitCode::from(2)
        }
    }
}

impl Bench {
    fn run(self) -> Result<(), Box<dyn Error>> {
        let own = std::env::current_exe()?;
        let shop = Workshop {
            acklab: self.acklab.canonicalize().map_err(|error| {
                format!("{}: {error}; build it, or name it with --acklab", self.acklab.display())
            })?,
            peers: own.parent().ok_or("no folder")?.to_owned(),
            folder: own_folder(&std::env::temp_dir()),
        };
        let sizes: Vec<u64> = [self.bytes, self.bulk].into_iter().filter(|&n| n > 0).collect();
        shop.set_up(&sizes)?;
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        println!("{} bytes, {} runs each, load before: {}", self.bytes, self.runs, load.trim());
        let mut cells = Vec::new();
        if !self.bulk_only {
            for setting in self.settings() {
                cells.extend(self.column(&shop, &setting)?);
            }
            print!("{}", table::text(&cells, self.bytes, self.limit));
        }
        let bulk = if self.bulk > 0 { self.bulk(&shop)? } else { Vec::new() };
        if let Some(path) = &self.out {
            let result = table::json(&cells, &bulk, self.bytes, self.bulk);
            fs::write(path, format!("{result:#}\n"))?;
        }
        Ok(())
    }

    /// Each link with each loss, and the first with a path that dies.
    fn settings(&self) -> Vec<Setting> {
        let mut settings = Vec::new();
        for &link in &self.links {
            for &jitter in &self.jitter {
                let setting = |&loss| Setting { link, loss, jitter, dead: None };
                settings.extend(self.loss.iter().map(setting));
            }
            if link == Link::R20D20 && self.only.iter().any(|who| who.paths() > 1) {
                settings.push(Setting { link, loss: 0.0, jitter: 0.0, dead: Some(0.7) });
            }
        }
        settings
    }

    /// One setting: everyone in turn, run by run.
    fn column(&self, shop: &Workshop, setting: &Setting) -> Result<Vec<Cell>, Box<dyn Error>> {
        let takes_part = |who: &&Contender| setting.dead.is_none() || who.paths() > 1;
        let cell =
            |&contender: &Contender| Cell { contender, setting: *setting, trials: Vec::new() };
        let mut cells: Vec<Cell> = self.only.iter().filter(takes_part).map(cell).collect();
        for seed in 1..=self.runs {
            for cell in &mut cells {
                let failures = cell.trials.iter().filter(|trial| trial.seconds.is_none()).count();
                if failures as u64 > self.runs / 2 {
                    // The median is decided.
                    continue;
                }
                let done = trial::run(shop, cell.contender, setting, self.bytes, seed, self.limit)?;
                eprintln!(
                    "{:?} {} seed {seed}: {:<16} {}{}{}",
                    setting.link.figures(),
                    setting.title(),
                    cell.contender.name(),
                    done.seconds.map_or("not done".into(), |s| format!("{s:.3} s")),
                    if done.valid { "" } else { " (emulator late)" },
                    done.trouble.as_ref().map_or(String::new(), |text| format!(": {text}")),
                );
                cell.trials.push(done);
            }
        }
        Ok(cells)
    }

    fn bulk(&self, shop: &Workshop) -> Result<Vec<(Contender, Vec<Bulk>)>, Box<dyn Error>> {
        let wire = Wire::lay()?;
        let mut rows: Vec<(Contender, Vec<Bulk>)> = self
            .only
            .iter()
            .filter(|who| who.paths() == 1)
            .map(|&contender| (contender, Vec::new()))
            .collect();
        for _ in 0..self.runs {
            for (contender, runs) in &mut rows {
                match wire.carry(shop, *contender, self.bulk) {
                    Ok(bulk) => {
                        eprintln!("bulk {:<16} {bulk:?}", contender.name());
                        runs.push(bulk);
                    }
                    Err(error) => eprintln!("bulk {:<16} {error}", contender.name()),
                }
            }
        }
        print!("{}", table::bulk_text(&rows, self.bulk));
        Ok(rows)
    }
}
