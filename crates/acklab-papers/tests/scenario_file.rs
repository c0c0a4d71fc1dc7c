//! Scenario files: written and read again, and their mistakes.

use acklab_lab::file::ScenarioFile;
use acklab_papers::scenario::SCENARIOS;

#[test]
fn a_written_file_gives_the_same_plan_again() {
    let text = "scenario = \"nagle-delack\"\nseed = 7\nreplications = 3\n[set]\nrtt = \"10ms\"\n";
    let file = ScenarioFile::parse(text).unwrap();
    let plan = file.clone().plan(SCENARIOS).unwrap();
    assert_eq!(ScenarioFile::of(&plan), file);
    assert_eq!(ScenarioFile::parse(&file.to_text()).unwrap(), file);
}

#[test]
fn mistakes_in_a_file_are_named_with_their_place() {
    let check = |text: &str, message: &str| {
        let error = ScenarioFile::parse(text).and_then(|file| file.plan(SCENARIOS)).err().unwrap();
        assert!(error.to_string().contains(message), "{error}");
    };
    check("scenario = \"nagle-delack\"", "missing field `seed`");
    check("scenario = \"nope\"\nseed = 1", "no scenario is called");
    check("scenario = \"nagle-delack\"\nseed = 1\n[set]\nrtt = \"x\"", "rtt=x");
    check("scenario = \"nagle-delack\"\nseed = 1\ncolour = 2", "3:1: unknown field");
    check("scenario = \"nagle-delack\"\nseed = -1", "2:8: invalid value");
}
