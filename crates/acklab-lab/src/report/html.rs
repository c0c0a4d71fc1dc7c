//! From a [`Page`] to one HTML file.
//!
//! The template engine escapes all text. Three kinds of string bypass it, all escaped in this
//! crate: the SVG of a ladder ([`super::ladder`]), prose in which `backticks` mark code, and JSON
//! for the page's script, in which every `<` is written `\u003c` so that no data can end the script
//! element (HTML standard, section 4.12.1.3 "Restrictions for contents of script elements").
//!
//! The page forbids itself any fetch by a Content-Security-Policy. Vega builds its expression
//! functions at run time, hence `unsafe-eval`; there is no other code to be injected.

use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, context};

use super::glossary;
use super::ladder::escape;
use super::page::{Block, Page, Section};
use super::vega;

/// A page that could not be rendered: a defect of the templates.
#[derive(Debug, thiserror::Error)]
#[error("the report could not be written: {0:#}")]
pub struct ReportError(#[from] minijinja::Error);

impl Page {
    /// Renders the page as one HTML file.
    pub fn to_html(&self) -> Result<String, ReportError> {
        render(self)
    }
}

fn render(page: &Page) -> Result<String, ReportError> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_filter("prose", |text: String| Value::from_safe_string(prose(&text)));
    environment.add_template("report.html", TEMPLATE)?;
    let sections: Vec<Value> = page.sections.iter().map(section).collect();
    let has_plots = page
        .sections
        .iter()
        .any(|section| section.blocks.iter().any(|block| matches!(block, Block::Figure(_))));
    let html = environment.get_template("report.html")?.render(context! {
        title => page.title.as_str(),
        subject => page.subject.as_str(),
        verdict => Value::from(Serde(&page.verdict)),
        sections => sections,
        terms => Value::from(Serde(glossary::terms(&page.terms))),
        conditions => Value::from(Serde(&page.conditions)),
        style => Value::from_safe_string(STYLE.into()),
        script => Value::from_safe_string(SCRIPT.into()),
        runtime => has_plots.then(|| Value::from_safe_string(RUNTIME.trim_end().into())),
    })?;
    Ok(html)
}

fn section(section: &Section) -> Value {
    context! {
        title => section.title.as_str(),
        choice => section.choice.as_deref(),
        blocks => section.blocks.iter().map(block).collect::<Vec<_>>(),
    }
}

fn block(block: &Block) -> Value {
    match block {
        Block::Text(text) => context! { kind => "text", text => text.as_str() },
        Block::Facts(facts) => context! { kind => "facts", facts => Value::from(Serde(facts)) },
        Block::Figure(figure) => context! {
            kind => "plot",
            title => figure.title.as_str(),
            caption => figure.caption.as_str(),
            data => script_json(&vega::drawing(&figure.drawing)),
        },
        Block::Ladder(figure) => context! {
            kind => "ladder",
            title => figure.title.as_str(),
            caption => figure.caption.as_str(),
            svg => Value::from_safe_string(figure.drawing.to_svg(&figure.title)),
        },
        Block::Table(table) => context! {
            kind => "table",
            chooses => table.chooses(),
            table => Value::from(Serde(table.on_page())),
        },
    }
}

/// Escaped text in which `words between backticks` are code.
fn prose(text: &str) -> String {
    let mut html = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('`') {
        // A backtick without a partner stays what it is.
        let Some((code, after)) = after.split_once('`') else { break };
        html.push_str(&escape(before));
        html.push_str("<code>");
        html.push_str(&escape(code));
        html.push_str("</code>");
        rest = after;
    }
    html.push_str(&escape(rest));
    html
}

/// JSON that may stand inside a script element whatever its strings hold.
fn script_json(value: &serde_json::Value) -> Value {
    Value::from_safe_string(value.to_string().replace('<', "\\u003c"))
}

const TEMPLATE: &str = include_str!("../../templates/report.html");
const STYLE: &str = include_str!("../../templates/report.css");
const SCRIPT: &str = include_str!("../../templates/report.js");
/// Vega and Vega-Lite: gzip, then base64; see assets/README.md.
const RUNTIME: &str = include_str!("../../assets/vega-runtime.js.gz.b64");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Cdf, CdfSeries, Column, Figure, Fix, Ladder, Table, Tone, Verdict};

    const HOSTILE: &str = "</script><script>alert('x')</script>&\"<!--";

    fn hostile_page() -> Page {
        let words = || HOSTILE.to_owned();
        let series =
            CdfSeries { name: words(), points: vec![(0.0, 0.5), (1.0, 1.0)], straight: false };
        let plot = Cdf { x_title: words(), series: vec![series], marks: vec![] };
        let figure = Block::plot(HOSTILE, HOSTILE, plot);
        let ladder = Figure { title: words(), caption: words(), drawing: Ladder::default() };
        let table = Table::new(HOSTILE, vec![Column::text(HOSTILE).over([HOSTILE], |words| words)])
            .flag([true])
            .choose([Some(words())])
            .note(HOSTILE);
        let fix = Fix { host: words(), changes: vec![words()] };
        Page {
            title: words(),
            subject: words(),
            verdict: Verdict {
                tone: Tone::Fault,
                headline: words(),
                explanation: vec![words()],
                fixes: vec![fix],
            },
            sections: vec![Section {
                title: words(),
                choice: Some(words()),
                blocks: vec![
                    Block::Text(words()),
                    Block::Facts(vec![(words(), words())]),
                    figure,
                    Block::Ladder(ladder),
                    table.into(),
                ],
            }],
            terms: vec!["nagle"],
            conditions: vec![(words(), words())],
        }
    }

    #[test]
    fn hostile_text_never_becomes_markup() {
        let html = hostile_page().to_html().expect("templates are sound");
        assert!(!html.contains("<script>alert"), "unescaped text");
        assert!(!html.contains("<!--"), "comment opened by data");
        // Data, runtime, script: as many elements as the page itself opens.
        assert_eq!(html.matches("</script>").count(), html.matches("<script").count());
    }

    #[test]
    fn words_between_backticks_are_code_and_the_rest_is_escaped() {
        for (text, html) in [
            ("plain & simple", "plain &amp; simple"),
            ("type `a <b>` here", "type <code>a &lt;b&gt;</code> here"),
            ("`a` or `b`", "<code>a</code> or <code>b</code>"),
            ("one ` alone", "one ` alone"),
            ("`a` and ` alone", "<code>a</code> and ` alone"),
        ] {
            assert_eq!(prose(text), html);
        }
    }

    #[test]
    fn the_runtime_is_in_the_page_once_and_only_if_there_is_a_plot() {
        let with = hostile_page().to_html().expect("templates are sound");
        assert_eq!(with.matches(&RUNTIME[..64]).count(), 1);
        let without = Page::default().to_html().expect("templates are sound");
        assert!(!without.contains(&RUNTIME[..64]));
        assert!(without.len() < 40_000, "{}", without.len());
    }

    #[test]
    fn the_page_refers_to_nothing_outside_itself() {
        let html = hostile_page().to_html().expect("templates are sound");
        for outside in ["src=", "href=\"http", "@import", "url("] {
            assert!(!html.contains(outside), "{outside}");
        }
    }
}
