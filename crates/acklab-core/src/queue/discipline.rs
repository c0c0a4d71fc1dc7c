//! Disciplines by name: what a scenario chooses and a link builds.

use std::fmt;
use std::sync::Arc;

use super::ecn::Treatment;
use super::{
    Codel, DropTail, DualPi2, Edctcp, Encn, FqCodel, Jersey, Limit, Pie, Queue, Red, Setup,
    Threshold, codel, dualpi2, encn, fq_codel, jersey, pie, red, threshold,
};

/// Which discipline a link gets.
#[derive(Clone, Debug)]
pub enum Discipline {
    /// First in, first out, up to a limit.
    DropTail(Limit),
    /// Random early detection.
    Red(red::Config),
    /// Controlled delay.
    Codel(codel::Config),
    /// Proportional integral controller, enhanced.
    Pie(pie::Config),
    /// Flow queues under CoDel, in turn.
    FqCodel(fq_codel::Config),
    /// The coupled dual queue of L4S.
    DualPi2(dualpi2::Config),
    /// A mark below Qmin.
    Encn(encn::Config),
    /// A warning above an average.
    Jersey(jersey::Config),
    /// A mark above a threshold, and what does not fit goes back to its sender.
    Edctcp(threshold::Config),
    /// A mark above a threshold.
    Threshold(threshold::Config),
    /// A user's own.
    Custom(Factory),
}

/// Drop-tail without a limit.
impl Default for Discipline {
    fn default() -> Self {
        Self::DropTail(Limit::NONE)
    }
}

impl Discipline {
    /// The names of the built-in ones.
    pub const NAMES: &'static [&'static str] = &[
        "drop-tail",
        "red",
        "codel",
        "pie",
        "fq-codel",
        "encn",
        "jersey",
        "edctcp",
        "threshold",
        "dualpi2",
    ];

    /// The discipline called `name` with its default parameters and room for `packets`
    /// (`u32::MAX`: no limit).
    pub fn by_name(name: &str, packets: u32) -> Result<Self, UnknownDiscipline> {
        Ok(match name {
            "drop-tail" => Self::DropTail(Limit::packets(packets)),
            "red" => Self::Red(red::Config::packets(packets)),
            "codel" => Self::Codel(codel::Config::packets(packets)),
            "pie" => Self::Pie(pie::Config::packets(packets)),
            "fq-codel" => Self::FqCodel(fq_codel::Config::packets(packets)),
            "dualpi2" => Self::DualPi2(dualpi2::Config::packets(packets)),
            "encn" => Self::Encn(encn::Config::packets(packets)),
            "jersey" => Self::Jersey(jersey::Config::packets(packets)),
            "edctcp" => Self::Edctcp(threshold::Config::packets(packets)),
            "threshold" => Self::Threshold(threshold::Config::packets(packets)),
            _ => return Err(UnknownDiscipline(name.to_owned())),
        })
    }

    /// With another limit. A user's own keeps what it was built with.
    #[must_use]
    pub fn with_limit(mut self, limit: Limit) -> Self {
        match &mut self {
            Self::DropTail(own) => *own = limit,
            Self::Red(config) => config.limit = limit,
            Self::Codel(config) => config.limit = limit,
            Self::Pie(config) => config.limit = limit,
            Self::FqCodel(config) => config.limit = limit,
            Self::DualPi2(config) => config.limit = limit,
            Self::Encn(config) => config.limit = limit,
            Self::Jersey(config) => config.limit = limit,
            Self::Edctcp(config) | Self::Threshold(config) => config.limit = limit,
            Self::Custom(_) => {}
        }
        self
    }

    /// With another treatment of chosen packets, where the discipline chooses any.
    #[must_use]
    pub fn with_ecn(mut self, ecn: Treatment) -> Self {
        match &mut self {
            Self::Red(config) => config.ecn = ecn,
            Self::Codel(config) => config.ecn = ecn,
            Self::Pie(config) => config.ecn = ecn,
            Self::FqCodel(config) => config.ecn = ecn,
            Self::DualPi2(config) => config.ecn = ecn,
            Self::Edctcp(config) | Self::Threshold(config) => config.ecn = ecn,
            Self::DropTail(_) | Self::Encn(_) | Self::Jersey(_) | Self::Custom(_) => {}
        }
        self
    }

    /// An empty queue of this discipline.
    pub fn build(&self, setup: &Setup<'_>) -> Box<dyn Queue + Send> {
        match *self {
            Self::DropTail(limit) => Box::new(DropTail::new(limit)),
            Self::Red(config) => Box::new(Red::new(config, setup)),
            Self::Codel(config) => Box::new(Codel::new(config)),
            Self::Pie(config) => Box::new(Pie::new(config, setup)),
            Self::FqCodel(config) => Box::new(FqCodel::new(config, setup)),
            Self::DualPi2(config) => Box::new(DualPi2::new(config)),
            Self::Encn(config) => Box::new(Encn::new(config)),
            Self::Jersey(config) => Box::new(Jersey::new(config)),
            Self::Edctcp(config) => Box::new(Edctcp::new(config)),
            Self::Threshold(config) => Box::new(Threshold::new(config)),
            Self::Custom(ref factory) => factory.build(setup),
        }
    }
}

/// No discipline of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownDiscipline(String);

impl fmt::Display for UnknownDiscipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown queue \"{}\"; known: {}", self.0, Discipline::NAMES.join(", "))
    }
}

impl std::error::Error for UnknownDiscipline {}

type Build = dyn Fn(&Setup<'_>) -> Box<dyn Queue + Send> + Send + Sync;

/// Builds a user's own discipline for each link.
#[derive(Clone)]
pub struct Factory(Arc<Build>);

impl Factory {
    /// A factory from a closure.
    pub fn new(
        build: impl Fn(&Setup<'_>) -> Box<dyn Queue + Send> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(build))
    }

    /// A fresh queue.
    pub fn build(&self, setup: &Setup<'_>) -> Box<dyn Queue + Send> {
        (self.0)(setup)
    }
}

impl fmt::Debug for Factory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Factory")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_builds_and_another_is_refused_with_the_list() {
        for name in Discipline::NAMES {
            assert!(Discipline::by_name(name, 17).is_ok(), "{name}");
        }
        let refused = Discipline::by_name("reed", 17).unwrap_err().to_string();
        assert!(refused.contains("\"reed\"") && refused.contains("codel"), "{refused}");
    }
}
