//! `make bench`: how fast virtual time passes, with the conditions under which it was measured.
//!
//! The work is seed 0 whole: `acklab run nagle-delack --all`, 40 cases of 10 replications with 1005
//! messages each, on two threads. An event is a packet that came out of a link, or a deadline on
//! which a transport or an application acted. Best and median of the rounds are printed: the best
//! is what the program costs, the median what the machine's other load made of it.

use acklab_lab::plan::Plan;
use acklab_lab::results::hex;
use acklab_lab::run;
use acklab_lab::scenario::{self};
use acklab_lab::timing::Timing;
use acklab_papers::scenario::NagleDelack;

const ROUNDS: usize = 9;
const THREADS: usize = 2;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    rayon::ThreadPoolBuilder::new().num_threads(THREADS).build_global()?;
    let plan = Plan::all(&NagleDelack, scenario::defaults(&NagleDelack), 1, None)?;
    // Only cost and hash are kept, so that memory is that of one round.
    let rounds: Vec<(Timing, u64)> = (0..ROUNDS)
        .map(|_| run::run(&plan))
        .map(|results| (results.timing, results.hash))
        .collect();

    let quantity = |of: fn(&Timing) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(|(timing, _)| of(timing)).collect();
        values.sort_unstable_by(f64::total_cmp);
        (values[0], values[ROUNDS / 2], values[ROUNDS - 1])
    };
    let (wall_best, wall_median, _) = quantity(|timing| timing.wall_s);
    let (_, rate_median, rate_best) = quantity(|timing| timing.events as f64 / timing.cpu_s / 1e6);
    let (_, _, memory) = quantity(|timing| timing.peak_rss_mb);
    let runs = plan.cases.len() as u64 * plan.replications;
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    println!("virtual time: nagle-delack --all, {runs} runs of 1005 messages, {ROUNDS} rounds");
    println!(
        "  conditions: {} build, {THREADS} threads on {cores} cores, {} {}",
        if cfg!(debug_assertions) { "debug" } else { "release" },
        std::env::consts::OS,
        std::env::consts::ARCH
    );
    println!(
        "  {runs} runs:     {wall_best:.3} s best, {wall_median:.3} s median (target: below 2 s)"
    );
    println!(
        "  events:       {rate_best:.1} M per CPU second best, {rate_median:.1} M median \
         (target: at least 5 M); {} in a round",
        rounds[0].0.events
    );
    println!("  peak memory:  {memory:.0} MB");
    println!("  result hash:  {}", hex(rounds[0].1));
    Ok(())
}
