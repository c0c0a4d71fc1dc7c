//! Goal: what the documentation lists of queues, congestion controls, ACK policies and systems is what can
//! be chosen, and every option's default is one of its values.
//! Method: the tables between `<!-- list WHAT -->` and `<!-- end -->` against those of the registries;
//! `ACKLAB_BLESS=1` writes them.

use std::path::PathBuf;
use std::{env, fs};

use acklab_core::options::Word;
use acklab_lab::choices::Registry;

const BEGIN: &str = "<!-- list ";
const BEHIND: &str = " -->\n";
const END: &str = "<!-- end -->";

/// The text with every listed table as it should be, and which tables there are.
fn with_tables(text: &str) -> (String, Vec<Registry>) {
    let (mut out, mut rest, mut listed) = (String::new(), text, Vec::new());
    while let Some(at) = rest.find(BEGIN) {
        let name = rest[at + BEGIN.len()..].split(BEHIND).next().expect("a line");
        let registry = Registry::named(name).unwrap_or_else(|| panic!("no list of {name}"));
        let behind = at + BEGIN.len() + name.len() + BEHIND.len();
        let end = behind + rest[behind..].find(END).expect("the end of a table");
        out.push_str(&rest[..behind]);
        out.push_str(&registry.markdown());
        rest = &rest[end..];
        listed.push(registry);
    }
    out.push_str(rest);
    (out, listed)
}

#[test]
fn the_documentation_lists_what_can_be_chosen() {
    let docs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut listed = Vec::new();
    for name in ["queues.md", "congestion-control.md", "network-file.md"] {
        let path = docs.join(name);
        let text = fs::read_to_string(&path).expect("a document");
        let (current, tables) = with_tables(&text);
        listed.extend(tables);
        if env::var_os("ACKLAB_BLESS").is_some() {
            fs::write(&path, current).expect("it was there");
        } else {
            assert!(
                text == current,
                "docs/{name}: ACKLAB_BLESS=1 cargo test -p acklab --test declarations"
            );
        }
    }
    assert_eq!(
        listed,
        [Registry::Queues, Registry::CongestionControls, Registry::Acks, Registry::Systems]
    );
}

#[test]
fn every_option_is_documented_and_its_default_is_one_of_its_values() {
    for registry in Registry::ALL {
        for choice in registry.choices() {
            assert!(!choice.doc.is_empty(), "{}", choice.name);
            for option in &choice.options {
                let name = format!("{} {}", choice.name, option.name);
                assert!(!option.doc.is_empty(), "{name}");
                let read = option.kind.parse(&option.default.to_string());
                assert_eq!(read, Ok(option.default), "{name}");
            }
        }
    }
}
