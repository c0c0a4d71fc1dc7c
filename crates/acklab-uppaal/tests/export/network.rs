//! Runs an exported file as UPPAAL SMC would: a race of delays between the processes.
//!
//! Only what the export uses: broadcast channels, committed locations, invariants that are upper
//! bounds of clocks. It is stricter than UPPAAL where the export claims to be sound: a sent packet is
//! taken by exactly one process, no invariant is ever broken, no process misses its bound, and no edge
//! that a process takes by itself is enabled before its location's bound.

use acklab_core::rng::Rng;
use roxmltree::{Document, Node, ParsingOptions};

use crate::evaluation::{Memory, Value, initial};
use crate::syntax::{Expr, Reader, Type, Unit, fold};

/// A file that was read.
pub(crate) struct Network {
    pub(crate) global: Unit,
    pub(crate) templates: Vec<Template>,
    /// Name, template and arguments of each process.
    pub(crate) processes: Vec<(String, usize, Vec<Value>)>,
}

/// An automaton.
pub(crate) struct Template {
    pub(crate) name: String,
    pub(crate) unit: Unit,
    parameters: usize,
    locations: Vec<Location>,
    initial: usize,
    edges: Vec<Edge>,
}

struct Location {
    name: String,
    /// (clock, bound) each.
    bounds: Vec<(Expr, Expr)>,
    committed: bool,
}

struct Edge {
    from: usize,
    to: usize,
    guard: Option<Expr>,
    /// The hop, and whether it is sent.
    sync: Option<(Expr, bool)>,
    updates: Vec<Expr>,
}

/// The document, whatever its type declaration says.
pub(crate) fn document(xml: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(xml, options).expect("well-formed XML")
}

fn child<'a>(node: Node<'a, '_>, name: &str) -> &'a str {
    node.children().find(|child| child.has_tag_name(name)).and_then(|n| n.text()).unwrap_or("")
}

fn children<'a, 'b>(node: Node<'a, 'b>, name: &'a str) -> impl Iterator<Item = Node<'a, 'b>> {
    node.children().filter(move |child| child.has_tag_name(name))
}

fn label<'a>(node: Node<'a, 'a>, kind: &str) -> Option<&'a str> {
    children(node, "label").find(|label| label.attribute("kind") == Some(kind))?.text()
}

impl Network {
    pub(crate) fn read(xml: &str) -> Self {
        let document = document(xml);
        let nta = document.root_element();
        let global = Reader::new(child(nta, "declaration"), None).declarations();
        let templates: Vec<_> =
            children(nta, "template").map(|node| Template::read(node, &global)).collect();
        let processes = processes(child(nta, "system"), &templates, &global);
        Self { global, templates, processes }
    }
}

impl Template {
    fn read(node: Node<'_, '_>, global: &Unit) -> Self {
        let mut reader = Reader::new(child(node, "declaration"), Some(global));
        reader.template_parameters(child(node, "parameter"));
        let parameters = reader.unit.variables.len();
        let unit = reader.declarations();
        let ids: Vec<_> = children(node, "location").filter_map(|n| n.attribute("id")).collect();
        let find = |edge: Node<'_, '_>, name: &str| {
            let end = edge.children().find(|child| child.has_tag_name(name));
            let id = end.and_then(|end| end.attribute("ref")).expect("an end of an edge");
            ids.iter().position(|other| *other == id).expect("an edge ends at a location")
        };
        let expression = |text: &str| Reader::expression_in(text, Some(global), &unit);
        let locations = children(node, "location")
            .map(|location| Location {
                name: child(location, "name").into(),
                bounds: label(location, "invariant")
                    .map_or(vec![], |text| bounds(&expression(text))),
                committed: location.children().any(|child| child.has_tag_name("committed")),
            })
            .collect();
        let edges = children(node, "transition")
            .map(|edge| Edge {
                from: find(edge, "source"),
                to: find(edge, "target"),
                guard: label(edge, "guard").map(expression),
                sync: label(edge, "synchronisation").map(|text| sync(text, global, &unit)),
                updates: label(edge, "assignment")
                    .map_or(vec![], |text| Reader::list_in(text, Some(global), &unit)),
            })
            .collect();
        let name = child(node, "name").to_owned();
        Self { name, initial: find(node, "init"), unit, parameters, locations, edges }
    }
}

/// `hop[expression]!` or `hop[expression]?`.
fn sync(text: &str, global: &Unit, unit: &Unit) -> (Expr, bool) {
    let inner = text.strip_prefix("hop[").expect("hops are the only channels");
    let sends = inner.ends_with("]!");
    let index = inner.strip_suffix("]!").or(inner.strip_suffix("]?")).expect("a direction");
    (Reader::expression_in(index, Some(global), unit), sends)
}

/// The upper bounds of an invariant.
fn bounds(invariant: &Expr) -> Vec<(Expr, Expr)> {
    match invariant {
        Expr::Binary(and, left, right) if and == "&&" => [bounds(left), bounds(right)].concat(),
        Expr::Binary(at_most, clock, bound) if at_most == "<=" => {
            assert!(
                matches!(&**clock, Expr::Read(place) if place.kind == Type::Clock),
                "an invariant bounds a clock from above"
            );
            vec![((**clock).clone(), (**bound).clone())]
        }
        other => panic!("not an upper bound of a clock: {other:?}"),
    }
}

/// `Name = Template(arguments);` lines and the system line.
fn processes(
    text: &str,
    templates: &[Template],
    global: &Unit,
) -> Vec<(String, usize, Vec<Value>)> {
    let code: String = text.lines().filter(|line| !line.starts_with("//")).collect();
    let mut made = vec![];
    let mut system = None;
    for statement in code.split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
        if let Some(names) = statement.strip_prefix("system ") {
            system = Some(names);
            continue;
        }
        let (name, instance) = statement.split_once(" = ").expect("name = template(...)");
        let (template, arguments) = instance.split_once('(').expect("arguments");
        let at = templates.iter().position(|t| t.name == template).expect("a known template");
        let arguments = arguments.strip_suffix(')').expect("a closing parenthesis");
        let arguments: Vec<_> = Reader::list_in(arguments, None, global)
            .iter()
            .map(|argument| match fold(argument) {
                Some(Expr::Int(value)) => Value::Int(value),
                other => panic!("{name}: an argument is not constant: {other:?}"),
            })
            .collect();
        assert_eq!(arguments.len(), templates[at].parameters, "arguments of {name}");
        made.push((name.to_owned(), at, arguments));
    }
    let names: Vec<_> = made.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names.join(", "), system.expect("a system line"), "every process is in the system");
    made
}

/// A run.
pub(crate) struct Run<'a> {
    network: &'a Network,
    globals: Vec<Value>,
    members: Vec<Vec<Value>>,
    at: Vec<usize>,
    rng: Rng,
    /// Transitions taken.
    pub(crate) transitions: u64,
}

fn start(unit: &Unit) -> Vec<Value> {
    let value = |variable: &crate::syntax::Variable| match &variable.initial {
        None => initial(&variable.kind),
        Some(expression) => match (&variable.kind, fold(expression)) {
            (Type::Double, Some(Expr::Int(value))) => Value::Double(value as f64),
            (_, Some(Expr::Double(value))) => Value::Double(value),
            (_, Some(Expr::Int(value))) => Value::Int(value),
            other => panic!("{} starts with {other:?}", variable.name),
        },
    };
    unit.variables.iter().map(value).collect()
}

impl<'a> Run<'a> {
    pub(crate) fn new(network: &'a Network, seed: u64) -> Self {
        let members = network.processes.iter().map(|(_, template, arguments)| {
            let mut values = start(&network.templates[*template].unit);
            values[..arguments.len()].clone_from_slice(arguments);
            values
        });
        let initial =
            |(_, template, _): &(String, usize, Vec<Value>)| network.templates[*template].initial;
        Self {
            network,
            globals: start(&network.global),
            members: members.collect(),
            at: network.processes.iter().map(initial).collect(),
            rng: Rng::named(seed, "uppaal"),
            transitions: 0,
        }
    }

    /// A global variable.
    pub(crate) fn global(&mut self, name: &str) -> &mut Value {
        let find = |variable: &crate::syntax::Variable| variable.name == name;
        let at = self.network.global.variables.iter().position(find).expect("a global variable");
        &mut self.globals[at]
    }

    /// A variable of a process.
    pub(crate) fn member(&mut self, process: &str, name: &str) -> &mut Value {
        let process = self.process(process);
        let unit = &self.template(process).unit;
        let at = unit.variables.iter().position(|v| v.name == name).expect("a variable");
        &mut self.members[process][at]
    }

    /// Calls a function of a process outside any transition.
    pub(crate) fn call(&mut self, process: &str, function: &str) -> Value {
        let process = self.process(process);
        self.memory(process).call(function)
    }

    fn process(&self, name: &str) -> usize {
        let find = |process: &(String, usize, Vec<Value>)| process.0 == name;
        self.network.processes.iter().position(find).expect("a process")
    }

    fn template(&self, process: usize) -> &'a Template {
        &self.network.templates[self.network.processes[process].1]
    }

    fn location(&self, process: usize) -> &'a Location {
        &self.template(process).locations[self.at[process]]
    }

    fn memory(&mut self, process: usize) -> Memory<'_> {
        let network = self.network;
        Memory {
            global: &network.global,
            template: &network.templates[network.processes[process].1].unit,
            globals: &mut self.globals,
            members: &mut self.members[process],
            rng: &mut self.rng,
        }
    }

    /// Time until the location's bound; `None` where time may pass for ever.
    fn time_left(&mut self, process: usize) -> Option<f64> {
        let bounds = &self.location(process).bounds;
        let mut memory = self.memory(process);
        let left =
            |(clock, bound): &(Expr, Expr)| memory.value(bound).real() - memory.value(clock).real();
        bounds.iter().map(left).reduce(f64::min)
    }

    /// The edges that a process may take by itself now.
    fn enabled(&mut self, process: usize) -> Vec<&'a Edge> {
        let here = self.at[process];
        let edges = self.template(process).edges.iter();
        let mut memory = self.memory(process);
        let own = |edge: &&Edge| {
            edge.from == here
                && edge.sync.as_ref().is_none_or(|(_, sends)| *sends)
                && edge.guard.as_ref().is_none_or(|guard| memory.value(guard).holds())
        };
        edges.filter(own).collect()
    }

    /// Runs until `end` microseconds have passed.
    pub(crate) fn until(&mut self, end: f64) {
        loop {
            let committed: Vec<_> =
                (0..self.at.len()).filter(|process| self.location(*process).committed).collect();
            if !committed.is_empty() {
                let process = committed[self.rng.below(committed.len() as u64) as usize];
                self.act(process);
                continue;
            }
            let left: Vec<_> =
                (0..self.at.len()).map(|process| (self.time_left(process), process)).collect();
            let delay = left.iter().filter_map(|(left, _)| *left).fold(f64::INFINITY, f64::min);
            let first: Vec<_> =
                left.iter().filter(|(left, _)| *left == Some(delay)).map(|(_, p)| *p).collect();
            if delay > 0.0 {
                for process in 0..self.at.len() {
                    let early = self.enabled(process).len();
                    assert_eq!(early, 0, "{}: an edge before its bound", self.words(process));
                }
            }
            if self.global("now").real() + delay > end {
                return;
            }
            self.advance(delay);
            let process = first[self.rng.below(first.len() as u64) as usize];
            self.act(process);
        }
    }

    fn advance(&mut self, delay: f64) {
        let pass = |unit: &Unit, values: &mut Vec<Value>| {
            for (variable, value) in unit.variables.iter().zip(values) {
                if variable.kind == Type::Clock {
                    *value = Value::Double(value.real() + delay);
                }
            }
        };
        pass(&self.network.global, &mut self.globals);
        for ((_, template, _), members) in self.network.processes.iter().zip(&mut self.members) {
            pass(&self.network.templates[*template].unit, members);
        }
    }

    /// A process takes one of its enabled edges, and who listens takes theirs.
    fn act(&mut self, process: usize) {
        let enabled = self.enabled(process);
        assert!(!enabled.is_empty(), "{} is stuck", self.words(process));
        let edge = enabled[self.rng.below(enabled.len() as u64) as usize];
        let hop = edge.sync.as_ref().map(|(hop, _)| self.memory(process).value(hop).int());
        let listeners = hop.map_or(vec![], |hop| self.listeners(process, hop));
        if hop.is_some() {
            let [_] = listeners[..] else {
                panic!("{} sends to {} listeners", self.words(process), listeners.len());
            };
        }
        self.take(process, edge);
        for (listener, edge) in listeners {
            self.take(listener, edge);
        }
        self.transitions += 1;
        for process in 0..self.at.len() {
            let left = self.time_left(process);
            assert!(
                left.is_none_or(|left| left >= 0.0),
                "{} breaks its invariant",
                self.words(process)
            );
        }
    }

    fn listeners(&mut self, sender: usize, hop: i64) -> Vec<(usize, &'a Edge)> {
        let mut found = vec![];
        for process in (0..self.at.len()).filter(|process| *process != sender) {
            for edge in &self.template(process).edges {
                let Some((index, false)) = &edge.sync else { continue };
                if edge.from == self.at[process] && self.memory(process).value(index).int() == hop {
                    found.push((process, edge));
                }
            }
        }
        found
    }

    fn take(&mut self, process: usize, edge: &Edge) {
        let mut memory = self.memory(process);
        for update in &edge.updates {
            memory.value(update);
        }
        self.at[process] = edge.to;
    }

    fn words(&self, process: usize) -> String {
        format!("{} in {}", self.network.processes[process].0, self.location(process).name)
    }
}
