//! Opens reports in headless Chromium, from a file and without a network.
//!
//! Goal: what a reader's browser would do with the file. Method: load it with `--dump-dom`, read
//! the console from standard error, and look at the document that the page's script made. Where no
//! Chromium is installed the tests say "SKIPPED" (also into the file that `ACKLAB_SKIP_LOG` names)
//! and pass.

mod chromium;
mod samples;

use acklab_lab::report::Page;
use chromium::Chromium;

/// Loads `page` and returns the document as the browser made it, after the checks that hold for
/// every report.
fn loaded(name: &str, page: &Page) -> Option<String> {
    let html = page.to_html().expect("templates are sound");
    assert!(html.len() < 1_200_000, "{name} takes {} bytes", html.len());
    let chromium = Chromium::find()?;
    let visit = chromium.visit(name, &html);
    assert_eq!(visit.console, Vec::<String>::new(), "{name}: the console must stay empty");
    assert!(visit.dom.contains("data-plots=\"drawn\""), "{name}: the page's script did not finish");
    Some(visit.dom)
}

/// The parts of `dom` between `open` and `close`.
fn parts<'a>(dom: &'a str, open: &str, close: &str) -> Vec<&'a str> {
    dom.split(open).skip(1).filter_map(|part| part.split(close).next()).collect()
}

#[test]
fn every_kind_of_block_is_drawn_and_the_console_stays_empty() {
    let Some(dom) = loaded("blocks", &samples::every_block()) else { return };
    let plots = parts(&dom, "<figure class=\"plot\"", "</figure>");
    assert_eq!(plots.len(), 5);
    for plot in plots {
        assert!(plot.starts_with(" data-drawn=\"yes\""), "not drawn: {plot:.200}");
        assert!(plot.contains("<svg") && plot.matches("<path").count() > 3, "empty: {plot:.400}");
        assert!(!plot.contains("NaN"), "a coordinate is not a number");
    }
    assert_eq!(parts(&dom, "<svg class=\"ladder\"", "</svg>").len(), 1);
}

#[test]
fn only_the_chosen_direction_is_shown_at_first() {
    let Some(dom) = loaded("choice", &samples::two_choices()) else { return };
    let sections = parts(&dom, "<section data-choice=", ">");
    assert_eq!(sections, ["\"a\"", "\"b\" hidden=\"\""]);
    assert!(
        dom.contains("data-shows=\"a\" tabindex=\"0\" aria-selected=\"true\""),
        "row not chosen"
    );
    // The hidden section's plot is drawn only when it is chosen.
    assert_eq!(dom.matches("data-drawn=\"yes\"").count(), 1);
}

#[test]
fn names_that_hold_markup_stay_text() {
    let Some(dom) = loaded("hostile", &samples::hostile()) else { return };
    assert!(!dom.contains("data-owned"), "text from the data ran as a script");
    assert!(!dom.contains("<img"), "text from the data became an element");
}

#[test]
fn nothing_outside_the_file_is_asked_for() {
    let html = samples::every_block().to_html().expect("templates are sound");
    assert!(html.contains("default-src 'none'"), "the page must forbid itself the network");
    let Some(dom) = loaded("offline", &samples::every_block()) else { return };
    for element in parts(&dom, "<", ">") {
        let fetches = ["src=", "href=", "srcset=", "data=", "poster="]
            .iter()
            .any(|name| element.contains(&format!(" {name}\"http")));
        assert!(!fetches, "would fetch: <{element:.200}>");
    }
}
