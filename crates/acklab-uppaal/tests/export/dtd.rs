//! Holds a document to a DTD: element content models, required and declared attributes, IDs.
//!
//! Knows what `flat.dtd` uses: EMPTY, `(#PCDATA)`, sequences and choices with `?`, `*` and `+`, and
//! attributes of the types CDATA, ID and IDREF.

use std::collections::{BTreeMap, BTreeSet};

use roxmltree::{Document, Node};

/// A content model.
#[derive(Debug)]
enum Model {
    Name(String),
    Sequence(Vec<Model>),
    Choice(Vec<Model>),
    Optional(Box<Model>),
    Repeated(Box<Model>),
}

#[derive(Debug)]
enum Content {
    Empty,
    Text,
    Children(Model),
}

/// A DTD.
#[derive(Debug, Default)]
pub(crate) struct Dtd {
    elements: BTreeMap<String, Content>,
    /// Element and attribute: type, and whether it is required.
    attributes: BTreeMap<(String, String), (String, bool)>,
}

impl Dtd {
    pub(crate) fn read(text: &str) -> Self {
        let mut dtd = Self::default();
        let mut rest = text;
        while let Some(from) = rest.find("<!") {
            let end = if rest[from..].starts_with("<!--") { "-->" } else { ">" };
            let length = rest[from..].find(end).expect("a declaration ends");
            let words: Vec<_> = rest[from..from + length].split_whitespace().collect();
            match words[..] {
                ["<!ELEMENT", name, ..] => {
                    let body = words[2..].concat();
                    dtd.elements.insert(name.into(), content(&body));
                }
                ["<!ATTLIST", name, ..] => {
                    for attribute in words[2..].chunks(3) {
                        let [attribute, kind, default] = attribute else { panic!("{attribute:?}") };
                        let value = ((*kind).to_owned(), *default == "#REQUIRED");
                        dtd.attributes.insert((name.into(), (*attribute).into()), value);
                    }
                }
                _ => assert!(words[0].starts_with("<!--"), "unknown declaration {words:?}"),
            }
            rest = &rest[from + length + end.len()..];
        }
        dtd
    }

    /// What is wrong with the document, one sentence each.
    pub(crate) fn faults(&self, document: &Document<'_>) -> Vec<String> {
        let mut faults = vec![];
        let (mut ids, mut references) = (BTreeSet::new(), vec![]);
        for node in document.descendants().filter(Node::is_element) {
            self.content_faults(node, &mut faults);
            let element = node.tag_name().name();
            for attribute in node.attributes() {
                let key = (element.to_owned(), attribute.name().to_owned());
                let value = attribute.value().to_owned();
                match self.attributes.get(&key).map(|(kind, _)| kind.as_str()) {
                    None => faults.push(format!("{element} has no attribute {}", key.1)),
                    Some("ID") if !ids.insert(value.clone()) => {
                        faults.push(format!("ID {value} stands twice"));
                    }
                    Some("IDREF") => references.push(value),
                    Some(_) => {}
                }
            }
            for ((_, name), _) in self.attributes.iter().filter(|(key, (_, required))| {
                key.0 == element && *required && !node.has_attribute(key.1.as_str())
            }) {
                faults.push(format!("{element} lacks its attribute {name}"));
            }
        }
        faults.extend(
            references.iter().filter(|id| !ids.contains(*id)).map(|id| format!("no ID {id}")),
        );
        faults
    }

    fn content_faults(&self, node: Node<'_, '_>, faults: &mut Vec<String>) {
        let element = node.tag_name().name();
        let names: Vec<_> =
            node.children().filter(Node::is_element).map(|n| n.tag_name().name()).collect();
        let text =
            node.children().any(|n| n.text().is_some_and(|t| n.is_text() && !t.trim().is_empty()));
        let fits = match self.elements.get(element) {
            None => false,
            Some(Content::Empty) => names.is_empty() && !text && node.first_child().is_none(),
            Some(Content::Text) => names.is_empty(),
            Some(Content::Children(model)) => !text && model.ends(&names, 0).contains(&names.len()),
        };
        if !fits {
            faults.push(format!("{element} may not hold {names:?}, text: {text}"));
        }
    }
}

impl Model {
    /// Where matching may end when it begins at `from`.
    fn ends(&self, names: &[&str], from: usize) -> BTreeSet<usize> {
        match self {
            Self::Name(name) if names.get(from) == Some(&name.as_str()) => [from + 1].into(),
            Self::Name(_) => BTreeSet::new(),
            Self::Sequence(parts) => parts.iter().fold([from].into(), |ends: BTreeSet<_>, part| {
                ends.into_iter().flat_map(|end| part.ends(names, end)).collect()
            }),
            Self::Choice(parts) => parts.iter().flat_map(|part| part.ends(names, from)).collect(),
            Self::Optional(part) => part.ends(names, from).into_iter().chain([from]).collect(),
            Self::Repeated(part) => {
                let (mut all, mut new) = (BTreeSet::from([from]), vec![from]);
                while let Some(at) = new.pop() {
                    new.extend(part.ends(names, at).into_iter().filter(|end| all.insert(*end)));
                }
                all
            }
        }
    }
}

fn content(body: &str) -> Content {
    match body {
        "EMPTY" => Content::Empty,
        "(#PCDATA)" => Content::Text,
        _ => {
            let (model, rest) = model(body);
            assert!(rest.is_empty(), "{rest:?} follows a content model");
            Content::Children(model)
        }
    }
}

/// A model at the head of `text`, and what follows.
fn model(text: &str) -> (Model, &str) {
    let (mut made, mut rest) = if let Some(mut rest) = text.strip_prefix('(') {
        let (mut parts, mut choice) = (vec![], false);
        loop {
            let (part, after) = model(rest);
            parts.push(part);
            let separator = after.chars().next().expect("a group ends");
            rest = &after[1..];
            choice |= separator == '|';
            if separator == ')' {
                break;
            }
        }
        (if choice { Model::Choice(parts) } else { Model::Sequence(parts) }, rest)
    } else {
        let end = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
        (Model::Name(text[..end].into()), &text[end..])
    };
    let suffix = rest.chars().next().unwrap_or(' ');
    if "?*+".contains(suffix) {
        rest = &rest[1..];
        made = match suffix {
            '?' => Model::Optional(Box::new(made)),
            '*' => Model::Repeated(Box::new(made)),
            _ => {
                let again = model(&text[..text.len() - rest.len() - 1]).0;
                Model::Sequence(vec![made, Model::Repeated(Box::new(again))])
            }
        };
    }
    (made, rest)
}
