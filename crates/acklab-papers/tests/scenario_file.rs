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
fn numbers_rows_of_numbers_and_tables_are_what_their_texts_are() {
    let plan = |set: &str| {
        let text = format!("scenario = \"motor-loop\"\nseed = 1\n[set]\n{set}");
        ScenarioFile::parse(&text).and_then(|file| file.plan(SCENARIOS))
    };
    let table =
        "plant = { numerator = [4], denominator = [1, 2.5, 0] }\nkp = 2\nreference = { first = 0 }";
    let texts = "plant_numerator = \"4\"\nplant_denominator = \"1 2.5 0\"\nkp = \"2\"\nreference_first = \"0\"";
    assert_eq!(plan(table).unwrap().settings, plan(texts).unwrap().settings);
    let error = plan("plant_numerator = [4, \"a\"]").err().unwrap().to_string();
    assert!(error.contains("plant_numerator must be a text, a number"), "{error}");
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
