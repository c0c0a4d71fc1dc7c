//! Goal: state has an owner. No struct of state has more than fifteen fields, and no field of one is
//! reached from more than two files, so that whoever changes a field has read all that touches it.
//! Method: the source files of a crate, parsed; tests are left out. A struct holds state if one of its
//! methods takes `&mut self`, unless all its fields are public, as those of values are. A field is reached
//! by `x.field`, by a pattern and by a literal. What `x` is, is known of `self`, of parameters and of their
//! fields; of anything else every struct counts that has a field of that name and lets the file see it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, Expr, FnArg, ImplItem, Item, Member, Pat, Type, Visibility};

const MOST_FIELDS: usize = 15;
const MOST_FILES: usize = 2;

#[test]
fn state_has_few_fields_and_each_is_reached_from_two_files_at_most() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut names: Vec<PathBuf> =
        fs::read_dir(crates).expect("the crates").map(|entry| entry.expect("one").path()).collect();
    names.sort();
    assert!(names.len() > 10, "only {} crates were found", names.len());
    for path in names {
        let mut house = House::read(&path.join("src"));
        assert!(house.files.len() > 5, "{}: {} files", path.display(), house.files.len());
        let faults: Vec<_> = house.faults().into_iter().map(|(_, fault)| fault).collect();
        assert!(faults.is_empty(), "{}:\n{}", path.display(), faults.join("\n"));
    }
}

#[test]
fn fields_are_counted_where_they_are_reached() {
    let mut house = House::default();
    let owner = "pub(super) struct Purse { pub(super) coins: u64, notes: u64 }
        impl Purse { fn add(&mut self) { self.coins += 1; self.notes += 1; } }
        #[cfg(test)] mod tests { fn look(purse: &Purse) { purse.notes; } }";
    let user = "struct Coat { purse: Box<Purse>, notes: u64 }
        impl Coat { fn take(&mut self) { self.purse.coins -= 1; self.notes += 1; } }";
    house.add("purse.rs", owner);
    house.add("coat.rs", user);
    assert_eq!(house.faults(), []);
    house.add("thief.rs", "fn steal(them: &mut Them) { let Purse { coins, .. } = them.purse; }");
    let faults = house.faults();
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].1.contains("Purse::coins"), "{faults:?}");
    let fields: Vec<_> = (0..16).map(|n| format!("f{n}: u8")).collect();
    house.add("friend.rs", "fn give(it: &Other) { it.coins; [1].map(|it: &Other| it.coins); }");
    assert_eq!(house.faults().len(), 1, "what a parameter is, is known");
    let impl_ = "impl Large { fn go(&mut self) {} }";
    house.add("large.rs", &format!("struct Large {{ {} }} {impl_}", fields.join(", ")));
    assert_eq!(house.faults().len(), 2);
}

/// A field: its type's name, and how the path of a file begins that may reach it.
struct Field {
    kind: Option<String>,
    scope: String,
}

#[derive(Default)]
struct Struct {
    name: String,
    file: String,
    fields: BTreeMap<String, Field>,
    /// One of its methods changes it.
    changes: bool,
    /// All its fields are public.
    is_value: bool,
}

/// A crate.
#[derive(Default)]
struct House {
    files: BTreeMap<String, Vec<Item>>,
    structs: Vec<Struct>,
}

impl House {
    fn read(root: &Path) -> Self {
        let mut house = Self::default();
        let mut pending = vec![root.to_path_buf()];
        while let Some(folder) = pending.pop() {
            for entry in fs::read_dir(&folder).expect("a folder") {
                let path: PathBuf = entry.expect("an entry").path();
                let name = path.strip_prefix(root).expect("below the root").display().to_string();
                let of_tests =
                    path.file_stem().is_some_and(|stem| stem == "tests" || stem == "hostile");
                if path.is_dir() {
                    pending.push(path);
                } else if path.extension().is_some_and(|end| end == "rs") && !of_tests {
                    house.add(&name, &fs::read_to_string(&path).expect("a source file"));
                }
            }
        }
        house
    }

    fn add(&mut self, file: &str, text: &str) {
        let parsed = syn::parse_file(text).unwrap_or_else(|error| panic!("{file}: {error}"));
        let items: Vec<Item> = parsed.items.into_iter().filter(|item| !is_test(item)).collect();
        for item in &items {
            let Item::Struct(found) = item else { continue };
            let fields = found.fields.iter().filter_map(|field| {
                let known = Field { kind: name_of(&field.ty), scope: scope_of(&field.vis, file) };
                Some((field.ident.as_ref()?.to_string(), known))
            });
            self.structs.push(Struct {
                name: found.ident.to_string(),
                file: file.to_owned(),
                fields: fields.collect(),
                changes: false,
                is_value: found.fields.iter().all(|field| is_public(&field.vis)),
            });
        }
        self.files.insert(file.to_owned(), items);
    }

    /// The structs that `name` may be in `file`: its own, or any that has it.
    fn named<'a>(&'a self, name: &'a str, file: &'a str) -> impl Iterator<Item = usize> + 'a {
        let named = (0..self.structs.len()).filter(move |&at| self.structs[at].name == name);
        let here = named.clone().find(|&at| self.structs[at].file == file);
        named.filter(move |&at| here.is_none_or(|here| here == at))
    }

    /// Notes the structs that a method changes.
    fn note_changes(&mut self) {
        let mut states = Vec::new();
        for (file, items) in &self.files {
            for item in items {
                let Item::Impl(found) = item else { continue };
                let changes = found.items.iter().any(|item| match item {
                    ImplItem::Fn(method) => matches!(
                        method.sig.inputs.first(),
                        Some(FnArg::Receiver(me)) if me.reference.is_some() && me.mutability.is_some()
                    ),
                    _ => false,
                });
                if let Some(name) = name_of(&found.self_ty).filter(|_| changes) {
                    states.extend(self.named(&name, file));
                }
            }
        }
        for at in states {
            self.structs[at].changes = true;
        }
    }

    /// Structs that break the rule, and how.
    fn faults(&mut self) -> Vec<(String, String)> {
        self.note_changes();
        let mut reached: BTreeMap<(usize, String), BTreeSet<&str>> = BTreeMap::new();
        for (file, items) in &self.files {
            let mut reader = Reader {
                house: self,
                file,
                me: None,
                parameters: BTreeMap::new(),
                found: BTreeSet::new(),
            };
            for item in items {
                reader.visit_item(item);
            }
            for field in reader.found {
                reached.entry(field).or_default().insert(file);
            }
        }
        let mut faults = Vec::new();
        let states =
            self.structs.iter().enumerate().filter(|(_, known)| known.changes && !known.is_value);
        for (at, known) in states {
            let name = &known.name;
            if known.fields.len() > MOST_FIELDS {
                faults.push((name.clone(), format!("{name} has {} fields", known.fields.len())));
            }
            for field in known.fields.keys() {
                let files = reached.get(&(at, field.clone())).cloned().unwrap_or_default();
                if files.len() > MOST_FILES {
                    let files: Vec<_> = files.into_iter().collect();
                    let fault = format!("{name}::{field} is reached from {}", files.join(", "));
                    faults.push((name.clone(), fault));
                }
            }
        }
        faults
    }
}

/// Finds the fields that a file reaches.
struct Reader<'a> {
    house: &'a House,
    file: &'a str,
    /// The type whose methods are being read.
    me: Option<String>,
    /// What the parameters in scope are.
    parameters: BTreeMap<String, String>,
    found: BTreeSet<(usize, String)>,
}

impl Reader<'_> {
    /// The struct that an expression is, where that is known.
    fn kind_of(&self, expression: &Expr) -> Option<String> {
        match expression {
            Expr::Path(path) if path.path.is_ident("self") => self.me.clone(),
            Expr::Path(path) => self.parameters.get(&path.path.get_ident()?.to_string()).cloned(),
            Expr::Field(field) => {
                let Member::Named(name) = &field.member else { return None };
                let (base, name) = (self.kind_of(&field.base)?, name.to_string());
                let mut bases = self.house.named(&base, self.file).peekable();
                if bases.peek().is_none() {
                    // Of another crate, as is what it holds.
                    return Some(String::new());
                }
                bases.find_map(|at| self.house.structs[at].fields.get(&name))?.kind.clone()
            }
            Expr::Reference(inner) => self.kind_of(&inner.expr),
            Expr::Paren(inner) => self.kind_of(&inner.expr),
            Expr::Unary(inner) => self.kind_of(&inner.expr),
            _ => None,
        }
    }

    fn reach(&mut self, kind: Option<&str>, field: &str) {
        let structs = &self.house.structs;
        let candidates: Vec<usize> = match kind {
            Some(kind) => self.house.named(kind, self.file).collect(),
            None => (0..structs.len()).collect(),
        };
        let seen = candidates.into_iter().filter(|&at| {
            structs[at].fields.get(field).is_some_and(|field| self.file.starts_with(&field.scope))
        });
        self.found.extend(seen.map(|at| (at, field.to_owned())));
    }

    fn take_parameter(&mut self, parameter: &syn::PatType) {
        self.visit_pat(&parameter.pat);
        if let (Pat::Ident(name), Some(kind)) = (&*parameter.pat, name_of(&parameter.ty)) {
            let me = self.me.clone().filter(|_| kind == "Self");
            self.parameters.insert(name.ident.to_string(), me.unwrap_or(kind));
        }
    }

    fn reach_named(&mut self, path: &syn::Path, field: &Member) {
        let name = path.segments.last().map(|segment| segment.ident.to_string());
        let name =
            name.map(|name| if name == "Self" { self.me.clone().unwrap_or(name) } else { name });
        if let Member::Named(field) = field {
            self.reach(name.as_deref(), &field.to_string());
        }
    }
}

impl<'a> Visit<'a> for Reader<'_> {
    fn visit_signature(&mut self, found: &'a syn::Signature) {
        self.parameters.clear();
        for parameter in &found.inputs {
            if let FnArg::Typed(parameter) = parameter {
                self.take_parameter(parameter);
            }
        }
    }

    fn visit_expr_closure(&mut self, found: &'a syn::ExprClosure) {
        let outside = self.parameters.clone();
        for parameter in &found.inputs {
            match parameter {
                Pat::Type(parameter) => self.take_parameter(parameter),
                other => self.visit_pat(other),
            }
        }
        self.visit_expr(&found.body);
        self.parameters = outside;
    }

    fn visit_pat_ident(&mut self, found: &'a syn::PatIdent) {
        // Something else has that name from here on.
        self.parameters.remove(&found.ident.to_string());
        visit::visit_pat_ident(self, found);
    }

    fn visit_item_impl(&mut self, found: &'a syn::ItemImpl) {
        self.me = name_of(&found.self_ty);
        visit::visit_item_impl(self, found);
        self.me = None;
    }

    fn visit_expr_field(&mut self, found: &'a syn::ExprField) {
        if let Member::Named(name) = &found.member {
            let kind = self.kind_of(&found.base);
            self.reach(kind.as_deref(), &name.to_string());
        }
        visit::visit_expr_field(self, found);
    }

    fn visit_expr_struct(&mut self, found: &'a syn::ExprStruct) {
        found.fields.iter().for_each(|field| self.reach_named(&found.path, &field.member));
        visit::visit_expr_struct(self, found);
    }

    fn visit_pat_struct(&mut self, found: &'a syn::PatStruct) {
        found.fields.iter().for_each(|field| self.reach_named(&found.path, &field.member));
        visit::visit_pat_struct(self, found);
    }
}

/// The name of a type, of what it points to, or of what may be there.
fn name_of(kind: &Type) -> Option<String> {
    match kind {
        Type::Reference(inner) => name_of(&inner.elem),
        Type::Path(path) => {
            let last = path.path.segments.last()?;
            let name = last.ident.to_string();
            let inner = match &last.arguments {
                syn::PathArguments::AngleBracketed(inner) => inner.args.first(),
                _ => None,
            };
            match inner {
                Some(syn::GenericArgument::Type(inner)) if name == "Box" || name == "Option" => {
                    name_of(inner)
                }
                _ => Some(name),
            }
        }
        _ => None,
    }
}

/// How the paths of the files begin that see what is `visibility` in `file`. Those of a folder see what its
/// mod.rs keeps to itself.
fn scope_of(visibility: &Visibility, file: &str) -> String {
    let module = file.strip_suffix("mod.rs").unwrap_or(file);
    match visibility {
        Visibility::Inherited => module.to_owned(),
        Visibility::Restricted(to) if to.path.is_ident("super") => {
            let parent = module.trim_end_matches('/').rfind('/').map_or(0, |end| end + 1);
            module[..parent].to_owned()
        }
        _ => String::new(),
    }
}

const fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn is_test(item: &Item) -> bool {
    let attributes: &[Attribute] = match item {
        Item::Mod(found) => &found.attrs,
        Item::Fn(found) => &found.attrs,
        Item::Impl(found) => &found.attrs,
        _ => return false,
    };
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    })
}
