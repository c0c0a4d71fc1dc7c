//! Goal: docs/rfc9293.md tells the truth about what is tested.
//! Method: every requirement from MUST-1 to MUST-69 has one row; every script and every test that the page names is there.

use std::fs;
use std::path::Path;

#[test]
fn every_requirement_has_its_row_and_every_test_named_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/rfc9293.md")).expect("the page");
    let rows = page.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let number: u32 = cells.next()?.parse().ok()?;
        Some((number, cells.nth(1)?))
    });
    let rows: Vec<(u32, &str)> = rows.collect();
    assert!(rows.iter().map(|(number, _)| *number).eq(1..=69), "a row for each");
    let mut named = 0;
    for (number, proof) in &rows {
        let says = proof.starts_with("exception: ");
        assert!(says || proof.contains("`crates/"), "MUST-{number} proves nothing: {proof}");
    }
    // Between backquotes: a file, and of Rust the name behind it.
    let quoted: Vec<&str> = page.split('`').skip(1).step_by(2).collect();
    for (at, path) in quoted.iter().enumerate().filter(|(_, word)| word.starts_with("crates/")) {
        let text = fs::read_to_string(root.join(path)).unwrap_or_else(|e| panic!("{path}: {e}"));
        if Path::new(path).extension().is_some_and(|extension| extension == "rs") {
            let name = quoted.get(at + 1).expect("a name behind a file of Rust");
            assert!(text.contains(&format!("fn {name}()")), "{path} has no {name}");
        }
        named += 1;
    }
    assert!(named > 40, "{named} proofs");
}
