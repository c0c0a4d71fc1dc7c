//! What is exported: settings of the dumbbell for which there are automata, or why there are none.

use acklab_core::cc::Algorithm;
use acklab_core::cc::balance::SlowStart;
use acklab_core::options::{Options, Parameter, Value};
use acklab_core::queue::Discipline;
use acklab_core::units::BitRate;
use acklab_lab::parameter::Settings;
use acklab_papers::scenario::Ance;
use acklab_papers::scenario::ance::parameters::{Service, Set, SlowStartChoice};

/// The dumbbell of the paper's figure 6 with everything that can be set in an export.
#[derive(Clone, Debug)]
pub struct Model {
    pub(super) set: Set,
    pub(super) queue: Discipline,
    pub(super) cc: Algorithm,
    /// What a router does with its queue, in UPPAAL's language.
    pub(super) router: &'static str,
    /// What a transmitter does with its window.
    pub(super) window: &'static [&'static str],
}

/// Why settings cannot be exported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    #[error("{name}={value}: the UPPAAL model does not have this; it has {supported}")]
    NotModelled { name: &'static str, value: String, supported: &'static str },
    #[error("{name}={value}: {reason}")]
    OutOfRange {
        name: &'static str,
        value: String,
        /// What is wrong and what would be right.
        reason: &'static str,
    },
}

impl Model {
    /// The model of settings of `ance-dumbbell`.
    pub fn from_settings(settings: &Settings) -> Result<Self, ExportError> {
        let set = Ance::Dumbbell.resolve(settings);
        refuse_what_is_not_modelled(&set)?;
        let (queue, cc) = (set.queue(), set.cc());
        let (router, window) = (router(&queue)?, window(&cc)?);
        let model = Self { set, queue, cc, router, window };
        model.check()?;
        Ok(model)
    }

    pub(super) fn flows(&self) -> u32 {
        self.set.control.flows as u32
    }

    /// Packets that may wait at each router, beside the one in service.
    pub(super) fn buffer(&self) -> u32 {
        let network = &self.set.network;
        network.buffer - u32::from(network.service == Service::Within)
    }

    /// Whether the window is Reno's, and not ANCE's or ENCN's.
    pub(super) const fn is_reno(&self) -> bool {
        matches!(self.cc, Algorithm::Reno)
    }

    /// Initial slow-start threshold, segments.
    pub(super) const fn ssthresh(&self) -> u64 {
        match self.set.tcp.ssthresh {
            0 if self.is_reno() => 30,
            0 => 16,
            segments => segments,
        }
    }

    /// What ends slow start of ANCE and ENCN.
    pub(super) const fn slow_start(&self) -> SlowStart {
        match (self.set.balance.slow_start, &self.cc) {
            (SlowStartChoice::Prose, _) | (SlowStartChoice::Auto, Algorithm::Encn(_)) => {
                SlowStart::Prose
            }
            _ => SlowStart::Algorithm1,
        }
    }

    /// Refuses numbers that the automata or UPPAAL's integers do not hold.
    fn check(&self) -> Result<(), ExportError> {
        let Set { network, tcp, control, .. } = &self.set;
        let out =
            |name, value: String, reason| Err(ExportError::OutOfRange { name, value, reason });
        if network.rate == BitRate::INFINITE {
            return out("rate", network.rate.to_string(), "the bottleneck needs a rate");
        }
        if network.access_rate < network.rate {
            let reason = "access links must not be slower than the bottleneck, since no queue is \
                          modelled before them";
            return out("access_rate", network.access_rate.to_string(), reason);
        }
        if self.buffer() == 0 {
            return out("buffer", "1".into(), "with service=within nothing could wait; 2 or more");
        }
        let longest = [
            ("duration", self.set.duration, 1000),
            ("rx_access", network.rx_access, 10),
            ("rx_spread", control.rx_spread, 10),
            ("tx_access", network.tx_access, 10),
            ("ncs_access", control.ncs_access, 10),
            ("delay", network.delay, 10),
            ("host_jitter", tcp.host_jitter, 10),
            ("start_spread", tcp.start_spread, 30),
            ("rto_min", tcp.rto_min, 60),
        ];
        for (name, span, seconds) in longest {
            if span.as_secs_f64() > f64::from(seconds) {
                let reason = "UPPAAL's integers end at 2147 s in microseconds; at most 1000 s of run, 60 s \
                              of time-out, 30 s between starts and 10 s of delay fit the model";
                return out(name, span.to_string(), reason);
            }
        }
        Ok(())
    }
}

/// The choices for which there is no automaton.
fn refuse_what_is_not_modelled(set: &Set) -> Result<(), ExportError> {
    let refused = [
        ("delack", "on", "delack=off"),
        ("recovery", "sack", "recovery=reno and recovery=newreno"),
        ("start", "random", "start=fixed, with a start_spread"),
        ("red_above", "gentle", "red_above=drop and red_above=mark"),
        ("pie", "hpsr2013", "pie=rfc8033"),
        ("pie_rate", "measured", "pie_rate=known"),
        ("ance_equation_2", "ack-length", "ance_equation_2=corrected"),
        ("ance_equation_2", "literal", "ance_equation_2=corrected"),
        ("ance_spacing", "second-smallest", "ance_spacing=smallest"),
        ("ance_spacing", "per-round-trip", "ance_spacing=smallest"),
        ("actuation", "arrival", "actuation=period-ended and actuation=tick"),
        ("missing", "zero", "missing=hold"),
    ];
    let chosen = set.list();
    for (name, value, supported) in refused {
        let is_chosen = |option: &Parameter<Value>| {
            option.name == name && option.default == Value::Choice(value)
        };
        if chosen.iter().any(is_chosen) {
            return Err(ExportError::NotModelled { name, value: value.into(), supported });
        }
    }
    Ok(())
}

fn router(queue: &Discipline) -> Result<&'static str, ExportError> {
    Ok(match queue {
        Discipline::DropTail(_) => include_str!("text/drop_tail.uppaal"),
        Discipline::Red(_) => include_str!("text/red.uppaal"),
        Discipline::Codel(_) => include_str!("text/codel.uppaal"),
        Discipline::Pie(_) => include_str!("text/pie.uppaal"),
        Discipline::Encn(_) => include_str!("text/encn.uppaal"),
        other => {
            let supported = "drop-tail, red, codel, pie and encn";
            let (name, value) = ("queue", other.name().into());
            return Err(ExportError::NotModelled { name, value, supported });
        }
    })
}

fn window(cc: &Algorithm) -> Result<&'static [&'static str], ExportError> {
    const BALANCE: &str = include_str!("text/balance.uppaal");
    Ok(match cc {
        Algorithm::Reno => &[include_str!("text/reno.uppaal")],
        Algorithm::Ance(_) => &[BALANCE, include_str!("text/ance.uppaal")],
        Algorithm::Encn(_) => &[BALANCE, include_str!("text/encn_sender.uppaal")],
        other => {
            let supported = "reno, ance and encn";
            let (name, value) = ("cc", other.name().into());
            return Err(ExportError::NotModelled { name, value, supported });
        }
    })
}
