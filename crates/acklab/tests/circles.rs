//! Goal: no file needs another that needs it, and no folder either, so that every file can be read
//! after those it stands on.
//! Method: the imports of every source file (`use` trees, and paths that begin with
//! `crate`, `super`, `self` or a module's name), resolved to the files that define the names; tests are
//! left out. A re-export is followed to the definition and is no need of the file that makes it. Folders:
//! at every level, a folder beside its neighbours is one room.

#[allow(dead_code, reason = "each test that reads sources uses its part")]
mod sources;

use std::collections::{BTreeMap, BTreeSet};

use sources::{Crate, Graph, crates, needs, parse, read_crate};

#[test]
fn no_files_and_no_folders_need_each_other() {
    let mut circles = Vec::new();
    let mut files = 0;
    for root in crates() {
        let source = read_crate(&root);
        let graph = needs(&source);
        files += source.len();
        circles.extend(circles_of(&graph).into_iter().map(|circle| ("files", circle)));
        for level in levels(&graph) {
            let rooms = rooms(&graph, &level);
            circles.extend(circles_of(&rooms).into_iter().map(|circle| ("folders", circle)));
        }
    }
    assert!(files > 300, "only {files} files were found");
    let told: Vec<_> =
        circles.iter().map(|(what, circle)| format!("{what}: {}", circle.join(" <-> "))).collect();
    assert!(told.is_empty(), "need each other:\n{}", told.join("\n"));
}

#[test]
fn a_circle_is_found_through_a_re_export_and_not_made_by_one() {
    let source = |file: &str, text: &str| parse(file, text);
    let mut house = Crate::new();
    house.insert(vec![], source("lib.rs", "pub mod a;\npub mod b;\npub use a::A;\n"));
    house.insert(vec!["a".into()], source("a.rs", "use crate::b::make;\npub struct A;\n"));
    house.insert(vec!["b".into()], source("b.rs", "pub fn make() -> u8 { 1 }\n"));
    assert!(circles_of(&needs(&house)).is_empty());
    house.insert(vec!["b".into()], source("b.rs", "use crate::A;\npub fn make() -> A { A }\n"));
    assert_eq!(circles_of(&needs(&house)), [["a.rs", "b.rs"]]);
}

/// Every folder that holds files of the graph.
fn levels(graph: &Graph) -> BTreeSet<String> {
    let folders = graph.keys().flat_map(|file| {
        let parts: Vec<&str> = file.split('/').collect();
        (2..parts.len()).map(|n| parts[..n].join("/")).collect::<Vec<_>>()
    });
    folders.collect()
}

/// The graph of what stands in a folder: its files, and each folder in it as one room. A folder and the
/// file of its name are one room; the folder's own door is left out, for it shows what is behind it.
fn rooms(graph: &Graph, level: &str) -> Graph {
    let room = |file: &str| -> Option<String> {
        let inside = file.strip_prefix(level)?.strip_prefix('/')?;
        let first = inside.split('/').next()?.trim_end_matches(".rs");
        (!matches!(first, "mod" | "lib" | "main")).then(|| format!("{level}/{first}"))
    };
    let mut rooms = Graph::new();
    for (file, needed) in graph {
        let Some(from) = room(file) else { continue };
        let to = needed.iter().filter_map(|file| room(file)).filter(|to| *to != from);
        rooms.entry(from.clone()).or_default().extend(to.collect::<Vec<_>>());
    }
    rooms
}

/// Groups of more than one that can all reach each other.
fn circles_of(graph: &Graph) -> Vec<Vec<String>> {
    let reach = |from: &String| {
        let mut seen = BTreeSet::new();
        let mut pending = vec![from];
        while let Some(at) = pending.pop() {
            for next in graph.get(at).into_iter().flatten() {
                if seen.insert(next.clone()) {
                    pending.push(next);
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<String>> =
        graph.keys().map(|file| (file, reach(file))).collect();
    let mut circles = BTreeSet::new();
    for (file, seen) in &reached {
        let circle: Vec<String> = seen
            .iter()
            .filter(|other| reached.get(other).is_some_and(|back| back.contains(*file)))
            .cloned()
            .collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}
