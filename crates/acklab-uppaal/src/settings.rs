//! From a scenario's settings to a model, or why not.

use acklab_core::units::BitRate;

use super::model::{
    Actuation, CoDelVariant, Congestion, Discipline, Integration, Model, Phase, Recovery, SlowStart,
};
use acklab_lab::parameter::Settings;
use acklab_papers::scenario::Ance;

/// Why settings cannot be exported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// A setting has no counterpart in the UPPAAL model.
    #[error("{name}={value}: the UPPAAL model does not have this; it has {supported}")]
    NotModelled {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: String,
        /// What would be accepted.
        supported: &'static str,
    },
    /// A number is beyond what the UPPAAL model holds.
    #[error("{name}={value}: {reason}")]
    OutOfRange {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: String,
        /// What is wrong and what would be right.
        reason: &'static str,
    },
}

impl Model {
    /// The model of settings of `ance-dumbbell`.
    pub fn from_settings(settings: &Settings) -> Result<Self, ExportError> {
        let settings = &Ance::resolved(settings);
        refuse_what_is_not_modelled(settings)?;
        let queue = discipline(settings)?;
        let congestion = congestion(settings)?;
        let count = |name| settings.count(name) as u32;
        let within = settings.choice("service") == "within";
        let ssthresh = match (count("ssthresh"), congestion) {
            (0, Congestion::Reno) => 30,
            (0, _) => 16,
            (segments, _) => segments,
        };
        let model = Self {
            duration: settings.span("duration"),
            flows: count("flows"),
            rate: settings.rate("rate"),
            delay: settings.span("delay"),
            buffer: count("buffer") - u32::from(within),
            access_rate: settings.rate("access_rate"),
            tx_access: settings.span("tx_access"),
            rx_access: settings.span("rx_access"),
            rx_spread: settings.span("rx_spread"),
            ncs_access: settings.span("ncs_access"),
            packet: count("packet"),
            rwnd: count("rwnd"),
            iw: count("iw"),
            ssthresh,
            recovery: match settings.choice("recovery") {
                "reno" => Recovery::Reno,
                _ => Recovery::NewReno,
            },
            rto_min: settings.span("rto_min"),
            start_spread: settings.span("start_spread"),
            host_jitter: settings.span("host_jitter"),
            ecn: settings.choice("ecn") == "on",
            ncs_exempt: settings.choice("ncs_early") == "exempt",
            queue,
            congestion,
            qmin: settings.number("qmin"),
            bf_floor: settings.number("bf_floor"),
            slow_start: match settings.choice("slow_start") {
                "prose" => SlowStart::Prose,
                "auto" if congestion == Congestion::Encn => SlowStart::Prose,
                _ => SlowStart::Algorithm1,
            },
            actuation: match settings.choice("actuation") {
                "tick" => Actuation::Tick,
                _ => Actuation::PeriodEnded,
            },
            phase: match settings.choice("phase") {
                "fixed" => Phase::Fixed,
                _ => Phase::Random,
            },
            integration: match settings.choice("integration") {
                "backward-euler" => Integration::BackwardEuler,
                "tustin" => Integration::Tustin,
                _ => Integration::ForwardEuler,
            },
            saturation: settings.number("saturation"),
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
fn refuse_what_is_not_modelled(settings: &Settings) -> Result<(), ExportError> {
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
    for (name, value, supported) in refused {
        if settings.choice(name) == value {
            return Err(ExportError::NotModelled { name, value: value.into(), supported });
        }
    }
    Ok(())
}

fn discipline(settings: &Settings) -> Result<Discipline, ExportError> {
    Ok(match settings.choice("queue") {
        "drop-tail" => Discipline::DropTail,
        "encn" => Discipline::Encn,
        "red" => Discipline::Red {
            weight: settings.number("red_weight"),
            p_max: settings.number("red_pmax"),
            min: settings.number("red_min"),
            max: settings.number("red_max"),
            counts: settings.choice("red_count") == "uniform",
            marks_above: settings.choice("red_above") == "mark",
        },
        "codel" => Discipline::CoDel {
            variant: match settings.choice("codel") {
                "rfc8289" => CoDelVariant::Rfc8289,
                _ => CoDelVariant::Article2012,
            },
            target: settings.span("codel_target"),
            interval: settings.span("codel_interval"),
        },
        "pie" => Discipline::Pie { target: settings.span("pie_target") },
        other => {
            return Err(ExportError::NotModelled {
                name: "queue",
                value: other.into(),
                supported: "drop-tail, red, codel, pie and encn",
            });
        }
    })
}

fn congestion(settings: &Settings) -> Result<Congestion, ExportError> {
    Ok(match settings.choice("cc") {
        "reno" => Congestion::Reno,
        "encn" => Congestion::Encn,
        "ance" => Congestion::Ance { true_bandwidth: settings.choice("ance_bandwidth") == "true" },
        other => {
            return Err(ExportError::NotModelled {
                name: "cc",
                value: other.into(),
                supported: "reno, ance and encn",
            });
        }
    })
}
