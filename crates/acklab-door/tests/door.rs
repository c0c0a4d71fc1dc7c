//! Goal: a program in C finds the door as packetdrill does, and sees a stack with sockets, packets and time.
//! Method: `drive.c`, compiled by this machine's C compiler against the header, loads the library and drives it: a
//! handshake, calls that block, time-outs, options, both ends of a connection, ICMP, over IPv4 and IPv6; once with
//! the library preloaded.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The library that cargo built beside this test, and the program; `None`: no C compiler.
fn program() -> Option<(PathBuf, PathBuf)> {
    let here = std::env::current_exe().expect("a path");
    let folder = here.parent().expect("a folder").to_path_buf();
    let library = [folder.join("libacklab_door.so"), folder.join("../libacklab_door.so")]
        .into_iter()
        .find(|path| path.exists())
        .expect("the library is built with its tests");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("acklab-door-drive");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let compiled = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-O1", "-pthread", "-I"])
        .arg(root.join("include"))
        .arg(root.join("tests/drive.c"))
        .arg("-o")
        .arg(&program)
        .arg("-ldl")
        .output();
    let compiled = match compiled {
        Ok(compiled) => compiled,
        Err(error) => {
            eprintln!("SKIPPED: the door driven from C: cc: {error}");
            return None;
        }
    };
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    Some((library, program))
}

#[test]
fn a_program_in_c_sees_a_stack_with_sockets_packets_and_time() {
    let Some((library, program)) = program() else { return };
    for (version, preloads) in [("4", false), ("6", false), ("4", true), ("6", true)] {
        let mut command = Command::new(&program);
        command.arg(&library).arg(version);
        if preloads {
            command.arg("preloaded").env("LD_PRELOAD", &library);
        }
        let done = command.output().expect("the program runs");
        assert!(
            done.status.success(),
            "IPv{version}, preloaded: {preloads}: {}: {}",
            done.status,
            String::from_utf8_lossy(&done.stderr)
        );
        assert_eq!(String::from_utf8_lossy(&done.stdout), "all was seen\n");
    }
}
