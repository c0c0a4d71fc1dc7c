//! Goal: the dependency graph stays the one that ARCHITECTURE.md draws.
//! Method: read `cargo metadata` and hold every normal and build edge to [`RULES`].
//!
//! core -> {tcp, rudp, control, trace};  {tcp, rudp} -> {sim, net};  host -> sim;  stats;
//! {control, sim, trace, stats} -> lab;  {lab, net} -> papers -> uppaal;  {lab, net, packetdrill} -> worlds;
//! {core, trace} -> live;  core -> host -> packetdrill -> door;
//! {lab, papers, uppaal, worlds, net, live, packetdrill, trace} -> acklab;  {core, lab} -> own-ack-policy
//!
//! Edges of tests (dev-dependencies) are free: they decide nothing that ships.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

/// What one crate may depend on, and what would be lost if it did not keep to it.
struct Rule {
    package: &'static str,
    inside: Vec<String>,
    /// `None`: any crate of the registry that `deny.toml` admits.
    outside: Option<Vec<String>>,
    why: &'static str,
}

/// A crate, the crates of the workspace (`core` for acklab-core) and of the registry that it may depend on,
/// and why; a crate that is not here has no place in the graph yet.
const RULES: &str = "\
acklab-core |  | libm | the core is sans-IO and deterministic: it stands on nothing but libm
acklab-tcp | core |  | one TCP for every world, which no capture's judge can lean on
acklab-host | core tcp |  | sockets over segments, as a test of a Linux stack sees them, in any world; set up as any TCP is
acklab-packetdrill | host | regex-lite | scripts see the host and nothing else; patterns of their grep are a library's
acklab-door | host packetdrill | nix | the door shows what scripts see, in C's words
acklab-rudp | core |  | one reliable UDP for every world; ciphers and sockets are the worlds' own
acklab-control | core | thiserror | plants and controllers see the core alone, so that any world can carry them
acklab-stats |  | any | statistics know no packets
acklab-sim | core host rudp tcp | any | virtual time sees the transports, and never the real network
acklab-net | core host rudp tcp | any | the real network sees the transports, and never virtual time
acklab-trace | core | any | captures are judged without the simulator that predicts them
acklab-live | core trace | any | the running kernel is watched by the judge of captures, and by no simulator
acklab-lab | control core rudp sim stats tcp trace | any | the laboratory's engine knows no paper, no real network and no command line
acklab-papers | control core lab net rudp sim stats tcp trace | any | experiments stand on the engine as a user's own do
acklab-uppaal | core lab papers | thiserror | an export reads settings and runs nothing
acklab-worlds | core host lab net packetdrill sim stats tcp trace | any | other worlds are judged by the laboratory's files, and it knows none of them
own-ack-policy | core lab |  | a user's program sees the core's trait and the laboratory
acklab | core lab live net packetdrill papers rudp tcp trace uppaal worlds | any | the command is a thin door over the libraries; virtual time is behind the laboratory";

fn rules() -> Vec<Rule> {
    let words = |text: &str, before: &str| -> Vec<String> {
        text.split_whitespace().map(|word| format!("{before}{word}")).collect()
    };
    let rule = |line: &'static str| {
        let [package, inside, outside, why] =
            line.split('|').map(str::trim).collect::<Vec<_>>()[..]
        else {
            panic!("{line}")
        };
        let outside = (outside != "any").then(|| words(outside, ""));
        Rule { package, inside: words(inside, "acklab-"), outside, why }
    };
    RULES.lines().map(rule).collect()
}

fn workspace() -> Metadata {
    MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .no_deps()
        .other_options(vec!["--offline".to_owned()])
        .exec()
        .expect("cargo metadata reads the workspace")
}

/// Every sentence says which edge broke which rule.
fn broken_edges(package: &Package, members: &BTreeSet<&str>, rule: &Rule) -> Vec<String> {
    let shipped = package.dependencies.iter().filter(|d| d.kind != DependencyKind::Development);
    shipped
        .filter(|dependency| {
            let name = dependency.name.as_str();
            let ours = members.contains(name);
            let allowed = if ours { Some(&rule.inside) } else { rule.outside.as_ref() };
            allowed.is_some_and(|list| !list.iter().any(|one| one == name))
        })
        .map(|dependency| {
            format!(
                "{} depends on {}; but {} (allowed: {:?}, outside the workspace: {})",
                rule.package,
                dependency.name,
                rule.why,
                rule.inside,
                rule.outside.as_ref().map_or("any".to_owned(), |list| format!("{list:?}")),
            )
        })
        .collect()
}

#[test]
fn every_dependency_edge_is_one_that_the_design_allows() {
    let metadata = workspace();
    let packages = metadata.workspace_packages();
    let members: BTreeSet<&str> = packages.iter().map(|p| p.name.as_str()).collect();
    let rules: BTreeMap<&str, Rule> =
        rules().into_iter().map(|rule| (rule.package, rule)).collect();
    let mut broken = Vec::new();
    for package in &packages {
        match rules.get(package.name.as_str()) {
            Some(rule) => broken.extend(broken_edges(package, &members, rule)),
            None => broken.push(format!(
                "{} has no rule: decide what it may depend on, here and in ARCHITECTURE.md",
                package.name
            )),
        }
    }
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
    assert!(members.len() >= rules.len(), "a rule's crate is gone: {members:?}");
}

#[test]
fn a_forbidden_edge_is_named_with_its_rule() {
    let metadata = workspace();
    let packages = metadata.workspace_packages();
    let members: BTreeSet<&str> = packages.iter().map(|p| p.name.as_str()).collect();
    let lab = packages.iter().find(|p| p.name.as_str() == "acklab-lab").expect("lab is a member");
    let strict = Rule { package: "acklab-lab", inside: vec![], outside: None, why: "(the rule)" };
    let broken = broken_edges(lab, &members, &strict);
    assert!(
        broken
            .iter()
            .any(|line| line.contains("acklab-lab depends on acklab-core; but (the rule)")),
        "{broken:?}"
    );
}

#[test]
fn every_crate_lives_in_the_folder_of_its_name_under_the_common_lints() {
    for package in workspace().workspace_packages() {
        let folder = package.manifest_path.parent().and_then(|folder| folder.file_name());
        assert_eq!(folder, Some(package.name.as_str()));
        let manifest =
            std::fs::read_to_string(&package.manifest_path).expect("a readable manifest");
        assert!(
            manifest.contains("[lints]\nworkspace = true"),
            "{} does not take the workspace's lints",
            package.name
        );
    }
}

/// The files that may hold `unsafe` code, system calls that no crate of ours wraps and functions that C calls: the lint is `deny`, which a file
/// can lift, and this test says which.
const UNSAFE: [&str; 5] = [
    "acklab-door/src/abi.rs",
    "acklab-live/src/kernel.rs",
    "acklab-net/src/kernel.rs",
    "acklab-worlds/src/script/calls.rs",
    "acklab-worlds/src/tcp_info.rs",
];

#[test]
fn unsafe_code_is_allowed_in_these_files_alone() {
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders = vec![crates.clone()];
    let mut lifted = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a readable folder") {
            let path = entry.expect("a readable entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("a readable file");
                let lifts = |line: &str| {
                    line.starts_with('#') && line.contains("unsafe_code") && !line.contains("deny")
                };
                if text.lines().any(|line| lifts(line.trim_start())) {
                    lifted.push(path.strip_prefix(&crates).expect("inside").to_path_buf());
                }
            }
        }
    }
    lifted.sort();
    assert_eq!(lifted, UNSAFE.map(std::path::PathBuf::from));
}
