//! Goal: what docs/tutorials/own-ack-policy.md shows of the program is what it prints.
//! Method: run the program as the page does, but for the compiler.

#[path = "../../../crates/acklab/tests/pages/mod.rs"]
mod pages;

use std::path::Path;

use pages::Step;

#[test]
fn the_program_of_the_tutorial_prints_what_the_page_shows() {
    let folder = pages::folder();
    let binary = Path::new(env!("CARGO_BIN_EXE_own-ack-policy"));
    let mut done = 0;
    for step in pages::steps("docs/tutorials/own-ack-policy.md") {
        let Step::Command { line, shown } = step else { continue };
        let Some(arguments) = line.strip_prefix("cargo run -p own-ack-policy -- ") else {
            continue;
        };
        let line = format!("{} {arguments}", binary.display());
        let printed = pages::perform(&line, folder.path(), binary);
        let missing = pages::missing(&shown, &printed);
        assert!(
            missing.is_none() && shown.len() > 3,
            "{line}\nshows {missing:?}, but printed\n{printed}"
        );
        assert!(folder.path().join("out/report.html").exists());
        done += 1;
    }
    assert_eq!(done, 1);
}
