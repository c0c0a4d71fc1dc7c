//! One workload, timed: `bench_workloads SCENARIO [ROUNDS] [name=value ...]`.
//!
//! Runs a scenario's first replication ROUNDS times in this process, on one thread, and prints one
//! line: CPU seconds (best, median), events, events per CPU second, peak memory, and what was
//! delivered and dropped. `make bench-peers` runs it beside other simulators.

use acklab_lab::scenario;
use acklab_lab::timing::Stopwatch;
use acklab_papers::scenario::SCENARIOS;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "bench-ref".into());
    let scenario = SCENARIOS.find(&name)?;
    let mut settings = scenario::defaults(scenario);
    let mut rounds = 5;
    for argument in arguments {
        match argument.parse::<usize>() {
            Ok(count) => rounds = count.max(1),
            Err(_) => settings.set_pair(&argument)?,
        }
    }
    scenario.check(&settings)?;
    let mut cpu_s = Vec::with_capacity(rounds);
    let mut last = None;
    for _ in 0..rounds {
        let watch = Stopwatch::start();
        let replication = scenario.run(&settings, 1, None);
        let timing = watch.read(replication.events);
        cpu_s.push(timing.cpu_s);
        last = Some((replication, timing));
    }
    let Some((replication, timing)) = last else { return Ok(()) };
    cpu_s.sort_unstable_by(f64::total_cmp);
    let (best, median) = (cpu_s[0], cpu_s[rounds / 2]);
    println!(
        "{name} cpu_s={best:.5} median_cpu_s={median:.5} events={} events_per_s={:.2e} \
         rss_mb={:.1} delivered={} drops={} jain={:.4} hash={:016x}",
        replication.events,
        replication.events as f64 / median,
        timing.peak_rss_mb,
        replication.metrics.number("delivered_packets"),
        replication.metrics.number("drops"),
        replication.metrics.number("jain"),
        replication.hash,
    );
    Ok(())
}
