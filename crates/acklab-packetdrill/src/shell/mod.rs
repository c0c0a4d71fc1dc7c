//! Shell commands of scripts, as settings of the host: nothing is executed.
//!
//! `syntax`: the shell's tokens; `machine`: what runs, variables; `commands`: what one command sets; `route`: iproute2;
//! `shown`: nstat.

mod commands;
pub(crate) mod machine;
mod route;
mod shown;
mod syntax;

use std::path::Path;

use crate::world::Change;
use acklab_host::settings::{Route, Sysctls, Us};

pub(crate) use shown::Shown;

/// What commands may change.
#[derive(Debug)]
pub(crate) struct Surroundings<'a> {
    /// System controls.
    pub(crate) sysctls: &'a mut Sysctls,
    /// The route.
    pub(crate) route: &'a mut Route,
    /// The folder of the script.
    pub(crate) folder: &'a Path,
    /// Counters.
    pub(crate) shown: &'a mut Shown,
    /// What was changed, for a world in which it has to be done.
    pub(crate) changes: Vec<Change>,
}

/// A command has an effect on time: it sleeps.
pub(crate) type Slept = Us;
