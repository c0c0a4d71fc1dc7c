//! Goal: state has an owner. No struct of state has more than fifteen fields, and no field of one is
//! reached from more than two files, so that whoever changes a field has read all that touches it.
//! Method: the source files of a crate, parsed; tests are left out. A struct holds state if one of its
//! methods takes `&mut self`, unless all its fields are public, as those of values are. A field is reached by `x.field`, by a pattern and by a literal. What `x` is, is
//! known of `self` and of its fields; of anything else every struct counts that has a field of that name
//! and lets the file see it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, Expr, FnArg, ImplItem, Item, Member, Type, Visibility};

/// Crates that keep to it.
const CRATES: &[&str] = &[
    "acklab",
    "acklab-control",
    "acklab-net",
    "acklab-papers",
    "acklab-rudp",
    "acklab-tcp",
    "acklab-worlds",
];

/// Structs that are still to be taken apart; one leaves this list when it keeps to the rule.
const OPEN: &[&str] = &["Content"];

const MOST_FIELDS: usize = 15;
const MOST_FILES: usize = 2;

#[test]
fn state_has_few_fields_and_each_is_reached_from_two_files_at_most() {
    for name in CRATES {
        let house =
            House::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src"));
        assert!(house.files.len() > 10, "{name}: only {} files were found", house.files.len());
        let faults = house.faults();
        let open = |fault: &&(String, String)| OPEN.contains(&fault.0.as_str());
        let told: Vec<_> =
            faults.iter().filter(|fault| !open(fault)).map(|fault| &*fault.1).collect();
        assert!(told.is_empty(), "{name}:\n{}", told.join("\n"));
        for kept in OPEN.iter().filter(|kept| house.structs.contains_key(**kept)) {
            let left = faults.iter().any(|(known, _)| known == kept);
            assert!(left, "{kept} keeps to the rule: take it off the list");
        }
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
    let impl_ = "impl Large { fn go(&mut self) {} }";
    house.add("large.rs", &format!("struct Large {{ {} }} {impl_}", fields.join(", ")));
    assert_eq!(house.faults().len(), 2);
}

/// A field: its type's name, and whether files other than the struct's own may reach it.
struct Field {
    kind: Option<String>,
    visible: bool,
}

#[derive(Default)]
struct Struct {
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
    structs: BTreeMap<String, Struct>,
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
            match item {
                Item::Struct(found) => {
                    let known = self.structs.entry(found.ident.to_string()).or_default();
                    file.clone_into(&mut known.file);
                    known.is_value = found.fields.iter().all(|field| is_public(&field.vis));
                    known.fields = found
                        .fields
                        .iter()
                        .filter_map(|field| {
                            let visible = !matches!(field.vis, Visibility::Inherited);
                            let kind = name_of(&field.ty);
                            Some((field.ident.as_ref()?.to_string(), Field { kind, visible }))
                        })
                        .collect();
                }
                Item::Impl(found) => {
                    let changes = found.items.iter().any(|item| match item {
                        ImplItem::Fn(method) => matches!(
                            method.sig.inputs.first(),
                            Some(FnArg::Receiver(me)) if me.reference.is_some() && me.mutability.is_some()
                        ),
                        _ => false,
                    });
                    if let Some(name) = name_of(&found.self_ty).filter(|_| changes) {
                        self.structs.entry(name).or_default().changes = true;
                    }
                }
                _ => {}
            }
        }
        self.files.insert(file.to_owned(), items);
    }

    /// Structs that break the rule, and how.
    fn faults(&self) -> Vec<(String, String)> {
        let mut reached: BTreeMap<(String, String), BTreeSet<&str>> = BTreeMap::new();
        for (file, items) in &self.files {
            let mut reader = Reader { house: self, file, me: None, found: BTreeSet::new() };
            for item in items {
                reader.visit_item(item);
            }
            for field in reader.found {
                reached.entry(field).or_default().insert(file);
            }
        }
        let mut faults = Vec::new();
        for (name, known) in
            self.structs.iter().filter(|(_, known)| known.changes && !known.is_value)
        {
            if known.fields.len() > MOST_FIELDS {
                faults.push((name.clone(), format!("{name} has {} fields", known.fields.len())));
            }
            for field in known.fields.keys() {
                let files =
                    reached.get(&(name.clone(), field.clone())).cloned().unwrap_or_default();
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
    found: BTreeSet<(String, String)>,
}

impl Reader<'_> {
    /// The struct that an expression is, where that is known.
    fn kind_of(&self, expression: &Expr) -> Option<String> {
        match expression {
            Expr::Path(path) if path.path.is_ident("self") => self.me.clone(),
            Expr::Field(field) => {
                let Member::Named(name) = &field.member else { return None };
                let base = self.house.structs.get(&self.kind_of(&field.base)?)?;
                base.fields.get(&name.to_string())?.kind.clone()
            }
            Expr::Reference(inner) => self.kind_of(&inner.expr),
            Expr::Paren(inner) => self.kind_of(&inner.expr),
            Expr::Unary(inner) => self.kind_of(&inner.expr),
            _ => None,
        }
    }

    fn reach(&mut self, kind: Option<String>, field: &str) {
        if let Some(kind) = kind {
            self.found.insert((kind, field.to_owned()));
            return;
        }
        // The files of a folder see what its mod.rs keeps to itself.
        let is_visible = |known: &Struct| {
            let folder = known.file.strip_suffix("mod.rs").filter(|folder| !folder.is_empty());
            known.file == self.file
                || folder.is_some_and(|folder| self.file.starts_with(folder))
                || known.fields[field].visible
        };
        let candidates =
            self.house.structs.iter().filter(|(_, known)| known.fields.contains_key(field));
        let seen = candidates.filter(|(_, known)| is_visible(known));
        let found: Vec<_> = seen.map(|(name, _)| (name.clone(), field.to_owned())).collect();
        self.found.extend(found);
    }

    fn reach_named(&mut self, path: &syn::Path, field: &Member) {
        let name = path.segments.last().map(|segment| segment.ident.to_string());
        let name =
            name.map(|name| if name == "Self" { self.me.clone().unwrap_or(name) } else { name });
        if let Member::Named(field) = field {
            self.reach(name, &field.to_string());
        }
    }
}

impl<'a> Visit<'a> for Reader<'_> {
    fn visit_item_impl(&mut self, found: &'a syn::ItemImpl) {
        self.me = name_of(&found.self_ty);
        visit::visit_item_impl(self, found);
        self.me = None;
    }

    fn visit_expr_field(&mut self, found: &'a syn::ExprField) {
        if let Member::Named(name) = &found.member {
            let kind = self.kind_of(&found.base);
            self.reach(kind, &name.to_string());
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
