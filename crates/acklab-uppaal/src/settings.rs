//! From a scenario's settings to a model, or why not.

use acklab_core::cc::Algorithm;
use acklab_core::options::{Options, Parameter, Value, Word};
use acklab_core::queue::ecn::Treatment;
use acklab_core::queue::{self, red};
use acklab_core::units::BitRate;

use super::model::{Actuation, Congestion, Discipline, Model, Recovery, SlowStart};
use acklab_lab::parameter::Settings;
use acklab_papers::scenario::Ance;
use acklab_papers::scenario::ance::parameters::{
    self, Above, Bandwidth, Service, Set, SlowStartChoice,
};

/// Why settings cannot be exported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// A setting has no counterpart in the UPPAAL model.
    #[error("{name}={value}: the UPPAAL model does not have this; it has {supported}")]
    NotModelled {
        /// The parameter.
        name: &'static str,
        value: String,
        /// What would be accepted.
        supported: &'static str,
    },
    /// A number is beyond what the UPPAAL model holds.
    #[error("{name}={value}: {reason}")]
    OutOfRange {
        /// The parameter.
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
        let queue = discipline(&set)?;
        let congestion = congestion(&set)?;
        let ssthresh = match (set.tcp.ssthresh, congestion) {
            (0, Congestion::Reno) => 30,
            (0, _) => 16,
            (segments, _) => segments as u32,
        };
        let Set { network, tcp, balance, control, .. } = &set;
        let model = Self {
            duration: set.duration,
            flows: control.flows as u32,
            rate: network.rate,
            delay: network.delay,
            buffer: network.buffer - u32::from(network.service == Service::Within),
            access_rate: network.access_rate,
            tx_access: network.tx_access,
            rx_access: network.rx_access,
            rx_spread: control.rx_spread,
            ncs_access: control.ncs_access,
            packet: tcp.packet,
            rwnd: tcp.rwnd,
            iw: tcp.iw,
            ssthresh,
            recovery: match tcp.recovery.name() {
                "reno" => Recovery::Reno,
                _ => Recovery::NewReno,
            },
            rto_min: tcp.rto_min,
            start_spread: tcp.start_spread,
            host_jitter: tcp.host_jitter,
            ecn: tcp.ecn.is_on(),
            ncs_exempt: control.ncs_early == Treatment::Exempt,
            queue,
            congestion,
            qmin: balance.qmin,
            bf_floor: balance.bf_floor,
            slow_start: match balance.slow_start {
                SlowStartChoice::Prose => SlowStart::Prose,
                SlowStartChoice::Auto if congestion == Congestion::Encn => SlowStart::Prose,
                SlowStartChoice::Auto | SlowStartChoice::Algorithm1 => SlowStart::Algorithm1,
            },
            actuation: match control.actuation {
                parameters::Actuation::Tick => Actuation::Tick,
                _ => Actuation::PeriodEnded,
            },
            phase: control.phase,
            integration: control.integration,
            saturation: control.saturation,
        };
        model.check()?;
        Ok(model)
    }

    /// Refuses numbers that the automata or UPPAAL's integers do not hold.
    fn check(&self) -> Result<(), ExportError> {
        let out =
            |name, value: String, reason| Err(ExportError::OutOfRange { name, value, reason });
        if self.rate == BitRate::INFINITE {
            return out("rate", self.rate.to_string(), "the bottleneck needs a rate");
        }
        if self.access_rate < self.rate {
            let reason = "access links must not be slower than the bottleneck, since no queue is \
                          modelled before them";
            return out("access_rate", self.access_rate.to_string(), reason);
        }
        if self.buffer == 0 {
            return out("buffer", "1".into(), "with service=within nothing could wait; 2 or more");
        }
        let longest = [
            ("duration", self.duration, 1000),
            ("rx_access", self.rx_access, 10),
            ("rx_spread", self.rx_spread, 10),
            ("tx_access", self.tx_access, 10),
            ("ncs_access", self.ncs_access, 10),
            ("delay", self.delay, 10),
            ("host_jitter", self.host_jitter, 10),
            ("start_spread", self.start_spread, 30),
            ("rto_min", self.rto_min, 60),
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

fn discipline(set: &Set) -> Result<Discipline, ExportError> {
    let own = &set.queues;
    Ok(match set.queue() {
        queue::Discipline::DropTail(_) => Discipline::DropTail,
        queue::Discipline::Encn(_) => Discipline::Encn,
        queue::Discipline::Red(_) => Discipline::Red {
            weight: own.red_weight,
            p_max: own.red_pmax,
            min: own.red_min,
            max: own.red_max,
            counts: own.red_count == red::Spacing::Uniform,
            marks_above: own.red_above == Above::Mark,
        },
        queue::Discipline::Codel(_) => Discipline::CoDel {
            variant: own.codel,
            target: own.codel_target,
            interval: own.codel_interval,
        },
        queue::Discipline::Pie(_) => Discipline::Pie { target: own.pie_target },
        other => {
            return Err(ExportError::NotModelled {
                name: "queue",
                value: other.name().into(),
                supported: "drop-tail, red, codel, pie and encn",
            });
        }
    })
}

fn congestion(set: &Set) -> Result<Congestion, ExportError> {
    Ok(match set.cc() {
        Algorithm::Reno => Congestion::Reno,
        Algorithm::Encn(_) => Congestion::Encn,
        Algorithm::Ance(_) => {
            Congestion::Ance { true_bandwidth: set.balance.ance_bandwidth == Bandwidth::True }
        }
        other => {
            return Err(ExportError::NotModelled {
                name: "cc",
                value: other.name().into(),
                supported: "reno, ance and encn",
            });
        }
    })
}
