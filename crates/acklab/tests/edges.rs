//! Goal: the dependency graph stays the one that ARCHITECTURE.md draws.
//! Method: read `cargo metadata` and hold every normal and build edge to [`RULES`].
//!
//! core -> {tcp, rudp, control, trace};  {tcp, rudp} -> sim;  rudp -> net;  stats;
//! {control, sim, trace, stats} -> lab;  {lab, net} -> papers -> uppaal;  {lab, net} -> worlds;
//! {lab, papers, uppaal, worlds, net, trace} -> acklab
//!
//! Edges of tests (dev-dependencies) are free: they decide nothing that ships.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

/// What one crate may depend on, and what would be lost if it did not keep to it.
struct Rule {
    package: &'static str,
    inside: &'static [&'static str],
    /// `None`: any crate of the registry that `deny.toml` admits.
    outside: Option<&'static [&'static str]>,
    why: &'static str,
}

/// One line per crate; a crate that is not here has no place in the graph yet.
const RULES: &[Rule] = &[
    Rule {
        package: "acklab-core",
        inside: &[],
        outside: Some(&["libm"]),
        why: "the core is sans-IO and deterministic: it stands on nothing but libm",
    },
    Rule {
        package: "acklab-tcp",
        inside: &["acklab-core"],
        outside: Some(&[]),
        why: "one TCP for every world, which no capture's judge can lean on",
    },
    Rule {
        package: "acklab-rudp",
        inside: &["acklab-core"],
        outside: Some(&[]),
        why: "one reliable UDP for every world; ciphers and sockets are the worlds' own",
    },
    Rule {
        package: "acklab-control",
        inside: &["acklab-core"],
        outside: Some(&["thiserror"]),
        why: "plants and controllers see the core alone, so that any world can carry them",
    },
    Rule { package: "acklab-stats", inside: &[], outside: None, why: "statistics know no packets" },
    Rule {
        package: "acklab-sim",
        inside: &["acklab-core", "acklab-rudp", "acklab-tcp"],
        outside: None,
        why: "virtual time sees the transports, and never the real network",
    },
    Rule {
        package: "acklab-net",
        inside: &["acklab-core", "acklab-rudp"],
        outside: None,
        why: "the real network sees the transports, and never virtual time",
    },
    Rule {
        package: "acklab-trace",
        inside: &["acklab-core"],
        outside: None,
        why: "captures are judged without the simulator that predicts them",
    },
    Rule {
        package: "acklab-lab",
        inside: &[
            "acklab-control",
            "acklab-core",
            "acklab-rudp",
            "acklab-sim",
            "acklab-stats",
            "acklab-tcp",
            "acklab-trace",
        ],
        outside: None,
        why: "the laboratory's engine knows no paper, no real network and no command line",
    },
    Rule {
        package: "acklab-papers",
        inside: &[
            "acklab-control",
            "acklab-core",
            "acklab-lab",
            "acklab-net",
            "acklab-rudp",
            "acklab-sim",
            "acklab-stats",
            "acklab-tcp",
            "acklab-trace",
        ],
        outside: None,
        why: "experiments stand on the engine as a user's own do",
    },
    Rule {
        package: "acklab-uppaal",
        inside: &["acklab-core", "acklab-lab", "acklab-papers"],
        outside: Some(&["thiserror"]),
        why: "an export reads settings and runs nothing",
    },
    Rule {
        package: "acklab-worlds",
        inside: &[
            "acklab-core",
            "acklab-lab",
            "acklab-net",
            "acklab-sim",
            "acklab-stats",
            "acklab-tcp",
            "acklab-trace",
        ],
        outside: None,
        why: "other worlds are judged by the laboratory's files, and it knows none of them",
    },
    Rule {
        package: "acklab",
        inside: &[
            "acklab-core",
            "acklab-lab",
            "acklab-net",
            "acklab-papers",
            "acklab-rudp",
            "acklab-trace",
            "acklab-uppaal",
            "acklab-worlds",
        ],
        outside: None,
        why: "the command is a thin door over the libraries; virtual time is behind the laboratory",
    },
];

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
            let allowed = if members.contains(name) { Some(rule.inside) } else { rule.outside };
            allowed.is_some_and(|list| !list.contains(&name))
        })
        .map(|dependency| {
            format!(
                "{} depends on {}; but {} (allowed: {:?}, outside the workspace: {})",
                rule.package,
                dependency.name,
                rule.why,
                rule.inside,
                rule.outside.map_or("any".to_owned(), |list| format!("{list:?}")),
            )
        })
        .collect()
}

#[test]
fn every_dependency_edge_is_one_that_the_design_allows() {
    let metadata = workspace();
    let packages = metadata.workspace_packages();
    let members: BTreeSet<&str> = packages.iter().map(|p| p.name.as_str()).collect();
    let rules: BTreeMap<&str, &Rule> = RULES.iter().map(|rule| (rule.package, rule)).collect();
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
    assert!(members.len() >= RULES.len(), "a rule's crate is gone: {members:?}");
}

#[test]
fn a_forbidden_edge_is_named_with_its_rule() {
    let metadata = workspace();
    let packages = metadata.workspace_packages();
    let members: BTreeSet<&str> = packages.iter().map(|p| p.name.as_str()).collect();
    let lab = packages.iter().find(|p| p.name.as_str() == "acklab-lab").expect("lab is a member");
    let strict = Rule { package: "acklab-lab", inside: &[], outside: None, why: "(the rule)" };
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

/// The files that may hold `unsafe` code, system calls that no crate of ours wraps: the lint is `deny`, which a file
/// can lift, and this test says which.
const UNSAFE: [&str; 2] = ["acklab-net/src/emulate/kernel.rs", "acklab-worlds/src/tcp_info.rs"];

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
