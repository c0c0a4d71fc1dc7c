//! Goal: a packet goes through few files, each entered from those before it, and none calls back into one that
//! the packet has left: a reader can follow it from top to bottom.
//! Method: the calls between the files of a crate, found in their syntax: what an expression is, is known of
//! `self`, of parameters, fields, results of methods and what is bound to these; a method belongs to the
//! file that its `impl` stands in. Calls through values whose type is not written in the crate are not seen. The
//! roads are those of ARCHITECTURE.md, in its order.

#[allow(dead_code, reason = "each test that reads sources uses its part")]
mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use sources::{Crate, Graph, Module, home_of, parse, read_crate};
use syn::visit::{self, Visit};
use syn::{Expr, FnArg, GenericArgument, ImplItem, Item, Pat, PathArguments, ReturnType, Type};

/// How its paragraph in ARCHITECTURE.md begins, its crate, and its files in the order in which they are entered.
struct Road {
    name: &'static str,
    home: &'static str,
    files: &'static [&'static str],
}

const ROADS: &[Road] = &[
    Road {
        name: "*The road of a TCP segment*",
        home: "acklab-tcp",
        files: &[
            "connection.rs",
            "input.rs",
            "receive/mod.rs",
            "receive/buffer.rs",
            "send/mod.rs",
            "send/recovery.rs",
            "send/queue.rs",
        ],
    },
    Road {
        name: "*The road of a datagram of reliable UDP*",
        home: "acklab-rudp",
        files: &[
            "input.rs",
            "connection.rs",
            "notices.rs",
            "paths.rs",
            "path.rs",
            "received.rs",
            "session.rs",
            "keys.rs",
            "loss.rs",
            "sent.rs",
            "congestion.rs",
            "ecn.rs",
            "ack_requests.rs",
            "content/control.rs",
            "content/receiving.rs",
            "receive_stream.rs",
            "receive_parcels.rs",
            "wire/frame.rs",
        ],
    },
    Road {
        name: "*The road of a captured frame*",
        home: "acklab-trace",
        files: &[
            "read.rs",
            "capture/reader.rs",
            "frame/mod.rs",
            "flow/table.rs",
            "flow/connection.rs",
            "flow/direction.rs",
            "flow/stream.rs",
        ],
    },
    Road {
        name: "*The road of a captured frame*",
        home: "acklab-trace",
        files: &["noted/recorder.rs", "noted/tape.rs"],
    },
    Road {
        name: "*The road of a segment on the wire*",
        home: "acklab-net",
        files: &["tcp/driver.rs", "tcp/host.rs", "tcp/stream.rs", "tcp/bytes.rs"],
    },
];

#[test]
fn a_packet_never_goes_back_into_a_file_that_it_left() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let document = std::fs::read_to_string(root.join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let mut faults = Vec::new();
    for Road { name, home, files } in ROADS {
        let calls = calls(&read_crate(&root.join("crates").join(home).join("src")));
        let paths: Vec<_> = files.iter().map(|file| format!("{home}/src/{file}")).collect();
        faults.extend(faults_of(&calls, &paths));
        let told = document.split("\n\n").find(|part| part.starts_with(name));
        let mut rest = told.unwrap_or_else(|| panic!("no paragraph begins {name}"));
        for file in *files {
            let short = file.rsplit('/').next().unwrap_or(file);
            let at = [file, short].iter().find_map(|word| rest.find(&format!("`{word}`")));
            rest =
                &rest[at.unwrap_or_else(|| panic!("{name}: {file} is not named in its place"))..];
        }
    }
    assert_eq!(ROADS[0].files.len(), 7, "files that a received TCP segment enters");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_way_back_is_found_through_fields_results_and_files_beside_the_road() {
    let mut house = Crate::new();
    house.insert(vec![], parse("lib.rs", "mod a; mod b; mod c; mod d;"));
    let a = "use crate::b::B; pub struct A { b: Option<B> }
        impl A { pub fn take(&mut self) { if let Some(b) = &mut self.b { b.see(); } } pub fn end(&self) {} }";
    let b = "use crate::c::C; pub struct B { c: C } impl B { pub fn see(&mut self) { self.c.look(); } }";
    let mut with = |name: &str, text: &str| {
        house.insert(vec![name.to_owned()], parse(&format!("{name}.rs"), text));
        faults_of(&calls(&house), &["a.rs", "b.rs", "c.rs"].map(str::to_owned)).len()
    };
    with("c", "");
    with("b", b);
    with("a", a);
    assert_eq!(with("c", "pub struct C; impl C { pub fn look(&self) {} }"), 0);
    let direct = "use crate::a::A; pub struct C; impl C { pub fn look(&self, a: &A) { a.end(); } }";
    assert_eq!(with("c", direct), 1);
    with(
        "c",
        "use crate::d::D; pub struct C { d: D } impl C { pub fn look(&self) { self.d.go(); } }",
    );
    let beside =
        "use crate::b::B; pub struct D { b: B } impl D { pub fn go(&mut self) { self.b.see(); } }";
    assert_eq!(with("d", beside), 1);
    assert_eq!(
        with("b", "use crate::c::C; pub struct B { c: C } impl B { pub fn see(&mut self) {} }"),
        2
    );
}

/// What is wrong with a road: a file that none before it calls, or one that calls one before it, be it through
/// files beside the road.
fn faults_of(calls: &Graph, files: &[String]) -> Vec<String> {
    let mut faults = Vec::new();
    for (place, file) in files.iter().enumerate() {
        let calls_it = |from: &String| calls.get(from).is_some_and(|called| called.contains(file));
        let entered = files[..place].iter().any(calls_it);
        if place > 0 && !entered {
            faults.push(format!("{file} is called by none of the files before it"));
        }
        let mut pending = vec![(file, Vec::new())];
        let mut seen = BTreeSet::new();
        while let Some((at, way)) = pending.pop() {
            for next in calls.get(at).into_iter().flatten().filter(|next| seen.insert(*next)) {
                let way: Vec<&String> = way.iter().copied().chain([next]).collect();
                if files[..place].contains(next) {
                    faults.push(format!("{file} calls back: {way:?}"));
                } else if !files.contains(next) {
                    pending.push((next, way));
                }
            }
        }
    }
    faults
}

/// A type or function: the file that defines it, and its name.
type Name = (String, String);

/// What a crate says of its types.
struct Types<'a> {
    house: &'a Crate,
    fields: BTreeMap<(Name, String), Name>,
    /// Of a method the file that it stands in, and what it returns.
    methods: BTreeMap<(Name, String), (String, Option<Name>)>,
}

/// Which file calls which.
fn calls(house: &Crate) -> Graph {
    let mut types = Types { house, fields: BTreeMap::new(), methods: BTreeMap::new() };
    types.read();
    let mut graph = Graph::new();
    for (module, source) in house {
        let mut body = Body {
            types: &types,
            module,
            own: None,
            known: BTreeMap::new(),
            called: BTreeSet::new(),
        };
        source.items.iter().for_each(|item| body.visit_item(item));
        body.called.remove(&source.file);
        graph.insert(source.file.clone(), body.called);
    }
    graph
}

impl Types<'_> {
    fn read(&mut self) {
        for (module, source) in self.house {
            for item in &source.items {
                match item {
                    Item::Struct(found) => {
                        let own = (source.file.clone(), found.ident.to_string());
                        for (index, field) in found.fields.iter().enumerate() {
                            let name =
                                field.ident.as_ref().map_or(index.to_string(), ToString::to_string);
                            if let Some(kind) = self.named(module, &field.ty, Some(&own)) {
                                self.fields.insert((own.clone(), name), kind);
                            }
                        }
                    }
                    Item::Impl(found) => {
                        let Some(own) = self.named(module, &found.self_ty, None) else { continue };
                        for item in &found.items {
                            let ImplItem::Fn(method) = item else { continue };
                            let result = match &method.sig.output {
                                ReturnType::Type(_, kind) => self.named(module, kind, Some(&own)),
                                ReturnType::Default => None,
                            };
                            let key = (own.clone(), method.sig.ident.to_string());
                            self.methods.insert(key, (source.file.clone(), result));
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// The type that is meant, out of references, options, boxes and collections.
    fn named(&self, module: &Module, kind: &Type, own: Option<&Name>) -> Option<Name> {
        match kind {
            Type::Reference(found) => self.named(module, &found.elem, own),
            Type::Slice(found) => self.named(module, &found.elem, own),
            Type::Array(found) => self.named(module, &found.elem, own),
            Type::Path(found) => {
                let path = words(&found.path);
                if path == ["Self"] {
                    return own.cloned();
                }
                self.resolve(module, &path).or_else(|| {
                    let PathArguments::AngleBracketed(inner) =
                        &found.path.segments.last()?.arguments
                    else {
                        return None;
                    };
                    inner.args.iter().find_map(|argument| match argument {
                        GenericArgument::Type(kind) => self.named(module, kind, own),
                        _ => None,
                    })
                })
            }
            _ => None,
        }
    }

    /// What `path` means in `module`.
    fn resolve(&self, module: &Module, path: &[String]) -> Option<Name> {
        let source = self.house.get(module)?;
        let (first, last) = (path.first()?, path.last()?);
        if path.len() == 1 && source.defined.contains(first) {
            return Some((source.file.clone(), first.clone()));
        }
        let used = source.used.iter().find(|(name, _)| name == first);
        let whole: Vec<String> = match used {
            Some((_, before)) => before.iter().chain(&path[1..]).cloned().collect(),
            None if path.len() > 1 => path.to_vec(),
            None => return None,
        };
        Some((home_of(self.house, module, &whole, 0)?, whole.last().unwrap_or(last).clone()))
    }
}

fn words(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|part| part.ident.to_string()).collect()
}

/// A walk through the functions of a file.
struct Body<'a> {
    types: &'a Types<'a>,
    module: &'a Module,
    own: Option<Name>,
    /// What variables are.
    known: BTreeMap<String, Name>,
    called: BTreeSet<String>,
}

impl Body<'_> {
    fn kind(&self, expression: &Expr) -> Option<Name> {
        match expression {
            Expr::Path(found) => match words(&found.path).as_slice() {
                [one] if one == "self" => self.own.clone(),
                [one] => self.known.get(one).cloned(),
                _ => None,
            },
            Expr::Field(found) => {
                let name = match &found.member {
                    syn::Member::Named(name) => name.to_string(),
                    syn::Member::Unnamed(index) => index.index.to_string(),
                };
                self.types.fields.get(&(self.kind(&found.base)?, name)).cloned()
            }
            Expr::MethodCall(found) => {
                let on = self.kind(&found.receiver)?;
                match self.types.methods.get(&(on.clone(), found.method.to_string())) {
                    Some((_, result)) => result.clone(),
                    // A verb of the option, the reference or the collection that it stands in.
                    None => Some(on),
                }
            }
            Expr::Call(found) => match &*found.func {
                Expr::Path(path) if found.args.len() == 1 && words(&path.path) == ["Some"] => {
                    self.kind(&found.args[0])
                }
                Expr::Path(path) => self.function(&words(&path.path))?.1,
                _ => None,
            },
            Expr::Struct(found) => self.meant(&words(&found.path)),
            Expr::Reference(found) => self.kind(&found.expr),
            Expr::Paren(found) => self.kind(&found.expr),
            Expr::Try(found) => self.kind(&found.expr),
            Expr::Unary(found) => self.kind(&found.expr),
            Expr::Index(found) => {
                let on = self.kind(&found.expr)?;
                let index = self.types.methods.get(&(on.clone(), "index".to_owned()));
                index.map_or(Some(on), |(_, result)| result.clone())
            }
            _ => None,
        }
    }

    fn meant(&self, path: &[String]) -> Option<Name> {
        if path == ["Self"] { self.own.clone() } else { self.types.resolve(self.module, path) }
    }

    /// The file of the function that `path` calls, and what it returns as far as that is known.
    fn function(&self, path: &[String]) -> Option<(String, Option<Name>)> {
        let (name, before) = path.split_last()?;
        if let Some(on) = self.meant(before)
            && let Some(found) = self.types.methods.get(&(on, name.clone()))
        {
            return Some(found.clone());
        }
        let (file, _) = self.types.resolve(self.module, path)?;
        name.starts_with(char::is_lowercase).then_some((file, None))
    }

    fn bind(&mut self, pattern: &Pat, kind: Option<Name>) {
        match pattern {
            Pat::Ident(found) => match kind {
                Some(kind) => drop(self.known.insert(found.ident.to_string(), kind)),
                None => drop(self.known.remove(&found.ident.to_string())),
            },
            Pat::TupleStruct(found) if found.elems.len() == 1 => self.bind(&found.elems[0], kind),
            Pat::Reference(found) => self.bind(&found.pat, kind),
            Pat::Type(found) => {
                let kind = self.types.named(self.module, &found.ty, self.own.as_ref());
                self.bind(&found.pat, kind);
            }
            _ => {}
        }
    }

    fn enter(&mut self, signature: &syn::Signature, block: &syn::Block) {
        self.known.clear();
        for input in &signature.inputs {
            if let FnArg::Typed(found) = input {
                let kind = self.types.named(self.module, &found.ty, self.own.as_ref());
                self.bind(&found.pat, kind);
            }
        }
        self.visit_block(block);
    }
}

impl<'a> Visit<'a> for Body<'_> {
    fn visit_item_impl(&mut self, found: &'a syn::ItemImpl) {
        self.own = self.types.named(self.module, &found.self_ty, None);
        visit::visit_item_impl(self, found);
        self.own = None;
    }

    fn visit_impl_item_fn(&mut self, found: &'a syn::ImplItemFn) {
        self.enter(&found.sig, &found.block);
    }

    fn visit_item_fn(&mut self, found: &'a syn::ItemFn) {
        self.enter(&found.sig, &found.block);
    }

    fn visit_local(&mut self, found: &'a syn::Local) {
        visit::visit_local(self, found);
        let kind = found.init.as_ref().and_then(|init| self.kind(&init.expr));
        self.bind(&found.pat, kind);
    }

    fn visit_expr_let(&mut self, found: &'a syn::ExprLet) {
        let kind = self.kind(&found.expr);
        self.bind(&found.pat, kind);
        visit::visit_expr_let(self, found);
    }

    fn visit_expr_for_loop(&mut self, found: &'a syn::ExprForLoop) {
        let kind = self.kind(&found.expr);
        self.bind(&found.pat, kind);
        visit::visit_expr_for_loop(self, found);
    }

    fn visit_expr_match(&mut self, found: &'a syn::ExprMatch) {
        for arm in &found.arms {
            let kind = self.kind(&found.expr);
            self.bind(&arm.pat, kind);
        }
        visit::visit_expr_match(self, found);
    }

    fn visit_expr_method_call(&mut self, found: &'a syn::ExprMethodCall) {
        let on = self.kind(&found.receiver);
        let method = on.clone().map(|on| (on, found.method.to_string()));
        let method = method.and_then(|method| self.types.methods.get(&method));
        let known = method.is_some();
        self.called.extend(method.map(|(file, _)| file.clone()));
        for argument in &found.args {
            // What a verb of a collection or option hands to a closure is what stands in it.
            if let Expr::Closure(closure) = argument
                && !known
                && let Some(first) = closure.inputs.first()
            {
                self.bind(first, on.clone());
            }
        }
        visit::visit_expr_method_call(self, found);
    }

    fn visit_expr_call(&mut self, found: &'a syn::ExprCall) {
        if let Expr::Path(path) = &*found.func
            && let Some((file, _)) = self.function(&words(&path.path))
        {
            self.called.insert(file);
        }
        visit::visit_expr_call(self, found);
    }
}
