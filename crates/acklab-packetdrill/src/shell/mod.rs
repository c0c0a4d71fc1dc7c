//! Shell commands of scripts, as settings of the host: nothing is executed.
//!
//! `syntax`: the shell's tokens; `machine`: what runs, variables; `commands`: what one command sets; `route`: iproute2.

mod commands;
mod machine;
mod route;
mod syntax;

use std::path::Path;

use crate::world::Change;
use acklab_host::settings::{Route, Sysctls, Us};

use machine::Machine;

/// What commands may change.
#[derive(Debug)]
pub(crate) struct Surroundings<'a> {
    /// System controls.
    pub(crate) sysctls: &'a mut Sysctls,
    /// The route.
    pub(crate) route: &'a mut Route,
    /// The folder of the script.
    pub(crate) folder: &'a Path,
    /// What was changed, for a world in which it has to be done.
    pub(crate) changes: Vec<Change>,
}

/// A command has an effect on time: it sleeps.
pub(crate) type Slept = Us;

/// Understands a command, which may be several lines; an error says which construct is not.
pub(crate) fn run(command: &str, around: &mut Surroundings<'_>) -> Result<Slept, String> {
    let mut machine = Machine::new(around);
    if machine.text(command)? {
        Ok(machine.slept)
    } else {
        Err(format!("the command {:?}, which fails", command.trim()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acklab_host::settings::MS;

    fn settings(command: &str) -> Result<(Sysctls, Route), String> {
        let (mut sysctls, mut route) = (Sysctls::default(), Route::default());
        let folder = Path::new("/nonexistent");
        let mut around =
            Surroundings { sysctls: &mut sysctls, route: &mut route, folder, changes: Vec::new() };
        run(command, &mut around)?;
        Ok((sysctls, route))
    }

    #[test]
    fn system_controls_are_set_in_every_spelling() {
        for command in [
            "sysctl -q net.ipv4.tcp_sack=0",
            "sysctl -q -w net.ipv4.tcp_sack=0 net.ipv4.tcp_rmem=\"4096 1000 2000\"",
            "sysctl -qw \\\n net.ipv4.tcp_sack=0",
            "../common/set_sysctls.py /proc/sys/net/ipv4/tcp_sack=0",
            "echo 0 > /proc/sys/net/ipv4/tcp_sack",
        ] {
            assert_eq!(settings(command).unwrap().0.of("tcp_sack"), 0, "{command}");
        }
        assert_eq!(settings("sysctl net.ipv4.tcp_rmem='1 2 3' ").unwrap().0.nth("tcp_rmem", 2), 3);
    }

    #[test]
    fn routes_have_metrics_and_what_is_not_understood_is_named() {
        let route =
            settings("ip route replace 192.0.2.0/24 dev tun0 initcwnd 5 rto_min 5ms").unwrap().1;
        assert_eq!((route.initcwnd, route.rto_min), (5, 5 * MS));
        assert!(settings("iptables -A INPUT").unwrap_err().contains("iptables"));
        assert!(settings("sysctl net.ipv4.tcp_no_such=1").unwrap_err().contains("tcp_no_such"));
    }

    #[test]
    fn what_a_shell_computes_is_computed() {
        let text = "#!/bin/bash\n# defaults\nMEG=$((1024 * 1024))\n\
            sysctl -q net.ipv4.tcp_rmem=\"4096 540000 $((15*MEG))\" \\\n  net.ipv4.tcp_wmem='4096 9 10'\n\
            if [ -f /proc/sys/net/ipv4/tcp_none ]; then\n sysctl -q net.ipv4.tcp_sack=0\nelse\n\
            for n in dsack sack; do echo $((1 + 1)) > /proc/sys/net/ipv4/tcp_$n; done\nfi\n\
            sysctl -q net.ipv4.tcp_fastopen=0x70403 2>/dev/null || false\nexit 0\nno_such_command\n";
        let sysctls = settings(text).unwrap().0;
        assert_eq!(sysctls.nth("tcp_rmem", 2), 15 << 20);
        assert_eq!((sysctls.nth("tcp_wmem", 1), sysctls.of("tcp_fastopen")), (9, 0x70403));
        assert_eq!((sysctls.of("tcp_sack"), sysctls.of("tcp_dsack")), (2, 2));
        let sysctls = settings("bash -c \"sysctl -q net.ipv4.tcp_sack=0\" && true").unwrap().0;
        assert_eq!(sysctls.of("tcp_sack"), 0);
        let nested = format!("{}true", "( { ".repeat(5000));
        let doubled = format!("X=xy; {}", "X=$X$X; ".repeat(64));
        for unknown in [
            nested.as_str(),
            &doubled,
            "nstat | grep -q X",
            "a=$(curl x)",
            "while true; do true; done",
            "false",
        ] {
            assert!(settings(unknown).is_err(), "{unknown}");
        }
    }

    #[test]
    fn a_file_of_defaults_is_read_and_its_errors_change_nothing() {
        let folder = std::env::temp_dir().join(format!("acklab-defaults-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let text = "no_such_command\nsysctl -q net.ipv4.tcp_rmem=\"1 2 $((3*4))\"\n";
        std::fs::write(folder.join("defaults.sh"), text).unwrap();
        let (mut sysctls, mut route) = (Sysctls::default(), Route::default());
        let mut around = Surroundings {
            sysctls: &mut sysctls,
            route: &mut route,
            folder: &folder,
            changes: Vec::new(),
        };
        let done = run("./defaults.sh", &mut around);
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(done, Ok(0));
        assert_eq!(sysctls.nth("tcp_rmem", 2), 12);
    }
}
