//! UPPAAL's XML: a network of timed automata as the file that its editor opens.
//!
//! The element grammar is that of the "Flat System 1.6" DTD; the order of the children matters to it
//! and to UPPAAL's reader alike. Text is escaped and never put into CDATA sections, which that reader
//! does not look into. Every location and label has its place, so that the editor shows what a person
//! would have drawn.

use std::fmt::Write as _;

/// A network: the whole file.
#[derive(Clone, Debug)]
pub(super) struct Network {
    /// Global declarations.
    pub(super) declaration: String,
    pub(super) templates: Vec<Template>,
    /// Instances and the system line.
    pub(super) system: String,
    pub(super) queries: Vec<Query>,
}

/// An automaton with parameters.
#[derive(Clone, Debug)]
pub(super) struct Template {
    pub(super) name: &'static str,
    pub(super) parameter: &'static str,
    pub(super) declaration: String,
    /// The first is initial.
    pub(super) locations: Vec<Location>,
    pub(super) edges: Vec<Edge>,
}

/// A place on the editor's canvas.
pub(super) type Point = (i32, i32);

#[derive(Clone, Debug)]
pub(super) struct Location {
    pub(super) name: &'static str,
    pub(super) at: Point,
    pub(super) invariant: String,
    pub(super) committed: bool,
}

impl Location {
    /// A location in which time may pass for ever.
    pub(super) fn passive(name: &'static str, at: Point) -> Self {
        Self { name, at, invariant: String::new(), committed: false }
    }

    /// A location in which time passes while `invariant` holds.
    pub(super) fn timed(name: &'static str, at: Point, invariant: &str) -> Self {
        Self { name, at, invariant: invariant.into(), committed: false }
    }

    /// A location in which no time passes, and which is left before anything else happens.
    pub(super) fn committed(name: &'static str, at: Point) -> Self {
        Self { name, at, invariant: String::new(), committed: true }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Edge {
    pub(super) from: &'static str,
    pub(super) to: &'static str,
    pub(super) guard: &'static str,
    pub(super) sync: &'static str,
    pub(super) update: &'static str,
    /// Where its labels begin.
    pub(super) labels: Point,
    pub(super) nails: Vec<Point>,
}

/// A query with what it asks in words.
#[derive(Clone, Debug)]
pub(super) struct Query {
    pub(super) formula: String,
    pub(super) comment: String,
}

/// Mean time until a location without an invariant proposes to leave: 1000 s, since none of them has
/// an edge that it could take by itself. UPPAAL SMC wants a rate wherever time is not bounded.
const PASSIVE_RATE: &str = "1:1000000000";

/// Height of a line of labels on the canvas.
const LINE: i32 = 17;

impl Network {
    pub(super) fn to_xml(&self) -> String {
        let mut xml = String::from(PROLOGUE);
        xml.push_str("<nta>\n");
        element(&mut xml, 1, "declaration", "", &self.declaration);
        let mut first_id = 0;
        for template in &self.templates {
            template.write(&mut xml, first_id);
            first_id += template.locations.len();
        }
        element(&mut xml, 1, "system", "", &self.system);
        xml.push_str("\t<queries>\n");
        for query in &self.queries {
            xml.push_str("\t\t<query>\n");
            element(&mut xml, 3, "formula", "", &query.formula);
            element(&mut xml, 3, "comment", "", &query.comment);
            xml.push_str("\t\t</query>\n");
        }
        xml.push_str("\t</queries>\n</nta>\n");
        xml
    }
}

impl Template {
    fn write(&self, xml: &mut String, first_id: usize) {
        let id_of = |name: &str| {
            let place = self.locations.iter().position(|location| location.name == name);
            first_id + place.unwrap_or_else(|| unreachable!("{}: no location {name}", self.name))
        };
        xml.push_str("\t<template>\n");
        element(xml, 2, "name", " x=\"5\" y=\"5\"", self.name);
        if !self.parameter.is_empty() {
            element(xml, 2, "parameter", "", self.parameter);
        }
        element(xml, 2, "declaration", "", &self.declaration);
        for location in &self.locations {
            location.write(xml, id_of(location.name));
        }
        let initial = id_of(self.locations.first().map_or("", |location| location.name));
        let _ = writeln!(xml, "\t\t<init ref=\"id{initial}\"/>");
        for edge in &self.edges {
            edge.write(xml, id_of(edge.from), id_of(edge.to));
        }
        xml.push_str("\t</template>\n");
    }
}

impl Location {
    fn write(&self, xml: &mut String, id: usize) {
        let (x, y) = self.at;
        let _ = writeln!(xml, "\t\t<location id=\"id{id}\" x=\"{x}\" y=\"{y}\">");
        element(xml, 3, "name", &place((x - 30, y - 34)), self.name);
        let (kind, text) = if self.invariant.is_empty() {
            ("exponentialrate", PASSIVE_RATE)
        } else {
            ("invariant", self.invariant.as_str())
        };
        if self.committed {
            xml.push_str("\t\t\t<committed/>\n");
        } else {
            label(xml, kind, (x - 30, y + LINE), text);
        }
        xml.push_str("\t\t</location>\n");
    }
}

impl Edge {
    fn write(&self, xml: &mut String, from: usize, to: usize) {
        xml.push_str("\t\t<transition>\n");
        let _ = writeln!(xml, "\t\t\t<source ref=\"id{from}\"/>");
        let _ = writeln!(xml, "\t\t\t<target ref=\"id{to}\"/>");
        let (x, mut y) = self.labels;
        let labels =
            [("guard", self.guard), ("synchronisation", self.sync), ("assignment", self.update)];
        for (kind, text) in labels {
            if !text.is_empty() {
                label(xml, kind, (x, y), text);
                y += LINE;
            }
        }
        for (x, y) in &self.nails {
            let _ = writeln!(xml, "\t\t\t<nail x=\"{x}\" y=\"{y}\"/>");
        }
        xml.push_str("\t\t</transition>\n");
    }
}

fn place((x, y): Point) -> String {
    format!(" x=\"{x}\" y=\"{y}\"")
}

fn label(xml: &mut String, kind: &str, at: Point, text: &str) {
    element(xml, 3, "label", &format!(" kind=\"{kind}\"{}", place(at)), text);
}

fn element(xml: &mut String, depth: usize, name: &str, attributes: &str, text: &str) {
    let indent = "\t".repeat(depth);
    let _ = writeln!(xml, "{indent}<{name}{attributes}>{}</{name}>", escape(text));
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

const PROLOGUE: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>
<!DOCTYPE nta PUBLIC '-//Uppaal Team//DTD Flat System 1.6//EN' \
'http://www.it.uu.se/research/group/darts/uppaal/flat-1_6.dtd'>
";
