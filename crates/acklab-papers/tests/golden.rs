//! Goal: a seed means the same run on every machine, today and tomorrow.
//! Method: hashes written down. One that changes without a change to the model that means to change
//! it is a lost guarantee; one that changes with it is written down anew, with the reason in the
//! commit.

use acklab_lab::file::ScenarioFile;
use acklab_lab::plan::Plan;
use acklab_lab::results::hex;
use acklab_lab::{run, scenario};
use acklab_papers::scenario::SCENARIOS;

#[test]
fn the_built_in_scenarios_have_their_golden_hashes() {
    let check = |name: &str, pairs: &[&str], expect: &str| {
        let scenario = SCENARIOS.find(name).unwrap();
        let mut settings = scenario::defaults(scenario);
        for pair in pairs {
            settings.set_pair(pair).unwrap();
        }
        let plan = Plan::single(scenario, settings, 1, Some(2)).unwrap();
        assert_eq!(hex(run::run(&plan).hash), expect, "{name} {pairs:?}");
    };
    check("nagle-delack", &["receiver=qnx-7.0"], "18a0c511744cdbce");
    check("nagle-delack", &["receiver=windows-7-tick", "jitter=5ms", "loss=1"], "ff5985a82fc0b5de");
    check("write-write-read", &[], "4bb9c01b29cdc754");
    check("bench-ref", &["stagger=100ms"], "c7059442176edeee");
    check("rfc7928", &["mix=mix", "queue=fq-codel", "ecn=on", "duration=5s"], "fa51077fdc36f8ef");
    check("ance-daisy", &["cc=ance"], "c1473fd1c962478c");
    check("ance-dumbbell", &["queue=pie"], "2633a88d8a7e4547");
    check("ance-dumbbell", &["queue=edctcp", "preset=paper-fit"], "6f27588e86e85295");
    check("motor-loop", &["loop_delay=28ms", "loss=2"], "5038938c69d21604");
}

#[test]
fn the_example_networks_have_their_golden_hashes() {
    let check = |name: &str, expect: &str| {
        let path = format!("{}/../../scenarios/{name}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap();
        let plan = ScenarioFile::parse(&text).and_then(|file| file.plan(SCENARIOS)).unwrap();
        assert_eq!(hex(run::run(&plan).hash), expect, "{name}");
        // What a run writes down repeats it.
        let again = ScenarioFile::parse(&ScenarioFile::of(&plan).to_text());
        let again = again.and_then(|file| file.plan(SCENARIOS)).unwrap();
        assert_eq!(hex(run::run(&again).hash), expect, "{name}, again");
    };
    check("two-flows.toml", "1830ca371242c6b4");
    check("parking-lot.toml", "bb38f63e8a35953b");
    check("poisson.toml", "65e6f2aefd31d9e8");
    check("tcp-and-rudp.toml", "92b777e3d639155b");
}
