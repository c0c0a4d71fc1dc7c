//! The source files of a crate, and what each needs of the others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Item, UseTree, Visibility};

/// A module: its path from the crate's root, such as `["link", "loss"]`.
pub(super) type Module = Vec<String>;

/// What a source file says of itself.
#[derive(Default)]
pub(super) struct Source {
    pub(super) file: String,
    /// Names it defines at the top level.
    pub(super) defined: BTreeSet<String>,
    /// Names it uses: (name here, path).
    pub(super) used: Vec<(String, Vec<String>)>,
    /// What stands in it, tests left out.
    pub(super) items: Vec<Item>,
    /// Names it passes on: (name here, path).
    passed_on: Vec<(String, Vec<String>)>,
    /// Paths it needs.
    needed: Vec<Vec<String>>,
}

pub(super) type Crate = BTreeMap<Module, Source>;
pub(super) type Graph = BTreeMap<String, BTreeSet<String>>;

pub(super) fn crates() -> Vec<PathBuf> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found: Vec<_> = fs::read_dir(crates)
        .expect("the folder of the crates")
        .map(|entry| entry.expect("an entry").path().join("src"))
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    found
}

pub(super) fn read_crate(root: &Path) -> Crate {
    let mut modules = Crate::new();
    let mut pending = vec![root.to_path_buf()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                pending.push(path);
                continue;
            }
            let relative = path.strip_prefix(root).expect("below the root");
            let Some(module) = module_of(relative) else { continue };
            let home = root.parent().and_then(Path::file_name).expect("a crate's folder");
            let file = Path::new(home).join("src").join(relative).display().to_string();
            let text = fs::read_to_string(&path).expect("a source file");
            modules.insert(module, parse(&file, &text));
        }
    }
    modules
}

/// The module of a source file; `None` for tests and what is no Rust.
fn module_of(relative: &Path) -> Option<Module> {
    if relative.extension()? != "rs" {
        return None;
    }
    let mut module: Module = relative
        .with_extension("")
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    if matches!(module.last()?.as_str(), "mod" | "lib" | "main") {
        module.pop();
    }
    let of_tests = ["tests", "testbed", "vectors", "hostile"];
    (!module.iter().any(|part| of_tests.contains(&part.as_str()))).then_some(module)
}

pub(super) fn parse(file: &str, text: &str) -> Source {
    let parsed = syn::parse_file(text).unwrap_or_else(|error| panic!("{file}: {error}"));
    let mut source = Source { file: file.to_owned(), ..Source::default() };
    let items: Vec<_> = parsed.items.into_iter().filter(|item| !is_test(item)).collect();
    for item in &items {
        source.defined.extend(defined_name(item));
        source.visit_item(item);
    }
    source.items = items;
    source
}

fn is_test(item: &Item) -> bool {
    let Item::Mod(module) = item else { return false };
    module.attrs.iter().any(|attribute| attribute.path().is_ident("cfg"))
}

fn defined_name(item: &Item) -> Option<String> {
    let name = match item {
        Item::Struct(found) => &found.ident,
        Item::Enum(found) => &found.ident,
        Item::Union(found) => &found.ident,
        Item::Trait(found) => &found.ident,
        Item::Type(found) => &found.ident,
        Item::Const(found) => &found.ident,
        Item::Static(found) => &found.ident,
        Item::Fn(found) => &found.sig.ident,
        Item::Macro(found) => found.ident.as_ref()?,
        _ => return None,
    };
    Some(name.to_string())
}

impl<'a> Visit<'a> for Source {
    fn visit_item_use(&mut self, found: &'a syn::ItemUse) {
        for (path, name) in leaves(&found.tree) {
            self.used.push((name.clone(), path.clone()));
            match found.vis {
                Visibility::Inherited => self.needed.push(path),
                _ => self.passed_on.push((name, path)),
            }
        }
    }

    fn visit_path(&mut self, found: &'a syn::Path) {
        self.needed.push(found.segments.iter().map(|part| part.ident.to_string()).collect());
        visit::visit_path(self, found);
    }

    /// Paths in what a macro is given: `crate::a::b`, `super::a`, `a::b`.
    fn visit_macro(&mut self, found: &'a syn::Macro) {
        let tokens = found.tokens.to_string().replace(" :: ", "::");
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let paths = tokens.split(|c| !is_part(c)).filter(|word| word.contains("::"));
        let paths = paths.filter(|word| !word.starts_with(':'));
        self.needed.extend(paths.map(|path| path.split("::").map(str::to_owned).collect()));
        self.visit_path(&found.path);
    }
}

/// The paths of a `use` tree, each with the name it gets.
fn leaves(tree: &UseTree) -> Vec<(Vec<String>, String)> {
    let leaf =
        |part: &syn::Ident, name: &syn::Ident| vec![(vec![part.to_string()], name.to_string())];
    match tree {
        UseTree::Name(name) => leaf(&name.ident, &name.ident),
        UseTree::Rename(named) => leaf(&named.ident, &named.rename),
        UseTree::Glob(_) => vec![(vec!["*".into()], "*".into())],
        UseTree::Group(group) => group.items.iter().flat_map(leaves).collect(),
        UseTree::Path(path) => {
            let first = path.ident.to_string();
            let below = leaves(&path.tree).into_iter().map(|(mut path, mut name)| {
                if path == ["self"] {
                    path.clear();
                    name.clone_from(&first);
                }
                path.insert(0, first.clone());
                (path, name)
            });
            below.collect()
        }
    }
}

/// Which file needs which.
pub(super) fn needs(house: &Crate) -> Graph {
    let mut graph = Graph::new();
    for (module, source) in house {
        let needed = graph.entry(source.file.clone()).or_default();
        for path in &source.needed {
            needed.extend(home_of(house, module, path, 0).filter(|file| *file != source.file));
        }
    }
    graph
}

/// The file that defines what `path` names as seen from `module`; `None` outside of the crate.
pub(super) fn home_of(
    house: &Crate,
    module: &Module,
    path: &[String],
    depth: u32,
) -> Option<String> {
    let mut at = module.clone();
    let mut steps = path.iter().enumerate();
    let mut rest = path.len();
    for (index, step) in steps.by_ref() {
        match step.as_str() {
            "crate" => at.clear(),
            "self" => {}
            "super" => drop(at.pop()),
            name => {
                let mut child = at.clone();
                child.push(name.to_owned());
                if !house.contains_key(&child) {
                    rest = index;
                    break;
                }
                at = child;
            }
        }
    }
    let own =
        path.first().is_some_and(|first| matches!(first.as_str(), "crate" | "self" | "super"));
    if rest == 0 && !own {
        return None;
    }
    let here = house.get(&at)?;
    let Some(name) = path.get(rest) else {
        // A module as a whole: its name alone says nothing, what is taken of it stands in the code.
        return None;
    };
    if name == "*" || here.defined.contains(name) || depth > 8 {
        return Some(here.file.clone());
    }
    let passed = here.passed_on.iter().find(|(known, _)| known == name);
    passed.and_then(|(_, path)| home_of(house, &at, path, depth + 1))
}
