//! What a fix will do, step by step, before it does any of it; and the doing.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;

use nix::libc;

use super::cgroup::OnCgroup;
use super::open::OpenSocket;
use super::record::Record;
use super::remedy::{FixError, Remedy};
use super::{cgroup, open, record, route};
use crate::chosen::Chosen;
use crate::processes;
use crate::sockets::TcpSocket;
use crate::watch::enter_network_of;

/// The steps of a fix, none of which has been taken.
#[derive(Debug)]
pub struct Plan {
    chosen: Chosen,
    remedy: Remedy,
    sockets: Vec<OpenSocket>,
    on_cgroup: Option<OnCgroup>,
    /// Arguments of `ip`.
    routes: Vec<Vec<String>>,
    not_covered: Vec<String>,
}

/// Finds out what the remedy takes for the connections that are chosen. The thread goes into the network namespace of a
/// chosen process and stays there.
pub fn plan(chosen: &Chosen, remedy: Remedy) -> Result<Plan, FixError> {
    if let Some(pid) = chosen.pid {
        let doing = format!("enter the network of process {pid}");
        enter_network_of(pid).map_err(FixError::refused(doing, ENTERING))?;
    }
    let sockets = open::chosen_sockets(chosen)?;
    let mut plan = Plan {
        chosen: chosen.clone(),
        remedy,
        sockets: Vec::new(),
        on_cgroup: None,
        routes: Vec::new(),
        not_covered: Vec::new(),
    };
    if remedy == Remedy::QuickAck {
        plan.find_routes(&sockets)?;
    } else {
        plan.find_options(&sockets)?;
    }
    if plan.steps().is_empty() {
        let already = if sockets.is_empty() {
            "no such connection is open"
        } else {
            "all of these sockets have it already"
        };
        let why: Vec<&str> =
            [already].into_iter().chain(plan.not_covered.iter().map(String::as_str)).collect();
        return Err(FixError::Nothing(why.join("; ")));
    }
    Ok(plan)
}

impl Plan {
    fn find_options(&mut self, sockets: &[(u32, TcpSocket)]) -> Result<(), FixError> {
        let Some(option) = self.remedy.option() else { return Ok(()) };
        match open::is_taken(option) {
            Ok(()) => self.sockets = open::look(sockets, option)?,
            // BPF would be refused when it runs, without a word.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                return Err(FixError::Nothing(format!(
                    "this kernel does not take {}; the bound is at least two of its ticks (8 ms at 250 Hz, \
                     written as 5 ms or more) and at most 200 ms",
                    self.remedy.words()
                )));
            }
            Err(error) => self.not_covered.push(format!(
                "open connections: this kernel does not know {} of a socket ({error}; TCP_DELACK_MAX_US is \
                 Linux 6.15's)",
                self.remedy.words()
            )),
        }
        let folder = match self.folder()? {
            Ok(folder) => folder,
            Err(why) => {
                self.not_covered.push(format!("connections that it will open: {why}"));
                return Ok(());
            }
        };
        let program = OnCgroup::new(folder, self.remedy, option, self.chosen.port);
        match program.load() {
            Ok(_) => self.on_cgroup = Some(program),
            Err(error) => {
                self.not_covered.push(format!("connections that will be opened: {error}"));
            }
        }
        Ok(())
    }

    /// The cgroup whose new connections are meant; `Err` in it says why there is none.
    fn folder(&self) -> Result<Result<PathBuf, String>, FixError> {
        let Chosen { pid, port, cgroup } = &self.chosen;
        if let Some(folder) = cgroup {
            return Ok(Ok(folder.clone()));
        }
        let Some(root) = cgroup::root() else {
            return Ok(Err("no cgroup2 file system is mounted".to_owned()));
        };
        let Some(pid) = *pid else { return Ok(Ok(root)) };
        let doing = || format!("look for the cgroup of process {pid}");
        let system = |source| FixError::System { doing: doing(), source };
        let Some(folder) = cgroup::of_process(pid).map_err(system)? else {
            return Ok(Err(format!("process {pid} is in no cgroup of version 2")));
        };
        let others = processes::of_cgroup(&folder).map_err(system)?.len().saturating_sub(1);
        if others == 0 || port.is_some() {
            return Ok(Ok(folder));
        }
        Ok(Err(format!(
            "process {pid} shares its cgroup {} with {others} other processes; name a --port, or the --cgroup if \
             all of them are meant",
            folder.display()
        )))
    }

    fn find_routes(&mut self, sockets: &[(u32, TcpSocket)]) -> Result<(), FixError> {
        let connected = sockets.iter().filter(|(_, socket)| !socket.listens);
        let peers: BTreeSet<IpAddr> = connected.map(|(_, socket)| socket.remote.addr).collect();
        for peer in peers {
            match route::to(peer) {
                Ok(route) => self.routes.push(route),
                Err(FixError::Nothing(why)) => self.not_covered.push(why),
                Err(error) => return Err(error),
            }
        }
        if !self.routes.is_empty() {
            self.not_covered.push("peers that connect later; run it again then".to_owned());
        }
        Ok(())
    }

    /// Each step in words.
    pub fn steps(&self) -> Vec<String> {
        let words = self.remedy.words();
        let sockets = self.sockets.iter().map(|socket| {
            let kind = if socket.listens { "listening socket" } else { "connection" };
            let ends = &socket.ends;
            let heirs = if socket.listens { ", which new connections take over" } else { "" };
            format!(
                "{kind} {ends} of process {}: {words} (is {}){heirs}",
                socket.pid, socket.before
            )
        });
        let on_cgroup = self.on_cgroup.iter().map(|program| {
            let port = self.chosen.port.map_or(String::new(), |port| format!(" with port {port}"));
            format!(
                "new connections{port} of processes in {}: {words}, by the BPF program {}",
                program.folder.display(),
                program.name
            )
        });
        let routes = self.routes.iter().map(|route| format!("ip {}", route.join(" ")));
        sockets.chain(on_cgroup).chain(routes).collect()
    }

    /// What the fix will not reach, and why.
    pub fn not_covered(&self) -> &[String] {
        &self.not_covered
    }

    /// The command that takes it back.
    pub fn undoing(&self) -> String {
        let Chosen { pid, port, cgroup } = &self.chosen;
        let mut words = "acklab fix --undo".to_owned();
        words.extend(pid.iter().map(|pid| format!(" --pid {pid}")));
        words.extend(port.iter().map(|port| format!(" --port {port}")));
        words.extend(cgroup.iter().map(|path| format!(" --cgroup {}", path.display())));
        words
    }

    /// Takes the steps. What had been done when one failed is undone by [`super::undo`], as the whole is.
    pub fn apply(&self) -> Result<(), FixError> {
        let option = self.remedy.option();
        let mut record = Record {
            words: self.remedy.words(),
            pid: self.chosen.pid,
            port: self.chosen.port,
            cgroup: self.chosen.cgroup.clone(),
            option: option.map_or(0, |option| option.name),
            after: option.map_or(0, |option| option.value),
            sockets: self.sockets.clone(),
            program: self.on_cgroup.as_ref().map(|p| (p.folder.clone(), p.name.clone())),
            routes: self.routes.clone(),
            network: record::network(),
        };
        let written = record.write()?;
        if let Some(program) = &self.on_cgroup {
            // A second one of the same name would do the same again.
            cgroup::detach(&program.folder, &program.name)?;
            program.load()?.attach()?;
        }
        if let Some(option) = option.filter(|option| open::is_taken(*option).is_ok()) {
            // From now on the program takes care of new ones; these were opened since the plan.
            record.sockets = open::look(&open::chosen_sockets(&self.chosen)?, option)?;
            record.write_again(&written)?;
            for socket in &record.sockets {
                let doing = || format!("set {} on {}", self.remedy.words(), socket.ends);
                open::set(socket, option.name, option.value)
                    .map_err(|source| FixError::System { doing: doing(), source })?;
            }
        }
        for words in &self.routes {
            let doing = format!("ip {}", words.join(" "));
            route::ip(words).map_err(FixError::refused(doing, route::NEEDS))?;
        }
        Ok(())
    }
}

const ENTERING: &str = "that takes CAP_SYS_ADMIN, so run it as root (for example with sudo)";
