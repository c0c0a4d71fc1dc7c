//! Reports: one self-contained HTML file that opens without a network.
//!
//! A report is a [`Page`]: a verdict in plain words, then [`Section`]s made of [`Block`]s (text,
//! facts, [`Figure`]s, [`Table`]s), then the conditions under which it holds. The same blocks serve
//! every verb: `diagnose` and `run` have their builders here ([`diagnose`], [`run`]); others assemble a
//! [`Page`] themselves and call [`Page::to_html`]. A [`Table`], and a paper's [`Claim`]s as one, are data
//! once: JSON and the terminal are made from the same columns as the page.
//!
//! Plots are Vega-Lite specifications drawn as SVG by the Vega runtime that the page carries
//! (compressed, once); the ladder diagram is SVG made here, so that verdict, ladder and tables are
//! readable even where scripts are off. Every string that comes from a capture or a scenario is
//! escaped: text by the template engine, JSON by `html`, SVG text by `ladder`.
//!
//! Left out: fonts, images and anything else that would have to be fetched; PDF (browsers print).

mod claim;
pub mod compare;
pub mod diagnose;
pub mod exchange;
mod glossary;
mod html;
mod ladder;
pub mod network;
mod page;
mod plot;
pub mod run;
mod table;
pub mod text;
mod vega;

pub use claim::{Claim, Outcome};
pub use glossary::{Term, terms};
pub use html::ReportError;
pub use ladder::{Arrow, ArrowKind, CapturePoint, Hold, Host, Ladder, Note, Side};
pub use page::{Block, Figure, Fix, Page, Section, Tone, Verdict, conditions};
pub use plot::{
    Band, BoxOf, Boxes, Cdf, CdfSeries, ErrorBar, Histogram, LineSeries, Lines, Mark, Plot,
    SegmentKind, SequenceSegment, TimeSequence,
};
pub use table::{Cell, Column, Table, Unit};
