//! Opens reports in headless Chromium, from a file and without a network.
//!
//! Goal: what a reader's browser would do with the file. Method: load it with `--dump-dom`, read
//! the console from standard error, and look at the document that the page's script made. Where no
//! Chromium is installed the tests say "SKIPPED" (also into the file that `ACKLAB_SKIP_LOG` names)
//! and pass.

mod chromium;
mod samples;

use std::path::Path;

use acklab_lab::report::network::NetworkReport;
use acklab_lab::report::{Block, Page, diagnose, run};
use acklab_lab::run::run_closely;
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

/// The sections of which one is chosen, by name, and whether each is shown.
fn choices(dom: &str) -> Vec<(&str, bool)> {
    let sections = parts(dom, "<section data-choice=\"", ">").into_iter();
    let named = sections.filter_map(|section| section.split_once('"'));
    named.map(|(name, rest)| (name, !rest.contains("hidden"))).collect()
}

#[test]
fn every_kind_of_block_is_drawn_and_the_console_stays_empty() {
    let Some(dom) = loaded("blocks", &samples::every_block()) else { return };
    let plots = parts(&dom, "<figure class=\"plot\"", "</figure>");
    assert_eq!(plots.len(), 6);
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
    assert_eq!(choices(&dom), [("a", true), ("b", false)]);
    assert!(
        dom.contains("data-shows=\"a\" tabindex=\"0\" aria-selected=\"true\""),
        "row not chosen"
    );
    // The hidden section's plot is drawn only when it is chosen.
    assert_eq!(dom.matches("data-drawn=\"yes\"").count(), 1);
}

#[test]
fn choosing_a_row_shows_its_section_and_draws_its_figure() {
    let Some(chromium) = Chromium::find() else { return };
    let html = samples::two_choices().to_html().expect("templates are sound");
    let click = "<script>document.querySelector('tr[data-shows=b]').click()</script></body>";
    let dom = chromium.visit("chosen", &html.replace("</body>", click)).dom;
    assert_eq!(choices(&dom), [("a", false), ("b", true)]);
    assert!(parts(&dom, "<section data-choice=\"b\"", "</section>")[0].contains("<svg"));
}

#[test]
fn a_heading_sorts_its_column_by_value() {
    let Some(chromium) = Chromium::find() else { return };
    let html = samples::every_block().to_html().expect("templates are sound");
    let sorted = |clicks: usize| {
        let click = "document.querySelectorAll('th')[2].click();".repeat(clicks);
        let script = format!("<script>{click}</script></body>");
        let dom = chromium.visit("sorted", &html.replace("</body>", &script)).dom;
        let first = parts(&dom, "<tbody>", "</tr>")[0].to_owned();
        first.contains("192.168.0.60")
    };
    assert_eq!([sorted(1), sorted(2)], [true, false], "largest first, then smallest");
}

#[test]
fn a_saved_drawing_carries_its_own_colours() {
    let Some(chromium) = Chromium::find() else { return };
    let html = samples::every_block().to_html().expect("templates are sound");
    // The ladder is the first figure on the page. What would be downloaded is put into the document.
    let click = "<script>URL.createObjectURL = (file) => {
        file.text().then((text) => { document.body.dataset.saved = text; });
        return '#saved';
    };
    document.querySelector('figure .save').click()</script></body>";
    let dom = chromium.visit("saved", &html.replace("</body>", click)).dom;
    let saved = parts(&dom, "data-saved=\"", "\"")[0];
    assert!(saved.contains("svg class=") && saved.contains("#0072b2"), "no drawing: {saved:.200}");
    assert!(!saved.contains("var("), "a colour that only the page knows");
}

#[test]
fn names_that_hold_markup_stay_text() {
    let Some(dom) = loaded("hostile", &samples::hostile()) else { return };
    assert!(!dom.contains("data-owned"), "text from the data ran as a script");
    assert!(!dom.contains("<img"), "text from the data became an element");
}

#[test]
fn the_browsers_complaints_are_heard() {
    let Some(chromium) = Chromium::find() else { return };
    let html = samples::every_block().to_html().expect("templates are sound");
    let faults = [
        ("warning", "<script>console.warn('from the page')</script></body>"),
        ("error", "<script>undefinedFunction()</script></body>"),
        ("fetch", "<img src=\"http://127.0.0.1:9/pixel.png\"></body>"),
    ];
    for (name, fault) in faults {
        let visit = chromium.visit(name, &html.replace("</body>", fault));
        assert!(!visit.console.is_empty(), "a page with a {name} passed for a clean one");
    }
}

#[test]
fn the_report_of_a_real_capture_shows_the_hold() {
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../demo/nagle-linux.pcapng");
    let options = acklab_trace::Options::default();
    let diagnosis = acklab_trace::diagnose(&capture, &options, |_| {}).expect("the demo capture");
    let conditions = vec![("Command".into(), "acklab diagnose nagle-linux.pcapng".into())];
    let page = diagnose::page(&diagnosis, "nagle-linux.pcapng", conditions);
    let Some(dom) = loaded("diagnosis", &page) else { return };
    assert!(dom.contains("Yes. 127.0.0.1:"), "no verdict");
    assert!(dom.contains("TCP_NODELAY"), "no remedy");
    assert!(dom.contains("held back in the sender"), "no band in the ladder");
    for title in ["One hold, packet by packet", "Delay added in the sender", "All connections"] {
        assert!(dom.contains(title), "{title}");
    }
    assert_eq!(parts(&dom, "data-drawn=\"yes\"", "</figure>").len(), 4);
}

#[test]
fn the_report_of_a_grid_draws_the_figures_of_the_seed() {
    let delays: Vec<Vec<f64>> = (0..40).map(samples::uniform_delays).collect();
    let page = run::page(&samples::grid(&delays));
    let Some(dom) = loaded("grid", &page) else { return };
    assert_eq!(parts(&dom, "data-drawn=\"yes\"", "</figure>").len(), 3);
    let body = parts(&dom, "<tbody>", "</tbody>");
    assert_eq!(body[0].matches("<tr").count(), 40);
}

#[test]
fn the_report_of_a_network_draws_every_figure() {
    let results = run_closely(&samples::parking_lot());
    let report = NetworkReport {
        title: "acklab run network".into(),
        summary: "a parking lot".into(),
        network: results.looked().expect("networks are looked at closely"),
        terms: vec!["rtt", "jain", "cdf"],
        conditions: vec![("Seed".into(), "1".into())],
    };
    let page = report.page();
    let blocks = page.sections.iter().flat_map(|section| &section.blocks);
    let figures = blocks.filter(|block| matches!(block, Block::Figure(_))).count();
    assert_eq!(figures, 3 + 2 * 3 + 4, "of the flows, of two links, distributions");
    let Some(dom) = loaded("network", &page) else { return };
    let drawn = parts(&dom, "data-drawn=\"yes\"", "</figure>");
    assert_eq!(drawn.len(), figures);
    for figure in drawn {
        assert!(figure.contains("<svg") && !figure.contains("NaN"), "{figure:.200}");
    }
    assert!(dom.contains("Mbit/s of 10 through r1 -&gt; r2, Jain 0."), "no headline");
    let rows = parts(&dom, "<tbody>", "</tbody>");
    let rows: Vec<_> = rows.iter().map(|body| body.matches("<tr").count()).collect();
    assert_eq!(rows, [6, 2, 2], "flows, links, delays");
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
