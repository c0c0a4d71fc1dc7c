//! Recordings of the kernel that are no test's, played to the simulated host: where the two part, and by how much.
//!
//!     cargo run -p acklab-worlds --example recordings -- random FOLDER 1 40      (root)
//!     cargo run -p acklab-packetdrill --example replay -- FOLDER [-v]
//!
//! One line a file: segments that are the same before they part, segments and bytes that left the kernel and the host.
//! `-v` prints what left both around the place.

#[path = "../tests/recorded/mod.rs"]
mod recorded;

use std::env;
use std::fs;

use recorded::{Passed, same, sum};

fn main() {
    let mut arguments = env::args().skip(1);
    let folder = arguments.next().expect("a folder");
    let verbose = arguments.next().is_some_and(|word| word == "-v");
    let entries = fs::read_dir(&folder).expect("a folder that can be read");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    println!(
        "{:32} {:>6} {:>9} {:>6} {:>9} {:>9}",
        "", "same", "segments", "host", "bytes", "host"
    );
    for path in paths {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let recording = match recorded::play(&path) {
            Ok(recording) => recording,
            Err(reason) => {
                println!("{name:32} {reason}");
                continue;
            }
        };
        let (kernel, host) = (&recording.kernel, &recording.host);
        let same = same(&recording);
        let (lines, bytes) = ((kernel.len(), host.len()), (sum(kernel), sum(host)));
        println!("{name:32} {same:6} {:9} {:6} {:9} {:9}", lines.0, lines.1, bytes.0, bytes.1);
        if verbose && same < kernel.len().max(host.len()) {
            let shown = |one: Option<&Passed>| {
                one.map_or_else(String::new, |one| {
                    format!("{:.6} w{} {}", one.at, one.window, one.what)
                })
            };
            for at in same.saturating_sub(4)..same + 8 {
                println!("  {:90} | {}", shown(kernel.get(at)), shown(host.get(at)));
            }
        }
    }
}
