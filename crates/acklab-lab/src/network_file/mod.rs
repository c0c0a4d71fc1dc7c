//! Networks in a TOML file: nodes, links and flows of any graph (docs/network-file.md).
//!
//! [`NetworkFile::parse`] reads and checks everything that can be wrong before anything runs: keys,
//! types, names, ranges, and that packets find their way. A refusal says where (line and column), what
//! and how to mend it. Nodes are those that links name. Routes are static, by fewest links. With
//! `[[sweep]]` tables a file is several networks, one for each combination of their values.
//!
//! A file keeps its text, so that a run can write down what it ran: values at the top level and of sweeps are
//! replaced and everything else, comments too, stays as its author wrote it.

mod copies;
mod distributions;
mod flows;
mod hosts;
mod keys;
mod links;
mod loops;
mod network;
mod queues;
mod rate_traces;
mod reader;
mod sweeps;
mod transport;
mod writing;

use std::collections::BTreeMap;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use self::network::Top;
use self::reader::{Fields, Mistake};
use self::sweeps::{Sweep, Sweeps};
use self::writing::{as_toml, quoted, replaced};
use crate::parameter::{SetError, split_pair};
use crate::sweep::{MOST_CASES, values};

pub(crate) use flows::{Arriving, Ends, Every, Flow, Over, Traffic};
pub(crate) use network::{Asked, Link, Network, SCENARIO};
pub use rate_traces::Reading;
pub use reader::{FileMistake, Place};

/// A file's networks, read and checked.
#[derive(Clone, Debug)]
pub struct NetworkFile {
    text: String,
    /// Where the values at the top level are in the text.
    values: BTreeMap<String, Range<usize>>,
    top: Top,
    sweeps: Vec<Sweep>,
    /// Every combination of the sweeps' values, the last sweep fastest; at least one.
    networks: Vec<Network>,
}

/// Files are the same when their texts are.
impl PartialEq for NetworkFile {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for NetworkFile {}

impl NetworkFile {
    /// Reads and checks a file's text, which names no other files.
    pub fn parse(text: &str) -> Result<Self, FileMistake> {
        Self::parse_with(text, &|_| Err("is of another file, which a text alone has not".into()))
    }

    /// The same of a text that may name others.
    pub fn parse_with(text: &str, reading: Reading<'_>) -> Result<Self, FileMistake> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let root = DeTable::parse(text).map_err(|error| FileMistake::from((text, error)))?;
        let places = written_out(text, root.get_ref()).and_then(|mut places| {
            places.extend(rate_traces::written_out(root.get_ref(), reading)?);
            Ok(places)
        });
        let places = places.map_err(|mistake| mistake.locate(text))?;
        if !places.is_empty() {
            return Self::parse(&replaced(text, places));
        }
        Self::read(text, root.get_ref()).map_err(|mistake| mistake.locate(text))
    }

    fn read(text: &str, root: &DeTable<'_>) -> Result<Self, Mistake> {
        let sweeps = Sweeps::read(text, &mut Fields::new(text, "a network file", root, 0..0))?;
        let counts: Vec<usize> = sweeps.list.iter().map(|sweep| sweep.labels.len()).collect();
        let all = counts.iter().map(|count| *count as u128).product::<u128>();
        if let Some(last) = sweeps.list.last().filter(|_| all > MOST_CASES) {
            return Err(Mistake::new(
                &last.at,
                SetError::TooManyCases { cases: all, limit: MOST_CASES }.to_string(),
            ));
        }
        let (mut networks, mut top) = (Vec::new(), None);
        for cell in 0..all as usize {
            let mut root = sweeps.put(root, &place(&counts, cell))?;
            copies::unfold(text, &mut root)?;
            let (network, beside) = Network::read(text, &root)?;
            networks.push(network);
            top = Some(beside);
        }
        let values = root.iter().map(|(key, value)| (key.get_ref().to_string(), value.span()));
        let top = top.ok_or_else(|| Mistake::new(&(0..0), "the file has no network"))?;
        Ok(Self {
            text: text.to_owned(),
            values: values.collect(),
            top,
            sweeps: sweeps.list,
            networks,
        })
    }

    /// What its author says it is.
    pub(crate) fn about(&self) -> Option<&str> {
        self.top.about.as_deref()
    }

    /// Seed of the first replication; 1 where the file names none.
    pub const fn seed(&self) -> u64 {
        self.top.seed
    }

    /// Replications; 1 where the file names none.
    pub const fn replications(&self) -> u64 {
        self.top.replications
    }

    /// What varies from one of its networks to the next.
    pub(crate) fn sweeps(&self) -> &[Sweep] {
        &self.sweeps
    }

    /// Its networks, the last sweep's values fastest; at least one.
    pub(crate) fn networks(&self) -> &[Network] {
        &self.networks
    }

    /// A mistake at a place of the text.
    pub(crate) fn mistake(&self, at: &Range<usize>, message: String) -> FileMistake {
        Mistake::new(at, message).locate(&self.text)
    }

    /// The same network with these links watched, the first for the metrics.
    pub(crate) fn watching(&self, names: &[String]) -> Result<Self, String> {
        let mut list = Vec::new();
        for name in names {
            let index = self.networks[0].link(name)?;
            list.push(quoted(&self.networks[0].links[index as usize].name));
        }
        Ok(self.with(&[("watch", format!("[{}]", list.join(", ")))]))
    }

    /// The same file with the sweeps and keys that some of `pairs` name set to the values there; returns the other
    /// pairs, which are of the top level, too.
    pub(crate) fn setting(self, pairs: &[String]) -> Result<(Self, Vec<String>), SetError> {
        let (mut file, mut others) = (self, Vec::new());
        for pair in pairs {
            let (name, text) = split_pair(pair)?;
            let wrong =
                |reason| SetError::BadValue { name: name.into(), text: text.into(), reason };
            let Some(sweep) = file.sweeps.iter().find(|sweep| sweep.name == name) else {
                if sweeps::TAKEN.contains(&name) {
                    others.push(pair.clone());
                } else {
                    let changed = keys::swept(&file.text, name, text).map_err(wrong)?;
                    file = Self::parse(&changed).map_err(|mistake| wrong(mistake.message))?;
                }
                continue;
            };
            let listed = values(text).map_err(wrong)?;
            let listed: Vec<_> = listed.iter().map(|value| file.as_written(sweep, value)).collect();
            let place = (sweep.at.clone(), format!("[{}]", listed.join(", ")));
            let changed = Self::parse(&replaced(&file.text, vec![place]));
            file = changed.map_err(|mistake| wrong(mistake.message))?;
        }
        Ok((file, others))
    }

    /// A value of a sweep as TOML: one that the file lists under this name, or else the text itself.
    fn as_written(&self, sweep: &Sweep, value: &str) -> String {
        let source = self.text.get(sweep.at.clone()).unwrap_or_default();
        let listed = format!("x = {source}");
        let root = DeTable::parse(&listed).ok();
        let items = root.as_ref().and_then(|root| root.get_ref().get("x")?.get_ref().as_array());
        let index = sweep.labels.iter().position(|label| label == value);
        let found =
            items.zip(index).and_then(|(items, index)| listed.get(items.get(index)?.span()));
        found.map_or_else(|| as_toml(value), str::to_owned)
    }

    /// What `--set` can change beside sweeps, each as `NAME.key = value`.
    pub fn keys(&self) -> Vec<String> {
        keys::listed(&self.text)
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The same network with other values, as TOML, for keys at the top level.
    pub(crate) fn with(&self, values: &[(&str, String)]) -> Self {
        let (mut text, mut places) = (String::new(), Vec::new());
        for (key, value) in values {
            match self.values.get(*key) {
                Some(span) => places.push((span.clone(), value.clone())),
                None => text.extend([key, " = ", value, "\n"]),
            }
        }
        text.push_str(&replaced(&self.text, places));
        Self::parse(&text).expect("values that a plan was made with fit their keys")
    }
}

/// Which value of each sweep a cell has, where the last sweep is the fastest.
fn place(counts: &[usize], cell: usize) -> Vec<usize> {
    let mut rest = cell;
    let mut chosen: Vec<usize> = counts
        .iter()
        .rev()
        .map(|count| {
            let index = rest % count;
            rest /= count;
            index
        })
        .collect();
    chosen.reverse();
    chosen
}

/// Where a sweep's values are a range or one value, with the list that is meant.
fn written_out(text: &str, root: &DeTable<'_>) -> Result<Vec<(Range<usize>, String)>, Mistake> {
    let sweeps = root.get("sweep").and_then(|sweeps| sweeps.get_ref().as_array());
    let mut places = Vec::new();
    for sweep in sweeps.into_iter().flat_map(|sweeps| sweeps.iter()) {
        let values_of = sweep.get_ref().get("values");
        let Some(DeValue::String(range)) = values_of.map(toml::Spanned::get_ref) else { continue };
        let at = values_of.map(toml::Spanned::span).unwrap_or_default();
        let shown = text.get(at.clone()).unwrap_or_default();
        let listed = values(range)
            .map_err(|reason| Mistake::new(&at, format!("values = {shown}: {reason}")))?;
        let listed: Vec<_> = listed.iter().map(|value| as_toml(value)).collect();
        places.push((at, format!("[{}]", listed.join(", "))));
    }
    Ok(places)
}
