//! What a report says, before it is HTML: the verdict, its sections and their blocks.
//!
//! Plain data: a builder fills it, [`Page::to_html`] turns it into a file. Text fields are plain
//! text, which the renderer escapes; in sentences, `words between backticks` are set as code. The order of
//! the fields is the order on the page.

use serde::Serialize;

use super::ladder::Ladder;
use super::plot::Plot;
use super::table::Table;

#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The heading and the browser tab's title.
    pub title: String,
    /// What was looked at, in one line: file name, packets, duration; or scenario and runs.
    pub subject: String,
    /// The answer, first thing on the page.
    pub verdict: Verdict,
    /// The evidence, in reading order.
    pub sections: Vec<Section>,
    /// Keys of the glossary entries to show at the end; see [`super::terms`].
    pub terms: Vec<&'static str>,
    /// How to get this page again: command, version, seed, scenario, as (name, value).
    pub conditions: Vec<(String, String)>,
}

/// The answer in plain words.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Verdict {
    /// Good, bad or undecided: the colour and the sign beside the headline.
    pub tone: Tone,
    /// One sentence that stands alone.
    pub headline: String,
    /// What it means, one paragraph each.
    pub explanation: Vec<String>,
    /// What to change, host by host; one host suffices.
    pub fixes: Vec<Fix>,
}

/// What kind of news a verdict is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tone {
    /// A fault was found.
    Fault,
    /// Looked for and not there.
    Fine,
    /// The data does not suffice to say.
    Unsure,
    /// A result without a judgment, such as a simulation's figures.
    #[default]
    Neutral,
}

/// What would mend the fault on one host.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Fix {
    /// Which host, as the reader knows it: "On the sender, 192.168.0.60".
    pub host: String,
    /// What to change there, a sentence or two each, the best first.
    pub changes: Vec<String>,
}

/// How to get a page of a simulation again: its command and version, and the world of its results.
pub fn conditions(command: String) -> Vec<(String, String)> {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let pairs = [("command", command), ("version", version), ("world", "virtual time".to_owned())];
    pairs.map(|(name, value)| (name.to_owned(), value)).into()
}

/// A heading with blocks under it.
#[derive(Clone, Debug, Default)]
pub struct Section {
    pub title: String,
    /// With a key, the section is shown only while the table row with the same key is chosen (the
    /// first such key on the page at first); without scripts it is always shown.
    pub choice: Option<String>,
    pub blocks: Vec<Block>,
}

impl Section {
    /// A section that is always shown.
    pub fn new(title: impl Into<String>, blocks: Vec<Block>) -> Self {
        Self { title: title.into(), choice: None, blocks }
    }
}

/// One piece of a section.
#[derive(Clone, Debug)]
pub enum Block {
    Text(String),
    /// Short facts: (name, value with its unit).
    Facts(Vec<(String, String)>),
    /// A Vega-Lite plot.
    Figure(Figure<Plot>),
    /// A ladder diagram, drawn as SVG without a script.
    Ladder(Figure<Ladder>),
    Table(Table),
}

impl Block {
    /// A plot with its heading and how to read it.
    pub fn plot(
        title: impl Into<String>,
        caption: impl Into<String>,
        drawing: impl Into<Plot>,
    ) -> Self {
        let drawing = drawing.into();
        Self::Figure(Figure { title: title.into(), caption: caption.into(), drawing })
    }
}

impl From<Table> for Block {
    fn from(table: Table) -> Self {
        Self::Table(table)
    }
}

/// A drawing with its words.
#[derive(Clone, Debug)]
pub struct Figure<T> {
    /// Heading above the drawing.
    pub title: String,
    /// How to read it: one or two sentences below it; also the text for those who cannot see it.
    pub caption: String,
    pub drawing: T,
}
